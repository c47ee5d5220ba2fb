"""Every cause and its finding: there where the numbers are, and else not."""

import pytest

from hogwild.scaling.findings import RULES, Finding, cause, findings
from hogwild.scaling.report import Report
from hogwild.scaling.summary import summaries
from tests.scaling.made_up import run, study

ONE = run(None, 1, epoch=0.1)
GOOD = run("combine", 2, epoch=0.052)
SHARED = {1: 100.0, 2: 120.0, 4: 140.0}
FULL = {1: 0.1e9, 2: 0.15e9, 4: 0.15e9}  # a run reads 8 MB in 80 ms
WORSE = (2.0, 1.1, 1.05, 1.03)


def found(*runs, **more) -> dict[str, Finding]:
    made = study(*runs, **more)
    return {finding.title: finding for finding in findings(made, summaries(made))}


def bound(*runs, **more) -> str:
    """The cause of the last one."""
    made = study(*runs, **more)
    return cause(made, summaries(made)[-1])


@pytest.mark.parametrize(
    ("expected", "measured", "slow", "machine"),
    [
        ("too little work", "1.5 ms with combine x 2", {"epoch": 0.0015}, {}),
        ("waiting", "37.5 % with combine x 2", {"epoch": 0.08, "waiting": 0.03}, {}),
        ("merging", "25.7 % with combine x 2", {"epoch": 0.07, "merging": 0.018}, {}),
        ("cache lines", "3.00 times with hogwild x 2", {"epoch": 0.15}, {}),
        (
            "locks or turns",
            "1.00 (waiting 50 %) with roundrobin x 2",
            {"epoch": 0.1, "waiting": 0.05},
            {},
        ),
        ("locks or turns", "0.33 (waiting 0 %) with locked x 2", {"epoch": 0.3}, {}),
        ("memory bandwidth", "reads 0.1 GB/s", {"epoch": 0.08}, {"bandwidth": FULL}),
        ("shared caches", "1.60 times with combine x 2", {"epoch": 0.08}, {}),
        ("shared cores", "2 threads do 1.20 times its", {"epoch": 0.08}, {"arithmetic": SHARED}),
        # Shared cores do not explain what is much slower still
        ("cache lines", "8.00 times with hogwild x 2", {"epoch": 0.4}, {"arithmetic": SHARED}),
    ],
)
def test_the_largest_loss_is_the_cause_and_has_a_finding(expected, measured, slow, machine) -> None:
    strategy = next((name for name in ("hogwild", "roundrobin", "locked") if name in measured), "")
    runs = ONE, run(strategy or "combine", 2, **slow)
    assert bound(*runs, **machine) == expected
    assert measured in found(*runs, **machine)[RULES[expected][1]].measured
    assert RULES[expected][1] not in found(ONE, GOOD)


def test_cache_lines_are_not_blamed_where_copies_are_as_slow() -> None:
    hogwild = run("hogwild", 2, epoch=0.15)
    assert bound(ONE, GOOD, hogwild) == "cache lines"
    assert bound(ONE, run("combine", 2, epoch=0.14), hogwild) == "shared caches"
    assert bound(ONE, run("locked", 2, epoch=0.3), hogwild) == "cache lines"  # it shares, too


def test_caches_are_not_blamed_where_other_programs_had_the_cores() -> None:
    slow = run("combine", 2, epoch=0.08)
    assert bound(ONE, slow, load=2.4) == "shared caches"  # two more cores were free
    assert bound(ONE, slow, load=3.0) == "shared cores"
    assert bound(ONE, run("hogwild", 2, epoch=0.15), load=3.0) == "shared cores"


def test_without_a_flaw_or_without_enough_cores_there_is_no_finding() -> None:
    assert bound(ONE, GOOD) == "computing"
    assert bound(ONE) == ""
    assert bound(ONE, run("hogwild", 4, epoch=0.4), cores=2) == "too few cores"
    assert not found(ONE, GOOD)


@pytest.mark.parametrize(
    ("more", "named"),
    [
        ({"load": 2.5}, "Other programs, here or on the host"),
        ({"load": 1.9}, "No program of this machine had the cores"),  # two more cores were free
        ({"physical": 1}, "2 workers shared 1 physical cores, as hyper-threads of them"),
        ({"load": None, "physical": None}, "No program of this machine had the cores"),
    ],
)
def test_who_shares_the_cores_is_what_was_measured(more, named) -> None:
    runs = ONE, run("combine", 2, epoch=0.08)
    finding = found(*runs, arithmetic=SHARED, **more)["The cores are shared with other work"]
    assert finding.means.startswith(f"No strategy can scale better. {named}")
    load = more.get("load", 0.0)
    assert ("too short" if load is None else f"kept {load:.2f} of 4 cores") in finding.measured
    notes = Report.of(study(*runs, **more)).notes
    assert any("a busy machine" in note for note in notes) == (load == 2.5)


def test_the_start_and_epochs_that_achieve_less() -> None:
    start = found(run(None, 1, start=0.2, search=0.15), GOOD)["The start takes long"]
    assert "33.3 % (search 150 ms) with one worker." in start.measured
    worse = found(ONE, run("hogwild", 2, epoch=0.052, objectives=WORSE))
    assert list(worse) == ["Epochs achieve less than with one worker"]
    assert "by 3 % with hogwild x 2" in next(iter(worse.values())).measured


def test_lists_of_configurations_end_somewhere() -> None:
    names = ["auto", "combine", "ordered", "averaged", "mixed", "minibatch", "strata", "hogwild"]
    runs = [run(name, 2, ran="combine", epoch=0.2, waiting=0.15) for name in names]
    assert found(ONE, *runs)["Workers wait for each other"].measured.endswith(", 2 more.")


# In short


def short(*runs, **more) -> str:
    return Report.of(study(*runs, **more)).short


def test_the_best_is_the_first_at_the_target() -> None:
    late = run("hogwild", 4, epoch=0.04, objectives=(2.0,) * 10 + (1.0,))
    said = short(ONE, GOOD, late)
    assert said.startswith("The fastest is combine x 2: 228 ms to a gap of 0.001, 1.84 times")
    assert "1.84 times as fast as one worker; its epochs are 1.92 times as fast" in said
    said = short(ONE, run("hogwild", 2, epoch=0.2))
    assert said.startswith("The fastest is one worker: 420 ms")
    assert "hogwild x 2 follows with 820 ms" in said


def test_what_the_spread_makes_doubtful_is_called_so() -> None:
    runs = [run("combine", 2, repeat=n, epoch=0.05 + 0.02 * n) for n in range(2)]
    other = [run("ordered", 2, repeat=n, epoch=0.06) for n in range(2)]
    ones = [run(None, 1, repeat=n, epoch=0.1) for n in range(2)]
    assert "The repeats vary: ordered x 2 may be as fast." in short(*ones, *runs, *other)


def test_where_one_worker_did_not_arrive_epochs_are_compared() -> None:
    far = run(None, 1, objectives=(2.0, 1.5))
    useless = run("averaged", 4, epoch=0.01, objectives=(3.0, 2.5))
    slow = run("ordered", 2, epoch=0.2)
    said = short(far, run("combine", 2, epoch=0.06, objectives=(2.0, 1.5)), useless, slow)
    assert said.startswith("The fastest is combine x 2: 60 ms per epoch (one worker did not")


def test_why_not_twice_as_fast_adds_up() -> None:
    slow = run("combine", 2, epoch=0.08, waiting=0.01, merging=0.005)
    (said,) = Report.of(study(ONE, slow)).why
    assert said.startswith("Why not 2 times? An epoch of combine x 2 takes 80 ms, 1.25 times")
    assert "would take 50 ms" in said
    assert "15 ms slower computing, 10 ms waiting, 5 ms merging" in said
    assert said.endswith("The bound: shared caches.")


# Notes


def test_notes_name_what_a_reader_must_know() -> None:
    runs = [run("strata", 4, at_work=2, notes=("started over",)), run("mixed", 2, failure="bad")]
    notes = Report.of(study(ONE, *runs, cores=2)).notes
    assert "Up to 4 workers were asked for, but only 2 cores" in notes[0]
    assert "only once" in notes[1]
    assert notes[2:] == [
        "strata x 4: started over.",
        "mixed x 2: failed: bad.",
        "strata x 4: only 2 workers can work at once.",
    ]
    (note,) = Report.of(study(ONE, run(None, 1, repeat=1, epoch=0.15))).notes
    assert "Epochs of one worker differ by up to 1.50 times" in note
    some = [run(None, 1, repeat=n, objectives=(2.0, 1.5 - 0.5 * n)) for n in range(2)]
    (note,) = Report.of(study(*some)).notes
    assert note.startswith("one worker: not all runs reached the target")
    (note,) = Report.of(study(run(None, 1), run(None, 1, repeat=1), optimum=0.8)).notes
    assert "The runs have not converged: the last epoch of the best is still 25 % above" in note
