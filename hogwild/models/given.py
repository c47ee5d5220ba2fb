"""Linear models from other programs: LIBLINEAR's text, arrays in `.npz`, fitted estimators.

Weights stay in double precision, as they were found.
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from hogwild.data.npz import Arrays
from hogwild.data.rows import Labels
from hogwild.errors import DataError, HogwildError
from hogwild.features.encoder import Features
from hogwild.learn.registry import load_model
from hogwild.learn.targets import Classes, Target
from hogwild.model_file import MAGIC, ModelFileError
from hogwild.models.heads import HeadsModel
from hogwild.models.linear import LinearModel
from hogwild.paths import PathLike

# LIBLINEAR's solvers, and the losses that they minimize. Other solvers have losses unknown to
# hogwild
LIBLINEAR = {
    "L2R_LR": "logistic",
    "L2R_LR_DUAL": "logistic",
    "L1R_LR": "logistic",
    "L2R_L2LOSS_SVC": "squared_hinge",
    "L2R_L2LOSS_SVC_DUAL": "squared_hinge",
    "L1R_L2LOSS_SVC": "squared_hinge",
    "L2R_L1LOSS_SVC_DUAL": "hinge",
    "L2R_L1LOSS_SVR_DUAL": "epsilon_insensitive",
}
AGAINST = (-1.0, 1.0)  # the labels of a class against the rest
# Names of arrays in .npz
WEIGHTS = "weights", "coef", "coef_"
INTERCEPT = "intercept", "intercept_"
LABELS = "labels", "classes", "classes_"


@dataclass(frozen=True)
class Given:
    """A linear model, and what is known of its training; None: not known.

    Attributes:
        weights: one for each column.
        intercept: None if the model has none.
        penalized: the value of one more column in all rows, if the intercept is its weight, which
            is penalized like the others (and is not the `intercept` above); 0: there is none.
        labels: the negative and the positive one.
        options: loss, l2, l1, epsilon, quantile and class_weight, as far as they are known.
        index_base: the number that text gives to the first column.
        features: how rows are made from text or tables.
    """

    weights: npt.NDArray[np.float64]
    intercept: float | None
    penalized: float = 0.0
    labels: Labels | None = None
    options: dict[str, Any] = field(default_factory=dict)
    index_base: int | None = None
    features: Features | None = None
    kind = LinearModel.kind


@dataclass(frozen=True)
class GivenHeads:
    """A model with a score for each of several classes or labels.

    Attributes:
        heads: the model of each, as if it were learned against the rest; its labels are -1 and 1.
        target: the kind of targets, with their labels.
        class_weights: the weight of each label, if they have any.
        index_base: the number that text gives to the first column.
        features: how rows are made from text or tables.
    """

    heads: tuple[Given, ...]
    target: Target
    class_weights: Sequence[float] | None = None
    index_base: int | None = None
    features: Features | None = None
    kind = LinearModel.kind


def given_model(model: Any) -> Given | GivenHeads:
    """A model of hogwild, a file of a model, or a fitted estimator with `coef_`.

    Raises:
        ModelFileError: the file holds no model, or is damaged.
        HogwildError: the model is not linear, or has no label for each of its scores.
    """
    if isinstance(model, Given | GivenHeads):
        return model
    if isinstance(model, str | os.PathLike):
        return _read(Path(model))
    model = getattr(model, "model_", model)
    if hasattr(model, "coef_"):
        return _of_estimator(model)
    return _of_ours(model)


def _of_ours(model: Any) -> Given | GivenHeads:
    if not isinstance(model, LinearModel):
        raise HogwildError(
            f"a {getattr(model, 'kind', type(model).__name__)} model cannot be certified: give a "
            "linear model, its file, or a fitted estimator with coef_ and intercept_"
        )
    trained = model.about.get("options", {})
    options = {name: trained.get(name) for name in ("l2", "l1", "epsilon", "quantile")}
    options["loss"] = model.loss
    if isinstance(model, HeadsModel):
        pairs = zip(model.weights, model.intercept, strict=True)
        has_intercept, base = trained.get("intercept", True), model.index_base
        heads = (
            Given(w.astype(np.float64), float(b) if has_intercept else None, 0.0, AGAINST, options)
            for w, b in pairs
        )
        about = model.class_weights, base, model.features
        return GivenHeads(tuple(heads), model.target, *about)
    if model.kind != LinearModel.kind:
        raise HogwildError(
            "a model whose members vote cannot be certified: give one that is a single model"
        )
    if model.class_weights:
        options["class_weight"] = dict(zip(model.labels, model.class_weights, strict=True))
    return Given(
        model.weights.astype(np.float64),
        model.intercept if trained.get("intercept", True) else None,
        labels=model.labels or None,
        options=options,
        index_base=model.index_base,
        features=model.features,
    )


def _of_estimator(model: Any) -> Given | GivenHeads:
    """Of scikit-learn: LIBLINEAR penalizes the weight of a column that holds the intercept."""
    labels = getattr(model, "classes_", None)
    if hasattr(model, "support_vectors_") and labels is not None and len(labels) > 2:
        raise HogwildError(
            f"{type(model).__name__} learns each pair of classes, which cannot be certified: give "
            "a model of two classes, or of each class against the rest, such as LinearSVC's"
        )
    intercept = model.intercept_ if getattr(model, "fit_intercept", True) else None
    by_liblinear = getattr(model, "solver", "liblinear") == "liblinear"
    scaling = getattr(model, "intercept_scaling", 0.0) if by_liblinear else 0.0
    coef = model.coef_.toarray() if hasattr(model.coef_, "toarray") else model.coef_  # sparsify()
    return _of_arrays(coef, intercept, labels, float(scaling))


def _of_arrays(
    coef: Any, intercept: Any, labels: Any, penalized: float = 0.0
) -> Given | GivenHeads:
    lines = np.atleast_2d(np.asarray(coef, np.float64))
    classes = None if labels is None else tuple(np.asarray(labels).tolist())
    able = (len(lines),) if len(lines) > 1 else (0, 2)
    has = len(classes or ())
    if lines.ndim > 2 or not lines.size or has not in able:
        raise HogwildError(
            f"the model has weights of shape {np.shape(coef)} and {has} labels: give a line of "
            "weights for each label, or one line with two labels, or without labels for numbers"
        )
    if intercept is None:
        return _made(lines, None, 0.0, classes)
    biases = np.asarray(intercept, np.float64).ravel()
    if len(biases) != len(lines):
        raise HogwildError(
            f"the model has {len(biases):,} intercepts for {len(lines):,} lines of weights: give "
            "one for each, or none"
        )
    if penalized:
        return _made(np.column_stack([lines, biases / penalized]), None, penalized, classes)
    return _made(lines, biases, 0.0, classes)


def _made(
    lines: npt.NDArray[np.float64],
    biases: npt.NDArray[np.float64] | None,
    penalized: float,
    labels: Labels | None,
    **more: Any,
) -> Given | GivenHeads:
    """The model of a line of weights, or of several: one for each label."""
    intercepts = [None] * len(lines) if biases is None else biases.tolist()
    both = labels if len(lines) == 1 else AGAINST
    heads = [
        Given(line, bias, penalized, both, **more)
        for line, bias in zip(lines, intercepts, strict=True)
    ]
    if len(heads) == 1:
        return heads[0]
    return GivenHeads(tuple(heads), Classes(labels or ()), None, heads[0].index_base)


def _read(path: PathLike) -> Given | GivenHeads:
    """A model file, by its first bytes."""
    try:
        with Path(path).open("rb") as file:
            head = file.read(len(MAGIC))
    except OSError as problem:
        raise ModelFileError(f"cannot read the model {path}: {problem.strerror}") from problem
    if head == MAGIC:
        return _of_ours(load_model(path))
    if head.startswith(b"PK"):
        return _from_npz(path)
    if b"solver_type".startswith(head) and head:
        return _from_liblinear(path)
    raise ModelFileError(
        f"{path} is not a model: expected one of hogwild, LIBLINEAR's text, or an .npz with "
        f"{WEIGHTS[0]} (or {WEIGHTS[-1]})"
    )


def _from_npz(path: PathLike) -> Given | GivenHeads:
    """Arrays by scikit-learn's names or by ours."""
    try:
        with Path(path).open("rb") as file:
            archive = Arrays(str(path), file)
            arrays = {name: archive.any(name) for name in archive.archive.files}
    except (OSError, DataError) as problem:
        raise ModelFileError(f"the model cannot be read: {problem}") from problem
    weights, intercept, labels = (
        next((arrays[name] for name in names if name in arrays), None)
        for names in (WEIGHTS, INTERCEPT, LABELS)
    )
    numbers = [array.dtype.kind in "fiu" for array in (weights, intercept) if array is not None]
    if weights is None or not weights.ndim or not all(numbers):
        raise ModelFileError(
            f"{path} holds {', '.join(arrays) or 'no array'}; a model needs an array of numbers "
            f"named {' or '.join(WEIGHTS)}, and may have {INTERCEPT[0]} (numbers) and {LABELS[0]}"
        )
    return _of_arrays(weights, intercept, labels)


def _from_liblinear(path: PathLike) -> Given | GivenHeads:
    """LIBLINEAR's text: a head of names with values, and after `w` a line of weights a column.

    With two classes a line has one weight, and the first label is the positive one. With more
    classes, a line has one weight for each label. With a bias, there is one more column, on the
    last line.
    """
    head, _, body = Path(path).read_text(encoding="utf-8", errors="replace").partition("\nw\n")
    known = {name: rest for name, _, rest in (line.partition(" ") for line in head.splitlines())}
    try:
        solver, columns = known["solver_type"], int(known["nr_feature"])
        classes, bias = int(known["nr_class"]), float(known["bias"])
        labels = [float(word) for word in known.get("label", "").split()]
        weights = np.array(body.split(), np.float64)
    except (KeyError, ValueError) as problem:
        raise ModelFileError(f"{path} is not a model of LIBLINEAR: {problem}") from None
    if solver not in LIBLINEAR:
        raise HogwildError(
            f"{path}: the solver {solver} cannot be certified; known are {', '.join(LIBLINEAR)}"
        )
    if len(labels) == 1:
        raise HogwildError(f"{path}: the model has one class; give one of two classes")
    scores = classes if classes > 2 else 1
    if len(labels) != classes and (labels or scores > 1):
        raise ModelFileError(
            f"{path} is damaged: nr_class is {classes:,}, and there are {len(labels):,} labels"
        )
    wanted = scores * (columns + (bias >= 0))
    if len(weights) != wanted:
        raise ModelFileError(
            f"{path} is cut off or damaged: {wanted:,} weights are expected, and there are "
            f"{len(weights):,}"
        )
    lines = weights.reshape(-1, scores)[: columns if bias == 0 else None].T  # 0: of a column of 0
    names = tuple(labels if scores > 1 else labels[::-1]) or None
    known_loss = {"loss": LIBLINEAR[solver]}
    return _made(lines, None, max(0.0, bias), names, options=known_loss, index_base=1)
