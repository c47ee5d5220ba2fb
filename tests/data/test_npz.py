"""Rows in .npz: what scipy and others write is read, what is damaged or dangerous is named."""

import pickle
import zipfile
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as numbers
from scipy import sparse

from hogwild import DataError, Rows, load, save
from hogwild.data import npz

Y = np.array([1, -1, 1, 1, -1])
X = sparse.csr_matrix(
    np.array([[0, 2, 0], [0, 0, 0], [1, 0, 0.5], [0, 0, 1e-45], [3, 4, 5]], np.float32)
)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "data.npz"


def parts(**changes: Any) -> dict[str, Any]:
    """The arrays of a good file; None leaves one out."""
    good: dict[str, Any] = {
        "indices": X.indices,
        "indptr": X.indptr,
        "data": X.data,
        "shape": np.array(X.shape),
        "format": np.array(b"csr"),
        "y": Y,
    }
    return {key: value for key, value in (good | changes).items() if value is not None}


def assert_is(rows: Rows, matrix: Any, y: Any) -> None:
    np.testing.assert_array_equal(rows.to_scipy().toarray(), matrix.toarray())
    assert (len(rows), rows.columns) == matrix.shape
    if y is None:
        assert rows.y is None
    else:
        np.testing.assert_array_equal(rows.y, y)


# What is read


@pytest.mark.parametrize("key", ["y", "labels", "target", "targets"])
def test_labels_have_several_names(key: str, file: Path) -> None:
    np.savez(file, **parts(y=None), **{key: Y})
    assert_is(load(file), X, Y)


@pytest.mark.parametrize("suffix", [".y.npy", ".labels.npy"])
@pytest.mark.parametrize("compressed", [True, False])
@pytest.mark.parametrize("kind", ["csr", "csc", "coo"])
def test_what_scipy_saves_is_read_with_labels_beside_it(
    kind: str, compressed: bool, suffix: str, file: Path
) -> None:
    sparse.save_npz(file, X.asformat(kind), compressed)
    assert_is(load(file, labels=False), X, None)
    np.save(file.with_suffix(suffix), Y)
    assert_is(load(file), X, Y)


@pytest.mark.parametrize("kind", ["csr", "csc", "coo"])
def test_sparse_arrays_are_read_as_matrices_are(kind: str, file: Path) -> None:
    sparse.save_npz(file, sparse.csr_array(X).asformat(kind))
    assert_is(load(file), X, None)


def test_without_values_all_are_one(file: Path) -> None:
    np.savez(file, **parts(data=None, format=None))
    assert_is(load(file), X != 0, Y)


@pytest.mark.parametrize("index", [np.int32, np.int64, np.uint32, np.uint64, np.uint8])
@pytest.mark.parametrize("value", [np.float32, np.float64, np.int8, np.bool_])
def test_any_kind_of_number_will_do(index: Any, value: Any, file: Path) -> None:
    data = X.data.astype(value)
    arrays = {"indices": X.indices.astype(index), "indptr": X.indptr.astype(index), "data": data}
    np.savez(file, **parts(**arrays))
    np.testing.assert_array_equal(load(file).values, data.astype(np.float32))


def test_text_may_be_the_labels(file: Path) -> None:
    words = np.where(Y > 0, "spam", "ham")
    np.savez(file, **parts(y=words))
    assert load(file).labels == ("ham", "spam")


def test_a_packed_npz_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "data.npz.gz"
    for use in (load, lambda path: save(Rows(X, Y), path)):
        with pytest.raises(
            DataError, match=r"\.npz files are not packed once more; leave out \.gz"
        ):
            use(file)
    assert not file.exists()


# What is written

values = numbers.arrays(
    np.float32, (4, 5), elements=st.floats(width=32, allow_nan=False, allow_infinity=False)
)
labels = st.sampled_from([Y[:4], Y[:4].astype(np.float64), Y[:4] > 0, np.array(list("abab")), None])


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(dense=values, y=labels, base=st.sampled_from([0, 1]))
def test_what_is_saved_is_loaded_bit_for_bit(dense: Any, y: Any, base: int, tmp_path: Path) -> None:
    file = tmp_path / "data.npz"
    indptr, indices = np.arange(0, 21, 5), np.tile(np.arange(5), 4)
    rows = Rows.from_arrays(indptr, indices, dense.ravel(), 7, y, index_base=base)
    save(rows, file)
    again = load(file)
    assert (again.columns, again.index_base, again.name) == (7, base, str(file))
    for name in ("indptr", "indices"):
        np.testing.assert_array_equal(getattr(again, name), getattr(rows, name))
    assert again.values.tobytes() == rows.values.tobytes()
    if y is None:
        assert again.y is None
    else:
        np.testing.assert_array_equal(again.y, y)
        assert again.y is not None
        assert again.y.dtype == y.dtype


def test_scipy_reads_what_is_saved(file: Path) -> None:
    save(Rows(X, Y), file)
    again = sparse.load_npz(file)
    assert again.dtype == np.float32
    np.testing.assert_array_equal(again.toarray(), X.toarray())


def test_more_columns_than_signed_indices_can_count(file: Path) -> None:
    rows = Rows.from_arrays(np.array([0, 1]), np.array([2**32 - 1]), np.ones(1), 2**32, [1])
    save(rows, file)
    again = load(file)
    assert (again.columns, again.indices.tolist()) == (2**32, [2**32 - 1])


def test_labels_of_any_object_are_not_written(file: Path) -> None:
    with pytest.raises(DataError, match=r"labels of the type object .*astype"):
        save(Rows(X, np.array([1, "a", None, 2, 3], object)), file)
    assert not file.exists()


# What is refused

WRONG: list[tuple[dict[str, Any], str]] = [
    ({"indptr": None}, r"no indptr in it, only indices, data, shape, format, y"),
    ({"indices": None, "shape": None}, r"no indices, shape in it"),
    ({"format": np.array(b"bsr")}, r"format 'bsr'; save it as csr"),
    ({"format": np.array(b"csc"), "indices": None}, r"no indices in it"),
    ({"format": np.array(b"coo")}, r"no row, col in it"),
    ({"shape": np.array([5])}, r"shape \[5\] is not one of rows x columns"),
    ({"shape": np.array([-5, 3])}, r"shape \[-5, 3\]"),
    ({"shape": np.array([4, 3])}, r"4 rows need 5 row pointers .* there are 6"),
    ({"shape": np.array([5, 2])}, r"column 2 in row 3; columns go from 0 to 1"),
    ({"indices": X.indices.astype(float)}, r"'indices' is an array of float64 .* whole numbers"),
    ({"indices": X.indices[:-1]}, r"damaged CSR arrays"),
    ({"indptr": X.indptr[::-1].copy()}, r"damaged CSR arrays"),
    ({"data": X.data.astype(complex)}, r"'data' is an array of complex64|complex128 .* numbers"),
    ({"data": X.data.reshape(1, -1)}, r"'data' is an array of float32 in 2 dimension"),
    ({"data": X.data * np.float32(np.nan)}, r"value nan in row 1"),
    ({"data": np.array([1, None] * 4, object)}, r"'data' holds Python objects"),
    ({"y": np.array([1, None, 2, 3, 4], object)}, r"'y' holds Python objects.*may run code"),
    ({"y": Y[:-1]}, r"5 rows need 5 labels"),
    ({"y": Y.reshape(-1, 1) * np.ones(2)}, r"'y' is an array of float64 in 2 dimension"),
    ({"labels": Y}, r"has y and labels; keep the one"),
    ({"index_base": np.array(7)}, r"'index_base' is 7; expected 0 or 1"),
]


@pytest.mark.parametrize(("changes", "words"), WRONG)
def test_what_is_wrong_is_named(changes: dict[str, Any], words: str, file: Path) -> None:
    np.savez(file, **parts(**changes))
    with pytest.raises(DataError, match=words) as caught:
        load(file)
    assert str(caught.value).startswith(f"{file}: ")


def test_indices_of_other_formats_are_checked_before_scipy_trusts_them(file: Path) -> None:
    csc = X.tocsc()
    indices = csc.indices.copy()
    indices[0] = 1_000_000
    arrays = {"indices": indices, "indptr": csc.indptr, "data": csc.data}
    np.savez(file, **parts(format=np.array(b"csc"), **arrays))
    with pytest.raises(DataError, match="the csc matrix is damaged"):
        load(file)
    coo = X.tocoo()
    arrays = {"row": coo.row, "col": coo.col + 100, "data": coo.data, "indices": None}
    np.savez(file, **parts(format=np.array(b"coo"), **arrays))
    with pytest.raises(DataError, match="the coo matrix is damaged"):
        load(file)


def test_a_matrix_fits_to_text_of_either_base(file: Path) -> None:
    save(Rows(X, Y), file)
    for base in (0, 1):
        rows = load(file, index_base=base)
        assert rows.index_base == base
        np.testing.assert_array_equal(rows.to_scipy().toarray(), load(file).to_scipy().toarray())


def test_damaged_files(file: Path) -> None:
    save(Rows(X, Y), file)
    whole = file.read_bytes()
    with zipfile.ZipFile(file) as archive:
        at = archive.getinfo("data.npy").header_offset + 200
    flipped = bytearray(whole)
    flipped[at] ^= 0xFF
    for damaged in (whole[: len(whole) // 2], whole[:-30], bytes(flipped)):
        file.write_bytes(damaged)
        with pytest.raises(DataError, match="damaged or cut off"):
            load(file)


def test_every_cut_and_every_flipped_byte_is_a_data_error_or_harmless(file: Path) -> None:
    save(Rows(X, Y), file)
    whole = file.read_bytes()
    random = np.random.default_rng(0)
    for at in random.choice(len(whole), 150, replace=False):
        flipped = bytearray(whole)
        flipped[at] ^= 1 << int(random.integers(8))
        for damaged in (whole[:at], bytes(flipped)):
            file.write_bytes(damaged)
            try:
                rows = load(file)
            except DataError:
                continue
            assert_is(rows, X, Y)


@pytest.mark.parametrize(
    "content", [b"", b"1 1:0.5\n", b"\x93NUMPY\x01\x00", pickle.dumps({"y": 1})], ids=repr
)
def test_other_files_with_this_name(content: bytes, file: Path) -> None:
    file.write_bytes(content)
    with pytest.raises(DataError, match=r"is not an \.npz file"):
        load(file)


@pytest.mark.parametrize("kind", ["coo", "csc"])
def test_a_shape_of_many_rows_in_a_small_file(kind: str, file: Path) -> None:
    """Row pointers of 32 GiB would be made for them."""
    sparse.save_npz(file, X.asformat(kind))
    with np.load(file) as archive:
        arrays = dict(archive)
    np.savez(file, **(arrays | {"shape": np.array([2**32, 3])}))
    with pytest.raises(DataError, match=r"4,294,967,296 rows in a file of .* bytes do not fit"):
        load(file)


def test_arrays_must_be_as_large_as_their_heads_say_and_fit(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    head = BytesIO()
    about = {"descr": "<f4", "fortran_order": False, "shape": (2**38,)}
    np.lib.format.write_array_header_1_0(head, about)
    np.savez(file, **parts(data=None))
    with zipfile.ZipFile(file, "a") as archive:
        archive.writestr("data.npy", head.getvalue() + bytes(40))
    with pytest.raises(DataError, match=r"needs 1,099,511,627,776 bytes, and there are 40"):
        load(file)
    np.savez(file, **parts())
    monkeypatch.setattr(npz, "available_memory", lambda: 20)
    with pytest.raises(DataError, match=r"does not fit into memory"):
        load(file)


def test_an_archive_that_unpacks_to_very_much(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    np.savez_compressed(file, **parts(ignored=np.zeros(1 << 20)))
    assert_is(load(file), X, Y)
    monkeypatch.setattr(npz, "SUSPECT", 1 << 20)
    with pytest.raises(DataError, match=r"unpacks to 8,\d{3},\d{3} bytes, more than 500 times"):
        load(file)


def test_bad_labels_beside_the_file_are_named_by_their_own_file(file: Path) -> None:
    np.savez(file, **parts(y=None))
    beside = file.with_suffix(".y.npy")
    np.save(beside, np.array([1, None], object))
    with pytest.raises(DataError, match=r"data.y.npy: the labels cannot be read"):
        load(file)
    np.save(beside, Y[:3])
    with pytest.raises(DataError, match="5 rows need 5 labels"):
        load(file)
