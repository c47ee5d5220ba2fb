"""scikit-learn's SGD, one thread, as it is measured beside ours.

It gets a float32 matrix with 32-bit indices: on float64 it is slower. Its epochs are counted in
seconds of its thread: other work on the machine does not lengthen them, and never helps us.
"""

import time
from collections.abc import Callable
from functools import partial
from typing import Any

try:
    from sklearn import __version__ as version
    from sklearn.linear_model import SGDClassifier, SGDRegressor
except ImportError:
    raise SystemExit(
        "error: scikit-learn is not installed; make speed installs it, or pip install scikit-learn"
    ) from None

__all__ = ["epoch_calls", "epoch_seconds", "fitted", "version"]

LOSSES = {"hinge": "hinge", "logistic": "log_loss", "squared": "squared_error"}
SHORTEST = 1e-9  # seconds, of an epoch that measures as less than nothing


def fitted(X: Any, y: Any, loss: str, l2: float, epochs: int, average: bool = False) -> Any:
    """The result of `fit` with this number of epochs."""
    kind = SGDRegressor if loss == "squared" else SGDClassifier
    options: dict[str, Any] = {"tol": None, "average": average, "random_state": 0}
    return kind(loss=LOSSES[loss], alpha=l2, max_iter=epochs, **options).fit(X, y)


def epoch_calls(
    X: Any, y: Any, loss: str, l2: float, further: int
) -> dict[str, Callable[[], float]]:
    """What to time to separate an epoch from the fixed cost of `fit`: one epoch, and several."""
    counts = {"one": 1, "more": 1 + further}
    return {name: partial(_fit_seconds, X, y, loss, l2, count) for name, count in counts.items()}


def epoch_seconds(found: dict[str, float], further: int) -> float:
    """Seconds that each further epoch adds, by the best results of those calls."""
    return max((found["more"] - found["one"]) / further, SHORTEST)


def _fit_seconds(X: Any, y: Any, loss: str, l2: float, epochs: int) -> float:
    began = time.thread_time()
    fitted(X, y, loss, l2, epochs)
    return time.thread_time() - began
