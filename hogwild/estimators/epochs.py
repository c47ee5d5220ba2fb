"""What estimators do at the end of each epoch: the objective, and scikit-learn's callbacks."""

from collections.abc import Callable
from typing import Any

import numpy as np

try:
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ImportError:  # before scikit-learn 1.9, estimators have no `set_callbacks`

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """An empty mixin for older versions."""

    def with_callbacks(method: Any) -> Any:
        return method


from hogwild.callbacks import Callback
from hogwild.data.rows import Rows
from hogwild.trace import Row

__all__ = ["CallbackSupportMixin", "Epochs", "for_callbacks", "with_callbacks"]


def for_callbacks(X: Any, y: Any, sample_weight: Any) -> Row:
    """The arguments of `fit`, in the form that callbacks get."""
    if isinstance(X, Rows) and isinstance(X.y, np.ndarray):
        y = X.y
    metadata = None if sample_weight is None else {"sample_weight": sample_weight}
    return {"X": X, "y": y, "metadata": metadata}


class Epochs(Callback):
    """Gives every epoch an objective, and makes it a task below that of `fit`.

    `given` is X, y and metadata, as `fit` got them. `attributes` makes the attributes of an
    estimator from a model.
    """

    def __init__(
        self, estimator: Any, most: int | None, given: Row, attributes: Callable[[Any], Row]
    ) -> None:
        self._estimator, self._given, self._attributes = estimator, given, attributes
        self._fit: Any = None
        if hasattr(estimator, "set_callbacks"):
            self._fit = estimator._init_callback_context(max_subtasks=most)
            self._fit.call_on_fit_task_begin(estimator=estimator, **given)
        self._task: Any = None

    def begin(self, epoch: int) -> None:
        """Begins a task, unless the task of a failed epoch is still open."""
        if self._fit and not self._task:
            self._task = self._fit.subcontext(task_name="epoch")
            self._task.call_on_fit_task_begin(estimator=self._estimator, **self._given)

    def epoch(self, row: Row) -> None:
        """Ends the epoch's task; a callback that returns True ends the training."""
        self.run.measured()
        if self._task:
            task, self._task = self._task, None
            if task.call_on_fit_task_end(
                estimator=self._estimator,
                reconstruction_attributes=lambda: self._attributes(self.run.model()),
                **self._given,
            ):
                self.run.stop()

    def finish(self) -> None:
        """Ends the task of `fit`, whose estimator has all its attributes now."""
        if self._fit:
            self._fit.call_on_fit_task_end(
                estimator=self._estimator, reconstruction_attributes={}, **self._given
            )
