"""Trainings that are broken off and resumed: the same bits as those that never were."""

import errno
import os
import random
import re
import signal
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest
from scipy.sparse import csr_matrix

import hogwild
from hogwild import model_file
from hogwild.checkpoint import Every
from hogwild.data.synthetic import rcv1
from hogwild.lasting import copied

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


class BrokenOffError(Exception):
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
            raise BrokenOffError

    def tick(self, epoch: int, share: float, seconds: float) -> None:
        if self.after <= 0 and share > 0:
            raise BrokenOffError


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
        except BrokenOffError:
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


# What may differ, and what may not


@pytest.fixture(scope="module")
def rows() -> hogwild.Rows:
    return rcv1(2_000, 2_000)[0]


SGD: Options = {"solver": "sgd", "eta0": 0.5, "tol": 0, "deterministic": True}


@pytest.mark.parametrize("solver", ["sgd", "dual", "newton"])
def test_more_epochs_and_other_workers_come_to_the_same_bits(
    rows: hogwild.Rows, tmp_path: Path, solver: str
) -> None:
    """Also where a limit asked for a proof that a longer training would not have made."""
    options: Options = {"solver": solver, "tol": 0, "deterministic": True, "l2": 1e-5}
    going = {"checkpoint": tmp_path / "c.hog", "resume": "auto"}
    for epochs, workers in ((2, 1), (3, 2), (3, 1), (7, 2), (9, 3)):
        broken = hogwild.train(rows, epochs=epochs, workers=workers, **options, **going)
        assert len(broken.trace) == epochs
    assert_same(broken, hogwild.train(rows, epochs=9, workers=2, **options))


@pytest.mark.parametrize("limit", [{"epochs": 4}, {"tol": 0.05}])
def test_a_finished_training_stays_finished(
    rows: hogwild.Rows, tmp_path: Path, limit: Options
) -> None:
    options = SGD | {"epochs": 50} | limit
    going = {"checkpoint": tmp_path / "c.hog", "resume": "auto"}
    whole = hogwild.train(rows, **options)
    for _ in range(4):
        assert_same(hogwild.train(rows, **options, **going), whole)
    if "epochs" in limit:  # fewer than there were: nothing more is learned, and nothing forgotten
        fewer = hogwild.train(rows, **options | {"epochs": 2}, **going)
        assert (fewer.reason, len(fewer.trace)) == ("epochs", 4)
        more = hogwild.train(rows, **options | {"epochs": 6}, **going)
        assert_same(more, hogwild.train(rows, **options | {"epochs": 6}))


class Kills(hogwild.Watcher):
    """Kills a worker as the training begins, so that its first command is never answered."""

    def start(self, header: Any) -> None:
        os.kill(psutil.Process().children()[-1].pid, signal.SIGKILL)


@pytest.mark.parametrize("solver", ["sgd", "dual"])
def test_a_worker_that_dies_as_a_training_is_resumed_changes_nothing(
    rows: hogwild.Rows, tmp_path: Path, solver: str
) -> None:
    """What was left to be measured after the last epoch is measured by others."""
    options: Options = {"solver": solver, "tol": 0, "deterministic": True, "workers": 2}
    going = {"checkpoint": tmp_path / "c.hog", "resume": "auto"}
    hogwild.train(rows, epochs=2, **options, **going)
    with pytest.warns(hogwild.HogwildWarning, match="SIGKILL; new workers take over"):
        broken = hogwild.train(rows, epochs=5, watcher=Kills(), **options, **going)
    assert_same(broken, hogwild.train(rows, epochs=5, **options))


def test_a_time_limit_is_for_each_call(rows: hogwild.Rows, tmp_path: Path) -> None:
    options = {"solver": "sgd", "eta0": 0.5, "tol": 0, "workers": 1, "objective_every": 0}
    going = {"checkpoint": tmp_path / "c.hog", "resume": "auto", "every": 10_000}
    lengths = []
    for _ in range(2):
        found = hogwild.train(rows, time_limit=0.1, epochs=100_000, **options, **going)
        assert found.reason == "time"
        lengths.append(len(found.trace))
    assert lengths[0] < lengths[1]
    assert found.trace[-1]["seconds"] > 0.15
    options |= {"epochs": lengths[1] + 20}
    done = hogwild.train(rows, **options, **going)
    assert bytes_of(done) == bytes_of(hogwild.train(rows, **options))


def test_what_must_not_differ_is_named(rows: hogwild.Rows, tmp_path: Path) -> None:
    path = tmp_path / "c.hog"
    hogwild.train(rows, epochs=2, checkpoint=path, **SGD)
    others = rows.weighted(np.arange(len(rows)) + 1.0)
    with pytest.raises(hogwild.OptionError) as refused:
        hogwild.train(others, epochs=2, resume=path, **SGD | {"l2": 1e-3, "seed": 7})
    assert re.findall(r"^\w+", str(refused.value), re.M) == ["l2", "seed", "data", "resume"]
    assert f"{path} was written with 0.0001, and now it is 0.001" in str(refused.value)
    with pytest.raises(hogwild.OptionError, match="start: not what"):
        state = hogwild.train(rows, epochs=1, **SGD).state
        hogwild.train(rows, epochs=2, resume=path, start=state, **SGD)


def test_weights_of_each_worker_need_as_many_workers(rows: hogwild.Rows, tmp_path: Path) -> None:
    options = {"solver": "sgd", "strategy": "averaged", "eta0": 0.5, "tol": 0}
    going = {"checkpoint": tmp_path / "c.hog", "resume": "auto"}
    hogwild.train(rows, epochs=2, workers=2, **options, **going)
    with pytest.raises(hogwild.OptionError, match="workers: with the strategy averaged each"):
        hogwild.train(rows, epochs=4, workers=3, **options, **going)
    broken = hogwild.train(rows, epochs=4, workers=2, **options, **going)
    assert_same(broken, hogwild.train(rows, epochs=4, workers=2, **options))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"resume": "auto"}, "resume: auto needs a checkpoint"),
        ({"resume": "nothing.hog"}, "resume: there is no file nothing.hog"),
        ({"every": 3}, "every: it needs a checkpoint"),
        ({"checkpoint": "c.hog", "every": "3 days"}, "every: expected a number of epochs, or a"),
        ({"checkpoint": "c.hog", "every": 0}, "every: expected a number of epochs, or a"),
        ({"checkpoint": "no/such/c.hog"}, "there is no folder"),
        ({"checkpoint": "m.hog", "model": "m.hog"}, "m.hog is the model, too"),
    ],
)
def test_a_wish_that_cannot_be_met_is_refused(
    rows: hogwild.Rows, options: Options, words: str, tmp_path: Path, monkeypatch: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(hogwild.OptionError, match=words):
        hogwild.train(rows, **options)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("given", "every"),
    [
        (5, (5, None)),
        ("5", (5, None)),
        ("30s", (None, 30)),
        ("1.5m", (None, 90)),
        ("2 h", (None, 7200)),
    ],
)
def test_how_often(given: Any, every: Any) -> None:
    assert Every.of(given) == every


def test_a_checkpoint_is_no_model_and_a_model_no_checkpoint(
    rows: hogwild.Rows, tmp_path: Path
) -> None:
    model, checkpoint = tmp_path / "m.hog", tmp_path / "c.hog"
    hogwild.train(rows, epochs=1, model=model, checkpoint=checkpoint, **SGD)
    with pytest.raises(hogwild.HogwildError, match="is a checkpoint, and no model: resume"):
        hogwild.load_model(checkpoint)
    with pytest.raises(hogwild.HogwildError, match="is a model, and no checkpoint: give it"):
        hogwild.train(rows, resume=model)
    with pytest.raises(hogwild.HogwildError, match="is a checkpoint"):
        hogwild.train(rows, start=checkpoint)


def test_rows_that_stay_on_the_disk_are_resumed(tmp_path: Path) -> None:
    rows = rcv1(20_000, 4_000)[0]
    hogwild.save(rows, tmp_path / "t.rows")
    options = {"memory": "260M", "workers": 2, "deterministic": True, "tol": 0, "solver": "dual"}
    whole = hogwild.train(tmp_path / "t.rows", epochs=4, **options)
    going = {"checkpoint": tmp_path / "c.hog", "resume": "auto"}
    with pytest.raises(BrokenOffError):
        hogwild.train(tmp_path / "t.rows", epochs=4, every=1, watcher=Breaks(2), **options, **going)
    assert_same(hogwild.train(tmp_path / "t.rows", epochs=4, **options, **going), whole)


# Files


@pytest.fixture
def old(rows: hogwild.Rows, tmp_path: Path) -> Path:
    """A checkpoint after one epoch, in a folder of its own."""
    path = tmp_path / "disk" / "c.hog"
    path.parent.mkdir()
    hogwild.train(rows, epochs=1, checkpoint=path, **SGD)
    return path


def test_a_full_disk_costs_no_training_and_the_old_checkpoint_stays(
    rows: hogwild.Rows, old: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = old.read_bytes()

    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", full)
        with pytest.warns(hogwild.HogwildWarning, match="no checkpoint: .*the disk is full"):
            found = hogwild.train(rows, epochs=3, checkpoint=old, every=1, **SGD)
    assert len(found.trace) == 3
    assert old.read_bytes() == before
    assert [one.name for one in old.parent.iterdir()] == ["c.hog"]


def test_the_old_checkpoint_stays_until_the_new_one_can_be_read(
    rows: hogwild.Rows, old: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = old.read_bytes()
    verify = model_file.verify

    def verify_damaged(file: Path) -> None:
        """As on a disk that does not keep what was written."""
        data = bytearray(file.read_bytes())
        data[len(data) // 2] ^= 1
        file.write_bytes(data)
        verify(file)

    monkeypatch.setattr(model_file, "verify", verify_damaged)
    with pytest.warns(hogwild.HogwildWarning, match="was not written as it should be"):
        hogwild.train(rows, epochs=2, checkpoint=old, **SGD)
    assert old.read_bytes() == before


def test_damage_is_refused_whatever_it_is(rows: hogwild.Rows, tmp_path: Path) -> None:
    """Every byte of the file counts; and a right checksum does not make a state of everything."""
    path = tmp_path / "c.hog"
    hogwild.train(rows, epochs=2, checkpoint=path, **SGD)
    whole, rng = path.read_bytes(), random.Random(0)
    for _ in range(60):
        at = rng.randrange(len(whole))
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 1 << rng.randrange(8)]) + whole[at + 1 :])
        with pytest.raises(hogwild.HogwildError):
            hogwild.train(rows, epochs=3, resume=path, **SGD)
        path.write_bytes(whole[:at])
        with pytest.raises(hogwild.HogwildError):
            hogwild.train(rows, epochs=3, resume=path, **SGD)
    path.write_bytes(whole)
    about, arrays = model_file.read(path)
    array = next(name for name, found in arrays.items() if found.size > 1)
    about["options"]["dict"][0][1] = {"array": array, "shape": [arrays[array].size]}
    model_file.write(path, about, arrays)
    with pytest.raises(hogwild.HogwildError, match="impossible"):
        hogwild.train(rows, epochs=3, resume=path, **SGD)


@pytest.mark.parametrize("seed", range(4))
def test_a_state_that_no_training_wrote_is_refused_or_harmless(
    rows: hogwild.Rows, tmp_path: Path, seed: int
) -> None:
    path, rng = tmp_path / "c.hog", random.Random(seed)
    options = [SGD, {"solver": "dual"}, {"solver": "newton"}, {"task": "svm"}][seed]
    hogwild.train(rows, epochs=2, checkpoint=path, **options)
    about, arrays = model_file.read(path)
    refused = 0
    for _ in range(100):
        changed = copied(about)
        spoil(changed, rng)
        model_file.write(path, changed, arrays)
        try:
            found = hogwild.train(rows, epochs=3, resume=path, watcher=Breaks(10**9), **options)
        except hogwild.HogwildError:
            refused += 1
        else:
            assert np.isfinite(found.model.weights).all()
    assert refused > 30


SOLVERS: dict[str, Options] = {
    "sgd": SGD,
    "averaged": {"solver": "sgd", "eta0": 0.5, "tol": 0, "workers": 2, "strategy": "averaged"},
    "ftrl": SGD | {"l1": 1e-5},
    "dual": {"solver": "dual", "tol": 0},
    "dual, with kinks": {"solver": "dual", "loss": "hinge", "tol": 0},
    "newton": {"solver": "newton", "loss": "logistic", "tol": 0},
    "smooth": {"solver": "newton", "loss": "absolute", "task": "regression", "tol": 0},
    "interior": {"solver": "newton", "loss": "hinge", "tol": 0},
    "interior, numbers": {"solver": "newton", "loss": "quantile", "task": "regression", "tol": 0},
    "coordinate": {"solver": "coordinate", "l1": 1e-4, "loss": "logistic", "tol": 0},
    "gd": {"solver": "gd", "loss": "hinge", "tol": 0},
    "lbfgs": {"solver": "lbfgs", "loss": "logistic", "tol": 0},
}


@pytest.mark.parametrize("name", SOLVERS)
def test_arrays_of_another_length_are_refused(
    rows: hogwild.Rows, tmp_path: Path, name: str
) -> None:
    """A kernel that reads beyond an array's end would end the process, or learn from anything."""
    path, options = tmp_path / "c.hog", SOLVERS[name]
    if name == "smooth":  # which is for few columns
        values = np.random.default_rng(0).normal(size=(400, 7))
        rows = hogwild.Rows(csr_matrix(values[:, 1:]), values[:, 0])
    hogwild.train(rows, epochs=4, checkpoint=path, every=1, **options)
    whole, arrays = model_file.read(path)
    several = [place for place, array in arrays.items() if array.size > 1]
    assert several
    for place in several:
        about, shorter = copied(whole), dict(arrays)
        (found,) = (one for one in _arrays_within(about) if one["array"] == place)
        each = arrays[place].size // found["shape"][0]
        found["shape"][0] -= 1
        shorter[place] = arrays[place][:-each]
        model_file.write(path, about, shorter)
        with pytest.raises(hogwild.HogwildError):
            hogwild.train(rows, epochs=5, resume=path, **options)


def _arrays_within(value: Any) -> Iterator[dict[str, Any]]:
    """The places of a checkpoint's JSON that stand for arrays."""
    if isinstance(value, dict) and "array" in value:
        yield value
    elif isinstance(value, dict | list):
        for one in value.values() if isinstance(value, dict) else value:
            yield from _arrays_within(one)


def spoil(value: Any, rng: random.Random) -> None:
    """Replaces something within JSON by something else, or leaves it out."""
    while True:
        keys = list(value) if isinstance(value, dict) else list(range(len(value)))
        key = rng.choice(keys)
        inner = value[key]
        if isinstance(inner, dict | list) and inner and rng.random() < 0.85:
            value = inner
            continue
        if isinstance(value, dict) and rng.random() < 0.3:
            del value[key]
        else:
            others = [None, -1, 0.5, "x", [], {}, True, 1e300, [[1]], {"array": "x"}]
            value[key] = rng.choice(others)
        return


class Disk:
    """Records what a program writes to a folder, and what a power cut may leave of it."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder = folder
        self.synced = {path.read_bytes() for path in folder.iterdir()}
        self.left: list[dict[str, bytes]] = [self._now()]
        sync = os.fsync

        def synced(number: int) -> None:
            if stat.S_ISDIR(os.fstat(number).st_mode):
                sync(number)
                self.left.append(self._now())
                return
            # Until now, some of the contents and not the others may be on the disk
            for share in (0.0, 0.3, 1.0):
                self.left.append(self._now(share))
            sync(number)
            self.synced.add(Path(f"/proc/self/fd/{number}").read_bytes())
            self.left.append(self._now())

        monkeypatch.setattr(os, "fsync", synced)
        for name in ("replace", "unlink", "link"):
            if hasattr(os, name):
                monkeypatch.setattr(os, name, self._followed(getattr(os, name)))

    def _followed(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def followed(*given: Any, **more: Any) -> Any:
            self.left.append(self._now())
            found = call(*given, **more)
            self.left.append(self._now())
            return found

        return followed

    def _now(self, share: float = 1.0) -> dict[str, bytes]:
        """The files by name; of those that were not synced only a share of the bytes."""
        found = {path.name: path.read_bytes() for path in self.folder.iterdir()}
        return {
            name: data if data in self.synced else data[: int(share * len(data))]
            for name, data in found.items()
        }


def test_a_power_cut_leaves_the_old_checkpoint_or_the_new_one(
    rows: hogwild.Rows, old: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = hogwild.train(rows, epochs=5, **SGD)
    with monkeypatch.context() as patched:
        disk = Disk(old.parent, patched)
        hogwild.train(rows, epochs=3, checkpoint=old, every=1, resume="auto", **SGD)
    assert len(disk.left) > 10
    reached = set()
    for number, files in enumerate(disk.left):
        again = tmp_path / str(number)
        again.mkdir()
        for name, data in files.items():
            (again / name).write_bytes(data)
        found = hogwild.train(rows, epochs=3, resume=again / "c.hog", **SGD)
        reached.add(len(found.trace))
    assert reached == {3}
    assert_same(hogwild.train(rows, epochs=5, resume=old, **SGD), whole)


# The command line, and real signals


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    hogwild.save(rcv1(3_000, 2_000)[0], tmp_path / "train.svm")
    return tmp_path


WORDS = "train train.svm --solver sgd --deterministic --workers 2 --tol 0 --model m.hog"
GOING = "--checkpoint c.hog --every 15 --resume auto"


def started(folder: Path, words: str) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-m", "hogwild", *words.split()],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


@pytest.fixture
def processes() -> Iterator[list[Any]]:
    found: list[Any] = []
    yield found
    for process in found:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


SLOW = [pytest.param(signal.SIGHUP, marks=pytest.mark.slow)]
SLOW += [pytest.param(signal.SIGINT, marks=pytest.mark.slow)]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL, *SLOW])
def test_a_program_that_is_ended_goes_on_by_the_same_command(
    folder: Path, number: signal.Signals, processes: list[Any]
) -> None:
    epochs, options = 120, {"solver": "sgd", "deterministic": True, "tol": 0}
    whole = hogwild.train(folder / "train.svm", workers=2, epochs=epochs, **options)
    codes, lengths = [], []
    while len(codes) < 10 and (not codes or codes[-1] != 0):
        process = started(folder, f"{WORDS} --epochs {epochs} {GOING}")
        processes.append(process)
        if len(codes) < 2:  # else it is left to itself
            assert process.stdout is not None
            lines = (line for line in process.stdout if re.match(r" *\d+ ", line))
            next(line for line in lines if int(line.split()[0]) > 40 * (len(codes) + 1))
            os.killpg(process.pid, number)
        _, problems = process.communicate(timeout=60)
        codes.append(process.returncode)
        assert "Traceback" not in problems
        if codes[-1] and number != signal.SIGKILL:
            assert "interrupted; the model so far is in m.hog; go on with the same" in problems
            lengths.append(hogwild.load_model(folder / "m.hog").about["trace"]["epochs"])
    assert (len(codes), codes[-1]) == (3, 0)
    assert set(codes[:-1]) <= {130, -signal.SIGKILL}
    assert lengths == sorted(lengths)
    found = hogwild.load_model(folder / "m.hog")
    assert found.weights.tobytes() == whole.model.weights.tobytes()
    assert {path.name for path in folder.iterdir()} == {"train.svm", "m.hog", "c.hog"}


def test_a_time_limit_on_the_command_line_says_how_to_go_on(
    folder: Path, processes: list[Any]
) -> None:
    words = f"{WORDS} --epochs 100000 --objective-every 0 --time-limit 1 {GOING}"
    words = words.replace("--every 15", "--every 10000")
    for _ in range(2):
        process = started(folder, words)
        processes.append(process)
        out, _ = process.communicate(timeout=60)
        assert process.returncode == 0
        assert "to go on, give the same command again" in out
    assert "goes on after epoch" in out
