"""Values that are remembered of objects go as these do."""

import sys
from typing import Any

import numpy as np

from hogwild.remembered import Remembered


def test_a_value_is_there_while_its_object_is() -> None:
    remembered = Remembered[str]()
    one, other = np.zeros(3), np.zeros(3)
    assert remembered.put(one, "one") == "one"
    assert (remembered.get(one), remembered.get(other), remembered.get(one, 7)) == (
        "one",
        None,
        None,
    )
    remembered.put(one, "with 7", 7)
    remembered.put(other, "other")
    assert (remembered.get(one), remembered.get(one, 7)) == ("one", "with 7")
    del one
    assert len(remembered) == 1
    assert remembered.get(other) == "other"


def test_no_code_in_python_runs_as_an_object_dies() -> None:
    """A signal's handler that raises there would raise into nothing."""
    remembered = Remembered[str]()
    things = [np.zeros(1)]
    remembered.put(things[0], "value")
    calls = []

    def heard(frame: Any, event: str, called: Any) -> None:
        calls.append((event, frame.f_code.co_name))

    sys.setprofile(heard)
    things.clear()
    sys.setprofile(None)
    assert not len(remembered)
    assert not [name for event, name in calls if event == "call"]
