"""What runs in a case, in a process of its own: a command, or a program that uses hogwild.

A forked program reports the moments that it comes to, so that a blow hits where it is meant to. A
blow without a delay is dealt by the program itself: within the very call.
"""

import asyncio
import ctypes
import faulthandler
import os
import resource
import signal
import sys
import threading
import traceback
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import hogwild

# Before a limit of memory comes: Python may fail to import scikit-learn there without an exception
import hogwild.estimators
from hogwild import cli, machine, status
from hogwild.cli import main
from hogwild.data.ratings import Ratings
from hogwild.kernels import compile
from hogwild.parallel.pool import close_pool
from hogwild.parallel.processes import held_back
from tests.chaos.cases import COMMAND, FORKED, MOMENTS, Blow, Case, words_of

MODEL = "m.hog"
NEW_MOUNTS = 0x00020000  # CLONE_NEWNS, of <linux/sched.h>
PRIVATE = 0x44000  # MS_REC | MS_PRIVATE, of <linux/mount.h>
GROUPS = Path("/sys/fs/cgroup/memory")  # of control groups, version 1
GARBAGE = (
    *("", "max", "max 100000", "0 0", "-1 5", "1e9 x", "\0\xff", "9" * 40 + " 1", "50000 100000"),
    *("150000 100000", "nan nan", "1", "5000000000", "\n\n", "٣ ٤"),
)
AUDITED = {"open": "opening", "os.rename": "renaming", "os.fork": "forking"}


def start(case: Case, folder: Path, data: Path) -> tuple[int, int]:
    """Starts a case in its folder. Its process, and a pipe with the moments that it comes to."""
    reading, writing = os.pipe()
    os.set_blocking(reading, False)
    pid = os.fork()
    if pid:
        os.close(writing)
        return pid, reading
    code = 130
    try:
        os.close(reading)
        _begin(case, folder)
        if case.way == COMMAND:
            words = words_of(case, data / case.data, Path(MODEL))
            os.execv(sys.executable, [sys.executable, "-m", "hogwild", *words])
        _Moments(writing, [blow for blow in case.blows if not blow.delay])
        code = _run(case, data)
    except KeyboardInterrupt:
        pass
    except BaseException:
        traceback.print_exc()
        code = 70
    finally:
        os._exit(code)


def _begin(case: Case, folder: Path) -> None:
    os.setsid()
    os.chdir(folder)
    for name, number in (("out", 1), ("err", 2)):
        file = os.open(name, os.O_WRONLY | os.O_TRUNC)
        os.dup2(file, number)
        os.close(file)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    faulthandler.register(signal.SIGUSR2)  # what it did when it hung
    os.environ |= {"TMPDIR": str(folder / "tmp"), "PYTHONPATH": os.pathsep.join(sys.path)}
    _SURROUNDINGS[case.surroundings](case, folder)


def _run(case: Case, data: Path) -> int:
    if case.way == FORKED:
        sys.argv = ["hogwild", *words_of(case, data / case.data, Path(MODEL))]
        return main()
    try:
        PROGRAMS[case.way](case, _loaded(data / case.data))
        code = 0
    except hogwild.HogwildError as problem:
        print(f"hogwild: {problem}", file=sys.stderr)
        code = 1
    except (OSError, MemoryError, ImportError) as problem:
        if case.is_gentle:
            raise
        print(f"hogwild: {problem!r}", file=sys.stderr)
        code = 1
    close_pool()
    return code


def _loaded(path: Path) -> Any:
    return hogwild.load_ratings(path) if path.suffix == ".csv" else hogwild.load(path)


class _Moments:
    """Reports the moments that this process comes to, and deals the blows that are due then."""

    def __init__(self, pipe: int, blows: list[Blow]) -> None:
        self._pipe, self._blows, self._process = pipe, blows, os.getpid()
        self._counts: Counter[str] = Counter()
        # The storm hears of a moment before its blow ends the program
        self._lock = threading.RLock()
        doing, leave, at = status.doing, cli._leave, status.Doing.at

        def doing_heard(what: str, *more: Any, **named: Any) -> Any:
            self.come_to(what.split(maxsplit=1)[0])
            return doing(what, *more, **named)

        def leave_heard(code: int) -> None:
            self.come_to("closing")
            leave(code)

        def at_heard(now: status.Doing, share: float | None, more: str = "") -> None:
            self.come_to(more)
            at(now, share, more)

        status.doing, cli._leave = doing_heard, leave_heard
        status.Doing.at = at_heard  # type: ignore[method-assign]
        sys.addaudithook(self._audited)
        self.come_to("start")

    def _audited(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event in AUDITED and (event != "open" or ".hogwild-" in str(arguments[0])):
            self.come_to(AUDITED[event])

    def come_to(self, moment: str) -> None:
        if moment not in MOMENTS or os.getpid() != self._process:
            return
        with self._lock:
            self._counts[moment] += 1
            os.write(self._pipe, f"{moment}\n".encode())
            for blow in self._blows:
                if (blow.moment, blow.count) == (moment, self._counts[moment]):
                    send = os.killpg if blow.target == "group" else os.kill
                    send(self._process, blow.number)


# Programs


def _train(case: Case, data: Any, **more: Any) -> None:
    _heed(hogwild.train(data, **(case.options | more)))


def _heed(result: Any) -> None:
    """After Ctrl-C, what was learned so far is returned: a program has to look whether it was."""
    if result.reason == "interrupted":
        raise KeyboardInterrupt


def _again(case: Case, data: Any) -> None:
    for seed in (1, 2):
        _train(case, data, seed=seed)
    _train(case, data, model=MODEL)


def _in_threads(count: int, case: Case, data: Any) -> None:
    """Trains in threads; one of them writes the model."""
    failures: list[BaseException] = []

    def work(rank: int) -> None:
        try:
            _train(case, data, model=None if rank else MODEL)
        except BaseException as failure:
            failures.append(failure)

    threads = [threading.Thread(target=work, args=(rank,)) for rank in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for failure in failures:
        raise failure


def _search(case: Case, data: Any) -> None:
    if isinstance(data, Ratings):
        _train(case, data, model=MODEL)
        return
    _heed(hogwild.search(data, folds=2, model=MODEL, **case.options))


def _forking(case: Case, data: Any) -> None:
    """Trains, and so does a process that the user forks."""
    _train(case, data)
    with held_back({signal.SIGINT}):  # Python loses it, loudly, within what it calls after a fork
        child = os.fork()
    if child == 0:
        code = 1
        try:
            _train(case, data)
            close_pool()
            code = 0
        except (hogwild.HogwildError, KeyboardInterrupt):
            pass
        finally:
            os._exit(code)
    try:
        _train(case, data, model=MODEL)
    finally:
        os.waitpid(child, 0)


def _asyncio(case: Case, data: Any) -> None:
    async def work() -> None:
        await asyncio.gather(
            asyncio.to_thread(_train, case, data, model=MODEL),
            asyncio.to_thread(_train, case, data),
        )

    asyncio.run(work())


def _estimator(case: Case, data: Any) -> None:
    n_jobs = case.options.get("workers", 1)
    if isinstance(data, Ratings):
        hogwild.MatrixFactorization(rank=4, n_jobs=n_jobs, epochs=5).fit(data)
        _train(case, data, model=MODEL)
        return
    kind = {"regression": hogwild.HogwildRegressor}.get(
        case.options["task"], hogwild.HogwildClassifier
    )
    kind(n_jobs=n_jobs, max_iter=10, tol=0, solver="sgd").fit(data)
    _train(case, data, model=MODEL)


def _checked(case: Case, data: Any) -> None:
    """Looks at the model after every epoch."""

    class Looking(hogwild.Callback):
        def epoch(self, row: dict[str, Any]) -> None:
            self.run.measured()
            self.run.model()

    _train(case, data, model=MODEL, callbacks=[Looking()])


PROGRAMS: dict[str, Callable[[Case, Any], None]] = {
    "again": _again,
    "thread": partial(_in_threads, 1),
    "side by side": partial(_in_threads, 2),
    "search": _search,
    "forking": _forking,
    "asyncio": _asyncio,
    "estimator": _estimator,
    "checked": _checked,
}


# Surroundings


def _plain(case: Case, folder: Path) -> None:
    pass


def _one_core(case: Case, folder: Path) -> None:
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})


def _limit(which: int, least: float, most: float) -> Callable[[Case, Path], None]:
    def limit(case: Case, folder: Path) -> None:
        amount = int(least * (most / least) ** case.amount)
        resource.setrlimit(which, (amount, resource.getrlimit(which)[1]))

    return limit


def _little_memory(case: Case, folder: Path) -> None:
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    more = (1 << 22) * 256**case.amount  # 4 MiB to 1 GiB
    limit = int(used + more) if case.way != COMMAND else int(3e8 + 8 * more)
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


def _full_output(case: Case, folder: Path) -> None:
    full = os.open("/dev/full", os.O_WRONLY)
    os.dup2(full, 1)
    os.close(full)


def _home(home: str) -> Callable[[Case, Path], None]:
    def set_home(case: Case, folder: Path) -> None:
        os.environ["HOME"] = home
        compile.cache_folder.cache_clear()

    return set_home


def _fresh_kernels(case: Case, folder: Path) -> None:
    from numba.core import config

    config.CACHE_DIR = os.environ["NUMBA_CACHE_DIR"] = str(folder / "tmp")
    compile.cache_folder.cache_clear()


def _strange_cgroups(case: Case, folder: Path) -> None:
    fake = folder / "tmp" / "cgroup"
    fake.mkdir()
    for place, name in enumerate(("cpu.max", "memory.max", "memory.current", "memory.stat")):
        text = GARBAGE[int(case.amount * 1e6 + 7 * place * case.number) % len(GARBAGE)]
        (fake / name).write_text(text)
    machine._cgroup_files = lambda *given: [fake / name for name in given[3:]]  # type: ignore[assignment]


def _mounted(place: str, least: int, most: int) -> Callable[[Case, Path], None]:
    def mount(case: Case, folder: Path) -> None:
        size = int(least * (most / least) ** case.amount)
        if not mount_small(str(folder / "disk") if place == "disk" else place, size):
            raise PermissionError(place)
        if place == "disk":
            os.chdir(folder / "disk")

    return mount


def mount_small(place: str, size: int) -> bool:
    """Mounts a memory disk, for this process and its children alone; whether that is possible."""
    libc = ctypes.CDLL(None, use_errno=True)
    Path(place).mkdir(exist_ok=True)
    given = f"size={size}".encode()
    return (
        libc.unshare(NEW_MOUNTS) == 0
        and libc.mount(b"none", b"/", None, PRIVATE, None) == 0
        and libc.mount(b"tmpfs", place.encode(), b"tmpfs", 0, given) == 0
    )


def _memory_group(case: Case, folder: Path) -> None:
    limit = (8 if case.way != COMMAND else 80) * 64**case.amount  # to 512 MB, or 5 GB
    if not limit_memory(int(limit * 1e6)):
        raise PermissionError(GROUPS)


def limit_memory(limit: int) -> bool:
    """Moves this process into a control group of its own; whether that is possible."""
    group = _group_of(os.getpid())
    try:
        group.mkdir()
        (group / "memory.limit_in_bytes").write_text(f"{limit}")
        (group / "cgroup.procs").write_text("0")
    except OSError:
        return False
    machine._cgroup_files.cache_clear()
    return True


def remove_group(pid: int) -> bool:
    """Removes the control group of a process that has ended; whether there is none any more."""
    try:
        _group_of(pid).rmdir()
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return True


def _group_of(pid: int) -> Path:
    return GROUPS / f"hogwild-chaos-{pid}"


_SURROUNDINGS: dict[str, Callable[[Case, Path], None]] = {
    "plain": _plain,
    "one core": _one_core,
    "few files": _limit(resource.RLIMIT_NOFILE, 4, 60),
    "small files": _limit(resource.RLIMIT_FSIZE, 4096, 10_000_000),  # so that errors fit
    "full output": _full_output,
    "strange cgroups": _strange_cgroups,
    "little memory": _little_memory,
    "no home": _home("/proc/nowhere/at/all"),
    "home is no folder": _home("/dev/null"),
    "fresh kernels": _fresh_kernels,
    "small disk": _mounted("disk", 4096, 20_000_000),
    "small /dev/shm": _mounted("/dev/shm", 65536, 65536),
    "memory group": _memory_group,
}
