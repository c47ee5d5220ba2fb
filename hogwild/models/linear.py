"""A trained linear model: predictions for new rows, and their quality."""

from collections.abc import Sequence
from copy import copy
from typing import Any

import numpy as np
import numpy.typing as npt

from hogwild import model_file
from hogwild.data.files import load
from hogwild.data.mapped_rows import in_reach
from hogwild.data.rows import MOST_COLUMNS, Labels, Rows, check_same_base, check_same_features
from hogwild.data.sets import Files
from hogwild.errors import DataError, HogwildError, OptionError, warn
from hogwild.features.encoder import Features
from hogwild.kernels import evaluate as kernels
from hogwild.kernels.views import Span, view
from hogwild.learn.heads import Heads, heads_of
from hogwild.learn.losses import CLASSES, LABELS, LOSSES, SIGNS
from hogwild.learn.penalties import Penalty
from hogwild.learn.sets import Set, row_weights
from hogwild.learn.targets import TARGETS, Target, TwoClasses
from hogwild.machine import available_memory
from hogwild.model_file import DamageError
from hogwild.models import exports
from hogwild.models.contents import BASE, COUNT, LABEL, NUMBER, Contents, listing
from hogwild.models.scores import finite
from hogwild.notebook import model_html
from hogwild.paths import PathLike

Listed = dict[Any, list[tuple[str | int, float]]]  # features and numbers, by class
SPARSE = 2  # times as many weights as non-zero ones: files with more zeros are sparse


class LinearModel:
    """A trained linear model.

    Attributes:
        weights: one float32 per column.
        intercept: a float; 0 if none was learned.
        target: the kind of target.
        labels: the negative and the positive label, as in the training data; empty for regression.
        loss: the name of the loss it was trained for.
        index_base: the number that the training file gave to the first column: 0, 1, or None where
            there was no text file.
        about: the options of the training, its data, and a summary of its trace.
        features: how its training data was made from text or a table, or None. With features, the
            model also predicts documents or tables.
    """

    kind = "linear"
    features: Features | None = None
    heads = False  # whether there is a line of weights for each label

    def __init__(
        self,
        weights: npt.NDArray[np.float32],
        intercept: float | npt.NDArray[np.float32],
        target: Target | Labels,
        loss: str,
        index_base: int | None = None,
        about: dict[str, Any] | None = None,
        *,
        parameter: float = 0.0,
    ) -> None:
        self.target = target if isinstance(target, Target) else TwoClasses(target)
        self.loss = loss
        self.parameter = parameter
        self.index_base = index_base
        self.about = about or {}
        self._take(weights, intercept)

    def _take(self, weights: npt.NDArray[np.float32], intercept: Any) -> None:
        self.weights = np.require(weights, np.float32, ["C", "A"])
        self.intercept = float(intercept)

    @property
    def columns(self) -> int:
        """The number of columns that it has weights for."""
        return int(self.weights.shape[-1])

    @property
    def _heads(self) -> Heads:
        return heads_of(self.loss, self.target.kind, len(np.atleast_2d(self.weights)))

    @property
    def stored(self) -> npt.NDArray[np.float32]:
        """The weights as kernels take them: the intercept comes last."""
        return np.append(self.weights, np.float32(self.intercept))

    @property
    def labels(self) -> tuple[Any, ...]:
        """The labels; empty for regression."""
        return self.target.labels

    @property
    def penalty(self) -> Penalty:
        """The penalty that it was trained with."""
        return Penalty.of(self.about.get("options", {}))

    @property
    def class_weights(self) -> list[float] | None:
        """The weight of each label in the training, if classes had weights."""
        weights: list[float] | None = self.about.get("options", {}).get("class_weights")
        return weights

    @property
    def feature_names(self) -> list[str] | None:
        """The names of the columns, if the training data was a data frame."""
        names: list[str] | None = self.about.get("feature_names")
        return names

    def __repr__(self) -> str:
        labels = f", labels {self.labels}" if self.labels else ""
        return f"<LinearModel {self.loss}, {len(self.weights):,} columns{labels}>"

    def _repr_html_(self) -> str:
        return model_html(self)

    def load(self, path: Files, *, labels: bool = True) -> Rows:
        """Reads rows from files as the training data was read.

        Args:
            path: the file, or several; see `hogwild.load`.
            labels: False accepts data without labels, to predict.
        """
        if self.features is not None:
            return load(path, features=self.features.knowing(self.labels), labels=labels)
        base = "auto" if self.index_base is None else self.index_base
        return load(path, index_base=base, labels=labels)

    def decision_function(self, X: Any) -> npt.NDArray[np.float32]:
        """The score of each row: positive for the second label. X as for `hogwild.Rows`."""
        rows = self._fitting(X)
        out = np.empty(len(rows), np.float32)
        for mine, arrays in rows.at_hand():
            kernels.scores(*arrays, self.weights, np.float32(self.intercept), out[mine])
        return finite(out, rows.name, "row")

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """The predicted label of each row, as in the training data; for regression the number."""
        with np.errstate(over="ignore"):
            found = self.target.predicted(self.decision_function(X), self.loss)
        return found if self.labels else finite(found, getattr(X, "name", "the data"), "row")

    def predict_proba(self, X: Any) -> npt.NDArray[np.float64]:
        """The probability of each label (two columns), for losses that give one."""
        odds = self._check_odds()
        positive = odds(self.decision_function(X).astype(np.float64))
        return np.column_stack([1 - positive, positive])

    def _check_odds(self) -> Any:
        odds = LOSSES[self.loss].probability
        if odds is None:
            able = ", ".join(name for name, loss in LOSSES.items() if loss.probability)
            raise HogwildError(
                f"the loss {self.loss} gives scores, not probabilities; train with one of: {able}"
            )
        return odds

    def evaluate(self, X: Any, y: Any = None) -> dict[str, Any]:
        """Objective, mean loss, and the metrics of the kind of target, on labelled rows.

        The objective and the loss use the class weights of the training; the metrics do not.
        """
        rows = X if isinstance(X, Rows) and y is None else Rows(X, y)
        return self.measured(rows, row_weights(self.class_weights, rows, self.target))

    def measured(self, rows: Rows, factors: npt.NDArray[np.float64] | None) -> dict[str, Any]:
        """The result of `evaluate` if the losses of the rows are multiplied by these factors."""
        if not len(rows):
            raise DataError(f"{rows.name} has no rows to evaluate on")
        target = self.target.centered(rows)
        if target.center != self.target.center:  # scores and targets keep more digits near 0
            centered = copy(self)
            centered.target = target
            centered.intercept += self.target.center - target.center
            return centered.measured(rows, factors)
        rows = in_reach(rows)
        scores = self.decision_function(rows)
        known = rows.narrowed(self.columns) if rows.columns > self.columns else rows
        data = Set.of(known, self.target, factors)
        heads, stored, span = self._heads, self.stored, view(Span, 0, len(data))
        losses = 0.0
        for some, part in data.pieces(span):
            losses += heads.evaluate(some, data.weighted, part, stored, self.parameter)[0]
        mean = losses / data.weight
        objective = self.penalty.value(stored[: -heads.width]) + mean
        counted = np.ones(len(rows)) if rows.sample_weight is None else rows.sample_weight
        scores = scores if self.target.heads > 1 else scores.astype(np.float64)
        given = scores, self.target.known(rows), counted.astype(np.float64), self.loss
        found = {name: metric(*given) for name, metric in self.target.metrics.items()}
        return {"rows": len(rows), "objective": objective, "loss": mean, **found}

    def top_features(self, n: int = 20, names: Sequence[str] | None = None) -> Listed:
        """The n features with the largest weights by absolute value, for each class.

        Args:
            n: the number of features; weights of zero are left out.
            names: a name for each column, where the model has none.

        Returns:
            For each class a list of pairs: the feature, and its weight. With two classes only the
            second one is listed; for regression the key is "score". Features without a name are
            numbered as in the training file, or from 0.
        """
        if not isinstance(n, int | np.integer) or n < 1:
            raise OptionError(f"n: must be a whole number of 1 or more, not {n!r}")
        every = np.arange(self.columns)
        return self._listed(every, np.atleast_2d(self.weights), n, names)

    def explain(self, row: Any, names: Sequence[str] | None = None) -> Listed:
        """What each value of a row adds to its score, for each class as in `top_features`.

        The last pair is the intercept; what all pairs add is the score.

        Args:
            row: a list or array of values, or one row of whatever `predict` takes.
            names: as for `top_features`.
        """
        given = self._fitting(np.reshape(row, (1, -1)) if np.ndim(row) == 1 else row)
        if len(given) != 1:
            raise DataError(f"{given.name} has {len(given):,} rows; give one to explain")
        _, columns, values = given.gather(np.zeros(1, np.uint64))
        known = columns < self.columns
        columns, values = columns[known], values[known].astype(np.float64)
        added = np.atleast_2d(self.weights)[:, columns] * values
        found = self._listed(columns, added, len(columns), names)
        for pairs, intercept in zip(found.values(), np.atleast_1d(self.intercept), strict=True):
            pairs.append(("intercept", float(intercept)))
        return found

    def _listed(
        self,
        columns: npt.NDArray[Any],
        numbers: npt.NDArray[Any],
        n: int,
        names: Sequence[str] | None,
    ) -> Listed:
        """For each class, the n largest numbers that are not 0, with the columns they are of."""
        names = names or self.feature_names
        if names and len(names) < self.columns:
            raise DataError(f"there are {len(names):,} names for {self.columns:,} columns")
        if names is None and self.features is not None:
            return self._named(self.features, columns, numbers, n)
        base, found = self.index_base or 0, {}
        classes = self.labels if self.weights.ndim > 1 else (*self.labels[1:], "score")[:1]
        for name, some in zip(classes, numbers, strict=True):
            order = np.argsort(-np.abs(some), kind="stable")[:n]
            found[name] = [
                (names[column] if names else int(column) + base, float(number))
                for column, number in zip(columns[order], some[order], strict=True)
                if number
            ]
        return found

    def _named(
        self, features: Features, columns: npt.NDArray[Any], numbers: npt.NDArray[Any], n: int
    ) -> Listed:
        """The same by the names of hashed features; the sign of the feature is applied."""
        found: Listed = {}
        classes = self.labels if self.weights.ndim > 1 else (*self.labels[1:], "score")[:1]
        for name, some in zip(classes, numbers, strict=True):
            order = np.argsort(-np.abs(some), kind="stable")[:n]
            names, signs = features.names_of(columns[order])
            found[name] = [
                (feature, float(number) * sign)
                for feature, sign, number in zip(names, signs, some[order], strict=True)
                if number
            ]
        return found

    def _arrays(self) -> model_file.Arrays:
        """The arrays of a model file."""
        nonzero = np.flatnonzero(self.weights.view(np.uint32))
        if SPARSE * len(nonzero) >= len(self.weights):
            return {"weights": self.weights}
        return {"values": self.weights[nonzero], "indices": nonzero.astype(np.uint32)}

    def save(self, path: PathLike) -> None:
        """Writes the model to one file; `hogwild.load_model` reads it back bit for bit."""
        arrays = self._arrays()
        sparse = "indices" in arrays
        names = "kind", "intercept", "loss", "parameter", "index_base", "about"
        about = {name: getattr(self, name) for name in names} | self.target.about()
        if "intercepts" in arrays:
            about["intercept"] = None
        if sparse:
            about["columns"] = len(self.weights)
        if self.features is not None:
            about["features"] = self.features.about()
            arrays |= self.features.arrays()
        model_file.write(path, about, arrays, version=2 if sparse else 1)

    def export(self, path: PathLike) -> None:
        """Writes the model for other programs: .onnx, .npz, .safetensors, .liblinear or .vw."""
        exports.export(self, path)

    def to_sklearn(self) -> Any:
        """A fitted estimator of scikit-learn with the same scores."""
        return exports.to_sklearn(self)

    @classmethod
    def from_file(cls, file: Contents) -> "LinearModel":
        """The model that `save` wrote.

        Raises:
            DamageError: the file says something that cannot be.
        """
        target, loss = _target_in(file), file.choice("loss", LOSSES)
        weights, intercept = cls._weights_of(file)
        _check_heads(target, loss, len(weights) if cls.heads else 1)
        base, parameter = file.get("index_base", BASE), file.get("parameter", NUMBER, 0.0)
        made = cls(weights, intercept, target, loss, base, file.record(), parameter=parameter)
        for what, names, wanted in (
            ("weights of classes", made.class_weights, len(made.labels)),
            ("feature names", made.feature_names, made.columns),
        ):
            if names is not None and len(names) != wanted:
                raise DamageError(f"it has {len(names):,} {what}; expected {wanted:,}")
        if "features" in file:
            made.features = Features.from_file(file)
        return made

    @staticmethod
    def _weights_of(file: Contents) -> tuple[Any, Any]:
        """Weights and intercept. A file may have only the weights that are not zero."""
        intercept = file.get("intercept", NUMBER)
        if "weights" in file:
            return file.array("weights"), intercept
        columns = file.get("columns", COUNT)
        if columns > MOST_COLUMNS or 4 * columns > available_memory():
            raise DamageError(f"its {columns:,} weights do not fit into memory")
        indices, values = file.array("indices", np.uint32), file.array("values")
        if len(indices) != len(values) or (indices >= columns).any():
            raise DamageError(
                f"it has {len(indices):,} indices up to {indices.max(initial=0):,} for "
                f"{len(values):,} weights in {columns:,} columns"
            )
        weights = np.zeros(columns, np.float32)
        weights[indices] = values
        return weights, intercept

    def _fitting(self, X: Any) -> Rows:
        """X as rows, with a warning about columns that the model does not have."""
        columns = self.columns
        if self.features is not None and not isinstance(X, Rows) and not hasattr(X, "dtype"):
            X = self.features.rows(X)
        if not isinstance(X, Rows):
            rows = Rows(X)
            if rows.columns != columns:
                raise DataError(
                    f"the data has {rows.columns:,} columns and the model {columns:,}: "
                    "both must come from the same columns in the same order"
                )
            return rows
        rows = in_reach(X)
        check_same_base(rows, self.index_base, "the training data")
        if rows.features is not None:
            check_same_features(rows, self.features, "the training data")
        if rows.columns > columns:
            unseen = int(np.count_nonzero(rows.indices >= columns))
            warn(
                f"{rows.name}: {unseen:,} values are in columns that the model never saw; "
                "they are ignored"
            )
        return rows


def _target_in(file: Contents) -> Target:
    """The target that a model file names; in the first release there were only two classes."""
    kind = TARGETS[file.choice("target", TARGETS, SIGNS)]
    fewest, most = kind.able
    if not most:
        free: Target = kind()
        return free
    labels = file.get("labels", listing(LABEL))
    texts = sum(isinstance(label, str) for label in labels)
    if texts not in (0, len(labels)) or len(set(labels)) < len(labels):
        raise DamageError("its labels are numbers beside text, or not all different")
    if not fewest <= len(labels) <= most:
        raise DamageError(f"it has {len(labels):,} labels for targets of the kind {kind.kind}")
    labelled: Target = kind(tuple(labels))
    return labelled


def _check_heads(target: Target, loss: str, heads: int) -> None:
    """Refuses a loss that is not for the target, and heads that are not one for each label."""
    able = LOSSES[loss].kinds
    single = SIGNS if target.kind in (CLASSES, LABELS) else target.kind  # each against the rest
    if not {single, target.kind} & set(able):
        raise DamageError(f"the loss {loss} is not for targets of the kind {target.kind}")
    if heads != target.heads:
        raise DamageError(f"it has weights for {heads:,} scores; its targets need {target.heads:,}")
