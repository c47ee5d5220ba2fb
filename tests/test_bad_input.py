"""Data that cannot be learned from, or judged by, is refused by name before anything is learned."""

import numpy as np
import pytest

import hogwild
from hogwild import DataError, HogwildClassifier, HogwildRegressor, Rows, search, train

SIZE = 60
X = np.random.default_rng(0).normal(size=(SIZE, 5)).astype(np.float32)
TWO, THREE = np.arange(SIZE) % 2, np.arange(SIZE) % 3
SETS = np.stack([TWO, 1 - TWO, THREE == 0], axis=1).astype(int)


def but_row_5(given, value):
    return np.where(np.arange(SIZE) == 4, value, given)


# Classes that training never saw


@pytest.mark.parametrize("what", ["test", "validate"])
@pytest.mark.parametrize(
    ("task", "y", "other"),
    [
        ("svm", TWO, but_row_5(TWO, 9)),
        ("logistic", THREE, but_row_5(THREE, 9)),
        ("softmax", THREE, but_row_5(THREE, 9)),
        ("logistic", SETS, [[0]] * 4 + [[1, 9]] + [[2]] * (SIZE - 5)),
        ("svm", THREE, np.full(SIZE, "a")),
    ],
)
def test_classes_that_training_never_saw_are_named(task, y, other, what):
    row, label = (1, "a") if isinstance(other, np.ndarray) and other.dtype.kind == "U" else (5, "9")
    with pytest.raises(DataError, match=f"row {row} has the label {label}; the model knows 0, 1"):
        train(Rows(X, y), task=task, epochs=1, **{what: Rows(X, other)})


def test_one_of_several_classes_that_some_folds_lack_is_said():
    rare = np.where(np.arange(SIZE) < 2, 2, TWO)
    with pytest.warns(hogwild.HogwildWarning, match="2 rows have the label 2.* 2 of the 4 folds"):
        found = search(Rows(X, rare), folds=4, epochs=2, task="softmax")
    assert np.isfinite([fold["loss"] for fold in found.table[0]["folds"]]).all()
    with pytest.raises(DataError, match="only one row has the label 2"):
        search(Rows(X, but_row_5(TWO, 2)), folds=4, epochs=2)


# Weights


@pytest.mark.parametrize("value", [-1.0, np.nan, np.inf])
def test_a_weight_that_is_none_is_named_with_its_row(value):
    weights = but_row_5(np.ones(SIZE), value)
    for refused in (
        lambda: Rows(X, TWO, sample_weight=weights),
        lambda: HogwildClassifier().fit(X, TWO, sample_weight=weights),
        lambda: HogwildRegressor().fit(X, X[:, 0], sample_weight=weights),
    ):
        with pytest.raises(DataError, match=f"weight of row 5 is {value}; .* finite and not neg"):
            refused()


def test_weights_that_leave_nothing_to_learn_from_are_refused():
    nothing = np.zeros(SIZE)
    with pytest.raises(DataError, match="all sample weights are zero"):
        Rows(X, TWO, sample_weight=nothing)
    with pytest.raises(DataError, match="all sample weights are zero"):
        HogwildClassifier().fit(X, TWO, sample_weight=nothing)
    with pytest.raises(DataError, match="all rows have the weight 0"):  # those of some fold have
        search(Rows(X, TWO, sample_weight=but_row_5(nothing, 1.0)), folds=3, epochs=1)


# Targets


@pytest.mark.parametrize("loss", ["squared", "poisson"])
@pytest.mark.parametrize(
    ("value", "words"),
    [(np.nan, "label of row 5 is nan"), (1e300, r"target 1e\+300 of row 5 is too large")],
)
def test_targets_that_are_no_numbers_are_named(loss, value, words):
    with pytest.raises(DataError, match=words):
        train(Rows(X, but_row_5(np.ones(SIZE), value)), task="regression", loss=loss)


@pytest.mark.parametrize("what", ["train", "test", "validate"])
def test_counts_below_0_are_named(what):
    good, bad = Rows(X, np.ones(SIZE)), Rows(X, but_row_5(np.ones(SIZE), -1.0))
    given = {} if what == "train" else {what: bad}
    with pytest.raises(DataError, match="row 5 has the target -1; the loss poisson needs targets"):
        train(good if given else bad, task="regression", loss="poisson", **given)


@pytest.mark.parametrize("other", ["a", None])
def test_labels_of_mixed_kinds_are_refused(other):
    mixed = np.array([1, other] * (SIZE // 2), object)
    with pytest.raises(DataError, match=r"labels of several kinds \(.*int"):
        train(Rows(X, mixed))


# Sizes


@pytest.mark.parametrize("learn", [train, HogwildClassifier().fit])
@pytest.mark.filterwarnings("ignore:The number of unique classes")
def test_more_classes_than_memory_holds_weights_of_are_refused(learn):
    columns = np.full(SIZE, 2**31, np.uint32)
    rows = Rows.from_arrays(
        np.arange(SIZE + 1), columns, np.ones(SIZE, np.float32), 2**31 + 1, np.arange(SIZE)
    )
    with pytest.raises(DataError, match=r"60 classes x 2,147,483,649 columns .* Take fewer"):
        learn(rows)
