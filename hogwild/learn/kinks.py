"""What solvers of a loss with kinks have in common."""

from abc import abstractmethod

from hogwild.learn.newton import NewtonProof
from hogwild.learn.passes import Bias
from hogwild.learn.problem import Doubles
from hogwild.parallel.memory import Arrays

LONGER = 3e-7, 3e-6, 3e-5, 3e-4, 3e-3  # shares by which weights are made longer
IN_VAIN = 1_000_000  # steps without progress: more than any patience


class KinkedProof(NewtonProof):
    """Weights in double precision, and their proof."""

    @property
    @abstractmethod
    def _doubles(self) -> tuple[Doubles, float]:
        """The best weights and their intercept."""

    def settle(self, shared: Arrays) -> tuple[Doubles, Bias]:
        """Takes the objective of the weights in single precision; their scores and intercept.

        Rounding moves scores, and with the hinge those of support vectors, which were just far
        enough, may then lack more than the optimum is large. Slightly longer weights have room. If
        they do not help either, steps in double precision would not.
        """
        exact, was_near = self._objective, self._is_near
        objectives: dict[float, float] = {}
        for share in (0.0, *(LONGER if self._config.loss_name == "hinge" else ())):
            found = self._settle_longer(shared, share)
            if self._is_near:
                return found
            objectives[share] = self._objective
        found = self._settle_longer(shared, min(objectives, key=objectives.__getitem__))
        if was_near and self._objective - exact > self._config.tol * self._size:
            self._idle = IN_VAIN
        return found

    def _settle_longer(self, shared: Arrays, share: float) -> tuple[Doubles, Bias]:
        weights, bias = self._doubles
        self._passes.write(shared["stored"], (1.0 + share) * weights, (1.0 + share) * bias)
        return super().settle(shared)

    def _store(self, shared: Arrays) -> None:
        self._passes.write(shared["stored"], *self._doubles)
