"""Model files: every bit comes back, and what is no whole model file is refused with a reason."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hogwild
from hogwild import model_file
from hogwild.models.linear import LinearModel


def a_model(labels: tuple[Any, Any] = (-1, 1), columns: int = 1001) -> LinearModel:
    bits = np.random.default_rng(0).integers(0, 2**32, columns, dtype=np.uint32)
    weights = bits.view(np.float32)
    weights = np.where(np.isfinite(weights), weights, np.float32(1e-45))
    return LinearModel(weights, 0.1, labels, "logistic", 1, {"options": {"l2": 1e-4}})


@pytest.mark.parametrize("labels", [(-1, 1), (0.0, 1.0), ("no", "yes"), (False, True), (0.1, 2.5)])
@pytest.mark.parametrize("columns", [0, 1, 15, 16, 1001])
def test_everything_comes_back_bit_for_bit(
    tmp_path: Path, labels: tuple[Any, Any], columns: int
) -> None:
    model = a_model(labels, columns)
    model.save(tmp_path / "m.hog")
    back = hogwild.load_model(tmp_path / "m.hog")
    assert back.weights.tobytes() == model.weights.tobytes()
    assert back.weights.dtype == np.float32
    for name in ("intercept", "labels", "loss", "index_base", "about"):
        assert getattr(back, name) == getattr(model, name)
    assert [type(label) for label in back.labels] == [type(label) for label in labels]


def test_the_same_model_makes_the_same_file(tmp_path: Path) -> None:
    for name in ("a", "b"):
        a_model().save(tmp_path / name)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    assert {path.name for path in tmp_path.iterdir()} == {"a", "b"}


def test_a_file_that_is_cut_off_anywhere_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "m.hog"
    a_model(columns=50).save(path)
    whole = path.read_bytes()
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        with pytest.raises(hogwild.HogwildError, match=r"cut off|not a model"):
            hogwild.load_model(path)


def test_any_changed_byte_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "m.hog"
    a_model(columns=50).save(path)
    whole = path.read_bytes()
    for place in range(len(whole)):
        changed = bytearray(whole)
        changed[place] ^= 0x10
        path.write_bytes(changed)
        with pytest.raises(hogwild.HogwildError, match=r"damaged|not a model|newer"):
            hogwild.load_model(path)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "is not a model of hogwild"),
        (b"PK\x03\x04 and so on, a zip file", "is not a model of hogwild"),
        (model_file.HEAD.pack(model_file.MAGIC, 99, 0) + b"1234", "written by a newer hogwild"),
    ],
)
def test_what_is_no_model_is_refused(tmp_path: Path, content: bytes, words: str) -> None:
    path = tmp_path / "m.hog"
    path.write_bytes(content)
    with pytest.raises(hogwild.HogwildError, match=words):
        hogwild.load_model(path)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(hogwild.HogwildError, match=r"cannot read the model .*m\.hog: No such file"):
        hogwild.load_model(tmp_path / "m.hog")
