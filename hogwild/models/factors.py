"""A trained factor model: predicts ratings, recommends items, finds similar users and items."""

import weakref
from typing import Any

import numpy as np
import numpy.typing as npt

from hogwild import model_file
from hogwild.computed import cached_property
from hogwild.data.ids import UNKNOWN, Codes, Ids
from hogwild.data.ratings import Ratings
from hogwild.errors import DataError, OptionError, warn
from hogwild.kernels import ranking as kernels
from hogwild.kernels.checks import first_bad_value
from hogwild.learn.losses import FACTOR_LOSSES
from hogwild.learn.metrics import auc, log_loss
from hogwild.model_file import DamageError
from hogwild.models import exports, ranking
from hogwild.models.contents import COUNT, NUMBER, Contents
from hogwild.models.fold_in import fold_in
from hogwild.models.scores import finite
from hogwild.notebook import model_html
from hogwild.paths import PathLike

Floats = npt.NDArray[np.float32]
Ranking = tuple[npt.NDArray[Any], Floats]


class FactorModel:
    """A trained factor model: score = mean + b_u + b_i + <p_u, q_i>.

    Attributes:
        user_factors, item_factors: a row of `rank` float32 for each user and each item.
        user_biases, item_biases: one float32 for each; zeros if none were learned.
        mean: the constant part of scores, a float.
        user_ids, item_ids: the users and items of the rows.
        loss: the name of the loss it was trained for.
        about: the options of the training and a summary of its trace.

    The arrays cannot be written to.
    """

    kind = "factors"

    def __init__(
        self,
        user_factors: Floats,
        item_factors: Floats,
        user_biases: Floats,
        item_biases: Floats,
        mean: float,
        user_ids: Ids,
        item_ids: Ids,
        loss: str,
        about: dict[str, Any] | None = None,
    ) -> None:
        if loss not in FACTOR_LOSSES:
            raise OptionError(f"loss: {loss!r} is not one of {', '.join(FACTOR_LOSSES)}")
        rank = np.shape(user_factors)[-1] if np.ndim(user_factors) == 2 else 0
        self.user_factors = _frozen(user_factors, (len(user_ids), rank), "user_factors")
        self.item_factors = _frozen(item_factors, (len(item_ids), rank), "item_factors")
        self.user_biases = _frozen(user_biases, (len(user_ids),), "user_biases")
        self.item_biases = _frozen(item_biases, (len(item_ids),), "item_biases")
        if not np.isfinite(mean):
            raise DataError(f"the model's mean is {mean}; it must be finite")
        self.mean = float(mean)
        self.user_ids, self.item_ids = user_ids, item_ids
        self.loss = loss
        self.about = about or {}
        self._seen: tuple[Any, ranking.Lists] | None = None

    def __repr__(self) -> str:
        users, items = len(self.user_ids), len(self.item_ids)
        return f"<FactorModel {self.loss}, rank {self.rank}, {users:,} users, {items:,} items>"

    def _repr_html_(self) -> str:
        return model_html(self)

    def __reduce__(self) -> Any:
        """Pickled without its caches."""
        arrays = (getattr(self, name) for name in ARRAYS)
        ids = self.user_ids, self.item_ids
        return FactorModel, (*arrays, self.mean, *ids, self.loss, self.about)

    @property
    def rank(self) -> int:
        """The number of factors of a user or an item."""
        return int(self.user_factors.shape[1])

    def decision_function(self, users: Any, items: Any = None, *, strict: bool = False) -> Any:
        """The score of each pair; users and items as for `predict`."""
        single = _is_id(users) and _is_id(items)
        who, what, name = self._pairs(users, items)
        self._tell_unknown(who, what, users, items, name, strict)
        scores = self._scores(who, what)
        return float(scores[0]) if single else scores

    def predict(self, users: Any, items: Any = None, *, strict: bool = False) -> Any:
        """The predicted rating of each pair: the score, or for the logistic loss the probability
        of a 1.

        The biases and factors of unknown users and items count as zero, with a warning.

        Args:
            users: ids, or one id; or `hogwild.Ratings`, whose pairs are taken.
            items: ids, one for each user, or a single id.
            strict: refuse unknown users and items.

        Returns:
            An array of float32; for one user and one item a float.
        """
        scores = self.decision_function(users, items, strict=strict)
        odds = FACTOR_LOSSES[self.loss].probability
        if odds is None:
            return scores
        return float(odds(np.float32(scores))) if isinstance(scores, float) else odds(scores)

    def recommend(
        self, users: Any = None, n: int = 10, *, exclude: Ratings | None = None
    ) -> Ranking:
        """The n items with the best scores, best first; ties go to the first of `item_ids`.

        Args:
            users: an id, or an array or list of ids; None for all users.
            n: the number of items; fewer are returned if the model has fewer.
            exclude: pairs to leave out, such as the training ratings. (Repeated calls with the
                same ratings are faster.)

        Returns:
            The ids of the items and their scores: two arrays, for several users with a row each.
            Rows that are too short after exclusions end with scores of -inf and the id -1, or ""
            where ids are text.

        Raises:
            DataError: a user is unknown; `fold_in` learns factors of a user with ratings.
        """
        chosen = self._all_or(users, self.user_ids, "user", "fold_in learns one from ratings")
        seen = None if exclude is None else self._lists(exclude)
        most = min(_positive(n), len(self.item_ids))
        codes, scores = ranking.best(self._user_vectors, self._item_panels, most, chosen, seen)
        common = np.float32(self.mean) + self.user_biases[chosen]
        return _ranking(self.item_ids, codes, scores + common[:, None], _is_id(users))

    def recommend_for(
        self, factors: Any, bias: float = 0.0, n: int = 10, *, exclude_items: Any = None
    ) -> Ranking:
        """As `recommend`, for one user with factors and a bias from `fold_in`."""
        vector = np.asarray(factors, np.float32)
        if vector.shape != (self.rank,) or not np.isfinite(vector).all():
            raise DataError(
                f"the factors must be {self.rank} finite numbers, as fold_in returns them"
            )
        seen = ranking.nothing(1)
        if exclude_items is not None and np.size(exclude_items):
            codes = self.item_ids.codes_of(exclude_items)
            codes = codes[codes != UNKNOWN]
            seen = ranking.Lists(np.array([0, len(codes)], np.uint64), codes)
        users, one = ranking.vectors(vector[None, :]), np.zeros(1, np.uint32)
        most = min(_positive(n), len(self.item_ids))
        codes, scores = ranking.best(users, self._item_panels, most, one, seen)
        return _ranking(self.item_ids, codes, scores + np.float32(self.mean + bias), True)

    def similar_items(self, items: Any = None, n: int = 10) -> Ranking:
        """The n items with the most similar factors: ids and cosines, best first.

        The item itself is left out. An item without factors (all zeros) has cosines of 0.

        Args:
            items: an id, or an array or list of ids; None for all items.
            n: the number of items; fewer are returned if the model has fewer.
        """
        return self._similar(items, n, self.item_ids, "item", self._item_directions)

    def similar_users(self, users: Any = None, n: int = 10) -> Ranking:
        """As `similar_items`, for users."""
        return self._similar(users, n, self.user_ids, "user", self._user_directions)

    def fold_in(self, items: Any, values: Any) -> tuple[Floats, float]:
        """Factors and bias of a new user who gave `values` to `items`.

        They minimize the training objective with all items fixed. The model does not change;
        pass the result to `recommend_for`. Unknown items are left out, with a warning.
        """
        if _is_id(items):
            items, values = [items], [values]
        codes = self.item_ids.codes_of(items)
        given = self._checked_values(values, len(codes))
        known = codes != UNKNOWN
        if not known.all():
            warn(f"{np.count_nonzero(~known):,} of {len(known):,} items are unknown; left out")
        if not known.any():
            raise DataError("a user needs at least one rating of an item that the model knows")
        codes, given = codes[known], given[known].astype(np.float64)
        offsets = self.mean + self.item_biases[codes].astype(np.float64)
        options = self.about.get("options", {})
        return fold_in(self.item_factors[codes], offsets, given, self.loss, options)

    def evaluate(self, users: Any, items: Any = None, values: Any = None) -> dict[str, Any]:
        """Objective, RMSE, MAE, and the number of pairs with an unknown user or item; for the
        logistic loss also log loss and AUC.

        Takes `hogwild.Ratings`, or the arguments of its constructor. The objective is the mean loss
        plus the penalty per rating, as in training.
        """
        whole = isinstance(users, Ratings) and items is None
        ratings = users if whole else Ratings(users, items, values)
        if not len(ratings):
            raise DataError(f"{ratings.name} has no ratings to evaluate on")
        if ratings.values is None:
            raise DataError(f"{ratings.name} has pairs without values; evaluation needs values")
        given = self._checked_values(ratings.values, len(ratings), ratings.name)
        who, what = ratings.recoded(self.user_ids, self.item_ids)
        scores = self._scores(who, what)
        sums = kernels.measurer(self.loss)(scores, given)
        loss, square, size = (total / len(given) for total in sums)
        found: dict[str, Any] = {
            "ratings": len(ratings),
            "objective": loss + float(self.about.get("penalty", 0.0)),
            "rmse": square**0.5,
            "mae": size,
        }
        if self.loss == "logistic":
            exact = scores.astype(np.float64), given.astype(np.float64), np.ones(len(given))
            found |= {"log_loss": log_loss(*exact, self.loss), "auc": auc(*exact, self.loss)}
        unknown = int(np.count_nonzero((who == UNKNOWN) | (what == UNKNOWN)))
        return found | {"unknown": unknown}

    def save(self, path: PathLike) -> None:
        """Writes the model to one file; `hogwild.load_model` reads it back bit for bit."""
        about = {name: getattr(self, name) for name in ("kind", "rank", "mean", "loss", "about")}
        arrays: model_file.Arrays = {name: getattr(self, name).ravel() for name in ARRAYS}
        arrays |= self.user_ids.arrays("user_ids.") | self.item_ids.arrays("item_ids.")
        model_file.write(path, about, arrays)

    def export(self, path: PathLike) -> None:
        """Writes the model for other programs: .npz or .safetensors."""
        exports.export(self, path)

    def to_implicit(self) -> Any:
        """A model of the library implicit with the same scores, for the places of the ids.

        It has two more factors, which hold the biases. So the biases count in its cosines of
        similar items.
        """
        return exports.to_implicit(self)

    @classmethod
    def from_file(cls, file: Contents) -> "FactorModel":
        """The model that `save` wrote.

        Raises:
            DamageError: the file says something that cannot be.
        """
        loss, mean = file.choice("loss", FACTOR_LOSSES), file.get("mean", NUMBER)
        rank, record = file.get("rank", COUNT), file.record()
        arrays = [file.array(name) for name in ARRAYS]
        try:
            ids = [
                Ids.from_arrays(file.ids(name), name, f"{name}.")
                for name in ("user_ids", "item_ids")
            ]
        except DataError as problem:
            raise DamageError(str(problem)) from None
        for name, array, known, width in zip(
            ARRAYS, arrays, 2 * ids, (rank, rank, 1, 1), strict=True
        ):
            if len(array) != len(known) * width:
                raise DamageError(
                    f"it has {len(array):,} {name}; expected {width:,} for each of {len(known):,}"
                )
        users, items = ids
        return cls(
            arrays[0].reshape(len(users), rank),
            arrays[1].reshape(len(items), rank),
            arrays[2],
            arrays[3],
            mean,
            users,
            items,
            loss,
            record,
        )

    @cached_property
    def _user_vectors(self) -> Floats:
        return ranking.vectors(self.user_factors)

    @cached_property
    def _item_panels(self) -> ranking.Panels:
        return ranking.panels(self.item_factors, self.item_biases)

    @cached_property
    def _item_directions(self) -> "tuple[Floats, ranking.Panels]":
        return _directions(self.item_factors)

    @cached_property
    def _user_directions(self) -> "tuple[Floats, ranking.Panels]":
        return _directions(self.user_factors)

    def _similar(
        self, wanted: Any, n: int, ids: Ids, role: str, directions: tuple[Floats, ranking.Panels]
    ) -> Ranking:
        chosen = self._all_or(wanted, ids, role, f"only {role}s of the training have factors")
        itself = np.arange(len(ids), dtype=np.uint32)
        lists = ranking.Lists(np.arange(len(ids) + 1, dtype=np.uint64), itself)
        most = min(_positive(n), max(len(ids) - 1, 0))
        codes, cosines = ranking.best(*directions, most, chosen, lists)
        return _ranking(ids, codes, np.minimum(cosines, np.float32(1)), _is_id(wanted))

    def _all_or(self, wanted: Any, ids: Ids, role: str, hint: str) -> Codes:
        """The codes of ids, which must be known; of all ids for None."""
        if wanted is None:
            return np.arange(len(ids), dtype=np.uint32)
        codes = ids.codes_of(wanted)
        if (codes == UNKNOWN).any():
            first = wanted if _is_id(wanted) else list(wanted)[int(np.argmax(codes == UNKNOWN))]
            raise DataError(f"the model does not know the {role} {_shown(first)}; {hint}")
        return codes

    def _lists(self, ratings: Ratings) -> ranking.Lists:
        """The items of each user, kept for the next call with the same ratings."""
        if not isinstance(ratings, Ratings):
            raise DataError(f"exclude must be hogwild.Ratings, not a {type(ratings).__name__}")
        if self._seen is None or self._seen[0]() is not ratings:
            found = ranking.lists(ratings, self.user_ids, self.item_ids)
            if len(ratings) and not len(found.items):
                warn(
                    f"{ratings.name}: none of its {len(ratings):,} pairs has a user and an item "
                    "that the model knows, so none is excluded"
                )
            self._seen = (weakref.ref(ratings), found)
        return self._seen[1]

    def _pairs(self, users: Any, items: Any) -> tuple[Codes, Codes, str]:
        """The codes of pairs, and their name for messages."""
        if isinstance(users, Ratings) and items is None:
            return *users.recoded(self.user_ids, self.item_ids), users.name
        if items is None:
            raise DataError("the items are missing: give users and items, or hogwild.Ratings")
        who, what = self.user_ids.codes_of(users), self.item_ids.codes_of(items)
        who = np.repeat(who, len(what)) if _is_id(users) else who
        what = np.repeat(what, len(who)) if _is_id(items) else what
        if len(who) != len(what):
            raise DataError(f"{len(who):,} users and {len(what):,} items; a pair needs one of each")
        return who, what, "the pairs"

    def _tell_unknown(
        self, who: Codes, what: Codes, users: Any, items: Any, name: str, strict: bool
    ) -> None:
        said = []
        for role, codes in (("user", who), ("item", what)):
            unknown = np.flatnonzero(codes == UNKNOWN)
            if strict and len(unknown):
                at = int(unknown[0])
                given = _shown(_id_at(users, items, role, at))
                raise DataError(
                    f"{name}: the model does not know the {role} {given} of pair {at + 1:,}"
                )
            if len(unknown):
                said.append(f"{len(unknown):,} have an unknown {role}")
        if said:
            warn(
                f"{name}: of {len(who):,} pairs {' and '.join(said)}; their biases and factors "
                "count as zero"
            )

    def _scores(self, who: Codes, what: Codes) -> Floats:
        scores = np.empty(len(who), np.float32)
        users = self.user_factors.ravel(), self.user_biases
        items = self.item_factors.ravel(), self.item_biases
        kernels.score_pairs(users, items, self.mean, who, what, scores)
        return finite(scores, "the pairs", "pair")

    def _checked_values(self, values: Any, count: int, name: str = "the ratings") -> Floats:
        array = np.asarray(values)
        if array.ndim != 1 or array.dtype.kind not in "fiub" or len(array) != count:
            raise DataError(
                f"{name}: {count:,} items need {count:,} values, not {array.dtype} of the shape "
                f"{array.shape}"
            )
        return targets_of(array, self.loss, name)


def targets_of(values: npt.NDArray[Any], loss: str, name: str) -> Floats:
    """Values as the loss learns them (logistic: -1 and 1); an error where it cannot take one."""
    given = np.ascontiguousarray(values, np.float32)
    good, wanted = np.isfinite(given), "finite values"
    if loss == "logistic":
        good, wanted = (given == 0) | (given == 1), "0 and 1"
    elif loss == "kl":
        good, wanted = good & (given >= 0), "none below 0"
    if not good.all():
        at = int(np.argmin(good))
        raise DataError(
            f"{name}: rating {at + 1:,} is {values[at]:g}; the loss {loss} takes {wanted}"
        )
    return 2 * given - 1 if loss == "logistic" else given


ARRAYS = ("user_factors", "item_factors", "user_biases", "item_biases")


def _frozen(array: Any, shape: tuple[int, ...], name: str) -> Floats:
    """A read-only view of an array, after checks."""
    given = np.require(array, np.float32, ["C", "A"])
    if given.shape != shape:
        raise DataError(f"{name}: the shape is {given.shape}; expected {shape}")
    at = int(first_bad_value(given.ravel()))
    if at < given.size:
        raise DataError(f"{name}: number {at + 1:,} is {given.ravel()[at]}; all must be finite")
    view = given.view()
    view.flags.writeable = False
    return view


def _directions(factors: Floats) -> tuple[Floats, ranking.Panels]:
    """Vectors of length 1 (or 0), as users and as items."""
    lengths = np.linalg.norm(factors.astype(np.float64), axis=1, keepdims=True)
    unit = (factors / np.where(lengths > 0, lengths, 1)).astype(np.float32)
    return ranking.vectors(unit), ranking.panels(unit)


def _ranking(ids: Ids, codes: Codes, scores: Floats, single: bool) -> Ranking:
    """Ids and scores; for a single user without empty places."""
    if single:
        known = codes[0] != UNKNOWN
        codes, scores = codes[0][known], scores[0][known]
    known = codes != UNKNOWN
    finite(scores[known], "the model", "item")
    filler, kind = ("", object) if ids.are_text else (-1, np.int64)
    found: npt.NDArray[Any] = np.full(codes.shape, filler, kind)
    found[known] = ids.take(codes[known])
    return found, scores


def _positive(n: Any) -> int:
    if not isinstance(n, int | np.integer) or isinstance(n, bool) or n < 1:
        raise OptionError(f"n: must be a whole number of 1 or more, not {n!r}")
    return int(n)


def _is_id(given: Any) -> bool:
    return isinstance(given, str | int | np.integer)


def _id_at(users: Any, items: Any, role: str, at: int) -> Any:
    """An id of a pair, as it was given."""
    if isinstance(users, Ratings):
        users, items = users.user_ids[users.users], users.item_ids[users.items]
    given = users if role == "user" else items
    return given if _is_id(given) else list(given)[at]


def _shown(given: Any) -> str:
    return repr(given.item() if isinstance(given, np.generic) else given)
