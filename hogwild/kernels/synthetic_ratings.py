"""Drawing synthetic ratings. A user's ratings are a function of the user's number: no order.

`fast` is always off: the order of every sum is fixed, so the same source gives the same bytes.
"""

import numpy as np
from numba.types import Tuple, UniTuple, boolean, float32, float64, uint32, uint64, void

from hogwild.kernels.compile import inline, kernel
from hogwild.kernels.primitives import U, random_below, random_word, readonly, writable
from hogwild.kernels.synthetic import LOW6, ONE, draw_column, normal

FLOATS = readonly(float32)
# user biases, item biases, user factors, item factors (a user's or an item's side by side)
PLANTED = UniTuple(FLOATS, 4)
CODES = readonly(uint32)
# users, items and values
RATINGS = Tuple((writable(uint32), writable(uint32), writable(float32)))


@kernel(void(uint64, writable(float64)), fast=False)
def fill_normals(key, out):
    """Standard normal numbers; number i depends on the key and on i."""
    for i in range(U(0), U(out.size)):
        out[i] = normal(random_word(key, np.uint64(i)))


@inline
def planted_score(mean, user, item, rank, planted):
    """mean + b_u + b_i + <p_u, q_i>"""
    user_biases, item_biases, user_factors, item_factors = planted
    score = mean + np.float64(user_biases[user]) + np.float64(item_biases[item])
    for k in range(U(0), rank):
        p = np.float64(user_factors[user * rank + k])
        score += p * np.float64(item_factors[item * rank + k])
    return score


@kernel(void(float64, PLANTED, CODES, CODES, writable(float32)), fast=False)
def planted_scores(mean, planted, users, items, scores):
    """The planted score of each pair."""
    rank = U(planted[2].size) // U(planted[0].size)
    for i in range(U(0), U(scores.size)):
        scores[i] = planted_score(mean, U(users[i]), U(items[i]), rank, planted)


@inline
def draw_items(key, count, table, taken, bits):
    """Draws items until `count` different ones are in taken[:count]; the bits are left as zeros."""
    found = U(0)
    counter = np.uint64(0)
    while found < count:
        item = np.uint64(draw_column(random_word(key, counter), table))
        counter += ONE
        word, bit = U(item >> np.uint64(6)), ONE << (item & LOW6)
        taken[found] = np.uint32(item)  # the next draw overwrites it if it is not new
        found += U(bits[word] & bit == np.uint64(0))
        bits[word] |= bit
    for k in range(U(0), count):
        bits[U(taken[k]) >> U(6)] = np.uint64(0)


@kernel(void(uint64, uint64, writable(uint64)), fast=False)
def count_by_bin(key, ratings, counts):
    """How many of the ratings go to each bin."""
    for k in range(np.uint64(0), ratings):
        counts[U(random_below(random_word(key, k), counts.size))] += ONE


@kernel(
    void(
        UniTuple(uint64, 3),
        Tuple((float64, float64, boolean)),
        Tuple((readonly(uint64), readonly(uint64))),
        PLANTED,
        Tuple((writable(uint32), writable(uint64), writable(uint64))),
        RATINGS,
    ),
    fast=False,
)
def draw_ratings(keys, numbers, tables, planted, scratch, ratings):
    """Draws every user's items and values, and puts each rating into the next place of its bin.

    `next_in_bin` begins with the bins' first places.
    """
    item_key, noise_key, bin_key = keys
    mean, noise, half_stars = numbers
    indptr, table = tables
    taken, bits, next_in_bin = scratch
    users, items, values = ratings
    rank = U(planted[2].size) // U(planted[0].size)
    for user in range(U(0), U(indptr.size) - U(1)):
        begin, count = indptr[user], U(indptr[user + U(1)] - indptr[user])
        draw_items(random_word(item_key, np.uint64(user)), count, table, taken, bits)
        own_noise = random_word(noise_key, np.uint64(user))
        for k in range(U(0), count):
            item = U(taken[k])
            score = planted_score(mean, user, item, rank, planted)
            score += noise * normal(random_word(own_noise, np.uint64(item)))
            word = random_word(bin_key, begin + np.uint64(k))
            where = U(random_below(word, next_in_bin.size))
            at = U(next_in_bin[where])
            next_in_bin[where] += ONE
            users[at] = np.uint32(user)
            items[at] = np.uint32(item)
            if half_stars:  # the nearest of 0.5, 1, ..., 5
                score = min(max(np.floor(2.0 * score + 0.5) * 0.5, 0.5), 5.0)
            values[at] = np.float32(score)


@kernel(void(uint64, readonly(uint64), RATINGS), fast=False)
def shuffle_bins(key, ends, ratings):
    """Shuffles the ratings of each bin (Fisher and Yates 1938).

    With the random choice of bins before it, every order of all ratings is equally likely (Rao
    1961), and nothing but a bin need be in the cache.
    """
    users, items, values = ratings
    begin = U(0)
    for b in range(U(0), U(ends.size)):
        for k in range(begin, U(ends[b])):
            other = begin + U(random_below(random_word(key, np.uint64(k)), k - begin + U(1)))
            users[k], users[other] = users[other], users[k]
            items[k], items[other] = items[other], items[k]
            values[k], values[other] = values[other], values[k]
        begin = U(ends[b])
