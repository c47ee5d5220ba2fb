"""Tasks side by side: all are done, in order, and what one of them raises is raised here."""

import subprocess
import sys
import threading
from functools import partial
from itertools import chain

import pytest

from hogwild.threads import in_shares, share_of, side_by_side


@pytest.mark.parametrize("count", [0, 1, 2, 7])
@pytest.mark.parametrize("threads", [1, 2, 3, 20])
def test_all_are_done_and_no_thread_is_left(threads, count):
    before = threading.active_count()
    assert side_by_side((partial(int, number) for number in range(count)), threads) == [
        *range(count)
    ]
    assert threading.active_count() == before


@pytest.mark.parametrize("failing", [0, 1, 2])
@pytest.mark.parametrize("threads", [1, 2, 3])
def test_a_failure_is_ours_when_all_have_ended(threads, failing):
    def task(number):
        if number == failing:
            raise KeyboardInterrupt(number)

    before = threading.active_count()
    with pytest.raises(KeyboardInterrupt, match=str(failing)):
        side_by_side((partial(task, number) for number in range(3)), threads)
    assert threading.active_count() == before


def test_they_are_side_by_side():
    barrier = threading.Barrier(3)
    ranks = side_by_side([partial(barrier.wait, 10)] * 3, 3)
    assert sorted(ranks) == [0, 1, 2]


@pytest.mark.parametrize("workers", [1, 2, 3, 7, 64, 1000])
@pytest.mark.parametrize("units", [0, 1, 3, 7, 1000, 2**32])
def test_shares_cover_everything_and_differ_by_one_at_most(units, workers):
    shares = [share_of(units, workers, rank) for rank in range(workers)]
    assert [begin for begin, _ in shares] == [0, *(end for _, end in shares[:-1])]
    assert shares[-1][1] == units
    sizes = [end - begin for begin, end in shares]
    assert max(sizes) - min(sizes) <= 1


@pytest.mark.parametrize("threads", [1, 2, 3, 20])
def test_shares_come_back_in_order(threads):
    found = in_shares(lambda begin, end: [*range(begin, end)], 10, threads)
    assert len(found) == threads
    assert [*chain.from_iterable(found)] == [*range(10)]


def test_a_training_may_outlive_the_programs_main_thread():
    script = """
import threading, time
import hogwild
from hogwild.data.synthetic import rcv1

rows = rcv1(2000)[0]

def train():
    time.sleep(0.3)
    print(hogwild.train(rows, workers=2, epochs=2, tol=0).reason)

threading.Thread(target=train).start()
"""
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert done.stderr == ""
    assert done.stdout == "epochs\n"
