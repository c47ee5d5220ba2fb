"""Matrix factorization with scikit-learn's interface: `MatrixFactorization`."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from hogwild.data.ids import Ids
from hogwild.data.ratings import Ratings
from hogwild.errors import DataError
from hogwild.estimators.parameters import named_as_in, seed_from, workers_of
from hogwild.models.factors import FactorModel
from hogwild.trace import Row
from hogwild.training import train

NAMES = {"workers": "n_jobs", "seed": "random_state"}

Floats = npt.NDArray[np.float32]
Ranking = tuple[npt.NDArray[Any], Floats]


@dataclass(eq=False, repr=False, kw_only=True)
class MatrixFactorization(BaseEstimator):
    """Factors of users and items, learned from ratings by stochastic gradient descent.

    Methods take `hogwild.Ratings` or their parts: users, items and values, or a scipy sparse matrix
    of users by items whose stored entries are ratings.

    Args:
        rank: factors of a user and of an item.
        l2, bias_l2, l1: weights of the penalties; None: chosen from the ratings.
        loss: squared, absolute, logistic (for values 0 and 1), kl (for counts).
        biases: learn a bias of each user and each item; None: unless the loss is kl.
        epochs: passes over the ratings, at most.
        tol: stop when two epochs in a row each lower the objective by less than this share of it;
            None: never.
        eta0: the first learning rate; None: chosen from the size of the ratings.
        weighted: count the penalty of a user or an item once for each rating.
        nonnegative: no factor below 0.
        schedule, strategy, backend: as in `hogwild.Config`.
        early_stopping: hold out this share of the ratings, and stop when their error no longer
            decreases.
        n_jobs: worker processes; None or -1: chosen automatically.
        random_state: seed of all random choices.

    Attributes:
        model_: the `hogwild.FactorModel`.
        user_factors_, item_factors_: of shape (users, rank) and (items, rank), float32.
        user_biases_, item_biases_: one float32 each.
        mean_: the mean, to which biases and products of factors are added.
        user_ids_, item_ids_: the ids of the rows of the factors.
        n_iter_: epochs done.
        history_: a dict for every epoch.
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
    random_state: Any = 0

    def fit(self, users: Any, items: Any = None, values: Any = None) -> "MatrixFactorization":
        """Trains on ratings, from the beginning."""
        ratings = _ratings(users, items, values)
        self.history_: list[Row] = []
        return self._train(ratings, None)

    def partial_fit(
        self, users: Any, items: Any = None, values: Any = None
    ) -> "MatrixFactorization":
        """Continues training for `epochs` passes over these ratings. The first call is `fit`.

        New users and items are added.
        """
        if not hasattr(self, "model_"):
            return self.fit(users, items, values)
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

    def _train(self, ratings: Ratings, start: FactorModel | None) -> "MatrixFactorization":
        options = self.get_params(deep=False)
        options["workers"] = None if self.n_jobs is None else workers_of(self.n_jobs)
        options["seed"] = seed_from(self.random_state)
        options["tol"] = 0.0 if self.tol is None else self.tol  # None never stops early
        del options["n_jobs"], options["random_state"]
        result = named_as_in(lambda: train(ratings, start=start, task="mf", **options), NAMES)
        model: FactorModel = result.model
        self.model_ = model
        self.user_factors_, self.item_factors_ = model.user_factors, model.item_factors
        self.user_biases_, self.item_biases_ = model.user_biases, model.item_biases
        self.user_ids_: Ids = model.user_ids
        self.item_ids_: Ids = model.item_ids
        self.mean_ = model.mean
        self.history_ = self.history_ + result.trace
        self.n_iter_ = len(self.history_)
        self._seen: Ratings = ratings if start is None else _joined(self._seen, ratings)
        if result.reason == "interrupted":
            raise KeyboardInterrupt  # what was learned so far is in place
        return self

    def predict(self, users: Any, items: Any = None, *, strict: bool = False) -> Any:
        """The rating to expect of each pair; see `FactorModel.predict`."""
        return self._fitted().predict(users, items, strict=strict)

    def recommend(self, users: Any = None, n: int = 10, *, exclude_seen: bool = True) -> Ranking:
        """The n best items for a user, several, or all, and their scores.

        See `FactorModel.recommend`. By default the items are left out that the user rated in all
        that was learned from, by `fit` and `partial_fit`.
        """
        model = self._fitted()
        return model.recommend(users, n, exclude=self._seen if exclude_seen else None)

    def similar_items(self, items: Any = None, n: int = 10) -> Ranking:
        """The n items that are most like an item, and the cosines between their factors."""
        return self._fitted().similar_items(items, n)

    def similar_users(self, users: Any = None, n: int = 10) -> Ranking:
        """The n users that are most like a user, and the cosines between their factors."""
        return self._fitted().similar_users(users, n)

    def fold_in(self, items: Any, values: Any) -> tuple[Floats, float]:
        """Factors and bias of a new user with these ratings; see `FactorModel.fold_in`."""
        return self._fitted().fold_in(items, values)

    def score(self, users: Any, items: Any = None, values: Any = None) -> float:
        """Minus the root of the mean squared error on ratings: greater is better."""
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
    """The pairs of both; the ids of the second ones begin with those of the first ones."""
    users = np.concatenate([before.users, after.users])
    items = np.concatenate([before.items, after.items])
    return Ratings.from_codes(users, items, None, after.user_ids, after.item_ids, name=after.name)
