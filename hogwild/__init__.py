"""Lock-free multicore training of sparse linear models and factorisations on one machine.

    import hogwild
    result = hogwild.train("train.svm", task="svm", test="test.svm")
    result.model.save("model.hog")

Names are imported when they are first used: a command pays only for what it needs.
"""

import importlib
from typing import TYPE_CHECKING, Any

from hogwild.version import VERSION

if TYPE_CHECKING:
    from hogwild.config import Config
    from hogwild.coordinator import Result, Watcher
    from hogwild.data.files import load, save
    from hogwild.data.ratings import Ratings
    from hogwild.data.ratings_files import load_ratings, save_ratings
    from hogwild.data.rows import Rows
    from hogwild.data.statistics import statistics
    from hogwild.errors import (
        DataError,
        DivergenceError,
        HogwildError,
        HogwildWarning,
        OptionError,
        WorkerError,
    )
    from hogwild.estimators import HogwildClassifier, HogwildRegressor, MatrixFactorization
    from hogwild.grids import logspace
    from hogwild.learn.registry import load_model
    from hogwild.models.factors import FactorModel
    from hogwild.models.linear import LinearModel
    from hogwild.parallel.pool import close_pool
    from hogwild.selection import SearchResult, search
    from hogwild.training import train

__version__ = VERSION

_HOMES = {
    "Config": "config",
    "Result": "coordinator",
    "Watcher": "coordinator",
    "load": "data.files",
    "save": "data.files",
    "Ratings": "data.ratings",
    "load_ratings": "data.ratings_files",
    "save_ratings": "data.ratings_files",
    "Rows": "data.rows",
    "statistics": "data.statistics",
    "DataError": "errors",
    "DivergenceError": "errors",
    "HogwildError": "errors",
    "HogwildWarning": "errors",
    "OptionError": "errors",
    "WorkerError": "errors",
    "HogwildClassifier": "estimators",
    "HogwildRegressor": "estimators",
    "MatrixFactorization": "estimators",
    "logspace": "grids",
    "close_pool": "parallel.pool",
    "FactorModel": "models.factors",
    "LinearModel": "models.linear",
    "load_model": "learn.registry",
    "SearchResult": "selection",
    "search": "selection",
    "train": "training",
}

__all__ = [
    "Config",
    "DataError",
    "DivergenceError",
    "FactorModel",
    "HogwildClassifier",
    "HogwildError",
    "HogwildRegressor",
    "HogwildWarning",
    "LinearModel",
    "MatrixFactorization",
    "OptionError",
    "Ratings",
    "Result",
    "Rows",
    "SearchResult",
    "Watcher",
    "WorkerError",
    "__version__",
    "close_pool",
    "load",
    "load_model",
    "load_ratings",
    "logspace",
    "save",
    "save_ratings",
    "search",
    "statistics",
    "train",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'hogwild' has no attribute {name!r}")
    value = getattr(importlib.import_module(f"hogwild.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
