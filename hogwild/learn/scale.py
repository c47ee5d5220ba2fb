"""Typical sizes in a factorization, from which rates, penalties and first factors are chosen.

The choice follows the unit of the ratings: in cents or in euros, the model is the same.
"""

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from hogwild.config import Config
from hogwild.data.ratings import mean_and_deviation
from hogwild.errors import DataError

# Found on MovieTweetings and on synthetic ratings of several shapes and densities
L2 = 0.54  # times the deviation of the values, over the root of a row's number of ratings
BIAS_L2 = 0.02
RATE = 0.065  # over the deviation of the values
SLOWING = 0.0005  # relative decrease of a row's rate by a squared slope of typical size
START = 0.008  # size of the first products of factors, as a share of the deviation
LOGISTIC_LOSS = 0.6  # of a typical error
FEW = 10_000  # ratings, about, for an estimate of the median


class Scale(NamedTuple):
    """Typical sizes.

    Attributes:
        mean: the constant part of scores.
        average: the mean of the values.
        deviation: the standard deviation of the values.
        loss: the loss of an error of that size, about.
        length: the squared length of a row of factors, about.
    """

    mean: float
    average: float
    deviation: float
    loss: float
    length: float

    @classmethod
    def of(cls, values: npt.NDArray[np.float32], config: Config) -> "Scale":
        """The sizes for ratings with these values (logistic loss: -1 and 1)."""
        loss = config.loss_name
        average, deviation = mean_and_deviation(values)
        if not math.isfinite(deviation**2):
            raise DataError("the squares of the values are too large: scale the values down")
        if loss == "logistic":
            share = min(max((average + 1) / 2, 1e-3), 1 - 1e-3)
            odds = math.log(share / (1 - share))
            return cls(odds if config.has_biases else 0.0, average, 1.0, LOGISTIC_LOSS, 1.0)
        deviation = deviation or abs(average) or 1.0
        if loss == "kl":
            length = average or 1.0
            return cls(0.0, average, deviation, deviation**2 / length, length)
        usual = deviation if loss == "absolute" else deviation**2
        if not config.has_biases:
            return cls(0.0, average, deviation, usual, math.hypot(deviation, average))
        mean = average
        if loss == "absolute":
            mean = float(np.median(values[:: max(1, len(values) // FEW)]))
        return cls(mean, average, deviation, usual, deviation)

    def l2(self, ratings_a_row: float) -> float:
        """A penalty per rating: the fewer ratings a row has, the closer it stays to 0."""
        return L2 * self.loss / self.length / math.sqrt(ratings_a_row)

    @property
    def bias_l2(self) -> float:
        """A penalty for the biases."""
        return BIAS_L2 * self.loss / self.deviation**2

    @property
    def rate(self) -> float:
        """A first rate."""
        return RATE * self.deviation**2 / (self.loss * self.length)

    @property
    def growth(self) -> float:
        """The decrease of a row's rate by a squared slope; see `kernels/factors.py`."""
        return 0.5 * SLOWING * (self.deviation / self.loss) ** 2

    def first_factors(self, rank: int, nonnegative: bool) -> tuple[float, float]:
        """The range of the first factors, for products of the right size."""
        # The product of two rows of numbers within +-a deviates by sqrt(rank) a^2 / 3
        reach = math.sqrt(3 * START * self.deviation / math.sqrt(rank))
        # Without a constant part, the products have the mean
        centre = 0.0 if self.mean else math.sqrt(max(0.0, self.average) / rank)
        return (0.0, 2 * max(centre, reach)) if nonnegative else (centre - reach, centre + reach)
