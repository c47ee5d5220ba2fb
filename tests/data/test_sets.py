"""Several files are one data set; and no cut and no number of threads changes what is read."""

import gzip
import lzma
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hogwild
from hogwild import DataError, OptionError, Rows, load, load_ratings
from hogwild.data import ids
from hogwild.data.labels import LabelSets
from tests.small_pieces import cut_into


def bytes_of(rows: Rows) -> list[Any]:
    y = rows.y
    labels = [y.starts, y.numbers, y.names] if isinstance(y, LabelSets) else [y]
    arrays = [np.asarray(array) for array in (rows.indptr, rows.indices, rows.values, *labels)]
    return [rows.columns, rows.index_base, *(array.tobytes() for array in arrays)]


TEXTS = {
    "from 1": "1 1:1 3:0.5\n-1 2:7e-40 # note\n\n1 1:1e23\n" * 2,
    "a late column 0": "1 1:1 3:0.5\n1 2:1\n" * 3 + "1 0:1 2:1\n1 4:1\n1 9007:1 9008:0.1",
    "two column 0": "1\n1 2:1\n1 0:1 2:1\n1 4:1\n" * 2,
    "late sets of labels": "1 1:1\n2 2:1\n" * 3 + "3,1 3:1\n 4:1\n2\n",
    "sets of labels": "\t4:1\n1,2,2 1:1\n 4:1\n7 2:1\n" * 2,
    "no labels": "1:1 2:3\n4:1\n" * 4,
    "a byte-order mark": "\ufeff1 1:1\r\n# a\r\n2 2:0.123456789012345678901\r\n-1 7:1",
    "index_base 0": "# index_base 0\n1 2:1\n1 3:4\n1 2:1\n",
}
MISTAKES = {
    "a word": "1 1:1\n1 2:1\n" * 3 + "1 1:1 2:x\n1 2:y\n",
    "labels end": "1 1:1\n1 2:1\n" * 3 + "1:1\n2:1\n",
    "labels begin": "1:1\n1:1\n" * 3 + "1 1:1\n",
    "a zero byte": "1 1:1\n1 2:1\n" * 2 + "\0 1:1\n1 2:y\n",
    "nothing": "# a\n\n   \n#b",
}


@pytest.mark.parametrize("name", TEXTS)
def test_rows_are_the_same_for_every_cut_and_any_threads(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, options = tmp_path / "a.svm", {"labels": name != "no labels"}
    path.write_text(TEXTS[name], newline="")
    whole = bytes_of(load(path, **options))
    assert whole[0] > 0
    for size in range(1, len(TEXTS[name]) + 2):
        cut_into(size, monkeypatch)
        for threads in (1, 2, 3):
            assert bytes_of(load(path, threads=threads, **options)) == whole


@pytest.mark.parametrize("labels", [True, False])
@pytest.mark.parametrize("name", MISTAKES)
def test_so_is_what_is_said_of_a_mistake(
    name: str, labels: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.svm"
    path.write_text(MISTAKES[name])
    with pytest.raises(DataError) as whole:
        load(path, labels=labels)
    for size in range(1, len(MISTAKES[name]) + 2):
        cut_into(size, monkeypatch)
        for threads in (1, 3):
            with pytest.raises(DataError) as found:
                load(path, threads=threads, labels=labels)
            assert str(found.value) == str(whole.value)


RATINGS = {
    "numbers": "7,3,1\n5,4,2\n7,4,3\n1,1,4.5\n" * 2,
    "a large one late": "7,3,1\n5,4,2\n" * 3 + "70000,3,1\n5,3,9\n-1,4,2\n",
    "text late": "7,3,1\n5,4,2\n" * 3 + "07,3,1\n5,3,9\nx,70000,2\n",
    "numbers, large, text": "7,3,1\n5,70000,2\n" * 3 + "70000,3,1\nx,3,9\n-1,4,2\n5,y,1",
    "text": "a,b,1\nb,\u00e4\u00e4,2\n" * 3 + "1,b,1\nc,b,9\r\n",
    "a header": "rating,user,item\n\n1,2,3\n4,5,6\n" + "1e23,7,8\n" * 3,
    "one line": "1,2,3",
}


@pytest.mark.parametrize("name", RATINGS)
def test_ratings_are_the_same_for_every_cut_and_any_threads(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, text = tmp_path / "a.csv", RATINGS[name].encode()
    path.write_bytes(text)

    def read(threads: int) -> list[Any]:
        found = load_ratings(path, threads=threads)
        arrays = found.users, found.items, found.values
        both = found.user_ids, found.item_ids
        return [array.tobytes() for array in arrays] + [some.tolist() for some in both]

    whole = read(1)
    monkeypatch.setattr(ids, "DIRECT", 10)
    monkeypatch.setattr(ids, "FEW", 1)
    begin = text.index(b"\n") + 1 if name == "a header" else 1
    for size in range(begin, len(text) + 2):
        cut_into(size, monkeypatch)
        for threads in (1, 2, 3):
            assert read(threads) == whole


# Several files


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("set").mkdir()
    Path("set/part-2.svm").write_text("-1 2:1\n1 0:3 8:1")
    Path("set/part-1.svm.gz").write_bytes(gzip.compress(b"1 1:1\n1 3:1\n"))
    Path("set/part-10.svm.xz").write_bytes(lzma.compress(b"-1\n"))
    Path("set/empty.svm").touch()
    Path("set/.hidden").write_text("nonsense")
    Path("set/deeper").mkdir()
    return tmp_path


def test_a_folder_is_read_by_names_without_what_is_hidden(folder: Path) -> None:
    rows = load("set")
    assert rows.indices.tolist() == [1, 3, 2, 0, 8]
    assert rows.y.tolist() == [1, 1, -1, -1, 1]  # part-1, part-10, part-2
    assert (rows.columns, rows.index_base) == (9, 0)
    assert rows.name == "set/empty.svm and 3 more"
    assert bytes_of(load(folder / "set/part-*")) == bytes_of(rows)
    assert bytes_of(load(["set", "set/part-2.svm"])) == bytes_of(load(["set", "set/part-2*"]))


def test_arrays_may_be_among_them(folder: Path) -> None:
    rows = load("set/part-2.svm")
    hogwild.save(rows, "more.npz")
    both = load(["set/part-2.svm", "more.npz", "set/part-2.svm"])
    assert both.y.tolist() == [*rows.y] * 3
    assert both.indices.tolist() == [*rows.indices] * 3
    assert both.indptr.tolist() == [0, 1, 3, 4, 6, 7, 9]
    Path("sets.svm").write_text("1,2 0:1\n\t0:3\n")
    hogwild.save(load("sets.svm"), "sets.npz")
    Path("sets.svm").write_text("2,5 0:1\n")
    sets = load(["sets.svm", "sets.npz"]).y
    assert sets.names[sets.numbers].tolist() == [2, 5, 1, 2]
    assert sets.starts.tolist() == [0, 2, 4, 4]


@pytest.mark.parametrize(
    ("files", "message"),
    [
        (["b.svm", "unlabelled.svm"], "unlabelled.svm: line 1, column 1: .* label must come first"),
        (
            ["b.svm", "unlabelled.npz"],
            "unlabelled.npz has no labels, and b.svm has labels",
        ),
        (["b.svm", "sets.npz"], "sets.npz has sets of labels .*, and b.svm has labels"),
        (["b.svm", "zero.npz"], "zero.npz was read with columns from 0 on, and b.svm with"),
        (["b.svm", "wrong.svm"], "wrong.svm: line 2, column 5: 'x' is not a number"),
        (["b.svm", "none.svm"], "none.svm: there is no such file"),
        ("n*.svm", r"n\*.svm: no file matches; a name with"),
        ("nothing", "nothing: the folder has no files in it"),
    ],
)
def test_files_that_make_no_data_set(
    files: Any, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("b.svm").write_text("1 1:1\n")
    Path("unlabelled.svm").write_text("1:1\n")
    Path("wrong.svm").write_text("1 1:1\n1 2:x\n")
    Path("sets.svm").write_text("1,2 3:1\n")
    Path("zero.svm").write_text("1 0:1\n")
    Path("nothing").mkdir()
    for name in ("unlabelled", "sets", "zero"):
        hogwild.save(load(f"{name}.svm", labels=False), f"{name}.npz")
    with pytest.raises(DataError, match=message):
        load(files)


@pytest.mark.parametrize("wrong", [0, -1, True])
def test_numbers_of_threads_there_are_not(wrong: Any, folder: Path) -> None:
    with pytest.raises(OptionError, match="threads must be 1 or more"):
        load("set", threads=wrong)


def test_ratings_in_several_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.csv").write_text("user,item,rating\n7,x,1\n")
    Path("b.csv").write_text("user,item,rating\n3,y,2\n7,x,3\n")
    ratings = load_ratings("?.csv")
    assert ratings.user_ids.tolist() == [3, 7]
    assert ratings.users.tolist() == [1, 0, 1]
    assert ratings.item_ids.tolist() == ["x", "y"]
    for text, words in {
        "3,y,2\n": "c.csv: line 1: has no header, and a.csv has one; files of one data set must",
        "user,rating,item\n3,1,y\n": "item and value in the columns 1, 3, 2, and a.csv in 1, 2, 3",
        "user;item;rating\n3;1;y\n": "c.csv: line 1: 'user;item;rating' is one field",
    }.items():
        Path("c.csv").write_text(text)
        with pytest.raises(DataError, match=words):
            load_ratings(["a.csv", "c.csv"])
    hogwild.save_ratings(ratings, "d.npz")
    for files in (["a.csv", "d.npz"], ["d.npz", "d.npz"]):
        with pytest.raises(DataError, match=r"different formats|several \.npz files are not one"):
            load_ratings(files)


def test_training_takes_several_files(folder: Path) -> None:
    options = {"epochs": 2, "workers": 1}
    model = hogwild.train(["set/part-1.svm.gz", "set/part-2.svm"], **options).model
    Path("one.svm").write_text("1 1:1\n1 3:1\n-1 2:1\n1 0:3 8:1")
    same = hogwild.train("one.svm", **options).model
    assert model.weights.tobytes() == same.weights.tobytes()
    with pytest.raises(DataError, match=r"b\.csv holds ratings, by its name, and one\.svm"):
        hogwild.train(["one.svm", "b.csv"])
