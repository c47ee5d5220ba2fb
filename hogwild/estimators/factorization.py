"""Matrix factorization with scikit-learn's interface: `MatrixFactorization`."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from hogwild.data.ratings import Ratings
from hogwild.errors import DataError
from hogwild.estimators.epochs import CallbackSupportMixin, Epochs, for_callbacks, with_callbacks
from hogwild.estimators.parameters import named_as_in, seed_from, warn_of_limit, workers_of
from hogwild.models.factors import FactorModel
from hogwild.trace import Row
from hogwild.training import train

NAMES = {"workers": "n_jobs", "seed": "random_state"}

Floats = npt.NDArray[np.float32]
Ranking = tuple[npt.NDArray[Any], Floats]


@dataclass(eq=False, repr=False, kw_only=True)
class MatrixFactorization(CallbackSupportMixin, BaseEstimator):
    """Factors of users and items, learned from ratings by stochastic gradient descent.

    Methods take `hogwild.Ratings`, or users, items and values, or a scipy sparse matrix. The rows
    of the matrix are users, its columns are items, and its stored entries are ratings.

    Args:
        rank: number of factors per user and item.
        l2, bias_l2, l1: weights of the penalties; None: chosen from the ratings.
        loss: squared, absolute, logistic (for values 0 and 1), kl (for counts).
        biases: learn a bias of each user and each item; None: unless the loss is kl.
        epochs: most passes over the ratings.
        tol: stop when two epochs in a row each lower the objective by less than this share of it.
            None: never stop early.
        eta0: the first learning rate; None: chosen from the size of the ratings.
        weighted: count the penalty of a user or an item once for each rating.
        nonnegative: keep all factors at or above 0.
        schedule, strategy, backend: as in `hogwild.Config`.
        early_stopping: hold out this share of the ratings, and stop when their error no longer
            decreases.
        n_jobs, random_state: as in `HogwildClassifier`. A seed gives the same bytes with any number
            of workers, except with the strategy hogwild.
        verbose: 1 prints what the command line prints, 2 also why things were chosen.

    Attributes:
        model_: the `hogwild.FactorModel`.
        user_factors_, item_factors_: of shape (users, rank) and (items, rank), float32.
        user_biases_, item_biases_: one float32 each.
        mean_: the mean, to which biases and products of factors are added.
        user_ids_, item_ids_: the ids of the rows of the factors.
        n_iter_: epochs done.
        history_: a dict for every epoch.

    A pickle holds no ratings: see `recommend`.
    """

    rank: int = field(default=32, kw_only=False)
    l2: float | None = None
    loss: str = "squared"
    biases: bool | None = None
    epochs: int = 20
    tol: float | None = 1e-3
    eta0: float | None = None
    l1: float = 0.0
    bias_l2: float | None = None
    weighted: bool = True
    nonnegative: bool = False
    schedule: str | None = None
    strategy: str = "auto"
    backend: str = "process"
    early_stopping: float | None = None
    n_jobs: int | None = None
    random_state: Any = None
    verbose: int = 0

    @with_callbacks
    def fit(self, users: Any, items: Any = None, values: Any = None) -> "MatrixFactorization":
        """Trains on ratings, from the beginning."""
        ratings = _ratings(users, items, values)
        self.history_: list[Row] = []
        given = for_callbacks(users, None, None)
        following = Epochs(self, self.epochs, given, self._attributes)
        self._train(ratings, None, [following])
        following.finish()
        return self

    def partial_fit(
        self, users: Any, items: Any = None, values: Any = None
    ) -> "MatrixFactorization":
        """Continues training for `epochs` passes over these ratings. The first call is `fit`.

        New users and items are added.
        """
        if not hasattr(self, "model_"):
            self.fit(users, items, values)
            return self
        ratings, model = _ratings(users, items, values), self.model_
        sides = (
            ("users", model.user_ids, ratings.user_ids),
            ("items", model.item_ids, ratings.item_ids),
        )
        for side, known, given in sides:
            if known.are_text != given.are_text and len(given):
                had, has = ("text" if ids.are_text else "numbers" for ids in (known, given))
                raise DataError(
                    f"the ids of the {side} are {had} in the model and {has} in {ratings.name}: "
                    "give the same kind"
                )
        ids = model.user_ids.joined(ratings.user_ids), model.item_ids.joined(ratings.item_ids)
        codes, name = ratings.recoded(*ids), ratings.name
        return self._train(Ratings.from_codes(*codes, ratings.values, *ids, name=name), model)

    def _train(
        self, ratings: Ratings, start: FactorModel | None, callbacks: Iterable[Epochs] = ()
    ) -> "MatrixFactorization":
        options = self.get_params(deep=False)
        options["workers"] = workers_of(self.n_jobs)
        options["seed"] = seed_from(self.random_state)
        options["tol"] = 0.0 if self.tol is None else self.tol  # None never stops early
        del options["n_jobs"], options["random_state"]
        options |= {"start": start, "callbacks": callbacks}
        result = named_as_in(lambda: train(ratings, task="mf", **options), NAMES)
        self.model_: FactorModel = result.model
        self.__dict__.update(self._attributes(self.model_))
        self.history_ = self.history_ + result.trace
        self.n_iter_ = len(self.history_)
        if start is None:
            self._seen: Ratings | None = ratings
        elif self._seen is not None:
            self._seen = _joined(self._seen, ratings)
        if callbacks:  # there are none in `partial_fit`
            warn_of_limit(result, "epochs", self.tol)
        if result.reason == "interrupted":
            raise KeyboardInterrupt  # what was learned so far is in place
        return self

    def _attributes(self, model: FactorModel) -> Row:
        """The attributes to set for a model."""
        given = ("user_factors", "item_factors", "user_biases", "item_biases", "user_ids")
        names = (*given, "item_ids", "mean")
        return {"model_": model} | {f"{name}_": getattr(model, name) for name in names}

    def __getstate__(self) -> Row:
        state = dict(super().__getstate__())
        return state | {"_seen": None} if "_seen" in state else state

    def predict(self, users: Any, items: Any = None, *, strict: bool = False) -> Any:
        """The expected rating of each pair; see `FactorModel.predict`."""
        return self._fitted().predict(users, items, strict=strict)

    def recommend(
        self,
        users: Any = None,
        n: int = 10,
        *,
        exclude_seen: bool = True,
        exclude: Ratings | None = None,
    ) -> Ranking:
        """The n best items for a user, several, or all, and their scores.

        See `FactorModel.recommend`. By default, items are left out that the user rated in the data
        of `fit` and `partial_fit`. An unpickled estimator has no ratings: give the ratings to leave
        out as `exclude`.
        """
        model = self._fitted()
        if exclude is None and exclude_seen:
            exclude = self._seen
            if exclude is None:
                raise DataError(
                    "this estimator was unpickled, and a pickle has no ratings: give those to "
                    "leave out as exclude, or exclude_seen=False"
                )
        return model.recommend(users, n, exclude=exclude)

    def similar_items(self, items: Any = None, n: int = 10) -> Ranking:
        """The n items most similar to an item, and the cosines between their factors."""
        return self._fitted().similar_items(items, n)

    def similar_users(self, users: Any = None, n: int = 10) -> Ranking:
        """The n users most similar to a user, and the cosines between their factors."""
        return self._fitted().similar_users(users, n)

    def fold_in(self, items: Any, values: Any) -> tuple[Floats, float]:
        """Factors and bias of a new user with these ratings; see `FactorModel.fold_in`."""
        return self._fitted().fold_in(items, values)

    def score(self, users: Any, items: Any = None, values: Any = None) -> float:
        """The negative root mean squared error on ratings: greater is better."""
        return -float(self._fitted().evaluate(_ratings(users, items, values))["rmse"])

    def _fitted(self) -> FactorModel:
        check_is_fitted(self, "model_")
        return self.model_


def _ratings(users: Any, items: Any, values: Any) -> Ratings:
    if isinstance(users, Ratings):
        if items is not None or values is not None:
            raise DataError(f"{users.name}: hogwild.Ratings have all in them; give them alone")
        return users
    return Ratings(users, items, values)


def _joined(before: Ratings, after: Ratings) -> Ratings:
    """The ratings of both. The ids of `after` begin with those of `before`."""
    users = np.concatenate([before.users, after.users])
    items = np.concatenate([before.items, after.items])
    return Ratings.from_codes(users, items, None, after.user_ids, after.item_ids, name=after.name)
