"""What a row's target is, and its weight where rows have weights."""

from functools import cache
from typing import Any

import numpy as np

from hogwild.kernels.compile import inline
from hogwild.kernels.primitives import U


@cache
def target_of(weighted: bool) -> Any:
    """(rows, row) -> target, weight: both float64, and side by side where rows have weights."""
    if weighted:

        @inline
        def target_and_weight(rows: Any, row: Any) -> Any:
            place = U(2) * row
            return np.float64(rows.targets[place]), np.float64(rows.targets[place + U(1)])

        return target_and_weight

    @inline
    def target_alone(rows: Any, row: Any) -> Any:
        return np.float64(rows.targets[row]), 1.0

    return target_alone
