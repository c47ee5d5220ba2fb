"""How far ahead rows are fetched into the cache: measured once for each machine and size of data.

If the data lies in memory, fetching far ahead makes a random order cheap. If the data lies in a
cache, fetching can cost a fifth of the time on one machine and gain a tenth on another. So a few
distances are tried for some milliseconds. The best distance is kept beside the compiled kernels, by
the name of the processor. The choice never changes a result.
"""

import json
import math
from collections.abc import Callable
from contextlib import suppress

from hogwild.errors import HogwildError
from hogwild.kernels.compile import cache_folder
from hogwild.machine import cpu_name
from hogwild.paths import writing

DISTANCES = (320, 0, 160, 640)  # in non-zeros; the first where nothing is measured
ROUNDS = 8  # in which all distances are tried in turn
PROBED = 150_000  # non-zeros that are visited in a try
SMALLEST = 1 << 20  # bytes; smaller data lies in a core's own cache and is not fetched
FILE = "fetch-distances.json"

_known: dict[str, int] = {}  # by size, in this process


def distance(data_bytes: int, seconds_with: Callable[[int], float]) -> int:
    """How many non-zeros ahead rows are fetched, by their bytes; 0: not at all.

    Args:
        data_bytes: the size of the rows.
        seconds_with: visits some rows, others each time, with that distance; how long it takes.
    """
    if data_bytes < SMALLEST:
        return 0
    size = f"{4 ** round(math.log(data_bytes / SMALLEST, 4))} MiB"
    if size not in _known:
        _known.update(chosen().get(cpu_name(), {}))
    if size not in _known:
        _known[size] = _measured(seconds_with)
        _keep()
    return _known[size]


def chosen() -> dict[str, dict[str, int]]:
    """What was measured so far: distances by the size of the data, by processor."""
    folder = cache_folder()
    if folder is None:
        return {}
    # A damaged file counts as none, and is written again
    with suppress(OSError, ValueError, AttributeError):
        found = json.loads((folder / FILE).read_text())
        return {
            str(cpu): {str(size): int(ahead) for size, ahead in by_size.items()}
            for cpu, by_size in found.items()
        }
    return {}


def _measured(seconds_with: Callable[[int], float]) -> int:
    seconds_with(DISTANCES[0])  # what is new takes longest
    least = dict.fromkeys(DISTANCES, math.inf)
    for _ in range(ROUNDS):
        for ahead in DISTANCES:
            least[ahead] = min(least[ahead], seconds_with(ahead))
    return min(least, key=lambda ahead: least[ahead])


def _keep() -> None:
    folder = cache_folder()
    if folder is not None:
        found = chosen() | {cpu_name(): dict(_known)}
        with suppress(HogwildError), writing(folder / FILE) as file:
            file.write(json.dumps(found, indent=1, sort_keys=True).encode())
