"""Everything that is allowed is accepted, and everything that is not is refused by name."""

import itertools

import pytest

from hogwild.config import MERGES, TASKS, Config, loss_names, schedule_names, strategy_names
from hogwild.learn.losses import LOSSES
from hogwild.learn.needs import NEEDS, unmet
from hogwild.loops.strategies import AUTO, STRATEGIES

# For each need, options that have not what it takes, and options that have
CASES = {
    "target": ({"target": 1.0, "objective_every": 0}, {"target": 1.0, "objective_every": 2}),
    "early_stopping": (
        {"early_stopping": 0.1, "objective_every": 2},
        {"early_stopping": 0.1, "objective_every": 1},
    ),
    "beta": ({"beta": 0.5}, {"beta": 0.5, "schedule": "backoff"}),
    "schedule": ({"l1": 1e-3, "schedule": "inverse"}, {"l1": 1e-3}),
    "strategy": ({"l1": 1e-3, "strategy": "mixed"}, {"l1": 1e-3, "strategy": "combine"}),
    "solver": ({"solver": "dual", "loss": "perceptron"}, {"solver": "dual", "loss": "hinge"}),
    "eta0": ({"solver": "dual", "eta0": 0.1}, {"eta0": 0.1}),
    "average": ({"solver": "dual", "average": False}, {"average": False}),
    "merge": ({"merge": "vote"}, {"merge": "vote", "strategy": "mixed"}),
    "batch": ({"batch": 64}, {"batch": 64, "strategy": "minibatch"}),
    "deterministic": (
        {"deterministic": True, "strategy": "hogwild"},
        {"deterministic": True, "strategy": "ordered"},
    ),
    "epsilon": (
        {"task": "regression", "epsilon": 0.2},
        {"task": "regression", "epsilon": 0.2, "loss": "huber"},
    ),
    "memory": ({"memory": "1G", "solver": "newton"}, {"memory": "1G", "solver": "dual"}),
    "quantile": (
        {"task": "regression", "quantile": 0.2},
        {"task": "regression", "quantile": 0.2, "loss": "quantile"},
    ),
    "class_weight": (
        {"task": "regression", "class_weight": "balanced"},
        {"task": "logistic", "class_weight": "balanced"},
    ),
    "biases": (
        {"task": "mf", "loss": "kl", "biases": True},
        {"task": "mf", "loss": "squared", "biases": True},
    ),
    "bias_l2": (
        {"task": "mf", "biases": False, "bias_l2": 0.1},
        {"task": "mf", "bias_l2": 0.1},
    ),
}


@pytest.mark.parametrize("solver", ["cg", "closed"])
def test_a_solver_is_refused_by_its_name(solver):
    (complaint,) = Config(solver=solver, loss="perceptron").problems()
    assert complaint == "solver: it needs the loss squared to be cg or closed"


def test_there_is_a_case_for_each_need():
    assert set(CASES) == {need.option for need in NEEDS}


@pytest.mark.parametrize("option", CASES)
def test_what_is_needed_is_named(option):
    lacking, having = (Config(**options) for options in CASES[option])
    (complaint,) = unmet(lacking)
    assert complaint.startswith(f"{option}: it needs ")
    assert lacking.problems() == [complaint]
    assert having.problems() == []


def test_a_batch_is_a_multiple_of_8():
    found = unmet(Config(batch=65, strategy="minibatch"))
    assert found == ["batch: it needs a multiple of 8"]


def test_a_vote_is_between_two_classes():
    for task in ("regression", "softmax"):
        (complaint,) = Config(task=task, merge="vote", strategy="mixed").problems()
        assert complaint.endswith("the task svm or logistic, to be vote")
    (complaint,) = Config(task="mf", merge="vote").problems()
    assert complaint.startswith("merge: only for the task svm")


def combinations():
    for task in TASKS:
        yield from itertools.product(
            [task],
            loss_names(),
            schedule_names(),
            strategy_names(),
            [False, True],
            MERGES if TASKS[task].family == "linear" else MERGES[:1],
        )


def test_every_combination_is_accepted_or_refused_for_what_it_lacks():
    """All tasks with all losses, schedules and strategies that any task has."""
    accepted = 0
    for task, loss, schedule, strategy, deterministic, merge in combinations():
        options = {"loss": loss, "schedule": schedule, "strategy": strategy}
        config = Config(task=task, deterministic=deterministic, merge=merge, **options)
        problems = config.problems()
        expected = [
            name
            for name, able in (
                ("loss", loss_names(task)),
                ("strategy", strategy_names(task)),
                ("schedule", schedule_names(task)),
            )
            if options[name] not in able
        ]
        votes = merge == MERGES[1]
        able = strategy in ("averaged", "mixed") and task in ("svm", "logistic")
        known = strategy == AUTO or STRATEGIES[strategy].deterministic
        adapts = schedule in ("adaptive", "normalized") and task != "mf"
        if not expected:
            lacking = {
                "schedule": adapts and loss == "perceptron",
                "strategy": adapts and strategy in ("averaged", "mixed"),
                "merge": votes and not able,
                "deterministic": deterministic and not known,
            }
            expected = [name for name, lacks in lacking.items() if lacks]
        found = [problem.split(":")[0] for problem in problems]
        assert found[: len(expected)] == expected, (config, problems)
        assert bool(found) == bool(expected)
        accepted += not problems
    assert accepted > len(LOSSES)
