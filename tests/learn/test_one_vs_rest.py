"""Many classes and several labels by solvers with a proof: optima, bytes, ends, what is refused."""

import threading

import numpy as np
import pytest

import hogwild
from hogwild import DataError, OptionError, Rows
from hogwild.config import Config
from hogwild.data.synthetic import rcv1_classes
from hogwild.learn import one_vs_rest
from hogwild.learn.choosing import by_data
from hogwild.learn.heads import heads_of
from hogwild.learn.linear import LinearProblem
from hogwild.learn.losses import CLASSES, LABELS
from hogwild.learn.one_vs_rest import against_the_rest
from hogwild.learn.sets import Set
from hogwild.learn.targets import SeveralLabels
from tests import reference
from tests.combinations import each, pairs
from tests.learn.test_heads import draw, signs_of, solve
from tests.test_recovery import At, interrupt

SOLVERS = {
    "dual": ("hinge", "squared_hinge", "logistic", "squared"),
    "newton": ("hinge", "logistic", "squared_hinge", "modified_huber"),
    "cg": ("squared",),
    "closed": ("squared",),
    "lbfgs": ("logistic",),
}
CASES = [(solver, loss) for solver, losses in SOLVERS.items() for loss in losses]


def train(X, y, **options):
    return hogwild.train(Rows(X, y), **{"l2": 1e-2, "tol": 1e-5, "workers": 1} | options)


def objective_of(model, X, signs, loss, l2=1e-2):
    weights, intercept = model.weights.astype(float), model.intercept.astype(float)
    return reference.heads_objective(X.astype(float), signs, weights, intercept, loss, l2)


@pairs(case=CASES, kind=[CLASSES, LABELS], workers=[1, 2])
def test_the_optimum_is_reached_and_proved(case, kind, workers):
    (solver, loss), (X, y, Y) = case, draw()
    labels = y if kind == CLASSES else Y
    result = train(X, labels, solver=solver, loss=loss, workers=workers)
    assert result.reason == "converged"
    assert result.header["chosen"]["solver"] == solver
    row, signs = result.trace[-1], signs_of(labels, 5)
    found = objective_of(result.model, X, signs, loss)
    assert row["objective"] == pytest.approx(found, rel=1e-6)
    assert 0 <= row["gap"] <= 1.01e-5
    best = solve(X.astype(float), signs, loss, 1e-2)  # or a little above it
    assert found / (1 + row["gap"]) <= best * (1 + 1e-6)
    assert found <= best * (1 + 1.2e-5)


@each(solver=["newton", "lbfgs", "coordinate"], share=[None, 1.001])
def test_what_is_claimed_is_the_objective_of_the_stored_weights(solver, share, monkeypatch):
    """Also where the sum ends the training; far from 0, weights in double precision are others."""
    X, _, Y = draw()
    X = (X + 1e4).astype(np.float32)
    l1 = 1e-3 * (solver == "coordinate")
    options = {"solver": solver, "loss": "logistic", "l1": l1, "l2": 1e-5, "tol": 1e-3}
    if share:
        options["target"] = share * train(X, Y, **options).trace[-1]["objective"]
    claimed = []
    proved = LinearProblem.proved

    def noted(self):
        claimed.append(self._outcome.objective)
        return proved(self)

    monkeypatch.setattr(LinearProblem, "proved", noted)
    result = train(X, Y, **options)
    assert result.reason == ("target" if share else "converged")
    found = objective_of(result.model, X, signs_of(Y, 5), "logistic", 1e-5)
    found += l1 * np.abs(result.model.weights.astype(float)).sum()
    assert claimed[-1] == pytest.approx(found, rel=1e-8)


@each(l2=[0.0, 1e-3], loss=["logistic", "squared_hinge", "squared"])
def test_an_l1_gives_the_zeros_of_heads_learned_apart(l2, loss):
    X, _, Y = draw()
    given = {"loss": loss, "l1": 2e-2, "l2": l2, "tol": 1e-7}
    together = train(X, Y, **given).model
    for head in range(5):
        alone = train(X, Y[:, head], **given).model
        np.testing.assert_allclose(together.weights[head], alone.weights, atol=2e-3)
        assert np.array_equal(together.weights[head] == 0, alone.weights == 0)
    assert (together.weights == 0).any()


@pairs(solver=["dual", "newton"], loss=["hinge", "logistic"], weighted=[False, True])
def test_heads_learned_together_are_heads_learned_apart(solver, loss, weighted):
    """To the byte: a head does not see the others."""
    X, _, Y = draw(heads=6)
    weights = np.random.default_rng(1).random(len(X)) if weighted else None
    given = {"solver": solver, "loss": loss, "l2": 1e-2, "epochs": 3, "tol": 0, "workers": 1}
    together = hogwild.train(Rows(X, Y, sample_weight=weights), **given).model
    for head in range(6):
        alone = hogwild.train(Rows(X, Y[:, head], sample_weight=weights), **given).model
        assert np.array_equal(together.weights[head], alone.weights)
        assert together.intercept[head] == alone.intercept


@each(
    options=[
        {"solver": "dual", "loss": "hinge"},
        {"solver": "dual", "loss": "logistic", "intercept": False},
        {"solver": "newton", "loss": "hinge"},
        {"solver": "newton", "loss": "logistic"},
        {"solver": "coordinate", "loss": "logistic", "l1": 1e-2, "l2": 0.0},
    ],
    deterministic=[False, True],
)
def test_any_number_of_workers_learns_the_same_bytes(options, deterministic):
    X, _, Y = draw(rows=501, heads=9)
    found = []
    for workers in (1, 2, 3, 8):
        result = train(X, Y, workers=workers, deterministic=deterministic, **options)
        trace = [(row["objective"], row["gap"], row["rows"]) for row in result.trace]
        found.append((result.model.weights.tobytes(), result.model.intercept.tobytes(), trace))
    assert all(some == found[0] for some in found)


def test_heads_that_are_near_enough_are_not_visited_again():
    X, y, _ = draw(rows=600)
    labels = np.column_stack([np.arange(600) < 2, np.arange(600) % 2, y == 1])
    trace = train(X, labels, solver="dual", loss="logistic", l2=1e-5, tol=1e-4).trace
    assert trace[-1]["rows"] in (200, 400)
    assert all((row["gap"] is None) >= (row["objective"] is None) for row in trace)


def test_rows_weigh_as_many_copies_and_classes_as_their_rows():
    X, y, _ = draw()
    twice = np.where(y == 2, 2.0, 1.0)
    copied = np.flatnonzero(y == 2)
    given = {"solver": "dual", "loss": "logistic", "tol": 1e-6}
    weighted = hogwild.train(Rows(X, y, sample_weight=twice), l2=1e-2, workers=1, **given)
    by_class = train(X, y, class_weight={2: 2}, **given)
    assert np.array_equal(weighted.model.weights, by_class.model.weights)
    copies = train(np.vstack([X, X[copied]]), np.append(y, y[copied]), **given)
    assert copies.trace[-1]["objective"] == pytest.approx(weighted.trace[-1]["objective"], rel=2e-6)


# Ends


def test_a_target_is_for_all_heads_together():
    X, _, Y = draw()
    optimum = train(X, Y, solver="dual").trace[-1]["objective"]
    result = train(X, Y, solver="dual", tol=0.5, target=optimum * 1.001)
    assert result.reason == "target"
    assert result.trace[-1]["objective"] <= optimum * 1.001
    below = train(X, Y, solver="dual", target=optimum * 0.99)
    assert below.reason == "unreachable"
    assert any("below the optimum" in note for note in below.notes)


def test_epochs_and_time_end_it_with_all_heads_looked_at():
    assert len(train(*draw()[:2], solver="dual", tol=0, epochs=4).trace) == 4
    rows = rcv1_classes(20_000, classes=12)[0]
    given = {"solver": "dual", "l2": 1e-5, "tol": 0, "workers": 2}
    result = hogwild.train(rows, time_limit=1.0, **given)
    assert result.reason == "time"
    assert result.trace[-1]["gap"] is not None
    at_zero = len(result.model.labels)  # of the hinge, a 1 for each
    assert result.trace[-1]["objective"] < at_zero


def test_what_single_precision_cannot_prove_is_said():
    result = train(*draw()[:2], solver="dual", tol=1e-12)
    assert result.reason == "stuck"
    assert result.trace[-1]["gap"] < 1e-5


class Soon(At):
    """Does something soon after the end of an epoch."""

    def _act(self):
        if self.when is None:
            self.when = 0.0
            threading.Timer(0.03, self.do).start()


@pytest.mark.usefixtures("listening")
@pytest.mark.parametrize("workers", [1, 2])
def test_an_interrupt_gives_the_model_so_far(workers):
    rows = rcv1_classes(20_000, classes=12)[0]
    given = {"solver": "dual", "l2": 1e-7, "tol": 0, "time_limit": 20, "workers": workers}
    result = hogwild.train(rows, watcher=Soon(interrupt, 2), **given)
    assert result.reason == "interrupted"
    assert result.model.evaluate(rows)["error"] < 0.7
    going_on = hogwild.train(rows, solver="dual", l2=1e-4, start=result.state)
    assert going_on.reason == "converged"


@each(solver=["dual", "newton"], loss=["hinge", "logistic"])
def test_training_goes_on_where_it_was(solver, loss):
    X, y, _ = draw()
    first = train(X, y, solver=solver, loss=loss, tol=1e-2)
    second = train(X, y, solver=solver, loss=loss, start=first.state)
    whole = train(X, y, solver=solver, loss=loss)
    assert second.reason == "converged"
    assert second.trace[0]["epoch"] == len(first.trace) + 1
    assert second.trace[-1]["objective"] == pytest.approx(whole.trace[-1]["objective"], rel=2e-5)
    done = train(X, y, solver=solver, loss=loss, start=whole.state)
    gains = (solver, loss) != ("newton", "hinge")  # interior points begin far from all bounds
    assert len(done.trace) + gains <= len(whole.trace)


def test_it_goes_on_from_descent_and_descent_from_it():
    X, y, _ = draw()
    start = train(X, y, solver="sgd", loss="logistic", tol=1e-3).state
    result = train(X, y, solver="dual", loss="logistic", start=start)
    assert result.reason == "converged"
    back = train(X, y, solver="sgd", loss="logistic", tol=1e-3, start=result.state)
    assert back.trace[-1]["objective"] <= result.trace[-1]["objective"] * 1.05
    fewer = train(X[:100], y[:100], solver="dual", loss="logistic", start=result.state)
    assert fewer.reason == "converged"


# What it is made of


@pytest.mark.parametrize("weighted", [False, True])
def test_targets_of_a_head_are_its_labels_against_the_rest(weighted):
    X, _, Y = draw(heads=70)
    weights = np.arange(len(X)) % 3 + 1.0
    rows = Rows(X, Y, sample_weight=weights if weighted else None)
    data = Set.of(rows, SeveralLabels(rows.labels))
    for head in (0, 31, 32, 69):
        found = against_the_rest(data, LABELS, head).view.targets.reshape(len(X), -1)
        assert np.array_equal(found[:, 0], 2.0 * Y[:, head] - 1)
        assert found.shape[1] == 1 + weighted
        if weighted:
            np.testing.assert_allclose(found[:, 1], weights / weights.mean(), rtol=1e-6)


def test_passes_are_counted_in_whole_rows_and_told_to_one_thread():
    told = []

    def passed(share):
        told.append((threading.get_ident(), share * 7))
        return len(told) < 4

    counter = one_vs_rest.Counter(passed, 3, 7)
    assert counter(1.0)  # 7 rows of one of 3 heads: 2 of all
    other = threading.Thread(target=counter, args=(2.0,))
    other.start()
    other.join()
    assert counter(0.0)
    assert counter(0.0)
    assert not counter(0.0)
    assert {who for who, _ in told} == {threading.get_ident()}
    assert [rows for _, rows in told] == pytest.approx([2, 5, 0, 0])


@pytest.mark.parametrize(
    ("options", "heads", "solver"),
    [
        ({}, 3, "dual"),
        ({}, 101, "dual"),
        ({"loss": "logistic"}, 3, "dual"),
        ({"loss": "logistic"}, 20, "sgd"),
        ({"loss": "logistic", "l2": 1e-6}, 20, "dual"),
        ({"loss": "modified_huber"}, 20, "sgd"),
        ({"loss": "logistic", "l1": 1e-3}, 20, "coordinate"),
        ({"loss": "logistic", "solver": "newton"}, 20, "newton"),
        ({"eta0": 0.1}, 3, "sgd"),
        ({}, 20_000, "sgd"),
    ],
)
def test_the_solver_is_chosen_by_loss_penalty_and_classes(options, heads, solver):
    rows = rcv1_classes(12_000, classes=3)[0]
    config = Config.of(options)
    assert by_data(config, rows, heads_of(config.loss_name, CLASSES, heads), False)[0] == solver


def test_a_strategy_and_too_little_memory_are_refused(monkeypatch):
    X, y, _ = draw()
    with pytest.raises(OptionError, match="strategy: it needs to be auto"):
        train(X, y, solver="dual", strategy="combine")
    monkeypatch.setattr("hogwild.coordinator.available_memory", lambda: 10_000)
    with pytest.raises(DataError, match="with 5 classes the solver dual needs"):
        train(X, y, solver="dual")
