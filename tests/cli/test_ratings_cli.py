"""generate and inspect on ratings, and how they are told from rows."""

import bz2
import gzip
import json
import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

from hogwild.cli import main
from hogwild.cli.inspect import _line_is_ratings
from hogwild.data import svmlight
from hogwild.data.files import FORMATS, load, save
from hogwild.data.ratings import Ratings
from hogwild.data.ratings_files import load_ratings, save_ratings
from hogwild.data.rows import Rows
from hogwild.data.synthetic_ratings import movielens

Run = Callable[..., tuple[int, str, str]]

SMALL = "--users 60 --items 40 --ratings 900 --rank 3 --seed 5"


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs a command in a folder of its own: its exit code, and what it wrote to both outputs."""
    monkeypatch.chdir(tmp_path)

    def call(words: str) -> tuple[int, str, str]:
        code = main(words.split())
        return code, *capsys.readouterr()

    return call


def triples(ratings: Ratings) -> list[tuple[object, object, float]]:
    """Ratings with their ids, in order; only of ids that some rating has."""
    assert ratings.values is not None
    users, items = ratings.user_ids.take(ratings.users), ratings.item_ids.take(ratings.items)
    return list(zip(users.tolist(), items.tolist(), ratings.values.tolist(), strict=True))


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".npz", ".mtx", ".csv.gz", ".mtx.bz2"])
def test_generated_files_hold_the_ratings(run: Run, suffix: str) -> None:
    code, out, said = run(f"generate ratings r{suffix} {SMALL}")
    assert (code, said) == (0, "")
    assert out == f"r{suffix}: 900 ratings of 40 items by 60 users\n"
    wanted, _ = movielens(60, 40, 900, 5, rank=3)
    assert triples(load_ratings(f"r{suffix}")) == triples(wanted)


@pytest.mark.parametrize("suffix", [".csv", ".npz", ".tsv.gz"])
def test_the_same_seed_gives_the_same_bytes(run: Run, suffix: str) -> None:
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        words = f"generate ratings {name}{suffix} --users 50 --items 40 --ratings 500"
        assert run(f"{words} --seed {seed} --test {name}2{suffix}")[0] == 0
    for number in ("", "2"):
        a, b, c = (Path(f"{name}{number}{suffix}").read_bytes() for name in "abc")
        assert a == b != c


@pytest.mark.parametrize("share", [0.1, 0.5])
def test_test_ratings_are_a_share_of_all(run: Run, share: float) -> None:
    code, out, _ = run(f"generate ratings a.npz {SMALL} --test b.csv --test-share {share}")
    assert code == 0
    train, test = triples(load_ratings("a.npz")), triples(load_ratings("b.csv"))
    assert [line.split()[:2] for line in out.splitlines()] == [
        ["a.npz:", str(len(train))],
        ["b.csv:", str(len(test))],
    ]
    assert not set(train) & set(test)
    assert sorted(train + test) == sorted(triples(movielens(60, 40, 900, 5, rank=3)[0]))
    assert len(test) == pytest.approx(900 * share, abs=6 * (900 * share * (1 - share)) ** 0.5)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("ratings x.csv --rows 5", "there is no option --rows"),
        (
            "ratings x.csv --weights m --columns 9",
            "there is no option --weights; there is no option --columns",
        ),
        ("ratings x.csv --first-row 0", "there is no option --first-row"),
        ("rcv1 x.svm --users 3", "there is no option --users"),
        (
            "rcv1 x.svm --test y.svm --rank 2",
            "there is no option --test; there is no option --rank",
        ),
        ("rcv1 x.svm --test-share 0.1", "there is no option --test-share"),
        ("ratings x.svm", "x.svm: the suffix must be one of .csv, .tsv, .npz, .mtx"),
        ("ratings x", "x: the suffix must be one of"),
        ("ratings x.gz", "x.gz: the suffix must be one of"),
        ("ratings x.csv --test y.dat", "y.dat: the suffix must be one of"),
        ("ratings x.csv --test x.csv", "--test: x.csv is the output, too"),
        ("ratings no/x.csv", "there is no folder"),
        ("ratings x.csv --test no/x.csv", "there is no folder"),
        ("ratings .", ". is a folder"),
        ("ratings x.csv --test-share 0.2", "--test-share: it needs --test, the file"),
        ("ratings x.csv --test y.csv --test-share 0", "--test-share: must lie between 0 and 1"),
        ("ratings x.csv --test y.csv --test-share 1", "--test-share: must lie between 0 and 1"),
        ("ratings x.csv --test y.csv --test-share nan", "--test-share: must lie between 0 and 1"),
        ("ratings x.csv --test y.csv --test-share x", "invalid float value: 'x'"),
        ("ratings x.csv --users 9 --items 9", "at most half of the 9 x 9 pairs"),
        ("ratings x.csv --users 0 --items 1", "users is 0"),
        ("ratings x.csv --users 0 --items 1", "items is 1"),
        ("ratings x.csv --rank 0", "rank is 0"),
        ("ratings x.csv --seed -1", "seed is -1"),
        ("ratings x.csv --ratings 1e6", "invalid int value: '1e6'"),
        ("stars x.csv", "invalid choice: 'stars'"),
    ],
)
def test_what_cannot_be_generated(run: Run, words: str, said: str) -> None:
    code, out, problems = run(f"generate {words}")
    assert (code, out) == (2, "")
    assert said in problems
    assert not list(Path().iterdir())


def test_ratings_are_factorized_unless_another_task_is_named(run: Run) -> None:
    run(f"generate ratings r.csv {SMALL}")
    code, out, _ = run("train r.csv --rank 2 --epochs 2 --test r.csv")
    assert code == 0
    assert "900 ratings of 40 items by 60 users" in out
    code, _, problems = run("train r.csv --task svm")
    assert (code, "--task: r.csv holds ratings or a table, by its name" in problems) == (2, True)
    assert "search compares linear models only" in run("train r.csv --folds 2")[2]


def test_no_rating_to_train_or_to_test_on(run: Run) -> None:
    words = "generate ratings a.csv --users 5 --items 9 --ratings 5 --seed 1 --test b.csv"
    for share in ("1e-9", "0.999999"):
        code, _, said = run(f"{words} --test-share {share}")
        assert code == 2
        assert "--test-share: of 5 ratings" in said
        assert not list(Path().iterdir())


def test_twice_packed_ratings_are_refused(run: Run) -> None:
    code, _, said = run("generate ratings x.npz.gz")
    assert code == 1
    assert "not packed once more" in said
    assert not list(Path().iterdir())


def test_the_help_names_sizes(run: Run) -> None:
    helps = (run(f"generate {kind} --help")[1] for kind in ("rcv1", "ratings"))
    out = " ".join(" ".join(helps).split())
    assert "as many as in MovieLens 1M" in out
    for default in ("[200000]", "[47236]", "[6040]", "[3706]", "[1000209]", "[16]", "[0.1]"):
        assert default in out


# inspect: what is shown


def shown(text: str) -> dict[str, str]:
    return {line[:12].strip(): line[12:] for line in text.splitlines() if line[:12].strip()}


def test_inspect_shows_what_the_ratings_are(run: Run) -> None:
    Path("r.csv").write_text("user,item,rating\n1,a,5\n1,b,2\n2,a,4\n1,a,3\n3,c,1\n")
    code, out, said = run("inspect r.csv")
    assert (code, said) == (0, "")
    lines = shown(out)
    assert lines["users"] == "3, 2 of them with one rating only"
    assert lines["items"] == "3, 2 of them with one rating only"
    assert lines["ratings"].startswith("5, ")
    assert lines["density"].startswith("55.6 %")
    assert lines["duplicates"].startswith("1 ratings of a pair")
    assert lines["values"] == "1 to 5, mean 3, standard deviation 1.414"
    assert "1: 20.0 %, 2: 20.0 %, 3: 20.0 %, 4: 20.0 %, 5: 20.0 %" in out
    assert lines["per user"].startswith("least 1, ")
    assert lines["per user"].endswith("most 3")
    assert lines["per item"].endswith("median 1, 75 % 3, 95 % 3, most 3")
    assert lines["Omega"].startswith("2 ")
    assert lines["Delta"].startswith("0.6000 ")
    assert lines["rho"].startswith("0.8000 ")  # a's 3 and user 1's 3, 2 of them the same
    assert lines["chance"].startswith("0.")
    assert "strata" in out


def test_inspect_as_json(run: Run) -> None:
    run(f"generate ratings r.npz {SMALL}")
    found = json.loads(run("inspect r.npz --json")[1])
    assert (found["users"], found["items"], found["ratings"]) == (60, 40, 900)
    assert found["density"] == 900 / (60 * 40)
    assert sum(count for _, count in found["values"]) == 900
    assert found["omega"] == 2
    assert "worker" in found["meaning"]


def test_many_different_values_are_counted_only(run: Run) -> None:
    for count, said in ((30, "30 different ones"), (300, None)):
        save_ratings(Ratings(range(count), range(count), np.arange(count) / 7), "r.csv")
        out = run("inspect r.csv")[1]
        assert ("different ones" in out) == (said is not None)
        assert said is None or said in out
        assert shown(out)["values"].startswith("0 to ")


def test_pairs_have_no_values(run: Run) -> None:
    Path("p.csv").write_text("who,what,when\nann,x,8\nbob,y,9\n")
    code, out, said = run("inspect p.csv --columns who,what")
    assert (code, said) == (0, "")
    assert shown(out)["values"] == "none"
    found = json.loads(run("inspect p.csv --columns 1,2 --json")[1])
    assert (found["mean"], found["values"], found["value_kinds"]) == (None, [], 0)


def test_arrays_without_a_rating(run: Run) -> None:
    ids = Ratings([4, 5], [6, 7], [1, 2])
    empty = np.empty(0, np.uint32), np.empty(0, np.uint32), np.empty(0, np.float32)
    save_ratings(Ratings.from_codes(*empty, ids.user_ids, ids.item_ids), "r.npz")
    code, out, said = run("inspect r.npz")
    assert (code, said) == (0, "")
    assert shown(out)["users"] == "2, 2 without any"
    assert "There are no ratings." in out


def test_columns_by_name_and_by_place(run: Run) -> None:
    Path("r.csv").write_text("stars,who,what\n5,ann,x\n4,bob,x\n")
    assert run("inspect r.csv")[0] == 1
    for columns in ("who,what,stars", "2,3,1"):
        out = run(f"inspect r.csv --columns {columns}")[1]
        assert shown(out)["values"].startswith("4 to 5")


# inspect: rows or ratings


@pytest.mark.parametrize(
    ("line", "ratings"),
    [
        (b"1 3:0.5 7:1", False),
        (b"-1\t3:0.5", False),
        (b"3:0.5 7:1", False),
        (b"0.5", False),
        (b"", False),
        (b"1 qid:3 1:1", False),
        (b"1 3:x", False),
        (b"1::1193::5::978300760", True),
        (b"1,1193,5", True),
        (b"1;1193;5", True),
        (b"196\t242\t3\t881250949", True),
        (b"1 1193 5", True),
        (b"user,item,rating", True),
        (b"17\t42\t3\t2010-01-01 12:30", True),
        (b"1,2,3,12:30", True),
        (b"u:1 i:2 5", True),
    ],
)
def test_a_line_tells_rows_from_ratings(line: bytes, ratings: bool) -> None:
    assert _line_is_ratings(line) == ratings


RATING_LINES = {
    "r.csv": "user,item,rating\n1,2,3\n",
    "r.tsv": "1\t2\t3\n",
    "r.dat": "1::2::3::4\n",
    "R.CSV": "1,2,3\n",
    "r.mtx": "%%MatrixMarket matrix coordinate real general\n1 2 1\n1 2 3\n",
    "r.txt": "\n1 2 3\n",
    "u.data": "1\t2\t3\t881250949\n",
    "ratings": "1::2::3::4\n",
}
ROW_LINES = {
    "a.svm": "1 3:0.5\n-1 2:1\n",
    "a.txt": "\n# index_base 0\n1 3:0.5\n",
    "a": "1\n-1 2:1\n",
}


@pytest.mark.parametrize("pack", [None, gzip.compress, bz2.compress])
@pytest.mark.parametrize("name", [*RATING_LINES, *ROW_LINES])
def test_a_file_is_taken_for_what_it_is(
    run: Run, name: str, pack: Callable[[bytes], bytes] | None
) -> None:
    text = (RATING_LINES | ROW_LINES)[name].encode()
    path = Path(name + {None: "", gzip.compress: ".gz", bz2.compress: ".bz2"}[pack])
    path.write_bytes(pack(text) if pack else text)
    code, out, said = run(f"inspect {path}")
    assert (code, said) == (0, "")
    assert out.startswith("users" if name in RATING_LINES else "rows")


def test_arrays_tell_by_their_names(run: Run) -> None:
    matrix = sparse.csr_matrix(np.eye(4, 3, dtype=np.float32))
    sparse.save_npz("matrix.npz", matrix)
    save(Rows(matrix, [1, -1, 1, -1]), "rows.npz")
    np.savez("plain.npz", userId=[1, 2], movieId=[3, 3], rating=[4.0, 5.0])
    for name, first in (("matrix", "rows"), ("rows", "rows"), ("plain", "users")):
        code, out, said = run(f"inspect {name}.npz")
        assert (code, said) == (0, "")
        assert out.startswith(first)
    assert shown(run("inspect matrix.npz --ratings")[1])["ratings"].startswith("3,")


def test_a_format_of_rows_is_told_by_its_suffix(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("a.lines").write_text("1,2\n3 1:0.5\n")  # labels alone, which look like ratings
    assert "read as ratings" in run("inspect a.lines")[2]
    monkeypatch.setitem(FORMATS, ".lines", (svmlight.read, svmlight.write))
    code, out, said = run("inspect a.lines")
    assert (code, said) == (0, "")
    assert out.startswith("rows        2")


def test_options_decide_against_the_name(run: Run) -> None:
    Path("rows.csv").write_text("1 3:0.5\n-1 2:1\n")
    assert run("inspect rows.csv")[0] == 1
    assert run("inspect rows.csv --rows")[1].startswith("rows        2")
    Path("ratings.svm").write_text("1 2 3\n")
    assert run("inspect ratings.svm --ratings")[1].startswith("users       1")
    code, _, said = run("inspect ratings.svm --rows")
    assert code == 1
    assert "has no colon" in said


@pytest.mark.parametrize("words", ["rows.dat", "rows.txt"])
def test_where_ratings_are_a_guess_the_message_says_so(run: Run, words: str) -> None:
    for name in ("rows.dat", "rows.txt", "rows.csv"):
        Path(name).write_text("1 x:1\n")
    hint = "it was read as ratings; --rows reads it as rows"
    assert hint in run(f"inspect {words}")[2]
    for sure in (f"{words} --ratings", f"{words} --rows", "rows.csv", "none.dat"):
        code, _, said = run(f"inspect {sure}")
        assert code == 1
        assert hint not in said


@pytest.mark.parametrize(
    ("words", "text", "first"),
    [("", "1 3:0.5\n", "rows        1"), ("--ratings", "1,2,3\n", "users       1")],
)
def test_a_pipe_is_read_once(run: Run, words: str, text: str, first: str) -> None:
    reading, writing = os.pipe()
    os.write(writing, text.encode())
    os.close(writing)
    try:
        code, out, said = run(f"inspect /dev/fd/{reading} {words}")
    finally:
        os.close(reading)
    assert (code, said) == (0, "")
    assert out.startswith(first)


def test_binary_files_are_told(run: Run) -> None:
    Path("x").write_bytes(b"1,2,3\n\0")
    Path("y").write_bytes(gzip.compress(b"1,2,3\n"))
    assert "binary (line 2 has a zero byte)" in run("inspect x")[2]
    assert "but gzip; let its name end in .gz" in run("inspect y")[2]


def test_rows_are_shown_as_ever(run: Run) -> None:
    Path("a.svm").write_text("1 0:0.5 2:1\n-1 2:1\n")
    out = run("inspect a.svm")[1]
    for word in ("columns", "non-zeros", "row length", "labels", "-1: 1 (50.0 %)"):
        assert word in out
    found = json.loads(run("inspect a.svm --json --index-base 0")[1])
    assert (found["rows"], found["columns"]) == (2, load("a.svm").columns)


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        ("none.csv", 1, "none.csv: there is no such file"),
        ("none.svm", 1, "none.svm: there is no such file"),
        ("none.npz", 1, "none.npz: there is no such file"),
        (". --ratings", 1, "r.npz.gz: .npz files are not packed once more"),
        (".", 1, "holds ratings, by its name, and r.npz.gz does not"),
        ("a.svm --rows --ratings", 2, "not allowed with"),
        ("a.svm --columns 1,2,3", 2, "--columns: only for ratings, but the data was read as rows"),
        (
            "r.csv --index-base 0",
            2,
            "--index-base: only for rows, but the data was read as ratings",
        ),
        ("r.csv --columns 1", 2, "columns is '1'"),
        ("r.csv --columns 1,2,2", 2, "it names a column twice"),
        ("r.csv --columns a,b,c", 1, "the column 'a' is not among"),
        ("bad.csv", 1, "bad.csv: line 2: 'x' (field 3) is not a number"),
        ("empty.csv", 1, "empty.csv: has no ratings in it"),
        ("empty", 1, "empty: there are no rows in it"),
        ("no.npz", 1, "no.npz: is not an .npz file"),
        ("cut.csv.gz", 1, "cut off, damaged, or not a gzip file"),
        ("cut.gz", 1, "cut off, damaged, or not a gzip file"),
        ("r.npz.gz", 1, ".npz files are not packed once more"),
    ],
)
def test_what_cannot_be_inspected(run: Run, words: str, code: int, said: str) -> None:
    Path("a.svm").write_text("1 1:1\n")
    Path("r.csv").write_text("1,2,3\n")
    Path("bad.csv").write_text("1,2,3\n1,2,x\n")
    for name in ("empty.csv", "empty"):
        Path(name).touch()
    Path("no.npz").write_text("1,2,3\n")
    for name in ("cut.csv.gz", "cut.gz", "r.npz.gz"):
        Path(name).write_bytes(gzip.compress(b"1,2,3\n" * 50, mtime=0)[:-9])
    ended, out, problems = run(f"inspect {words}")
    assert (ended, out) == (code, "")
    assert said in problems
