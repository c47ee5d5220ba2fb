"""The solver `closed`: the normal equations of the squared loss, solved directly.

The Hessian is formed in one pass and factored in double precision. This is one step of Newton's
method with an exact solution. The proof, and the steps that repair rounding, are those of `newton`.
"""

import numpy as np

from hogwild.errors import OptionError
from hogwild.kernels.compile import Kernel
from hogwild.learn.cholesky import operations
from hogwild.learn.conjugate import Solution
from hogwild.learn.newton import Newton, NewtonProof
from hogwild.learn.problem import Doubles, Passed

MOST = 1e11  # operations, about a minute


class Closed(Newton):
    """Newton's method with the Hessian as a matrix, which is refused where that is large."""

    def outcome(self, columns: int, nonzeros: float) -> NewtonProof:
        needed = operations(self._data.nonzeros, len(self._data), columns)
        if needed > MOST:
            raise OptionError(
                f"solver: closed takes {needed:.1g} operations here (rows x mean length^2 + "
                f"columns^3), and {MOST:.0g} are the most; cg takes fewer"
            )
        return ClosedProof(self._config, self._heads, self._data, columns)


class ClosedProof(NewtonProof):
    """Weights that solve the normal equations."""

    def kernels(self, alone: bool) -> list[Kernel]:
        return [*super().kernels(alone), self._passes.of_matrix]

    def _direction(self, passed: Passed) -> Solution:
        """Solves H d = -gradient."""
        hessian = self._passes.hessian()
        hessian[np.diag_indices(self._columns)] += self._l2
        right = self._downhill
        direction = _solved(hessian, right)
        passed()
        changes = self._passes.scores(direction)
        passed()
        return Solution(direction, changes, 0.5 * float(np.einsum("i,i", right, direction)))

    @property
    def _is_near(self) -> bool:
        """Whether the gap is small; without a penalty, where none is known, after a step."""
        if self._l2 > 0.0:
            return super()._is_near
        return bool(np.isfinite(self._gained))


def _solved(matrix: Doubles, right: Doubles) -> Doubles:
    """The solution of the equations; of several, the shortest."""
    from scipy.linalg import LinAlgError, cho_factor, cho_solve, lstsq

    try:
        found: Doubles = cho_solve(cho_factor(matrix), right)
    except LinAlgError:
        found = lstsq(matrix, right)[0]
    return found
