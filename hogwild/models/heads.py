"""A trained linear model with a score for each of several classes or labels."""

from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from hogwild import model_file
from hogwild.kernels.evaluate_heads import heads_scores
from hogwild.kernels.heads import register_of
from hogwild.kernels.views import RowView, Span, view
from hogwild.learn.heads import heads_of, zeros_on_a_line
from hogwild.learn.heads_metrics import probabilities
from hogwild.learn.losses import LABELS
from hogwild.learn.sets import Set
from hogwild.learn.targets import Target, target_from
from hogwild.models.linear import LinearModel


class HeadsModel(LinearModel):
    """A trained linear model with several heads.

    Attributes:
        weights: float32, heads x columns: a view of what kernels read.
        intercept: a float32 for each head.
        labels: the label of each head.
        The others are those of `LinearModel`.
    """

    kind = "heads"
    intercept: npt.NDArray[np.float32]  # type: ignore[assignment]

    def __init__(
        self,
        weights: npt.NDArray[np.float32],
        intercept: Any,
        target: Target,
        loss: str,
        index_base: int | None = None,
        about: dict[str, Any] | None = None,
        *,
        parameter: float = 0.0,
    ) -> None:
        count, columns = np.shape(weights)
        self._heads = heads_of(loss, target.kind, count)
        self._stored = zeros_on_a_line((columns + 1) * self._heads.width)
        by_column = self._stored.reshape(columns + 1, -1)
        by_column[:-1, :count], by_column[-1, :count] = np.transpose(weights), intercept
        self.weights, self.intercept = by_column[:-1, :count].T, by_column[-1, :count]
        self.target = target
        self.loss = loss
        self.parameter = parameter
        self.index_base = index_base
        self.about = about or {}

    def __reduce__(self) -> Any:
        given = self.weights, self.intercept, self.target, self.loss, self.index_base, self.about
        return partial(type(self), parameter=self.parameter), given  # which begins on a line again

    def __repr__(self) -> str:
        return f"<HeadsModel {self.loss}, {self.columns:,} columns, {self._heads.count:,} heads>"

    @property
    def columns(self) -> int:
        """How many columns it has weights for."""
        return int(self.weights.shape[1])

    def decision_function(self, X: Any) -> npt.NDArray[np.float32]:
        """The scores, rows x heads. X as for `hogwild.Rows`."""
        given = self._fitting(X)
        rows = given.narrowed(self.columns) if given.columns > self.columns else given
        out = np.empty((len(rows), self._heads.count), np.float32)
        arrays = rows.begins, rows.ends, rows.indices, rows.values, self._stored[:0]
        seen = view(RowView, *arrays)
        shape, own = self._heads.shape(False), self._heads.scratch()
        write = heads_scores(register_of(self._heads.width))
        write(seen, view(Span, 0, len(rows)), self._stored, shape, own, out.reshape(-1))
        return out

    def predict_proba(self, X: Any) -> npt.NDArray[np.float64]:
        """The probability of each class or label, for losses that give one.

        Of classes each against the rest, they are scaled to a sum of 1; labels are independent.
        """
        odds = self._check_odds()
        scores = self.decision_function(X)
        if self.target.kind == LABELS:
            return np.asarray(odds(scores.astype(np.float64)))
        found = probabilities(scores, self.loss)
        assert found is not None
        return found

    def _losses(self, data: Set) -> tuple[float, float]:
        """The sum of the losses of rows, and the penalty."""
        found = self._heads.evaluate(
            data.view, data.weighted, view(Span, 0, len(data)), self._stored, self.parameter
        )
        return float(found[0]), self.penalty.value(self._stored[: -self._heads.width])

    def _arrays(self) -> tuple[Any, model_file.Arrays]:
        """What a model file holds of the weights."""
        flat = np.ascontiguousarray(self.weights.T).reshape(-1)
        return None, {"weights": flat, "intercepts": np.ascontiguousarray(self.intercept)}

    @classmethod
    def from_file(cls, about: dict[str, Any], arrays: model_file.Arrays) -> "HeadsModel":
        """The model that `save` wrote."""
        intercepts = arrays["intercepts"]
        return cls(
            arrays["weights"].reshape(-1, len(intercepts)).T,
            intercepts,
            target_from(about),
            about["loss"],
            about["index_base"],
            about["about"],
            parameter=about["parameter"],
        )
