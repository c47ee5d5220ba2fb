"""When to prove how good a model is: a proof takes time, too, and is worth it only now and then.

All decisions count work, in passes over the rows, and never seconds.
"""

from dataclasses import dataclass

FIRST = 3  # passes, after each of which it may be time
MORE = 1.15  # times the work of the last proof
AT_MOST = 0.1  # share of the work that proofs take, but for the last
HOPE = 2.0  # times what is wanted: a gap that is expected to be smaller is looked at
# The gap at the end of a pass, over what the rows of that pass added to it when they were visited
SMOOTH, NOT_SMOOTH = 0.2, 0.05
LEAST_PATIENCE = 30.0  # passes, before which no training is stuck
# Looks without progress after which training is stuck, in three times and in 28 times the work
LOOKS, LOOKS_BEFORE = 8, 24
PROGRESS = 0.9  # share of a gap: one below it is progress


@dataclass
class Pace:
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
