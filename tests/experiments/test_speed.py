"""What the tables of speeds demand and say, and what they measure with."""

import sys
from pathlib import Path

import numpy as np
import pytest

from experiments import measure, orders, report, speed, speed_factors, speed_workers, starts
from experiments.children import cpu_seconds, finish
from experiments.measure import Line, seconds
from experiments.plain_ratings import BAND, squared_errors
from experiments.speed_workers import Tables
from hogwild import HogwildError, OptionError, Rows
from hogwild.data.synthetic import rcv1
from hogwild.data.synthetic_ratings import movielens
from hogwild.machine import cpu_name

BUSY = "import time\nwhile time.process_time() < 1: pass"


@pytest.fixture(scope="module")
def rows() -> Rows:
    return rcv1(400)[0]


@pytest.mark.parametrize(
    ("line", "factor", "demanded", "holds"),
    [
        (Line("x", 6.0, 2.0, seconds, higher_is_better=True, least=3.0), 3.0, "factor >= 3", True),
        (Line("x", 6.0, 2.1, seconds, higher_is_better=True, least=3.0), None, None, False),
        (Line("x", 2.0, 6.0, seconds, least=3.0), 3.0, "factor >= 3", True),
        (Line("x", 2.0, 5.9, seconds, least=3.0), 2.95, "factor >= 3", False),
        (Line("x", 0.009, None, seconds, most=0.01), None, "<= 0.010 s", True),
        (Line("x", 0.011, 0.1, seconds, most=0.01), None, "<= 0.010 s", False),
        (Line("x", 2.0, 6.0, seconds), 3.0, "-", None),
        (Line("x", 2.0, None, seconds), None, "-", None),
    ],
)
def test_a_line_is_judged_by_its_factor_or_by_its_own_number(
    line: Line, factor: float | None, demanded: str | None, holds: bool | None
) -> None:
    assert line.holds is holds
    assert factor is None or line.factor == pytest.approx(factor)
    assert demanded is None or line.demanded == demanded
    assert line.cells()[-1] == {True: "yes", False: "NO", None: "-"}[holds]
    assert measure.undemanded([line])[0].holds is None


def test_a_missed_demand_ends_with_1_and_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    good, bad = Line("good", 1, 2, seconds, least=1.5), Line("bad", 1, 2, seconds, least=3)
    assert report.command(lambda: measure.check([good])) == 0
    assert report.command(lambda: measure.check([good, bad, bad])) == 1
    assert capsys.readouterr().err == "error: 2 demands are missed: bad; bad\n"
    assert cpu_name() in measure.table([good, bad])
    assert [line.split()[-1] for line in measure.table([good, bad]).splitlines()[-2:]] == [
        "yes",
        "NO",
    ]


def test_an_epoch_is_timed_alone_in_a_run_and_in_scikit_learn(rows: Rows) -> None:
    data = speed.Data(rows)
    kernel, train = speed.epochs(data, "hinge")
    assert kernel.other == train.other and train.ours > 0
    assert kernel.least == train.least == speed.LEAST_EPOCH["hinge"]
    assert speed.regression(data).least == speed.LEAST_REGRESSION
    assert speed.cached(data, "some", "hinge").measured == "hinge, train, some"
    assert speed.weighted(rows, "hinge").beside == "no weights"


def test_both_orders_visit_every_row_and_end_alike(
    rows: Rows, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(orders, "EPOCHS", 20)
    for line in orders.lines(rows, 1e-2)[1::2]:
        assert line.measured.startswith("objective")
        assert line.factor == pytest.approx(1, abs=0.03)
        assert line.ours != line.other


def test_the_plain_pass_reads_every_rating() -> None:
    ratings, _ = movielens(2000, 700, 5000)
    draw = np.random.default_rng(0)
    p, q = (draw.random((int(BAND), 8), np.float32) for _ in range(2))
    users, items = ratings.users % BAND, ratings.items % BAND
    errors = ratings.values - np.sum(p[users] * q[items], axis=1, dtype=np.float64)
    flat = [factors.ravel() for factors in (p, q)]
    for factors in flat:
        factors.flags.writeable = False
    found = squared_errors(ratings.users, ratings.items, ratings.values, *flat, np.uintp(8))
    assert found == pytest.approx(np.sum(errors**2), rel=1e-4)


def test_programs_are_run_to_their_end_and_their_cpu_time_is_counted(tmp_path: Path) -> None:
    assert finish([sys.executable, "-c", "print(3)"]) == "3\n"
    with pytest.raises(HogwildError, match="ended with 3: no luck"):
        finish([sys.executable, "-c", "import sys; print('no luck', file=sys.stderr); sys.exit(3)"])
    assert 1 <= cpu_seconds([sys.executable, "-c", BUSY], {}, tmp_path) < 20


def test_a_baseline_is_a_checkout(tmp_path: Path) -> None:
    assert starts.checked_baseline(None) is None
    assert starts.checked_baseline(str(report.FOLDER.parent)) == report.FOLDER.parent
    with pytest.raises(OptionError, match="git worktree add"):
        starts.checked_baseline(str(tmp_path))


def test_wrong_usage_ends_with_2(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["speed.py", "--baseline", str(tmp_path)])
    assert report.command(speed.main) == 2
    for module, option in (speed_factors, "--ratings"), (speed_workers, "--rows"):
        monkeypatch.setattr(sys, "argv", ["x", option, "7"])
        with pytest.raises(SystemExit) as leaving:
            module.main()
        assert leaving.value.code == 2


def test_fewer_ratings_are_as_dense() -> None:
    assert speed_factors.shape(speed_factors.RATINGS)[:2] == (138_493, 26_744)
    users, items, ratings = speed_factors.shape(200_000)
    assert ratings / users / items == pytest.approx(20e6 / 138_493 / 26_744, rel=1e-3)


def test_speed_ups_are_judged_only_where_they_are_demanded() -> None:
    strict, lenient = Tables(2, demanding=True), Tables(2, demanding=False)
    shown = [tables._line("some", 1.3, 1.2, most=True)[-1] for tables in (strict, lenient)]
    assert shown == ["NO", "-"]
    assert (strict.missed, lenient.missed) == (["some"], [])
    assert strict._line("more", 1.3, 1.2)[-1] == "yes"
