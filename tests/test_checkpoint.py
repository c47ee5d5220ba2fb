"""Trainings that are broken off and resumed: the same bits as those that never were."""

import errno
import os
import random
import re
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest

import hogwild
from hogwild import model_file
from hogwild.checkpoint import Every
from hogwild.data.synthetic import rcv1
from hogwild.lasting import Lasting, copied

ARRAYS = ("weights", "intercept", "members", "user_factors", "item_factors", "user_biases", "mean")
Options = dict[str, Any]


def bytes_of(result: Any) -> list[bytes]:
    found = (getattr(result.model, name, None) for name in ARRAYS)
    return [np.asarray(one).tobytes() for one in found if one is not None]


def told(result: Any) -> list[tuple[float | None, ...]]:
    """What the trace says that does not depend on the clock."""
    return [(row["epoch"], row["objective"], row.get("gap")) for row in result.trace]


def assert_same(broken: Any, whole: Any) -> None:
    assert told(broken) == told(whole)
    assert (broken.reason, bytes_of(broken)) == (whole.reason, bytes_of(whole))


class Broken(Exception):
    """What ends a training as a power cut does: nothing more is written."""


class Breaks(hogwild.Watcher):
    """Breaks a training off: at the end of its n-th epoch, or at the first tick after it."""

    def __init__(self, after: int, within: bool = False) -> None:
        self.after, self.within = after, within

    def note(self, text: str) -> None:
        pass

    def epoch(self, row: Any) -> None:
        self.after -= 1
        if self.after <= 0 and not self.within:
            raise Broken

    def tick(self, epoch: int, share: float, seconds: float) -> None:
        if self.after <= 0 and share > 0:
            raise Broken


# Random trainings


class Case:
    """A random training: its data and its options."""

    def __init__(self, number: int) -> None:
        self._draw = random.Random(number)
        draw = self._draw.choice
        self._kind = kind = draw(["two", "two", "classes", "labels", "numbers", "ratings"])
        self.options: Options = {"seed": number, "workers": draw([1, 1, 2])}
        rows, columns = draw([60, 400]), draw([4, 40, 200])
        if kind == "ratings":
            self.data: Any = ratings(number, rows)
            self._draw_factors()
        else:
            self.data = drawn(kind, number, rows, columns)
            getattr(self, f"_draw_{kind}")()
            self._draw_linear()
        if self.options["workers"] > 1:
            self.options["deterministic"] = True
        if self._maybe() and "objective_every" not in self.options:
            self.options["early_stopping"] = 0.2
        if self._maybe():
            self.options["tol"] = draw([0.0, 1e-2, 1e-5])

    def _maybe(self, share: float = 0.25) -> bool:
        return self._draw.random() < share

    def _draw_factors(self) -> None:
        draw = self._draw.choice
        self.options |= {"task": "mf", "rank": draw([4, 9]), "epochs": draw([3, 6])}
        self.options |= draw([{}, {"loss": "absolute"}, {"nonnegative": True}, {"l1": 0.01}])

    def _draw_two(self) -> None:
        draw = self._draw.choice
        self.options["loss"] = draw(["hinge", "logistic", "squared_hinge", "perceptron"])
        able = ["sgd", "dual", "newton", "gd", "lbfgs", "coordinate"]
        able = {"hinge": able[:4], "perceptron": ["sgd"]}.get(self.options["loss"], able)
        self.options["solver"] = draw(able)

    def _draw_classes(self) -> None:
        self.options["task"] = self._draw.choice(["svm", "logistic", "softmax"])
        able = ["sgd", "newton", "gd"] + ["dual"] * (self.options["task"] != "softmax")
        self.options["solver"] = self._draw.choice(able)

    def _draw_labels(self) -> None:
        self.options |= {"task": "logistic", "solver": self._draw.choice(["sgd", "dual", "newton"])}

    def _draw_numbers(self) -> None:
        draw = self._draw.choice
        loss = draw(["squared", "absolute", "huber", "epsilon_insensitive", "quantile"])
        able = ["sgd", "dual", "newton", "gd"] + ["cg", "closed", "lbfgs"] * (loss == "squared")
        self.options |= {"task": "regression", "loss": loss, "solver": draw(able)}

    def _draw_linear(self) -> None:
        draw, solver = self._draw.choice, self.options["solver"]
        self.options["epochs"] = draw([3, 6, 12])
        if self.options.get("loss") != "perceptron":
            self.options["l2"] = 10 ** self._draw.uniform(-6, -2)
        if solver == "coordinate":
            self.options["l1"] = 10 ** self._draw.uniform(-4, -2)
        if self._maybe():
            self.options["intercept"] = False
        if self._maybe():
            weights = np.random.default_rng(self.options["seed"]).integers(1, 5, len(self.data))
            self.data = self.data.weighted(weights)
        if solver == "sgd":
            self._draw_sgd()

    def _draw_sgd(self) -> None:
        draw = self._draw.choice
        if self._maybe():
            self.options["objective_every"] = draw([0, 2, 3])
        if self._maybe():
            self.options["average"] = False
        if self._maybe() and self.options.get("loss") != "perceptron":
            able = ["constant", "sqrt", "backoff", "adaptive", "normalized"]
            self.options["schedule"] = draw(able[: 5 if self._kind in ("two", "numbers") else 3])
        elif self._maybe() and self.options["workers"] == 1:
            self.options["strategy"] = draw(["minibatch", "averaged", "mixed", "ordered"])

    def train(self, **more: Any) -> Any:
        return hogwild.train(self.data, **self.options | more)


def drawn(kind: str, seed: int, rows: int, columns: int) -> hogwild.Rows:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, columns)) * (rng.random((rows, columns)) < 0.3)
    scores = X @ rng.normal(size=columns) + 0.3 * rng.normal(size=rows)
    if kind == "numbers":
        return hogwild.Rows(X, scores)
    if kind == "labels":
        return hogwild.Rows(X, np.column_stack([scores > 0, scores > 1, rng.random(rows) < 0.3]))
    parts = [0.5] if kind == "two" else [0.25, 0.5, 0.75]
    return hogwild.Rows(X, np.digitize(scores, np.quantile(scores, parts)))


def ratings(seed: int, count: int) -> hogwild.Ratings:
    rng = np.random.default_rng(seed)
    users, items = rng.integers(0, 30, count), rng.integers(0, 20, count)
    return hogwild.Ratings(users, items, rng.integers(1, 6, count))


def check_broken_off(number: int, path: Path) -> None:
    """Breaks a random training off again and again, and resumes it."""
    case = Case(number)
    draw = random.Random(-number)
    try:
        whole = case.train(watcher=Breaks(10**9))
    except hogwild.OptionError as refused:
        pytest.fail(f"the case {number} {case.options} is not to be had: {refused}")
    for _ in range(4):
        breaks = Breaks(draw.randint(1, 1 + len(whole.trace) // 2), draw.random() < 0.3)
        more = {"workers": draw.choice([1, 2, 3])} if "deterministic" in case.options else {}
        every = draw.choice([1, 2, 3])
        try:
            case.train(watcher=breaks, checkpoint=path, every=every, resume="auto", **more)
        except Broken:
            continue
        break
    assert_same(case.train(watcher=Breaks(10**9), checkpoint=path, resume="auto"), whole)


@pytest.mark.parametrize("number", range(40))
def test_a_resumed_training_has_the_same_bits(number: int, tmp_path: Path) -> None:
    check_broken_off(number, tmp_path / "checkpoint.hog")


@pytest.mark.slow
@pytest.mark.parametrize("tens", range(4, 100))
def test_a_thousand_resumed_trainings_have_the_same_bits(tens: int, tmp_path: Path) -> None:
    for number in range(10 * tens, 10 * tens + 10):
        check_broken_off(number, tmp_path / f"{number}.hog")
