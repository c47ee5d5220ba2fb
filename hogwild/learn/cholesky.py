"""Solves equations with a symmetric matrix of few columns by Cholesky factorization."""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

Doubles = npt.NDArray[np.float64]

ROUNDING = 1e-14  # that is added to the diagonal, so that the matrix has a factor
# In what a product takes for a non-zero: each pair of values of a row; columns, to the third power
PAIR, ENTRY = 0.25, 1 / 30
# Columns of the largest matrix, and products that take as long as making and factoring one that
# interior points still make
MOST_COLUMNS, MOST_WORTH = 2_000, 250.0
# Columns that are few, rows for each of them, and products that take as long as the matrix
FEW_COLUMNS, FEWEST_ROWS, FEW_WORTH = 500, 2, 40.0


def operations(nonzeros: int, rows: int, columns: int) -> float:
    """About how many multiplications making and factoring the matrix of the rows takes."""
    return nonzeros**2 / rows + float(columns) ** 3


def products_worth(nonzeros: int, rows: int, columns: int) -> float:
    """How many products with the Hessian take as long as making and factoring it."""
    return (PAIR * nonzeros**2 / rows + ENTRY * float(columns) ** 3) / max(1, nonzeros)


def are_few(columns: int, rows: int, nonzeros: int) -> bool:
    """Whether columns are few enough for a matrix in each step: cheap, and likely not singular."""
    is_cheap = products_worth(nonzeros, rows, columns) <= FEW_WORTH
    return columns <= FEW_COLUMNS and FEWEST_ROWS * columns <= rows and is_cheap


def factored(matrix: Doubles) -> Callable[[Doubles], Doubles]:
    """Factors a positive definite matrix, in place; returns what solves equations with it."""
    # Loaded where it is needed: a tenth of a second
    from scipy.linalg import cho_factor, cho_solve

    diagonal = np.diag(matrix)
    if not (np.isfinite(diagonal).all() and diagonal.min() > 0.0):
        raise np.linalg.LinAlgError("rounding left a diagonal that is not above 0")
    scale = 1.0 / np.sqrt(diagonal)
    matrix *= scale[:, None]
    matrix *= scale
    matrix[np.diag_indices(len(matrix))] += ROUNDING
    factor = cho_factor(matrix, overwrite_a=True)

    def solve(right: Doubles) -> Doubles:
        found: Doubles = scale * cho_solve(factor, scale * right)
        return found

    return solve
