"""What must hold after a case, whatever was done to it."""

import re
import signal
from pathlib import Path

import numpy as np

from hogwild import model_file
from hogwild.errors import HogwildError
from hogwild.learn.registry import load_model
from tests.chaos.cases import COMMAND, FORKED, Case
from tests.chaos.storm import Ended
from tests.chaos.victims import MODEL

KNOWN = {"out", "err", "tmp", "disk", "trace.jsonl", "checkpoint", MODEL}
FORBIDDEN = (
    *("Traceback", "Exception ignored", "Fatal Python error", "bug of hogwild", "terminate called"),
    *("DeprecationWarning", "ResourceWarning", "leaked"),
)
OF_LLVM = ("std::bad_alloc", "LLVM ERROR: out of memory")  # which ends the process then
INTERRUPTED = 130
DEATHS = 5  # of workers, which training survives
ENDINGS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


def violations(ended: Ended) -> list[str]:
    """What does not hold."""
    found = []
    if ended.hung:
        found.append(f"it hung for {ended.seconds:.0f} s")
    if ended.strays:
        found.append(f"processes {ended.strays} outlived their program")
    errors = (ended.folder / "err").read_text(errors="replace")
    if not ended.hung:
        found += _of_code(ended, errors)
    if ended.case.surroundings != "little memory" or not any(some in errors for some in OF_LLVM):
        found += [f"{word!r} in its errors" for word in FORBIDDEN if word in errors]
    if _in_pythons_own_start(ended.case, errors):
        found = [text for text in found if "in its errors" not in text]
    found += _of_files(ended, errors)
    return found


def differences(ended: Ended, undisturbed: Ended) -> list[str]:
    """Where the model is not that of the same training to which nothing happened."""
    found, wanted = (model_file.read(one.folder / MODEL)[1] for one in (ended, undisturbed))
    return [
        f"{name} of the model differs from that of an undisturbed training"
        for name in found.keys() | wanted.keys()
        if name not in found
        or name not in wanted
        or found[name].tobytes() != wanted[name].tobytes()
    ]


def _in_pythons_own_start(case: Case, errors: str) -> bool:
    """Whether Ctrl-C came, or files ran out, before Python had started hogwild's program."""
    begun = re.search(r"hogwild/(?!__init__)[\w/]+\.py", errors)
    no_files = case.surroundings == "few files" and "Fatal Python error: init" in errors
    early = "KeyboardInterrupt" in errors or no_files
    return case.way == COMMAND and early and not begun


def _of_code(ended: Ended, errors: str) -> list[str]:
    case = ended.case
    hits = {blow.number for blow in ended.dealt if blow.target != "worker"}
    allowed = {0}
    if signal.SIGKILL in hits or case.surroundings == "memory group":  # where the system kills
        allowed.add(-signal.SIGKILL)
    if hits.intersection(ENDINGS):
        allowed.add(INTERRUPTED)
        early = any(blow.moment == "start" for blow in ended.dealt)
        if early or case.way != FORKED:  # before hogwild heeds it, or in a program that does not
            allowed |= {-number for number in hits.intersection(ENDINGS)}
    may_give_up = not case.is_gentle or len(ended.dealt) > DEATHS or hits
    if "hogwild: " in errors and (may_give_up or "hogwild: worker" not in errors):
        allowed |= {1, 2}
    if not case.is_gentle:
        allowed |= {1, 2}
    if _in_pythons_own_start(case, errors):
        allowed.add(1)
    if case.surroundings in ("little memory", "few files"):
        allowed.add(127)  # the system's loader of libraries gives up
    if case.surroundings == "little memory" and any(some in errors for some in OF_LLVM):
        allowed.add(-signal.SIGABRT)
    return [] if ended.code in allowed else [f"exit code {ended.code}"]


def _of_files(ended: Ended, errors: str) -> list[str]:
    names = {path.name for path in ended.folder.iterdir()} - KNOWN - between_names(ended)
    found = [f"{name} was left over" for name in sorted(names)]
    if "it is kept in" not in errors:
        rescued = list((ended.folder / "tmp").glob("*.hog"))
        found += [f"tmp/{path.name} was left over" for path in rescued]
    if ended.case.surroundings == "small disk":  # it is gone with its processes
        return found
    path = ended.folder / MODEL
    if not path.exists():
        if ended.old is not None:
            found.append("the old model is gone")
        if ended.code == 0:
            found.append("there is no model")
        return found
    if path.read_bytes() == ended.old:
        if ended.code == 0:
            found.append("the old model is still there")
        return found
    return found + _of_model(path)


def between_names(ended: Ended) -> set[str]:
    """Whole files that a kill has left there under a name of their own.

    No single call replaces a file by a new one: for a moment that one has another name, which the
    next writer of the file takes away.
    """
    if not (was_killed(ended) or ended.case.attempt):
        return set()
    return {path.name for path in ended.folder.glob(".hogwild-*.part") if _is_whole(path)}


def was_killed(ended: Ended) -> bool:
    """Whether a signal ended the program on the spot."""
    return ended.code < 0


def _is_whole(path: Path) -> bool:
    if path.read_bytes().startswith(b"{"):  # a trace
        return path.read_bytes().endswith(b"}\n")
    try:
        model_file.read(path)  # a model or a checkpoint
    except HogwildError:
        return False
    return True


def _of_model(path: Path) -> list[str]:
    try:
        load_model(path)
        arrays = model_file.read(path)[1]
    except HogwildError as problem:
        return [f"the model is damaged: {problem}"]
    return [
        f"{name} of the model holds numbers that are not finite"
        for name, array in arrays.items()
        if array.dtype.kind == "f" and not np.isfinite(array).all()
    ]
