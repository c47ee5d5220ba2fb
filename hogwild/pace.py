"""When to prove how good a model is: a proof takes time, so it is made only now and then.

All decisions measure work in passes over the rows, never in seconds.
"""

from dataclasses import dataclass

from hogwild.lasting import Lasting

FIRST = 3  # first passes; a proof may be due after each of them
MORE = 1.15  # factor of the work at the last proof, after which the next one may be due
AT_MOST = 0.1  # share of the work that proofs may take, without the last one
HOPE = 2.0  # factor of the wanted gap: if the expected gap is smaller, a proof is due
# The gap at the end of a pass, relative to what its rows added to the gap when they were visited
SMOOTH, NOT_SMOOTH = 0.2, 0.05
LEAST_PATIENCE = 30.0  # passes; before them, no training counts as stuck
# Training is stuck after this many looks without progress, in three and in 28 times the work
LOOKS, LOOKS_BEFORE = 8, 24
PROGRESS = 0.9  # a gap below this share of the last one is progress


@dataclass
class Pace(Lasting):
    """Counts the work, and says when to look.

    Attributes:
        cost: of a proof, in passes.
        smooth: whether the loss is; the first guess of a gap depends on it.
        progress: a gap is smaller than before if it is below this share of it.
        work: passes so far.
    """

    cost: float
    smooth: bool
    progress: float = PROGRESS
    work: float = 0.0

    lasting = ("work", "_looked_at", "_spent", "_ratio", "_excess", "_least", "_seen")

    def __post_init__(self) -> None:
        self._looked_at = 0.0
        self._spent = 0.0
        self._ratio = SMOOTH if self.smooth else NOT_SMOOTH
        self._excess = 0.0
        self._least = float("inf")
        self._seen = 0  # looks since then

    def passed(self, work: float, excess: float) -> None:
        """Counts a pass, whose rows added `excess` to the gap when they were visited."""
        self.work += work
        self._excess = excess

    def is_due(self, wanted: float) -> bool:
        """Whether to look, where a gap of `wanted` ends the training; 0: none does."""
        expected = self._ratio * self._excess
        if wanted > 0.0 and self.work <= 1.0 and not self.smooth:
            return False  # the first pass leaves a gap of a tenth at least
        if self._seen == 0 and expected <= wanted:
            return True
        if self.work < MORE * self._looked_at and self.work > FIRST:
            return False
        if expected <= HOPE * wanted:
            return True
        if wanted == 0.0 and self.work <= FIRST:
            return True
        return self._is_affordable

    @property
    def _is_affordable(self) -> bool:
        return self._spent + self.cost <= AT_MOST * self.work

    def looked(self, gap: float) -> None:
        """Notes what a look found. A gap of 0 or less, as estimated, is no more than rounding."""
        self._looked_at = self.work
        self._spent += self.cost
        if self._excess > 0.0 and gap > 0.0:
            self._ratio = gap / self._excess
        self._seen += 1
        if max(0.0, gap) < self.progress * self._least:
            self._least, self._seen = max(0.0, gap), 0

    def is_stuck(self, rounded: bool) -> bool:
        """Whether the gap has not become smaller for long.

        `rounded`: whether it is so small that rounding may be why.
        """
        looks = LOOKS if rounded and self._least > 0.0 else LOOKS_BEFORE
        return self._seen >= looks and self.work > LEAST_PATIENCE
