"""`make fuzz`: bad input for every reader; each is read as it should be, or refused by its name.

    make fuzz COUNT=1000000 SEED=1
    make fuzz COUNT=750000 SEED=1 FIRST=250000     (goes on)
    make fuzz COUNT=1 SEED=1 FIRST=1234            (again, what failed)

The seed and the number of an input say all of it: its kind, its contents, and what is wrong.
No reader may claim much more memory than its input takes.
"""

import argparse
import io
import mmap
import os
import random
import resource
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout, suppress
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse

import hogwild
from hogwild import checkpoint
from hogwild.data.synthetic import rcv1
from tests.data import test_fuzz
from tests.features import test_documents, test_objects, test_tables
from tests.models import test_hostile_files

LONGEST = 60  # seconds for an input, after which its reader hangs
CLAIMED = 4 << 30  # bytes that all readers together may claim
AMPLE = 256 << 20  # bytes that any reader may take, besides four times its input
ODD = [
    *(np.array(2**40), np.array([2**40, 3]), np.array([-1, 3]), np.array(b"csc"), np.array("csr")),
    *(np.arange(6.0), np.zeros((2, 3)), np.array([np.nan, 1]), np.array([1e300]), np.array([])),
    *(np.array([2**63], np.uint64), np.array([True]), np.array(["a"]), np.array([1j])),
]

Input = tuple[random.Random, int, Path]  # what draws it, its number, and a folder for it


def _of_text(name: str) -> Callable[..., None]:
    def check(case: random.Random, number: int, folder: Path) -> None:
        with pytest.MonkeyPatch.context() as patch:
            test_fuzz.fuzzed(case, folder / name, patch)

    return check


def _of_features(work: Callable[[int, Path], Any], name: str) -> Callable[..., None]:
    return lambda case, number, folder: work(case.randrange(2**40), folder / name) and None


def _npz_of_rows(case: random.Random, number: int, folder: Path) -> None:
    X = sparse.random(6, 5, 0.4, "csr", np.float32, rng=np.random.default_rng(number))
    good = {"indices": X.indices, "indptr": X.indptr, "data": X.data, "y": np.arange(6) % 2}
    good |= {"shape": np.array(X.shape), "format": np.array(b"csr")}
    path = _npz(case, good, folder / "a.npz")
    _check_rows(path, lambda: hogwild.load(path))


def _npz_of_ratings(case: random.Random, number: int, folder: Path) -> None:
    good = {"users": np.arange(6) % 3, "items": np.arange(6) % 4, "values": np.linspace(1, 5, 6)}
    path = _npz(case, good, folder / "a.npz")
    _check_ratings(path, lambda: hogwild.load_ratings(path))


def _npz(case: random.Random, arrays: dict[str, Any], path: Path) -> Path:
    """A file with some arrays replaced, left out or changed, and now and then damaged."""
    for _ in range(case.choice([0, 1, 1, 2])):
        name = case.choice(list(arrays))
        array = np.array(arrays[name])
        match case.randrange(4):
            case 0:
                del arrays[name]
            case 1:
                arrays[name] = case.choice(ODD)
            case 2 if array.size and array.dtype.kind in "if":
                array.flat[case.randrange(array.size)] = case.choice([-1, 0, 1, 5, 2**31 - 1])
                arrays[name] = array
            case _:
                arrays[name] = array[:-1] if array.ndim else array
        if not arrays:
            arrays["a"] = np.arange(3)
    file = io.BytesIO()
    case.choice([np.savez, np.savez_compressed])(file, **arrays)
    path.write_bytes(_damaged(case, file.getvalue()))
    return path


def _market(case: random.Random, number: int, folder: Path) -> None:
    kind = case.choice(["real", "integer", "pattern", "complex"])
    lines = [f"%%MatrixMarket matrix coordinate {kind} general", "% a comment"]
    entries = [(case.randint(1, 4), case.randint(1, 3), case.randint(1, 5)) for _ in range(5)]
    lines += [f"4 3 {len(entries)}", *(f"{user} {item} {value}" for user, item, value in entries)]
    path = folder / "a.mtx"
    path.write_bytes(test_fuzz.mutated(case, "\n".join(lines).encode()))
    _check_ratings(path, lambda: hogwild.load_ratings(path))


def _rows_file(case: random.Random, number: int, folder: Path) -> None:
    path = folder / "a.rows"
    path.write_bytes(_damaged(case, _good_rows_file(folder)))
    _check_rows(path, lambda: hogwild.load(path))


def _model_of_bytes(case: random.Random, number: int, folder: Path) -> None:
    """A damaged file; its checksum is wrong, too."""
    path = folder / "m.hog"
    path.write_bytes(_damaged(case, (folder / case.choice(list(_models(folder)))).read_bytes()))
    with _refusing(path):
        hogwild.load_model(path)


def _model(case: random.Random, number: int, folder: Path) -> None:
    # A sparse model may have as many columns as memory holds, more than may be claimed here
    silent = redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO())
    with suppress(MemoryError), silent[0], silent[1]:
        test_hostile_files.fuzzed(case, folder / "m.hog", list(_models(folder).values()))


def _checkpoint(case: random.Random, number: int, folder: Path) -> None:
    """Training goes on from a changed checkpoint, or refuses it."""
    path = folder / "changed"
    _write_checkpoint(folder)
    head, body = test_hostile_files.cut(folder / "checkpoint")
    test_hostile_files.put(path, test_hostile_files.mutated(case, head), body)
    with _refusing(path):
        checkpoint.read(path)
        hogwild.train(_rows(), epochs=2, eta0=0.5, workers=1, resume=path)


@contextmanager
def _refusing(path: Path) -> Iterator[None]:
    """A refusal must name the file, or the option that was wrong."""
    try:
        yield
    except (hogwild.OptionError, hogwild.DivergenceError):  # of a state that is sound but absurd
        pass
    except hogwild.HogwildError as problem:
        assert str(path) in str(problem) or str(problem).startswith("resume:"), problem


def _check_rows(path: Path, load: Callable[[], Any]) -> None:
    with _refusing(path):
        rows = load()
        assert len(rows.indptr) == len(rows) + 1
        assert rows.indptr[-1] == len(rows.indices) == len(rows.values)
        assert rows.indices.max(initial=0) < rows.columns
        assert np.isfinite(rows.values).all()


def _check_ratings(path: Path, load: Callable[[], Any]) -> None:
    with _refusing(path):
        ratings = load()
        assert len(ratings.users) == len(ratings.items) == len(ratings.values)
        assert np.isfinite(ratings.values).all()


def _damaged(case: random.Random, data: bytes) -> bytes:
    """Mostly with some bytes changed, or cut off."""
    changed = bytearray(data)
    for _ in range(case.choice([0, 1, 2, 8])):
        changed[case.randrange(len(changed))] = case.choice([0, 1, 255, case.randrange(256)])
    return bytes(changed[: case.randrange(len(changed))] if case.random() < 0.1 else changed)


@cache
def _rows() -> hogwild.Rows:
    return rcv1(60, 400)[0]


@cache
def _good_rows_file(folder: Path) -> bytes:
    hogwild.save(_rows(), folder / "good.rows")
    return (folder / "good.rows").read_bytes()


@cache
def _models(folder: Path) -> dict[str, Any]:
    found = test_hostile_files.saved(folder)
    return dict(zip(test_hostile_files.models(), found, strict=True))


@cache
def _write_checkpoint(folder: Path) -> None:
    path = folder / "checkpoint"
    hogwild.train(_rows(), epochs=1, eta0=0.5, workers=1, checkpoint=path, every=1)


KINDS: dict[str, Callable[[random.Random, int, Path], None]] = {
    "svmlight": _of_text("a.svm"),
    "csv": _of_text("a.csv"),
    "dat": _of_text("a.dat"),
    "text": _of_features(test_documents.fuzzed, "a.txt"),
    "table": _of_features(test_tables.fuzzed, "t.csv"),
    "objects": _of_features(test_objects.fuzzed, "t.jsonl"),
    "npz rows": _npz_of_rows,
    "npz ratings": _npz_of_ratings,
    "mtx": _market,
    "rows": _rows_file,
    "model": _model,
    "damaged model": _model_of_bytes,
    "checkpoint": _checkpoint,
}


def check(seed: int, number: int, folder: Path) -> str | None:
    """What is wrong with how an input is treated, if anything is."""
    kind = list(KINDS)[number % len(KINDS)]
    before = _memory("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")  # the peak begins anew
    signal.alarm(LONGEST)
    try:
        KINDS[kind](random.Random(f"{seed} {number}"), number, folder)
    except Exception:
        return traceback.format_exc()
    finally:
        signal.alarm(0)
    size = max(path.stat().st_size for path in folder.iterdir())
    taken = _memory("VmHWM") - before
    return f"it took {taken:,} bytes of memory" if taken > AMPLE + 4 * size else None


def _memory(name: str) -> int:
    text = Path("/proc/self/status").read_text()
    return 1024 * int(text.partition(f"{name}:")[2].split(maxsplit=1)[0])


def run(
    seed: int, numbers: range, folder: Path, reached: Callable[[int], Any] | None = None
) -> int:
    """Checks inputs; prints failures and returns their number.

    `reached` is called with the number of each input before it is checked.
    """
    failures = 0
    for number in numbers:
        if reached is not None:
            reached(number)
        problem = check(seed, number, folder)
        if problem is not None:
            failures += 1
            kind = list(KINDS)[number % len(KINDS)]
            again = f"make fuzz COUNT=1 SEED={seed} FIRST={number}"
            print(f"FAILED: {kind}, input {number}\n{problem}again: {again}\n", flush=True)
    return failures


def main() -> int:
    parser = argparse.ArgumentParser(description="Bad input for every reader.")
    parser.add_argument("--count", type=int, default=13_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0, help="number of the first input")
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    options = parser.parse_args()
    began, first, end = time.monotonic(), options.first, options.first + options.count
    places = memoryview(mmap.mmap(-1, 8 * options.jobs)).cast("q")  # where each process is
    children = []
    for job in range(options.jobs):
        numbers = range(first + job, end, options.jobs)
        children.append(_forked(options.seed, numbers, partial(places.__setitem__, job)))
    try:
        failed = sum(os.waitpid(child, 0)[1] != 0 for child in children)
    except KeyboardInterrupt:
        for child in children:
            with suppress(ProcessLookupError, ChildProcessError):
                os.kill(child, signal.SIGINT)
                os.waitpid(child, 0)
        print(f"stopped; go on with FIRST={max(first, min(places))}")
        return 130
    counts = Counter(list(KINDS)[number % len(KINDS)] for number in range(first, end))
    print(", ".join(f"{kind} {count:,}" for kind, count in counts.items()))
    print(f"{options.count:,} inputs in {time.monotonic() - began:.0f} s; go on with FIRST={end}")
    return 1 if failed else 0


def _forked(seed: int, numbers: range, reached: Callable[[int], Any]) -> int:
    pid = os.fork()
    if pid:
        return pid
    code = 1
    try:
        warnings.simplefilter("ignore")
        # What is claimed and not used does not count as taken: more than this is refused
        most = _memory("VmSize") + CLAIMED
        resource.setrlimit(resource.RLIMIT_AS, (most, most))
        with tempfile.TemporaryDirectory(prefix="fuzz-") as folder:
            try:
                code = 1 if run(seed, numbers, Path(folder), reached) else 0
            except KeyboardInterrupt:
                signal.signal(signal.SIGINT, signal.SIG_IGN)  # a second one
    finally:
        sys.stdout.flush()
        os._exit(code)


if __name__ == "__main__":
    sys.exit(main())
