"""Where rows are during training: in memory, or in their file."""

from hogwild.config import Config
from hogwild.data.mapped_rows import MappedRows
from hogwild.data.rows import Rows
from hogwild.data.rows_file import StoredRows
from hogwild.data.used_columns import bytes_of_places
from hogwild.errors import DataError
from hogwild.learn.heads import Heads
from hogwild.machine import available_memory
from hogwild.steps.dual import STATE

# Bytes of a process without data: Python, numpy, numba and compiled kernels (Pss_Anon of a training
# on 1,000 rows: 120 MB, 20 MB for each further worker)
BASE, WORKER = 150 << 20, 24 << 20
# Bytes of a row, with a label, while a training prepares: masks and copies of labels
PREPARING = 16
ORDER = 4  # bytes of a row's place in the order
BESIDE = 40  # bytes of a row in memory, besides those of its values
SCORES = 8  # bytes of a row that a proof needs


def placed(rows: Rows, config: Config) -> tuple[Rows, str]:
    """The rows in memory or in their file, and a note if nobody asked for the latter.

    Rows stay in their file if they would exceed the limit of memory, with all that training adds.
    """
    limit = config.memory_bytes
    if not isinstance(rows, StoredRows) or rows.is_part:
        if limit is not None:
            raise DataError(
                f"{rows.name}: with a limit of memory, training needs a .rows file and all of its "
                "rows: make one with hogwild convert SRC train.rows, or hogwild.convert"
            )
        return rows, ""
    more = bytes_of_places(rows.columns, rows.nonzeros) + BESIDE * len(rows)
    needed = BASE + rows.nbytes + more
    if limit is not None:
        return (rows if needed <= limit else MappedRows.of(rows)), ""
    if rows.is_open or needed <= available_memory():
        return rows, ""
    gigabytes = f"{needed / 1e9:,.1f} GB, and {available_memory() / 1e9:,.1f} GB are available"
    note = f"{rows.name}: its rows stay on the disk. In memory they would take {gigabytes}"
    return MappedRows.of(rows), note


def needed(rows: MappedRows, heads: Heads, is_dual: bool, workers: int) -> int:
    """Bytes that a training on such rows takes, besides weights."""
    each = ORDER + 4 * (heads.count if heads.several else 1) + PREPARING
    if is_dual:
        each += 3 * 4 * int(STATE) + SCORES  # shared, kept of the last epoch, and returned
    index = rows.file.index
    blocks = sorted((index.firsts[1:] - index.firsts[:-1]).tolist())[
        -rows.window // rows.file.each :
    ]
    window = 10 * int(sum(blocks))
    return BASE + each * len(rows) + (workers - 1) * WORKER + workers * window
