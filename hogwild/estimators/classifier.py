"""`HogwildClassifier`: a linear classifier for scikit-learn."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import ClassifierMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets, type_of_target

from hogwild.config import VOTE
from hogwild.data.labels import LabelSets
from hogwild.data.rows import Rows, different
from hogwild.errors import DataError
from hogwild.estimators.epochs import for_callbacks, with_callbacks
from hogwild.estimators.linear import LinearEstimator
from hogwild.estimators.parameters import loss_of
from hogwild.learn.losses import CLASSES, LABELS, LOSSES
from hogwild.models.linear import LinearModel
from hogwild.trace import Row


def _gives_probabilities(classifier: Any) -> bool:
    loss = LOSSES.get(loss_of(classifier))
    if loss is not None and loss.probability is None:
        able = ", ".join(name for name, known in LOSSES.items() if known.probability)
        raise AttributeError(
            f"the loss {classifier.loss} gives no probabilities; use one of: {able}"
        )
    if classifier.merge == VOTE:
        raise AttributeError("votes are not probabilities; use the merge mean")
    return True


@dataclass(eq=False, repr=False, kw_only=True)
class HogwildClassifier(ClassifierMixin, LinearEstimator):
    """Linear classifier trained on several cores, by default with a proof of how good it is.

    More than two classes are learned each against the rest, or all together with the loss
    cross_entropy. If y is an indicator matrix, rows may have several labels. The objective is then
    the sum over the classes or labels.

    X may be a dense array, a sparse matrix or array, a data frame, or `hogwild.Rows` with labels
    (leave out y). Float32 CSR data is used without a copy.

    Args:
        loss: hinge (linear SVM), squared_hinge, logistic (or log_loss), squared (or
            squared_error), modified_huber, exponential, perceptron (averaged over all epochs),
            cross_entropy (softmax).
        alpha: strength of the penalty; None for 1e-4, and for none with perceptron.
        penalty: l2 (alpha/2 * |w|^2), l1 (alpha * |w|_1), elasticnet (both), or None.
        l1_ratio: share of l1 in the penalty elasticnet.
        max_iter: most passes over the data. None: 20 with the solver sgd, and as many as are needed
            with other solvers.
        tol: with the solver sgd, an epoch that lowers the objective by less than this share of it
            makes no progress. Other solvers stop when the objective is proved to be within this
            share of the optimum. If `max_iter` ends training earlier, a ConvergenceWarning says
            so. With None, training always takes `max_iter` epochs.
        fit_intercept: learn an intercept, which is not penalized.
        n_jobs: worker processes; None for one, -1 to choose their number automatically.
        random_state: seed of all random choices, such as the order of the rows; None takes one from
            numpy's global generator. With one worker, a seed gives the same bytes.
        class_weight: a weight for each class, or "balanced".
        warm_start: `fit` continues with the model of the last `fit`.
        early_stopping: hold out some rows, stop when their loss no longer decreases, and return
            the best epoch.
        validation_fraction: share of the rows to hold out.
        n_iter_no_change: training stops after this number of epochs in a row without progress.
        verbose: 1 prints what the command line prints, 2 also why things were chosen.
        solver, schedule, eta0, average, strategy, merge, backend: as in `hogwild.Config`. With the
            merge vote, `coef_` is the mean of `model_.members`, and `decision_function` gives the
            share of their votes, less a half.

    Attributes:
        coef_: the weights, float32, of shape (classes, features); of two classes (1, features).
        intercept_: the intercepts, of shape (classes,); of two classes (1,).
        classes_: the labels, in order.
        n_features_in_, feature_names_in_: the features that were learned from.
        n_iter_: epochs done.
        history_: a dict for every epoch, with the objective. `evaluation` is the time it took to
            evaluate the objective: with the solver sgd about half of the epoch's time
            (`epoch_seconds`). Other solvers need the objective anyway, except in the first one or
            two epochs.
        model_: the `hogwild.LinearModel`.
    """

    loss: str = field(default="hinge", kw_only=False)
    alpha: float | None = None
    merge: str = "mean"
    class_weight: Any = None

    @with_callbacks
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> "HogwildClassifier":
        """Trains on X and its labels y."""
        new = self._is_new(self.warm_start)
        rows = self._rows(X, y, sample_weight, new)
        return self._fit(rows, new, None, for_callbacks(X, y, sample_weight))

    def partial_fit(
        self, X: Any, y: Any = None, classes: Any = None, sample_weight: Any = None
    ) -> "HogwildClassifier":
        """Trains one more epoch, on this data. The first call needs `classes` if y lacks one."""
        new = self._is_new_in_parts()
        return self._fit(self._rows(X, y, sample_weight, new), new, classes, None)

    def _fit(self, rows: Rows, new: bool, classes: Any, task: Row | None) -> "HogwildClassifier":
        given = None if classes is None else np.unique(np.asarray(classes))
        several = isinstance(rows.y, LabelSets)
        if new:
            self.classes_ = _labels_of(rows) if given is None else given
            if len(self.classes_) < 2 and not several:
                raise DataError(
                    "there must be two classes or more, not one class: "
                    f"{self.classes_.tolist()}; give rows of another class, too"
                )
        elif several != self._labels_are_several:
            has, had = ("several labels", "one") if several else ("one label", "several")
            raise ValueError(f"y: {has} a row, but the model was trained for {had}")
        elif given is not None and not np.array_equal(given, self.classes_):
            raise ValueError(
                f"classes: {given.tolist()}, but the model was trained for "
                f"{self.classes_.tolist()}; use a new estimator"
            )
        kind = "softmax" if self._is_softmax else "svm"
        labels = tuple(self.classes_.tolist())
        more = {"class_weight": self.class_weight, "merge": self.merge}
        self._train(rows, new, task, task=kind, labels=labels, **more)
        return self

    @property
    def _is_softmax(self) -> bool:
        loss = LOSSES.get(loss_of(self))
        return loss is not None and loss.kinds == (CLASSES,)

    @property
    def _labels_are_several(self) -> bool:
        return self.model_.target.kind == LABELS

    def _is_difference(self, model: LinearModel) -> bool:
        """Whether two classes have a score each: scikit-learn expects one, their difference."""
        return model.target.kind == CLASSES and len(self.classes_) == 2

    def _has_several(self, y: Any) -> bool:
        try:
            return y is not None and type_of_target(y) == "multilabel-indicator"
        except (TypeError, ValueError):  # labels of unusual types: `Rows` says what is wrong
            return False

    def _attributes(self, model: LinearModel) -> Row:
        coef, intercept = np.atleast_2d(model.weights), np.atleast_1d(np.asarray(model.intercept))
        if self._is_difference(model):
            coef, intercept = np.diff(coef, axis=0), np.diff(intercept)
        return {"model_": model, "coef_": coef, "intercept_": intercept}

    def decision_function(self, X: Any) -> npt.NDArray[np.float32]:
        """The score of each row, positive for the second class; with many classes, one for each."""
        rows = self._scored(X)
        scores = self.model_.decision_function(rows)
        return np.diff(scores)[:, 0] if self._is_difference(self.model_) else scores

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """The class of each row; where rows may have several labels, an indicator matrix."""
        scores = self.decision_function(X)
        if self._labels_are_several:
            return (scores > 0).astype(np.intp)
        chosen = scores > 0 if scores.ndim == 1 else scores.argmax(axis=1)
        return np.asarray(self.classes_[chosen.astype(np.intp)])

    @available_if(_gives_probabilities)
    def predict_proba(self, X: Any) -> npt.NDArray[np.float64]:
        """The probability of each class, for the losses that give one."""
        rows = self._scored(X)
        return self.model_.predict_proba(rows)

    @available_if(_gives_probabilities)
    def predict_log_proba(self, X: Any) -> npt.NDArray[np.float64]:
        """The logarithm of the probability of each class."""
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(self.predict_proba(X)))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = not self._is_softmax
        return tags


def _labels_of(rows: Rows) -> npt.NDArray[Any]:
    """The different labels, in order."""
    if rows.y is None:
        raise DataError(f"{rows.name} has no labels; a classifier needs one for every row")
    if isinstance(rows.y, LabelSets):
        return rows.y.names
    found = different(rows.y, rows.name)
    if len(found) > 2:
        check_classification_targets(rows.y)
    return np.array(found, dtype=rows.y.dtype)
