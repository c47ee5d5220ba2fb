"""Compiled kernels are kept in files of their own, and each is the one that was asked for."""

import hashlib
import importlib
import itertools
import os
import signal
import subprocess
import sys
import threading
import time
import types as python_types
from collections import namedtuple
from pathlib import Path

import numpy as np
import pytest
from numba import types
from numba.core import event

from hogwild import HogwildError
from hogwild.kernels import compile as compiling
from hogwild.kernels.compile import Kernel, always_inline, inline, seldom

SOURCE = """
from hogwild.kernels.compile import inline

@inline
def callee(x):
    return x + {added}  # {comment}

def kernel(x):
    return callee(x) * {factor}
"""

VARIANTS = """
import sys
import math
from numba import types
from hogwild.kernels.compile import Kernel, inline

def adder(constant):
    @inline
    def inner(x):  # too long to become a part of what calls it
        for k in range(int(x)):
            x += math.cos(x) * math.sin(x + k) + math.cos(x + k) * math.tan(x)
            x -= math.exp(x) * math.log(x + k) + math.sinh(x + k) * math.cosh(x)
        return x + constant

    def add(x):
        return inner(x) + 0 * inner(x + 1.0)
    return Kernel(add, types.float64(types.float64))

for constant in map(float, sys.argv[1:]):
    made = adder(constant)
    print(made(0.0) == constant, sum(made.compiled.stats.cache_hits.values()))
"""


def made_of(added: str = "1.0", factor: str = "2.0", comment: str = "", **kernel: bool) -> Kernel:
    """A kernel of its own module, with a callee."""
    module = python_types.ModuleType("made")
    exec(SOURCE.format(added=added, factor=factor, comment=comment), module.__dict__)
    return Kernel(module.kernel, types.float64(types.float64), **kernel)


@pytest.mark.parametrize("change", [{"added": "1.5"}, {"factor": "3.0"}, {"fast": False}])
def test_what_changes_the_machine_code_changes_the_fingerprint(change):
    assert made_of(**change).fingerprint != made_of().fingerprint


def test_the_order_of_fields_is_part_of_the_fingerprint():
    """The bytecode names a field, and the machine code counts it."""

    def made(fields):
        pair = namedtuple("Pair", fields)
        kind = types.BaseTuple.from_types((types.float64, types.float64), pair)
        return Kernel(lambda both: both[0].a, types.float64(types.UniTuple(kind, 1)))

    def maker(fields):
        pair = namedtuple("Pair", fields)
        return Kernel(lambda x: pair(x, 1.0).a, types.float64(types.float64))

    for make in (made, maker):
        assert make("a b").fingerprint == make("a b").fingerprint != make("b a").fingerprint


def test_a_comment_does_not():
    assert made_of(comment="says more").fingerprint == made_of().fingerprint


def test_kernels_that_differ_in_what_they_enclose_have_other_fingerprints():
    def made(constant):
        @inline
        def inner(x):
            return x * constant

        def outer(x):
            return inner(x) + 1.0

        return Kernel(outer, types.float64(types.float64))

    assert made(2.0).fingerprint == made(2.0).fingerprint != made(3.0).fingerprint


def test_too_little_memory_to_compile_is_an_error_and_no_end_of_the_process():
    """LLVM ends the process where it gets no memory for what it made."""
    script = """
import resource
from hogwild import HogwildError
from hogwild.kernels.evaluate import squared_norm
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + (3 << 20), -1))
try:
    squared_norm.compiled
except HogwildError as problem:
    print(problem)
"""
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    assert "MB to compile or load a kernel are not there" in done.stdout


def test_a_module_that_has_two_names_is_one():
    """Which of them `from numba import types` gives depends on what was imported before."""

    def made(module):
        return Kernel(lambda x: module.float64(x) + 1.0, types.float64(types.float64))

    names = "numba.types", "numba.core.types"
    one, other = (made(importlib.import_module(name)).fingerprint for name in names)
    assert one == other


def test_a_kernel_that_reaches_into_a_module_of_ours_is_refused():
    reaching = Kernel(lambda x: compiling.kernel, types.float64(types.float64))
    with pytest.raises(TypeError, match="import the name itself"):
        _ = reaching.fingerprint


def run_variants(folder: Path, *constants: str) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-c", VARIANTS, *constants],
        # Symbols have the order of a set of strings in them: always the same one
        env=os.environ | {"XDG_CACHE_HOME": str(folder), "PYTHONHASHSEED": "0"},
        stdout=subprocess.PIPE,
        text=True,
    )


def lines(process: "subprocess.Popen[str]") -> list[str]:
    output, _ = process.communicate(timeout=120)
    assert process.returncode == 0
    return output.splitlines()


def test_two_processes_that_compile_two_kernels_at_once_each_get_their_own(tmp_path):
    orders = ("1", "2", "3", "4"), ("4", "3", "2", "1")
    for found in [run_variants(tmp_path, *order) for order in orders]:
        assert all(line.startswith("True") for line in lines(found))
    # A fresh process finds them all, and they are right
    assert lines(run_variants(tmp_path, *orders[0])) == 4 * ["True 1"]


def test_kernels_that_different_processes_compiled_are_not_mixed_up(tmp_path):
    for constant in ("1", "2"):
        assert lines(run_variants(tmp_path, constant)) == ["True 0"]
    assert lines(run_variants(tmp_path, "1", "2")) == 2 * ["True 1"]
    assert lines(run_variants(tmp_path, "2", "1")) == 2 * ["True 1"]


def emptied(data: bytes) -> bytes:
    """A right checksum of nothing."""
    return hashlib.sha256(b"").digest()


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: data[:-9],
        lambda data: data[:99] + b"?" * 50,
        lambda data: b"",
        lambda data: bytes(len(data)),
        emptied,
    ],
)
def test_a_damaged_file_is_written_again(tmp_path, damage):
    lines(run_variants(tmp_path, "7"))
    (file,) = tmp_path.rglob("*.kernel")
    whole = file.read_bytes()
    file.write_bytes(damage(whole))
    assert lines(run_variants(tmp_path, "7")) == ["True 0"]
    assert lines(run_variants(tmp_path, "7")) == ["True 1"]
    assert [kept.name for kept in file.parent.iterdir()] == [file.name]


def test_a_damaged_file_is_deleted_and_compiling_is_told(tmp_path, monkeypatch):
    """Where it cannot be written again, it must not look as if it were known."""
    monkeypatch.setattr(compiling, "cache_folder", lambda: tmp_path)
    made_of(added="1.25")(np.float64(3))
    (file,) = tmp_path.iterdir()
    file.write_bytes(b"")
    monkeypatch.setattr(compiling._File, "save_overload", lambda *_: None)
    before = compiling._compiled
    assert made_of(added="1.25")(np.float64(3)) == 8.5
    assert compiling._compiled == before + 1
    assert not file.exists()


def test_a_process_that_is_forked_while_a_thread_compiles_can_compile(monkeypatch):
    monkeypatch.setattr(compiling, "cache_folder", lambda: None)
    ended, numbers = threading.Event(), itertools.count(100)

    def compile_on() -> None:
        while not ended.is_set():
            made_of(added=f"{next(numbers)}.0")(np.float64(3))

    thread = threading.Thread(target=compile_on)
    thread.start()
    try:
        for _ in range(5):
            time.sleep(0.03)
            child = os.fork()
            if child == 0:
                signal.alarm(20)  # ends one that hangs
                os._exit(int(made_of(added="2.25")(np.float64(3))))
            assert os.waitpid(child, 0)[1] == 10 << 8
    finally:
        ended.set()
        thread.join()


def test_without_a_folder_kernels_are_compiled_all_the_same(monkeypatch):
    monkeypatch.setattr(compiling, "cache_folder", lambda: None)
    assert made_of()(np.float64(3)) == 8.0


def test_a_system_without_what_kernels_call_is_refused_in_a_sentence(monkeypatch):
    monkeypatch.delattr("time.clock_gettime")
    with pytest.raises(HogwildError, match=r"needs clock_gettime .*: use Linux"):
        Kernel(lambda x: x, types.int64(types.int64))(1)


def test_a_helper_is_compiled_once_for_all_that_call_it(monkeypatch):
    monkeypatch.setattr(compiling, "cache_folder", lambda: None)

    @seldom
    def shared(x):
        return x + 1.0

    @always_inline
    def forced(x):
        return shared(x) * 2.0

    @inline
    def plain(x):
        return shared(x) * 3.0

    kernel = Kernel(lambda x: forced(x) + plain(x) + shared(x), types.float64(types.float64))
    with event.install_recorder("numba:compile") as recorder:
        assert kernel(1.0) == 12.0
    assert sum(found.is_start for _, found in recorder.buffer) == 4


def test_a_program_of_ours_compiles_without_scipy_and_loads_without_a_compiler(
    tmp_path: Path,
) -> None:
    """scipy.linalg takes 0.1 s to import, for products of matrices; the rest of numba as long."""
    (tmp_path / "a.svm").write_text("1 1:1\n-1 2:1\n")
    command = [sys.executable, "-X", "importtime", "-m", "hogwild", "inspect", "a.svm"]

    def imported() -> str:
        environment = os.environ | {"XDG_CACHE_HOME": str(tmp_path / "kept")}
        done = subprocess.run(
            command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True
        )
        return done.stderr

    compiling_it, loading_it = imported(), imported()
    assert "numba.np.math.mathimpl" in compiling_it
    assert "numba.np.math.mathimpl" not in loading_it
    assert "scipy.linalg" not in compiling_it + loading_it


def test_a_file_holds_no_bitcode_and_its_kernel_can_raise(tmp_path, monkeypatch):
    monkeypatch.setattr(compiling, "cache_folder", lambda: tmp_path)

    def chosen(numbers, which):
        if which >= len(numbers):
            raise IndexError("no such number")
        return numbers[which]

    def made() -> Kernel:
        return Kernel(chosen, types.float64(types.float64[::1], types.uint64))

    numbers = np.arange(5.0)
    for again in (False, True):
        kernel = made()
        assert kernel(numbers, np.uint64(3)) == 3.0
        assert sum(kernel.compiled.stats.cache_hits.values()) == again
        with pytest.raises(IndexError, match="no such number"):
            kernel(numbers, np.uint64(5))
    (file,) = tmp_path.iterdir()
    assert file.stat().st_size < 15_000  # 31,000 with it
