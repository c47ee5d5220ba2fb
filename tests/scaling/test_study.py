"""Studies that are run, small ones: what is trained, in which order, and what is kept of it."""

import json

import pytest

import hogwild
from hogwild import DivergenceError
from hogwild.data.synthetic import rcv1
from hogwild.data.synthetic_ratings import movielens
from hogwild.scaling import probe as probes
from hogwild.scaling import study as studies
from hogwild.scaling.look import look
from hogwild.scaling.plan import ONE, Configuration, Plan
from hogwild.scaling.probe import Probe, probe, typical
from hogwild.scaling.record import lines
from hogwild.scaling.report import Report
from hogwild.scaling.study import study


@pytest.fixture(scope="module")
def rows():
    return rcv1(2000, 1000)[0]


@pytest.fixture(autouse=True)
def no_probe(monkeypatch):
    """The machine is not what is tested."""
    counts = (1, 2, 4)
    perfect = Probe({count: 1.0 * count for count in counts}, dict.fromkeys(counts, 1000000000.0))
    monkeypatch.setattr(studies, "probe", lambda workers: perfect)


@pytest.fixture
def trained(monkeypatch):
    """The options of every training, in order."""
    calls = []

    def train(data, *, watcher, **options):
        calls.append(options)
        return hogwild.train.__wrapped__(data, watcher=watcher, **options)

    train.__wrapped__ = hogwild.train
    monkeypatch.setattr(studies.hogwild, "train", train)
    return calls


def test_a_study_of_rows_has_every_run_and_can_be_written_down(rows) -> None:
    plan = Plan.of({"task": "logistic", "epochs": 3}, "combine,hogwild", "1,2", repeats=2)
    told = []
    made = study(rows, plan, lambda *now: told.append(now))
    assert {run.configuration for run in made.runs} == set(plan.configurations)
    assert [run.order for run in made.runs] == list(range(6))
    assert all(len(run.trace) == 3 for run in made.runs)
    assert [run.chosen["workers"] for run in made.runs] == [
        run.configuration.workers for run in made.runs
    ]
    assert made.header["options"]["task"] == "logistic"
    assert made.header["data"]["nonzeros"] == rows.nonzeros
    assert len(made.probes) == 2
    assert [now[0] for now in told] == sorted(now[0] for now in told)
    assert {now[1] for now in told} == {6}
    report = Report.of(made)
    assert len(report.summaries) == 3
    assert report.short
    for line in lines(report):
        json.dumps(line, allow_nan=False)


def test_a_study_of_ratings(rows) -> None:
    ratings = movielens(100, 80, 4000)[0]
    plan = Plan.of({"task": "mf", "rank": 4, "epochs": 2}, "auto,hogwild", "2", repeats=1)
    report = Report.of(study(ratings, plan))
    assert [one.name for one in report.summaries] == [
        "one worker",
        "auto x 2 (strata)",
        "hogwild x 2",
    ]
    assert report.study.look.work == 4000
    assert report.study.look.hot_share > 0.005


def test_every_repeat_has_an_order_of_its_own_and_a_warm_up_before_each_team(rows, trained) -> None:
    plan = Plan.of({"epochs": 2, "backend": "thread"}, "combine,hogwild,mixed", "2", repeats=3)
    made = study(rows, plan)
    orders = [
        [run.configuration for run in made.runs if run.repeat == repeat] for repeat in range(3)
    ]
    assert all(set(order) == set(plan.configurations) for order in orders)
    assert len({tuple(order) for order in orders}) > 1
    for number, options in enumerate(trained):
        if options["epochs"] == 2 and options["workers"] > 1:
            before = trained[number - 1]
            assert before["epochs"] == 1
            assert before["strategy"] == options["strategy"]
    assert [options["epochs"] for options in trained].count(2) == len(made.runs)


def diverging(monkeypatch, refused) -> None:
    """Lets trainings fail."""
    train = hogwild.train

    def diverge(data, **options):
        if refused(options):
            raise DivergenceError("the weights overflowed")
        return train(data, **options)

    monkeypatch.setattr(studies.hogwild, "train", diverge)


def test_what_diverges_is_told_and_does_not_end_the_study(rows, monkeypatch) -> None:
    diverging(monkeypatch, lambda options: options["strategy"] == "hogwild")
    plan = Plan.of({"epochs": 1}, "combine,hogwild", "2", repeats=1)
    made = study(rows, plan)
    failed = [run for run in made.runs if run.failure]
    assert [run.configuration for run in failed] == [Configuration("hogwild", 2)]
    assert "failed" in [finding.kind for finding in Report.of(made).findings]


def test_one_worker_that_diverges_ends_it(rows, monkeypatch) -> None:
    diverging(monkeypatch, lambda options: options["workers"] == 1)
    with pytest.raises(DivergenceError):
        study(rows, Plan.of({"epochs": 1}, "combine", "2", repeats=1))


def test_ctrl_c_ends_it_without_a_result(rows, monkeypatch) -> None:
    train = hogwild.train

    def interrupted(*data, epochs, **options):
        result = train(*data, epochs=epochs, **options)
        return hogwild.Result(
            result.model, "interrupted", result.trace, result.header, [], result.state
        )

    monkeypatch.setattr(studies.hogwild, "train", interrupted)
    with pytest.raises(KeyboardInterrupt):
        study(rows, Plan.of({"epochs": 2}, "combine", "2"))


def test_rows_and_ratings_are_looked_at(rows) -> None:
    seen = look(rows)
    assert (seen.work, seen.work_bytes) == (rows.nonzeros, 8 * rows.nonzeros)
    assert seen.weights_bytes == 4000
    assert 0.7 < seen.hot_share < 0.9
    assert "512 hottest columns" in seen.heat
    labels = [label for label, _ in seen.numbers]
    assert {"Omega", "Delta", "rho"} <= set(labels)
    narrow = look(rows.narrowed(50))
    assert narrow.hot_share == 1.0
    assert "the 50 hottest columns" in narrow.heat


# The machine


def test_a_probe_counts_up_to_the_cores(monkeypatch) -> None:
    monkeypatch.setattr(probes, "STREAMED", 16 << 20)
    monkeypatch.setattr(probes.machine, "usable_cores", lambda: 2)
    found = probe([1, 2, 8], seconds=0.002)
    assert set(found.arithmetic) == set(found.bandwidth) == {1, 2}
    assert all(value > 0 for value in [*found.arithmetic.values(), *found.bandwidth.values()])
    assert found.speed_up(8) == found.speed_up(2)
    assert found.speed_up(1) == 1.0
    assert found.stream(4) == found.bandwidth[2]


def test_of_several_probes_the_median_counts() -> None:
    several = [Probe({1: 1.0, 2: value}, {1: value, 2: 5.0}) for value in (1.9, 1.0, 2.0)]
    assert typical(several) == Probe({1: 1.0, 2: 1.9}, {1: 1.9, 2: 5.0})
    assert ONE.name == "one worker"
