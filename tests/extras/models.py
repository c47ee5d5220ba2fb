"""Reads exported models with the libraries that they are for: scores must be equal to 1e-6.

    python tests/extras/models.py

It makes an environment in `.extras/models`, with what the package needs and with these libraries.
One that cannot be installed is named, and is not tried.
"""

import importlib
import json
import os
import subprocess
import sys
import tempfile
import tomllib
import venv
from collections.abc import Callable
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

CHECKOUT = Path(__file__).resolve().parents[2]
HOME = CHECKOUT / ".extras" / "models"
PYTHON = HOME / "bin" / "python"
INSIDE = "HOGWILD_EXTRAS_INSIDE"
EXACT = 1e-6
ROWS, COLUMNS = 300, 40


def install() -> None:
    """Makes the environment, or adds what it lacks."""
    if not PYTHON.exists():
        venv.create(HOME, with_pip=True)
    project = tomllib.loads((CHECKOUT / "pyproject.toml").read_text())["project"]
    pip = [str(PYTHON), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    pip += ["--constraint", str(CHECKOUT / "constraints.txt")]
    subprocess.run([*pip, *project["dependencies"]], check=True)
    for package, _ in CHECKS.values():
        done = subprocess.run([*pip, *package.split()], capture_output=True, text=True, check=False)
        if done.returncode:
            print(f"{package} cannot be installed: {done.stderr.strip().splitlines()[-1]}")


def equal(ours: Any, theirs: Any) -> None:
    """Scores of the same rows, as far as single precision goes."""
    ours, theirs = np.asarray(ours, float), np.asarray(theirs, float).reshape(np.shape(ours))
    worst = np.abs(ours - theirs).max() / max(1.0, np.abs(ours).max())
    assert worst <= EXACT, worst


def made() -> dict[str, Any]:
    """A model of each kind of targets, with labels of several types."""
    random = np.random.default_rng(0)
    scores = X @ random.normal(size=(COLUMNS, 3))
    signs = np.where(scores[:, 0] > 0, 1.0, -1.0)
    names = np.array(["ham", "spam", "egg"])
    kinds: dict[str, tuple[Any, dict[str, Any]]] = {
        "two": (signs, {"task": "logistic"}),
        "margin": (signs > 0, {"task": "svm"}),
        "text": (names[(scores[:, 0] > 0).astype(int)], {"task": "logistic"}),
        "rest": (scores.argmax(axis=1) + 3, {"task": "logistic"}),
        "softmax": (names[scores.argmax(axis=1)], {"task": "softmax"}),
        "pair": (names[(scores[:, 0] > 0).astype(int)], {"task": "softmax"}),
        "labels": ((scores > 0.5).astype(int), {"task": "logistic"}),
        "squared": (scores[:, 0], {"task": "regression"}),
        "quantile": (scores[:, 0], {"task": "regression", "loss": "quantile", "quantile": 0.3}),
        "counts": (np.abs(scores[:, 0]).round(), {"task": "regression", "loss": "poisson"}),
    }
    return {
        name: hogwild.train(hogwild.Rows(X, y), epochs=5, workers=1, **options).model
        for name, (y, options) in kinds.items()
    }


def check_scikit_learn() -> None:
    for name, model in MODELS.items():
        theirs, ours = model.to_sklearn(), model.decision_function(X)
        if name == "pair":
            ours = np.diff(ours)[:, 0]
        regression = not model.labels
        exp = np.exp if name == "counts" else np.array
        equal(exp(ours), theirs.predict(X) if regression else theirs.decision_function(X))
        if not regression:
            assert np.array_equal(theirs.predict(X), model.predict(X))
        if model.loss in ("logistic", "cross_entropy"):
            equal(model.predict_proba(X), theirs.predict_proba(X))


def check_onnx() -> None:
    runtime = importlib.import_module("onnxruntime")
    for name, model in MODELS.items():
        model.export("m.onnx")
        session = runtime.InferenceSession("m.onnx", providers=["CPUExecutionProvider"])
        found = session.run(None, {"X": X})
        got = dict(zip((out.name for out in session.get_outputs()), found, strict=True))
        equal(model.decision_function(X), got["scores"])
        predicted = model.predict(X)
        if model.labels:
            assert np.array_equal(got["prediction"].reshape(predicted.shape), predicted), name
        else:
            equal(predicted, got["prediction"])
        if "probability" in got:
            ours = model.predict_proba(X)
            equal(ours[:, 1] if model.weights.ndim == 1 else ours, got["probability"])


def check_safetensors() -> None:
    opened = importlib.import_module("safetensors").safe_open
    for model in MODELS.values():
        model.export("m.safetensors")
        with opened("m.safetensors", "numpy") as file:
            weights, intercept = file.get_tensor("weights"), file.get_tensor("intercept")
            labels = json.loads(file.metadata().get("labels", "[]"))
        equal(model.decision_function(X), X @ weights.T + intercept)
        assert labels == list(model.labels)
    FACTORS.export("m.safetensors")
    with opened("m.safetensors", "numpy") as file:
        assert np.array_equal(file.get_tensor("item_factors"), FACTORS.item_factors)
        assert json.loads(file.metadata()["user_ids"]) == FACTORS.user_ids.tolist()


def check_liblinear() -> None:
    liblinear = importlib.import_module("liblinear.liblinearutil")
    for name in ("two", "margin", "rest", "absolute"):
        model = (
            MODELS.get(name)
            or hogwild.train(
                hogwild.Rows(X, X[:, 0]), task="regression", loss="absolute", epochs=5
            ).model
        )
        model.export("m.liblinear")
        known = liblinear.load_model("m.liblinear")
        labels, _, scores = liblinear.predict([], X.astype(float), known, "-q")
        equal(model.decision_function(X), scores)
        if model.labels:
            assert np.array_equal(labels, model.predict(X))


def check_vowpal_wabbit() -> None:
    """VW writes such text, but reads none: weights are set one by one, by their places."""
    workspace = importlib.import_module("vowpalwabbit").Workspace
    for name in ("two", "rest", "labels", "squared"):
        model = MODELS[name]
        model.export("m.vw")
        head, body = Path("m.vw").read_text().split("\n:0\n")
        bits = head.partition("bits:")[2].split()[0]
        options = head.partition("options:")[2].strip()
        heads = len(np.atleast_2d(model.weights))
        # Another reduction: what oaa and multilabel_oaa predict are labels
        reduction = f"--oaa {heads} --scores" if options else ""
        limits = "--min_prediction -999 --max_prediction 999"
        vw = workspace(f"--quiet -b {bits} {limits} {reduction}")
        for line in body.split():
            place, weight = line.split(":")
            vw.set_weight(int(place), 0, float(weight))
        rows = (" ".join(f"{at}:{value:.9g}" for at, value in enumerate(row) if value) for row in X)
        equal(model.decision_function(X), [vw.predict(f"| {row}") for row in rows])
        vw.finish()
        assert options.partition(" ")[0] == {"rest": "--oaa", "labels": "--multilabel_oaa"}.get(
            name, ""
        )


def check_implicit() -> None:
    sparse = importlib.import_module("scipy.sparse")
    items = len(FACTORS.item_ids)
    model, none = FACTORS.to_implicit(), sparse.csr_matrix((1, items))
    for user in FACTORS.user_ids.tolist():
        ids, scores = FACTORS.recommend(user, items)
        code = FACTORS.user_ids.codes_of(user)[0]
        found = model.recommend(code, none, N=items, filter_already_liked_items=False)
        assert np.array_equal(ids, FACTORS.item_ids.take(found[0]))
        equal(scores, found[1])


def check_matplotlib() -> None:
    from hogwild.cli import main

    hogwild.save(hogwild.Rows(X, np.sign(X[:, 0] + 0.1)), "rows.svm")
    common = ["train", "rows.svm", "--task", "logistic", "--quiet"]
    assert main([*common, "--model", "m.hog", "--trace", "t.jsonl"]) == 0
    for suffix, begin in (("png", b"\x89PNG"), ("svg", b"<?xml")):
        with redirect_stdout(StringIO()):
            assert main(["plot", "t.jsonl", "--output", f"curves.{suffix}"]) == 0
            assert main(["evaluate", "m.hog", "rows.svm", "--plot", f"roc.{suffix}"]) == 0
        for name in ("curves", "roc"):
            assert Path(f"{name}.{suffix}").read_bytes().startswith(begin)


CHECKS: dict[str, tuple[str, Callable[[], None]]] = {
    "sklearn": ("scikit-learn", check_scikit_learn),
    "onnxruntime": ("onnx onnxruntime==1.31.1", check_onnx),
    "safetensors": ("safetensors", check_safetensors),
    "liblinear": ("liblinear-official==2.50.0", check_liblinear),
    "vowpalwabbit": ("vowpalwabbit==9.11.9", check_vowpal_wabbit),
    "implicit": ("implicit==0.7.3", check_implicit),
    "matplotlib": ("matplotlib", check_matplotlib),
}

if __name__ == "__main__" and INSIDE not in os.environ:
    install()
    inside = os.environ | {INSIDE: "1", "PYTHONPATH": str(CHECKOUT), "OPENBLAS_NUM_THREADS": "1"}
    with tempfile.TemporaryDirectory() as folder:
        command = [str(PYTHON), "-W", "ignore", str(Path(__file__).resolve())]
        sys.exit(subprocess.run(command, cwd=folder, env=inside, check=False).returncode)

if __name__ == "__main__":
    import numpy as np

    import hogwild

    random = np.random.default_rng(1)
    X = random.normal(size=(ROWS, COLUMNS)).astype(np.float32)
    X[random.random(X.shape) < 0.7] = 0
    MODELS = made()
    pairs = random.integers(0, (20, 30), (400, 2))
    ratings = hogwild.Ratings(pairs[:, 0], pairs[:, 1], random.normal(size=400))
    FACTORS = hogwild.train(ratings, rank=4, epochs=5, workers=1).model
    for module, (package, check) in CHECKS.items():
        try:
            importlib.import_module(module)
        except ImportError as problem:
            print(f"{package}: not tried ({problem})")
            continue
        check()
        print(f"{package}: {'pictures' if module == 'matplotlib' else 'scores are equal'}")
