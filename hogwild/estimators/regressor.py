"""`HogwildRegressor`: a linear regression for scikit-learn."""

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from sklearn.base import RegressorMixin

from hogwild.data.rows import Rows
from hogwild.estimators.epochs import for_callbacks, with_callbacks
from hogwild.estimators.linear import LinearEstimator
from hogwild.estimators.parameters import loss_of
from hogwild.learn.losses import LOSSES
from hogwild.models.linear import LinearModel
from hogwild.trace import Row


@dataclass(eq=False, repr=False, kw_only=True)
class HogwildRegressor(RegressorMixin, LinearEstimator):
    """Linear regression trained on several cores, by default with a proof of how good it is.

    X may be a dense array, a sparse matrix or array, a data frame, or `hogwild.Rows` with targets
    (leave out y). Float32 CSR data is used without a copy.

    Args:
        loss: squared (or squared_error), absolute (or absolute_error), huber, epsilon_insensitive,
            quantile, poisson (for counts: `predict` gives exp(score)).
        epsilon: the error at which huber becomes linear, or that epsilon_insensitive ignores.
        quantile: which quantile the loss quantile predicts.

    All other parameters and attributes are those of `HogwildClassifier`, except for the shape
    (features,) of `coef_`.
    """

    loss: str = field(default="squared_error", kw_only=False)
    epsilon: float = 0.1
    quantile: float = 0.5

    y_numeric: ClassVar[bool] = True

    @with_callbacks
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> "HogwildRegressor":
        """Trains on X and its targets y."""
        new, task = self._is_new(self.warm_start), for_callbacks(X, y, sample_weight)
        return self._fit(self._rows(X, y, sample_weight, new), new, task)

    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> "HogwildRegressor":
        """Trains one more epoch, on this data."""
        new = self._is_new_in_parts()
        return self._fit(self._rows(X, y, sample_weight, new), new, None)

    def _fit(self, rows: Rows, new: bool, task: Row | None) -> "HogwildRegressor":
        loss = LOSSES.get(loss_of(self))
        names = [loss.parameter.option] if loss and loss.parameter else []
        own = {name: getattr(self, name) for name in names}  # the loss ignores other parameters
        self._train(rows, new, task, task="regression", **own)
        return self

    def _attributes(self, model: LinearModel) -> Row:
        intercept = np.atleast_1d(model.intercept)
        return {"model_": model, "coef_": model.weights, "intercept_": intercept}

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """The expected target of each row."""
        rows = self._scored(X)
        return self.model_.predict(rows)
