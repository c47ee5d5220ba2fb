"""One peer of the factorisation, run by the Python of its own virtual environment.

Reads a request (JSON) from standard input and answers on standard output, a line of JSON for each
result. Imports nothing of hogwild. The request's folder has the ratings: `train-users.npy`,
`train-items.npy` (uint32), `train-values.npy` (float32), and the same of `test`.

The clock runs during the calls that train, with whatever the peer prepares in them. Importing, and
putting the arrays into the form that the peer takes, is before it; `load_seconds` says how long
the latter took. All models are judged here, in the same way, without clipping.
"""

import ctypes
import importlib
import os
import sys
import sysconfig
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from experiments.answering import Request, Row, serve

CHUNK = 1 << 18  # ratings scored at once
TOP = 10
SEED = 0

Array = Any


class Ratings(NamedTuple):
    """Users and items by number, and what they rated."""

    users: Array
    items: Array
    values: Array


class Model(NamedTuple):
    """mean + user's bias + item's bias + <P[user], Q[item]>; `unknown` where that is no number."""

    P: Array
    Q: Array
    mean: float = 0.0
    user_biases: Array = np.zeros(1, np.float32)
    item_biases: Array = np.zeros(1, np.float32)
    unknown: float = 0.0


class State(NamedTuple):
    """After so many epochs: the seconds they took, those spent so far, and the model."""

    epochs: int
    seconds: float
    spent: float
    model: Model | None


Curve = Iterator[State]


def ratings(folder: Path, part: str) -> Ratings:
    """The ratings of `train` or `test`."""
    return Ratings(*(np.load(folder / f"{part}-{name}.npy") for name in Ratings._fields))


def scores(model: Model, users: Array, items: Array) -> Array:
    """What the model says of these pairs."""
    biases = [
        part[which] if len(part) > 1 else part[0]
        for part, which in ((model.user_biases, users), (model.item_biases, items))
    ]
    inner = np.einsum("ij,ij->i", model.P[users], model.Q[items])
    found = model.mean + biases[0] + biases[1] + inner
    return np.where(np.isnan(found), model.unknown, found)


def rmse(model: Model, test: Ratings) -> float:
    """The root of the mean squared error, in float64."""
    total = 0.0
    for start in range(0, len(test.values), CHUNK):
        users, items, values = (part[start : start + CHUNK] for part in test)
        errors = scores(model, users, items).astype(np.float64) - values
        total += float(errors @ errors)
    return float(np.sqrt(total / len(test.values)))


def afresh(fit: Callable[[int], Model | None], epochs: list[int]) -> Curve:
    """A training from the beginning for each number of epochs."""
    spent = 0.0
    for count in epochs:
        start = time.perf_counter()
        model = fit(count)
        seconds = time.perf_counter() - start
        spent += seconds
        yield State(count, seconds, spent, model)


def onwards(step: Callable[[int], Model], epochs: list[int]) -> Curve:
    """One training that goes on; the clock stands still in between. step(0) only prepares."""
    done, seconds = 0, 0.0
    for count in [0, *epochs]:
        start = time.perf_counter()
        model = step(count - done)
        seconds += time.perf_counter() - start
        done = count
        if count:
            yield State(count, seconds, seconds, model)


# LIBMF: its own C functions, called as mf-train would. The package's Python layer wants the
# numbers of users and items as floats, and copies everything twice.


class Problem(ctypes.Structure):
    """mf_problem of mf.h."""

    _fields_ = (
        ("m", ctypes.c_int),
        ("n", ctypes.c_int),
        ("nnz", ctypes.c_longlong),
        ("R", ctypes.c_void_p),
    )


class Parameter(ctypes.Structure):
    """mf_parameter of mf.h."""

    _fields_ = (
        *((name, ctypes.c_int) for name in ("fun", "k", "nr_threads", "nr_bins", "nr_iters")),
        *((f"lambda_{name}", ctypes.c_float) for name in ("p1", "p2", "q1", "q2")),
        ("eta", ctypes.c_float),
        *((name, ctypes.c_bool) for name in ("do_nmf", "quiet", "copy_data")),
    )


class Factors(ctypes.Structure):
    """mf_model of mf.h."""

    _fields_ = (
        *((name, ctypes.c_int) for name in ("fun", "m", "n", "k")),
        ("b", ctypes.c_float),
        *((name, ctypes.POINTER(ctypes.c_float)) for name in ("P", "Q")),
    )


def libmf(train: Ratings, request: Request) -> Callable[[], Curve]:
    """LIBMF: stochastic gradient on blocks, without biases. Users unseen get the mean."""
    library = ctypes.CDLL(str(next(Path(sysconfig.get_path("platlib")).glob("libmf*.so"))))
    library.mf_train.argtypes = [ctypes.POINTER(Problem), Parameter]
    library.mf_train.restype = ctypes.POINTER(Factors)
    library.mf_get_default_param.restype = Parameter
    library.mf_destroy_model.argtypes = [ctypes.POINTER(ctypes.POINTER(Factors))]
    library.mf_destroy_model.restype = None

    nodes = np.empty(len(train.values), [("u", np.int32), ("v", np.int32), ("r", np.float32)])
    nodes["u"], nodes["v"], nodes["r"] = train
    chosen = request["options"]
    parameter = library.mf_get_default_param()
    parameter.k, parameter.nr_threads = request["rank"], request["threads"]
    parameter.nr_bins = max(parameter.nr_bins, 2 * request["threads"] + 1)
    parameter.lambda_p2 = parameter.lambda_q2 = chosen["lambda"]
    parameter.eta, parameter.quiet = chosen["eta"], True

    def fit(epochs: int) -> Any:
        parameter.nr_iters = epochs
        problem = Problem(*request["shape"], len(nodes), nodes.ctypes.data)
        return library.mf_train(ctypes.byref(problem), parameter)

    def curve() -> Curve:
        for state in afresh(fit, request["epochs"]):
            held: Any = state.model
            found = held.contents
            P = np.ctypeslib.as_array(found.P, (found.m, found.k)).copy()
            Q = np.ctypeslib.as_array(found.Q, (found.n, found.k)).copy()
            mean = found.b
            library.mf_destroy_model(ctypes.byref(held))
            yield state._replace(model=Model(P, Q, unknown=mean))

    return curve


def cornac_dataset(train: Ratings, request: Request) -> Any:
    """cornac's form of the ratings, numbered as they are."""
    users, items = request["shape"]
    return importlib.import_module("cornac.data").Dataset(
        users,
        items,
        {number: number for number in range(users)},
        {number: number for number in range(items)},
        (train.users.astype(np.int64), train.items.astype(np.int64), train.values),
    )


def cornac(train: Ratings, request: Request) -> Callable[[], Curve]:
    """cornac's MF: stochastic gradient with biases, in the order of the data. Its rate is constant,
    so that going on from a model is the same as having trained for longer."""
    kind = importlib.import_module("cornac.models").MF
    data = cornac_dataset(train, request)

    def curve() -> Curve:
        begun: dict[str, Array] = {}

        def step(epochs: int) -> Model:
            model = kind(
                k=request["rank"],
                max_iter=epochs,
                learning_rate=request["options"]["rate"],
                lambda_reg=request["options"]["lambda"],
                num_threads=request["threads"],
                init_params=begun,
            ).fit(data)
            P, Q, bu, bi = model.u_factors, model.i_factors, model.u_biases, model.i_biases
            begun.update(U=P, V=Q, Bu=bu, Bi=bi)
            return Model(P, Q, float(model.global_mean), bu, bi)

        return onwards(step, request["epochs"])

    return curve


def surprise(train: Ratings, request: Request) -> Callable[[], Curve]:
    """Surprise's SVD: stochastic gradient with biases, user by user, one thread."""
    package = importlib.import_module("surprise")
    scale = float(train.values.min()), float(train.values.max())
    data = package.Dataset(package.Reader(rating_scale=scale)).construct_trainset(
        list(zip(*(part.tolist() for part in train), [None] * len(train.values), strict=True))
    )
    users, items = (
        np.fromiter(numbers, np.int64)  # by Surprise's own numbers, those of the data
        for numbers in (data._raw2inner_id_users, data._raw2inner_id_items)
    )

    def fit(epochs: int) -> Model:
        found = package.SVD(
            n_factors=request["rank"],
            n_epochs=epochs,
            lr_all=request["options"]["rate"],
            reg_all=request["options"]["lambda"],
            random_state=SEED,
        ).fit(data)
        m, n = request["shape"]
        P, Q = spread(found.pu, users, m), spread(found.qi, items, n)
        bu, bi = spread(found.bu, users, m), spread(found.bi, items, n)
        return Model(P, Q, float(data.global_mean), bu, bi)

    return lambda: afresh(fit, request["epochs"])


def spread(part: Array, numbers: Array, count: int) -> Array:
    """Rows at their numbers among `count`, and zeros where there is none."""
    whole = np.zeros((count, *part.shape[1:]), np.float32)
    whole[numbers] = part
    return whole


def lenskit(train: Ratings, request: Request) -> Callable[[], Curve]:
    """lenskit's biased factorisation by alternating least squares: biases first, then factors."""
    os.environ["LK_NUM_THREADS"] = str(request["threads"])
    als, data, training, pandas = map(
        importlib.import_module, ("lenskit.als", "lenskit.data", "lenskit.training", "pandas")
    )
    names = ("user_id", "item_id", "rating")
    dataset = data.from_interactions_df(pandas.DataFrame(dict(zip(names, train, strict=True))))
    users, items = dataset.users.ids(), dataset.items.ids()
    m, n = request["shape"]

    def curve() -> Curve:
        scorer = als.BiasedMFScorer(
            embedding_size=request["rank"], regularization=request["options"]["lambda"]
        )
        begun: list[Any] = []

        def step(epochs: int) -> Model | None:
            if not begun:
                begun.append(scorer.create_trainer(dataset, training.TrainingOptions(rng=SEED)))
            for _ in range(epochs):
                begun[0].train_epoch()
            return None

        for state in onwards(step, request["epochs"]):  # type: ignore[arg-type]
            P, Q = scorer.user_embeddings, scorer.item_embeddings
            bu, bi = scorer.bias.user_biases, scorer.bias.item_biases
            model = Model(
                spread(P, users, m),
                spread(Q, items, n),
                float(scorer.bias.global_bias),
                spread(bu, users, m),
                spread(bi, items, n),
            )
            yield state._replace(model=model)

    return curve


def matrix(train: Ratings, request: Request) -> Any:
    """The ratings as scipy's CSR matrix."""
    form = importlib.import_module("scipy.sparse").csr_matrix
    return form((train.values, (train.users, train.items)), shape=tuple(request["shape"]))


def implicit(train: Ratings, request: Request) -> Callable[[], Curve]:
    """implicit's alternating least squares, for implicit feedback: its error means nothing here."""
    kind = importlib.import_module("implicit.als").AlternatingLeastSquares
    cells = matrix(train, request)

    def fit(epochs: int) -> None:
        kind(
            request["rank"],
            iterations=epochs,
            num_threads=request["threads"],
            random_state=SEED,
        ).fit(cells, show_progress=False)

    return lambda: afresh(fit, request["epochs"])


def implicit_top(train: Ratings, request: Request) -> Callable[[], Array]:
    """implicit's recommendations for all users at once, without what they have rated."""
    kind = importlib.import_module("implicit.als").AlternatingLeastSquares
    cells = matrix(train, request)
    model = kind(request["rank"], iterations=1, num_threads=request["threads"], random_state=SEED)
    model.fit(cells, show_progress=False)
    users = np.arange(request["shape"][0])
    return lambda: model.recommend(users, cells, N=TOP, filter_already_liked_items=True)[0]


def cornac_top(train: Ratings, request: Request) -> Callable[[], Array]:
    """cornac's recommendations, user by user (it has no other way), without what they rated."""
    kind = importlib.import_module("cornac.models").MF
    data = cornac_dataset(train, request)
    model = kind(k=request["rank"], max_iter=1, num_threads=request["threads"]).fit(data)
    users = np.unique(train.users).tolist()
    data.csr_matrix  # noqa: B018  # cornac makes it when it is first needed
    return lambda: [
        model.recommend(user, k=TOP, remove_seen=True, train_set=data) for user in users
    ]


PACKAGES = {
    "libmf": "libmf",
    "cornac": "cornac",
    "surprise": "scikit-surprise",
    "lenskit": "lenskit",
    "implicit": "implicit",
}
TRAINERS = {one.__name__: one for one in (libmf, cornac, surprise, lenskit, implicit)}
TOPS = {"implicit": implicit_top, "cornac": cornac_top}


def trained(train: Ratings, test: Ratings, request: Request) -> Iterator[Row]:
    """The results of all trainings, until the budget is used up or the error has had its best."""
    start = time.perf_counter()
    curve = TRAINERS[request["peer"]](train, request)
    yield {"load_seconds": time.perf_counter() - start}
    next(curve())  # compiles, starts its threads
    for repeat in range(request["repeats"]):
        errors: list[float] = []
        for number, (epochs, seconds, spent, model) in enumerate(curve()):
            error = None if model is None else rmse(model, test)
            yield {"repeat": repeat, "epochs": epochs, "seconds": seconds, "test_rmse": error}
            errors += [] if error is None else [error]
            # Two at least, since their difference is the speed
            if number and (spent > request["budget"] or past_best(errors, request["patience"])):
                break


def past_best(errors: list[float], patience: int) -> bool:
    """Whether the least error is `patience` results ago, or there is no hope of one."""
    if errors and not np.isfinite(errors[-1]):
        return True
    return len(errors) > patience and min(errors[-patience:]) > min(errors)


def recommended(train: Ratings, request: Request) -> Iterator[Row]:
    """How long the best items for all users take."""
    recommend = TOPS[request["peer"]](train, request)
    for repeat in range(request["repeats"]):
        start = time.perf_counter()
        found = recommend()
        yield {
            "repeat": repeat,
            "seconds": time.perf_counter() - start,
            "users": len(found),
            "items": len(found[0]),
        }


def answer(request: Request) -> Iterator[Row]:
    """What is asked for."""
    folder = Path(request["folder"])
    train = ratings(folder, "train")
    if request["task"] == "top":
        return recommended(train, request)
    return trained(train, ratings(folder, "test"), request)


if __name__ == "__main__":
    serve(PACKAGES, answer)
