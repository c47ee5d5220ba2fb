"""What a study is to run, from lists as they are typed."""

import pytest

from hogwild import OptionError
from hogwild.scaling import plan
from hogwild.scaling.plan import ONE, Configuration, Plan


def names(made: Plan) -> list[str]:
    return [configuration.name for configuration in made.configurations]


def problems(*lists: str | None, **more: object) -> list[str]:
    options = more.pop("options", {})
    with pytest.raises(OptionError) as raised:
        Plan.of(options, *lists, **more)  # type: ignore[arg-type]
    return str(raised.value).splitlines()


def test_all_strategies_share_the_run_with_one_worker() -> None:
    made = Plan.of({}, "combine,hogwild", "4,1,2")
    assert names(made) == [
        "one worker",
        *("combine x 2", "combine x 4", "hogwild x 2", "hogwild x 4"),
    ]
    assert {made.baseline(one) for one in made.configurations} == {ONE}


def test_or_each_has_its_own() -> None:
    made = Plan.of({}, "combine,hogwild", "2", own_baseline=True)
    assert names(made) == ["combine x 1", "combine x 2", "hogwild x 1", "hogwild x 2"]
    assert made.baseline(Configuration("hogwild", 2)) == Configuration("hogwild", 1)


def test_without_lists_there_are_the_usual_strategies_and_all_cores(monkeypatch) -> None:
    monkeypatch.setattr(plan.machine, "usable_cores", lambda: 6)
    assert Plan.of({}).workers == (1, 2, 4, 6)
    assert Plan.of({}).strategies == ("auto", "hogwild", "combine", "ordered")
    assert Plan.of({"task": "mf"}).strategies == ("auto", "hogwild")


def test_every_run_trains_all_its_epochs_with_its_strategy_and_workers() -> None:
    made = Plan.of({"epochs": 7, "l2": 0.1, "batch": 64}, "minibatch,combine", "2")
    options = made.train_options(Configuration("combine", 2))
    assert options == {"epochs": 7, "l2": 0.1, "strategy": "combine", "workers": 2, "tol": 0}
    assert made.train_options(Configuration("minibatch", 2))["batch"] == 64
    assert made.train_options(ONE)["strategy"] == "auto"


def test_all_that_is_wrong_is_said_at_once() -> None:
    found = problems(
        "combine,stratum,,combine",
        "2,0,two,2",
        options={"epochs": 0},
        repeats="x",
        target=0.0,
        optimum=float("nan"),
    )
    told = "\n".join(found)
    assert "strategies: 'stratum' is not one for rows; auto, hogwild, combine" in told
    assert "strategies: a name is missing" in told
    assert "strategies: combine is there twice" in told
    assert "workers: '0' is not a whole number" in told
    assert "workers: 'two' is not a whole number" in told
    assert "workers: 2 is there twice" in told
    assert "epochs: must be at least 1" in told
    assert "repeat: must be a whole number" in told
    assert "target: must be a number above 0" in told
    assert "optimum: must be a number" in told
    assert len(found) == 10


@pytest.mark.parametrize("text", ["", ",", " "])
def test_an_empty_list_is_refused(text: str) -> None:
    assert any(line.startswith("strategies: ") for line in problems(text, "2"))
    assert any(line.startswith("workers: ") for line in problems("combine", text))


def test_a_strategy_that_does_not_fit_the_task_is_told_which_do() -> None:
    assert problems("combine", options={"task": "mf"}) == [
        "strategies: 'combine' is not one for ratings; auto, hogwild, strata are"
    ]


def test_more_workers_than_can_be_at_work_are_refused() -> None:
    assert problems("strata", "9", options={"task": "mf"}) == [
        "workers: 9 cannot be at work at once; at most 8 can"
    ]
    assert problems("auto", "1025") == ["workers: must be at most 1024, not 1025"]


def test_what_the_study_decides_cannot_be_given() -> None:
    assert problems(options={"tol": 0.1}) == [
        "tol: the study decides it for each run; leave it out"
    ]
    assert problems(options={"epoch": 1}) == [
        "epoch: there is no such option; did you mean epochs?"
    ]
    assert problems("auto", options={"batch": 64}) == [
        "batch: only the strategy minibatch has one; leave it out"
    ]


def test_only_options_that_are_not_the_defaults_are_worth_a_word() -> None:
    made = Plan.of({"task": "mf", "rank": 8, "epochs": 20, "loss": None, "average": True}, "auto")
    assert made.given == {"rank": 8}
