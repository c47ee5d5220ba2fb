"""Which newsgroup is a message from? 20 newsgroups: 11,314 messages, 130,107 words.

python examples/newsgroups.py                 # scikit-learn fetches the data (15 MB)
python examples/newsgroups.py --generated
"""

import argparse
import time
from typing import Any

import numpy as np
from sklearn.datasets import fetch_20newsgroups_vectorized

from hogwild import HogwildClassifier
from hogwild.data.synthetic import rcv1_classes

SHOWN = 3  # classes, and words of each
WORDS = 8


def fetched() -> tuple[Any, ...]:
    """Messages to train and to test on, the names of the groups, and the words."""
    train, test = (fetch_20newsgroups_vectorized(subset=part) for part in ("train", "test"))
    return train.data, train.target, test.data, test.target, train.target_names, train.feature_names


def generated() -> tuple[Any, ...]:
    """The same from rows that look like news."""
    rows, _ = rcv1_classes(4000, 20_000, classes=20)
    X, y = rows.to_scipy(), rows.y.astype(int)
    names, words = [f"group {k}" for k in range(20)], [f"word{k}" for k in range(20_000)]
    return X[:3000], y[:3000], X[3000:], y[3000:], names, words


def main() -> None:
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("--generated", action="store_true", help="data of the same shape")
    X, y, X_test, y_test, names, words = generated() if parser.parse_args().generated else fetched()

    for loss in "hinge", "log_loss", "cross_entropy":
        classifier = HogwildClassifier(loss=loss, alpha=1e-5, n_jobs=-1)
        begin = time.perf_counter()
        classifier.fit(X, y)
        seconds = time.perf_counter() - begin
        print(f"{loss:13} {seconds:5.2f} s   test accuracy {classifier.score(X_test, y_test):.3f}")

    for name, weights in list(zip(names, classifier.coef_, strict=True))[:SHOWN]:
        print(f"{name}:", *(words[k] for k in np.argsort(-weights)[:WORDS]))


if __name__ == "__main__":
    main()
