"""How far ahead rows are fetched into the cache: measured once for each size of data.

Fetching far ahead makes a random order cheap where the data lies in memory. Where it lies in a
cache, fetching can cost a fifth of the time on one machine and gain a tenth on another. So a few
distances are tried for some milliseconds, and the best is kept in this process. The choice never
changes a result.
"""

import math
from collections.abc import Callable

DISTANCES = (320, 0, 160, 640)  # in non-zeros; the first where nothing is measured
ROUNDS = 8  # in which all distances are tried in turn
PROBED = 150_000  # non-zeros that are visited in a try
SMALLEST = 1 << 20  # bytes; smaller data lies in a core's own cache and is not fetched

_known: dict[int, int] = {}  # by size, as a power of 4


def distance(data_bytes: int, seconds_with: Callable[[int], float]) -> int:
    """How many non-zeros ahead rows of so many bytes are fetched; 0: not at all.

    Args:
        data_bytes: the size of the rows.
        seconds_with: visits some rows, others each time, with that distance; how long it takes.
    """
    if data_bytes < SMALLEST:
        return 0
    size = round(math.log(data_bytes / SMALLEST, 4))
    if size not in _known:
        _known[size] = _measured(seconds_with)
    return _known[size]


def _measured(seconds_with: Callable[[int], float]) -> int:
    seconds_with(DISTANCES[0])  # what is new takes longest
    least = dict.fromkeys(DISTANCES, math.inf)
    for _ in range(ROUNDS):
        for ahead in DISTANCES:
            least[ahead] = min(least[ahead], seconds_with(ahead))
    return min(least, key=lambda ahead: least[ahead])
