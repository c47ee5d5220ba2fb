"""Equations with a symmetric matrix of few columns, solved by Cholesky's factors."""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

Doubles = npt.NDArray[np.float64]

ROUNDING = 1e-14  # that is added to the diagonal, so that the matrix has a factor
PAIR, ENTRY = 0.25, 1 / 30  # times of a product, for a non-zero: for each two of a row; of cubes


def products_worth(nonzeros: int, rows: int, columns: int) -> float:
    """As long as how many products with the rows it takes to make and to factor the matrix."""
    return (PAIR * nonzeros**2 / rows + ENTRY * float(columns) ** 3) / max(1, nonzeros)


def factored(matrix: Doubles) -> Callable[[Doubles], Doubles]:
    """(right) -> the solution; the matrix, which is overwritten, is made one of unit diagonal."""
    # Loaded where it is needed: a tenth of a second
    from scipy.linalg import cho_factor, cho_solve

    scale = 1.0 / np.sqrt(np.diag(matrix))
    matrix *= scale[:, None]
    matrix *= scale
    matrix[np.diag_indices(len(matrix))] += ROUNDING
    factor = cho_factor(matrix, overwrite_a=True)

    def solve(right: Doubles) -> Doubles:
        found: Doubles = scale * cho_solve(factor, scale * right)
        return found

    return solve
