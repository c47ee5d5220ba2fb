"""Every finding: said where its numbers are there, and else not."""

import pytest

from hogwild.scaling import causes
from hogwild.scaling.findings import findings
from hogwild.scaling.look import Look
from hogwild.scaling.notes import notes
from hogwild.scaling.summary import summaries
from hogwild.scaling.verdict import in_short, why_not
from tests.scaling.made_up import LOOK, run, study

ONE = run(None, 1, epoch=0.1)
GOOD = run("combine", 2, epoch=0.052)


def found(*runs, **more):
    made = study(*runs, **more)
    return {finding.kind: finding for finding in findings(made, summaries(made))}


def cause(*runs, **more):
    made = study(*runs, **more)
    return causes.cause(made, summaries(made)[-1])


def test_of_a_study_without_a_flaw_nothing_is_said_but_that_it_scales() -> None:
    said = found(ONE, GOOD)
    assert list(said) == ["computing"]
    assert "1.92 times with combine x 2" in said["computing"].measured
    assert "4 cores may be used: try more workers" in said["computing"].do
    assert cause(ONE, GOOD) == "computing"
    assert not found(ONE)


def test_more_workers_than_cores() -> None:
    said = found(ONE, GOOD, run("combine", 4, epoch=0.05), cores=2)
    assert "2 cores may be used, and up to 4" in said["oversubscribed"].measured
    assert [case.workers for case in said["oversubscribed"].cases] == [4]
    assert cause(ONE, run("combine", 4, epoch=0.05), cores=2) == "oversubscribed"


def test_too_little_work() -> None:
    runs = run(None, 1, epoch=0.0020), run("combine", 2, epoch=0.0015)
    assert "1.5 ms with combine x 2" in found(*runs)["little work"].measured
    assert cause(*runs) == "little work"


def test_waiting() -> None:
    slow = run("combine", 2, epoch=0.08, waiting=0.03)
    said = found(ONE, slow)
    assert "37.5 % with combine x 2" in said["waiting"].measured
    assert "unequal time" in said["waiting"].means
    assert cause(ONE, slow) == "waiting"
    assert "waiting" not in found(ONE, run("combine", 2, epoch=0.08, waiting=0.007))


def test_waiting_for_a_worker_whom_others_held_up() -> None:
    slow = [
        run("combine", 2, repeat=n, epoch=0.08 + 0.04 * n, waiting=0.03 + 0.04 * n)
        for n in range(2)
    ]
    said = found(ONE, run(None, 1, repeat=1, epoch=0.1), *slow)
    assert "differ by up to 1.50 times" in said["waiting"].means
    assert "1.50 times with combine x 2" in said["noise"].measured


def test_waiting_in_turn_is_what_the_strategy_means() -> None:
    said = found(ONE, run("roundrobin", 2, epoch=0.1, waiting=0.05))
    assert "must not write at the same time" in said["waiting"].means


def test_merging() -> None:
    slow = run("ordered", 2, epoch=0.07, merging=0.018)
    said = found(ONE, slow, GOOD)
    assert "25.7 % with ordered x 2" in said["merging"].measured
    assert "A copy takes 4 MB" in said["merging"].means
    assert said["merging"].do == "Take combine x 2, whose epoch takes 52 ms."
    assert cause(ONE, slow) == "merging"


def test_cache_lines_where_all_write_one_array() -> None:
    slow = run("hogwild", 2, epoch=0.15)
    said = found(ONE, slow, GOOD)
    assert "3.00 times with hogwild x 2" in said["lines"].measured
    assert "25 % of the non-zeros fall on the 512 hottest columns" in said["lines"].measured
    assert said["lines"].do.startswith("Take combine x 2")
    assert said["lines"].cases[0].number == pytest.approx(3.0)
    assert cause(ONE, slow) == "lines"
    assert "One worker is faster" in found(ONE, slow)["lines"].do
    assert "lines" not in found(ONE, run("hogwild", 2, epoch=0.056))  # 12 % longer: as good as not


def test_locks_and_turns_are_not_cache_lines() -> None:
    said = found(ONE, run("locked", 2, epoch=0.3), run("roundrobin", 2, epoch=0.2))
    assert "lines" not in said
    assert "a lock for every column" in said["exclusion"].means
    assert "only one worker writes at a time" in said["exclusion"].means
    assert cause(ONE, run("locked", 2, epoch=0.3)) == "exclusion"


def test_bandwidth_where_copies_get_slower_and_the_memory_is_full() -> None:
    # 8 MB in 80 ms of computing are 0.1 GB/s
    slow, full = run("combine", 2, epoch=0.08), {1: 0.1e9, 2: 0.15e9, 4: 0.15e9}
    said = found(ONE, slow, bandwidth=full)
    assert "goes through about 0.1 GB/s" in said["memory"].measured
    assert "2 threads get 0.15 GB/s, one gets 0.1 GB/s" in said["memory"].measured
    assert cause(ONE, slow, bandwidth=full) == "memory"


def test_shared_caches_where_the_memory_is_not_full() -> None:
    slow = run("combine", 2, epoch=0.08)
    said = found(ONE, slow)
    assert "memory" not in said
    assert "1.60 times with combine x 2" in said["caches"].measured
    assert "2 copies of the weights take 8 MB" in said["caches"].means
    assert cause(ONE, slow) == "caches"


def test_cores_that_are_not_all_there_explain_what_is_slower() -> None:
    shared = {1: 100.0, 2: 120.0, 4: 140.0}
    said = found(ONE, run("hogwild", 2, epoch=0.08), arithmetic=shared)
    assert "2 threads do 1.20 times" in said["cores"].measured
    assert "lines" not in said
    assert cause(ONE, run("hogwild", 2, epoch=0.08), arithmetic=shared) == "cores"
    # But not what is much slower still
    assert "lines" in found(ONE, run("hogwild", 2, epoch=0.4), arithmetic=shared)


def test_the_start() -> None:
    said = found(run(None, 1, start=0.2, eta0_seconds=0.15), GOOD)
    assert "33.3 % with one worker" in said["startup"].measured
    assert "it takes 200 ms, 150 ms of it the search" in said["startup"].measured
    assert "startup" not in found(ONE, GOOD)


def test_objectives_that_take_longer_than_learning() -> None:
    assert "71.4 % with one worker" in found(run(None, 1, evaluation=0.075))["evaluation"].measured


def test_epochs_that_achieve_less() -> None:
    worse = run("hogwild", 2, epoch=0.052, objectives=(2.0, 1.1, 1.05, 1.03))
    said = found(ONE, worse)
    assert "After 4 epochs the objective is higher: by 3 % with hogwild x 2" in (
        said["objective"].measured
    )
    assert "overwrite each other" in said["objective"].means
    apart = run("averaged", 2, epoch=0.052, objectives=(2.0, 1.1, 1.05, 1.03))
    assert "learn apart" in found(ONE, apart)["objective"].means


def test_a_target_that_is_not_reached() -> None:
    short = run("combine", 2, epoch=0.052, objectives=(2.0, 1.5, 1.2, 1.1))
    assert "0 of 1 (last gap 1.0e-01) with combine x 2" in found(ONE, short)["target"].measured


def test_fewer_workers_than_were_asked_for_and_runs_that_failed() -> None:
    said = found(ONE, run("strata", 4, at_work=2, epoch=0.052))
    assert "2 with strata x 4" in said["fewer"].measured
    said = found(ONE, run("minibatch", 2, failure="the weights overflowed"))
    assert "minibatch x 2" in said["failed"].measured
    assert "the weights overflowed" in said["failed"].means


def test_lists_of_configurations_end_somewhere() -> None:
    names = ["hogwild", "combine", "ordered", "averaged", "mixed", "minibatch", "locked", "strata"]
    said = found(ONE, *(run(name, 2, epoch=0.2, waiting=0.15) for name in names))
    assert "with minibatch x 2, and so for 2 more." in said["waiting"].measured


# In short


def short(*runs, **more) -> str:
    made = study(*runs, **more)
    return in_short(made, summaries(made))


def test_the_best_is_the_first_at_the_target() -> None:
    late = run("hogwild", 4, epoch=0.04, objectives=(2.0,) * 10 + (1.0,))
    said = short(ONE, GOOD, late)
    assert said.startswith("Best is combine x 2: 228 ms to an objective within 0.001 of the best")
    assert "1.84 times as fast as one worker; its epochs are 1.92 times as fast" in said


def test_one_worker_may_be_the_best() -> None:
    said = short(ONE, run("hogwild", 2, epoch=0.2))
    assert said.startswith("One worker is best: 420 ms")
    assert "hogwild x 2 comes next, with 820 ms" in said
    assert short(ONE).startswith("Only one worker was measured")


def test_what_the_spread_makes_doubtful_is_called_so() -> None:
    runs = [run("combine", 2, repeat=n, epoch=0.05 + 0.02 * n) for n in range(2)]
    other = [run("ordered", 2, repeat=n, epoch=0.06) for n in range(2)]
    ones = [run(None, 1, repeat=n, epoch=0.1) for n in range(2)]
    assert "it may as well be ordered x 2" in short(*ones, *runs, *other)


def test_where_one_worker_did_not_arrive_epochs_are_compared() -> None:
    far = run(None, 1, objectives=(2.0, 1.5))
    useless = run("averaged", 4, epoch=0.01, objectives=(3.0, 2.5))
    said = short(far, run("combine", 2, epoch=0.06, objectives=(2.0, 1.5)), useless, optimum=1.0)
    assert said.startswith("Best is combine x 2: 60 ms an epoch (one worker did not come")


def test_why_not_twice_as_fast_adds_up() -> None:
    made = study(ONE, run("combine", 2, epoch=0.08, waiting=0.01, merging=0.005))
    (said,) = why_not(made, summaries(made))
    assert said.startswith("Why not 2 times? With combine x 2 an epoch takes 80 ms, 1.25 times")
    assert "would take 50 ms" in said
    assert "15 ms slower computing, 10 ms waiting, 5 ms merging" in said
    assert said.endswith("bound by: shared caches.")


# Notes


def test_notes_tell_of_cores_repeats_warnings_and_a_wrong_optimum() -> None:
    made = study(ONE, run("hogwild", 4, notes=("started over",)), cores=2, optimum=1.5)
    said = notes(made)
    assert "Up to 4 workers were asked for. 2 cores may be used" in said[0]
    assert "once only" in said[1]
    assert "a run came to 1" in said[2]
    assert said[3] == "hogwild x 4: started over"
    assert not notes(study(ONE, run(None, 1, repeat=1)))


def test_the_numbers_of_a_finding_are_the_data_s() -> None:
    look = Look(**(LOOK.__dict__ | {"heat": "80 % of the ratings are of one item"}))
    said = found(ONE, run("hogwild", 2, epoch=0.15), look=look)
    assert "80 % of the ratings are of one item." in said["lines"].measured
