"""The scikit-learn face: `HogwildClassifier`, usable with and without scikit-learn.

What `hogwild.factorization` shares with it is here, too.
"""

import inspect
import numbers
from collections.abc import Callable
from types import MethodType
from typing import Any

import numpy as np
import numpy.typing as npt

from hogwild.coordinator import State
from hogwild.data.rows import Rows
from hogwild.errors import OptionError
from hogwild.problems.linear_model import LinearModel
from hogwild.problems.losses import LOSSES
from hogwild.trace import Row
from hogwild.training import train

__all__ = [
    "BaseEstimator",
    "HogwildClassifier",
    "NotFittedError",
    "named_as_in",
    "seed_from",
    "workers_of",
]

# scikit-learn's names for some losses
ALIASES = {"log_loss": "logistic", "squared_error": "squared"}

try:
    from sklearn.base import BaseEstimator, ClassifierMixin
    from sklearn.exceptions import NotFittedError
except ImportError:

    class NotFittedError(ValueError, AttributeError):  # type: ignore[no-redef]
        """Asked to predict before it was fitted."""

    class ClassifierMixin:  # type: ignore[no-redef]
        """What scikit-learn's class of this name gives, as far as it is needed."""

        def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
            """The share of rows that are predicted right."""
            right = self.predict(X) == np.asarray(y)  # type: ignore[attr-defined]
            return float(np.average(right, weights=sample_weight))

    class BaseEstimator:  # type: ignore[no-redef]
        """What scikit-learn's class of this name gives, as far as it is needed."""

        def get_params(self, deep: bool = True) -> dict[str, Any]:
            """The parameters by name."""
            names = list(inspect.signature(type(self)).parameters)
            return {name: getattr(self, name) for name in names}

        def set_params(self, **params: Any) -> "BaseEstimator":
            """Sets parameters by name."""
            known = self.get_params()
            for name, value in params.items():
                if name not in known:
                    raise ValueError(f"no parameter {name!r}; there are {', '.join(known)}")
                setattr(self, name, value)
            return self


class _where_the_loss_gives_odds:  # noqa: N801
    """Makes a method that is not there (to `hasattr`) for losses without probabilities."""

    def __init__(self, method: Callable[..., Any]) -> None:
        self._method = method
        self.__doc__ = method.__doc__

    def __get__(self, classifier: Any, owner: Any = None) -> Any:
        if classifier is None:
            return self._method
        loss = ALIASES.get(classifier.loss, classifier.loss)
        if loss in LOSSES and LOSSES[loss].probability is None:
            raise AttributeError(f"the loss {loss} gives no probabilities; logistic does")
        return MethodType(self._method, classifier)


class HogwildClassifier(ClassifierMixin, BaseEstimator):
    """A sparse linear classifier of two classes, trained by Hogwild! SGD.

    Args:
        loss: hinge (a linear SVM), squared_hinge, logistic (or log_loss), squared (or
            squared_error), modified_huber, exponential, perceptron.
        alpha: weight of the penalty alpha/2 * |w|^2.
        max_iter: passes over the data, at most.
        tol: stop when two epochs in a row each lower the loss by less than this share of it; None
            to do all of `max_iter`.
        fit_intercept: learn an intercept, which is not penalised.
        n_jobs: worker processes; None for one, -1 for as many as pay on this data,
            of all cores that may be used.
        random_state: seed of the order of the rows. One worker and one seed give the same bytes.
        schedule, eta0, average, strategy, backend: as in `hogwild.Config`.

    Attributes:
        coef_: the weights, of shape (1, columns), float32.
        intercept_: the intercept, of shape (1,).
        classes_: the two labels, in order.
        n_iter_: epochs done.
        history_: a dict for every epoch; the objective stands in the last one.
        model_: the `hogwild.LinearModel`.
    """

    def __init__(
        self,
        loss: str = "hinge",
        *,
        alpha: float = 1e-4,
        max_iter: int = 20,
        tol: float | None = 1e-3,
        fit_intercept: bool = True,
        n_jobs: int | None = None,
        random_state: Any = None,
        schedule: str = "inverse",
        eta0: float | None = None,
        average: bool = True,
        strategy: str = "auto",
        backend: str = "process",
    ) -> None:
        self.loss = loss
        self.alpha = alpha
        self.max_iter = max_iter
        self.tol = tol
        self.fit_intercept = fit_intercept
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.schedule = schedule
        self.eta0 = eta0
        self.average = average
        self.strategy = strategy
        self.backend = backend

    def fit(self, X: Any, y: Any = None) -> "HogwildClassifier":
        """Trains on X (scipy sparse, an array, or `hogwild.Rows` with labels) and its labels y."""
        rows = _rows(X, y)
        self._forget()
        return self._train(rows, self.max_iter, rows.labels)

    def partial_fit(self, X: Any, y: Any = None, classes: Any = None) -> "HogwildClassifier":
        """One more epoch, over these rows. The first call needs `classes` if y lacks one."""
        rows = _rows(X, y)
        fresh = not hasattr(self, "classes_")
        if fresh:
            self._forget()
        elif classes is not None and list(np.unique(classes)) != list(self.classes_):
            raise ValueError(
                f"classes are {list(self.classes_)} since the first call to partial_fit"
            )
        known = classes if fresh and classes is not None else None if fresh else self.classes_
        labels = rows.labels if known is None else _two(known)
        return self._train(rows, 1, labels)

    def _forget(self) -> None:
        self.history_: list[Row] = []
        self._state: State | None = None

    def _train(self, rows: Rows, epochs: int, labels: tuple[Any, Any]) -> "HogwildClassifier":
        result = named_as_in(
            lambda: train(
                rows,
                start=self._state,
                labels=labels,
                task="svm",
                loss=ALIASES.get(self.loss, self.loss),
                l2=self.alpha,
                epochs=epochs,
                tol=0.0 if self.tol is None else self.tol,
                intercept=self.fit_intercept,
                workers=workers_of(self.n_jobs),
                seed=seed_from(self.random_state),
                schedule=self.schedule,
                eta0=self.eta0,
                average=self.average,
                strategy=self.strategy,
                backend=self.backend,
                objective_every=0,
            ),
            NAMES,
        )
        self._state = result.state
        self.model_: LinearModel = result.model
        self.classes_ = np.array(labels)
        self.coef_ = result.model.weights.reshape(1, -1)
        self.intercept_ = np.array([result.model.intercept])
        self.n_features_in_ = rows.columns
        self.history_ = self.history_ + result.trace
        self.n_iter_ = len(self.history_)
        if result.reason == "interrupted":
            raise KeyboardInterrupt  # what was learned so far is in place
        return self

    def decision_function(self, X: Any) -> npt.NDArray[np.float32]:
        """The score of each row; positive ones go to the second class."""
        return self._fitted().decision_function(X)

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """The class of each row."""
        positive = self.decision_function(X) > 0
        return self.classes_[positive.astype(np.intp)]

    @_where_the_loss_gives_odds
    def predict_proba(self, X: Any) -> npt.NDArray[np.float64]:
        """The probability of each class, for losses that give one (logistic, modified_huber)."""
        return self._fitted().predict_proba(X)

    def _fitted(self) -> LinearModel:
        if not hasattr(self, "model_"):
            raise NotFittedError("this HogwildClassifier is not fitted yet; call fit first")
        return self.model_

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.classifier_tags.multi_class = False
        return tags


def _rows(X: Any, y: Any) -> Rows:
    if isinstance(X, Rows) and y is None:
        return X
    if y is None:
        raise ValueError("y is missing: a classifier needs the label of every row")
    return Rows(X, y)


def _two(classes: Any) -> tuple[Any, Any]:
    values = np.unique(np.asarray(classes))
    if len(values) != 2:
        raise ValueError(f"classes must be two values, not {len(values)}: {values.tolist()}")
    return values[0].item(), values[1].item()


def workers_of(n_jobs: int | None) -> int | None:
    """How many workers scikit-learn's `n_jobs` asks for; None for as many as pay."""
    from hogwild.machine import usable_cores

    if n_jobs is None:
        return 1
    if not isinstance(n_jobs, numbers.Integral) or n_jobs == 0:
        raise ValueError(f"n_jobs must be None, -1 or a positive whole number, not {n_jobs!r}")
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
    raise ValueError(
        f"random_state must be None, a whole number or a generator, not {random_state!r}"
    )


NAMES = {
    "l2": "alpha",
    "epochs": "max_iter",
    "intercept": "fit_intercept",
    "workers": "n_jobs",
    "seed": "random_state",
}


def named_as_in(call: Any, names: dict[str, str]) -> Any:
    """Calls; an error about options names them as an estimator does."""
    try:
        return call()
    except OptionError as problem:
        lines = str(problem).splitlines()
        for number, line in enumerate(lines):
            name, colon, rest = line.partition(":")
            lines[number] = names.get(name, name) + colon + rest
        raise OptionError("\n".join(lines)) from None
