"""Linear models that others trained: LIBLINEAR's text, arrays in `.npz`, fitted estimators.

Weights stay in double precision, as they were found.
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from hogwild.data.rows import Labels
from hogwild.errors import HogwildError
from hogwild.learn.losses import LOSSES, SIGNS
from hogwild.learn.registry import load_model
from hogwild.learn.targets import Target
from hogwild.model_file import MAGIC, ModelFileError
from hogwild.models.heads import HeadsModel
from hogwild.models.linear import LinearModel
from hogwild.paths import PathLike

# LIBLINEAR's solvers, and the losses that they minimize. Others have a loss that is not known here
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
    """

    weights: npt.NDArray[np.float64]
    intercept: float | None
    penalized: float = 0.0
    labels: Labels | None = None
    options: dict[str, Any] = field(default_factory=dict)
    index_base: int | None = None
    kind = LinearModel.kind


@dataclass(frozen=True)
class GivenHeads:
    """A model of several classes or labels, each learned against the rest.

    Attributes:
        heads: the model of each; its labels are -1 and 1.
        target: the kind of targets, with their labels.
        class_weights: the weight of each label, if they have any.
        index_base: the number that text gives to the first column.
    """

    heads: tuple[Given, ...]
    target: Target
    class_weights: Sequence[float] | None = None
    index_base: int | None = None
    kind = LinearModel.kind


def given_model(model: Any) -> Given | GivenHeads:
    """A model of hogwild, a file of a model, or a fitted estimator with `coef_`.

    Raises:
        ModelFileError: the file holds no model, or is damaged.
        HogwildError: the model is not linear, or of several classes and not of hogwild.
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
    if isinstance(model, HeadsModel) and SIGNS in LOSSES[model.loss].kinds:
        pairs = zip(model.weights, model.intercept, strict=True)
        has_intercept, base = trained.get("intercept", True), model.index_base
        heads = (
            Given(w.astype(np.float64), float(b) if has_intercept else None, 0.0, AGAINST, options)
            for w, b in pairs
        )
        return GivenHeads(tuple(heads), model.target, model.class_weights, base)
    if model.kind != LinearModel.kind:
        what = "whose members vote" if model.kind == "votes" else "of several classes together"
        raise HogwildError(f"a model {what} cannot be certified: give one with one score a row")
    if model.class_weights:
        options["class_weight"] = dict(zip(model.labels, model.class_weights, strict=True))
    return Given(
        model.weights.astype(np.float64),
        model.intercept if trained.get("intercept", True) else None,
        labels=model.labels or None,
        options=options,
        index_base=model.index_base,
    )


def _of_estimator(model: Any) -> Given:
    """Of scikit-learn: LIBLINEAR penalizes the weight of a column that holds the intercept."""
    intercept = model.intercept_ if getattr(model, "fit_intercept", True) else None
    by_liblinear = getattr(model, "solver", "liblinear") == "liblinear"
    scaling = getattr(model, "intercept_scaling", 0.0) if by_liblinear else 0.0
    return _of_arrays(model.coef_, intercept, getattr(model, "classes_", None), float(scaling))


def _of_arrays(coef: Any, intercept: Any, labels: Any, penalized: float = 0.0) -> Given:
    weights, classes = np.asarray(coef, np.float64), None
    if labels is not None:
        classes = tuple(np.asarray(labels).tolist())
    if weights.size != weights.shape[-1] or (classes is not None and len(classes) != 2):
        raise _several(len(classes) if classes else len(weights))
    weights = weights.ravel()
    if intercept is None:
        return Given(weights, None, labels=classes)
    bias = float(np.asarray(intercept, np.float64).ravel()[0])
    if not penalized:
        return Given(weights, bias, labels=classes)
    return Given(np.append(weights, bias / penalized), None, penalized, classes)


def _several(count: int) -> HogwildError:
    return HogwildError(
        f"a model of {count} classes cannot be certified: give one of two classes, or one class "
        "against the rest"
    )


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


def _from_npz(path: PathLike) -> Given:
    """Arrays by scikit-learn's names or by ours."""
    try:
        with np.load(path, allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files}
    except (OSError, ValueError) as problem:
        raise ModelFileError(f"{path} is damaged: {problem}") from problem
    weights, intercept, labels = (
        next((arrays[name] for name in names if name in arrays), None)
        for names in (WEIGHTS, INTERCEPT, LABELS)
    )
    if weights is None or not weights.ndim or weights.dtype.kind not in "fiu":
        raise ModelFileError(
            f"{path} holds {', '.join(arrays) or 'no array'}; a model needs an array of numbers "
            f"named {' or '.join(WEIGHTS)}, and may have {INTERCEPT[0]} and {LABELS[0]}"
        )
    return _of_arrays(weights, intercept, labels)


def _from_liblinear(path: PathLike) -> Given:
    """LIBLINEAR's text: a head of names with values, and a weight a line after `w`.

    The first label is the positive one. With a bias, the last weight is that of one more column.
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
    if classes > 2:
        raise _several(classes)
    wanted = columns + (bias >= 0)
    if len(weights) != wanted:
        raise ModelFileError(
            f"{path} is cut off or damaged: {wanted:,} weights are expected, and there are "
            f"{len(weights):,}"
        )
    if len(labels) == 1:
        raise HogwildError(f"{path}: the model has one class; give one of two classes")
    if bias == 0:  # a column of zeros
        weights = weights[:-1]
    both = (labels[1], labels[0]) if labels else None
    return Given(weights, None, max(0.0, bias), both, {"loss": LIBLINEAR[solver]}, 1)
