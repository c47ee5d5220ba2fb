"""Sorting ratings into a grid of blocks, at memory speed, by any number of workers.

Ratings are sorted in chunks. The number of chunks does not depend on the number of workers, and so
the result does not either. A place holds an id's strip (upper 16 bits) and its row in the strip
(lower 16 bits).
"""

import numpy as np
from numba.types import Tuple, UniTuple, float32, uint16, uint32, uint64, uintp, void

from hogwild.kernels.compile import inline, kernel
from hogwild.kernels.order import shuffle_part
from hogwild.kernels.primitives import U, random_word, readonly, writable

NUMBERS = readonly(uint32)
# user and item of each rating, and the places of users and of items
WHOSE = UniTuple(NUMBERS, 4)
VALUES = readonly(float32)
COUNTS = writable(uint64)
# two views of the same 8 bytes per rating: its rows within their strips, and its value
RATINGS = Tuple((writable(uint16), writable(float32)))
LOW16 = U(0xFFFF)
HIGH = U(16)


@inline
def block_of(user_place, item_place, columns):
    """The number of a rating's block, in a grid with `columns` columns."""
    return (user_place >> HIGH) * columns + (item_place >> HIGH)


@kernel(void(WHOSE, uintp, uintp, uintp, COUNTS))
def count(whose, begin, end, columns, counts):
    """Adds to each block's count the ratings among begin, ..., end - 1 that lie in it."""
    users, items, user_places, item_places = whose
    for k in range(begin, end):
        user, item = U(user_places[U(users[k])]), U(item_places[U(items[k])])
        counts[block_of(user, item, columns)] += np.uint64(1)


@kernel(void(WHOSE, VALUES, uintp, uintp, uintp, COUNTS, RATINGS))
def sort(whose, values, begin, end, columns, starts, ratings):
    """Writes the ratings begin, ..., end - 1 to the places `starts`, which it advances."""
    pairs, out = ratings
    users, items, user_places, item_places = whose
    for k in range(begin, end):
        user, item = U(user_places[U(users[k])]), U(item_places[U(items[k])])
        block = block_of(user, item, columns)
        place = U(starts[block])
        starts[block] += np.uint64(1)
        pairs[U(4) * place] = user & LOW16
        pairs[U(4) * place + U(1)] = item & LOW16
        out[U(2) * place + U(1)] = values[k]


@kernel(void(writable(uint64), readonly(uint64), uintp, uintp, uint64))
def mix(ratings, starts, begin, end, seed):
    """Shuffles the ratings within each of the blocks begin, ..., end - 1.

    The order depends only on the seed and the block.
    """
    for block in range(begin, end):
        some = ratings[starts[block] : starts[block + U(1)]]
        shuffle_part(some, U(0), U(some.size), random_word(seed, block))
