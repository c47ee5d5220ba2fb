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
from hogwild.model_file import DamageError
from hogwild.models.contents import Contents
from hogwild.models.linear import LinearModel
from hogwild.models.scores import finite


class HeadsModel(LinearModel):
    """A trained linear model with several heads.

    Attributes:
        weights: float32, heads x columns.
        intercept: a float32 for each head.
        labels: the label of each head.
        The other attributes are those of `LinearModel`.
    """

    kind = "heads"
    heads = True
    intercept: npt.NDArray[np.float32]  # type: ignore[assignment]

    def _take(self, weights: npt.NDArray[np.float32], intercept: Any) -> None:
        count, columns = np.shape(weights)
        width = heads_of(self.loss, self.target.kind, count).width
        self._by_column = zeros_on_a_line((columns + 1) * width).reshape(columns + 1, -1)
        used = self._by_column[:, :count]
        used[:-1], used[-1] = np.transpose(weights), intercept
        self.weights, self.intercept = used[:-1].T, used[-1]

    @property
    def stored(self) -> npt.NDArray[np.float32]:
        return self._by_column.reshape(-1)

    def __reduce__(self) -> Any:
        given = self.weights, self.intercept, self.target, self.loss, self.index_base, self.about
        # which begins on a line again
        return partial(type(self), parameter=self.parameter), given, {"features": self.features}

    def __repr__(self) -> str:
        return f"<HeadsModel {self.loss}, {self.columns:,} columns, {self._heads.count:,} heads>"

    def decision_function(self, X: Any) -> npt.NDArray[np.float32]:
        """The scores, rows x heads. X as for `hogwild.Rows`."""
        given, heads = self._fitting(X), self._heads
        rows = given.narrowed(self.columns) if given.columns > self.columns else given
        out = np.empty((len(rows), heads.count), np.float32)
        write, no_targets = heads_scores(register_of(heads.width)), out[:0].reshape(-1)
        for mine, arrays in rows.at_hand():
            here = out[mine]
            seen = view(RowView, *arrays, no_targets), view(Span, 0, len(here)), self.stored
            write(*seen, heads.shape(False), heads.scratch(), here.reshape(-1))
        return finite(out, given.name, "row")

    def predict_proba(self, X: Any) -> npt.NDArray[np.float64]:
        """The probability of each class or label, for losses that give one.

        One-vs-rest probabilities of classes are scaled to a sum of 1; labels are independent.
        """
        odds = self._check_odds()
        scores = self.decision_function(X)
        if self.target.kind == LABELS:
            return np.asarray(odds(scores.astype(np.float64)))
        found = probabilities(scores, self.loss)
        assert found is not None
        return found

    def _arrays(self) -> model_file.Arrays:
        flat = np.ascontiguousarray(self.weights.T).reshape(-1)
        return {"weights": flat, "intercepts": np.ascontiguousarray(self.intercept)}

    @staticmethod
    def _weights_of(file: Contents) -> tuple[Any, Any]:
        intercepts, weights = file.array("intercepts"), file.array("weights")
        heads = len(intercepts)
        if not heads or len(weights) % heads:
            raise DamageError(f"its {len(weights):,} weights are not as many for each of {heads:,}")
        return weights.reshape(-1, heads).T, intercepts
