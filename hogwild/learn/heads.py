"""The scores of a row, one or K: the kernels, shapes and scratch arrays for either."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from hogwild.kernels.compile import Kernel
from hogwild.kernels.evaluate import POINTS, comparer, evaluator
from hogwild.kernels.evaluate_heads import heads_comparer, heads_evaluator
from hogwild.kernels.heads import register_of, width_of
from hogwild.kernels.targets import WORD
from hogwild.kernels.vectors import LINE
from hogwild.kernels.views import Own, RowView, Shape, Span, view
from hogwild.learn.losses import CLASSES, LABELS, LOSSES
from hogwild.steps.heads import heads as step_of_heads
from hogwild.steps.sgd import sgd
from hogwild.steps.step import Step

Weights = npt.NDArray[np.float32]
TRIED = 16  # heads, at most, that rates are tried with: the rate depends mostly on the rows
# K heads at once take as long as K / AT_ONCE one after the other
AT_ONCE = 8


@dataclass(frozen=True)
class Heads:
    """The scores of a row: one, or one for each class or label.

    Attributes:
        loss, kind: the names of the loss and of the kind of targets.
        count: how many scores a row has.
        known: how many classes or labels its targets know; more than `count` where some are left
            out.
    """

    loss: str
    kind: str
    count: int = 1
    known: int = 1

    @property
    def several(self) -> bool:
        """Whether kernels for several heads are used, for one class or label, too."""
        return self.kind in (CLASSES, LABELS)

    @property
    def width(self) -> int:
        """Numbers stored for a column."""
        return width_of(self.count) if self.several else 1

    @property
    def effort(self) -> float:
        """The time that a non-zero takes, over that with one score."""
        return max(1.0, self.width / AT_ONCE)

    @property
    def coupled(self) -> bool:
        """Whether a head's slope depends on the scores of the others."""
        return LOSSES[self.loss].kinds == (CLASSES,)

    @property
    def groups(self) -> int:
        """The number of groups of heads that are learned independently of each other."""
        return 1 if self.coupled else -(-self.count // register_of(self.width))

    def few(self) -> "Heads":
        """Some of the heads, to try rates with."""
        return self if self.coupled else replace(self, count=min(self.count, TRIED))

    def step(self, schedule: str, weighted: bool) -> Step:
        """The step of stochastic gradient descent."""
        if self.several:
            return step_of_heads(self.loss, self.kind, schedule, weighted, register_of(self.width))
        return sgd(self.loss, schedule, weighted)

    def shape(self, weighted: bool, groups: tuple[int, int] | None = None) -> Shape:
        """The shape that kernels take: of all heads, or of some groups in an array of their own."""
        lanes, width = (0, self.count), self.width
        if groups is not None and self.groups > 1:
            lanes = groups[0] * LINE, min(groups[1] * LINE, self.count)
            width = LINE * (groups[1] - groups[0])
        words = -(-self.known // int(WORD)) if self.kind == LABELS else 1  # without the weight
        return view(Shape, width, *lanes, words + weighted)

    def scratch(self, width: int | None = None) -> Own:
        """Scratch for one worker whose step stores `width` numbers for a column."""
        width = width or self.width
        scores, signs = zeros_on_a_line(width), zeros_on_a_line(width)
        signs[: self.count] = -1
        slopes = np.append(np.zeros(width + 1), np.ones(2))
        arrays = scores, slopes, np.zeros(width, np.float32), signs
        return view(Own, *arrays)

    def kernels(self, weighted: bool) -> list[Kernel]:
        """The evaluator, and the kernel that compares weights."""
        if self.several:
            given = self.loss, self.kind, weighted, register_of(self.width)
            return [heads_evaluator(*given), heads_comparer(*given)]
        return [evaluator(self.loss, self.kind, weighted), comparer(self.loss, weighted)]

    def evaluate(
        self, rows: RowView, weighted: bool, span: Span, weights: Weights, parameter: float
    ) -> npt.NDArray[np.float64]:
        """The sums over some rows of the losses and of the two errors of the kind of target."""
        look, _ = self.kernels(weighted)
        return np.array(look(rows, span, weights, parameter, *self._more(weighted)))

    def losses(
        self,
        rows: RowView,
        weighted: bool,
        span: Span,
        weights: Sequence[Weights],
        parameter: float,
    ) -> npt.NDArray[np.float64]:
        """The losses of some rows, a line for each of some weights."""
        points = (*weights, *(POINTS - len(weights)) * [weights[0]])  # the rest is not looked at
        found = np.empty((len(weights), int(span.end - span.begin)))
        _, compare = self.kernels(weighted)
        given = rows, span, points, np.uintp(len(weights)), parameter, *self._more(weighted)
        compare(*given, found.ravel())
        return found

    def _more(self, weighted: bool) -> tuple[Any, ...]:
        """Further arguments of the kernels for several heads."""
        return (self.shape(weighted), self.scratch()) if self.several else ()


def heads_of(loss: str, kind: str, count: int) -> Heads:
    """The heads for a loss, a kind of targets and a number of labels to score."""
    return Heads(loss, kind, count, count)


def zeros_on_a_line(size: int) -> Weights:
    """Zeros that begin on a cache line, as kernels for several heads take them."""
    return room_on_a_line(size, np.float32)


def room_on_a_line(size: int, kind: Any) -> npt.NDArray[Any]:
    """Zeros of any type that begin on a cache line."""
    room = np.zeros(size + LINE, kind)
    first = -(room.ctypes.data // room.itemsize) % LINE
    return room[first : first + size]
