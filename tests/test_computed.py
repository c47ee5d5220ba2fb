"""Attributes that are computed once, without a lock that a fork could leave locked."""

import threading

from hogwild.computed import cached_property

entered, leave = threading.Event(), threading.Event()


class Thing:
    computed = 0

    @cached_property
    def value(self) -> int:
        """What it is."""
        self.computed += 1
        if threading.current_thread() is not threading.main_thread():
            entered.set()
            leave.wait(30)
        return 7


def test_it_is_computed_once_for_each_thing() -> None:
    things = Thing(), Thing()
    assert [thing.value for thing in (*things, *things)] == [7] * 4
    assert [thing.computed for thing in things] == [1, 1]
    assert Thing.value.__doc__ == "What it is."


def test_other_threads_do_not_wait() -> None:
    first, second = Thing(), Thing()
    thread = threading.Thread(target=lambda: first.value)
    thread.start()
    try:
        assert entered.wait(30)
        assert second.value == 7
    finally:
        leave.set()
        thread.join()
