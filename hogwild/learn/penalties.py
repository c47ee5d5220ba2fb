"""The penalty of a linear model: l2/2 |w|^2 + l1 |w|_1; each part may be 0."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from hogwild.kernels.evaluate import absolute_sum, squared_norm


class Penalty(NamedTuple):
    """The coefficients of the two parts."""

    l2: float
    l1: float = 0.0

    @classmethod
    def of(cls, options: Mapping[str, Any]) -> "Penalty":
        """The penalty for options by name."""
        return cls(*(float(options.get(part) or 0.0) for part in cls._fields))

    def value(self, weights: npt.NDArray[np.float32]) -> float:
        """The penalty of weights, given without the intercept, which is not penalized."""
        total = 0.0
        if self.l2:
            total += float(self.of_squares(squared_norm(weights)))
        if self.l1:
            total += self.l1 * float(absolute_sum(weights))
        return total

    def of_squares(self, total: Any) -> Any:
        """The part for l2, given the sum of the squares of the weights."""
        return 0.5 * self.l2 * total

    def __str__(self) -> str:
        named = [f"{part} {weight:g}" for part, weight in self._asdict().items() if weight]
        return " and ".join(named) or "no penalty"
