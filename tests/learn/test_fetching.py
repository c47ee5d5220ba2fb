"""How far ahead rows are fetched is measured once, kept, and changes no result."""

import json

import pytest

import hogwild
from hogwild.data.synthetic import rcv1
from hogwild.learn import fetching
from hogwild.machine import cpu_name

LARGE = 64 << 20


@pytest.fixture(autouse=True)
def empty_folder(tmp_path, monkeypatch):
    monkeypatch.setattr(fetching, "cache_folder", lambda: tmp_path)
    monkeypatch.setattr(fetching, "_known", {})
    return tmp_path


def clock(best: int):
    """A stopwatch on which one distance is the fastest, and that counts how often it is asked."""

    def seconds_with(ahead: int) -> float:
        seconds_with.asked += 1
        return 1.0 + (ahead != best)

    seconds_with.asked = 0
    return seconds_with


@pytest.mark.parametrize("best", fetching.DISTANCES)
def test_the_fastest_is_chosen_kept_and_found_again(best, monkeypatch, empty_folder):
    assert fetching.distance(LARGE, clock(best)) == best
    assert fetching.chosen() == {cpu_name(): {"64 MiB": best}}
    monkeypatch.setattr(fetching, "_known", {})  # as in another process
    again = clock(best)
    assert fetching.distance(LARGE + 5, again) == best
    assert again.asked == 0
    assert fetching.distance(16 * LARGE, clock(0)) == 0  # another size is measured by itself
    assert fetching.chosen()[cpu_name()] == {"64 MiB": best, "1024 MiB": 0}
    assert [path.name for path in empty_folder.iterdir()] == [fetching.FILE]


def test_small_data_is_not_fetched_and_not_measured():
    stopwatch = clock(320)
    assert fetching.distance(1000, stopwatch) == 0
    assert stopwatch.asked == 0


@pytest.mark.parametrize("text", ["", "{", "[]", '{"x": 3}', '{"x": {"64 MiB": "far"}}'])
def test_a_damaged_file_counts_as_none_and_is_written_again(text, empty_folder):
    (empty_folder / fetching.FILE).write_text(text)
    assert fetching.distance(LARGE, clock(160)) == 160
    assert json.loads((empty_folder / fetching.FILE).read_text())[cpu_name()] == {"64 MiB": 160}


def test_the_distance_changes_no_result(monkeypatch):
    rows = rcv1(2_000, seed=1)[0]
    assert rows.nbytes > fetching.SMALLEST

    def weights(ahead: int) -> bytes:
        monkeypatch.setattr(fetching, "distance", lambda *_: ahead)
        return hogwild.train(rows, workers=1, epochs=2).model.weights.tobytes()

    assert len({weights(ahead) for ahead in (0, 80, 320, 5000)}) == 1
