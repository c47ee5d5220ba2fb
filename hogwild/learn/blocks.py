"""Where the rows of factors lie, and the ratings between them: a grid of blocks.

Users and items are renumbered at random and cut into strips. A block is the ratings that a strip
of users gave to a strip of items: its rows fit into a core's private cache. Workers take bands of
strips (BANDS each of users and of items). In each phase of an epoch, every band of users is paired
with another band of items, so no two pairs of a phase share a row (Gemulla, Nijkamp, Haas,
Sismanis, KDD 2011). The number of bands is fixed, so the result does not depend on the workers.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from hogwild.kernels import blocks as kernels
from hogwild.kernels.order import permute
from hogwild.parallel.memory import Arrays, Wanted
from hogwild.seeds import seed_of
from hogwild.threads import share_of

BANDS = 8
CACHE = 640 << 10  # bytes of rows in a block: a bit more than half of a core's L2 cache
MOST_ROWS = 1 << 16  # in a strip: they are counted in 16 bits
FEWEST_RATINGS = 256  # in a block, on average: with fewer, switching blocks takes too long
CHUNKS = 64  # of the ratings, at most, that are sorted separately
CHUNK = 1 << 16  # ratings in a chunk, at least
BEYOND = 256  # ratings of padding: the kernels look ahead, beyond the last


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
        """The number of rows that the strips have room for."""
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
        """Blocks per strip of users, and the heights of both kinds of strips."""
        return self.columns, self.users.height, self.items.height

    def task(self, user_band: int, item_band: int) -> npt.NDArray[np.uint32]:
        """The blocks of two bands, in a zigzag: neighbors share a strip."""
        rows, columns = self.users.strips // BANDS, self.columns // BANDS
        block = np.empty((rows, columns), np.uint32)
        first = user_band * rows * self.columns + item_band * columns
        block[:] = first + np.arange(rows)[:, None] * self.columns + np.arange(columns)
        block[1::2] = block[1::2, ::-1]
        return block.reshape(-1)


def _heights(shape: tuple[int, int], ratings: int, row_bytes: int) -> tuple[int, int]:
    """The heights of strips of users and of items, such that a block fits into the cache."""
    wanted = min(MOST_ROWS, max(1, CACHE // (2 * row_bytes)))
    heights = [min(wanted, _even(count)) for count in shape]
    # One side may use the cache that the other leaves free
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
    """Sorts ratings into a grid, in four steps: `count`, `begin`, `sort`, `mix`.

    Workers share the pieces of a stage (chunks, or bands to mix); one of them does `begin`. The
    names of the arrays start with `prefix`.
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
        """The arrays that sorting writes: ratings, starts of blocks, counts by chunk and block."""
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
        chosen = share_of(self.size, self.chunks, chunk)
        kernels.count(self._whose, *chosen, self._grid.columns, counts)

    def begin(self, shared: Arrays) -> None:
        """Turns counts into places: where each block begins, and each chunk's ratings in it."""
        table, starts = self._counts(shared), shared[f"{self._prefix}_starts"]
        np.cumsum(table.sum(axis=0), out=starts[1:])
        before = np.cumsum(table, axis=0) - table
        table[:] = before + starts[:-1]

    def sort(self, chunk: int, shared: Arrays) -> None:
        """Writes a chunk's ratings into their blocks."""
        counts, ratings = self._counts(shared)[chunk], shared[f"{self._prefix}_ratings"]
        chosen = *share_of(self.size, self.chunks, chunk), self._grid.columns
        views = ratings.view(np.uint16), ratings.view(np.float32)
        kernels.sort(self._whose, self._values, *chosen, counts, views)

    def mix(self, band: int, shared: Arrays) -> None:
        """Shuffles the ratings within each block of a band of users."""
        ratings, starts = (shared[f"{self._prefix}_{name}"] for name in ("ratings", "starts"))
        kernels.mix(ratings, starts, *share_of(self._grid.blocks, BANDS, band), self._seed)

    def _counts(self, shared: Arrays) -> npt.NDArray[np.uint64]:
        """A row for each chunk, a column for each block."""
        return shared[f"{self._prefix}_counts"].reshape(self.chunks, -1)
