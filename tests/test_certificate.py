"""Certificates: the lower bound is one, is near the optimum, and fits the model that was given."""

import math
import os

import numpy as np
import pytest
from sklearn.linear_model import ElasticNet, LogisticRegression, Ridge, SGDClassifier
from sklearn.svm import SVC, LinearSVC

import hogwild
from hogwild import certificate
from hogwild.certificate import PROVABLE, certify
from hogwild.errors import DataError, HogwildError, OptionError
from hogwild.learn.losses import COUNTS, LOSSES, SIGNS
from hogwild.models.given import given_model
from tests import reference
from tests.combinations import pairs
from tests.examples import default_of

ROWS, COLUMNS, L2 = 300, 8, 1e-2
NEAR = 2e-5  # share of the optimum: how much the bound of a good model may be too low


def draw(loss="hinge", seed=0):
    """A matrix that single precision holds exactly, with targets for a loss."""
    random = np.random.default_rng(seed)
    X = random.normal(size=(ROWS, COLUMNS)).astype(np.float32).astype(float)
    scores = X @ random.normal(size=COLUMNS) / 2 + random.normal(size=ROWS) + 0.7
    if SIGNS in LOSSES[loss].kinds:
        return X, np.sign(scores)
    y = np.round(np.exp(np.fmin(scores, 3))) if LOSSES[loss].kinds == (COUNTS,) else scores
    return X, y.astype(np.float32).astype(float)


def objective(weights, bias, X, y, loss, l2=L2, l1=0.0, row_weights=None):
    value = reference.value(loss, X @ weights + bias, y, default_of(loss))
    mean = np.average(value, weights=row_weights)
    return l2 / 2 * weights @ weights + l1 * np.abs(weights).sum() + mean


def task_of(loss):
    return "svm" if SIGNS in LOSSES[loss].kinds else "regression"


@pairs(loss=PROVABLE, intercept=[True, False], tol=[1e-1, 1e-6])
def test_the_gap_is_not_below_the_true_one_and_hardly_above(loss, intercept, tol):
    X, y = draw(loss)
    rows, task = hogwild.Rows(X, y), task_of(loss)
    options = {"task": task, "loss": loss, "l2": L2, "intercept": intercept}
    model = hogwild.train(rows, **options, tol=tol).model
    found = certify(model, rows)
    mine = objective(model.weights.astype(float), model.intercept, X, y, loss)
    assert found.objective == pytest.approx(mine, rel=1e-12)
    solver = "newton" if LOSSES[loss].second else "dual"
    best = hogwild.train(rows, **options, tol=1e-7, solver=solver).model
    optimum = objective(best.weights.astype(float), best.intercept, X, y, loss)
    assert found.bound <= optimum + 1e-12 * abs(optimum)
    assert found.gap == pytest.approx((mine - found.bound) / abs(found.bound))
    assert optimum - found.bound <= max(NEAR * abs(optimum), 0.11 * (mine - found.bound))


@pytest.mark.parametrize("row_weights", [None, "some"])
def test_a_poor_model_and_another_penalty(row_weights):
    X, y = draw()
    given = None if row_weights is None else np.arange(ROWS) % 4.0
    rows = hogwild.Rows(X, y, sample_weight=given)
    model = hogwild.train(rows, task="logistic", l2=1.0).model
    found = certify(model, rows, l2=1e-3)
    weights = model.weights.astype(float)
    mine = objective(weights, model.intercept, X, y, "logistic", 1e-3, row_weights=given)
    assert found.objective == pytest.approx(mine)
    best = hogwild.train(rows, task="logistic", l2=1e-3, solver="newton", tol=1e-9)
    true = mine / best.trace[-1]["objective"] - 1
    assert true <= found.gap * (1 + 1e-9) and found.gap <= 1.12 * true
    assert "Newton" in found.how


@pairs(
    loss=["hinge", "logistic"], several=[False, True], weighted=[None, {1: 3.0}], tol=[1e-1, 1e-6]
)
def test_several_classes_or_labels_are_those_against_the_rest(loss, several, weighted, tol):
    X, _ = draw()
    numbers = np.arange(ROWS) % 3
    has = np.random.default_rng(2).random((ROWS, 3)) < 0.3
    has = has if several else numbers[:, None] == np.arange(3)
    rows = hogwild.Rows(X, has.astype(np.int8) if several else numbers)
    model = hogwild.train(rows, loss=loss, l2=L2, tol=tol, class_weight=weighted).model
    counts = has.sum(axis=1)
    sums = has @ np.array([1.0, 3.0 if weighted else 1.0, 1.0])
    shares = np.divide(sums, counts, out=np.ones(ROWS), where=counts > 0)
    optimum, mine = 0.0, 0.0
    for head in range(3):
        y, given = 2.0 * has[:, head] - 1, {"loss": loss, "l2": L2, "tol": 1e-7}
        best = hogwild.train(hogwild.Rows(X, y, sample_weight=shares), **given, solver="newton")
        optimum += best.trace[-1]["objective"]
        place = model.weights[head].astype(float), float(model.intercept[head])
        mine += objective(*place, X, y, loss, row_weights=shares)
    found = certify(model, rows)
    assert found.objective == pytest.approx(mine, rel=1e-6)
    assert optimum - max(3 * NEAR * optimum, 0.11 * (mine - found.bound)) <= found.bound
    assert found.bound <= optimum * (1 + 1e-6)
    assert "each of 3 against the rest" in found.how


def test_class_weights_of_the_model_count():
    X, y = draw()
    rows = hogwild.Rows(X, y)
    model = hogwild.train(rows, l2=L2, class_weight={1.0: 5.0}, tol=1e-5).model
    shares = np.where(y > 0, 5.0, 1.0)
    weights = model.weights.astype(float)
    mine = objective(weights, model.intercept, X, y, "hinge", row_weights=shares)
    found = certify(model, rows)
    assert found.objective == pytest.approx(mine) and found.gap <= NEAR


NAMES = np.array(["blue", "green", "red"])


def draw_classes(seed=0):
    """A matrix, the number of each row's class, and 1 for that class and -1 for the others."""
    X, _ = draw(seed=seed)
    random = np.random.default_rng(seed + 1)
    scores = X @ random.normal(size=(COLUMNS, 3)) / 2 + random.gumbel(size=(ROWS, 3))
    y = (scores + np.array([0.0, 0.7, -0.3])).argmax(axis=1)
    return X, y, np.where(y[:, None] == np.arange(3), 1.0, -1.0)


@pytest.mark.filterwarnings("ignore:lbfgs failed to converge")
@pairs(intercept=[True, False], weighted=[None, "rows", "classes"], steps=[1, 10_000])
def test_softmax_of_others(intercept, weighted, steps):
    X, y, _ = draw_classes()
    shares = {"rows": np.arange(ROWS) % 4, "classes": np.array([1, 3, 2])[y]}.get(weighted)
    options = {"C": 1 / (L2 * ROWS), "fit_intercept": intercept, "tol": 1e-12}
    if shares is not None:
        shares = shares / shares.mean()
    best, model = (
        LogisticRegression(max_iter=most, **options).fit(X, NAMES[y], sample_weight=shares)
        for most in (10_000, steps)
    )
    times = np.ones(ROWS) if shares is None else shares

    def value(model):
        logs = model.predict_log_proba(X)[np.arange(ROWS), y]
        return L2 / 2 * np.sum(model.coef_**2) - np.mean(times * logs)

    rows = hogwild.Rows(X, NAMES[y], sample_weight=shares)
    found = certify(model, rows, loss="cross_entropy", l2=L2)
    assert found.objective == pytest.approx(value(model), rel=1e-12 if shares is None else 1e-6)
    true = value(model) / value(best) - 1
    assert found.bound <= value(best) * (1 + (1e-12 if shares is None else 1e-6))
    if steps > 1:
        assert found.gap <= 2e-8 and "slopes of the losses at the model" in found.how
    else:
        assert true > 1e-3 and found.gap <= 1.12 * true and "Newton" in found.how


@pytest.mark.parametrize("weighted", [None, {1: 3.0}])
def test_softmax_of_ours(tmp_path, weighted):
    X, y, signs = draw_classes()
    rows, options = hogwild.Rows(X, y), {"task": "softmax", "l2": L2, "class_weight": weighted}
    exact = hogwild.train(rows, tol=1e-6, **options)
    found = certify(exact.model, rows)
    assert found.gap <= 1e-6 and found.loss == "cross_entropy"
    rough = hogwild.train(rows, epochs=1, solver="sgd", model=tmp_path / "m.hog", **options).model
    here, saved = (certify(it, rows) for it in (rough, tmp_path / "m.hog"))
    assert here == saved
    assert here.objective == pytest.approx(rough.evaluate(rows)["objective"], rel=1e-6)
    assert here.gap == pytest.approx(here.objective / found.objective - 1, rel=0.12)
    if weighted is None:
        W, b = (np.asarray(it, float) for it in (rough.weights, rough.intercept))
        mine = reference.heads_objective(X, signs, W, b, "cross_entropy", L2)
        assert here.objective == pytest.approx(mine, rel=1e-12)
        sums = [certify(model, rows, loss="logistic") for model in (rough, exact.model)]
        mine = reference.value("logistic", X @ W.T + b, signs, 0.0).mean(axis=0).sum()
        assert sums[0].objective == pytest.approx(L2 / 2 * np.sum(W**2) + mine, rel=1e-12)
        assert sums[0].bound == pytest.approx(sums[1].bound, rel=1e-2)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_each_class_against_the_rest_of_others(tmp_path, loss):
    X, y, signs = draw_classes()
    given = {"C": 1 / (L2 * ROWS), "loss": loss, "tol": 1e-9, "max_iter": 10**6}
    model = LinearSVC(**given, dual=loss == "hinge", intercept_scaling=2.0, random_state=0)
    model.fit(X, y + 1)
    weights = np.column_stack([model.coef_, model.intercept_ / 2.0])
    wide = np.append(X, np.full((ROWS, 1), 2.0), axis=1)
    mine = sum(
        objective(w, 0.0, wide, sign, loss) for w, sign in zip(weights, signs.T, strict=True)
    )
    rows = hogwild.Rows(X, y + 1)
    found = certify(model, rows, loss=loss, l2=L2)
    assert found.objective == pytest.approx(mine, rel=1e-12)
    assert found.bound <= mine and found.gap <= NEAR
    assert "each of 3 against the rest" in found.how
    assert certify(model.sparsify(), rows, loss=loss, l2=L2) == found
    model.densify()
    # The same as text, with labels in the order in which rows came
    order, solver = [2, 0, 1], "L2R_L1LOSS_SVC_DUAL" if loss == "hinge" else "L2R_L2LOSS_SVC"
    path = liblinear(tmp_path / "m.txt", weights[order].T, solver, "3 1 2", 2.0)
    text = certify(path, rows, l2=L2)
    assert (text.objective, text.bound) == pytest.approx((found.objective, found.bound))
    # And as arrays, whose intercept is free
    np.savez(tmp_path / "m.npz", coef_=model.coef_, intercept_=model.intercept_, classes_=[1, 2, 3])
    free = certify(tmp_path / "m.npz", rows, loss=loss, l2=L2)
    parts = zip(model.coef_, model.intercept_, signs.T, strict=True)
    assert free.objective == pytest.approx(sum(objective(*it[:2], X, it[2], loss) for it in parts))
    assert free.bound < text.bound


# Models of scikit-learn


def test_logistic_regression_needs_one_look():
    X, y = draw()
    model = LogisticRegression(C=1 / (L2 * ROWS), tol=1e-10, max_iter=1000).fit(X, y)
    found = certify(model, hogwild.Rows(X, y), loss="logistic", l2=L2)
    assert found.gap <= 1e-9
    assert "slopes of the losses at the model" in found.how


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("scaling", [None, 1.0, 3.0])
def test_linear_svc_has_a_penalty_on_its_intercept(loss, scaling):
    X, y = draw()
    more = {"fit_intercept": False} if scaling is None else {"intercept_scaling": scaling}
    given = {"C": 1 / (L2 * ROWS), "loss": loss, "tol": 1e-10, "max_iter": 10**6}
    model = LinearSVC(**given, dual=loss == "hinge", random_state=0, **more).fit(X, y)
    found = certify(model, hogwild.Rows(X, y), loss=loss, l2=L2)
    bias = float(model.intercept_[0]) if scaling else 0.0
    wide = np.append(X, np.full((ROWS, 1), scaling or 0.0), axis=1)
    weights = np.append(model.coef_[0], bias / (scaling or 1.0))
    mine = objective(weights, 0.0, wide, y, loss)
    assert found.objective == pytest.approx(mine, rel=1e-12)
    assert found.bound <= mine * (1 + 1e-12) and found.gap <= NEAR


def test_support_vectors_with_an_intercept_that_is_free():
    X, y = draw()
    model = SVC(kernel="linear", C=1 / (L2 * ROWS), tol=1e-8).fit(X, y)
    found = certify(model, hogwild.Rows(X, y), loss="hinge", l2=L2)
    assert found.bound <= objective(model.coef_[0], model.intercept_[0], X, y, "hinge")
    assert found.gap <= NEAR


def test_numbers():
    X, y = draw("squared")
    model = Ridge(alpha=L2 * ROWS, solver="cholesky").fit(X, y)
    assert certify(model, hogwild.Rows(X, y), loss="squared", l2=L2).gap <= 1e-9
    model.coef_ = model.coef_ + 0.1
    found = certify(model, hogwild.Rows(X, y), "squared", L2)
    assert found.gap > 1e-3


@pytest.mark.parametrize("l2", [0.0, 0.05])
def test_l1_and_elastic_nets(l2):
    X, y = draw("squared")
    l1 = 0.1
    model = ElasticNet(alpha=l1 + l2, l1_ratio=l1 / (l1 + l2), tol=1e-12).fit(X, y)
    rows = hogwild.Rows(X, y)
    found = certify(model, rows, loss="squared", l2=l2, l1=l1)
    mine = objective(model.coef_, model.intercept_, X, y, "squared", l2, l1)
    assert found.objective == pytest.approx(mine, rel=1e-9)
    assert found.gap <= NEAR and found.l1 == l1
    ours = hogwild.train(rows, task="regression", l1=l1, l2=l2, tol=1e-6).model
    assert certify(ours, rows).gap <= NEAR


def test_weights_of_descent_that_is_not_at_its_end():
    X, y = draw()
    model = SGDClassifier(alpha=L2, max_iter=1, tol=None, random_state=0).fit(X, y)
    found = certify(model, hogwild.Rows(X, y), loss="hinge", l2=L2)
    best = certify(hogwild.train(hogwild.Rows(X, y), l2=L2, tol=1e-6).model, hogwild.Rows(X, y))
    assert found.gap == pytest.approx(found.objective / best.objective - 1, rel=0.12)
    assert "kinks" in found.how


def test_a_bound_of_too_few_passes_is_one(monkeypatch):
    X, y = draw()
    rows = hogwild.Rows(X * np.logspace(-3, 3, COLUMNS), y)
    model = SGDClassifier().fit(X, y)
    exact = certify(model, rows, loss="squared_hinge", l2=1e-3)
    monkeypatch.setattr(certificate, "MOST_WORK", 0)
    monkeypatch.setattr(certificate, "FEWEST_PASSES", 1)
    found = certify(model, rows, loss="hinge", l2=1e-3)
    assert found.bound < found.objective
    assert "may be far too low" in found.how and "may be" not in exact.how


# Files

HEAD = "solver_type {}\nnr_class 2\nlabel {}\nnr_feature {}\nbias {:g}\nw\n"
HEAD_OF_3 = HEAD.replace("class 2", "class 3")


def liblinear(path, weights, solver="L2R_L1LOSS_SVC_DUAL", labels="1 -1", bias=-1.0):
    columns = len(weights) - (bias >= 0)
    head = HEAD if np.ndim(weights) == 1 else HEAD_OF_3
    lines = "".join(" ".join(f"{w:.17g}" for w in np.ravel(line)) + " \n" for line in weights)
    path.write_text(head.format(solver, labels, columns, bias) + lines)
    return path


def test_text_of_liblinear(tmp_path):
    path = liblinear(tmp_path / "m.txt", [0.5, -0.25])
    (tmp_path / "d.svm").write_text("+1 1:1\n-1 2:2\n-1 1:-2 2:1\n")
    found = certify(path, tmp_path / "d.svm", l2=0.5)
    # Margins 0.5, 0.5 and 1.25
    assert found.objective == pytest.approx(0.25 * (0.25 + 0.0625) + 1 / 3)
    assert 0 < found.bound < found.objective
    turned = liblinear(tmp_path / "m.txt", [-0.5, 0.25], labels="-1 1")
    assert certify(turned, tmp_path / "d.svm", l2=0.5) == found


@pytest.mark.parametrize("solver", ["L2R_LR", "L2R_L2LOSS_SVC_DUAL", "L1R_LR"])
def test_a_bias_of_liblinear_is_a_column(tmp_path, solver):
    X, y = draw()
    loss = "logistic" if solver.endswith("LR") else "squared_hinge"
    penalty = {"l1": 1e-2} if solver.startswith("L1") else {"l2": 1e-2}
    wide = hogwild.Rows(np.append(X, np.full((ROWS, 1), 2.0), axis=1), y)
    options = {"task": "svm", "loss": loss, "intercept": False, "tol": 1e-6}
    best = hogwild.train(wide, **options, **penalty).model
    path = liblinear(tmp_path / "m.txt", best.weights.astype(float), solver, bias=2.0)
    found = certify(path, hogwild.Rows(X, y), **penalty)
    assert found.objective == pytest.approx(best.evaluate(wide)["objective"], rel=1e-6)
    assert found.gap <= NEAR


@pytest.mark.parametrize("names", [("weights", "intercept", "labels"), ("coef_", "intercept_", "")])
def test_arrays(tmp_path, names):
    X, y = draw()
    random = np.random.default_rng(1)
    weights, bias = random.normal(size=(1, COLUMNS)), 0.25
    arrays = dict(zip(names, (weights, [bias], [-1, 1]), strict=True))
    arrays.pop("", None)
    np.savez(tmp_path / "m.npz", **arrays)
    found = certify(tmp_path / "m.npz", hogwild.Rows(X, y), loss="logistic", l2=L2)
    assert found.objective == pytest.approx(objective(weights[0], bias, X, y, "logistic"))
    np.savez(tmp_path / "m.npz", weights=weights)  # no intercept, and none to compare with
    found = certify(tmp_path / "m.npz", hogwild.Rows(X, y), loss="logistic", l2=L2)
    assert found.objective == pytest.approx(objective(weights[0], 0.0, X, y, "logistic"))
    best = hogwild.train(
        hogwild.Rows(X, y), task="logistic", l2=L2, tol=1e-7, intercept=False, solver="newton"
    )
    assert found.bound == pytest.approx(best.trace[-1]["objective"], rel=0.1 * found.gap)


def test_our_files(tmp_path):
    X, y = draw()
    result = hogwild.train(hogwild.Rows(X, y), l2=L2, model=tmp_path / "m.hog")
    saved, here = (certify(it, hogwild.Rows(X, y)) for it in (tmp_path / "m.hog", result.model))
    assert saved == here


# Refusals


def refused(match, model, rows=None, kind=OptionError, **more):
    X, y = draw()
    with pytest.raises(kind, match=match):
        certify(model, hogwild.Rows(X, y) if rows is None else rows, **more)


def fitted(columns=COLUMNS, labels=(-1.0, 1.0)):
    X, y = draw()
    model = LogisticRegression().fit(np.resize(X, (ROWS, columns)), y)
    model.classes_ = np.array(labels)
    return model


def test_what_the_model_does_not_say_is_asked_for():
    refused("^loss: the model does not say", fitted(), l2=L2)
    refused("^l2: the model does not say", fitted(), loss="hinge")
    refused("^l2: without a penalty", fitted(), loss="hinge", l2=0)
    refused("at least 0", fitted(), loss="hinge", l2=-1.0)


@pytest.mark.parametrize("loss", ["perceptron", "cross_entropy", "huber", "no such"])
def test_losses_without_a_proof(loss):
    refused(
        f"^loss: for {loss} nothing can be proved of this model; it can for hinge",
        fitted(),
        loss=loss,
        l2=L2,
    )


def test_losses_without_a_proof_with_l1():
    refused("hinge with an l1 .* squared_hinge", fitted(), loss="hinge", l1=L2)


def test_several_classes():
    X, y, signs = draw_classes()
    rows, asked = hogwild.Rows(X, y), {"loss": "cross_entropy", "l2": L2}
    model = LogisticRegression().fit(X, y)
    refused("^loss: for huber nothing", model, rows, loss="huber", l2=L2)
    refused("cross_entropy with an l1 nothing", model, rows, **asked, l1=L2)
    for other in asked, asked | {"loss": "logistic"}:
        labels = hogwild.Rows(X, y + 1)
        refused("row .* has the label 3", model, labels, DataError, **other)
        refused("7 columns", model, hogwild.Rows(X[:, 1:], y), DataError, **other)
        sets = hogwild.Rows(X, (signs > 0).astype(np.int8))
        refused("several labels in a row", model, sets, DataError, **other)
    model.intercept_[1] = np.inf
    refused("NaN or infinite", model, rows, DataError, **asked)
    model.intercept_ = np.zeros(2)
    refused("2 intercepts for 3 lines", model, rows, HogwildError, **asked)
    model.classes_ = np.array([1, 2])
    refused(r"shape \(3, 8\) and 2 labels", model, rows, HogwildError, **asked)
    del model.classes_
    refused("and 0 labels", model, rows, HogwildError, **asked)
    refused("pair of classes", SVC(kernel="linear").fit(X, y), rows, HogwildError, **asked)
    ours = hogwild.train(sets, l2=L2, epochs=1).model
    refused("cross_entropy nothing .* of this model", ours, sets, loss="cross_entropy")
    alone = fitted()
    del alone.classes_
    refused("3 classes, and the model has one score", alone, rows, DataError, loss="hinge", l2=L2)


def test_other_models():
    ratings = hogwild.Ratings([1, 2, 2], [1, 1, 2], [1.0, 2.0, 3.0])
    model = hogwild.train(ratings, rank=2, epochs=1).model
    refused("a factors model cannot", model, kind=HogwildError)
    refused("a dict model cannot", {}, kind=HogwildError)


def test_columns_and_labels_that_do_not_fit():
    asked = {"loss": "logistic", "l2": L2}
    refused("8 columns, .* weights for 5", fitted(5), kind=DataError, **asked)
    refused("8 columns, .* weights for 9", fitted(9), kind=DataError, **asked)
    refused("label", fitted(labels=(0.0, 1.0)), kind=DataError, **asked)
    broken = fitted()
    broken.coef_[0, 2] = np.nan
    refused("NaN", broken, kind=DataError, **asked)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "is not a model"),
        ("hello", "is not a model"),
        ("solver_type L2R_LR\n", "not a model of LIBLINEAR"),
        (HEAD.format("L2R_LR", "1 -1", 3, -1) + "1\n2\n", "3 weights are expected, .* 2"),
        (HEAD.format("L2R_LR", "1 -1", 2, -1) + "1\nx\n", "not a model of LIBLINEAR"),
        (HEAD.format("MCSVM_CS", "1 -1", 2, -1) + "1\n2\n", "MCSVM_CS cannot be certified"),
        (HEAD_OF_3.format("L2R_LR", "1 2 3", 2, -1) + "1 2 3\n", "6 weights are expected, .* 3"),
        (HEAD_OF_3.format("L2R_LR", "1 2", 1, -1) + "1 2 3\n", "3, and there are 2 labels"),
        (HEAD_OF_3.format("L2R_LR", "", 1, -1) + "1 2 3\n", "3, and there are 0 labels"),
        (HEAD_OF_3.format("L2R_LR", "1 2 1", 8, -1) + 24 * "1\n", "different values"),
        (HEAD_OF_3.format("MCSVM_CS", "1 2 3", 1, -1) + "1 2 3\n", "MCSVM_CS cannot be certified"),
        ("PK and no archive", r"cannot be read: .*is not an \.npz file"),
    ],
)
def test_files_that_are_no_model(tmp_path, text, says):
    (tmp_path / "m").write_text(text)
    refused(says, tmp_path / "m", kind=HogwildError, l2=L2)


def test_a_missing_file_and_arrays_of_another_kind(tmp_path):
    refused("cannot read the model", tmp_path / "none", kind=HogwildError)
    for arrays in {"data": [1.0]}, {"coef_": [1.0], "intercept_": ["a"]}:
        np.savez(tmp_path / "m.npz", **arrays)
        refused("numbers named weights or coef", os.fspath(tmp_path / "m.npz"), kind=HogwildError)


def test_where_the_optimum_is_0_nothing_is_proved():
    model = Ridge().fit(np.eye(4), [0.0, 1.0, 2.0, 3.0])
    found = certify(model, hogwild.Rows(np.eye(4), np.zeros(4)), loss="squared", l2=L2)
    assert found.objective > 0 >= found.bound
    assert math.isinf(found.gap)


def test_models_are_read_once():
    given = given_model(fitted())
    assert given_model(given) is given
