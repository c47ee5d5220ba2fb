"""`.rows` files of text and tables: they keep how their rows were made."""

import gc
import re
from pathlib import Path

import numpy as np
import pytest

import hogwild
from hogwild import DataError, HogwildWarning, OptionError, cli

REVIEWS = "".join(
    f"{'pos' if n % 3 else 'neg'}\t{'good' if n % 3 else 'bad'} film {n}\n" for n in range(60)
)
TABLE = "".join(f"{n % 3},{n % 3 or 'none'},{n}\n" for n in range(60))


@pytest.fixture(autouse=True)
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("reviews.txt").write_text(REVIEWS)
    Path("table.csv").write_text("y,kind,size\n" + TABLE)
    Path("other.csv").write_text("size,kind,y\n1,2,0\n")
    Path("plain.svm").write_text("1 1:1\n-1 2:1\n")


@pytest.mark.parametrize(
    ("source", "options", "settings"),
    [
        ("reviews.txt", "--format text --idf --keep-names", {"idf": True, "keep_names": True}),
        ("table.csv", "--label y", {"label": "y"}),
    ],
)
def test_a_model_of_converted_input_reads_such_input(source, options, settings, capsys) -> None:
    assert cli.main(["convert", source, "d.rows", *options.split()]) == 0
    assert cli.main(["train", "d.rows", "--test", source, "--quiet", "--model", "m.hog"]) == 0
    direct = hogwild.train(source, **settings).model
    model = hogwild.load_model("m.hog")
    np.testing.assert_array_equal(model.weights, direct.weights)
    assert not model.features.unlike(direct.features)
    capsys.readouterr()
    assert cli.main(["predict", "m.hog", source]) == cli.main(["predict", "m.hog", "d.rows"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 120
    assert lines[:60] == lines[60:]


def test_rows_that_were_made_in_another_way_are_refused() -> None:
    hogwild.convert("reviews.txt", "a.rows", format="text", idf=True)
    hogwild.convert("reviews.txt", "b.rows", format="text", ngrams=2)
    hogwild.convert("a.rows", "again.rows")
    assert len(hogwild.load(["a.rows", "again.rows"])) == 120
    assert hogwild.load("again.rows").features.settings.idf
    model = hogwild.train("a.rows").model
    with pytest.raises(OptionError, match=r"^data: a stream is plain svmlight text"):
        hogwild.train_stream("a.rows")
    unlike = r"b\.rows was made with other settings than .* \(ngrams, idf\)"
    for attempt in (
        lambda: hogwild.load(["a.rows", "b.rows"]),
        lambda: hogwild.convert(["a.rows", "b.rows"], "c.rows"),
        lambda: hogwild.train("a.rows", test="b.rows"),
        lambda: hogwild.train("a.rows", test=hogwild.load("b.rows")),
        lambda: model.load("b.rows"),
        lambda: model.predict(hogwild.load("b.rows")),
    ):
        with pytest.raises(DataError, match=unlike):
            attempt()
    with pytest.raises(DataError, match=r"from text or a table, and those of plain\.svm were not"):
        hogwild.train("plain.svm", test="a.rows")
    with pytest.warns(HogwildWarning, match=r"a\.npz does not keep how its rows were made"):
        hogwild.convert("a.rows", "a.npz")
    with pytest.raises(DataError, match=r"a\.npz does not say how its rows were made"):
        model.load("a.npz")
    with pytest.raises(OptionError, match=r"^idf: a\.rows has columns already; leave it out$"):
        hogwild.train("a.rows", idf=True)
    with pytest.raises(DataError, match="text or tables are beside it"):
        model.load(["a.rows", "reviews.txt"])


def test_what_cannot_be_converted_or_kept_is_refused(capsys) -> None:
    for words, code, problem in (
        ("convert table.csv t.rows", 2, "--label: table.csv holds ratings or a table"),
        ("convert none.txt t.rows --format text", 1, "none.txt: there is no such file"),
        ("convert none-*.txt t.rows", 1, "none-*.txt: no file matches"),
        ("train reviews.txt --format text --cache", 2, "text and tables become a .rows file by"),
        ("train a.rows --cache --test reviews.txt", 2, "--cache: only for svmlight text"),
    ):
        if "a.rows" in words:
            hogwild.convert("reviews.txt", "a.rows", format="text")
        assert cli.main(words.split()) == code
        assert re.search(re.escape(problem), capsys.readouterr().err)
    assert not Path("t.rows").exists()
    assert not list(Path().glob("reviews.txt.rows"))


@pytest.mark.filterwarnings("error")
def test_a_conversion_closes_its_files(tmp_path: Path) -> None:
    Path("wrong.svm").write_text("1 1:1\n1 1:x\n")
    with pytest.raises(DataError, match="line 2"):
        hogwild.convert(["plain.svm", "wrong.svm"], "w.rows")
    hogwild.convert("plain.svm", "p.rows")
    gc.collect()


def test_names_that_say_raw_input_are_enough(capsys) -> None:
    Path("d.vw").write_text("1 |a x y:2 |b z\n-1 |a q |b z\n1 |a x\n")
    assert cli.main(["train", "d.vw", "--cache"]) == 2
    assert "--cache: only for svmlight text" in capsys.readouterr().err
    assert cli.main(["convert", "d.vw", "d.rows"]) == 0
    assert cli.main(["train", "d.rows", "--test", "d.vw", "--quiet", "--model", "m.hog"]) == 0
    assert cli.main(["evaluate", "m.hog", "d.vw", "--certify"]) == 0
    assert "the optimum, proved" in capsys.readouterr().out
    with pytest.raises(DataError, match=r"d\.vw is text or a table, and plain\.svm is not"):
        hogwild.load(["plain.svm", "d.vw"])


def test_words_as_labels_and_names_of_formats_on_the_command_line(capsys) -> None:
    train = ["train", "--quiet"]
    labels = ["reviews.txt", "--format", "text", "--labels", "pos,neg"]
    assert cli.main([*train, *labels, "--model", "m.hog"]) == 0
    assert hogwild.load_model("m.hog").labels == ("pos", "neg")
    assert cli.main([*train, "plain.svm", "--format", "svmlight", "--cache"]) == 0
    assert Path("plain.svm.rows").exists()
    Path("d.vw").write_text("1 |a x\n")
    assert cli.main([*train, "plain.svm", "--test", "d.vw"]) == 1
    assert "d.vw is text or a table, and plain.svm is not of such" in capsys.readouterr().err
    assert cli.main(["train", "-", "--epochs", "3"]) == 2
    assert capsys.readouterr().out == ""
