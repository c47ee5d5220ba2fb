"""An L1 penalty: FTRL is its naive twin, comes to the optimum, and its zeros are zeros anywhere."""

import hashlib
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import minimize

import hogwild
from hogwild.config import Config
from hogwild.data.synthetic import rcv1
from hogwild.kernels.order import shuffle
from hogwild.learn.ftrl import Ftrl
from hogwild.learn.linear import LinearProblem
from hogwild.learn.losses import CLASSES, LOSSES, SIGNS
from hogwild.learn.penalties import Penalty
from hogwild.learn.problem import Share
from hogwild.learn.sgd import Sgd
from hogwild.loops.strategies import STRATEGIES
from hogwild.seeds import seed_of
from tests import reference
from tests.combinations import each, pairs
from tests.examples import default_of

COLUMNS = 20
ADDING = [name for name, s in STRATEGIES.items() if s.rows and not s.averages and name != "strata"]
SMOOTH = ["logistic", "squared_hinge", "squared", "huber", "poisson"]


def draw(rows: int = 400, seed: int = 0, density: float = 0.3) -> tuple[Any, Any, Any]:
    """Sparse rows as a matrix; two classes, and counts, that few of the columns tell of."""
    random = np.random.default_rng(seed)
    X = random.normal(size=(rows, COLUMNS)) * (random.random((rows, COLUMNS)) < density)
    X = X.astype(np.float32).astype(float)
    scores = X[:, :4] @ random.normal(size=4) + 0.4
    y = np.sign(scores + 0.7 * random.normal(size=rows))
    return X, y, random.poisson(np.exp(0.5 * scores)).astype(float)


def task_of(loss: str) -> str:
    return "svm" if SIGNS in LOSSES[loss].kinds else "regression"


def learn(X: Any, y: Any, loss: str, l1: float, weights: Any = None, **options: Any) -> Any:
    given = {"workers": 1, "tol": 0, "task": task_of(loss), "loss": loss, "l1": l1} | options
    return hogwild.train(hogwild.Rows(X, y, sample_weight=weights), **given)


def digest(result: Any) -> str:
    return hashlib.sha256(result.model.weights.tobytes()).hexdigest()


# One worker is the naive twin


@each(
    loss=[name for name in LOSSES if LOSSES[name].kinds != (CLASSES,)],
    intercept=[True, False],
    weighted=[False, True],
    schedule=["adaptive", "normalized"],
    l1=[0.0, 3e-3],
)
def test_one_worker_does_what_the_reference_does(loss, intercept, weighted, schedule, l1):  # type: ignore[no-untyped-def]
    X, y, counts = draw()
    y = y if task_of(loss) == "svm" else counts
    l1 = 3e-3 if loss == "perceptron" else l1  # which needs another schedule without
    eta0 = 0.5 if schedule == "adaptive" else 0.05
    weights = np.random.default_rng(1).integers(0, 4, len(y)) / 2.0 if weighted else None
    X = X * 4.0 ** np.arange(-2, 3).repeat(4) if schedule == "normalized" else X
    options = {"l1": l1, "l2": 1e-2, "eta0": eta0, "epochs": 3, "seed": 7, "intercept": intercept}
    options["schedule"] = schedule
    result = learn(X, y, loss, weights=weights, **options)
    rows = hogwild.Rows(X, y, sample_weight=weights)
    given = {"task": task_of(loss), "loss": loss} | options
    problem = LinearProblem(rows, None, Config.of(given))
    plan = problem.plan(Share(1, 0, 1, 0, eta0))
    orders = [np.empty(len(y), np.uint32) for _ in range(3)]
    for epoch, order in enumerate(orders, 1):
        shuffle(order, 0, np.uint64(seed_of(7, epoch, 0)))
    if weighted:
        weights = weights / weights.mean()
    numbers = loss, default_of(loss), eta0, plan.beta, l1, 1e-2, plan.intercept
    w, b, totals = reference.follow(X, y, orders, numbers, weights, schedule == "normalized")
    np.testing.assert_allclose(result.model.weights, w, 5e-3, 5e-4)
    np.testing.assert_allclose(result.model.intercept, b, 5e-3, 5e-4)
    assert result.trace[-1]["online_loss"] == pytest.approx(totals[-1] / len(y), rel=1e-3)
    assert bool(b) == intercept


@pytest.mark.parametrize("l1", [0.0, 0.02])
def test_normalized_columns_in_other_units_are_learned_alike(l1):  # type: ignore[no-untyped-def]
    """Without an l2; an l1 is of the weights as they are, so it is in the same units for all."""
    X, y, _ = draw()
    units = 2.0 ** np.arange(-30, 30, 3) if l1 == 0 else np.full(COLUMNS, 2.0**-12)
    options = {"schedule": "normalized", "l2": 0.0, "epochs": 3, "workers": 1}
    base = learn(X, y, "logistic", l1, **options)
    scaled = learn(X * units, y, "logistic", l1 * units[0] * (l1 > 0), **options)
    assert scaled.header["chosen"]["eta0"] == base.header["chosen"]["eta0"]
    np.testing.assert_allclose(scaled.model.weights * units, base.model.weights, 1e-4, 1e-6)
    assert scaled.model.intercept == pytest.approx(base.model.intercept, rel=1e-4)


@pytest.mark.parametrize("strategy", ["combine", "hogwild", "ordered"])
@pytest.mark.parametrize("schedule", ["adaptive", "normalized"])
def test_with_a_rate_for_each_weight_the_optimum_is_reached_without_an_l1(
    schedule: str, strategy: str
) -> None:
    X, y, _ = draw(1000)
    units = 10.0 ** np.linspace(-3, 3, COLUMNS) if schedule == "normalized" else 1.0
    options: dict[str, Any] = {"l2": 1e-3, "epochs": 100, "schedule": schedule, "workers": 2}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", hogwild.HogwildWarning)  # one worker may learn alone
        result = learn(X * units, y, "logistic", 0.0, strategy=strategy, **options)
    proved = hogwild.train(hogwild.Rows(X * units, y), task="logistic", l2=1e-3, tol=1e-5)
    best = proved.trace[-1]["objective"]
    assert best * (1 - 1e-4) <= result.trace[-1]["objective"] <= best * (1 + 1e-3)


# The optimum


def gradient(X: Any, y: Any, w: Any, b: float, loss: str, l2: float, weights: Any = None) -> Any:
    """The derivatives of the smooth part by the weights, then by the intercept."""
    slopes = reference.slope(loss, X @ w + b, y, default_of(loss))
    slopes = slopes / len(y) if weights is None else slopes * weights / weights.sum()
    return np.append(l2 * w + slopes @ X, slopes.sum())


def objective(X: Any, y: Any, w: Any, b: float, loss: str, l1: float, l2: float) -> float:
    losses = reference.value(loss, X @ w + b, y, default_of(loss))
    return float(np.mean(losses) + l1 * np.abs(w).sum() + l2 / 2 * (w @ w))


def strength(X: Any, y: Any, loss: str, share: float) -> float:
    """A share of the L1 penalty that leaves no weights at all, where scores are 0."""
    return share * float(np.abs(gradient(X, y, np.zeros(COLUMNS), 0.0, loss, 0)[:-1]).max())


def solve(X: Any, y: Any, loss: str, l1: float, l2: float) -> tuple[Any, float, float]:
    """The optimum that L-BFGS-B finds: weights are differences of numbers that are not negative."""

    def both(v: Any) -> tuple[float, Any]:
        w = v[:COLUMNS] - v[COLUMNS:-1]
        g = gradient(X, y, w, v[-1], loss, l2)
        return objective(X, y, w, v[-1], loss, l1, l2), np.r_[g[:-1] + l1, l1 - g[:-1], g[-1]]

    bounds = [(0, None)] * (2 * COLUMNS) + [(None, None)]
    options = {"maxiter": 20_000, "maxfun": 10**6, "ftol": 1e-15, "gtol": 1e-9}
    start = np.zeros(2 * COLUMNS + 1)
    found = minimize(both, start, jac=True, method="L-BFGS-B", bounds=bounds, options=options)
    return found.x[:COLUMNS] - found.x[COLUMNS:-1], found.x[-1], found.fun


@pairs(loss=SMOOTH, l2=[0.0, 1e-2], share=[0.5, 0.1])
def test_the_optimum_is_reached_with_its_zeros(loss, l2, share):  # type: ignore[no-untyped-def]
    X, y, counts = draw()
    y = y if task_of(loss) == "svm" else counts
    l1 = strength(X, y, loss, share)
    result = learn(X, y, loss, l1, l2=l2, epochs=300, objective_every=0)
    w, b = result.model.weights.astype(float), result.model.intercept
    best_w, _, best = solve(X, y, loss, l1, l2)
    found = objective(X, y, w, b, loss, l1, l2)
    assert result.trace[-1]["objective"] == pytest.approx(found, rel=1e-5)
    assert best * (1 - 1e-6) <= found <= best * (1 + 1e-3)
    # Optimality: the gradient is at most l1 where a weight is 0, and -l1 sign(w) elsewhere
    g = gradient(X, y, w, b, loss, l2)
    near = 0.05 * l1 + 0.002
    assert np.all(np.abs(g[:-1][w == 0]) <= l1 + near)
    np.testing.assert_allclose(g[:-1][w != 0], -l1 * np.sign(w[w != 0]), atol=near)
    assert abs(g[-1]) <= near
    clear = np.abs(np.abs(gradient(X, y, best_w, b, loss, l2)[:-1]) - l1) > near
    assert np.array_equal((w == 0)[clear & (best_w == 0)], np.ones((clear & (best_w == 0)).sum()))
    assert np.all(w[np.abs(best_w) > 0.1] != 0)


def test_scikit_learn_finds_the_same_elastic_net() -> None:
    from sklearn.linear_model import LogisticRegression

    X, y, _ = draw(1_000)
    l1, l2 = strength(X, y, "logistic", 0.1), 5e-3
    penalty = {"penalty": "elasticnet", "C": 1 / ((l1 + l2) * len(y)), "l1_ratio": l1 / (l1 + l2)}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the name of its option for a penalty is to change
        peer = LogisticRegression(solver="saga", tol=1e-8, max_iter=10_000, **penalty).fit(X, y)
    result = learn(X, y, "logistic", l1, l2=l2, epochs=300)
    np.testing.assert_allclose(result.model.weights, peer.coef_[0], atol=0.02)
    assert np.mean((result.model.weights == 0) == (peer.coef_[0] == 0)) >= 0.9


def test_weights_of_rows_count_as_often_as_a_row_stands_there() -> None:
    X, y, _ = draw()
    times = np.random.default_rng(2).integers(1, 4, len(y))
    l1 = strength(X, y, "logistic", 0.2)
    weighted = learn(X, y, "logistic", l1, times.astype(float), epochs=300).model
    repeated = learn(np.repeat(X, times, 0), np.repeat(y, times), "logistic", l1, epochs=300).model
    np.testing.assert_allclose(weighted.weights, repeated.weights, atol=0.03)
    assert weighted.intercept == pytest.approx(repeated.intercept, abs=0.03)


def test_a_penalty_that_allows_no_weights_leaves_none_and_an_intercept() -> None:
    X, y, _ = draw()
    y[:100] = 1
    result = learn(X, y, "logistic", strength(X, y, "logistic", 3.0), epochs=50)
    assert not result.model.weights.any()
    odds = np.mean(y > 0) / np.mean(y < 0)
    assert result.model.intercept == pytest.approx(np.log(odds), abs=0.05)


# Strategies


@pytest.fixture(scope="module")
def rows() -> hogwild.Rows:
    return rcv1(3_000, columns=20_000)[0]


@pytest.mark.filterwarnings("ignore:rows overlap so much")
@each(strategy=ADDING, workers=[2, 3])
def test_every_strategy_that_adds_finds_weights_as_good(
    rows: hogwild.Rows, strategy: str, workers: int
) -> None:
    options: dict[str, Any] = {"task": "logistic", "l1": 3e-4, "epochs": 5, "tol": 0, "eta0": 1.0}
    one = hogwild.train(rows, workers=1, **options)
    some = hogwild.train(rows, workers=workers, strategy=strategy, **options)
    near = 1.05 if strategy == "minibatch" else 1.01
    assert some.trace[-1]["objective"] < near * one.trace[-1]["objective"]
    zeros = [found.model.weights == 0 for found in (one, some)]
    assert np.mean(zeros[0] == zeros[1]) > 0.98
    assert 0.9 < np.mean(zeros[1]) < 1
    for found in (one, some):
        counted = [row["nonzero_weights"] for row in found.trace]
        assert counted[-1] == np.count_nonzero(found.model.weights)


@each(
    strategy=["ordered", "minibatch"],
    loss=["hinge", "logistic"],
    schedule=["adaptive", "normalized"],
)
def test_the_same_bytes_for_any_number_of_workers(
    rows: hogwild.Rows, strategy: str, loss: str, schedule: str
) -> None:
    eta0 = 0.02 if schedule == "adaptive" else 0.002
    options: dict[str, Any] = {"loss": loss, "l1": 1e-4, "strategy": strategy, "eta0": eta0}
    options["schedule"] = schedule
    found = [hogwild.train(rows, workers=w, epochs=3, tol=0, **options) for w in (1, 2, 3, 8)]
    assert not any(result.notes for result in found)  # or one worker learned for all
    assert len({digest(result) for result in found}) == 1
    traces = [[row["objective"] for row in result.trace] for result in found]
    assert all(trace == traces[0] for trace in traces)


def test_parts_that_share_no_column_take_an_l1_penalty() -> None:
    X = sparse.block_diag([draw(100, seed, 0.5)[0] for seed in range(16)], "csr")
    y = np.concatenate([draw(100, seed, 0.5)[1] for seed in range(16)])
    options: dict[str, Any] = {"l1": 5e-4, "epochs": 20, "task": "logistic", "tol": 0}
    found = [
        hogwild.train(hogwild.Rows(X, y), strategy=strategy, workers=workers, **options)
        for strategy, workers in (("strata", 1), ("strata", 2), ("hogwild", 1))
    ]
    assert digest(found[0]) == digest(found[1])
    assert found[0].trace[-1]["objective"] < 1.02 * found[2].trace[-1]["objective"]
    assert (found[0].model.weights == 0).any()


def test_going_on_is_training_on(rows: hogwild.Rows) -> None:
    options: dict[str, Any] = {"l1": 1e-4, "workers": 1, "tol": 0, "task": "logistic"}
    options["solver"] = "sgd"
    whole = hogwild.train(rows, epochs=4, eta0=1.0, **options)
    half = hogwild.train(rows, epochs=2, eta0=1.0, **options)
    assert digest(hogwild.train(rows, epochs=2, start=half.state, **options)) == digest(whole)
    with pytest.raises(hogwild.OptionError, match="l1, schedule: what to go on from"):
        hogwild.train(rows, task="logistic", start=half.state)
    with pytest.raises(hogwild.DataError, match=r"needs 10 weights.* has 20,000"):
        hogwild.train(hogwild.Rows(np.eye(10), np.arange(10) % 2), start=half.state, **options)


# The choice of the schedule


def chosen(X: Any, y: Any, **options: Any) -> Any:
    """The schedule of a training with sgd."""
    given = {"solver": "sgd", "task": "logistic", "epochs": 3, "workers": 1} | options
    result = hogwild.train(hogwild.Rows(X, y), **given)
    return result.header["options"]["schedule"], result


def test_columns_of_very_different_sizes_are_learned_by_their_sizes() -> None:
    X, y, _ = draw(1000)
    units = 10.0 ** np.linspace(-2, 4, COLUMNS)
    assert chosen(X, y)[0] == "inverse"
    name, result = chosen(X * units, y)
    assert name == "normalized"
    proved = hogwild.train(hogwild.Rows(X * units, y), task="logistic").trace[-1]["objective"]
    assert result.trace[-1]["objective"] < 1.02 * proved
    assert chosen(X * units, y, schedule="inverse")[0] == "inverse"
    assert chosen(X * units, y, eta0=1e-9)[0] == "inverse"
    assert chosen(X * units, y, strategy="mixed")[0] == "inverse"
    assert chosen(X * units, np.arange(len(y)) % 3)[0] == "inverse"


@pytest.mark.parametrize("gain", [0.0, 0.005, 0.02])
def test_they_are_taken_where_a_trial_says_that_they_are_worth_it(
    gain: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    X, y, _ = draw()
    monkeypatch.setattr(Sgd, "tried", lambda *_: 0.5)
    monkeypatch.setattr(Ftrl, "tried", lambda *_: 0.5 - 0.5 * gain)
    assert chosen(100 * X, y)[0] == ("normalized" if gain > 0.01 else "inverse")


def test_training_goes_on_with_the_schedule_it_began_with() -> None:
    X, y, _ = draw(1000)
    units = 10.0 ** np.linspace(-2, 4, COLUMNS)
    assert chosen(X * units, y, start=chosen(X, y)[1].state)[0] == "inverse"
    began = chosen(X * units, y)[1].state
    name, result = chosen(X, y, start=began)
    assert name == "normalized"
    assert result.state.epochs == 6
    with pytest.raises(hogwild.OptionError, match="l1, schedule: what to go on from"):
        chosen(X, y, start=began, schedule="inverse")


# Options


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"strategy": "averaged"}, "strategy: it needs to be one that does not average"),
        ({"strategy": "mixed"}, "strategy: it needs to be one that does not average"),
        ({"schedule": "sqrt"}, "schedule: it needs to be adaptive or normalized"),
        ({"beta": 0.5}, "beta: it needs the schedule backoff"),
        ({"l1": -1.0}, "l1: must be at least 0"),
        ({"schedule": "adaptive", "solver": "coordinate"}, "schedule: it needs the solver sgd"),
        (
            {"l1": 0.0, "schedule": "normalized", "loss": "perceptron"},
            "schedule: it needs another loss than perceptron",
        ),
        (
            {"l1": 0.0, "schedule": "adaptive", "strategy": "mixed"},
            "strategy: it needs to be one that does not average",
        ),
    ],
)
def test_what_does_not_go_with_l1_is_refused(options: dict[str, Any], words: str) -> None:
    with pytest.raises(hogwild.OptionError, match=words):
        Config.of({"l1": 1e-3} | options)


def test_with_l1_there_is_no_l2_unless_it_is_asked_for() -> None:
    assert Config().l2 == 1e-4
    assert Config(l1=1e-3).l2 == 0
    assert Config(l1=1e-3, l2=1e-5).l2 == 1e-5


@pytest.mark.parametrize(
    ("l2", "l1", "words"),
    [
        (0.5, 0, "l2 0.5"),
        (0, 0.25, "l1 0.25"),
        (0.5, 0.25, "l2 0.5 and l1 0.25"),
        (0, 0, "no penalty"),
    ],
)
def test_penalties_have_a_value_and_words(l2: float, l1: float, words: str) -> None:
    penalty = Penalty.of({"l2": l2, "l1": l1})
    assert penalty.value(np.float32([3, -4])) == pytest.approx(12.5 * l2 + 7 * l1)
    assert str(penalty) == words
    X, y, _ = draw()
    result = learn(X, y, "logistic", l1, l2=l2, epochs=2)
    assert words in result.header["summary"][1]
    w, b = result.model.weights.astype(float), result.model.intercept
    expected = objective(X, y, w, b, "logistic", l1, l2)
    assert result.trace[-1]["objective"] == pytest.approx(expected, rel=1e-5)
    assert result.model.evaluate(X, y)["objective"] == pytest.approx(expected, rel=1e-5)


def test_values_of_any_size_give_the_same_model_in_their_units() -> None:
    """Rates, and what they begin with, are found by the sizes of values and slopes."""
    X, _, counts = draw()
    for loss, values, scores in (("squared", 2.0**-10, 2.0**12), ("squared", 2.0**8, 1.0)):
        options = {"epochs": 20, "intercept": False, "task": "regression"}
        base = learn(X, counts, loss, 0.02, **options)
        scaled = learn(X * values, counts * scores, loss, 0.02 * values * scores, **options)
        weights = scaled.model.weights * values / scores
        np.testing.assert_allclose(weights, base.model.weights, 1e-3, 1e-4)


# Files


@pytest.mark.parametrize("held", [0, 3, 500, 501, 1001])
def test_a_sparse_model_comes_back_bit_for_bit(tmp_path: Path, held: int) -> None:
    random = np.random.default_rng(0)
    weights = np.zeros(1001, np.float32)
    weights[random.choice(1001, held, replace=False)] = random.normal(size=held)
    model = hogwild.LinearModel(weights, 0.5, ("no", "yes"), "logistic", 1, {})
    model.save(tmp_path / "m.hog")
    back = hogwild.load_model(tmp_path / "m.hog")
    assert back.weights.tobytes() == weights.tobytes()
    assert back.intercept == 0.5
    written = (tmp_path / "m.hog").read_bytes()
    is_sparse = 2 * held < 1001
    assert written[8] == (2 if is_sparse else 1)  # dense ones are for older programs, too
    assert len(written) < 500 + (8 * held if is_sparse else 4 * 1001)
    back.save(tmp_path / "again.hog")
    assert (tmp_path / "again.hog").read_bytes() == written


def test_the_lines_of_the_epochs_tell_how_many_weights_are_not_zero(
    rows: hogwild.Rows, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from hogwild.cli import main

    path = tmp_path / "rows.svm"
    X, y, _ = draw(50)
    rows_of = (" ".join(f"{j + 1}:{x:.3f}" for j, x in enumerate(row) if x) for row in X)
    path.write_text("".join(f"{int(t)} {row}\n" for t, row in zip(y, rows_of, strict=True)))
    given = ["train", str(path), "--epochs", "2", "--model", str(tmp_path / "m.hog")]
    assert main([*given, "--l1", "0.05"]) == 0
    told = capsys.readouterr().out
    assert "l1 0.05" in told
    head, line = (next(t for t in told.splitlines() if w in t) for w in ("objective", "     2 "))
    at = head.index("non-zero") + len("non-zero")
    left = np.count_nonzero(hogwild.load_model(tmp_path / "m.hog").weights)
    assert line[:at].split()[-1] == str(left)
    assert main(given) == 0
    assert "non-zero " not in capsys.readouterr().out.splitlines()[3]
