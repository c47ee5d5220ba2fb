"""SIGTERM and SIGHUP to the whole process group: the program ends as by Ctrl-C, at any moment."""

import os
import pty
import random
import re
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import pytest

import hogwild
from hogwild.cli import main
from hogwild.data.synthetic import rcv1

Start = Callable[..., subprocess.Popen[str]]
Process = subprocess.Popen[str]

TRAIN = f"{sys.executable} -m hogwild train train.svm --workers 2 --tol 0 --model so-far.hog"
TRAIN += " --solver sgd"  # others come to an end
ENDLESS = f"exec {TRAIN} --epochs 1000000"
KEPT = "hogwild: interrupted; the model so far is in so-far.hog\n"
NOTHING_LEARNED = "hogwild: interrupted\n"
DONE = "hogwild: interrupted; training was done, and all that was asked for is written\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    hogwild.save(rcv1(5000, 2000)[0], tmp_path / "train.svm")
    return tmp_path


@pytest.fixture
def shell(start: Start, folder: Path) -> Callable[[str], Process]:
    """Starts a line of shell in that folder."""
    return lambda line: start(["sh", "-c", line], cwd=folder)


def until(happened: Callable[[], object], seconds: float = 20) -> None:
    deadline = time.monotonic() + seconds
    while not happened():
        assert time.monotonic() < deadline, "it never happened"
        time.sleep(0.0005)


def catches(pid: int, number: int) -> bool:
    status = Path(f"/proc/{pid}/status").read_text()
    return bool(int(re.findall(r"SigCgt:\t(\w+)", status)[0], 16) >> (number - 1) & 1)


def read_epochs(process: Process, count: int) -> None:
    """Returns when so many more epochs are done."""
    assert process.stdout is not None
    while count:
        line = process.stdout.readline()
        assert line, "it ended"
        count -= bool(re.match(r" +\d+ ", line))


def workers_of(process: Process) -> list[psutil.Process]:
    return list(psutil.Process(process.pid).children())


def gone(processes: list[psutil.Process]) -> bool:
    return not any(map(lives, processes))


def lives(process: psutil.Process) -> bool:
    try:
        return bool(process.status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:  # it may end between any two questions
        return False


def writes_in(folder: Path, process: psutil.Process) -> bool:
    """Whether a process has a file in that folder that has no name yet."""
    for number in Path(f"/proc/{process.pid}/fd").glob("*"):
        with suppress(OSError):
            file = number.readlink()
            if file.parent == folder and "(deleted)" in file.name:
                return True
    return False


def problems_of(process: Process, folder: Path) -> str:
    """What it complained of. It has ended in good order: nothing is left, no file is half."""
    _, problems = process.communicate(timeout=10)
    check_order(folder, problems)
    return problems


def check_order(folder: Path, problems: str) -> None:
    """No file is left that is not whole."""
    assert not list(folder.glob(".hogwild-*"))
    saved = folder / "so-far.hog"
    assert saved.exists() == (problems != NOTHING_LEARNED)
    if saved.exists():
        hogwild.load_model(saved)
        saved.unlink()


# The program


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize("before", ["", "trap '' INT; "], ids=["in front", "in the background"])
def test_the_model_so_far_is_saved(
    shell: Callable[[str], Process], folder: Path, number: signal.Signals, before: str
) -> None:
    process = shell(before + ENDLESS)
    read_epochs(process, 3)
    workers = workers_of(process)
    os.killpg(process.pid, number)
    assert problems_of(process, folder) == KEPT
    assert process.returncode == 130
    assert len(workers) == 2
    assert gone(workers)


@pytest.mark.parametrize("moment", ["start", "training"])
def test_it_ends_in_good_order_at_any_moment(
    shell: Callable[[str], Process], folder: Path, moment: str
) -> None:
    rng = random.Random(moment)
    for _ in range(5):
        process = shell(ENDLESS)
        until(lambda pid=process.pid: catches(pid, signal.SIGTERM))
        if moment == "training":
            read_epochs(process, 1)
        time.sleep(rng.uniform(0, 0.05 if moment == "training" else 0.8))
        numbers = rng.choices([signal.SIGTERM, signal.SIGHUP], k=rng.choice([1, 2]))
        for number in numbers:  # `timeout` sends two SIGTERM, a service manager may send both
            os.killpg(process.pid, number)
        problems = problems_of(process, folder)
        assert process.returncode == 130, problems
        assert problems in {KEPT} | ({NOTHING_LEARNED} if moment == "start" else set())


def test_what_is_being_saved_is_saved(shell: Callable[[str], Process], folder: Path) -> None:
    hogwild.save(rcv1(500, 5_000_000)[0], folder / "train.svm")  # 20 MB of weights
    for _ in range(20):
        process = shell(f"exec {TRAIN} --epochs 2")
        saving = psutil.Process(process.pid)
        until(lambda one=saving: writes_in(folder, one) or not lives(one))
        os.killpg(process.pid, signal.SIGTERM)
        problems = problems_of(process, folder)
        assert (process.returncode, problems) in [(130, DONE), (0, "")]
        if process.returncode:  # else it was too late
            return
    raise AssertionError("the signal was never in time")


def test_a_signal_at_the_very_beginning_ends_it_without_a_traceback(
    shell: Callable[[str], Process], folder: Path
) -> None:
    rng = random.Random(0)
    for _ in range(4):
        process = shell(ENDLESS)
        time.sleep(rng.uniform(0, 0.1))
        os.killpg(process.pid, signal.SIGTERM)
        _, problems = process.communicate(timeout=10)
        # Before there is any hogwild in the process it is the system that ends it
        assert (process.returncode, problems) in [(130, NOTHING_LEARNED), (-signal.SIGTERM, "")]


def test_the_timeout_command_ends_it_in_good_order(
    shell: Callable[[str], Process], folder: Path
) -> None:
    for seconds in (3, 6, 12, 24):
        process = shell(f"timeout --preserve-status {seconds} {ENDLESS.removeprefix('exec ')}")
        said, problems = process.communicate(timeout=seconds + 10)
        if re.search(r"^ +2 ", said, re.MULTILINE):  # else nothing was learned yet
            break
    assert problems == KEPT
    check_order(folder, problems)
    assert process.returncode == 130


def test_a_sighup_that_nohup_ignores_stays_ignored(
    shell: Callable[[str], Process], folder: Path
) -> None:
    process = shell(f"trap '' HUP; exec {TRAIN} --epochs 300")
    read_epochs(process, 1)
    os.killpg(process.pid, signal.SIGHUP)
    assert problems_of(process, folder) == ""
    assert process.returncode == 0


def test_a_closed_terminal_saves_the_model_so_far(folder: Path) -> None:
    """Its end of the line gets SIGHUP, and nothing can be written any more."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(folder)
        signal.signal(signal.SIGHUP, signal.SIG_DFL)
        os.execvp("sh", ["sh", "-c", ENDLESS])
    process = psutil.Process(pid)
    try:
        said = b""
        while not re.search(rb"^ +3 ", said, re.MULTILINE):  # the third epoch is done
            said += os.read(terminal, 1000)
        os.close(terminal)
        until(lambda: process.status() == psutil.STATUS_ZOMBIE)
    finally:
        process.kill()
        _, status = os.waitpid(pid, 0)
    assert os.waitstatus_to_exitcode(status) == 130
    assert hogwild.load_model(folder / "so-far.hog").about["trace"]["reason"] == "interrupted"


# Programs that use hogwild

LIBRARY = """
    import os, signal, time
    import hogwild
    from hogwild.data.synthetic import rcv1

    class Told(hogwild.Watcher):
        def epoch(self, row):
            if row["epoch"] == 2:
                print("training", flush=True)
                {do}

    heard = []
    {handler}
    before = [signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)]
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, [])
    result = hogwild.train(rcv1(500)[0], workers=2, epochs=10, tol=0, eta0=0.5, watcher=Told())
    assert before == [signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)]
    assert mask == signal.pthread_sigmask(signal.SIG_BLOCK, [])
    print(result.reason, len(result.trace), len(heard))
"""


def script(do: str = "pass", handler: str = "") -> list[str]:
    return [sys.executable, "-c", textwrap.dedent(LIBRARY).format(do=do, handler=handler)]


def test_a_handler_of_the_users_own_hears_of_it_and_training_goes_on(start: Start) -> None:
    handler = "signal.signal(signal.SIGTERM, lambda *_: heard.append(1))"
    process = start(script("os.killpg(0, signal.SIGTERM)", handler))
    said, problems = process.communicate(timeout=30)
    assert (said, problems, process.returncode) == ("training\nepochs 10 1\n", "", 0)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_workers_go_with_a_program_that_the_signal_ends(
    start: Start, number: signal.Signals
) -> None:
    process = start(script("time.sleep(60)"))
    assert process.stdout is not None
    assert process.stdout.readline() == "training\n"
    workers = workers_of(process)
    assert len(workers) == 2
    process.send_signal(number)
    assert process.wait(timeout=10) == -number
    until(lambda: gone(workers), 2)


def test_workers_at_work_go_when_their_parent_is_killed(start: Start) -> None:
    """An epoch takes seconds, and nobody is left to ask them to stop."""
    process = start(
        [
            sys.executable,
            "-c",
            textwrap.dedent("""
                import numpy as np
                import hogwild

                class Told(hogwild.Watcher):
                    def tick(self, epoch, share, seconds):
                        print("training", flush=True)

                size, each = 100_000, 40
                columns = np.random.default_rng(0).integers(0, 3_000, size * each)
                rows = hogwild.Rows.from_arrays(
                    np.arange(size + 1) * each, columns.astype(np.uint32),
                    np.ones(size * each, np.float32), 3_000, np.arange(size) % 2,
                )
                hogwild.train(rows, workers=2, strategy="locked", epochs=10_000, tol=0, eta0=1e-3,
                              objective_every=0, watcher=Told())
            """),
        ]
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "training\n"
    workers = workers_of(process)
    assert len(workers) == 2
    process.kill()
    until(lambda: gone(workers), 2)


def test_there_is_no_moment_after_the_fork_at_which_a_worker_dies_of_it(start: Start) -> None:
    """The first thing that a worker's Python does is to send the signals to itself."""
    hook = (
        "os.register_at_fork(after_in_child=lambda: "
        "[os.kill(os.getpid(), n) for n in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)])"
    )
    process = start(script(handler=hook))
    said, problems = process.communicate(timeout=30)
    assert (said, problems, process.returncode) == ("training\nepochs 10 0\n", "", 0)


def test_main_called_by_a_program_leaves_its_handlers_alone(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*data: Any, **options: Any) -> None:
        raise KeyboardInterrupt

    numbers = signal.SIGINT, signal.SIGTERM, signal.SIGHUP
    before = [signal.getsignal(number) for number in numbers]
    words = ["train", str(folder / "train.svm"), "--epochs", "1", "--quiet"]
    assert main(words) == 0
    with monkeypatch.context() as patch:
        patch.setattr("hogwild.cli.train.train", interrupted)
        assert main(words) == 130
    assert main(words) == 0
    assert [signal.getsignal(number) for number in numbers] == before


IN_THE_FIRST = """
import runpy, sys

class Finder:
    def find_spec(self, name, *more):
        if name == "hogwild.interrupt":
            raise KeyboardInterrupt

sys.meta_path.insert(0, Finder())
runpy.run_module("hogwild", run_name="__main__")
"""
IN_THE_LAST = """
import atexit, os, runpy, signal, sys

def late():
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        os.kill(os.getpid(), number)

atexit.register(late)
sys.argv[1:] = ["completion", "bash"]
runpy.run_module("hogwild", run_name="__main__")
"""


@pytest.mark.parametrize(("script", "code"), [(IN_THE_FIRST, 130), (IN_THE_LAST, 0)])
def test_signals_in_the_first_and_last_milliseconds(script, code, start):
    done = start([sys.executable, "-c", script])
    assert done.communicate(timeout=60)[1] == ""
    assert done.returncode == code


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_within_a_destructor_is_not_lost(number: signal.Signals, start: Start) -> None:
    """Python prints an exception that is raised there, and goes on."""
    program = f"""
        import os, time, weakref
        from hogwild.interrupt import heed_endings

        class Thing:
            pass

        heed_endings()
        thing = Thing()
        reference = weakref.ref(thing, lambda _: os.kill(os.getpid(), {int(number)}))
        try:
            del thing
            time.sleep(30)
        except KeyboardInterrupt:
            print("interrupted")
    """
    done = start([sys.executable, "-c", textwrap.dedent(program)])
    assert done.communicate(timeout=60) == ("interrupted\n", "")
