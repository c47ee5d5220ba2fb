"""Who earns more than $50,000? UCI Adult: 32,561 people, 123 columns of 0 and 1.

wget https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/binary/a9a
wget https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/binary/a9a.t
python examples/adult.py a9a a9a.t
python examples/adult.py --generated
"""

import argparse
import warnings

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

import hogwild


def generated(rows: int, seed: int) -> hogwild.Rows:
    """People with a value in each of 14 fields, as 0 and 1 in 123 columns."""
    random = np.random.default_rng(seed)
    sizes = np.array([5, 8, 5, 16, 16, 7, 14, 6, 5, 2, 2, 5, 5, 27])
    weights = np.random.default_rng(0).normal(size=sizes.sum())
    chosen = (random.random((rows, len(sizes))) ** 2 * sizes).astype(int)
    X = np.zeros((rows, sizes.sum()), np.float32)
    np.put_along_axis(X, chosen + np.cumsum(sizes) - sizes, 1, axis=1)
    score = X @ weights + random.logistic(size=rows)
    return hogwild.Rows(X, np.where(score > 3, 1, -1))


def main() -> None:
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("files", nargs="*", metavar="FILE", help="training and test rows")
    parser.add_argument("--generated", action="store_true", help="data of the same shape")
    parsed = parser.parse_args()
    if parsed.generated:
        rows, test = generated(8000, seed=1), generated(4000, seed=2)
    elif len(parsed.files) == 2:
        rows, test = map(hogwild.load, parsed.files)
    else:
        parser.error("give two files, or --generated")

    found = hogwild.search(rows, task="logistic", l2=hogwild.logspace(1e-6, 1e-2, 5), folds=5)
    for row in found.table:
        print(f"l2 {row['l2']:<7g} loss {row['loss']:.4f} +- {row['loss_std']:.4f}")
    l2 = found.best["l2"]
    quality = found.model.evaluate(test)
    print(f"best l2 {l2:g}: test error {quality['error']:.2%}, AUC {quality['auc']:.4f}")

    # How far from the optimum is another program's model, after few iterations and after many?
    for iterations in 10, 1000:
        other = LogisticRegression(C=1 / (l2 * len(rows)), max_iter=iterations)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            other.fit(rows.to_scipy(), rows.y)
        gap = hogwild.certify(other, rows, loss="logistic", l2=l2).gap
        print(f"LogisticRegression(max_iter={iterations}): at most {gap:.2g} from the optimum")


if __name__ == "__main__":
    main()
