"""Where the rows of factors lie, and the ratings between them: a grid of blocks.

Users and items are renumbered at random and cut into strips of neighbours. A block is the ratings
that a strip of users gave to a strip of items: its rows fit into a core's own cache. Bands of
strips (BANDS each of users and of items) are what workers hold at a time: in each phase of an
epoch, every band of the users is worked on with another band of the items, so that no two of a
phase share a row (Gemulla, Nijkamp, Haas, Sismanis, KDD 2011). There are as many bands for any
number of workers: so the outcome does not depend on it.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from hogwild.kernels import blocks as kernels
from hogwild.kernels.order import permute
from hogwild.parallel.memory import Arrays, Wanted
from hogwild.seeds import seed_of

BANDS = 8
CACHE = 640 << 10  # bytes of rows in a block: a bit more than half of a core's cache
MOST_ROWS = 1 << 16  # in a strip: they are counted in 16 bits
FEWEST_RATINGS = 256  # in a block, on average: with fewer, going from one to the next takes time
CHUNKS = 64  # that ratings are sorted by, at most
CHUNK = 1 << 16  # ratings in one, at least
BEYOND = 256  # ratings: the kernels look ahead, beyond the last


class Side:
    """The rows of the users, or of the items: where each lies, in strips of equal height.

    Attributes:
        role: "user" or "item".
        factors, beside: the names of two arrays: of factors, and of each row's bias and rate.
        count, height, strips: the number of rows, of rows in a strip, and of strips.
        rows, places: for each id its row, and the strip and the row within that (see the kernels).
    """

    def __init__(self, role: str, count: int, height: int, seed: int) -> None:
        self.role = role
        self.factors, self.beside = f"{role}s", f"{role}_sides"
        self.count = count
        self.height = height
        self.strips = _strips(count, height)
        self.rows = np.empty(count, np.uint32)
        permute(self.rows, 0, np.uint64(seed))
        strip, within = np.divmod(self.rows, np.uint32(height))
        self.places = (strip << np.uint32(16)) | within

    @property
    def size(self) -> int:
        """Rows that all strips have room for."""
        return self.strips * self.height


class Grid:
    """The grid of blocks, for `shape` users and items, that ratings are sorted into."""

    def __init__(self, shape: tuple[int, int], ratings: int, row_bytes: int, seed: int) -> None:
        users, items = _heights(shape, ratings, row_bytes)
        self.users = Side("user", shape[0], users, seed_of(seed, 0))
        self.items = Side("item", shape[1], items, seed_of(seed, 1))
        self.columns = self.items.strips
        self.blocks = self.users.strips * self.columns

    @property
    def shape(self) -> tuple[int, int, int]:
        """Blocks for each strip of users, and the heights of both kinds of strips."""
        return self.columns, self.users.height, self.items.height

    def task(self, user_band: int, item_band: int) -> npt.NDArray[np.uint32]:
        """The blocks of two bands, to and fro so that neighbours share a strip."""
        rows, columns = self.users.strips // BANDS, self.columns // BANDS
        block = np.empty((rows, columns), np.uint32)
        first = user_band * rows * self.columns + item_band * columns
        block[:] = first + np.arange(rows)[:, None] * self.columns + np.arange(columns)
        block[1::2] = block[1::2, ::-1]
        return block.reshape(-1)


def _heights(shape: tuple[int, int], ratings: int, row_bytes: int) -> tuple[int, int]:
    """Rows in a strip of users and in one of items, so that a block's fit into the cache."""
    wanted = min(MOST_ROWS, max(1, CACHE // (2 * row_bytes)))
    heights = [min(wanted, _even(count)) for count in shape]
    # What one side leaves of the cache, the other may have
    for side in (0, 1):
        free = CACHE // row_bytes - heights[1 - side]
        heights[side] = min(MOST_ROWS, _even(shape[side]), max(heights[side], free))
    most = max(ratings // FEWEST_RATINGS, BANDS**2)  # blocks
    while _strips(shape[0], heights[0]) * _strips(shape[1], heights[1]) > most:
        side = int(shape[1] / heights[1] > shape[0] / heights[0])
        if heights[side] == MOST_ROWS:
            break
        heights[side] = min(MOST_ROWS, 2 * heights[side])
    users, items = (
        _even(count, _strips(count, height)) for count, height in zip(shape, heights, strict=True)
    )
    return users, items


def _strips(count: int, height: int) -> int:
    """The number of strips: a multiple of the number of bands."""
    return BANDS * -(-count // (BANDS * height))


def _even(count: int, strips: int = BANDS) -> int:
    """The height of strips, given their number."""
    return max(1, -(-count // strips))


class Sorting:
    """Ratings on their way into a grid: `count`, `begin`, `sort`, `mix`.

    The pieces of each (chunks, or bands to mix) may be done by anyone; `begin` is for one. All work
    on the arrays that `shared` asks for, whose names begin with `prefix`.
    """

    def __init__(
        self, grid: Grid, users: Any, items: Any, values: Any, seed: int, prefix: str
    ) -> None:
        self._grid = grid
        self._whose = users, items, grid.users.places, grid.items.places
        self._values = values
        self._seed = np.uint64(seed)
        self._prefix = prefix
        self.size = len(users)
        self.chunks = max(1, min(CHUNKS, self.size // CHUNK))

    def shared(self) -> Wanted:
        """The arrays that sorting writes: the ratings, where blocks begin, chunks' counts."""
        blocks = self._grid.blocks
        return {
            f"{self._prefix}_ratings": (self.size + BEYOND, np.uint64),
            f"{self._prefix}_starts": (blocks + 1, np.uint64),
            f"{self._prefix}_counts": (blocks * self.chunks, np.uint64),
        }

    def pieces(self, verb: str) -> int:
        """The number of pieces of a stage."""
        return BANDS if verb == "mix" else self.chunks

    def count(self, chunk: int, shared: Arrays) -> None:
        """Counts a chunk's ratings in each block."""
        counts = self._counts(shared)[chunk]
        kernels.count(self._whose, *self._range(chunk), self._grid.columns, counts)

    def begin(self, shared: Arrays) -> None:
        """Makes of the counts where each block begins, and each chunk's ratings in it."""
        table, starts = self._counts(shared), shared[f"{self._prefix}_starts"]
        np.cumsum(table.sum(axis=0), out=starts[1:])
        before = np.cumsum(table, axis=0) - table
        table[:] = before + starts[:-1]

    def sort(self, chunk: int, shared: Arrays) -> None:
        """Writes a chunk's ratings into their blocks."""
        counts, ratings = self._counts(shared)[chunk], shared[f"{self._prefix}_ratings"]
        chosen = *self._range(chunk), self._grid.columns
        views = ratings.view(np.uint16), ratings.view(np.float32)
        kernels.sort(self._whose, self._values, *chosen, counts, views)

    def mix(self, band: int, shared: Arrays) -> None:
        """Brings the blocks of a band of users into a random order, each within itself."""
        each = self._grid.blocks // BANDS
        ratings, starts = (shared[f"{self._prefix}_{name}"] for name in ("ratings", "starts"))
        kernels.mix(ratings, starts, band * each, (band + 1) * each, self._seed)

    def _range(self, chunk: int) -> tuple[int, int]:
        return self.size * chunk // self.chunks, self.size * (chunk + 1) // self.chunks

    def _counts(self, shared: Arrays) -> npt.NDArray[np.uint64]:
        """A line for each chunk, a column for each block."""
        return shared[f"{self._prefix}_counts"].reshape(self.chunks, -1)
