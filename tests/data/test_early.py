"""Packed files are unpacked before their turn: the text is the same, and so are the errors."""

import bz2
import gzip
import lzma
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import hogwild
from hogwild import DataError, status
from hogwild.data import early
from hogwild.data.early import Early, Turns
from hogwild.data.opening import Progress
from tests.small_pieces import by_two_threads

PACKS: dict[str, Callable[[bytes], bytes]] = {
    ".gz": gzip.compress,
    ".bz2": bz2.compress,
    ".xz": lzma.compress,
    "": bytes,
}


@pytest.fixture(params=[1, 5, 1 << 20], ids=["1 byte", "5 bytes", "1 MB"])
def chunk(request: Any, monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr(early, "CHUNK", request.param)
    return int(request.param)


def texts(count: int) -> list[bytes]:
    """Some long, some short; two end without a newline."""
    sizes = [50, 1, 400, 0, 7, 90, 2][:count]
    found = [b"".join(b"%d 1:%d 3:0.5\n" % (n % 2, n + 1) for n in range(size)) for size in sizes]
    return [text[:-1] if place in (1, 4) else text for place, text in enumerate(found)]


def turns(paths: list[Path], threads: int = 2) -> Turns:
    return Turns(paths, Progress(status.Doing("reading"), 0), threads)


def until(happened: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 20
    while not happened():
        assert time.monotonic() < deadline, "it never happened"
        time.sleep(0.001)


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    """Packed ones in three ways, and one that is not."""
    paths = []
    for (place, text), suffix in zip(enumerate(texts(7)), [*PACKS, *PACKS], strict=False):
        path = tmp_path / f"part-{place}.svm{suffix}"
        path.write_bytes(PACKS[suffix](text))
        paths.append(path)
    return paths


@pytest.mark.parametrize("threads", [1, 2, 9])
def test_the_text_is_that_of_the_files_one_after_the_other(
    threads: int, files: list[Path], chunk: int
) -> None:
    found = []
    with turns(files, threads) as given:
        for path in files:
            with given.opened(path) as file:
                found.append(b"".join(iter(lambda file=file: file.read(3), b"")))  # type: ignore[misc]
    assert found == texts(7)


@pytest.mark.parametrize("kind", ["rows", "documents"])
def test_rows_of_packed_files_are_those_of_plain_ones(
    kind: str, files: list[Path], tmp_path: Path, chunk: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    by_two_threads(monkeypatch)
    whole = tmp_path / "all.svm"
    whole.write_bytes(b"".join(text.rstrip(b"\n") + b"\n" * bool(text) for text in texts(7)))
    options: dict[str, Any] = {} if kind == "rows" else {"features": hogwild.Features()}
    found, wanted = hogwild.load(files, **options), hogwild.load(whole, **options)
    for name in ("indptr", "indices", "values", "y"):
        assert getattr(found, name).tobytes() == getattr(wanted, name).tobytes(), name


def test_later_files_are_unpacked_while_the_first_is_read(
    files: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    packed = [path for path in files if path.suffix != ".svm"]
    with turns(packed, threads=3) as given:
        until(lambda: all(file._streams and file._streams.ended for file in [*given._files][1:]))
        assert given._files[0].packed == 0  # it is for who reads
        for path, file in zip(packed, [*given._files], strict=True):
            assert given.file_of(path) is file


def test_no_more_text_waits_than_there_is_room_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(early, "CHUNK", 100)
    monkeypatch.setattr(early, "available_memory", lambda: 1_000 * early.SHARE)
    paths = [tmp_path / f"{name}.gz" for name in "abcd"]
    for path in paths:
        path.write_bytes(gzip.compress(b"x" * 5_000))
    with turns(paths, threads=2) as given:
        until(lambda: not given._room.is_left())
        time.sleep(10 * early.LATER)
        assert given._room._left == 0
        for path in paths:
            with given.opened(path) as file:
                assert len(file.read()) == 5_000
        assert given._room._left == 1_000


def test_errors_come_in_the_order_of_the_files(
    files: list[Path], tmp_path: Path, chunk: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is wrong in a later file is found first, and said last."""
    by_two_threads(monkeypatch)
    whole = files[5].read_bytes()
    files[5].write_bytes(whole[: len(whole) // 2])
    with pytest.raises(DataError, match=rf"^{files[5]}: cut off, damaged, or not"):
        hogwild.load(files)
    files[2].write_bytes(lzma.compress(texts(3)[2] + b"1 x\n"))
    with pytest.raises(DataError, match=rf"^{files[2]}: line 401"):
        hogwild.load(files)
    files[0].write_bytes(gzip.compress(b"1 2:1 1:1\n"))
    with pytest.raises(DataError, match=rf"^{files[0]}: line 1"):
        hogwild.load(files)
    missing = tmp_path / "none.svm.gz"
    with pytest.raises(DataError, match="no such file"):
        hogwild.load([missing, *files])


@pytest.mark.filterwarnings("error::ResourceWarning")
def test_who_stops_reading_leaves_nothing_open(files: list[Path]) -> None:
    packed = [path for path in files if path.suffix != ".svm"]
    opened: list[Early] = []
    with pytest.raises(ZeroDivisionError), turns(packed, threads=4) as given:
        opened += given._files
        until(lambda: any(file.packed for file in opened))
        raise ZeroDivisionError
    assert all(file._raw is None or file._raw.closed for file in opened)


def test_a_system_without_more_threads_reads_all_the_same(
    files: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused() -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr("hogwild.threads.Helper.one", refused)
    with turns(files) as given, given.opened(files[0]) as file:
        assert file.read() == texts(1)[0]
