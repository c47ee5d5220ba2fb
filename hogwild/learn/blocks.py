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
from hogwild.seeds import seed_of

BANDS = 8
CACHE = 640 << 10  # bytes of rows in a block: a bit more than half of a core's cache
MOST_ROWS = 1 << 16  # in a strip: they are counted in 16 bits
FEWEST_RATINGS = 256  # in a block, on average: with fewer, going from one to the next takes time
CHUNKS = 64  # that ratings are sorted by, at most
CHUNK = 1 << 16  # ratings in one, at least
BEYOND = 256  # ratings: the kernels look ahead, beyond the last


class Side:
    """The rows of the users, or of the items: where each lies, in strips of equal height."""

    def __init__(self, count: int, height: int, seed: int) -> None:
        self.count = count
        self.height = height
        self.strips = BANDS * -(-count // (BANDS * height))
        self.rows = np.empty(count, np.uint32)
        permute(self.rows, 0, np.uint64(seed))
        strip, within = np.divmod(self.rows, np.uint32(height))
        self.places = (strip << np.uint32(16)) | within

    @property
    def size(self) -> int:
        """Rows that all strips have room for."""
        return self.strips * self.height


class Grid:
    """The grid that the ratings of so many users and items are sorted into."""

    def __init__(self, shape: tuple[int, int], ratings: int, row_bytes: int, seed: int) -> None:
        heights = _heights(shape, ratings, row_bytes)
        self.users, self.items = (
            Side(count, height, seed_of(seed, number))
            for number, (count, height) in enumerate(zip(shape, heights, strict=True))
        )
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
    heights = [min(wanted, _even(count, 1)) for count in shape]
    # What one side leaves of the cache, the other may have
    for side in (0, 1):
        free = CACHE // row_bytes - heights[1 - side]
        heights[side] = min(MOST_ROWS, _even(shape[side], 1), max(heights[side], free))
    while _blocks(shape, heights) * FEWEST_RATINGS > max(ratings, BANDS**2 * FEWEST_RATINGS):
        side = int(shape[1] / heights[1] > shape[0] / heights[0])
        if heights[side] == MOST_ROWS:
            break
        heights[side] = min(MOST_ROWS, 2 * heights[side])
    users, items = (
        _even(count, -(-count // (BANDS * height)))
        for count, height in zip(shape, heights, strict=True)
    )
    return users, items


def _even(count: int, strips_a_band: int) -> int:
    """The height of strips, where each band has so many."""
    return max(1, -(-count // (BANDS * strips_a_band)))


def _blocks(shape: tuple[int, int], heights: list[int]) -> int:
    users, items = (
        BANDS * -(-count // (BANDS * height)) for count, height in zip(shape, heights, strict=True)
    )
    return users * items


class Sorting:
    """Ratings on their way into a grid: `count`, `begin`, `sort`, `mix`.

    The parts of each (chunks, or bands to mix) may be done by anyone; `begin` is for one.
    """

    def __init__(self, grid: Grid, users: Any, items: Any, values: Any, seed: int) -> None:
        self._grid = grid
        self._whose = users, items, grid.users.places, grid.items.places
        self._values = values
        self._seed = np.uint64(seed)
        self.size = len(users)
        self.chunks = max(1, min(CHUNKS, self.size // CHUNK))

    def shared(self, prefix: str) -> dict[str, tuple[int, Any]]:
        """The arrays that sorting writes: the ratings, where blocks begin, chunks' counts."""
        blocks = self._grid.blocks
        return {
            prefix + "ratings": (self.size + BEYOND, np.uint64),
            prefix + "starts": (blocks + 1, np.uint64),
            prefix + "counts": (blocks * self.chunks, np.uint64),
        }

    def count(self, chunk: int, counts: npt.NDArray[np.uint64]) -> None:
        """Counts a chunk's ratings in each block."""
        kernels.count(self._whose, *self._range(chunk), self._grid.columns, self._of(chunk, counts))

    def begin(self, starts: npt.NDArray[np.uint64], counts: npt.NDArray[np.uint64]) -> None:
        """Makes of the counts where each block begins, and each chunk's ratings in it."""
        table = counts.reshape(self.chunks, -1)
        np.cumsum(table.sum(axis=0), out=starts[1:])
        before = np.cumsum(table, axis=0) - table
        table[:] = before + starts[:-1]

    def sort(
        self, chunk: int, ratings: npt.NDArray[np.uint64], counts: npt.NDArray[np.uint64]
    ) -> None:
        """Writes a chunk's ratings into their blocks."""
        kernels.sort(
            self._whose,
            self._values,
            *self._range(chunk),
            self._grid.columns,
            self._of(chunk, counts),
            (ratings.view(np.uint16), ratings.view(np.float32)),
        )

    def mix(self, band: int, ratings: npt.NDArray[np.uint64], starts: Any) -> None:
        """Brings the blocks of a band of users into a random order, each within itself."""
        each = self._grid.blocks // BANDS
        kernels.mix(ratings, starts, band * each, (band + 1) * each, self._seed)

    def _range(self, chunk: int) -> tuple[int, int]:
        return self.size * chunk // self.chunks, self.size * (chunk + 1) // self.chunks

    def _of(self, chunk: int, counts: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
        blocks = self._grid.blocks
        return counts[chunk * blocks : (chunk + 1) * blocks]
