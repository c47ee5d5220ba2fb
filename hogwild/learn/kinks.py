"""What solvers of a loss with kinks have in common."""

from abc import abstractmethod

from hogwild.learn.newton import NewtonProof
from hogwild.learn.passes import Bias
from hogwild.learn.problem import Doubles
from hogwild.parallel.memory import Arrays

LONGER = 3e-7, 3e-6, 3e-5, 3e-4, 3e-3  # shares by which weights are made longer


class KinkedProof(NewtonProof):
    """Weights in double precision, and their proof."""

    @property
    @abstractmethod
    def _doubles(self) -> tuple[Doubles, float]:
        """The best weights and their intercept."""

    def _rounded(self, shared: Arrays) -> tuple[Doubles, Bias]:
        """Rounds the weights to single precision; their scores and intercept.

        Rounding moves scores, and with the hinge those of support vectors, which were just far
        enough, may then lack more than the optimum is large. Slightly longer weights have room.
        """
        objectives: dict[float, float] = {}
        for share in (0.0, *(LONGER if self._config.loss_name == "hinge" else ())):
            found = self._longer(shared, share)
            if self._is_near:
                return found
            objectives[share] = self._objective
        return self._longer(shared, min(objectives, key=objectives.__getitem__))

    def _longer(self, shared: Arrays, share: float) -> tuple[Doubles, Bias]:
        weights, bias = self._doubles
        self._passes.write(shared["stored"], (1.0 + share) * weights, (1.0 + share) * bias)
        return super()._rounded(shared)

    def _store(self, shared: Arrays) -> None:
        self._passes.write(shared["stored"], *self._doubles)
