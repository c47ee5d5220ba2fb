"""How far ahead rows are fetched is measured once, and changes no result."""

import pytest

import hogwild
from hogwild.data.synthetic import rcv1
from hogwild.learn import fetching

LARGE = 64 << 20


@pytest.fixture(autouse=True)
def nothing_known(monkeypatch):
    monkeypatch.setattr(fetching, "_known", {})


def clock(best: int):
    """A stopwatch on which one distance is the fastest, and that counts how often it is asked."""

    def seconds_with(ahead: int) -> float:
        seconds_with.asked += 1
        return 1.0 + (ahead != best)

    seconds_with.asked = 0
    return seconds_with


@pytest.mark.parametrize("best", fetching.DISTANCES)
def test_the_fastest_is_chosen_and_kept(best):
    assert fetching.distance(LARGE, clock(best)) == best
    again = clock(best)
    assert fetching.distance(LARGE + 5, again) == best
    assert again.asked == 0
    assert fetching.distance(16 * LARGE, clock(0)) == 0  # another size is measured by itself


def test_small_data_is_not_fetched_and_not_measured():
    stopwatch = clock(320)
    assert fetching.distance(1000, stopwatch) == 0
    assert stopwatch.asked == 0


def test_the_distance_changes_no_result(monkeypatch):
    rows = rcv1(2_000, seed=1)[0]
    assert rows.nbytes > fetching.SMALLEST

    def weights(ahead: int) -> bytes:
        monkeypatch.setattr(fetching, "distance", lambda *_: ahead)
        return hogwild.train(rows, workers=1, epochs=2).model.weights.tobytes()

    assert len({weights(ahead) for ahead in (0, 80, 320, 5000)}) == 1
