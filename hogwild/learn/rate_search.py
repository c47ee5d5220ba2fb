"""The search for a first rate: doubles, else halves, a guess for as long as that helps."""

import math
from collections.abc import Callable

from hogwild.threads import lock_and_condition, side_by_side

Tried = dict[float, float]  # what rates came to
CLEAR = 0.01  # of the objective: what rises by more than this will not fall again
SLIGHT = 1e-4  # of the objective: what falls by less than this may be chance


def best_rate(
    objective: Callable[[float], float], guess: float, most: float, threads: int
) -> float:
    """Doubles, else halves, the guess for as long as that lowers the objective (after Bottou).

    Where the rate hardly matters, the guess is kept. The search continues after a small rise: on a
    sample, the objective is not smooth. `most` is the largest factor between the guess and the
    answer. With several threads, the first one tries the next rate, and the others try the rates
    that come next if it is bad. The answer is the same for any number of threads.
    """
    tried: Tried = {}
    coming: list[float] = []
    running: list[float] = []
    lock, changed = lock_and_condition()

    def search() -> None:
        while True:
            with lock:
                # All trials take as long: who is ready first waits, and then knows more
                changed.wait_for(lambda: coming or not running)
                if not coming:
                    coming.extend(_next(tried, guess, most, threads))
                if not coming:
                    return
                rate = coming.pop(0)
                running.append(rate)
            try:
                tried[rate] = objective(rate)
            finally:
                with lock:
                    running.remove(rate)
                    changed.notify_all()

    side_by_side(threads * [search], threads)
    return _walk(tried, guess, most)[0]


def _next(tried: Tried, guess: float, most: float, count: int) -> list[float]:
    """The rate to try next, and the rates that come next if it is bad."""
    coming: list[float] = []
    for no_good in count * [math.inf, math.nan]:  # a clear rise, else some rise
        _, missing = _walk(dict.fromkeys(coming, no_good) | tried, guess, most)
        if missing is not None and len(coming) < count:
            coming.append(missing)
    return coming


def _walk(tried: Tried, guess: float, most: float) -> tuple[float, float | None]:
    """The best rate so far, and the next one to try."""
    if guess not in tried:
        return guess, guess
    start = best = (tried[guess], guess)
    for factor in (2.0, 0.5):
        rate, rises, clear = guess, 0, False
        while rises < 2 and not clear and 1 / most < rate / guess < most:
            rate *= factor
            if rate not in tried:
                return best[1], rate
            found = (tried[rate], rate)
            wanted = best[0] - SLIGHT * abs(best[0]) if best[0] < math.inf else math.inf
            lower = found < (wanted, best[1])  # of those that diverge, the smallest
            rises = 0 if lower else rises + 1
            clear = found[0] > best[0] + CLEAR * abs(best[0])
            best = found if lower else best
        if best != start:
            break
    return best[1], None
