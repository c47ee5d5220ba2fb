"""The best items for many users: blocks of users, on all cores."""

from functools import partial
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from hogwild.data.ids import UNKNOWN, Codes, Ids
from hogwild.data.ratings import Ratings, grouped
from hogwild.kernels import ranking as kernels
from hogwild.kernels.ranking import FILLER, PANEL, SIGN, STEP
from hogwild.machine import usable_cores
from hogwild.threads import side_by_side

BLOCK = 64  # users who are scored on one panel of items before the next panel
SHARES = 4  # of the users per core, at least
MOST_BLOCKS = 16  # in a share: Ctrl-C waits for the shares in progress
WORTH = 1 << 24  # multiplications that justify another thread

Floats = npt.NDArray[np.float32]


class Lists(NamedTuple):
    """A list of items for each user, in CSR form."""

    starts: npt.NDArray[np.uint64]
    items: Codes


class Panels(NamedTuple):
    """Items as the kernel takes them; see `hogwild.kernels.ranking`."""

    factors: Floats
    biases: Floats


def panels(factors: Floats, biases: Floats | None = None) -> Panels:
    """Items in panels."""
    count = len(factors)
    width = -(-count // PANEL)
    filled = np.zeros((width * PANEL, _whole(factors.shape[1])), np.float32)
    filled[:count, : factors.shape[1]] = factors
    base = np.full(width * PANEL, -np.inf, np.float32)
    base[:count] = 0.0 if biases is None else biases + np.float32(0)  # turns -0 into 0
    turned = filled.reshape(width, PANEL, filled.shape[1]).transpose(0, 2, 1)
    return Panels(np.ascontiguousarray(turned).ravel(), base)


def vectors(factors: Floats) -> Floats:
    """Users as the kernel takes them: padded with zeros to a multiple of STEP."""
    rank = factors.shape[1]
    if rank == _whole(rank):
        return factors
    return np.pad(factors, ((0, 0), (0, _whole(rank) - rank)))


def best(
    users: Floats, items: Panels, n: int, chosen: Codes, without: Lists | None = None
) -> tuple[Codes, Floats]:
    """The n best items for each chosen user, and their scores: <p_u, q_i> + b_i.

    Best first; ties go to the lower code. Empty places have the code `UNKNOWN` and a score of -inf.

    Args:
        users: a result of `vectors`.
        items: a result of `panels`.
        n: at most the number of items.
        chosen: codes of users.
        without: items to leave out, for all users.
    """
    lists = tuple(nothing(len(users)) if without is None else without)
    keys = np.full((len(chosen), n), FILLER, np.uint64)

    def rank(share: range) -> None:
        words = len(items.biases) // PANEL
        scratch = (
            np.zeros(words * min(BLOCK, len(share)), np.uint64),
            np.empty(BLOCK, np.float32),
            np.empty(2 * PANEL, np.float32),
        )
        places = items.factors, items.biases
        for begin in share[::BLOCK]:
            some = begin, min(begin + BLOCK, share.stop)
            kernels.rank_items(users.ravel(), places, lists, chosen, some, n, keys.ravel(), scratch)
            keys[slice(*some)].sort(axis=1)

    if n:
        _spread(rank, len(chosen), len(chosen) * len(items.factors))
    best_first = keys[:, ::-1]
    return ~best_first.astype(np.uint32), _scores(best_first)


def nothing(users: int) -> Lists:
    """Empty lists."""
    return Lists(np.zeros(users + 1, np.uint64), np.empty(0, np.uint32))


def lists(ratings: Ratings, user_ids: Ids, item_ids: Ids) -> Lists:
    """The items that each user rated, by these ids; other users and items are left out."""
    users, items = ratings.recoded(user_ids, item_ids)
    known = (users != UNKNOWN) & (items != UNKNOWN)
    if not known.all():
        users, items = users[known], items[known]
    rated, starts = grouped(users, items, len(user_ids))
    return Lists(starts, rated)


def _whole(rank: int) -> int:
    return -(-rank // STEP) * STEP


def _spread(work: Any, users: int, multiplications: int) -> None:
    """Does the work on several cores, if there is enough of it."""
    threads = min(usable_cores(), multiplications // WORTH)
    if threads < 2:
        work(range(users))
        return
    blocks = -(-users // BLOCK)
    size = min(MOST_BLOCKS, -(-blocks // (SHARES * threads))) * BLOCK
    every = range(users)
    side_by_side((partial(work, every[at : at + size]) for at in every[::size]), threads)


def _scores(keys: npt.NDArray[np.uint64]) -> Floats:
    ordered = (keys >> np.uint64(32)).astype(np.uint32)
    sign = np.uint32(SIGN)
    return np.where(ordered & sign, ordered ^ sign, ~ordered).view(np.float32)
