"""Models for other programs. Scores there are the same as here.

A format is a function that makes the contents of a file from a model. To add a format, write the
function and name its suffix in `FORMATS`. If it also holds models of ratings, name it in
`OF_RATINGS`, too.
"""

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from hogwild.data.labels import as_written
from hogwild.errors import HogwildError, OptionError
from hogwild.extras import library
from hogwild.learn.losses import CLASSES, LABELS, LOSSES, SIGNS
from hogwild.model_file import Arrays
from hogwild.paths import PathLike, writing

Floats = npt.NDArray[np.float32]

FACTORS, VOTES = "factors", "votes"  # kinds of models that are not linear
LARGEST_ONNX = 2_000_000_000  # bytes, which its encoding can count
# LIBLINEAR's names of solvers with these losses
LIBLINEAR = {
    "logistic": "L2R_LR",
    "hinge": "L2R_L1LOSS_SVC_DUAL",
    "squared_hinge": "L2R_L2LOSS_SVC",
    "squared": "L2R_L2LOSS_SVR",
    "absolute": "L2R_L1LOSS_SVR_DUAL",
    "epsilon_insensitive": "L2R_L1LOSS_SVR_DUAL",
}
CONSTANT, FEWEST_BITS = 11650396, 18  # VW's feature of the intercept, and bits of its places
# scikit-learn's linear models of some losses, and its names of losses in those by SGD
SKLEARN = {
    "cross_entropy": "LogisticRegression",
    "quantile": "QuantileRegressor",
    "poisson": "PoissonRegressor",
}
SGD = {"logistic": "log_loss", "squared": "squared_error", "absolute": "epsilon_insensitive"}


def export(model: Any, path: PathLike) -> None:
    """Writes a model in the format that the suffix of the file names.

    Raises:
        OptionError: the suffix is unknown.
        HogwildError: the format cannot hold the model, or needs a library that is not installed.
    """
    suffix = Path(path).suffix.lower()
    if suffix not in FORMATS:
        raise OptionError(f"{path}: the name must end with {', '.join(FORMATS)}")
    if model.kind == FACTORS and suffix not in OF_RATINGS:
        able = ", ".join(OF_RATINGS)
        raise HogwildError(f"{suffix} files hold no model of ratings; those that do: {able}")
    contents = FORMATS[suffix](model)
    with writing(path) as file:
        file.write(contents)


def _linear(model: Any) -> tuple[Floats, Floats]:
    """The weights (heads x columns) and intercepts of a linear model."""
    if model.kind == VOTES:
        raise HogwildError(
            "a model whose members vote has no linear score: train with the merge mean"
        )
    return np.atleast_2d(model.weights), np.atleast_1d(np.asarray(model.intercept, np.float32))


def _arrays(model: Any) -> Arrays:
    """All of a model but its labels and ids, as it names them."""
    if model.kind == FACTORS:
        names = "user_factors", "item_factors", "user_biases", "item_biases", "mean"
        return {name: np.asarray(getattr(model, name)) for name in names}
    _linear(model)
    return {
        "weights": np.ascontiguousarray(model.weights),
        "intercept": np.asarray(model.intercept),
    }


def _words(model: Any) -> dict[str, Any]:
    """What may be text: ids, or labels and names of features."""
    if model.kind == FACTORS:
        ids = {"user_ids": model.user_ids.tolist(), "item_ids": model.item_ids.tolist()}
        return {"loss": model.loss} | ids
    names = {"feature_names": model.feature_names} if model.feature_names else {}
    labels = {"labels": list(model.labels)} if model.labels else {}
    return {"loss": model.loss} | labels | names


def npz(model: Any) -> bytes:
    """Numpy's archive, without pickles: `hogwild evaluate --certify` reads it, too."""
    file = io.BytesIO()
    words = {name: np.array(some) for name, some in _words(model).items()}
    np.savez(file, **_arrays(model), **words)  # type: ignore[arg-type]
    return file.getvalue()


def safetensors(model: Any) -> bytes:
    """The arrays are tensors; labels, ids and names are JSON in the metadata."""
    arrays, words = _arrays(model), _words(model)
    save = library("safetensors.numpy", "hogwild[safetensors]", "a .safetensors file").save
    metadata = {name: json.dumps(some) for name, some in words.items()}
    contents: bytes = save(arrays, metadata=metadata)
    return contents


def liblinear(model: Any) -> bytes:
    """LIBLINEAR's text: the first label is the positive one; the intercept is a column of ones."""
    weights, intercepts = _linear(model)
    labels = [as_written(label) for label in model.labels]
    solver = LIBLINEAR.get(model.loss)
    if solver is None or model.target.kind == LABELS or ("SVR" in solver) == bool(labels):
        what = f"{model.loss} loss and {model.target.kind} as targets"
        raise HogwildError(f"LIBLINEAR has no models with {what}")
    if not all(isinstance(label, int) for label in labels):
        shown = ", ".join(map(str, labels[:5]))
        raise HogwildError(f"LIBLINEAR's labels are whole numbers, and the model has {shown}")
    labels = [int(label) for label in (labels[::-1] if len(weights) == 1 else labels)]
    head = [f"solver_type {solver}", f"nr_class {max(2, len(labels))}"]
    head += [f"label {' '.join(map(str, labels))}"] if labels else []
    head += [f"nr_feature {model.columns}", "bias 1", "w"]
    body = (" ".join(f"{w:.9g}" for w in some) for some in np.column_stack([weights, intercepts]).T)
    return "\n".join([*head, *body, ""]).encode()


def vw(model: Any) -> bytes:
    """Vowpal Wabbit's readable text, for features named by their numbers in the training file.

    The weights of a feature lie side by side: the number of heads, rounded up to a power of two.
    """
    weights, intercepts = _linear(model)
    heads, base = len(weights), model.index_base or 0
    width, end = 1 << (heads - 1).bit_length(), base + model.columns
    bits = max(FEWEST_BITS, (width * end - 1).bit_length())
    while (constant := CONSTANT * width % 2**bits) < width * end:  # VW masks it: not on a weight
        bits += 1
        if end > CONSTANT:
            raise HogwildError(
                f"VW has its intercept in column {CONSTANT:,}, where the model has a weight"
            )
    reduction = {SIGNS: "", LABELS: f" --multilabel_oaa {heads}"}.get(model.target.kind, "")
    if model.target.kind == CLASSES:
        names = ",".join(str(as_written(label)) for label in model.labels)
        reduction = f" --oaa {heads} --named_labels {names}"
    head = ["Version 9.11.9", "Id ", "Min label:-50", "Max label:50", f"bits:{bits}", "lda:0"]
    head += ["0 ngram:", "0 skip:", f"options:{reduction}", ":0"]
    places = width * np.arange(base, end)[:, None] + np.arange(heads)
    body = [
        f"{place}:{weight:.9g}"
        for place, weight in zip(places.ravel(), weights.T.ravel(), strict=True)
        if weight
    ]
    body += [f"{constant + head}:{b:.9g}" for head, b in enumerate(intercepts) if b]
    return "\n".join([*head, *body, ""]).encode()


def onnx(model: Any) -> bytes:
    """A graph from X (float32, rows x columns) to scores, predictions and probabilities.

    With two classes, the score and the probability are those of the second class.
    """
    weights, intercepts = _linear(model)
    if weights.nbytes > LARGEST_ONNX:
        raise HogwildError(f"an ONNX file holds 2 GB, and the weights are {weights.nbytes:,} bytes")
    lib = library("onnx", "hogwild[onnx]", "an .onnx file")
    heads, kind = len(weights), model.target.kind
    labels = np.array([as_written(label) for label in model.labels])
    constants: list[Any] = []
    nodes: list[Any] = []

    def constant(name: str, value: Any) -> str:
        constants.append(lib.numpy_helper.from_array(np.ascontiguousarray(value), name))
        return name

    def node(operator: str, inputs: list[str], output: str, **more: Any) -> str:
        nodes.append(lib.helper.make_node(operator, inputs, [output], **more))
        return output

    def described(name: str, dtype: Any, *width: Any) -> Any:
        text = dtype.kind == "O"
        code = lib.TensorProto.STRING if text else lib.helper.np_dtype_to_tensor_dtype(dtype)
        return lib.helper.make_tensor_value_info(name, code, ["rows", *width])

    product = node("MatMul", ["X", constant("weights", weights.T)], "product")
    scores = node("Add", [product, constant("intercept", intercepts)], "scores")
    outputs = [described(scores, weights.dtype, heads)]
    if kind == CLASSES:
        place = node("ArgMax", [scores], "place", axis=1, keepdims=0)
    elif model.labels:
        positive = node("Greater", [scores, constant("zero", np.float32(0))], "positive")
        place = node("Cast", [positive], "place", to=lib.TensorProto.INT64)
    if model.labels:
        known = np.array([0, 1]) if kind == LABELS else labels
        known = known.astype(object) if known.dtype.kind == "U" else known
        node("Gather", [constant("labels", known), place], "prediction")
        outputs.append(described("prediction", known.dtype, *[heads][: kind != CLASSES]))
    else:
        node("Exp" if model.loss == "poisson" else "Identity", [scores], "prediction")
        outputs.append(described("prediction", weights.dtype, 1))
    if model.loss in ("cross_entropy", "logistic"):
        outputs.append(described("probability", weights.dtype, heads))
    if model.loss == "cross_entropy":
        node("Softmax", [scores], "probability", axis=1)
    elif model.loss == "logistic" and kind == CLASSES:  # scaled to a sum of 1
        each = node("Sigmoid", [scores], "each")
        total = node("ReduceSum", [each, constant("axes", np.array([1]))], "total")
        node("Div", [each, total], "probability")
    elif model.loss == "logistic":
        node("Sigmoid", [scores], "probability")
    given = [described("X", weights.dtype, model.columns)]
    graph = lib.helper.make_graph(nodes, "hogwild", given, outputs, constants)
    versions = {"opset_imports": [lib.helper.make_opsetid("", 17)], "ir_version": 8}
    made = lib.helper.make_model(graph, producer_name="hogwild", **versions)
    lib.checker.check_model(made)
    contents: bytes = made.SerializeToString()
    return contents


FORMATS: dict[str, Callable[[Any], bytes]] = {
    ".onnx": onnx,
    ".npz": npz,
    ".safetensors": safetensors,
    ".liblinear": liblinear,
    ".vw": vw,
}
OF_RATINGS = ".npz", ".safetensors"


def to_sklearn(model: Any) -> Any:
    """A fitted estimator of scikit-learn with the scores of a linear model, in float64.

    It is fitted to empty rows, and then gets the weights.
    """
    weights, intercepts = (some.astype(np.float64) for some in _linear(model))
    if model.loss == "exponential":
        raise HogwildError("scikit-learn has no linear model with the loss exponential")
    by_sgd = "SGDClassifier" if model.labels else "SGDRegressor"
    name = SKLEARN.get(model.loss, by_sgd)
    estimator = getattr(library("sklearn.linear_model", "hogwild[sklearn]", "to_sklearn"), name)()
    own = LOSSES[model.loss].parameter
    known = {"epsilon": 0.0} if model.loss == "absolute" else {}
    known = {own.option: model.parameter} if own else known
    loss = {"loss": SGD.get(model.loss, model.loss)} if name == by_sgd else {}
    estimator.set_params(**known, **loss)
    several = model.target.kind == LABELS
    labels = np.array([as_written(label) for label in model.labels])
    y = np.eye(len(labels), dtype=int) if several else labels if model.labels else np.ones(2)
    if several:
        many = library("sklearn.multiclass", "hogwild[sklearn]", "to_sklearn")
        estimator = many.OneVsRestClassifier(estimator)
    empty = library("scipy.sparse", "scipy", "to_sklearn").csr_matrix((len(y), model.columns))
    estimator.fit(empty, y)
    if model.feature_names:
        estimator.feature_names_in_ = np.array(model.feature_names, object)
    if len(weights) == 2 and not several:  # one score, the difference
        weights, intercepts = np.diff(weights, axis=0), np.diff(intercepts)
    parts = estimator.estimators_ if several else [estimator]
    for part, coef, intercept in zip(
        parts, np.split(weights, len(parts)), np.split(intercepts, len(parts)), strict=True
    ):
        part.coef_ = coef.reshape(np.shape(part.coef_))
        part.intercept_ = intercept.reshape(np.shape(part.intercept_))
    return estimator


def to_implicit(model: Any) -> Any:
    """An `implicit` model of the same scores.

    Two more factors hold the biases: (p, b_u + mean, 1) and (q, 1, b_i).
    """
    als = library("implicit.cpu.als", "implicit", "to_implicit").AlternatingLeastSquares
    made = als(factors=model.rank + 2)
    users, items = np.ones_like(model.user_biases), np.ones_like(model.item_biases)
    common = model.user_biases + np.float32(model.mean)
    made.user_factors = np.column_stack([model.user_factors, common, users])
    made.item_factors = np.column_stack([model.item_factors, items, model.item_biases])
    return made
