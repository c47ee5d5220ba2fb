"""Text in pieces: no cut changes anything, and the first error is that of the text."""

import bz2
import gzip
import lzma
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hogwild import DataError, HogwildError, load
from hogwild.data import pieces, sources
from hogwild.data.opening import PACKINGS
from hogwild.data.pieces import Growing, Parser, Pool, get_ready, read_pieces
from hogwild.data.sources import Piece
from tests.small_pieces import cut_into

if sys.version_info < (3, 14):
    import zstandard


def zstd(data: bytes) -> bytes:
    """Compresses with a checksum; Python can do it from 3.14 on."""
    if sys.version_info >= (3, 14):
        from compression import zstd as packer

        return packer.compress(data, options={packer.CompressionParameter.checksum_flag: 1})
    return zstandard.ZstdCompressor(write_checksum=True).compress(data)


PACKS: dict[str, Callable[[bytes], bytes]] = {
    "": bytes,
    ".gz": gzip.compress,
    ".bz2": bz2.compress,
    ".xz": lzma.compress,
    ".zst": zstd,
}


class Lines(Parser[list[bytes]]):
    """Collects lines, and refuses those that begin with an x."""

    def __init__(self) -> None:
        self.lines: list[bytes] = []
        self.firsts = self.finished = 0
        self.most_waiting = self.waiting = 0
        self.lock = threading.Lock()

    def parse(self, piece: Piece) -> list[bytes]:
        text = bytes(piece.text[piece.begin : piece.end])
        assert text.endswith(b"\n")
        assert bytes(piece.array[piece.begin : piece.end]) == text
        assert len(piece.text) >= piece.end + sources.PADDING
        bad = (b"\n" + text).find(b"\nx")
        if bad >= 0:
            raise DataError(f"{piece.place(piece.begin + bad)}: an x")
        with self.lock:
            self.firsts += piece.first
            self.waiting += 1
            self.most_waiting = max(self.most_waiting, self.waiting)
        return text.splitlines(keepends=True)

    def take(self, found: list[bytes]) -> Callable[[], None]:
        self.lines += found
        with self.lock:
            self.waiting -= 1

        def finish() -> None:
            with self.lock:
                self.finished += 1

        return finish


def lines_of(*paths: Path, threads: int = 2) -> list[bytes]:
    lines = Lines()
    read_pieces(paths, lines, threads)
    assert lines.most_waiting <= 2 * threads
    return lines.lines


@pytest.fixture(params=[1, 2, 5], ids=["1 thread", "2 threads", "5 threads"])
def threads(request: Any) -> int:
    return int(request.param)


TEXT = b"one\n\n\ntwo words\r\n" + b"long " * 30 + b"\nlast"


@pytest.mark.parametrize("end", [b"", b"\n", b"\n\n"])
@pytest.mark.parametrize("suffix", PACKS)
def test_no_cut_changes_anything(
    suffix: str, end: bytes, threads: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths = [tmp_path / f"a{suffix}", tmp_path / f"empty{suffix}", tmp_path / "b"]
    for path, text in zip(paths, (TEXT + end, b"", b"other\nfile"), strict=True):
        path.write_bytes(PACKS[path.suffix](text))
    whole = [*(TEXT + end).splitlines(keepends=True), b"other\n", b"file\n"]
    whole = [line if line.endswith(b"\n") else line + b"\n" for line in whole]
    for size in range(1, len(TEXT) + 4):
        cut_into(size, monkeypatch)
        assert lines_of(*paths, threads=threads) == whole


@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_the_first_error_is_raised_and_names_its_place(
    suffix: str, threads: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, good = tmp_path / f"a{suffix}", tmp_path / "good"
    good.write_bytes(b"a\n" * 50)
    for size in (1, 3, 7, 100, 1000):
        cut_into(size, monkeypatch)
        for line in (1, 2, 30, 100):
            text = b"ab\xc3\xa4\n" * (line - 1) + b"x\n" + b"ok\nx\n" * 30
            path.write_bytes(PACKS[suffix](text))
            with pytest.raises(DataError, match=rf"a({suffix})?: line {line}, column 1: an x"):
                lines_of(good, path, good, threads=threads)


def test_a_column_counts_characters(tmp_path: Path) -> None:
    text = bytearray("eins\nä1 x\n".encode()) + bytes(sources.PADDING)
    piece = Piece("a", text, np.frombuffer(text, np.uint8), 0, 11, True, lambda: 7)
    assert piece.place(text.index(b"x")) == "a: line 9, column 4"
    assert piece.place(2) == "a: line 8, column 3"


class Careful(Lines):
    """Begins with one piece at a time, up to a line `go`."""

    def __init__(self) -> None:
        super().__init__()
        self.alone = True
        self.begun = 0

    def parse(self, piece: Piece) -> list[bytes]:
        if self.alone:
            self.begun += 1
            assert self.begun == 1
        return super().parse(piece)

    def take(self, found: list[bytes]) -> Callable[[], None]:
        self.begun -= 1
        self.alone = self.alone and b"go\n" not in found
        return super().take(found)


def test_the_first_pieces_are_read_alone(
    threads: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cut_into(8, monkeypatch)
    path = tmp_path / "a"
    path.write_bytes(b"before\n" * 20 + b"go\n" + b"after\n" * 50)
    careful = Careful()
    read_pieces([path], careful, threads)
    assert careful.lines == path.read_bytes().splitlines(keepends=True)
    assert careful.firsts == 1
    assert careful.finished > 10


@pytest.mark.parametrize("change", ["longer", "shorter", "other"])
def test_a_file_that_changes_is_refused(
    change: str, threads: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cut_into(64, monkeypatch)
    path = tmp_path / "a"
    path.write_bytes(b"a line\n" * 1000)
    os.utime(path, ns=(0, 0))

    class Changing(Lines):
        def take(self, found: list[bytes]) -> Callable[[], None]:
            if not self.lines:
                if change == "longer":
                    with path.open("ab") as file:
                        file.write(b"more\n")
                elif change == "shorter":
                    os.truncate(path, 3000)
                else:
                    path.write_bytes(b"b line\n" * 1000)
            return super().take(found)

    with pytest.raises(DataError, match="a: has changed while it was read; read it again"):
        read_pieces([path], Changing(), threads)


@pytest.mark.parametrize("suffix", [suffix for suffix in PACKS if suffix])
def test_a_damaged_file_is_refused_before_what_came_of_it(
    suffix: str, threads: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A flipped bit may make a wrong number that looks like a mistake in the text."""
    cut_into(256, monkeypatch)
    path = tmp_path / f"a{suffix}"
    text = b"x wrong\n" + b"".join(b"%d\n" % (7**n) for n in range(300))
    packed = PACKS[suffix](text)
    broken = packed[: -len(packed) // 3] + bytes([packed[-len(packed) // 3] ^ 0xFF])
    broken += packed[len(broken) :]
    for damaged in (packed[:-30], broken, packed + b"rest"):
        path.write_bytes(damaged)
        with pytest.raises(DataError, match="cut off, damaged, or not a"):
            lines_of(path, threads=threads)
    path.write_bytes(packed)
    with pytest.raises(DataError, match="line 1, column 1: an x"):
        lines_of(path, threads=threads)


def test_every_packing_is_tried() -> None:
    assert PACKINGS.keys() == PACKS.keys() - {""}


def test_zeros_between_xz_streams_are_padding(tmp_path: Path) -> None:
    path = tmp_path / "a.xz"
    one, two = lzma.compress(b"one\n"), lzma.compress(b"two\n")
    for zeros in (0, 4, 100_000):
        path.write_bytes(one + bytes(zeros) + two + bytes(zeros))
        assert lines_of(path) == [b"one\n", b"two\n"]
    for damaged in (one + bytes(3), one + bytes(2) + two, bytes(4) + one):
        path.write_bytes(damaged)
        with pytest.raises(DataError, match="cut off, damaged"):
            lines_of(path)


@pytest.mark.skipif(sys.version_info >= (3, 14), reason="Python has it")
def test_without_its_library_zstd_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "zstandard", None)
    path = tmp_path / "a.zst"
    path.write_bytes(PACKS[".zst"](b"one\n"))
    with pytest.raises(HogwildError, match=r"a \.zst file needs zstandard.*hogwild\[zstd\]"):
        lines_of(path)


def test_a_pipe_is_read(threads: int) -> None:
    reading, writing = os.pipe()
    os.write(writing, b"a\n" * 3000)
    os.close(writing)
    try:
        assert lines_of(Path(f"/dev/fd/{reading}"), threads=threads) == [b"a\n"] * 3000
    finally:
        os.close(reading)


@pytest.mark.usefixtures("listening")
def test_ctrl_c_ends_the_wait_for_a_pipe(threads: int) -> None:
    reading, writing = os.pipe()
    os.write(writing, b"a\n")
    # Not `interrupt_main`, which wakes no thread that waits for a lock
    interrupting = threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT))
    interrupting.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            lines_of(Path(f"/dev/fd/{reading}"), threads=threads)
    finally:
        interrupting.join()
        os.close(reading)
        os.close(writing)


def test_ctrl_c_leaves_no_condition_locked(
    threads: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl-C within a condition's `__enter__`, which is Python, would leave the lock locked."""
    enter, ours = threading.Condition.__enter__, str(Path(pieces.__file__).parent.parent)
    holders = set()

    def noted(condition: threading.Condition) -> bool:
        holders.add(sys._getframe(1).f_code.co_filename)
        return bool(enter(condition))

    cut_into(8, monkeypatch)
    path = tmp_path / "a"
    path.write_bytes(b"a\n" * 300)
    monkeypatch.setattr(threading.Condition, "__enter__", noted)
    read_pieces([path], Lines(), threads)
    assert not [holder for holder in holders if holder.startswith(ours)]


def test_other_failures_end_all_threads(
    threads: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cut_into(8, monkeypatch)
    path = tmp_path / "a"
    path.write_bytes(b"a\n" * 3000)

    class Failing(Lines):
        def parse(self, piece: Piece) -> list[bytes]:
            if len(self.lines) > 100:
                raise KeyboardInterrupt
            return super().parse(piece)

    before = threading.active_count()
    with pytest.raises(KeyboardInterrupt):
        read_pieces([path], Failing(), threads)
    assert threading.active_count() == before


class Slow:
    """A kernel that takes a while to load."""

    is_ready = False

    @property
    def compiled(self) -> None:
        time.sleep(0.05)


@pytest.mark.parametrize("cores", [1, 2])
def test_arrays_get_their_memory_while_kernels_load(
    cores: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pieces, "SMALL", 0)
    monkeypatch.setattr(pieces, "SAMPLE", 100)
    monkeypatch.setattr(pieces, "usable_cores", lambda: cores)
    touched: list[int] = []
    monkeypatch.setattr(pieces, "_touch", lambda made, _: touched.extend(map(len, made)))
    paths = [tmp_path / "a", tmp_path / "b"]
    paths[0].write_bytes(b"a line\n" * 3000)
    paths[1].write_bytes(b"a rather long line\n" * 1000)
    arrays = Growing((np.uint32,), paths)
    get_ready([Slow()], arrays, paths, lambda text: [text.count(b"\n")])  # type: ignore[list-item]
    assert touched == [] if cores == 1 else 3500 < touched[0] < 5000
    assert arrays.add([10], 70) == [0]
    with arrays.filling() as (numbers,):
        numbers[:10] = 7
    assert arrays.cut()[0].tolist() == [7] * 10


def test_touching_stops_when_it_is_told_to() -> None:
    array, done = np.ones(3 * pieces.TOUCHED, np.uint8), threading.Event()
    pieces._touch([array], done)
    assert array[:: pieces.PAGE].sum() == 0
    array[:] = 1
    done.set()
    pieces._touch([array], done)
    assert array.all()


def test_a_pool_makes_no_more_than_are_in_use() -> None:
    pool = Pool(object)
    one, two = pool.get(), pool.get()
    pool.put(one)
    assert pool.get() is one
    assert two is not one


def test_a_line_that_does_not_fit_into_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sources, "LONG", 1 << 20)
    monkeypatch.setattr(sources, "available_memory", lambda: 1 << 20)
    for suffix in ("", ".gz"):
        path = tmp_path / f"a.txt{suffix}"
        path.write_bytes(PACKS[suffix](b"1" * (1 << 22)))
        with pytest.raises(DataError, match=r"a\.txt.*: a line has more than .* bytes"):
            read_pieces([path], Lines())


def test_data_that_does_not_fit_into_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.svm.gz"
    path.write_bytes(gzip.compress(b"1 1:1\n" * 1_000_000))
    monkeypatch.setattr(pieces, "LONG", 1 << 20)
    monkeypatch.setattr(pieces, "available_memory", lambda: 1 << 20)
    with pytest.raises(DataError, match=r"a\.svm\.gz: does not fit into memory; .* bytes of text"):
        load(path)


def test_a_small_file_that_unpacks_to_very_much(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.txt.bz2"
    path.write_bytes(bz2.compress(b"# nothing\n" * (1 << 20)))
    monkeypatch.setattr(sources, "SUSPECT", 1 << 20)
    with pytest.raises(DataError, match="unpacks to more than 500 times its size"):
        read_pieces([path], Lines())
