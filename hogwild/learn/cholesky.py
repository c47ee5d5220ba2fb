"""Solves equations with a symmetric matrix of few columns by Cholesky factorization."""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

Doubles = npt.NDArray[np.float64]

ROUNDING = 1e-14  # that is added to the diagonal, so that the matrix has a factor
# In what a product takes for a non-zero: each pair of values of a row; the same of values and
# zeros, where rows are packed; columns, to the third power
PAIR, PACKED_PAIR, ENTRY = 0.25, 0.02, 1 / 30
# Columns of the largest matrix, and products that take as long as making and factoring one that
# interior points still make
MOST_COLUMNS, MOST_WORTH = 2_000, 250.0
# Rows, fewer than columns, whose products interior points make where conjugate gradients do not get
# on. Values of 1e6 in 10 of 6,000 columns left these stuck
MOST_ROWS = 5_000
# Columns that are few, unless rows are packed; rows for each of them, and products that take as
# long as the matrix
FEW_COLUMNS, FEWEST_ROWS, FEW_WORTH = 500, 2, 150.0


def operations(nonzeros: int, rows: int, columns: int) -> float:
    """About how many multiplications making and factoring the matrix of the rows takes."""
    return nonzeros**2 / rows + float(columns) ** 3


def products_worth(nonzeros: int, rows: int, columns: int) -> float:
    """How many products with the Hessian take as long as making and factoring it."""
    making = min(_making(nonzeros, rows, columns))
    return (making + ENTRY * float(columns) ** 3) / max(1, nonzeros)


def products_worth_by_rows(nonzeros: int, rows: int) -> float:
    """The same of a matrix by rows, whose products with each other are known."""
    return ENTRY * float(rows) ** 3 / max(1, nonzeros)


def are_rows_few(rows: int, columns: int) -> bool:
    """Whether a matrix by rows is smaller than one by columns, and small enough to be made."""
    return rows <= min(MOST_ROWS, columns)


def is_packed(nonzeros: int, rows: int, columns: int) -> bool:
    """Whether the matrix is made faster from rows with their zeros; so it is where few are 0."""
    sparse, packed = _making(nonzeros, rows, columns)
    return packed <= sparse


def _making(nonzeros: int, rows: int, columns: int) -> tuple[float, float]:
    """How long making the matrix takes from the non-zeros of the rows, and from packed rows."""
    return PAIR * nonzeros**2 / rows, PACKED_PAIR * float(columns) ** 2 * rows


def are_few(columns: int, rows: int, nonzeros: int, each: int = FEWEST_ROWS) -> bool:
    """Whether columns are few enough for a matrix in each step: cheap, and likely not singular.

    Args:
        each: the fewest rows for each column.
    """
    most = MOST_COLUMNS if is_packed(nonzeros, rows, columns) else FEW_COLUMNS
    is_cheap = products_worth(nonzeros, rows, columns) <= FEW_WORTH
    return columns <= most and each * columns <= rows and is_cheap


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
