"""The common part of the linear estimators: from X, y and parameters to a trained model."""

from abc import abstractmethod
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted, validate_data

from hogwild.data.rows import Rows
from hogwild.errors import DataError, DivergenceError, OptionError, warn
from hogwild.estimators.epochs import CallbackSupportMixin, Epochs
from hogwild.estimators.parameters import NAMES, linear_options, named_as_in, warn_of_limit
from hogwild.learn.choosing import SGD
from hogwild.learn.used_columns import USED
from hogwild.loops.strategies import AUTO
from hogwild.models.linear import LinearModel
from hogwild.results import State
from hogwild.trace import Row
from hogwild.training import train


@dataclass(eq=False, repr=False, kw_only=True)
class LinearEstimator(CallbackSupportMixin, BaseEstimator):
    """A linear model that learns and scores rows. Fields are the parameters of scikit-learn."""

    loss: str = field(kw_only=False)
    alpha: float | None = 1e-4
    penalty: str | None = "l2"
    l1_ratio: float = 0.15
    max_iter: int | None = None
    tol: float | None = 1e-3
    fit_intercept: bool = True
    n_jobs: int | None = None
    random_state: Any = None
    solver: str = "auto"
    schedule: str | None = None
    eta0: float | None = None
    average: bool = True
    strategy: str = "auto"
    backend: str = "process"
    warm_start: bool = False
    early_stopping: bool = False
    validation_fraction: float = 0.1
    n_iter_no_change: int = 2
    verbose: int = 0

    y_numeric: ClassVar[bool] = False  # whether y must be numbers

    def _is_new(self, goes_on: bool) -> bool:
        """Whether training begins from zero, given whether it would continue from a model."""
        return not (goes_on and hasattr(self, "model_"))

    def _is_new_in_parts(self) -> bool:
        """As `_is_new` for `partial_fit`, which refuses options that need all rows at once."""
        for name, value in (("early_stopping", True), ("class_weight", "balanced")):
            if getattr(self, name, None) == value:
                raise OptionError(
                    f"{name}: {value!r} needs all rows at once, and partial_fit has only some; "
                    "use fit"
                )
        return self._is_new(goes_on=True)

    def _rows(self, X: Any, y: Any, sample_weight: Any, new: bool) -> Rows:
        """The rows to learn from; a new model takes the names of the features from X."""
        if new:  # even if this call fails, no model with other features must remain
            for name in ("model_", "feature_names_in_"):
                self.__dict__.pop(name, None)
        if isinstance(X, Rows):
            return self._given_rows(X, y, sample_weight, new)
        X, y = validate_data(
            self,
            X,
            y,
            reset=new,
            accept_sparse="csr",
            ensure_all_finite=False,  # `Rows` checks, in a pass that it needs anyway
            y_numeric=self.y_numeric,
            multi_output=self._has_several(y),
        )
        rows = Rows(X, y, sample_weight=sample_weight, name="X")
        names = getattr(self, "feature_names_in_", None)
        rows.feature_names = None if names is None else names.tolist()
        return rows

    def _has_several(self, y: Any) -> bool:
        """Whether rows have several targets each."""
        return False

    def _given_rows(self, rows: Rows, y: Any, sample_weight: Any, new: bool) -> Rows:
        if y is not None:
            raise DataError(f"{rows.name}: hogwild.Rows have their labels already; give them alone")
        if new:
            self.n_features_in_ = rows.columns
        if sample_weight is None:
            return rows
        if rows.sample_weight is not None:
            raise DataError(
                f"{rows.name}: hogwild.Rows have weights already; give no sample_weight"
            )
        return rows.weighted(sample_weight)

    def _train(self, rows: Rows, new: bool, given: Row | None, **options: Any) -> None:
        """Trains, and sets the attributes that describe what was learned.

        `given` holds the arguments of `fit`, for callbacks. `partial_fit`, which does one epoch,
        gives None.
        """
        in_parts = given is None
        state, history = (None, []) if new else (self._state, self.history_)
        options = linear_options(self) | options | {"epochs": 1 if in_parts else self.max_iter}
        if in_parts and self.solver == AUTO:  # rows are seen once, and more rows follow
            options["solver"] = SGD
        following = [Epochs(self, self.max_iter, given, self._attributes)] if given else []
        options |= {"start": state, "callbacks": following}
        try:
            result = named_as_in(lambda: train(rows, verbose=self.verbose, **options), NAMES)
        except DivergenceError as error:
            if error.result is None:
                raise
            result = error.result  # almost nothing was learned: the data may be noise
            warn(str(error), ConvergenceWarning)
        self._state: State | None = self._kept(result.state)
        self.history_: list[Row] = history + result.trace
        self.n_iter_ = len(self.history_)
        self.model_: LinearModel = result.model
        self.__dict__.update(self._attributes(self.model_))
        if not in_parts:
            warn_of_limit(result, "max_iter", self.tol)
        for one in following:
            one.finish()
        if result.reason == "interrupted":
            raise KeyboardInterrupt  # what was learned so far is in place

    def _kept(self, state: State | None) -> State | None:
        """The state to continue from; without numbers of single rows if no `fit` will use them."""
        if state is None or self.warm_start or "row_state" not in state.weights:
            return state
        weights = state.weights
        kept = {name: array for name, array in weights.items() if name == USED}
        kept["stored"] = weights.get("best", weights["stored"])
        return replace(state, weights=kept)

    @abstractmethod
    def _attributes(self, model: LinearModel) -> Row:
        """The attributes to set for a model: `model_`, `coef_` and `intercept_`."""

    def sparsify(self) -> Any:
        """Makes `coef_` a scipy sparse matrix. Predictions and training still use `model_`.

        This saves memory if most weights are zero, as with the penalty l1.
        """
        check_is_fitted(self, "model_")
        self.coef_: Any = sparse.csr_matrix(self.coef_)
        return self

    def densify(self) -> Any:
        """Makes `coef_` an array again, after `sparsify`."""
        check_is_fitted(self, "model_")
        self.coef_ = self._attributes(self.model_)["coef_"]
        return self

    def _scored(self, X: Any) -> Rows:
        """Rows to score, with the features of the training."""
        check_is_fitted(self, "model_")
        if isinstance(X, Rows):
            return X
        X = validate_data(self, X, reset=False, accept_sparse="csr", ensure_all_finite=False)
        return Rows(X, name="X")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags
