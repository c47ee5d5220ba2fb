"""Ratings: which user gave which item which value. What factor models learn from."""

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from hogwild.data.given_arrays import NUMBERS, as_float32, as_indices, row_pointers, through_scipy
from hogwild.data.ids import UNKNOWN, Codes, Ids
from hogwild.errors import DataError, OptionError
from hogwild.kernels import ratings as kernels

DUPLICATES = ("keep", "mean", "last", "error")
MOST_IDS = UNKNOWN  # the code that stands for no id
MOST_RATINGS = 2**32

Values = npt.NDArray[np.float32]


class Ratings:
    """Ratings of items by users, in the order in which they were given.

    ``Ratings(users, items, values)`` takes three arrays or lists of the same length; ids are whole
    numbers or text. Without values there are only pairs. ``Ratings(matrix)`` takes a scipy sparse
    matrix of users by items: each stored entry is a rating, zeros among them, and the ids are the
    numbers of rows and columns.

    Attributes:
        users, items: the codes of each rating's user and item (uint32), not writeable.
        values: the ratings (float32), not writeable; None for pairs without values.
        user_ids, item_ids: what the codes stand for.
        name: where the ratings come from, for messages.
    """

    users: Codes
    items: Codes
    values: Values | None
    user_ids: Ids
    item_ids: Ids
    name: str

    def __init__(
        self,
        users: Any,
        items: Any = None,
        values: Any = None,
        *,
        duplicates: str = "keep",
        name: str = "the data",
    ) -> None:
        check_duplicates(duplicates)
        if items is None:
            made = Ratings.from_codes(*of_matrix(users, values, name), name=name)
        else:
            user_ids, user_codes = Ids.of(users, f"{name}: the users")
            item_ids, item_codes = Ids.of(items, f"{name}: the items")
            made = Ratings.from_codes(user_codes, item_codes, values, user_ids, item_ids, name=name)
        self.__dict__ = made.deduplicated(duplicates).__dict__

    @classmethod
    def from_codes(
        cls,
        users: npt.NDArray[Any],
        items: npt.NDArray[Any],
        values: Any,
        user_ids: Ids,
        item_ids: Ids,
        *,
        name: str = "the data",
    ) -> "Ratings":
        """Makes ratings from codes and values, checked; uint32 and float32 are not copied."""
        ratings = cls.__new__(cls)
        ratings.name = name
        ratings.user_ids, ratings.item_ids = user_ids, item_ids
        if len(users) != len(items) or (values is not None and len(users) != len(values)):
            given = "" if values is None else f" and {len(values):,} values"
            raise DataError(
                f"{name}: {len(users):,} users, {len(items):,} items{given}; "
                "every rating needs one of each"
            )
        if len(users) > MOST_RATINGS:
            raise DataError(f"{name}: {len(users):,} ratings; at most 2^32 can be held")
        ratings.users = _codes(users, user_ids, "user", name)
        ratings.items = _codes(items, item_ids, "item", name)
        ratings.values = None if values is None else ratings._checked_values(values)
        return ratings

    def __len__(self) -> int:
        return len(self.users)

    def __repr__(self) -> str:
        users, items = self.shape
        what = "pairs" if self.values is None else "ratings"
        return f"<Ratings: {len(self):,} {what} of {items:,} items by {users:,} users>"

    @property
    def shape(self) -> tuple[int, int]:
        """How many users and items there are ids for."""
        return len(self.user_ids), len(self.item_ids)

    @property
    def nbytes(self) -> int:
        """Bytes of the ratings themselves: codes and values."""
        values = 0 if self.values is None else self.values.nbytes
        return self.users.nbytes + self.items.nbytes + values

    def deduplicated(self, how: str) -> "Ratings":
        """The ratings with every pair of user and item once, where it was first.

        Args:
            how: "mean" of the pair's values, the "last" of them, "error" where there are several,
                or "keep" them all.
        """
        check_duplicates(how)
        if how == "keep":
            return self
        repeated, first = self._first_of_pairs()
        if not repeated:
            return self
        if how == "error":
            raise DataError(self._repetition(first))
        return self._taken(first == np.arange(len(self)), self._merged(first, how))

    def split(self, share: float, seed: int = 0) -> tuple["Ratings", "Ratings"]:
        """Two parts: the ratings to train on, and a random share held out. The ids stay the same.

        On which side a rating falls depends on the seed and on its place only.
        """
        if not 0 < share < 1:
            raise OptionError(f"share is {share!r}; it must lie between 0 and 1")
        whole = isinstance(seed, int | np.integer) and not isinstance(seed, bool)
        if not whole or not 0 <= seed < 2**64:
            raise OptionError(f"seed is {seed!r}; it must be a whole number from 0 to 2^64 - 1")
        held_out = np.empty(len(self), np.bool_)
        kernels.draw_share(np.uint64(seed), np.uint64(share * 2.0**64), held_out)
        return self._taken(~held_out, self.values), self._taken(held_out, self.values)

    def recoded(self, user_ids: Ids, item_ids: Ids) -> tuple[Codes, Codes]:
        """The codes of each rating's user and item among other ids, `UNKNOWN` where not there."""
        users = _recoded(self.users, self.user_ids, user_ids)
        return users, _recoded(self.items, self.item_ids, item_ids)

    def to_scipy(self) -> Any:
        """The ratings as a scipy CSR matrix of users by items; pairs without values become 1.

        A matrix has one place for each pair, so pairs that occur more than once are refused.
        """
        from scipy.sparse import coo_matrix

        values = np.ones(len(self), np.float32) if self.values is None else self.values
        wide = np.int64 if max(*self.shape, len(self)) >= 2**31 else np.int32
        places = self.users.astype(wide), self.items.astype(wide)
        matrix = coo_matrix((values, places), shape=self.shape).tocsr()
        if matrix.nnz != len(self):
            raise DataError(self._repetition(self._first_of_pairs()[1]))
        return matrix

    def _taken(self, chosen: npt.NDArray[np.bool_], values: Values | None) -> "Ratings":
        values = None if values is None else values[chosen]
        codes, ids = (self.users[chosen], self.items[chosen]), (self.user_ids, self.item_ids)
        return Ratings.from_codes(*codes, values, *ids, name=self.name)

    def _first_of_pairs(self) -> tuple[int, Codes]:
        """How many ratings repeat a pair, and for each rating where its pair comes first."""
        users, items = self.shape
        order, _ = grouped(self.users, np.arange(len(self), dtype=np.uint32), users)
        first = np.empty(len(self), np.uint32)
        seen_by, seen_at = np.zeros(items, np.uint32), np.empty(items, np.uint32)
        repeated = kernels.first_of_pairs(order, self.users, self.items, seen_by, seen_at, first)
        return int(repeated), first

    def _merged(self, first: Codes, how: str) -> Values | None:
        """The values, where the first rating of a pair has the mean, or the last, of all."""
        if self.values is None:
            return None
        if how == "mean":
            count = np.bincount(first, minlength=len(self))
            sums = np.bincount(first, self.values, len(self))
            return np.divide(sums, count, where=count > 0, out=sums).astype(np.float32)
        merged = self.values.copy()
        merged[first] = self.values  # of several, numpy keeps the last
        return merged

    def _repetition(self, first: Codes) -> str:
        at = int(np.argmax(first != np.arange(len(self))))
        user, item = self.user_ids[int(self.users[at])], self.item_ids[int(self.items[at])]
        return (
            f"{self.name}: user {user!r} and item {item!r} occur together twice, in the ratings "
            f"{int(first[at]) + 1:,} and {at + 1:,}; take their mean or the last "
            '(duplicates="mean" or "last")'
        )

    def _checked_values(self, values: Any) -> Values:
        array = np.asarray(values)
        if array.ndim != 1 or array.dtype.kind not in NUMBERS:
            raise DataError(
                f"{self.name}: the values are of the type {array.dtype} in {array.ndim} "
                "dimension(s); expected numbers in one"
            )
        frozen, at, reason = as_float32(array)
        if at < len(frozen):
            user, item = self.user_ids[int(self.users[at])], self.item_ids[int(self.items[at])]
            raise DataError(
                f"{self.name}: the value {array[at]} in the rating {at + 1:,}, of item {item!r} by "
                f"user {user!r}, is {reason or 'not finite'}"
            )
        return frozen


def counts_of(codes: Codes, size: int) -> npt.NDArray[np.uint64]:
    """How many entries each of so many codes has."""
    starts = np.zeros(size + 1, np.uint64)
    kernels.count_codes(codes, starts)
    return np.diff(starts)


def grouped(codes: Codes, others: Codes, size: int) -> tuple[Codes, npt.NDArray[np.uint64]]:
    """`others` grouped by code, and where the group of each code begins."""
    starts = np.zeros(size + 1, np.uint64)
    kernels.count_codes(codes, starts)
    entries = np.empty(len(codes), np.uint32)
    kernels.group_by(codes, others, starts.copy(), entries)
    return entries, starts


def mean_and_deviation(values: Values) -> tuple[float, float]:
    """The mean and the standard deviation of at least one value; exactly 0 where all are equal."""
    first = float(values[0])  # distances from it are small where the values lie close together
    total, squares = kernels.sum_and_squares(values, first)
    mean = total / len(values)
    return mean, math.sqrt(max(0.0, squares / len(values) - (mean - first) ** 2))


def check_duplicates(how: str) -> None:
    """Refuses what is no way to deal with duplicates."""
    if how not in DUPLICATES:
        raise OptionError(f"duplicates is {how!r}; it must be one of {', '.join(DUPLICATES)}")


def _recoded(codes: Codes, ids: Ids, other: Ids) -> Codes:
    return codes if other is ids else np.asarray(other.codes_of(ids)[codes])


def _codes(codes: Any, ids: Ids, role: str, name: str) -> Codes:
    """Codes of any width as uint32, known to be in range."""
    if len(ids) > MOST_IDS:
        raise DataError(f"{name}: {len(ids):,} {role}s; at most 2^32 - 1 can be held")

    def outside(code: int, at: int) -> DataError:
        return DataError(
            f"{name}: {role} {code} in the rating {at + 1:,}; {role}s go from 0 to {len(ids) - 1}"
        )

    return as_indices(codes, len(ids), f"{name}: the array of {role}s", outside)


def of_matrix(matrix: Any, values: Any, name: str) -> tuple[Any, Any, Any, Ids, Ids]:
    """What ratings are made of: the entries of a scipy sparse matrix, in its order."""
    from scipy import sparse

    if values is not None or not sparse.issparse(matrix) or matrix.ndim != 2:
        raise DataError(
            f"{name}: expected users and items (and values), or a scipy sparse matrix of users by "
            f"items alone, not {type(matrix).__name__}"
        )
    if matrix.format == "csr":
        places = _lines(matrix, matrix.shape[0], name), matrix.indices
    elif matrix.format == "csc":  # not left to scipy, which trusts the pointers
        places = matrix.indices, _lines(matrix, matrix.shape[1], name)
    else:
        matrix = through_scipy(matrix, name, lambda known: known.tocoo(copy=False))
        places = matrix.row, matrix.col
    return *places, matrix.data, Ids.numbered(matrix.shape[0]), Ids.numbered(matrix.shape[1])


def _lines(matrix: Any, count: int, name: str) -> Codes:
    """The row of each entry of a CSR matrix with so many rows, or the column of a CSC matrix's."""
    sizes = np.diff(row_pointers(matrix.indptr, len(matrix.indices), name)).astype(np.int64)
    if len(sizes) != count:
        raise DataError(
            f"{name}: damaged CSR arrays: {count} rows have pointers for {len(sizes)} of them"
        )
    return np.repeat(np.arange(count, dtype=np.uint32), sizes)
