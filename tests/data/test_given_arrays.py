"""Numbers of every byte order and width mean the same wherever they come in, or are refused."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse

import hogwild
from hogwild import DataError, Ratings, Rows, load, load_ratings, model_file, save, save_ratings
from hogwild.data.ids import Ids

INTEGERS = [order + kind + size for order in "<>" for kind in "iu" for size in "1248"]
NUMBERS = INTEGERS + [order + "f" + size for order in "<>" for size in ("2", "4", "8", "16")]

X = sparse.random(20, 30, 0.2, "csr", np.float32, np.random.default_rng(0))
X.data = np.ceil(9 * X.data)
DENSE = X.toarray()
Y = np.where(np.arange(20) % 3 == 0, 1, 2)


def assert_holds(data: Rows | Ratings) -> None:
    np.testing.assert_array_equal(data.to_scipy().toarray(), DENSE)


def with_places(form: str, dtype: str) -> Any:
    """The matrix with indices and pointers of this type, set behind scipy's back."""
    matrix = X.asformat(form, copy=True)
    for name in ("row", "col") if form == "coo" else ("indices", "indptr"):
        setattr(matrix, name, getattr(matrix, name).astype(dtype))
    return matrix


def with_values(form: str, dtype: str) -> Any:
    matrix = X.asformat(form, copy=True)
    matrix.data = matrix.data.astype(dtype)
    return matrix


def swapped(array: Any) -> Any:
    """The same numbers or texts in the other byte order."""
    array = np.asarray(array)
    return array.astype(array.dtype.newbyteorder("S"))


@pytest.mark.parametrize("form", ["csr", "csc", "coo"])
@pytest.mark.parametrize("dtype", INTEGERS)
def test_indices_and_pointers_of_a_matrix(form: str, dtype: str) -> None:
    assert_holds(Rows(with_places(form, dtype), Y))
    assert_holds(Ratings(with_places(form, dtype)))


@pytest.mark.parametrize("dtype", INTEGERS)
def test_arrays_of_rows_and_codes_of_ratings(dtype: str) -> None:
    assert_holds(Rows.from_arrays(X.indptr.astype(dtype), X.indices.astype(dtype), X.data, 30))
    coo = X.tocoo()
    codes = coo.row.astype(dtype), coo.col.astype(dtype)
    assert_holds(Ratings.from_codes(*codes, coo.data, Ids.numbered(20), Ids.numbered(30)))


@pytest.mark.parametrize("form", ["csr", "csc", "coo"])
@pytest.mark.parametrize("dtype", NUMBERS)
def test_values(form: str, dtype: str) -> None:
    assert_holds(Rows(with_values(form, dtype), Y))
    assert_holds(Ratings(with_values(form, dtype)))
    assert_holds(Rows(DENSE.astype(dtype), Y))


@pytest.mark.parametrize("dtype", [name for name in NUMBERS if "f16" not in name] + ["<U1", ">U1"])
def test_labels(dtype: str) -> None:
    rows = Rows(X, Y.astype(dtype))
    assert rows.labels == (("1", "2") if "U" in dtype else (1, 2))
    np.testing.assert_array_equal(rows.targets(), np.where(Y == 2, 1, -1))


@pytest.mark.parametrize("dtype", [*INTEGERS, "<U3", ">U3"])
def test_ids(dtype: str) -> None:
    given = np.array([7, 100, 7]).astype(dtype)
    ids, codes = Ids.of(given)
    assert ids.tolist() == (["7", "100"] if "U" in dtype else [7, 100])
    assert codes.tolist() == [0, 1, 0]
    assert ids.codes_of(given[1:]).tolist() == [1, 0]


@pytest.mark.parametrize("dtype", ["<u8", ">u8"])
def test_ids_that_are_too_large(dtype: str) -> None:
    large = np.array([2**63 + 5], dtype)
    with pytest.raises(DataError, match="9223372036854775813 does not fit into 64 bits"):
        Ids.of(large)
    with pytest.raises(DataError, match="9223372036854775813 does not fit into 64 bits"):
        Ids.numbered(3).codes_of(large)


# Files from a machine of the other byte order


def swap_npz(file: Path) -> None:
    with np.load(file) as archive:
        arrays = {name: swapped(archive[name]) for name in archive.files}
    np.savez(file, **arrays)


@pytest.mark.parametrize("form", ["csr", "csc", "coo"])
def test_npz_of_a_matrix(form: str, tmp_path: Path) -> None:
    file = tmp_path / "data.npz"
    sparse.save_npz(file, X.asformat(form))
    swap_npz(file)
    np.save(tmp_path / "data.y.npy", swapped(Y))
    assert_holds(load(file))
    np.testing.assert_array_equal(load(file).y, Y)
    assert_holds(load_ratings(file))


def test_npz_of_rows(tmp_path: Path) -> None:
    file = tmp_path / "data.npz"
    save(Rows(X, Y.astype(str)), file, index_base=1)
    swap_npz(file)
    again = load(file)
    assert_holds(again)
    assert (again.labels, again.index_base) == (("1", "2"), 1)


@pytest.mark.parametrize("user", [[70, 5, 70], ["ä", "b", "ä"], [0, 1, 0]])
def test_npz_of_ratings_with_their_ids(user: list[Any], tmp_path: Path) -> None:
    file = tmp_path / "data.npz"
    ratings = Ratings(user, [3, 2, 2], [1, 2, 3])
    save_ratings(ratings, file)
    swap_npz(file)
    again = load_ratings(file)
    assert (again.user_ids, again.item_ids) == (ratings.user_ids, ratings.item_ids)
    np.testing.assert_array_equal(again.to_scipy().toarray(), ratings.to_scipy().toarray())


@pytest.mark.parametrize(
    "data", [Rows(X, Y), Ratings(X), Ratings(["ä", "b"], [70, 5], [1, 2])], ids=["svm", "mf", "ids"]
)
def test_models_and_states(data: Rows | Ratings, tmp_path: Path) -> None:
    options = {"epochs": 1, "eta0": 0.01, "workers": 1}
    result = hogwild.train(data, **options)
    file = tmp_path / "model"
    result.model.save(file)
    written = file.read_bytes()
    about, arrays = model_file.read(file)
    model_file.write(file, about, {name: swapped(array) for name, array in arrays.items()})
    hogwild.load_model(file).save(file)
    assert file.read_bytes() == written

    expected = hogwild.train(data, start=result.state, **options).model
    for name, array in result.state.weights.items():
        result.state.weights[name] = swapped(array)
    found = hogwild.train(data, start=result.state, **options).model
    assert_same_bytes(found, expected, tmp_path)


def assert_same_bytes(found: Any, expected: Any, folder: Path) -> None:
    for model in (found, expected):
        model.about = {}  # holds times
        model.save(folder / ("found" if model is found else "expected"))
    assert (folder / "found").read_bytes() == (folder / "expected").read_bytes()


def test_weights_of_a_model() -> None:
    weights = np.arange(30.0)
    expected = hogwild.LinearModel(weights.astype(np.float32), 0, (1, 2), "hinge")
    for dtype in ("<f8", ">f8", ">f4", ">i8"):
        model = hogwild.LinearModel(weights.astype(dtype), 0, (1, 2), "hinge")
        np.testing.assert_array_equal(model.decision_function(X), expected.decision_function(X))


# What is refused


OUTSIDE = [
    (dtype, bad)
    for dtype in INTEGERS
    for bad in (-1, 5, 2**31, 2**32 + 1, 2**63 - 1)
    if np.iinfo(dtype).min <= bad <= np.iinfo(dtype).max
]


@pytest.mark.parametrize(("dtype", "bad"), OUTSIDE)
def test_indices_out_of_range(dtype: str, bad: int) -> None:
    indices = np.array([0, 4, bad, 3], dtype)
    with pytest.raises(DataError, match=rf"column {bad} in row 2; columns go from 0 to 4"):
        Rows.from_arrays(np.array([0, 2, 4]), indices, np.ones(4), 5)
    ids = Ids.numbered(5), Ids.numbered(5)
    with pytest.raises(DataError, match=rf"item {bad} in the rating 3; items go from 0 to 4"):
        Ratings.from_codes(np.zeros(4, np.uint8), indices, np.ones(4), *ids)


@pytest.mark.parametrize("dtype", ["<i1", "<i4", ">i4", "<i8", ">i8"])
def test_a_negative_index_is_none_of_the_last_columns(dtype: str) -> None:
    with pytest.raises(DataError, match="column -1 in row 1; columns go from 0 to 4294967295"):
        Rows.from_arrays(np.array([0, 1]), np.array([-1], dtype), np.ones(1), 2**32)


@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize("pointers", [[0, 3, 2, 4], [0, -1, 2, 4], [1, 2, 3, 4], [0, 2, 3, 5]])
def test_row_pointers_that_make_no_rows(dtype: str, pointers: list[int]) -> None:
    damaged = np.array(pointers).astype(dtype)
    with pytest.raises(DataError, match="damaged CSR arrays"):
        Rows.from_arrays(damaged, np.arange(4), np.ones(4), 5)
    for form in (sparse.csr_matrix, sparse.csc_matrix):
        matrix = form((3, 3))
        matrix.indptr, matrix.indices, matrix.data = damaged, np.zeros(4, int), np.ones(4)
        with pytest.raises(DataError, match="damaged CSR arrays"):
            Ratings(matrix)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"indptr": X.indptr.astype(float)}, "'indptr' is an array of float64 .* whole numbers"),
        ({"indices": X.indices.astype(float)}, "'indices' is an array of float64"),
        ({"indices": X.indices * np.nan}, "'indices' is an array of float64"),
        ({"indices": X.indices.reshape(-1, 1)}, "'indices' is an array of int32 in 2 dimension"),
        ({"values": X.data.astype(complex)}, "'data' is an array of complex128 .* numbers"),
        ({"values": X.data.astype(object)}, "'data' is an array of object"),
    ],
)
def test_arrays_that_hold_other_things(changes: dict[str, Any], words: str) -> None:
    arrays = {"indptr": X.indptr, "indices": X.indices, "values": X.data} | changes
    with pytest.raises(DataError, match=f"mine: {words}"):
        Rows.from_arrays(**arrays, columns=30, name="mine")


def test_a_matrix_that_scipy_cannot_convert() -> None:
    with pytest.raises(DataError, match=r"mine: scipy cannot convert .*; give it as csr"):
        Ratings(with_places("bsr", "<u8"), name="mine")
