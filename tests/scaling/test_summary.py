"""The numbers of a study, from traces whose every number is known."""

import pytest

from hogwild.scaling.summary import Summary, summaries
from tests.scaling.made_up import run, study


def summary_of(*runs, name: str = "one worker", **more) -> Summary:
    found = summaries(study(*runs, **more))
    return next(one for one in found if one.configuration.name == name)


def test_an_epoch_is_compared_with_one_worker_s_and_split() -> None:
    numbers = {"waiting": 0.01, "merging": 0.005, "start": 0.05, "evaluation": 0.004}
    runs = run(None, 1, epoch=0.12), run("combine", 4, epoch=0.04, **numbers)
    four = summary_of(*runs, name="combine x 4")
    assert (four.speed_up, four.efficiency) == pytest.approx((3.0, 0.75))
    assert four.split == pytest.approx((0.025, 0.01, 0.005))
    assert four.equal_share == pytest.approx(0.03)
    assert list(four.losses.values()) == pytest.approx([-0.005, 0.01, 0.005])
    assert four.growth == pytest.approx(4 * 0.025 / 0.12)
    assert (four.startup, four.training, four.evaluation) == pytest.approx((0.05, 0.21, 0.016))
    one = summary_of(*runs)
    assert (one.speed_up, one.efficiency, one.growth, one.worse) == (1.0, 1.0, 1.0, 0.0)


def test_the_spread_is_of_the_repeats() -> None:
    times = [0.05, 0.09, 0.06]
    two = summary_of(
        *(run(None, 1, repeat=n, epoch=0.1 + 0.01 * n) for n in range(3)),
        *(run("combine", 2, repeat=n, epoch=time) for n, time in enumerate(times)),
        name="combine x 2",
    )
    assert two.epoch == pytest.approx((0.05, 0.06, 0.09))
    assert two.split.epoch == pytest.approx(0.06)  # of the median run
    assert two.speed_up == pytest.approx(0.11 / 0.06)


def test_the_target_is_reached_at_the_end_of_the_first_epoch_that_is_near_enough() -> None:
    made = study(
        run(None, 1, epoch=0.1, start=0.02, objectives=(2.0, 1.1, 1.01, 1.0)),
        run("combine", 2, epoch=0.06, start=0.03, objectives=(2.0, 1.5, 1.2, 1.05)),
        target=0.11,
    )
    one, two = summaries(made)
    assert one.gaps == pytest.approx([1.0, 0.1, 0.01, 0.0])
    assert (one.target_epochs, one.target.median) == (2, pytest.approx(0.22))
    assert (two.target_epochs, two.target.median) == (4, pytest.approx(0.27))
    assert two.target_speed_up == pytest.approx(0.22 / 0.27)
    assert two.worse == pytest.approx(0.05)


def test_a_target_that_some_runs_do_not_reach_has_no_speed_up() -> None:
    short = (2.0, 1.9)
    runs = [run(name, n, repeat=k) for name, n in ((None, 1), ("combine", 2)) for k in range(2)]
    runs[-1] = run("combine", 2, repeat=1, objectives=short)
    two = summary_of(*runs, name="combine x 2")
    assert (two.reached, two.repeats) == (1, 2)
    assert two.target is not None
    assert two.target_speed_up is None
    assert len(two.objectives) == 2  # as far as all runs went
    none = summary_of(run(None, 1, objectives=short), run("combine", 2))
    assert (none.target, none.target_epochs) == (None, None)


@pytest.mark.parametrize(
    ("objectives", "best", "gaps"),
    [
        ((4.0, 3.0), 2.0, [1.0, 0.5]),
        ((4.0, 0.0), 1.0, [4.0, 0.0]),  # nothing is relative to 0
        ((-1.0, -2.0), -1.5, [0.5, 0.0]),
    ],
)
def test_gaps_are_relative_to_the_best_of_all_runs(objectives, best, gaps) -> None:
    other = run("combine", 2, objectives=(best,))
    assert summary_of(run(None, 1, objectives=objectives), other).gaps == gaps


def test_names_say_what_auto_chose() -> None:
    found = summaries(study(run(None, 1), run("auto", 2, ran="combine")))
    assert [one.name for one in found] == ["one worker", "auto x 2 (combine)"]
