"""Packed files of several members: all of them are read to the end, or the file is refused."""

import bz2
import gzip
import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hogwild import DataError, load, load_ratings
from hogwild.data import opening
from hogwild.data.opening import Streams

FIRST = "".join(f"{row % 2} 1:{row} 3:0.5\n" for row in range(30)).encode()
SECOND = "".join(f"{row % 2} 2:{row}\n" for row in range(40)).encode()
REFUSED = "cut off, damaged, or not a (gzip|bzip2) file .*; get it anew"

Pack = Callable[[bytes], bytes]

packed = pytest.mark.parametrize(
    ("suffix", "pack"), [(".gz", gzip.compress), (".bz2", bz2.compress)]
)


def loaded(file: Path, content: bytes) -> list[bytes]:
    file.write_bytes(content)
    rows = load(file)
    return [array.tobytes() for array in (rows.indptr, rows.indices, rows.values, rows.y)]


@pytest.fixture(params=["isal", "zlib"], autouse=True)
def library(request: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """What unpacks gzip."""
    if request.param == "zlib":
        monkeypatch.setattr(opening, "_isal", lambda: None)
    else:
        pytest.importorskip("isal")


@packed
def test_a_flipped_bit_in_a_later_member_leaves_nothing_out(
    suffix: str, pack: Pack, tmp_path: Path
) -> None:
    file, first, second = tmp_path / f"data.svm{suffix}", pack(FIRST), pack(SECOND)
    whole = loaded(file, first + second)
    refused = 0
    for bit in range(8 * len(second)):
        damaged = bytearray(second)
        damaged[bit // 8] ^= 1 << bit % 8
        try:
            assert loaded(file, first + damaged) == whole, bit  # a bit that says nothing: the date
        except DataError as error:
            assert str(error).startswith(f"{file}: ")
            refused += 1
    assert refused > 0.9 * 8 * len(second)


@packed
def test_a_later_member_that_is_cut_off(suffix: str, pack: Pack, tmp_path: Path) -> None:
    file, first, second = tmp_path / f"data.svm{suffix}", pack(FIRST), pack(SECOND)
    for length in range(1, len(second)):
        with pytest.raises(DataError, match=REFUSED):
            loaded(file, first + second[:length])


@packed
@pytest.mark.parametrize("rest", [b"garbage", b"\n", b"\0garbage", b"1 1:1\n" * 20_000])
def test_what_is_no_member_behind_one(suffix: str, pack: Pack, rest: bytes, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=REFUSED):
        loaded(tmp_path / f"data.svm{suffix}", pack(FIRST) + rest)
    ratings = tmp_path / f"data.csv{suffix}"
    ratings.write_bytes(pack(b"1,2,3\n") + rest)
    with pytest.raises(DataError, match=REFUSED):
        load_ratings(ratings)


@pytest.mark.parametrize("zeros", [1, 512, 100_000])
def test_zeros_are_padding_for_gzip_only(zeros: int, tmp_path: Path) -> None:
    file = tmp_path / "data.svm.gz"
    first, second = gzip.compress(FIRST), gzip.compress(SECOND)
    whole = loaded(file, first + second)
    assert loaded(file, first + second + bytes(zeros)) == whole
    assert loaded(file, first + bytes(zeros) + second) == whole
    with pytest.raises(DataError, match=REFUSED):
        loaded(tmp_path / "data.svm.bz2", bz2.compress(FIRST) + bytes(zeros))


@packed
def test_many_members_are_one_text(suffix: str, pack: Pack, tmp_path: Path) -> None:
    file = tmp_path / f"data.svm{suffix}"
    whole = loaded(file, pack((FIRST + SECOND) * 500))
    assert loaded(file, b"".join(map(pack, [FIRST, b"", SECOND] * 500))) == whole


@pytest.mark.parametrize("level", [0, 1, 9])
@pytest.mark.parametrize("most", [1, 100, 65_536, 1 << 20])
def test_gzip_gives_the_same_text_in_reads_of_any_size(most: int, level: int) -> None:
    """Very dense text, too: all of a file is taken in long before all of its text came out."""
    text = (FIRST + SECOND) * 20 + bytes(min(1_000 * most, 3_000_000))
    packed = io.BytesIO(gzip.compress(text, level) * 2)
    stream, found, buffer = Streams(packed, opening._GzipStream), bytearray(), bytearray(most)
    while got := stream.readinto(buffer):
        found += buffer[:got]
    assert found == text * 2


class Broken:
    """A decompressor that is of no use after an error, as Python's own are from 3.14 on."""

    eof, needs_input, unused_data = False, True, b""

    def __init__(self) -> None:
        self._errors: list[Exception] = [OSError("wrong bits"), ValueError("an earlier error")]

    def decompress(self, packed: bytes, most: int) -> bytes:
        raise self._errors.pop(0)


def test_the_error_of_a_stream_is_the_first_one() -> None:
    packed = Streams(io.BytesIO(b"packed"), Broken)
    for _ in range(2):
        with pytest.raises(OSError, match="wrong bits"):
            packed.readinto(bytearray(10))
