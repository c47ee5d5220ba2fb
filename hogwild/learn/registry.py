"""The problem of each model family, and the model of each kind of model file."""

from typing import Any

from hogwild import model_file
from hogwild.checkpoint import KIND as CHECKPOINT
from hogwild.learn.factors import FactorProblem
from hogwild.learn.linear import LinearProblem
from hogwild.models.contents import TEXT, Contents
from hogwild.models.factors import FactorModel
from hogwild.models.heads import HeadsModel
from hogwild.models.linear import LinearModel
from hogwild.models.votes import VoteModel
from hogwild.paths import PathLike

PROBLEMS: dict[str, Any] = {"linear": LinearProblem, "factors": FactorProblem}  # by family
LINEAR = LinearModel, HeadsModel, VoteModel
MODELS: dict[str, Any] = {model.kind: model for model in (*LINEAR, FactorModel)}


def load_model(path: PathLike) -> Any:
    """Reads a model file. Nothing in it is executed."""
    file = Contents(*model_file.read(path))
    try:
        kind = file.get("kind", TEXT)
        if kind == CHECKPOINT:
            raise model_file.ModelFileError(
                f"{path} is a checkpoint, and no model: resume its training, which can save one"
            )
        if kind not in MODELS:
            raise model_file.ModelFileError(
                f"{path} holds a {kind} model, which this version of hogwild does not know: "
                "install a newer one"
            )
        return MODELS[kind].from_file(file)
    except model_file.DamageError as problem:
        raise model_file.damaged(path, problem) from None
