"""Conjugate gradients, preconditioned: H d = r, where only products with H are known.

After Hestenes and Stiefel, "Methods of conjugate gradients for solving linear systems", 1952. It
minimizes q(d) = d'H d / 2 - r'd, and can end after any product.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from hogwild.kernels.passes import advance, inner, turn

Doubles = npt.NDArray[np.float64]


class Progress(NamedTuple):
    """Where conjugate gradients are.

    Attributes:
        products: with H, so far.
        square: the squared length of the residual r - H d.
        first: residual' M^-1 residual at d = 0; M is the preconditioner.
        size: residual' M^-1 residual now, as a share of the first.
        gain: -q(d), how much was gained so far.
        last: the part of it that the last product gained.
    """

    products: int
    square: float
    first: float
    size: float
    gain: float
    last: float


class Solution(NamedTuple):
    """The result of conjugate gradients: d, the products of the rows with d, and -q(d)."""

    direction: Doubles
    changes: Doubles
    gain: float


def conjugate_gradients(
    product: Callable[[Doubles, Doubles], Doubles],
    right: Doubles,
    preconditioner: Doubles,
    rows: int,
    goes_on: Callable[[Progress], bool],
    nothing: float = 0.0,
) -> Solution:
    """Solves H d = right until `goes_on` says that it is enough.

    Args:
        product: (p, dots) -> H p; it writes the product of each row and p into `dots`.
        preconditioner: the diagonal of a matrix like H, above 0.
        nothing: residual' M^-1 residual that is rounding only.
    """
    direction, changes, dots = np.zeros(len(right)), np.zeros(rows), np.empty(rows)
    residual, search = right.copy(), right / preconditioner
    size = first = float(inner(residual, search))
    gain, products = 0.0, 0
    while size > nothing:
        image = product(search, dots)
        curvature = float(inner(search, image))
        if not curvature > 0.0:  # rounding, or no penalty and a column of no use
            break
        step, before = size / curvature, size
        moved = changes, direction, residual
        size, square = advance(step, search, image, preconditioner, dots, *moved)
        products += 1
        last = 0.5 * step * before
        gain += last
        if not goes_on(Progress(products, square, first, size / first, gain, last)):
            break
        turn(size / before, residual, preconditioner, search)
    return Solution(direction, changes, gain)
