"""The numbers of a study, from traces whose every number is known."""

import pytest

from hogwild.scaling.summary import summaries
from tests.scaling.made_up import run, study


def summary_of(made, name):
    return next(one for one in summaries(made) if one.configuration.name == name)


def test_an_epoch_is_compared_with_one_worker_s() -> None:
    made = study(run(None, 1, epoch=0.12), run("combine", 4, epoch=0.04))
    four = summary_of(made, "combine x 4")
    assert four.speed_up == pytest.approx(3.0)
    assert four.efficiency == pytest.approx(0.75)
    assert four.equal_share == pytest.approx(0.03)
    one = summary_of(made, "one worker")
    assert (one.speed_up, one.efficiency, one.growth) == (1.0, 1.0, 1.0)


def test_the_spread_is_of_the_repeats_and_the_best_is_told_beside_the_median() -> None:
    times = [0.05, 0.09, 0.06]
    made = study(
        *(run(None, 1, repeat=n, epoch=0.1 + 0.01 * n) for n in range(3)),
        *(run("combine", 2, repeat=n, epoch=time) for n, time in enumerate(times)),
    )
    two = summary_of(made, "combine x 2")
    assert two.epoch == pytest.approx((0.05, 0.06, 0.09))
    assert two.epoch.ratio == pytest.approx(1.8)
    assert two.speed_up == pytest.approx(0.11 / 0.06)
    assert two.best_speed_up == pytest.approx(0.10 / 0.05)
    assert two.total.least == pytest.approx(0.02 + 4 * 0.05)


def test_time_is_split_into_computing_waiting_merging_start_and_evaluation() -> None:
    numbers = {"waiting": 0.02, "merging": 0.01, "start": 0.05, "evaluation": 0.004}
    made = study(run(None, 1, epoch=0.1), run("combine", 2, epoch=0.08, **numbers))
    two = summary_of(made, "combine x 2")
    assert two.split == pytest.approx((0.05, 0.02, 0.01))
    assert two.split.epoch == pytest.approx(two.epoch.median)
    assert two.whole == pytest.approx((0.20, 0.08, 0.04, 0.05, 0.016))
    assert two.whole.training == pytest.approx(two.total.median)
    assert two.growth == pytest.approx(2 * 0.05 / 0.1)


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
    made = study(
        run(None, 1),
        run(None, 1, repeat=1),
        run("combine", 2),
        run("combine", 2, repeat=1, objectives=short),
    )
    two = summary_of(made, "combine x 2")
    assert (two.reached, two.repeats) == (1, 2)
    assert two.target is not None
    assert two.target_speed_up is None
    assert len(two.objectives) == 2  # as far as all runs went
    none = summary_of(study(run(None, 1, objectives=short), optimum=1.0), "one worker")
    assert (none.target, none.target_epochs) == (None, None)


def test_gaps_are_from_the_optimum_if_it_is_given() -> None:
    one = summary_of(study(run(None, 1, objectives=(4.0, 3.0)), optimum=2.0), "one worker")
    assert one.gaps == pytest.approx([1.0, 0.5])
    nothing = summary_of(study(run(None, 1, objectives=(4.0, 0.0))), "one worker")
    assert nothing.gaps == [4.0, 0.0]  # of an optimum of 0 there is no share
    below = summary_of(study(run(None, 1, objectives=(-1.0, -2.0))), "one worker")
    assert below.gaps == pytest.approx([0.5, 0.0])


def test_with_baselines_of_their_own_strategies_are_not_compared_with_others() -> None:
    made = study(
        run("combine", 1, epoch=0.2),
        run("combine", 2, epoch=0.1),
        run("ordered", 2, epoch=0.1),  # whose run with one worker failed
        run("ordered", 1, failure="it did not"),
        own_baseline=True,
    )
    assert summary_of(made, "combine x 2").speed_up == pytest.approx(2.0)
    assert summary_of(made, "ordered x 2").speed_up is None
    assert [one.name for one in summaries(made)] == ["combine x 1", "combine x 2", "ordered x 2"]


def test_what_auto_chose_is_told() -> None:
    made = study(run(None, 1), run("auto", 2, ran="combine"))
    assert [one.name for one in summaries(made)] == ["one worker", "auto x 2 (combine)"]
