"""Lock-free multicore training of sparse linear models and factorizations on one machine.

    import hogwild
    result = hogwild.train("train.svm", task="svm", test="test.svm")
    result.model.save("model.hog")

Names are imported when they are first used, so that a command loads only what it needs.
"""

from __future__ import annotations

import importlib
import os
from _thread import RLock

from hogwild.version import VERSION

# As typing has it, which takes 2 ms to import: until `__main__` runs, Ctrl-C prints a traceback
TYPE_CHECKING = False
if TYPE_CHECKING:  # for these, a redundant alias says that the name is public
    from typing import Any

    from hogwild.callbacks import Callback as Callback
    from hogwild.certificate import Certificate as Certificate
    from hogwild.certificate import certify as certify
    from hogwild.config import Config as Config
    from hogwild.data.cache import cached as cached
    from hogwild.data.convert import convert as convert
    from hogwild.data.files import load as load
    from hogwild.data.files import save as save
    from hogwild.data.ratings import Ratings as Ratings
    from hogwild.data.ratings_files import load_ratings as load_ratings
    from hogwild.data.ratings_files import save_ratings as save_ratings
    from hogwild.data.rows import Rows as Rows
    from hogwild.data.statistics import statistics as statistics
    from hogwild.errors import DataError as DataError
    from hogwild.errors import DivergenceError as DivergenceError
    from hogwild.errors import HogwildError as HogwildError
    from hogwild.errors import HogwildWarning as HogwildWarning
    from hogwild.errors import OptionError as OptionError
    from hogwild.errors import WorkerError as WorkerError
    from hogwild.estimators import HogwildClassifier as HogwildClassifier
    from hogwild.estimators import HogwildRegressor as HogwildRegressor
    from hogwild.estimators import MatrixFactorization as MatrixFactorization
    from hogwild.features.encoder import Features as Features
    from hogwild.grids import logspace as logspace
    from hogwild.learn.registry import load_model as load_model
    from hogwild.models.factors import FactorModel as FactorModel
    from hogwild.models.linear import LinearModel as LinearModel
    from hogwild.parallel.pool import close_pool as close_pool
    from hogwild.results import Result as Result
    from hogwild.results import Watcher as Watcher
    from hogwild.selection import SearchResult as SearchResult
    from hogwild.selection import search as search
    from hogwild.streaming import StreamResult as StreamResult
    from hogwild.streaming import train_stream as train_stream
    from hogwild.training import train as train

__version__ = VERSION

_HOMES = {
    "callbacks": ("Callback",),
    "certificate": ("Certificate", "certify"),
    "config": ("Config",),
    "coordinator": ("Result", "Watcher"),
    "data.cache": ("cached",),
    "data.convert": ("convert",),
    "data.files": ("load", "save"),
    "data.ratings": ("Ratings",),
    "data.ratings_files": ("load_ratings", "save_ratings"),
    "data.rows": ("Rows",),
    "data.statistics": ("statistics",),
    "errors": (
        *("DataError", "DivergenceError", "HogwildError"),
        *("HogwildWarning", "OptionError", "WorkerError"),
    ),
    "estimators": ("HogwildClassifier", "HogwildRegressor", "MatrixFactorization"),
    "features.encoder": ("Features",),
    "grids": ("logspace",),
    "learn.registry": ("load_model",),
    "models.factors": ("FactorModel",),
    "models.linear": ("LinearModel",),
    "parallel.pool": ("close_pool",),
    "selection": ("SearchResult", "search"),
    "streaming": ("StreamResult", "train_stream"),
    "training": ("train",),
}
_HOME_OF = {name: module for module, names in _HOMES.items() for name in names}

# A fork waits until no other thread imports: a module that is half imported stays locked in the
# child forever
_IMPORTING = RLock()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_IMPORTING.acquire,
        after_in_parent=_IMPORTING.release,
        after_in_child=_IMPORTING.release,
    )

__all__ = ["__version__", *_HOME_OF]  # noqa: PLE0604


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module 'hogwild' has no attribute {name!r}")
    with _IMPORTING:
        value = getattr(importlib.import_module(f"hogwild.{_HOME_OF[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
