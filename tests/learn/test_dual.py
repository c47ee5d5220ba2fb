"""The solver `dual`: what it proves is true, in every loop, on awkward data, and after faults."""

import threading
from functools import cache

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.sparse import csr_matrix

import hogwild
from hogwild import coordinator
from hogwild.config import Config
from hogwild.coordinator import Run
from hogwild.data.synthetic import rcv1
from hogwild.errors import HogwildWarning, OptionError, WorkerError
from hogwild.learn.dual import DualAscent
from hogwild.learn.duals import DUALS, INWARDS
from hogwild.learn.linear import LinearProblem
from hogwild.learn.losses import LOSSES, SIGNS
from hogwild.results import Watcher
from hogwild.steps.dual import STATE
from tests import reference
from tests.combinations import each, pairs
from tests.test_recovery import At, interrupt, kill_a_worker

pytestmark = pytest.mark.filterwarnings("ignore:what workers changed", "ignore:rows overlap")

SIZE, COLUMNS = 240, 9
OPTIONS = {
    "huber": {"epsilon": 0.7},
    "epsilon_insensitive": {"epsilon": 0.3},
    "quantile": {"quantile": 0.2},
}
LOOPS = {
    "one": {"workers": 1},
    "combine": {"workers": 2, "strategy": "combine"},
    "ordered": {"workers": 2, "strategy": "ordered"},
}


def parameter_of(loss):
    return next(iter(OPTIONS.get(loss, {0: 0.0}).values()))


def is_for_classes(loss):
    return SIGNS in LOSSES[loss].kinds and loss != "squared"


@cache
def plain(loss):
    """X, y and weights of rows, some of them empty or of weight 0."""
    random = np.random.default_rng(1)
    X = random.normal(size=(SIZE, COLUMNS)) * (random.random((SIZE, COLUMNS)) < 0.5)
    X = X.astype(np.float32)
    X[::19] = 0
    y = X @ random.normal(size=COLUMNS) + 0.7 + random.normal(size=SIZE)
    weights = random.random(SIZE) * (random.random(SIZE) < 0.9)
    return X, np.sign(y) if is_for_classes(loss) else y.astype(np.float32), weights


def fit(loss, intercept=True, weighted=False, **options):
    X, y, weights = plain(loss)
    known = {"workers": 1, "l2": 1e-2, "tol": 1e-5, "solver": "dual"} | OPTIONS.get(loss, {})
    task = "svm" if is_for_classes(loss) else "regression"
    given = {"sample_weight": weights if weighted else None, "intercept": intercept}
    return hogwild.train(hogwild.Rows(X, y), task=task, loss=loss, **given, **known | options)


def scaled(weights, weighted):
    return weights * SIZE / weights.sum() if weighted else np.ones(SIZE)


def primal(model, loss, weighted, l2=1e-2):
    """The objective of a model, in double precision."""
    X, y, weights = plain(loss)
    w, b = np.asarray(model.weights, float), float(model.intercept)
    losses = reference.value(loss, X @ w + b, y, parameter_of(loss))
    return l2 / 2 * w @ w + np.mean(scaled(weights, weighted) * losses)


def dual(state, loss, intercept, weighted, l2=1e-2):
    """The dual objective of what training can go on from, and how far the sum of a is from 0."""
    X, y, weights = plain(loss)
    u = scaled(weights, weighted)
    a = state.weights["row_state"].reshape(-1, STATE)[:, 0].astype(float)
    value, bounds, p = DUALS[loss].value, DUALS[loss].bounds, parameter_of(loss)
    for one, target in zip(a, y, strict=True):
        least, most = bounds(float(target), p)
        assert least / INWARDS <= one <= most / INWARDS  # which single precision does not hold
    total = sum(u[i] * value(a[i], float(y[i]), p) for i in range(SIZE))
    w = (u * a) @ X / (l2 * SIZE)
    return total / SIZE - l2 / 2 * w @ w, abs(np.mean(u * a)) if intercept else 0.0


@pairs(loss=DUALS, intercept=[False, True], weighted=[False, True], loop=LOOPS)
def test_the_optimum_is_reached_and_proved(loss, intercept, weighted, loop):
    tol = 1e-5 if loop == "one" else 1e-3
    result = fit(loss, intercept, weighted, tol=tol, **LOOPS[loop])
    assert result.reason == "converged"
    row = result.trace[-1]
    found = primal(result.model, loss, weighted)
    assert row["objective"] == pytest.approx(found, rel=1e-6)
    bound, rest = dual(result.state, loss, intercept, weighted)
    assert rest < 1e-7
    assert 0 <= row["gap"] <= 1.01 * tol
    # The bound is the best so far; the last one may be lower
    assert found - bound <= (2 * row["gap"] + 1e-7) * found


@each(loss=["logistic", "squared", "huber", "squared_hinge"], intercept=[False, True])
def test_the_optimum_is_that_of_an_independent_solver(loss, intercept):
    X, y, _ = plain(loss)
    X, y = X.astype(float), np.asarray(y, float)

    def objective(point):
        w, b = point[:-1], point[-1] * intercept
        return 5e-3 * w @ w + np.mean(reference.value(loss, X @ w + b, y, parameter_of(loss)))

    start = np.zeros(COLUMNS + 1)
    optimum = minimize(objective, start, method="BFGS", options={"gtol": 1e-9}).fun
    result = fit(loss, intercept)
    found = result.trace[-1]["objective"]
    assert optimum - 1e-7 <= found <= optimum * (1 + 1e-5) + 1e-7


@pairs(loss=["hinge", "logistic", "epsilon_insensitive"], intercept=[False, True], epochs=[1, 3, 9])
def test_the_gap_is_never_below_the_true_one(loss, intercept, epochs):
    best = fit(loss, intercept, tol=1e-6).trace[-1]
    optimum = best["objective"] / (1 + best["gap"])  # or more
    row = fit(loss, intercept, tol=1e-6, epochs=epochs).trace[-1]
    if row["gap"] is not None:
        assert row["objective"] / (1 + row["gap"]) <= best["objective"] * (1 + 1e-7)
    assert row["objective"] >= optimum * (1 - 1e-7)


SPARSE = 12_000  # rows, of which no two have much in common


@cache
def sparse():
    return rcv1(SPARSE, seed=3)[0]


@each(loss=["hinge", "logistic"], intercept=[False, True], strategy=["combine", "ordered"])
def test_several_workers_need_about_as_many_passes_as_one(loss, intercept, strategy):
    given = {"solver": "dual", "loss": loss, "intercept": intercept, "l2": 1e-4, "tol": 1e-4}
    alone = hogwild.train(sparse(), workers=1, **given)
    together = hogwild.train(sparse(), workers=2, strategy=strategy, **given)
    assert not together.notes
    assert together.reason == alone.reason == "converged"
    assert len(together.trace) <= 1.5 * len(alone.trace) + 1


@each(rate=[1.0, 0.5, 0.2], strategy=["combine", "ordered"])
def test_weights_are_those_of_the_dual_variables_however_careful_steps_are(
    rate, strategy, monkeypatch
):
    monkeypatch.setattr(DualAscent, "find_rate", lambda *_: rate)
    rows, l2, given = sparse(), 1e-4, {"solver": "dual", "loss": "hinge", "backend": "thread"}
    given |= {"workers": 2, "strategy": strategy, "tol": 0, "epochs": 4, "l2": l2}
    state = hogwild.train(rows, **given).state.weights
    a = state["row_state"].reshape(-1, STATE)[:, 0].astype(float)
    X = csr_matrix((rows.values, rows.indices, rows.indptr), (SPARSE, rows.columns))
    weights = X.T.astype(float) @ a / (l2 * SPARSE)
    assert np.abs(state["stored"][:-1] - weights).max() < 1e-4 * np.abs(weights).max()


@pairs(loss=["hinge", "logistic"], intercept=[False, True], loop=LOOPS)
def test_weights_are_those_of_the_dual_variables(loss, intercept, loop):
    X, _, _ = plain(loss)
    for epochs in (1, 2, 5):
        result = fit(loss, intercept, tol=0, epochs=epochs, **LOOPS[loop])
        state = result.state.weights["row_state"].reshape(-1, STATE)
        w = state[:, 0].astype(float) @ X / (1e-2 * SIZE)
        assert result.state.weights["stored"][:-1] == pytest.approx(w, abs=1e-5)


@each(loss=["logistic", "squared_hinge", "hinge"], share=[0.002, 0.998])
def test_a_rare_class_takes_few_passes(loss, share):
    rows, weights = rcv1(SPARSE, seed=5)
    scores = rows.to_scipy() @ weights[: rows.columns]
    y = np.where(scores > np.quantile(scores, 1 - share), 1.0, -1.0)
    given = {"solver": "dual", "loss": loss, "l2": 1e-4, "workers": 1}
    result = hogwild.train(rows.labelled(y), **given)
    assert result.reason == "converged"
    assert len(result.trace) <= 8


def test_rows_are_put_aside_and_the_optimum_is_the_same():
    rows = rcv1(3000, 500)[0]
    given = {"solver": "dual", "l2": 1e-3, "workers": 1, "tol": 1e-5}
    result = hogwild.train(rows, **given)
    state = result.state.weights["row_state"].reshape(-1, STATE)
    assert np.mean(state[:, 1] < 0) > 0.3
    X, y = rows.to_scipy().astype(float), rows.targets().astype(float)
    w, b = result.model.weights.astype(float), float(result.model.intercept)
    a = state[:, 0].astype(float)
    objective = reference.objective(X, y, w, b, "hinge", 1e-3)
    bound = np.mean(a * y) - 5e-4 * np.sum((a @ X / (1e-3 * len(y))) ** 2)
    assert objective - bound <= 1.1e-5 * objective


@pytest.mark.parametrize("loss", ["hinge", "logistic"])
def test_the_bytes_do_not_depend_on_the_number_of_workers(loss):
    rows = rcv1(5000, 500)[0]
    given = {"solver": "dual", "loss": loss, "deterministic": True, "tol": 1e-5, "l2": 1e-4}
    task = "svm" if loss == "hinge" else "logistic"
    results = [hogwild.train(rows, task=task, workers=n, **given) for n in (1, 2, 3, 8)]
    assert len({one.model.weights.tobytes() for one in results}) == 1
    assert len({one.state.weights["row_state"].tobytes() for one in results}) == 1
    gaps = [[row["gap"] for row in one.trace] for one in results]
    assert all(one == gaps[0] for one in gaps)


# Awkward data

X4 = np.array([[1.0, 0], [0, 1], [1, 1], [0, 0]], np.float32)
AWKWARD = {
    "one row": (X4[:1], [1.0]),
    "opposite labels": (np.vstack([X4, X4]), [1.0] * 4 + [-1.0] * 4),
    "one class": (X4, [1.0] * 4),
    "only empty rows": (np.zeros((5, 3), np.float32), [1.0, -1, 1, 1, -1]),
    "duplicates": (np.repeat(X4, 50, axis=0), np.repeat([1.0, -1, 1, -1], 50)),
    "separable": (np.repeat(X4[:2], 30, axis=0), np.repeat([1.0, -1], 30)),
    "unscaled": (X4 * np.array([1e3, 1e-3], np.float32), [1.0, -1, 1, -1]),
}


@pairs(
    data=AWKWARD, loss=["hinge", "logistic", "squared_hinge"], intercept=[False, True], l2=[1, 1e-9]
)
def test_awkward_data_is_learned_from(data, loss, intercept, l2):
    X, y = AWKWARD[data]
    task = "logistic" if loss == "logistic" else "svm"
    rows = hogwild.Rows(X, np.array(y))
    given = {"solver": "dual", "loss": loss, "intercept": intercept, "l2": l2, "workers": 1}
    result = hogwild.train(rows, labels=(-1.0, 1.0), task=task, epochs=300, **given)
    w, b = np.asarray(result.model.weights, float), float(result.model.intercept)
    assert np.isfinite(w).all()
    assert np.isfinite(b)
    objective = reference.objective(X.astype(float), np.array(y), w, b, loss, l2)
    at_zero = reference.objective(X.astype(float), np.array(y), 0 * w, 0.0, loss, l2)
    assert objective <= at_zero * (1 + 1e-3)
    gap = result.trace[-1]["gap"]
    assert gap is None or gap >= 0


# Ends


def test_a_target_is_reached_and_switches_tol_off():
    optimum = fit("hinge").trace[-1]["objective"]
    result = fit("hinge", tol=0.5, target=optimum * 1.0001)
    assert result.reason == "target"
    assert result.trace[-1]["objective"] <= optimum * 1.0001


def test_a_target_below_the_optimum_is_known_to_be():
    optimum = fit("logistic").trace[-1]["objective"]
    result = fit("logistic", target=optimum * 0.999)
    assert result.reason == "unreachable"
    assert any("below the optimum" in note for note in result.notes)


def test_epochs_and_time_end_it():
    assert len(fit("hinge", tol=0, epochs=4).trace) == 4
    rows = rcv1(20_000)[0]
    result = hogwild.train(rows, solver="dual", l2=1e-7, tol=0, time_limit=0.2, workers=1)
    assert result.reason == "time"
    assert result.trace[-1]["gap"] is not None


def test_what_single_precision_cannot_prove_is_said():
    result = fit("hinge", tol=1e-12)
    assert result.reason == "stuck"
    assert result.trace[-1]["gap"] < 1e-5


def test_an_estimate_that_is_all_rounding_is_no_progress():
    """With a weak penalty the dual objective seems to be above the primal one, by an intercept."""
    given = {"solver": "dual", "loss": "hinge", "l2": 1e-6, "workers": 1, "epochs": 10_000}
    result = hogwild.train(rcv1(300, 500)[0], tol=1e-12, **given)
    assert result.reason == "stuck"
    assert len(result.trace) < 3000
    assert result.trace[-1]["gap"] < 3e-6


def test_a_penalty_too_weak_for_any_number_of_passes_ends_the_training():
    random = np.random.default_rng(0)
    X = random.normal(size=(1000, 20)).astype(np.float32)
    y = np.sign(X @ random.normal(size=20) + random.normal(size=1000))
    given = {"task": "logistic", "solver": "dual", "l2": 1e-9, "workers": 1, "epochs": 5000}
    told = "at most .* times the optimum, which gets no better. Give a larger l2 or tol$"
    with pytest.warns(HogwildWarning, match=told):
        result = hogwild.train(hogwild.Rows(X, y), tol=1e-12, **given)
    assert result.reason == "stuck"


# Going on


@pytest.mark.parametrize("loss", ["hinge", "logistic"])
def test_training_goes_on_where_it_was(loss):
    first = fit(loss, tol=1e-3)
    second = fit(loss, tol=1e-5, start=first.state)
    assert second.reason == "converged"
    assert second.trace[0]["epoch"] == len(first.trace) + 1
    whole = fit(loss, tol=1e-5)
    assert second.trace[-1]["objective"] == pytest.approx(whole.trace[-1]["objective"], rel=2e-5)


@pytest.mark.parametrize("loss", ["hinge", "logistic"])
def test_training_goes_on_from_descent_and_descent_from_it(loss):
    X, y, _ = plain(loss)
    task = "svm" if loss == "hinge" else loss
    rows, given = hogwild.Rows(X, y), {"task": task, "l2": 1e-2, "workers": 1}
    start = hogwild.train(rows, **given).state
    result = fit(loss, start=start)
    assert result.reason == "converged"
    back = hogwild.train(rows, start=result.state, **given)
    assert back.trace[-1]["objective"] <= result.trace[-1]["objective"] * 1.05


def test_other_rows_take_only_the_weights():
    first = fit("hinge")
    X, y, _ = plain("hinge")
    rows = hogwild.Rows(X[:100], y[:100])
    given = {"solver": "dual", "l2": 1e-2, "workers": 1}
    assert hogwild.train(rows, start=first.state, **given).reason == "converged"


# Faults


class Later(At):
    """Does something soon after the end of an epoch: in the middle of a later one."""

    def _act(self):
        if self.when is None:
            self.when = 0.0
            threading.Timer(0.03, self.do).start()


def endless(rows, watcher, **options):
    given = {"solver": "dual", "l2": 1e-7, "tol": 0, "watcher": watcher, "time_limit": 20}
    return hogwild.train(rows, **given, **options)


@pytest.mark.parametrize("solver", ["dual", "newton"])
def test_the_objective_is_that_of_the_weights_after_going_back(solver):
    """With rows to judge by, the pass that was kept may be much older than the best weights."""
    X, y, _ = plain("logistic")
    options = {"task": "logistic", "solver": solver, "l2": 1e-4, "tol": 1e-6, "patience": 1000}
    rows = hogwild.Rows(X, y)
    problem = LinearProblem(rows, None, Config.of(options), validate=rows)
    kept = {}

    class GoingBack(Watcher):
        def epoch(self, row):
            shared = run._shared
            if row["epoch"] == 1:
                learned, last = problem.learned(shared), problem.goes_on_from(shared)
                kept.update(learned=_copied(learned), last=_copied(last), row=row)
            if row["epoch"] == 2:
                assert row["objective"] < 0.999 * kept["row"]["objective"]
                problem.restore(shared, kept["learned"], kept["last"])
                w, b = np.split(problem.learned(shared)["weights"].astype(float), [-1])
                loss = np.mean(reference.value("logistic", X @ w + b, y, 0.0))
                stands = row if solver == "dual" else kept["row"]
                assert 0.5e-4 * w @ w + loss == pytest.approx(stands["objective"], rel=1e-6)

    run = Run(problem, GoingBack())
    run.prepare()
    with run.interrupt:
        result = run.run()
    assert result.reason == "converged"
    assert len(result.trace) > 2


def _copied(arrays):
    return {name: array.copy() for name, array in arrays.items()}


@pytest.mark.parametrize("loss", ["hinge", "logistic"])
def test_errors_and_held_out_losses_are_those_of_the_weights_that_are_taken(loss):
    """Workers in processes of their own know which weights are the best so far."""
    rows, test = rcv1(600, 400)[0], rcv1(300, 400, seed=1)[0]
    options = {"loss": loss, "solver": "dual", "l2": 1e-6, "epochs": 4, "tol": 0}
    for workers in (1, 2):
        found = hogwild.train(rows, test=test, workers=workers, **options)
        assert found.trace[-1]["test_error"] == found.model.evaluate(test)["error"]
    options |= {"deterministic": True, "early_stopping": 0.2}
    first, *others = (hogwild.train(rows, workers=workers, **options) for workers in (1, 2, 3))
    for other in others:
        assert [row["held_out_loss"] for row in other.trace] == [
            row["held_out_loss"] for row in first.trace
        ]
        assert other.model.weights.tobytes() == first.model.weights.tobytes()


@pytest.mark.parametrize("strategy", ["combine", "ordered"])
def test_a_killed_worker_leaves_the_model_of_the_last_pass(strategy, monkeypatch):
    rows = rcv1(20_000)[0]
    monkeypatch.setattr(coordinator, "DEATHS", 0)
    with pytest.raises(WorkerError, match="SIGKILL") as told:
        endless(rows, Later(kill_a_worker, 3), workers=2, strategy=strategy)
    result = told.value.result
    assert len(result.trace) >= 3
    assert np.isfinite(result.model.weights).all()
    assert result.model.evaluate(rows)["error"] < 0.3
    going_on = hogwild.train(rows, solver="dual", l2=1e-4, start=result.state)
    assert going_on.reason == "converged"


@pytest.mark.usefixtures("listening")
@pytest.mark.parametrize("loop", ["one", "combine"])
def test_an_interrupt_gives_the_model_so_far(loop):
    rows = rcv1(20_000)[0]
    result = endless(rows, Later(interrupt, 3), **LOOPS[loop])
    assert result.reason == "interrupted"
    assert result.model.evaluate(rows)["error"] < 0.3


# What it refuses


@pytest.mark.parametrize(
    "options",
    [
        {"loss": "perceptron"},
        {"l2": 0.0},
        {"l1": 1e-3},
        {"strategy": "hogwild"},
        {"strategy": "averaged", "workers": 2},
        {"strategy": "minibatch"},
        {"schedule": "inverse"},
        {"eta0": 0.1},
        {"average": False},
    ],
)
def test_what_it_cannot_do_is_refused(options):
    with pytest.raises(OptionError, match=r"dual|sgd"):
        hogwild.Config.of({"solver": "dual"} | options)
