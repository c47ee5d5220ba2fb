"""Steps are gradients, kernels do what the naive twin does, and padding stays 0."""

from dataclasses import astuple
from itertools import pairwise

import numpy as np
import pytest

from hogwild.kernels import factors as kernels
from hogwild.learn.blocks import BEYOND
from hogwild.learn.losses import FACTOR_LOSSES
from tests import reference_factors as reference
from tests.reference_factors import Plan, Side

RANKS = [1, 7, 16, 32, 33, 128, 150, 200]
NONE = np.empty(0, np.float32)
HEIGHTS = 5, 4  # of strips
STRIPS = 2, 3
OPTIONS = {
    "plain": {},
    "l2": {"l2": 0.3},
    "l1": {"l1": 0.2},
    "bias_l2": {"bias_l2": 0.4},
    "all": {"l2": 0.3, "l1": 0.2, "bias_l2": 0.4, "mean": 0.7, "bias_share": 0.5},
}


def aligned(size, kind=np.float32):
    """Zeros that begin with a cache line, as shared memory does."""
    raw = np.zeros(size * np.dtype(kind).itemsize + 64, np.uint8)
    return raw[-raw.ctypes.data % 64 :][: size * np.dtype(kind).itemsize].view(kind)


def of_loss(loss, random, size):
    """Values that a loss takes, and that no score comes near the kink of."""
    if loss == "logistic":
        return random.choice([-1.0, 1.0], size)
    return random.uniform(2.0, 5.0, size)


class World:
    """Rows, and ratings in a grid of blocks: as the kernels have them, and as the twin does."""

    def __init__(self, rank, loss="squared", ratings=40, seed=0):
        random = np.random.default_rng(seed)
        self.rank, self.loss, self.width = rank, loss, kernels.width_of(rank)
        users, items = (height * strips for height, strips in zip(HEIGHTS, STRIPS, strict=True))
        self.u, self.i = random.integers(0, users, ratings), random.integers(0, items, ratings)
        self.values = of_loss(loss, random, ratings).astype(np.float32)
        block = self.u // HEIGHTS[0] * STRIPS[1] + self.i // HEIGHTS[1]
        order = np.argsort(block, kind="stable")
        self.u, self.i, self.values = self.u[order], self.i[order], self.values[order]
        sizes = np.bincount(block, minlength=STRIPS[0] * STRIPS[1])
        self.starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.uint64)
        scale = rank**-0.25
        self.sides = [self._side(count, scale, random) for count in (users, items)]

    def _side(self, count, scale, random):
        # Scores are of the values' size or smaller, and positive, as the divergence has them
        factors = random.uniform(0.1, 0.9, (count, self.rank)) * scale
        biases, rates = random.uniform(0.0, 0.3, count), random.uniform(0.3, 1.0, count)
        return Side(*(a.astype(np.float32).astype(float) for a in (factors, biases, rates)))

    def ratings(self):
        """As the kernels take them, but for the blocks to visit."""
        memory = aligned(len(self.u) + BEYOND, np.uint64)
        pairs, values = memory.view(np.uint16), memory.view(np.float32)
        pairs[0 : 4 * len(self.u) : 4] = self.u % HEIGHTS[0]
        pairs[1 : 4 * len(self.u) : 4] = self.i % HEIGHTS[1]
        values[1 : 2 * len(self.u) : 2] = self.values
        return pairs, values, self.starts

    def arrays(self):
        found = []
        for side in self.sides:
            count = len(side.biases)
            rows, beside = aligned(count * self.width), aligned(2 * count)
            rows.reshape(count, -1)[:, : self.rank] = side.factors
            beside[0::2], beside[1::2] = side.biases, side.rates
            found += [rows, beside]
        return tuple(found)

    def of(self, block):
        part = slice(*map(int, self.starts[block : block + 2]))
        return list(zip(self.u[part], self.i[part], self.values[part].astype(float), strict=True))

    def learn(self, plan, blocks, shares=None, bounded=None):
        """What the kernel makes of the blocks: the sum of losses, and the sides."""
        if bounded is None:
            bounded = plan.l1 > 0 or plan.least > -np.inf
        learner = kernels.learner(self.width, self.loss, shares is None, bounded)
        arrays = self.arrays()
        blocks = np.array(blocks, np.uint32)
        given = (NONE, NONE) if shares is None else tuple(s.astype(np.float32) for s in shares)
        numbers = tuple(map(np.float32, astuple(plan)))
        grid = STRIPS[1], *HEIGHTS
        loss, _ = learner((*self.ratings(), blocks), grid, arrays, given, numbers)
        return loss, [self._told(*arrays[:2]), self._told(*arrays[2:])]

    def _told(self, rows, beside):
        rows = rows.reshape(-1, self.width)
        assert not rows[:, self.rank :].any()  # padding stays 0
        return Side(rows[:, : self.rank], beside[0::2], beside[1::2])


def with_shares(world, random):
    return [random.uniform(0.1, 1, len(side.biases)).astype(np.float32) for side in world.sides]


def close(found, expected, tolerance=2e-5):
    for mine, theirs in zip(found, expected, strict=True):
        for name in ("factors", "biases", "rates"):
            np.testing.assert_allclose(
                getattr(mine, name), getattr(theirs, name), tolerance, tolerance, err_msg=name
            )


# A step on one rating is a step down its gradient


def gradient(world, plan, weights):
    """By differences, of the twin's objective of the one rating there is."""
    u, i = world.u[0], world.i[0]
    h, found = 1e-6, []

    def value():
        return reference.objective(
            *world.sides, (world.u, world.i, world.values.astype(float)), plan, world.loss, weights
        )

    for side, row in zip(world.sides, (u, i), strict=True):
        for array in (side.factors[row : row + 1].reshape(-1), side.biases[row : row + 1]):
            slopes = np.empty(len(array))
            for place in range(len(array)):
                kept = array[place]
                array[place] = kept + h
                above = value()
                array[place] = kept - h
                slopes[place] = (above - value()) / (2 * h)
                array[place] = kept
            found.append(slopes)
    return found


@pytest.mark.parametrize("weighted", [True, False], ids=["weighted", "once a row"])
@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
@pytest.mark.parametrize("loss", FACTOR_LOSSES)
def test_a_step_on_one_rating_goes_down_its_gradient(loss, options, weighted):
    """It is linear in the rate (nothing is shrunk to 0 here), so the rate may be large."""
    rate, rank = 0.0625, 7
    world = World(rank, loss, ratings=1, seed=3)
    for side in world.sides:
        side.rates[:] = 1
    plan = Plan(rate=rate, **options)
    random = np.random.default_rng(1)
    shares = None if weighted else with_shares(world, random)
    # A rating bears its share of its rows' penalty, and no other row's
    weights = [np.zeros(len(side.biases)) for side in world.sides]
    for number, row in enumerate((world.u[0], world.i[0])):
        weights[number][row] = 1 if weighted else shares[number][row]
    expected = gradient(world, plan, weights)
    before = [side.copy() for side in world.sides]
    _, after = world.learn(plan, range(6), shares)
    found = []
    for old, new, row in zip(before, after, (world.u[0], world.i[0]), strict=True):
        found.append((old.factors[row] - new.factors[row]) / rate)
        found.append((old.biases[row : row + 1] - new.biases[row : row + 1]) / rate)
    for number, (mine, theirs) in enumerate(zip(found, expected, strict=True)):
        share = plan.bias_share if number % 2 else 1
        np.testing.assert_allclose(mine, share * theirs, 1e-4, 2e-5)
    for old, new, row in zip(before, after, (world.u[0], world.i[0]), strict=True):
        others = np.arange(len(old.biases)) != row
        np.testing.assert_array_equal(new.factors[others], old.factors[others].astype(np.float32))
        np.testing.assert_array_equal(new.biases[others], old.biases[others].astype(np.float32))


# The kernel is the twin


@pytest.mark.parametrize("weighted", [True, False], ids=["weighted", "once a row"])
@pytest.mark.parametrize("least", [-np.inf, 0.0], ids=["free", "nonnegative"])
@pytest.mark.parametrize("loss", FACTOR_LOSSES)
def test_the_kernel_is_the_twin_for_every_loss(loss, least, weighted):
    world = World(7, loss, ratings=90)
    l1 = 0.5 if least == 0 else 0.0
    plan = Plan(0.2, 0.1, 0.7, 0.2, 0.3, growth=0.4, l1=l1, least=least)
    shares = None if weighted else with_shares(world, np.random.default_rng(2))
    check_against_twin(world, plan, range(6), shares)


@pytest.mark.parametrize("rank", RANKS)
@pytest.mark.parametrize("bounded", [False, True], ids=["free", "bounded"])
def test_the_kernel_is_the_twin_for_every_rank(rank, bounded):
    plan = Plan(0.2, 0.05, 0.7, 0.2, 0.3, growth=0.1, l1=0.3 if bounded else 0.0)
    check_against_twin(World(rank, ratings=60), plan, [4, 1, 0, 5, 2, 3])


def check_against_twin(world, plan, blocks, shares=None, **options):
    found, sides = world.learn(plan, blocks, shares, **options)
    expected = [side.copy() for side in world.sides]
    total = sum(
        reference.learn(*expected, world.of(block), plan, world.loss, shares) for block in blocks
    )
    close(sides, expected)
    assert found == pytest.approx(total, rel=2e-5)
    moved = max(
        np.abs(new.factors - old.factors).max() for new, old in zip(sides, world.sides, strict=True)
    )
    assert moved > 1e-2  # else there would be nothing to compare


@pytest.mark.parametrize("ratings", [0, 1, 2, 3, 4])
def test_blocks_of_few_ratings(ratings):
    """Products of factors are begun two ratings ahead."""
    world = World(7, ratings=ratings)
    plan = Plan(rate=0.1, l2=0.2)
    found, sides = world.learn(plan, range(6))
    expected = [side.copy() for side in world.sides]
    total = sum(reference.learn(*expected, world.of(block), plan, "squared") for block in range(6))
    close(sides, expected)
    assert found == pytest.approx(total)


def test_one_pair_again_and_again():
    world = World(7, ratings=30)
    world.u[:] = world.i[:] = 0
    world.starts[1:] = 30
    check_against_twin(world, Plan(rate=0.05, l2=0.1, growth=0.05), [0])


def test_only_the_blocks_that_are_named_are_visited_and_oftener_if_oftener_named():
    world = World(7, ratings=90)
    plan = Plan(rate=0.05, l2=0.1)
    check_against_twin(world, plan, [2])
    check_against_twin(world, plan, [5, 2, 5])
    loss, sides = world.learn(plan, [])
    assert loss == 0
    close(sides, world.sides, 0)


def test_bounds_that_bind_nothing_change_nothing():
    world = World(33, ratings=60)
    plan = Plan(rate=0.05, l2=0.1, growth=0.1)
    free, bounded = (world.learn(plan, range(6), bounded=which)[1] for which in (False, True))
    close(free, bounded, 1e-6)


@pytest.mark.parametrize("rank", [7, 150])
def test_no_factor_goes_below_the_least(rank):
    world = World(rank, ratings=90)
    world.values[:] = -9  # only factors below 0 would do
    _, sides = world.learn(Plan(rate=0.3, least=0.0), range(6))
    for side, row in zip(sides, (world.u, world.i), strict=True):
        assert (side.factors >= 0).all()
        assert (side.factors[row] == 0).any()


def test_a_large_l1_makes_factors_exactly_0():
    world = World(7, ratings=90)
    _, sides = world.learn(Plan(rate=0.3, l1=50.0), range(6))
    assert all((sides[n].factors[row] == 0).all() for n, row in enumerate((world.u, world.i)))


def test_without_a_rate_for_them_biases_stay():
    world = World(7, ratings=90)
    _, sides = world.learn(Plan(rate=0.1, bias_share=0.0, bias_l2=3.0), range(6))
    for mine, old in zip(sides, world.sides, strict=True):
        np.testing.assert_array_equal(mine.biases, old.biases.astype(np.float32))


def test_own_rates_are_those_of_adagrad():
    """r = 1 / sqrt(1 + 2 growth * sum of the squared slopes), for small steps."""
    world = World(7, "absolute", ratings=90)  # whose slopes are -1 or 1
    for side in world.sides:
        side.rates[:] = 1
    _, sides = world.learn(Plan(growth=1e-3), range(6))
    for side, rows in zip(sides, (world.u, world.i), strict=True):
        counts = np.bincount(rows, minlength=len(side.rates))
        np.testing.assert_allclose(side.rates, (1 + 2e-3 * counts) ** -0.5, 1e-4)


@pytest.mark.parametrize("value", [1e30, -1e30])
def test_a_rate_of_a_row_never_falls_below_half_in_a_step(value):
    world = World(7, ratings=1)
    world.values[:] = value
    for side in world.sides:
        side.rates[:] = 1
    _, sides = world.learn(Plan(growth=1.0), range(6))
    for side, row in zip(sides, (world.u[0], world.i[0]), strict=True):
        assert side.rates[row] == 0.5


# The evaluator, the first factors, the norms


@pytest.mark.parametrize("rank", RANKS)
def test_the_evaluator_is_the_twin(rank):
    check_evaluator(World(rank), 0.3)


@pytest.mark.parametrize("loss", FACTOR_LOSSES)
def test_the_evaluator_is_the_twin_for_every_loss(loss):
    check_evaluator(World(16, loss, ratings=100), 0.3)


def check_evaluator(world, mean):
    evaluate = kernels.evaluator(world.width, world.loss)
    arrays, grid = world.arrays(), (STRIPS[1], *HEIGHTS)
    before = [array.copy() for array in arrays]
    blocks = [4, 0, 3]
    ratings = (*world.ratings(), np.array(blocks, np.uint32))
    plan = (np.float32(mean), *7 * [np.float32(0)])
    found = evaluate(ratings, grid, arrays, (NONE, NONE), plan)
    visited = [rating for block in blocks for rating in world.of(block)]
    u, i, values = map(np.array, zip(*visited, strict=True))
    scores = reference.scores(*world.sides, np.float32(mean), u, i)
    losses = reference.LOSSES[world.loss][0](scores, values)
    errors = scores - values
    if world.loss == "logistic":  # of a probability
        errors = 1 / (1 + np.exp(-scores)) - (values == 1)
    np.testing.assert_allclose(found, [losses.sum(), errors @ errors], 1e-5)
    for array, old in zip(arrays, before, strict=True):
        np.testing.assert_array_equal(array, old)


def drawn(rank, parts, seed=5, count=500, limits=(-1.0, 3.0)):
    rows = np.random.default_rng(0).permutation(count).astype(np.uint32)
    factors = aligned(count * kernels.width_of(rank))
    ends = np.linspace(0, count, parts + 1).astype(int)
    for begin, end in pairwise(ends):
        shape, bounds = (kernels.width_of(rank), rank), tuple(map(np.float32, limits))
        kernels.initialise(factors, shape, bounds, np.uint64(seed), rows, begin, end)
    table = factors.reshape(count, -1)
    assert not table[:, rank:].any()
    return table[rows, :rank]


@pytest.mark.parametrize("rank", [1, 7, 33, 150])
def test_first_factors_are_uniform_and_do_not_depend_on_who_draws(rank):
    once = drawn(rank, 1)
    np.testing.assert_array_equal(once, drawn(rank, 7))
    assert ((once >= -1) & (once <= 3)).all()
    spread = 4 / 12**0.5 / once.size**0.5  # of the mean
    assert once.mean() == pytest.approx(1, abs=5 * spread)
    assert once.std() == pytest.approx(4 / 12**0.5, rel=0.1)
    assert len(np.unique(once)) > 0.99 * once.size
    assert not np.array_equal(once, drawn(rank, 1, seed=6))


def test_first_factors_of_an_id_do_not_depend_on_how_many_there_are():
    np.testing.assert_array_equal(drawn(7, 1, count=500)[:100], drawn(7, 1, count=100))


@pytest.mark.parametrize("width", [16, 48, 192])
def test_norms_and_sums_are_weighted_by_row(width):
    random = np.random.default_rng(0)
    rows = random.normal(size=(90, width)).astype(np.float32)
    weights = random.integers(0, 50, 90).astype(np.float32)
    norm = kernels.weighted_norms(rows.ravel(), width, weights)[0]
    assert norm == pytest.approx(weights @ (rows.astype(float) ** 2).sum(axis=1), rel=1e-5)
    total = kernels.weighted_norms(rows.ravel(), width, weights)[1]
    assert total == pytest.approx(weights @ np.abs(rows.astype(float)).sum(axis=1), rel=1e-5)


@pytest.mark.parametrize("rank", [*range(1, 18), *RANKS, 129, 4096])
def test_a_row_is_whole_cache_lines(rank):
    width = kernels.width_of(rank)
    assert width >= rank
    assert width % kernels.LINE == 0
    assert width - rank < (kernels.LINE if rank <= kernels.MOST_AT_ONCE else kernels.PART)


def test_twins_of_a_rank_with_more_padding_are_the_same():
    """Rank 7 with zeros as the last nine of 16 factors, and rank 16."""
    narrow, wide = World(7, ratings=60), World(16, ratings=60)
    for mine, theirs in zip(wide.sides, narrow.sides, strict=True):
        mine.factors[:] = 0
        mine.factors[:, :7] = theirs.factors
        mine.biases, mine.rates = theirs.biases, theirs.rates
    wide.u, wide.i, wide.values, wide.starts = narrow.u, narrow.i, narrow.values, narrow.starts
    plan = Plan(rate=0.1, l2=0.1, growth=0.1)
    (_, mine), (_, theirs) = (world.learn(plan, range(6)) for world in (wide, narrow))
    for a, b in zip(mine, theirs, strict=True):
        np.testing.assert_array_equal(a.factors[:, :7], b.factors)
