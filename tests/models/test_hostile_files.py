"""Model files with a right checksum and a wrong head: refused as model files, or good to use."""

import contextlib
import copy
import json
import random
import struct
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hogwild
from hogwild import model_file
from hogwild.cli import main
from hogwild.data.ids import Ids
from hogwild.learn.targets import Classes
from hogwild.model_file import ALIGNMENT, HEAD, MAGIC, ModelFileError
from hogwild.models.factors import FactorModel
from hogwild.models.heads import HeadsModel
from hogwild.models.linear import LinearModel
from hogwild.models.votes import VoteModel

RANDOM = np.random.default_rng(0)
ABOUT = {
    "options": {"task": "svm", "l2": 1e-4, "l1": None, "class_weights": [1.0, 2.0], "biases": True},
    "data": {"name": "a.svm", "rows": 10},
    "trace": {"reason": "converged", "epochs": 3, "last": {"objective": 0.5, "gap": 0.01}},
    "versions": {"hogwild": "1.0"},
    "feature_names": list("abcdef"),
}
ODD: list[Any] = [
    None,
    True,
    -1,
    0,
    1,
    5,
    2**32,
    2**63,
    10**30,
    1e308,
    -0.5,
    "",
    "no",
    "<f8",
    [],
    {},
]
ODD += [
    [1],
    [None],
    {"a": 1},
    "<u4",
    "|O8",
    "hinge",
    "poisson",
    "softmax",
    "heads",
    "signs",
    "counts",
]


def floats(*shape: int) -> Any:
    return RANDOM.normal(size=shape).astype(np.float32)


def models() -> dict[str, Any]:
    sparse = floats(6)
    sparse[1:] = 0
    three = copy.deepcopy(ABOUT)
    three["options"]["class_weights"] = None
    users = Ids.of(["ann", "bob", "cid", "dan"])[0], Ids.numbered(4), Ids.of([9, 5, 7, -3])[0]
    given = [floats(4, 2), floats(4, 2), floats(4), floats(4), 3.0]
    hashed = LinearModel(floats(256), 0.1, (-1, 1), "logistic", None, {})
    hashed.features = hogwild.Features(bits=8, idf=True, keep_names=True)
    hashed.features = hashed.features.rows(["a b", "b c d", "c a"], [1, -1, 1]).features
    return {
        "hashed": hashed,
        "linear": LinearModel(floats(6), 0.1, (-1, 1), "logistic", 1, ABOUT),
        "sparse": LinearModel(sparse, 0.1, ("no", "yes"), "hinge", 0, ABOUT),
        "heads": HeadsModel(floats(3, 6), floats(3), Classes((1, 2, 3)), "hinge", 1, three),
        "votes": VoteModel(floats(2, 6), floats(2), (-1, 1), "hinge", 1, ABOUT),
        "texts": FactorModel(*given, users[0], users[1], "squared", ABOUT),
        "numbers": FactorModel(*given, users[2], users[2], "logistic", ABOUT),
    }


def places(thing: Any) -> list[tuple[Any, Any]]:
    """All that lies within: its container and its key there."""
    pairs = thing.items() if isinstance(thing, dict) else enumerate(thing)
    found = []
    for key, value in pairs:
        found.append((thing, key))
        if isinstance(value, dict | list):
            found += places(value)
    return found


def mutated(case: random.Random, head: dict[str, Any]) -> bytes:
    for _ in range(case.choice([1, 1, 1, 2, 4])):
        if not head:  # all was deleted
            break
        inside, key = case.choice(places(head))
        other, there = case.choice(places(head))
        match case.randint(0, 9):
            case 0:
                del inside[key]
            case 1 | 2:
                inside[key] = copy.deepcopy(other[there])
            case 3 if isinstance(inside, dict):
                inside[str(case.choice(ODD))] = inside.pop(key)
            case 4 if isinstance(inside[key], int | float):
                inside[key] += case.choice([-1, 1, 0.5])
            case _:
                inside[key] = copy.deepcopy(case.choice(ODD))
    return json.dumps(head).encode()


def put(path: Path, head: bytes, body: bytes) -> None:
    """A model file with this head, this body and a right checksum."""
    text = HEAD.pack(MAGIC, 2, len(head)) + head
    whole = text + bytes(-len(text) % ALIGNMENT) + body
    path.write_bytes(whole + struct.pack("<I", zlib.crc32(whole)))


def cut(path: Path) -> tuple[dict[str, Any], bytes]:
    data = path.read_bytes()
    end = HEAD.size + HEAD.unpack_from(data)[2]
    return json.loads(data[HEAD.size : end]), data[end + -end % ALIGNMENT : -4]


def use(model: Any, path: Path) -> None:
    """What a user does with a model; it may be refused in words."""
    X, y = np.eye(max(1, getattr(model, "columns", 1)))[:3], np.array([-1, 1, -1])
    factors = model.kind == "factors"
    for work in (
        lambda: model.predict([1, 2], [0, 5]) if factors else model.predict(X),
        lambda: model.evaluate([1], [0], [1.0]) if factors else model.evaluate(X, y),
        lambda: model.fold_in([0, 1, 5], [1, 0, 1]) if factors else model.top_features(),
        model._repr_html_,
        lambda: model.predict(["a b", "d"]) if getattr(model, "features", None) else None,
    ):
        with contextlib.suppress(hogwild.HogwildError):
            work()
    assert main(["inspect", str(path)]) in (0, 1)


def saved(folder: Path) -> list[tuple[dict[str, Any], bytes]]:
    """Heads and bodies of good files."""
    given = []
    for name, model in models().items():
        model.save(folder / name)
        assert repr(hogwild.load_model(folder / name)) == repr(model)
        given.append(cut(folder / name))
    return given


def fuzzed(case: random.Random, path: Path, given: list[tuple[dict[str, Any], bytes]]) -> bool:
    """Whether a file with some changes is refused; else it can be used."""
    head, body = copy.deepcopy(case.choice(given))
    if case.random() < 0.1:
        at = case.randrange(len(body) // 4) * 4
        body = body[:at] + case.choice([b"\0\0\xc0\x7f", b"\0\0\x80\xff", b""]) + body[at + 4 :]
    put(path, mutated(case, head), body)
    try:
        model = hogwild.load_model(path)
    except ModelFileError as problem:
        assert str(path) in str(problem)
        return True
    use(model, path)
    return False


def fuzz(tmp_path: Path, cases: range) -> None:
    given, path = saved(tmp_path), tmp_path / "m.hog"
    assert sum(fuzzed(random.Random(number), path, given) for number in cases) > len(cases) // 3


@pytest.mark.filterwarnings("ignore")
def test_heads_that_were_changed(tmp_path: Path, capsys: Any) -> None:
    fuzz(tmp_path, range(500))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("part", range(4))
def test_heads_that_were_changed_for_long(part: int, tmp_path: Path, capsys: Any) -> None:
    fuzz(tmp_path, range(500 + 5000 * part, 500 + 5000 * (part + 1)))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda head: head["arrays"][0].update(length=7), "of 28 bytes ends behind the file"),
        (lambda head: head["arrays"][0].update(length=5), "4 bytes lie behind its arrays"),
        (lambda head: head["arrays"][0].update(dtype="|O8"), "no array's name, type and length"),
        (lambda head: head["about"].update(loss="hing"), "loss is 'hing'; known are"),
        (lambda head: head["about"].update(loss="poisson"), "poisson is not for targets"),
        (lambda head: head["about"].update(labels=[1, 1]), "not all different"),
        (lambda head: head["about"].update(intercept="0"), "intercept is '0'; expected a finite"),
        (lambda head: head["about"].pop("index_base"), "does not say its index_base"),
        (lambda head: head["about"]["about"]["options"].update(l2="a"), "options: l2 is 'a'"),
    ],
)
def test_what_is_wrong_is_named(change: Callable[[Any], Any], words: str, tmp_path: Path) -> None:
    path = tmp_path / "m.hog"
    models()["linear"].save(path)
    head, body = cut(path)
    change(head)
    put(path, json.dumps(head).encode(), body)
    with pytest.raises(ModelFileError, match=words) as problem:
        hogwild.load_model(path)
    assert str(problem.value).startswith(f"{path} is damaged: ")


@pytest.mark.parametrize(
    "text", [b"\xff{}", b"[]", b"[" * 100_000, b'{"about": NaN}', b"null", b""]
)
def test_heads_that_are_no_json(text: bytes, tmp_path: Path) -> None:
    put(tmp_path / "m.hog", text, b"")
    with pytest.raises(ModelFileError, match=r"m\.hog is damaged: its head"):
        hogwild.load_model(tmp_path / "m.hog")


def test_weights_that_are_no_numbers_are_refused(tmp_path: Path) -> None:
    head = {"arrays": [{"name": "weights", "dtype": "<f4", "length": 2}], "about": {}}
    head["about"] = {"kind": "linear", "intercept": 0, "loss": "hinge", "index_base": 1}
    head["about"] |= {"target": "signs", "labels": [-1, 1], "about": {}}
    put(tmp_path / "m.hog", json.dumps(head).encode(), np.array([1, np.nan], "<f4").tobytes())
    with pytest.raises(ModelFileError, match="number 2 of its weights is nan"):
        hogwild.load_model(tmp_path / "m.hog")


def test_endless_files_are_not_read_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ModelFileError, match="/dev/zero is not a model"):
        hogwild.load_model("/dev/zero")
    monkeypatch.setattr(model_file, "available_memory", lambda: 1 << 20)
    path = tmp_path / "large.hog"
    with path.open("wb") as file:
        file.write(MAGIC)
        file.truncate(1 << 40)
    with pytest.raises(ModelFileError, match="does not fit into memory"):
        hogwild.load_model(path)
