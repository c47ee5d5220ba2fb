"""The search for a rate: it finds the best of what it tries, and is the same for any threads."""

import math
from threading import Lock

import numpy as np
import pytest

from hogwild.learn.rate_search import best_rate

ALWAYS = {2.0**power: (power - 3) ** 2 for power in range(-12, 13)}  # best at 8


class Objective:
    """What rates come to, by a table; counts how often each was asked for."""

    def __init__(self, table):
        self.table = table
        self.asked = []
        self._lock = Lock()

    def __call__(self, rate):
        with self._lock:
            self.asked.append(rate)
        return self.table[rate]


def as_defined(table, guess, most):
    """Upwards until a clear rise or two in a row; downwards, too, if nothing above was better."""
    best = (table[guess], guess)
    for factor in (2.0, 0.5):
        rate, rises, before = guess, 0, best
        while rises < 2 and 1 / most < rate / guess < most:
            rate *= factor
            is_lower = (table[rate], rate) < (0.9999 * best[0], best[1])
            rises = 0 if is_lower else rises + 1
            if table[rate] > 1.01 * best[0]:
                rises = 2
            best = (table[rate], rate) if is_lower else best
        if best != before:
            break
    return best[1]


@pytest.mark.parametrize("threads", [1, 2, 3, 8])
@pytest.mark.parametrize("guess", [0.25, 1.0, 8.0, 32.0])
def test_finds_the_lowest_on_either_side(guess, threads):
    objective = Objective(ALWAYS)
    assert best_rate(objective, guess, 1000.0, threads) == 8.0
    assert len(objective.asked) == len(set(objective.asked))


@pytest.mark.parametrize("threads", [1, 2, 3, 8])
@pytest.mark.parametrize("seed", range(40))
def test_is_the_same_search_for_any_number_of_threads(seed, threads):
    random = np.random.default_rng(seed)
    values = np.abs(np.arange(-12, 13) - random.integers(-6, 7)) + 2 * random.random(25)
    values = 1 + values / 250  # some rises are clear, some are not
    values[random.random(25) < 0.1] = math.inf  # diverged
    table = {2.0**power: value for power, value in zip(range(-12, 13), values, strict=True)}
    most = float(random.choice([4.0, 30.0, 1000.0]))
    objective = Objective(table)
    assert best_rate(objective, 1.0, most, threads) == as_defined(table, 1.0, most)
    assert all(1 / most / 2 <= rate <= most * 2 for rate in objective.asked)


@pytest.mark.parametrize("gain, answer", [(3e-5, 2.0), (3e-4, 128.0)])
def test_the_guess_is_left_alone_where_it_hardly_matters(gain, answer):
    table = {2.0**power: 1 - gain * power for power in range(-12, 8)}
    assert best_rate(Objective(table), 2.0, 33.0, 2) == answer


def test_of_rates_that_all_diverge_the_smallest_of_the_first_tried_is_taken():
    assert best_rate(lambda rate: math.inf, 1.0, 1000.0, 2) == as_defined(
        dict.fromkeys(ALWAYS, math.inf), 1.0, 1000.0
    )


def test_one_thread_asks_only_for_what_decides():
    objective = Objective(ALWAYS)
    best_rate(objective, 4.0, 1000.0, 1)
    assert objective.asked == [4.0, 8.0, 16.0]


def test_an_error_in_a_thread_is_ours():
    def fails(rate):
        raise ValueError(f"no {rate}")

    with pytest.raises(ValueError, match="no "):
        best_rate(fails, 1.0, 8.0, 3)
