"""A trained linear model whose members vote: the weights of each worker (Mann et al. 2009)."""

from typing import Any

import numpy as np
import numpy.typing as npt

from hogwild import model_file
from hogwild.data.rows import Rows
from hogwild.errors import HogwildError
from hogwild.kernels.evaluate import scores as write_scores
from hogwild.kernels.views import RowView, view
from hogwild.models.contents import Contents
from hogwild.models.linear import LinearModel
from hogwild.models.scores import finite

Floats = npt.NDArray[np.float32]


def votes(rows: RowView, members: Floats) -> Floats:
    """The share of the votes that each row gets for the second label, less a half.

    A member votes by the sign of its score; one with a score of 0 abstains. A tie goes to the sign
    of the sum of the scores, as a quarter of a vote: less than any majority.
    """
    scores = np.empty((len(members), len(rows.begins)), np.float32)
    for member, out in zip(members, scores, strict=True):
        write_scores(*rows[:4], member[:-1], member[-1], out)
    scores[~np.isfinite(scores)] = np.nan  # and so is the share, whatever the others say
    won = np.sign(scores).sum(axis=0)
    ahead = np.where(won == 0, 0.5 * np.sign(scores.sum(axis=0)), won)
    return np.asarray(ahead / (2 * len(members)), np.float32)


class VoteModel(LinearModel):
    """A trained linear model with several members, of which the majority decides.

    The constructor takes the weights of each member (members x columns) and the intercepts.

    Attributes:
        members: float32, members x (columns + 1): the weights of each, the intercept behind them.
        weights, intercept: the mean of the members; the objective is that of this mean.
        The others are those of `LinearModel`.
    """

    kind = "votes"

    def _take(self, weights: Floats, intercept: Any) -> None:
        self.members = np.column_stack([weights, intercept]).astype(np.float32, copy=False)
        mean = self.members.mean(axis=0, dtype=np.float64)
        super()._take(mean[:-1], mean[-1])

    def __repr__(self) -> str:
        return f"<VoteModel {self.loss}, {self.columns:,} columns, {len(self.members)} members>"

    def decision_function(self, X: Any) -> Floats:
        """The share of the votes for the second label, less a half: from -1/2 to 1/2."""
        rows = self._fitting(X)
        arrays = rows.begins, rows.ends, rows.indices, rows.values, self.weights[:0]
        return finite(votes(view(RowView, *arrays), self.members), rows.name, "row")

    def _check_odds(self) -> Any:
        raise HogwildError("votes are not probabilities; probabilities need the merge mean")

    def explain(self, row: Any, names: Any = None) -> Any:
        """Votes are no sum over values."""
        raise HogwildError("votes are no sum over the values of a row; train with the merge mean")

    def measured(self, rows: Rows, factors: npt.NDArray[np.float64] | None) -> dict[str, Any]:
        """The objective and the mean loss of the members' mean; the metrics of their votes."""
        return super().measured(rows, factors) | {"log_loss": None}

    def _arrays(self) -> model_file.Arrays:
        return {"members": self.members[:, :-1].ravel(), "intercepts": self.members[:, -1].copy()}

    @staticmethod
    def _weights_of(file: Contents) -> tuple[Any, Any]:
        intercepts = file.array("intercepts")
        return file.table("members", len(intercepts)), intercepts
