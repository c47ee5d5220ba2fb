"""Votes: each worker's weights have one, and the majority decides."""

import os
import pickle
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import psutil
import pytest

import hogwild
from hogwild import coordinator
from hogwild.data.synthetic import rcv1
from hogwild.kernels.order import shuffle
from hogwild.learn import averages
from hogwild.learn.linear import LinearProblem
from hogwild.learn.losses import SIGNS, names_for
from hogwild.learn.targets import TwoClasses
from hogwild.loops.shared import RowWorker
from hogwild.models.votes import VoteModel
from hogwild.seeds import seed_of
from hogwild.threads import share_of
from tests import reference

STRATEGIES = ["averaged", "mixed"]
NO_WORD = {"tol": 0, "epochs": 3, "merge": "vote"}


@pytest.fixture(scope="module")
def rows():
    return rcv1(3_000, 2_000)[0]


def table(size=330):
    random = np.random.default_rng(4)
    X = random.normal(size=(size, 12)).astype(np.float32).astype(float)
    return X, np.sign(X @ random.normal(size=12) + 0.5 * random.normal(size=size))


def trained(rows, strategy="averaged", **options):
    return hogwild.train(rows, **({"strategy": strategy, "workers": 3} | NO_WORD | options))


def counted(members, X):
    """What the members say: their signs, added up; ties by the sum of their scores."""
    scores = members[:, :-1].astype(float) @ X.T + members[:, -1:]
    won = np.sign(scores).sum(axis=0)
    return np.where(won == 0, np.sign(scores.sum(axis=0)), won) > 0


def bytes_of(model):
    return model.members.tobytes(), model.weights.tobytes(), model.intercept


# What a model says


def model_of(members, **more):
    given = TwoClasses(("no", "yes")), "hinge", None, {"options": {"l2": 0.1}}
    return VoteModel(*np.split(np.array(members), [-1], axis=1), *given, **more)


def test_the_majority_decides_and_the_sum_of_the_scores_a_tie():
    model = model_of([[5, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]])
    X = [[1, -1, -1], [-1, 1, 1], [1, -1, 0], [-1, 1, -1], [0.1, 1, -9], [0, 0, 0]]
    # The fourth has an intercept of 1 and votes yes each time; a score of 0 is no vote
    expected = [1 / 16, 1 / 4, 1 / 8, -1 / 16, 1 / 4, 1 / 8]
    np.testing.assert_allclose(model.decision_function(X), expected)
    assert model.predict(X).tolist() == ["yes", "yes", "yes", "no", "yes", "yes"]
    assert model_of([[0, 0], [0, 0]]).predict([[1.0]]).tolist() == ["no"]


def test_the_objective_is_that_of_the_mean_and_the_error_that_of_the_vote():
    random = np.random.default_rng(0)
    members = random.normal(size=(4, 4)).astype(np.float32)
    X, y = random.normal(size=(200, 3)).astype(np.float32), np.arange(200) % 2
    found = model_of(members).evaluate(X, np.where(y, "yes", "no"))
    mean = members.mean(axis=0).astype(float)
    w, b = mean[:-1], mean[-1]
    objective = reference.objective(X.astype(float), 2 * y - 1, w, b, "hinge", 0.1)
    assert found["objective"] == pytest.approx(objective, rel=1e-5)
    assert found["error"] == np.mean(counted(members, X.astype(float)) != y)
    assert found["log_loss"] is None


def test_no_probabilities_come_of_votes(rows):
    model = trained(rows, loss="logistic").model
    with pytest.raises(hogwild.HogwildError, match="probabilities need the merge mean"):
        model.predict_proba(rows)
    assert model.evaluate(rows)["log_loss"] is None


def test_it_is_saved_and_loaded_and_pickled_bit_for_bit(rows, tmp_path):
    model = trained(rows, model=tmp_path / "votes.hog").model
    loaded = hogwild.load_model(tmp_path / "votes.hog")
    for other in (loaded, pickle.loads(pickle.dumps(model))):
        assert bytes_of(other) == bytes_of(model)
        assert np.array_equal(other.decision_function(rows), model.decision_function(rows))
    assert loaded.labels == model.labels
    assert repr(loaded) == "<VoteModel hinge, 2,000 columns, 3 members>"
    loaded.save(tmp_path / "again.hog")
    assert (tmp_path / "again.hog").read_bytes() == (tmp_path / "votes.hog").read_bytes()


# How members are learned


def twins(X, y, workers, epochs, plan):
    """Each worker's last weights, and its mean over all steps, as runs that never meet."""
    for rank in range(workers):
        begin, end = share_of(len(y), workers, rank)
        orders = [np.empty(end - begin, np.uint32) for _ in range(epochs)]
        for epoch, order in enumerate(orders, start=1):
            shuffle(order, begin, np.uint64(seed_of(0, epoch, rank)))
        w, b = np.zeros(X.shape[1]), 0.0
        for epoch, order in enumerate(orders):
            times = epoch * (len(y) // workers) + np.arange(len(order) + 1.0)
            w, b, _ = reference.learn(X, y, order, plan, w, b, times)
        yield [*w, b], [*np.r_[reference.averaged_perceptron(X, y, orders, plan.share)]]


@pytest.mark.parametrize("workers", [1, 3])
def test_members_are_runs_that_never_met(workers):
    X, y = table()
    share = LinearProblem(hogwild.Rows(X, y), None, hogwild.Config(solver="sgd")).intercept_share
    plan = reference.Plan("logistic", "constant", 0.02, 0.05, share)
    options = {"loss": "logistic", "schedule": "constant", "eta0": 0.02, "l2": 0.05}
    members = trained(hogwild.Rows(X, y), workers=workers, **options).model.members
    expected = [last for last, _ in twins(X, y, workers, 3, plan)]
    np.testing.assert_allclose(members, expected, 1e-4, 1e-5)


@pytest.mark.parametrize("merge", ["mean", "vote"])
def test_members_that_are_perceptrons_are_averaged_over_all_their_steps(merge, monkeypatch):
    monkeypatch.setattr(averages, "COST", 1e9)
    monkeypatch.setattr(averages, "MOST_SNAPSHOTS", 1_000)
    X, y = table()
    share = LinearProblem(hogwild.Rows(X, y), None, hogwild.Config(solver="sgd")).intercept_share
    plan = reference.Plan("perceptron", "constant", 1.0, 0.0, share)
    model = trained(hogwild.Rows(X, y), loss="perceptron", merge=merge).model
    expected = np.array([mean for _, mean in twins(X, y, 3, 3, plan)])
    if merge == "vote":
        np.testing.assert_allclose(model.members, expected, 1e-4, 1e-5)
    found = [*model.weights, model.intercept]
    np.testing.assert_allclose(found, expected.mean(axis=0), 1e-4, 1e-5)


@pytest.mark.parametrize("loss", names_for(SIGNS))
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_the_mean_of_the_members_is_the_model_of_the_other_merge(rows, loss, strategy):
    """And the trace tells its objective, but the errors of the vote."""
    options = {"loss": loss, "test": rows, "backend": "thread"}
    vote, mean = (trained(rows, strategy, merge=merge, **options) for merge in ("vote", "mean"))
    np.testing.assert_allclose(vote.model.weights, mean.model.weights, 1e-4, 1e-5)
    np.testing.assert_allclose(vote.model.members.mean(axis=0)[:-1], mean.model.weights, 1e-4, 1e-5)
    last, found = vote.trace[-1], vote.model.evaluate(rows)
    assert last["objective"] == pytest.approx(mean.trace[-1]["objective"], rel=1e-4)
    assert last["objective"] == pytest.approx(found["objective"], rel=1e-4)
    assert last["train_error"] == last["test_error"] == pytest.approx(found["error"], abs=1e-9)
    X, y = rows.to_scipy(), rows.targets() > 0
    assert found["error"] == pytest.approx(np.mean(counted(vote.model.members, X.toarray()) != y))
    assert found["error"] < 0.2


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_members_of_mixed_begin_an_epoch_together(rows, strategy):
    """Then one epoch from a common start is all that they differ by."""
    first, second = (trained(rows, strategy, epochs=e, eta0=0.5, seed=3) for e in (1, 2))
    on = trained(rows, strategy, epochs=1, start=first.state, seed=3)
    same = np.array_equal(on.model.members, second.model.members)
    assert same == (strategy == "mixed")


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("loss", ["perceptron", "logistic"])
def test_the_same_bytes_with_the_same_number_of_workers(rows, strategy, loss):
    """Processes and threads, again and again."""
    options = {"loss": loss, "eta0": 0.5}
    found = {
        bytes_of(trained(rows, strategy, backend=backend, **options).model)
        for backend in ("process", "thread", "process")
    }
    assert len(found) == 1
    assert bytes_of(trained(rows, strategy, workers=2, **options).model) not in found


@pytest.mark.parametrize("loss", ["perceptron", "hinge"])
def test_workers_that_make_the_means_together_make_the_same_bytes(rows, loss, monkeypatch):
    found = set()
    for many in (1 << 18, 10):
        monkeypatch.setattr("hogwild.learn.linear.MANY_WEIGHTS", many)
        found.add(bytes_of(trained(rows, loss=loss, eta0=0.5).model))
    assert len(found) == 1


def test_weights_of_rows_count_in_the_errors_of_the_vote(rows):
    weights = np.random.default_rng(0).random(len(rows))
    result = trained(rows, sample_weight=weights)
    wrong = result.model.predict(rows) != rows.y
    assert result.trace[-1]["train_error"] == pytest.approx(np.average(wrong, weights=weights))


def test_weights_that_are_made_whole_within_an_epoch(rows, monkeypatch):
    options = {"schedule": "constant", "eta0": 0.5, "l2": 0.01, "backend": "thread"}
    found = []
    for least in (1e-12, 0.5):
        monkeypatch.setattr("hogwild.coordinator.LEAST_SCALE", least)
        found.append(trained(rows, **options).model.members)
    np.testing.assert_allclose(*found, 1e-2, 1e-4)


@pytest.mark.parametrize("loss", ["perceptron", "hinge"])
def test_more_workers_than_rows(loss):
    X, y = np.eye(5, dtype=np.float32), np.arange(5) % 2
    options = {"loss": loss, "eta0": 1.0, "intercept": False, "backend": "thread", "workers": 8}
    for strategy in STRATEGIES:
        model = trained(hogwild.Rows(X, y), strategy, **options).model
        assert len(model.members) == 8
        assert np.array_equal(model.predict(X), y)


def test_early_stopping_takes_the_members_of_the_best_epoch(rows):
    result = trained(rows, loss="perceptron", early_stopping=0.2, epochs=10)
    best = result.model.about["trace"]["last"]["epoch"]
    again = trained(rows, loss="perceptron", early_stopping=0.2, epochs=best)
    assert bytes_of(again.model) == bytes_of(result.model)


def test_folds_are_judged_by_as_many_members(rows, monkeypatch):
    judged, measured = [], VoteModel.measured

    def noted(self, *arguments):
        judged.append(len(self.members))
        return measured(self, *arguments)

    monkeypatch.setattr(VoteModel, "measured", noted)
    options = {"strategy": "mixed", "merge": "vote", "workers": 3, "epochs": 2}
    found = hogwild.search(rows, folds=4, metric="error", loss="perceptron", **options)
    assert judged == [3] * 4
    assert len(found.model.members) == 3
    assert 0.05 < found.table[0]["error"] < 0.3


def test_an_epoch_that_goes_wrong_is_done_again():
    X, y = table()
    with pytest.warns(hogwild.HogwildWarning, match="the learning rate is too large"):
        result = trained(hogwild.Rows(1e3 * X, y), eta0=10.0, loss="logistic")
    assert result.model.evaluate(1e3 * X, y)["error"] < 0.3


# What ends training before its time


@pytest.fixture(params=[0.0, 0.3])
def interrupted(monkeypatch, request):
    """Ctrl-C in the second epoch, which takes half a second: soon, or in its middle."""
    visit, made, heard = RowWorker._visit, LinearProblem.__init__, []

    def visit_slowly(self, *arguments):
        time.sleep(0.005)
        return visit(self, *arguments)

    def make(self, *arguments, **more):
        made(self, *arguments, **more)
        self.chunk = 10

    class Interrupts(hogwild.Watcher):
        def tick(self, epoch, share, seconds):
            if epoch == 2 and share > request.param and not heard:
                heard.append(share)
                os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr(RowWorker, "_visit", visit_slowly)
    monkeypatch.setattr(LinearProblem, "__init__", make)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield Interrupts()
    signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("loss", ["perceptron", "hinge"])
@pytest.mark.parametrize("backend", ["process", "thread"])
def test_ctrl_c_within_an_epoch_leaves_members_and_their_mean(
    rows, strategy, loss, backend, interrupted
):
    options = {"loss": loss, "eta0": 0.5, "backend": backend, "watcher": interrupted}
    result = trained(rows, strategy, **options)
    assert (result.reason, len(result.trace)) == ("interrupted", 1)
    assert result.state.steps % len(rows) > 0
    # The mean is theirs, and not that of the epoch before
    name = "mean" if loss == "perceptron" else "stored"
    mean = result.model.members.mean(axis=0)
    np.testing.assert_allclose(result.state.weights[name], mean, 1e-3, 1e-4)
    assert result.model.evaluate(rows)["error"] < 0.2


def test_a_worker_that_dies_leaves_the_members_of_the_last_epoch(rows, tmp_path, monkeypatch):
    path = tmp_path / "votes.hog"

    class Kills(hogwild.Watcher):
        def epoch(self, row):
            if row["epoch"] == 2:
                psutil.Process().children()[0].kill()

    with pytest.warns(hogwild.HogwildWarning, match="new workers take over"):
        replaced = trained(rows, epochs=5, eta0=0.5, watcher=Kills())
    assert bytes_of(replaced.model) == bytes_of(trained(rows, epochs=5, eta0=0.5).model)
    monkeypatch.setattr(coordinator, "DEATHS", 0)
    with pytest.raises(hogwild.WorkerError, match="Epoch 2 was the last") as death:
        trained(rows, epochs=5, eta0=0.5, watcher=Kills(), model=path)
    kept = hogwild.load_model(path)
    assert bytes_of(kept) == bytes_of(death.value.result.model)
    assert bytes_of(kept) == bytes_of(trained(rows, epochs=2, eta0=0.5).model)


@pytest.mark.parametrize("loss", ["perceptron", "hinge"])
def test_going_on_begins_with_the_mean(rows, loss):
    first = trained(rows, loss=loss, epochs=4)
    on = trained(rows, loss=loss, epochs=1, start=first.state)
    assert on.state.steps == 5 * len(rows)
    assert on.trace[-1]["train_error"] < 0.1


# Options


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"strategy": "combine"}, "merge: it needs the strategy averaged or mixed, and the task"),
        ({"strategy": "auto"}, "merge: it needs the strategy averaged or mixed"),
        ({"merge": "votes"}, "merge: 'votes' is not one of mean, vote"),
        ({"merge": None}, "merge: must be given"),
        ({"task": "softmax"}, "merge: it needs"),
        ({"deterministic": True}, "deterministic: it needs a strategy whose result"),
    ],
)
def test_what_cannot_be_is_refused(rows, options, words):
    with pytest.raises(hogwild.OptionError, match=words):
        trained(rows, **options)


def test_votes_of_several_classes_are_refused(rows):
    with pytest.raises(hogwild.OptionError, match=r"needs two classes, and .* has 3; leave it out"):
        trained(rows.labelled(np.arange(len(rows)) % 3))


def test_factorizations_have_no_votes():
    ratings = hogwild.Ratings(["a", "b"], ["c", "d"], [1.0, 2.0])
    with pytest.raises(hogwild.OptionError, match="merge: only for the task svm"):
        hogwild.train(ratings, merge="vote")


def test_the_estimator_votes(rows):
    X, y = rows.to_scipy(), rows.y
    options = {"merge": "vote", "strategy": "mixed", "n_jobs": 3, "random_state": 0}
    found = hogwild.HogwildClassifier("log_loss", max_iter=3, **options).fit(X, y)
    assert len(found.model_.members) == 3
    assert found.score(X, y) > 0.9
    assert set(np.round(6 * found.decision_function(X), 5)) <= {-3, -1, 1, 3}
    assert not hasattr(found, "predict_proba")
    assert np.array_equal(found.predict(X), found.model_.predict(X))
    with pytest.raises(hogwild.OptionError, match="merge: it needs the strategy"):
        hogwild.HogwildClassifier(merge="vote").fit(X, y)


def test_on_the_command_line(rows, tmp_path):
    data, model = tmp_path / "rows.svm", tmp_path / "votes.hog"
    hogwild.save(rows, data)

    def hogwild_does(*arguments):
        command = [sys.executable, "-m", "hogwild", *map(str, arguments)]
        root = Path(__file__).parents[2]
        return subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)

    options = ["--strategy", "mixed", "--merge", "vote", "--workers", 3, "--epochs", 3]
    ran = hogwild_does("train", data, "--loss", "perceptron", *options, "--model", model)
    assert ran.returncode == 0, ran.stderr
    assert "errors of the vote, objective of the mean" in ran.stdout
    ran = hogwild_does("evaluate", model, data)
    assert "(perceptron loss, no penalty, of the members' mean)" in ran.stdout
    assert "-   (this model gives no probabilities)" in ran.stdout
    error = float(ran.stdout.split("error")[1].split("%")[0])
    loaded = hogwild.load_model(model)
    assert error == pytest.approx(100 * np.mean(loaded.predict(rows) != rows.y), abs=1e-3)
    scores = hogwild_does("predict", model, data, "--score").stdout.split()
    np.testing.assert_allclose(np.array(scores, float), loaded.decision_function(rows), 1e-6)
    ran = hogwild_does("predict", model, data, "--proba")
    assert (ran.returncode, "Traceback" in ran.stderr) == (1, False)
    assert "probabilities need the merge mean" in ran.stderr
    ran = hogwild_does("train", data, "--merge", "vote")
    assert ran.returncode == 2
    assert "merge: it needs the strategy averaged or mixed" in ran.stderr
