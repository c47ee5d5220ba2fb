"""Programs that fork, start threads or processes, and train in all of them: none of them hangs."""

import subprocess
import sys
import textwrap
from collections.abc import Callable

import pytest

Start = Callable[..., "subprocess.Popen[str]"]

HEAD = """
    import hogwild
    from hogwild.data.synthetic import rcv1

    ROWS = rcv1(300, 400)[0]

    def train(seed):
        result = hogwild.train(ROWS, workers=2, epochs=2, tol=0, eta0=0.5, seed=seed)
        return len(result.trace)
"""
FORKS = """
    import os, threading

    def child(seed):
        code = 1
        try:
            train(seed)
            hogwild.close_pool()
            code = 0
        finally:
            os._exit(code)

    def forked(seed):
        pid = os.fork()
        if pid == 0:
            child(seed)
        assert os.waitpid(pid, 0)[1] == 0
        return 2

    done = threading.Event()

    def beside():
        while not done.is_set():
            train(0)

    thread = threading.Thread(target=beside)
    thread.start()
    found = [forked(seed) for seed in range({count})]
    done.set()
    thread.join()
"""
THREADS = """
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(4) as threads:
        found = list(threads.map(train, range({count})))
"""
LOKY = """
    from joblib import Parallel, delayed

    found = Parallel(n_jobs=2, backend="loky")(delayed(train)(seed) for seed in range({count}))
"""
ASYNCIO = """
    import asyncio

    async def all_of_them():
        return await asyncio.gather(*(asyncio.to_thread(train, seed) for seed in range({count})))

    found = asyncio.run(all_of_them())
"""
PROCESSES = """
    import multiprocessing

    if __name__ == "__main__":
        train(0)
        with multiprocessing.get_context("{how}").Pool(2) as processes:
            found = processes.map(train, range({count}))
"""
TAIL = """
    if __name__ == "__main__":
        print(set(found), len(found))
"""
PROGRAMS = {
    "forks": FORKS,
    "threads": THREADS,
    "loky": LOKY,
    "asyncio": ASYNCIO,
    **{how: PROCESSES.replace("{how}", how) for how in ("fork", "spawn", "forkserver")},
}


@pytest.mark.parametrize("count", [4, pytest.param(100, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_that_trains_everywhere_ends(
    name: str, count: int, start: Start, tmp_path
) -> None:
    script = tmp_path / "program.py"
    text = HEAD + PROGRAMS[name].replace("{count}", str(count)) + TAIL
    script.write_text(textwrap.dedent(text))
    program = start([sys.executable, script])
    said, errors = program.communicate(timeout=300)
    assert (said, program.returncode) == (f"{{2}} {count}\n", 0), errors
    assert "Traceback" not in errors
