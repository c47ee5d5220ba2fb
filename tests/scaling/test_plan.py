"""What a study is to run, from lists as they are typed."""

import pytest

from hogwild import OptionError
from hogwild.scaling import plan
from hogwild.scaling.plan import ONE, Configuration, Plan


def names(made: Plan) -> list[str]:
    return [configuration.name for configuration in made.configurations]


def problems(*lists: str | None, options=None, **more) -> list[str]:
    with pytest.raises(OptionError) as raised:
        Plan.of(options or {}, *lists, **more)
    return str(raised.value).splitlines()


def test_all_strategies_share_the_run_with_one_worker() -> None:
    made = Plan.of({}, "combine,hogwild", "1,2,4,2")
    two_each = ["combine x 2", "combine x 4", "hogwild x 2", "hogwild x 4"]
    assert names(made) == ["one worker", *two_each]
    assert made.configurations[0] == ONE


def test_without_lists_there_are_the_usual_strategies_and_all_cores(monkeypatch) -> None:
    monkeypatch.setattr(plan.machine, "usable_cores", lambda: 12)
    assert Plan.of({}).workers == (1, 2, 4, 8, 12)
    assert Plan.of({}).strategies == ("auto", "hogwild", "combine", "ordered")
    ratings = Plan.of({"task": "mf"})  # on which 8 can work at once, and more are not refused
    assert (ratings.strategies, ratings.workers[-1]) == (("auto", "hogwild"), 12)


def test_every_run_trains_all_its_epochs_with_its_strategy_and_workers() -> None:
    made = Plan.of({"epochs": 7, "l2": 0.1, "batch": 64}, "minibatch,combine", "2")
    options = made.train_options(Configuration("combine", 2))
    assert options == {"epochs": 7, "l2": 0.1, "strategy": "combine", "workers": 2, "tol": 0}
    assert made.train_options(Configuration("minibatch", 2))["batch"] == 64
    assert made.train_options(ONE)["strategy"] == "auto"


def test_all_that_is_wrong_is_said_at_once() -> None:
    found = problems(
        "combine,stratum,,combine",
        "2,0,two,2," + 5000 * "9",
        options={"epochs": 0},
        repeats=0,
        target=0.0,
    )
    said = "\n".join(line[:90] for line in found)
    assert "strategies: 'stratum' is not one of auto, hogwild, combine" in said
    assert "strategies: '' is not one of" in said
    assert "workers: must be at least 1, not 0" in said
    assert "workers: expected a whole number, not 'two'" in said
    assert "workers: expected a whole number, not '999" in said
    assert "epochs: must be at least 1" in said
    assert "repeat: must be at least 1" in said
    assert "target: must be a number above 0" in said
    assert len(found) == 8


@pytest.mark.parametrize(
    ("lists", "options", "expected"),
    [
        (("", "2"), {}, "strategies: '' is not one of"),
        (("combine", " "), {}, "workers: expected a whole number, not ''"),
        (("auto", "1025"), {}, "workers: must be at most 1024, not 1025"),
        (
            ("combine", "2"),
            {"task": "mf"},
            "strategies: 'combine' is not one of auto, hogwild, strata",
        ),
        ((), {"task": "knit"}, "task: 'knit' is not one of"),
        ((), {"tol": 0.1}, "tol: the study sets it for each run; leave it out"),
        ((), {"epoch": 1}, "epoch: there is no such option; did you mean epochs?"),
        (("auto",), {"batch": 64}, "batch: it needs the strategy minibatch"),
    ],
)
def test_a_refusal_says_what_is_possible(lists, options, expected) -> None:
    (line,) = problems(*lists, options=options)
    assert line.startswith(expected)
