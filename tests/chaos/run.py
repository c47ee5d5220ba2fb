"""`make chaos`: a storm of signals on trainings, for some seconds. Prints counts and violations.

python -m tests.chaos.run --seconds 60 --seed 1
python -m tests.chaos.run --seed 1 --case 17     (again, what a violation names)
"""

import argparse
import itertools
import os
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

from tests.chaos import cases, checks, victims
from tests.chaos.cases import MOMENTS, SURROUNDINGS, WITH_WORKERS, Case
from tests.chaos.storm import LOOK, Ended, Running

SHARED_MEMORY = Path("/dev/shm")
FOREIGN = ("joblib", "sem.", "pym-")  # names that other libraries make there


def main() -> int:
    options = _options()
    _restrict(SURROUNDINGS, options.surroundings)
    _restrict(MOMENTS, options.moment)
    WITH_WORKERS[:] = [moment for moment in WITH_WORKERS if moment in MOMENTS] or [*MOMENTS]
    # Not a TemporaryDirectory: each forked program would remove it as it ends
    folder = Path(tempfile.mkdtemp(prefix="chaos-"))
    try:
        storm = Storm(folder, options.seed)
        storm.prepare()
        deadline = time.monotonic() + options.seconds
        numbers: Iterator[int] = itertools.count(options.first)
        if options.case is not None:
            numbers, deadline = itertools.repeat(options.case, options.times), float("inf")
            options.jobs = 1  # all of them have the same folder
        began = time.monotonic()
        storm.run(numbers, deadline, options.jobs)
        print(storm.table(time.monotonic() - began))
    finally:
        shutil.rmtree(folder)
    return 1 if storm.violations else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="A storm of signals on trainings.")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=2, help="cases at a time")
    parser.add_argument("--first", type=int, default=0, help="number of the first case")
    parser.add_argument("--case", type=int, help="only this case")
    parser.add_argument("--surroundings", choices=SURROUNDINGS, help="only these")
    parser.add_argument("--moment", choices=MOMENTS, help="only then; of what reports moments")
    parser.add_argument("--times", type=int, default=1, help="how often to repeat it")
    return parser.parse_args()


def _restrict(weights: dict[str, int], only: str | None) -> None:
    if only:
        for name in weights.keys() - {only}:
            del weights[name]


class Storm:
    """Runs cases one after the other, some at a time, and counts what became of them."""

    def __init__(self, folder: Path, seed: int) -> None:
        self._folder, self._seed = folder, seed
        self._data, self._old = folder / "data", b""
        self._usable: set[str] = set()
        self._names = _shared_names()
        self._ended: list[Ended] = []
        self.violations = 0

    def prepare(self) -> None:
        """Writes the data and an old model, and finds out which surroundings can be had."""
        self._data.mkdir()
        cases.write_data(self._data)
        plain = Case(self._seed, -1, cases.FORKED, "ratings.csv", {"task": "mf"}, [], "plain", 0,
                     False, [])  # fmt: skip
        ended = self._one(plain)
        self._old = (ended.folder / victims.MODEL).read_bytes()
        self._usable = set(SURROUNDINGS)
        if not _is_possible(lambda: victims.mount_small(str(self._folder / "disk"), 1 << 20)):
            self._usable -= {"small disk", "small /dev/shm"}
            print("without small disks: only root may mount them")
        if not _is_possible(lambda: victims.limit_memory(1 << 30)):
            self._usable.discard("memory group")
            print("without limits of memory: they need root, and control groups of version 1")

    def run(self, numbers: Iterator[int], deadline: float, jobs: int) -> None:
        """Runs cases until the deadline."""
        running: list[Running] = []
        while True:
            while len(running) < jobs and time.monotonic() < deadline:
                number = next(numbers, None)
                if number is None:
                    deadline = 0
                    break
                running.append(self._begin(cases.drawn(self._seed, number, self._usable)))
            if not running:
                break
            for one in list(running):
                if (ended := one.look()) is not None:
                    running.remove(one)
                    again = self._end(ended)
                    running += [] if again is None else [again]
            time.sleep(LOOK)
        cached = [one for one in self._ended if "--cache" in one.case.flags]
        left = [path.name for path in self._data.glob(".*")]
        if left and not any(map(checks.was_killed, cached)):  # between two names of a cache
            self._complain(f"left beside the data: {', '.join(left)}")
        if left := _shared_names() - self._names:
            self._complain(f"left in {SHARED_MEMORY}: {', '.join(sorted(left))}")

    def _one(self, case: Case) -> Ended:
        running = self._begin(case)
        while (ended := running.look()) is None:
            time.sleep(LOOK)
        return ended

    def _begin(self, case: Case) -> Running:
        folder = self._folder / f"{case.number}"
        shutil.rmtree(folder, ignore_errors=True)
        (folder / "tmp").mkdir(parents=True)
        (folder / "out").touch()
        (folder / "err").touch()
        if case.has_old_model:
            (folder / victims.MODEL).write_bytes(self._old)
        return Running(case, folder, self._data)

    def _end(self, ended: Ended) -> Running | None:
        """Checks what is left of a case; the next attempt, if it is started again."""
        self._ended.append(ended)
        case = ended.case
        found = checks.violations(ended)
        goes_on = case.resumes and ended.code in (-signal.SIGKILL, checks.INTERRUPTED)
        if goes_on and case.attempt > cases.ATTEMPTS:
            found.append("it does not end though nothing happens to it")
        if not found and ended.code == 0 and case.is_repeatable and (ended.dealt or case.attempt):
            found = checks.differences(ended, self._one(case.undisturbed))
        if found:
            self._complain("; ".join(found))
            errors = (ended.folder / "err").read_text(errors="replace").strip()
            again = f"python -m tests.chaos.run --seed {case.seed} --case {case.number} --times 20"
            print(f"  {case}\n  exit code {ended.code} after {ended.seconds:.2f} s, dealt:")
            print("".join(f"    {cases.told(blow)}\n" for blow in ended.dealt), end="")
            print("".join(f"  | {line}\n" for line in errors.splitlines()[-60:]), end="")
            again += f" --surroundings '{case.surroundings}'" * (len(SURROUNDINGS) == 1)
            again += f" --moment {next(iter(MOMENTS))}" * (len(MOMENTS) == 1)
            print(f"  again: {again}", flush=True)
        if goes_on and not found:
            return Running(case.started_again, ended.folder, self._data)
        shutil.rmtree(ended.folder)
        return None

    def _complain(self, text: str) -> None:
        self.violations += 1
        print(f"VIOLATION: {text}", flush=True)

    def table(self, seconds: float) -> str:
        """The counts."""
        ended, dealt = self._ended, [blow for one in self._ended for blow in one.dealt]
        own = [one.outlived for one in ended if one.case.way != "forking"]
        lines = [
            f"seed {self._seed}: {len(ended)} cases with {len(dealt)} signals in {seconds:.0f} s",
            _counted("ways", (one.case.way for one in ended)),
            _counted("signals", (f"{blow.number.name} {blow.target}" for blow in dealt)),
            _counted("moments", (blow.moment for blow in dealt)),
            _counted("tasks", (one.case.options["task"] for one in ended)),
            _counted("strategies", (one.case.options.get("strategy", "-") for one in ended)),
            _counted("solvers", (one.case.options.get("solver", "-") for one in ended)),
            _counted("surroundings", (one.case.surroundings for one in ended)),
            f"started again from checkpoints: {sum(one.case.attempt > 0 for one in ended)} times, "
            f"and {sum(one.case.attempt > 0 and one.code == 0 for one in ended)} came to their end",
            _counted("exit codes", (one.code for one in ended)),
            f"workers were seen at most {max(own, default=0):.2f} s after the end of their program",
            f"violations: {self.violations}",
        ]
        return "\n".join(lines)


def _counted(name: str, found: Iterator[object]) -> str:
    counts = sorted(Counter(map(str, found)).items(), key=lambda item: -item[1])
    return f"{name:13}" + ", ".join(f"{what} {count}" for what, count in counts)


def _shared_names() -> set[str]:
    if not SHARED_MEMORY.is_dir():
        return set()
    names = {path.name for path in SHARED_MEMORY.iterdir()}
    return {name for name in names if not name.startswith(FOREIGN)}


def _is_possible(what: Callable[[], bool]) -> bool:
    """Whether a process can do what changes its surroundings; a forked one tries."""
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            code = 0 if what() else 1
        finally:
            os._exit(code)
    status = os.waitpid(pid, 0)[1]
    victims.remove_group(pid)
    return os.waitstatus_to_exitcode(status) == 0


if __name__ == "__main__":
    sys.exit(main())
