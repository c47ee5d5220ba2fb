"""The format .rows: the same bits again, damage of any byte refused, text converted in pieces."""

import errno
import itertools
import os
import pickle
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse

import hogwild
from hogwild import DataError
from hogwild.data import rows_file
from hogwild.data.mapped_rows import MappedRows
from hogwild.data.rows_file import HEAD, RowsFile, StoredRows, Writer
from tests.small_pieces import by_two_threads, cut_into

SMALL = 1 << 11  # bytes of a block: many blocks, and damage in one of them


@pytest.fixture
def blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rows_file, "BLOCK_BYTES", SMALL)


def made(columns: int = 300, rows: int = 200, y: Any = None, **more: Any) -> hogwild.Rows:
    random = np.random.default_rng(0)
    matrix = sparse.random(rows, columns, 12 / min(columns, 1000), "csr", np.float32, random)
    matrix.data[:] = random.standard_normal(matrix.nnz)
    y = random.integers(0, 2, rows) if y is None else y
    return hogwild.Rows(matrix, y, **more)


def same(one: hogwild.Rows, other: hogwild.Rows) -> bool:
    """Whether all that rows have is the same to the bit."""
    pairs = [(getattr(one, name), getattr(other, name)) for name in ("indptr", "indices", "values")]
    parts = ("starts", "numbers", "names")
    if hasattr(one.y, "names"):
        pairs += [(getattr(one.y, part), getattr(other.y, part)) for part in parts]
    else:
        pairs.append((one.y, other.y))
    pairs.append((one.sample_weight, other.sample_weight))
    told = "columns", "index_base", "feature_names"
    return all(getattr(one, name) == getattr(other, name) for name in told) and all(
        a is b is None or (a.dtype == b.dtype and a.tobytes() == b.tobytes()) for a, b in pairs
    )


LABELS = {
    "whole": None,
    "none": False,
    "numbers": np.random.default_rng(1).standard_normal(200),
    "text": np.array(["ham", "späm"] * 100),
    "several": [[1, 2], [], [7]] * 66 + [[1], [2]],
}


FAR = 1 << 16, (1 << 16) + 1, 1 << 24, (1 << 24) + 1, 2**32


@pytest.mark.parametrize(
    ("labels", "columns"), [*((name, 300) for name in LABELS), *(("whole", far) for far in FAR)]
)
def test_all_comes_back_to_the_bit(labels: str, columns: int, tmp_path: Path, blocks: None) -> None:
    rows = made(300, y=LABELS[labels] if labels != "none" else None)
    far = rows.indices.copy()
    far[5::7] += np.uint32(columns - 300)  # not in order, as matrices may be
    weights = np.linspace(0, 2, len(rows)) if labels == "whole" else None
    y = None if labels == "none" else rows.y
    given = hogwild.Rows.from_arrays(
        rows.indptr, far, rows.values, columns, y, index_base=1 if columns == 300 else None
    ).weighted(weights)
    given.feature_names = ["a", "b"] if columns == 300 else None
    hogwild.save(given, tmp_path / "a.rows")
    found = hogwild.load(tmp_path / "a.rows")
    assert isinstance(found, StoredRows)
    assert found.file.blocks > 10
    assert (len(found), found.nonzeros, found.is_part) == (len(given), given.nonzeros, False)
    assert not found.is_open  # so far nothing was read
    assert same(found, given)
    assert same(pickle.loads(pickle.dumps(hogwild.load(tmp_path / "a.rows"))), given)
    assert found.take(np.arange(9)).values.tobytes() == given.values[: given.indptr[9]].tobytes()


def test_rows_without_values_and_ones_are_small(tmp_path: Path) -> None:
    ones = np.ones(9000, np.float32)
    indptr = np.append(np.arange(0, 9000, 90), 9000)
    rows = hogwild.Rows.from_arrays(indptr, np.arange(9000) % 90, ones, 90, np.arange(100) % 2)
    empty = hogwild.Rows(np.zeros((100, 3)), np.arange(100) % 2)
    for name, given, most in (("ones", rows, 2.3), ("empty", empty, np.inf)):
        hogwild.save(given, tmp_path / f"{name}.rows")
        assert same(hogwild.load(tmp_path / f"{name}.rows"), given)
        assert (tmp_path / f"{name}.rows").stat().st_size - 2500 <= most * 9000


@pytest.fixture
def good(tmp_path: Path, blocks: None) -> bytes:
    path = tmp_path / "good.rows"
    hogwild.save(made(rows=120, sample_weight=np.full(120, 2.0)), path)
    return path.read_bytes()


def used(path: Path) -> hogwild.Rows:
    rows = hogwild.load(path)
    assert rows.y is not None
    assert rows.sample_weight is not None
    rows.indices  # noqa: B018
    return rows


def test_a_changed_byte_is_noticed_wherever_it_is(good: bytes, tmp_path: Path) -> None:
    path = tmp_path / "bad.rows"
    bits = np.random.default_rng(0).integers(0, 8, len(good))
    for at in [*range(64), *range(64, len(good), 17)]:
        bad = bytearray(good)
        bad[at] ^= 1 << int(bits[at])
        path.write_bytes(bad)
        with pytest.raises(DataError, match=r"bad\.rows: .*(damaged or cut off|version|is not a)"):
            used(path)


def test_a_damaged_block_is_named(good: bytes, tmp_path: Path) -> None:
    with (tmp_path / "good.rows").open("rb") as file:
        index = RowsFile("good.rows", file.fileno()).index
    bad = bytearray(good)
    bad[int(index.offsets[3]) + 200] ^= 4
    (tmp_path / "bad.rows").write_bytes(bad)
    rows = hogwild.load(tmp_path / "bad.rows")
    first = 3 * int(index.each) + 1
    wanted = (
        rf"block 4 of {len(index.kinds)}, rows {first} to {first + int(index.each) - 1}, .*anew"
    )
    with pytest.raises(DataError, match=wanted):
        rows.indices  # noqa: B018


def test_a_cut_file_is_refused_at_any_length(good: bytes, tmp_path: Path) -> None:
    path = tmp_path / "cut.rows"
    for size in [*range(70), *range(70, len(good), 97), len(good) - 1]:
        path.write_bytes(good[:size])
        with pytest.raises(DataError, match=r"is not a|cut off"):
            used(path)
    path.write_bytes(good)
    rows = hogwild.load(path)
    os.truncate(path, len(good) - 64)
    with pytest.raises(DataError, match="became shorter"):
        rows.indices  # noqa: B018


def forged(good: bytes, change: Any) -> bytes:
    """A file that someone changed, and gave the right checksums to."""
    numbers = list(HEAD.unpack(good[: HEAD.size]))
    change(numbers)
    head = HEAD.pack(*numbers)[:-4]
    return head + zlib.crc32(head).to_bytes(4, "little") + good[HEAD.size :]


@pytest.mark.parametrize(("place", "value"), [(2, 1), (3, 10**6), (3, 0), (4, 0), (5, 1), (2, 0)])
def test_nothing_is_read_beyond_the_arrays_of_a_forged_file(
    place: int, value: int, good: bytes, tmp_path: Path
) -> None:
    def change(numbers: list[int]) -> None:
        numbers[place] = value

    (tmp_path / "bad.rows").write_bytes(forged(good, change))
    with pytest.raises(DataError, match=r"bad\.rows"):
        used(tmp_path / "bad.rows")


@pytest.mark.parametrize(
    ("columns", "value"), [(299, 1.0), (1, 1.0), (0, 1.0), (300, np.nan), (300, -np.inf)]
)
def test_what_a_kernel_must_not_see_is_refused_whatever_its_checksum(
    columns: int, value: float, tmp_path: Path, blocks: None
) -> None:
    """Columns beyond those of the file, and values that are no numbers."""
    rows = made(rows=100)
    values = rows.values.copy()
    values[77] = value
    indices = rows.indices.copy()
    indices[5] = 299
    rows.__dict__.update(values=values, indices=indices)
    path = tmp_path / "bad.rows"
    with path.open("wb") as file:
        writer = Writer(file, 16)
        writer.add(rows)
        writer.finish(columns, {"labels": rows.y}, None)
    with pytest.raises(DataError, match=r"block \d of \d, rows \d+ to \d+, "):
        hogwild.load(path).indices  # noqa: B018
    mapped = MappedRows.of(StoredRows(hogwild.load(path).file))
    with pytest.raises(DataError, match=r"block \d of \d"):
        mapped.gather(np.arange(100, dtype=np.uint64))


def test_what_is_no_such_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.rows").write_text("1 3:0.5\n")
    with pytest.raises(
        DataError, match=r"is not a \.rows file in spite of its name; write one with"
    ):
        hogwild.load(tmp_path / "a.rows")
    with pytest.raises(DataError, match=r"\.rows files are not packed once more"):
        hogwild.save(made(), tmp_path / "a.rows.gz")


# Converting

TEXT = "".join(f"{row % 3} {row + 1}:{row / 7:.3g} 70001:1\n" for row in range(500))
CASES = {
    "one": [TEXT],
    "zero later": [TEXT + "1 0:5 3:1\n" + TEXT],
    "zero in the second file": [TEXT, "1 0:5 3:1\n" + TEXT],
    "several labels later": [TEXT + "1,2 3:1\n 4:1\n"],
    "no labels": [TEXT.replace("\n0 ", "\n").replace("\n1 ", "\n").replace("\n2 ", "\n")[2:]],
}


@pytest.mark.parametrize("name", CASES)
def test_text_in_pieces_becomes_what_load_reads(
    name: str, tmp_path: Path, blocks: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    sources = [tmp_path / f"{number}.svm" for number in range(len(CASES[name]))]
    for source, text in zip(sources, CASES[name], strict=True):
        source.write_text(text)
    (tmp_path / "all.svm").write_text("".join(CASES[name]))
    cut_into(1 << 9, monkeypatch)
    by_two_threads(monkeypatch)
    hogwild.convert(sources, tmp_path / "a.rows")
    assert same(hogwild.load(tmp_path / "a.rows"), hogwild.load(tmp_path / "all.svm", labels=False))


@pytest.mark.parametrize("suffixes", [*itertools.permutations([".svm", ".npz", ".rows"], 2)])
def test_formats_are_converted_into_each_other(suffixes: tuple[str, str], tmp_path: Path) -> None:
    source, target = (tmp_path / f"a{suffix}" for suffix in suffixes)
    hogwild.save(made(y=np.arange(200) % 2.0), source, index_base=1)
    hogwild.convert(source, target)
    assert same(hogwild.load(source), hogwild.load(target))


def test_a_disk_that_fills_leaves_nothing_half_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, target = tmp_path / "a.svm", tmp_path / "a.rows"
    source.write_text(TEXT)
    target.write_bytes(b"what was there")
    add = rows_file.Writer.finish

    def full(self: Any, *given: Any) -> None:
        add(self, *given)
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(rows_file.Writer, "finish", full)
    with pytest.raises(hogwild.HogwildError, match="the disk is full; free some space"):
        hogwild.convert(source, target)
    assert target.read_bytes() == b"what was there"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.rows", "a.svm"]


@pytest.mark.parametrize(
    ("sources", "problem"),
    [
        (["1 1:1\n", "1:1\n"], "does not have labels, unlike the files before it"),
        (["1 1:1\n", "1 1:x\n"], r"1\.svm: line 1, column 5: 'x' is not a number"),
        (["1 1:1\n", "\n"], "there are no rows in it"),
    ],
)
def test_sources_that_do_not_fit_are_refused(
    sources: list[str], problem: str, tmp_path: Path
) -> None:
    for number, text in enumerate(sources):
        (tmp_path / f"{number}.svm").write_text(text)
    names = [tmp_path / f"{number}.svm" for number in range(len(sources))]
    with pytest.raises(DataError, match=problem):
        hogwild.convert(names, tmp_path / "a.rows")
    assert not (tmp_path / "a.rows").exists()
