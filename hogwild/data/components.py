"""Parts of the rows that share no column."""

import heapq

import numpy as np
import numpy.typing as npt

from hogwild.data.rows import Rows
from hogwild.errors import DataError
from hogwild.kernels.components import connect

MOST = 0.5  # of the non-zeros in one part: with more, others would wait for it most of the time

Numbers = npt.NDArray[np.uint32]


def parts_apart(rows: Rows, parts: int) -> list[Numbers]:
    """Divides the rows into sets of about equal size, no two of which share a column.

    Raises:
        DataError: the columns hang together too much for that.
    """
    parents, roots = np.empty(rows.columns, np.uint32), np.empty(len(rows), np.uint32)
    connect(rows.begins, rows.ends, rows.indices, parents, roots)
    groups, group_of = np.unique(roots, return_inverse=True)
    lengths = (rows.ends - rows.begins).astype(np.float64)
    weights = np.bincount(group_of, lengths + 1, minlength=len(groups))
    if len(groups) < 2 or weights.max() > MOST * weights.sum():
        share = 100 * weights.max() / weights.sum() if len(groups) else 100.0
        raise DataError(
            f"{rows.name}: strata need rows in parts that share no column, and here {share:.3g} % "
            "of the data hangs together: take the strategy ordered for the same bytes with any "
            "number of workers, or auto"
        )
    part_of = np.empty(len(groups), np.intp)
    heap = [(0.0, part) for part in range(parts)]
    for group in np.argsort(-weights, kind="stable"):  # the heaviest first, to the lightest part
        load, part = heapq.heappop(heap)
        part_of[group] = part
        heapq.heappush(heap, (load + float(weights[group]), part))
    of_row = part_of[group_of]
    return [np.flatnonzero(of_row == part).astype(np.uint32) for part in range(parts)]
