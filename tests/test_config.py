"""Options: all problems at once, each with its value, the allowed ones, and the name as typed."""

import dataclasses
from typing import Any

import numpy as np
import pytest

import hogwild
from hogwild.config import Config, option


def test_the_defaults_are_in_order() -> None:
    assert Config.of({}).problems() == []


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"task": "mf2"}, "task: 'mf2' is not one of svm, logistic"),
        ({"loss": "hing"}, "loss: 'hing' is not one of hinge, squared_hinge"),
        ({"loss": "huber"}, "loss: 'huber' is not one of hinge, squared_hinge, logistic, squared,"),
        ({"loss": "kl"}, " (for the task svm)"),
        ({"task": "mf", "schedule": "backof"}, "'backof' is not one of adaptive, "),
        (
            {"task": "mf", "strategy": "ordered"},
            "'ordered' is not one of auto, hogwild, strata (for",
        ),
        ({"l2": -1}, "l2: must be at least 0, not -1"),
        ({"l2": float("nan")}, "l2: expected a finite number, not nan"),
        ({"l2": "1e-4"}, "l2: expected a number, not '1e-4'"),
        ({"epochs": 0}, "epochs: must be at least 1, not 0"),
        ({"epochs": 1.5}, "epochs: expected a whole number, not 1.5"),
        ({"epochs": True}, "epochs: expected a whole number, not True"),
        ({"eta0": 0}, "eta0: must be above 0, not 0"),
        ({"eta0": float("inf")}, "eta0: expected a finite number, not inf"),
        ({"workers": 0}, "workers: must be at least 1, not 0"),
        ({"workers": 100_000}, "workers: must be at most 1024, not 100000"),
        ({"intercept": "no"}, "intercept: expected True or False, not 'no'"),
        ({"seed": -1}, "seed: must be at least 0, not -1"),
        ({"beta": 0.5}, "beta: it needs the schedule backoff"),
        ({"beta": 1.5, "schedule": "backoff"}, "beta: must be at most 1, not 1.5"),
        ({"time_limit": 0}, "time_limit: must be above 0, not 0"),
        ({"epoch": 3}, "epoch: there is no such option; did you mean epochs?"),
    ],
)
def test_a_wrong_option_is_named(options: dict[str, Any], words: str) -> None:
    with pytest.raises(hogwild.OptionError) as told:
        Config.of(options)
    assert words in str(told.value)


def test_all_problems_are_told_at_once() -> None:
    with pytest.raises(hogwild.OptionError) as told:
        Config.of({"l2": -1, "epochs": 0, "tasc": "svm", "schedule": "none"})
    assert [line.split(":")[0] for line in str(told.value).splitlines()] == [
        "tasc",
        "l2",
        "epochs",
        "schedule",
    ]


@pytest.mark.parametrize(
    "options",
    [
        {"epochs": np.int64(3), "l2": np.float32(0.1), "intercept": np.bool_(False)},
        {"l2": 0, "tol": 0, "objective_every": 0},
        {"workers": None, "eta0": None, "loss": None},
        {"schedule": "backoff", "beta": 1},
    ],
)
def test_what_is_in_order_is_taken(options: dict[str, Any]) -> None:
    config = Config.of(options)
    assert {name: getattr(config, name) for name in options} == options


def test_every_field_says_what_it_means() -> None:
    for known in dataclasses.fields(Config):
        assert known.metadata["text"]
        assert set(known.metadata) == set(option(0, "x").metadata)


def test_the_task_has_a_loss_of_its_own() -> None:
    assert Config(task="svm").loss_name == "hinge"
    assert Config(task="logistic").loss_name == "logistic"
    assert Config(task="svm", loss="squared").loss_name == "squared"


def test_only_backoff_backs_off() -> None:
    assert Config(schedule="constant").backoff(5) == 1
    assert Config(schedule="backoff", beta=0.5).backoff(4) == 0.125
    assert Config(schedule="backoff").backoff(1) == 1
