"""Tasks side by side: all are done, in order, and what one of them raises is raised here."""

import subprocess
import sys
import threading
import time
from functools import partial
from itertools import chain

import pytest

from hogwild.threads import IDLE, Helper, in_shares, share_of, side_by_side


@pytest.mark.parametrize("count", [0, 1, 2, 7])
@pytest.mark.parametrize("threads", [1, 2, 3, 20])
def test_all_are_done(threads, count):
    assert side_by_side((partial(int, number) for number in range(count)), threads) == [
        *range(count)
    ]


@pytest.mark.parametrize("failing", [0, 1, 2])
@pytest.mark.parametrize("threads", [1, 2, 3])
def test_a_failure_is_ours_when_all_have_ended(threads, failing):
    def task(number):
        if number == failing:
            raise KeyboardInterrupt(number)

    with pytest.raises(KeyboardInterrupt, match=str(failing)):
        side_by_side((partial(task, number) for number in range(3)), threads)
    assert [*side_by_side((partial(int, number) for number in range(3)), threads)] == [0, 1, 2]


def test_where_there_are_no_more_threads_those_there_are_do_all(monkeypatch):
    def refused(helper):
        raise RuntimeError("can't start new thread")

    Helper.end_all()
    monkeypatch.setattr(Helper, "start", refused)
    assert side_by_side([partial(int, number) for number in range(5)], 3) == [0, 1, 2, 3, 4]


def test_idle_threads_end_after_a_while_and_work_on_before():
    begun, barrier = set(), threading.Barrier(3)
    for _ in range(50):
        side_by_side([lambda: begun.add(threading.get_ident()) or barrier.wait(10)] * 3, 3)
    assert len(begun) == 3
    for _ in range(200):
        if not any(isinstance(thread, Helper) for thread in threading.enumerate()):
            return
        time.sleep(IDLE / 10)
    raise AssertionError("threads are left")


def test_several_threads_may_have_helpers_at_the_same_time():
    """One that is done with a task may be taken for another before the first is waited for."""

    def rest(number):
        time.sleep(1e-4)
        return number

    def many(number):
        for _ in range(200):
            assert side_by_side([partial(rest, number)] * 2, 2) == [number, number]
        return True

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        assert all(side_by_side([partial(many, number) for number in range(8)], 8))
    finally:
        sys.setswitchinterval(interval)


def test_forked_processes_have_threads_of_their_own():
    """Of several that fork, while others are at work; Python 3.12 warns where threads are left."""
    script = """
import os, threading, warnings
warnings.simplefilter("error")
from hogwild.threads import side_by_side

def sums():
    return side_by_side([lambda: sum(range(1000))] * 4, 3)

def fork(times):
    for _ in range(times):
        sums()
        child = os.fork()
        if not child:
            os._exit(sums() != [499500] * 4)
        assert os.waitpid(child, 0)[1] == 0

fork(20)
print("done")
"""
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=60)
    assert done.stderr == ""
    assert done.stdout == "done\n"


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
