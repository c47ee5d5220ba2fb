"""What does a house cost? California housing: 20,640 districts, 8 columns of very different scale.

python examples/housing.py                    # scikit-learn fetches the data (400 kB)
python examples/housing.py --generated
"""

import argparse
from typing import Any

import numpy as np
from sklearn.datasets import fetch_california_housing
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from hogwild import HogwildRegressor


def generated() -> tuple[Any, Any]:
    """Columns with values from below 1 to above 1,000, and a price with noise that grows."""
    random = np.random.default_rng(0)
    X = random.lognormal(sigma=0.5, size=(4000, 8)) * [4, 29, 5, 1, 1425, 3, 36, 120]
    rise = X / X.mean(axis=0) @ [1.0, 0.2, 0.1, -0.1, -0.2, -0.1, -0.3, -0.2]
    return X, 2 + rise * (1 + 0.2 * random.normal(size=len(X)))


def main() -> None:
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("--generated", action="store_true", help="data of the same shape")
    if parser.parse_args().generated:
        X, y = generated()
    else:
        X, y = fetch_california_housing(return_X_y=True)
    X, X_test, y, y_test = train_test_split(X, y, random_state=0)

    # Newton's method does not mind the scale of the columns
    for loss in "squared_error", "huber":
        regressor = HogwildRegressor(loss=loss, alpha=1e-6).fit(X, y)
        print(f"{loss:15} R^2 on test districts {regressor.score(X_test, y_test):.3f}")

    # Eight of ten prices lie between the quantiles 0.1 and 0.9. The slope of this loss jumps:
    # its solver wants columns of one scale
    def quantile(q: float) -> Any:
        regressor = HogwildRegressor(loss="quantile", quantile=q)
        return make_pipeline(StandardScaler(), regressor).fit(X, y).predict(X_test)

    low, high = quantile(0.1), quantile(0.9)
    inside, width = np.mean((low <= y_test) & (y_test <= high)), np.mean(high - low)
    print(f"{inside:.0%} of the prices lie within the interval, which is {width:.2f} wide")


if __name__ == "__main__":
    main()
