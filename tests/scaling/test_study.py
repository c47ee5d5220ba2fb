"""Studies that are run, small ones: what is trained, in which order, and what is kept of it."""

import json

import pytest

import hogwild
from hogwild import DivergenceError
from hogwild.data.synthetic import rcv1
from hogwild.data.synthetic_ratings import movielens
from hogwild.scaling import probe as probes
from hogwild.scaling import study as studies
from hogwild.scaling.plan import Plan
from hogwild.scaling.probe import Probe, probe, typical
from hogwild.scaling.record import lines
from hogwild.scaling.report import Report
from hogwild.scaling.study import look


@pytest.fixture(scope="module")
def rows():
    return rcv1(2000, 1000)[0]


class Trainings(list):
    """The options of every training, in order; those with `refused` fail."""

    refused = ("strategy", "none")


@pytest.fixture
def trained(monkeypatch) -> Trainings:
    """What is trained. The machine is not measured."""
    calls, train = Trainings(), hogwild.train

    def noted(data, **options):
        calls.append(options)
        if calls.refused in options.items():
            raise DivergenceError("the weights overflowed")
        return train(data, **options)

    monkeypatch.setattr(studies, "train", noted)
    perfect = {count: 1e9 * count for count in (1, 2, 4)}
    monkeypatch.setattr(studies, "probe", lambda workers: Probe(perfect, perfect))
    return calls


def studied(data, plan: Plan, tell=lambda *now: None) -> studies.Study:
    return studies.study(data, plan, tell)


def test_a_study_of_rows_has_every_run_and_can_be_written_down(rows, trained) -> None:
    plan = Plan.of({"task": "logistic", "epochs": 3}, "combine,hogwild", "1,2", repeats=2)
    told = []
    made = studied(rows, plan, lambda *now: told.append(now))
    assert {run.configuration for run in made.runs} == set(plan.configurations)
    assert [len(run.trace) for run in made.runs] == [3] * 6
    assert all(run.chosen["workers"] == run.configuration.workers for run in made.runs)
    assert made.header["options"]["task"] == "logistic"
    assert made.header["options"]["intercept"] is True  # defaults, too
    assert "tol" not in made.header["options"]  # but not those that the study sets
    assert made.header["data"]["nonzeros"] == rows.nonzeros
    assert [now[0] for now in told] == sorted(now[0] for now in told)
    assert {now[1] for now in told} == {6}
    for line in lines(Report.of(made)):
        json.dumps(line, allow_nan=False)


def test_every_repeat_has_an_order_of_its_own_and_a_brief_run_before_each(rows, trained) -> None:
    plan = Plan.of({"epochs": 2, "backend": "thread"}, "combine,hogwild,mixed", "2", repeats=3)
    made = studied(rows, plan)
    orders = [
        tuple(run.configuration for run in made.runs if run.repeat == repeat) for repeat in range(3)
    ]
    assert all(set(order) == set(plan.configurations) for order in orders)
    assert len(set(orders)) > 1
    for brief, measured in zip(trained[1::2], trained[2::2], strict=True):
        assert (brief["epochs"], measured["epochs"]) == (1, 2)
        assert brief["strategy"] == measured["strategy"]
    assert len(trained) == 1 + 2 * len(made.runs)  # the first finds the optimum


def test_gaps_are_from_a_proved_optimum_or_a_longer_run_that_is_called_so(rows) -> None:
    plan = Plan.of({"task": "logistic", "epochs": 2, "schedule": "sqrt"}, target=1e-2)
    found = studies.optimum(rows, plan)
    exact = hogwild.train(rows, task="logistic", tol=1e-6).trace[-1]["objective"]
    assert found.proved
    assert found.objective == pytest.approx(exact, rel=2e-4)
    assert "proved to within 0.0" in found.how
    for data, options in ((movielens(100, 80, 4000)[0], {"task": "mf"}), (rows, {"l2": 0.0})):
        found = studies.optimum(data, Plan.of(options | {"epochs": 2}))
        again = hogwild.train(data, workers=1, epochs=6, tol=0, **options).trace[-1]["objective"]
        assert not found.proved
        assert found.objective <= again * 1.001
        assert "one with 6 epochs; nothing is proved" in found.how


def test_what_diverges_is_noted_and_does_not_end_the_study(rows, trained) -> None:
    trained.refused = ("strategy", "hogwild")
    made = studied(rows, Plan.of({"epochs": 1}, "combine,hogwild", "2", repeats=1))
    report = Report.of(made)
    assert "hogwild x 2: failed: the weights overflowed." in report.notes
    assert [one.name for one in report.summaries] == ["one worker", "combine x 2"]


def test_one_worker_that_diverges_ends_it(rows, trained) -> None:
    trained.refused = ("workers", 1)
    with pytest.raises(DivergenceError):
        studied(rows, Plan.of({"epochs": 1}, "combine", "2", repeats=1))


def test_the_data_is_looked_at(rows) -> None:
    seen = look(rows)
    assert seen.shape.startswith("2,000 rows, 1,000 columns, ")
    assert (seen.work_bytes, seen.weights_bytes) == (8 * rows.nonzeros, 4000)
    assert seen.sharing.startswith("All 1,000 weights fit into")
    assert seen.record["nonzeros"] == rows.nonzeros
    seen = look(movielens(100, 80, 4000)[0])
    assert seen.shape == "4,000 ratings of 80 items by 100 users"
    assert (seen.work_bytes, seen.weights_bytes) == (48_000, 0)
    assert seen.record["users"] == 100


def test_a_probe_counts_up_and_of_several_the_median_counts(monkeypatch) -> None:
    monkeypatch.setattr(probes, "STREAMED", 16 << 20)
    found = probe([2, 1, 3], seconds=0.002)
    assert list(found.arithmetic) == list(found.bandwidth) == [1, 2, 3]
    assert min([*found.arithmetic.values(), *found.bandwidth.values()]) > 0
    assert found.speed_up(1) == 1.0
    several = [Probe({1: 1.0, 2: value}, {1: value, 2: 5.0}) for value in (1.9, 1.0, 2.0)]
    assert typical(several) == Probe({1: 1.0, 2: 1.9}, {1: 1.9, 2: 5.0})
