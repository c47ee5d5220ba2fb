"""What a program costs that trains: its start, its first compiling, its memory, beside others."""

import os
import sys
import tempfile
from functools import partial
from pathlib import Path

import hogwild
from experiments.children import cpu_seconds, finish, peak
from experiments.measure import Line, best, megabytes, milliseconds, seconds, timed
from experiments.report import FOLDER
from hogwild import OptionError, Rows
from hogwild.data.synthetic import rcv1

SMALL = 1000  # rows
FIRST_REPEATS = 2  # of what takes many seconds
LEAST_START = 0.8
LEAST_FIRST = 1 / 0.75
MOST_KERNEL = 0.010  # seconds
MOST_MEMORY = 1.3  # times the rows' bytes

# What a user of scikit-learn would run for `python -m hogwild train FILE`
SKLEARN_START = """
import sys
from sklearn.datasets import load_svmlight_file
from sklearn.linear_model import SGDClassifier
X, y = load_svmlight_file(sys.argv[1])
X.indices, X.indptr = X.indices.astype("i4"), X.indptr.astype("i4")  # else fit refuses them
SGDClassifier().fit(X, y)
"""
SKLEARN_MEMORY = """
import sys, numpy, scipy.sparse
from sklearn.linear_model import SGDClassifier
y = numpy.load(sys.argv[1])["y"]
SGDClassifier(max_iter=10, tol=None).fit(scipy.sparse.load_npz(sys.argv[1]), y)
"""
FIRST = """
import sys, hogwild
hogwild.train(sys.argv[1], task="svm", loss="hinge", workers=1, epochs=3)
"""
SECOND_KERNEL = """
import time
from hogwild.kernels.compile import ready
from hogwild.loops.shared import shared_loop
from hogwild.steps.sgd import sgd
ready(shared_loop(sgd("hinge", "inverse", False)))
began = time.process_time()
ready(shared_loop(sgd("logistic", "inverse", False)))
print(time.process_time() - began)
"""


def lines(rows: Rows, baseline: Path | None) -> tuple[list[Line], float]:
    """All of them, and the seconds of the first start, which compiles."""
    with tempfile.TemporaryDirectory(prefix="hogwild-speed-") as name:
        folder = Path(name)
        file = folder / "small.svm"
        hogwild.save(rcv1(SMALL)[0], file)
        starting, compiling = start(file, folder)
        first = [first_training(file, baseline)] if baseline else []
        return [starting, *first, second_kernel(folder), *memory(rows, folder)], compiling


def start(file: Path, folder: Path) -> tuple[Line, float]:
    """The command line on a small file; and the seconds of the first run, which compiles."""
    ours = [sys.executable, "-m", "hogwild", "train", str(file)]
    other = [sys.executable, "-c", SKLEARN_START, str(file)]
    kernels = _kernels_in(folder)
    first = timed(lambda: finish(ours, kernels))
    found = best(
        {
            "hogwild": lambda: timed(lambda: finish(ours, kernels)),
            "sklearn": lambda: timed(lambda: finish(other)),
        }
    )
    name = f"train of {SMALL:,} rows, shell"
    return Line(name, found["hogwild"], found["sklearn"], seconds, least=LEAST_START), first


def first_training(file: Path, baseline: Path) -> Line:
    """CPU seconds of a program that trains with no kernel compiled yet, beside a checkout's."""

    def took(tree: Path) -> float:
        with tempfile.TemporaryDirectory(prefix="hogwild-speed-") as folder:
            environment = _kernels_in(Path(folder)) | {"PYTHONPATH": str(tree)}
            return cpu_seconds([sys.executable, "-c", FIRST, str(file)], environment, tree)

    calls = {"ours": partial(took, FOLDER.parent), "other": partial(took, baseline)}
    found = best(calls, FIRST_REPEATS)
    name = "first training, CPU seconds"
    return Line(name, found["ours"], found["other"], seconds, "baseline", least=LEAST_FIRST)


def checked_baseline(given: str | None) -> Path | None:
    """The folder of a checkout; an error where it is none."""
    if given is None:
        return None
    folder = Path(given).resolve()
    if not (folder / "hogwild" / "__init__.py").exists():
        raise OptionError(
            f"--baseline: {given} is no checkout of hogwild; make one with "
            "git worktree add DIR COMMIT"
        )
    return folder


def second_kernel(folder: Path) -> Line:
    """CPU seconds that a kernel takes to load, in a program that has loaded another."""
    command, kernels = [sys.executable, "-c", SECOND_KERNEL], _kernels_in(folder)
    finish(command, kernels)  # compiles
    took = best({"ours": lambda: float(finish(command, kernels))})["ours"]
    return Line("second kernel from the disk, CPU", took, None, milliseconds, most=MOST_KERNEL)


def memory(rows: Rows, folder: Path) -> list[Line]:
    """Peak memory with two workers, less that of the same program on a few rows."""
    train = [sys.executable, "-m", "hogwild", "train"]
    options = ["--workers", "2", "--tol", "0", "--epochs", "10"]
    peer = [sys.executable, "-c", SKLEARN_MEMORY]
    ours, other = [], []
    for name, some in ("all.npz", rows), ("few.npz", rcv1(SMALL)[0]):
        file = str(folder / name)
        hogwild.save(some, file)
        ours.append(peak([*train, file, *options]))
        other.append(peak([*peer, file]))
    more = ours[0] - ours[1]
    return [
        Line("memory for the rows, 2 workers", more, other[0] - other[1], megabytes),
        Line(
            *("memory for the rows, 2 workers", more, rows.nbytes, megabytes, "their bytes"),
            least=1 / MOST_MEMORY,
        ),
    ]


def _kernels_in(folder: Path) -> dict[str, str]:
    """The environment in which compiled kernels are kept in a folder."""
    return {"XDG_CACHE_HOME": os.fspath(folder), "NUMBA_CACHE_DIR": ""}
