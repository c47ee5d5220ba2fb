"""Estimators for scikit-learn: classes with `fit` and `predict`."""

try:
    from sklearn.utils.validation import validate_data as _  # noqa: F401 - older ones lack it
except ImportError as missing:
    raise ImportError(
        "hogwild's estimators need scikit-learn 1.6 or later: "
        'pip install "hogwild[sklearn]". hogwild.train works without it.'
    ) from missing

from hogwild.estimators.classifier import HogwildClassifier
from hogwild.estimators.factorization import MatrixFactorization
from hogwild.estimators.regressor import HogwildRegressor

__all__ = ["HogwildClassifier", "HogwildRegressor", "MatrixFactorization"]
