"""From the parameters of estimators to the options of hogwild, and back in error messages."""

import numbers
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from hogwild.config import DEFAULTS
from hogwild.errors import OptionError, warn
from hogwild.learn.losses import loss_named
from hogwild.machine import usable_cores
from hogwild.results import Result

# Parameters of linear models whose option has another name
NAMES = {
    "l2": "alpha",
    "l1": "penalty",
    "epochs": "max_iter",
    "intercept": "fit_intercept",
    "workers": "n_jobs",
    "seed": "random_state",
    "early_stopping": "validation_fraction",
    "patience": "n_iter_no_change",
}
SAME = ("solver", "schedule", "eta0", "average", "strategy", "backend")


def loss_of(estimator: Any) -> str:
    """hogwild's name of the loss."""
    return str(loss_named(estimator.loss))


def linear_options(estimator: Any) -> dict[str, Any]:
    """The options that linear estimators have in common."""
    options = {name: getattr(estimator, name) for name in SAME}
    options |= {
        "loss": loss_of(estimator),
        "tol": 0.0 if estimator.tol is None else estimator.tol,  # None never stops early
        "intercept": estimator.fit_intercept,
        "workers": workers_of(estimator.n_jobs),
        "seed": seed_from(estimator.random_state),
        "patience": estimator.n_iter_no_change,
    }
    if estimator.early_stopping:
        options["early_stopping"] = estimator.validation_fraction
    return options | _penalties(estimator.penalty, estimator.alpha, estimator.l1_ratio)


def _penalties(penalty: str | None, alpha: Any, l1_ratio: Any) -> dict[str, Any]:
    """l1 and l2, as in scikit-learn: alpha * (l1_ratio * |w|_1 + (1 - l1_ratio) / 2 * |w|^2)."""
    if penalty not in ("l2", "l1", "elasticnet", None):
        raise OptionError(f"penalty: {penalty!r} is not one of l2, l1, elasticnet, None")
    if penalty == "elasticnet" and not (_is_number(l1_ratio) and 0 <= l1_ratio <= 1):
        raise OptionError(f"l1_ratio: must be a number from 0 to 1, not {l1_ratio!r}")
    if penalty is None:
        return {"l2": 0.0}
    if alpha is None and penalty != "l2":
        alpha = DEFAULTS["linear"]["l2"]
    if penalty == "l2" or not _is_number(alpha) or not alpha >= 0:
        return {"l2": alpha}  # `Config` checks the value
    share = 1.0 if penalty == "l1" else float(l1_ratio)
    return {"l1": share * alpha, "l2": (1 - share) * alpha}


def _is_number(value: Any) -> bool:
    return isinstance(value, numbers.Real) and not isinstance(value, bool)


def workers_of(n_jobs: int | None) -> int | None:
    """The number of workers that scikit-learn's `n_jobs` asks for; None: chosen automatically."""
    if n_jobs is None:
        return 1
    if not isinstance(n_jobs, numbers.Integral) or n_jobs == 0:
        raise OptionError(f"n_jobs must be None, -1 or a positive whole number, not {n_jobs!r}")
    if n_jobs == -1:
        return None
    return int(n_jobs) if n_jobs > 0 else max(1, usable_cores() + 1 + int(n_jobs))


def seed_from(random_state: Any) -> int:
    """A seed from scikit-learn's `random_state`."""
    if isinstance(random_state, numbers.Integral):
        return int(random_state)
    if random_state is None:
        random_state = np.random.mtrand._rand  # the one that np.random.seed sets
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(2**31 - 1))
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(2**31 - 1))
    raise OptionError(
        f"random_state must be None, a whole number or a generator, not {random_state!r}"
    )


def warn_of_limit(result: Result, name: str, tol: float | None) -> None:
    """Warns if the limit of epochs ended the training, unless `tol` is None, which asks for it."""
    if result.reason == "epochs" and tol:
        text = f"{name}: training stopped after {len(result.trace)} epochs, before it converged. "
        text += f"Increase {name} or tol; tol=None always runs all epochs"
        warn(text, ConvergenceWarning)


def named_as_in(call: Callable[[], Any], names: dict[str, str]) -> Any:
    """Calls a function; an error about options names them as the estimator does."""
    try:
        return call()
    except OptionError as problem:
        lines = str(problem).splitlines()
        for number, line in enumerate(lines):
            name, colon, rest = line.partition(":")
            lines[number] = names.get(name, name) + colon + rest
        raise OptionError("\n".join(lines)) from None
