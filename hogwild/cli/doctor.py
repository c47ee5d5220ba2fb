"""`hogwild doctor`."""

import argparse
import json
import os
import time
from typing import Any

from hogwild import machine
from hogwild.cli.parser import group
from hogwild.cli.streams import show
from hogwild.kernels.compile import cache_folder
from hogwild.learn import fetching
from hogwild.parallel import processes
from hogwild.warm import warm

EXAMPLES = ("", "--warm")


def add_options(parser: argparse.ArgumentParser) -> None:
    add = group(parser, "output").add_argument
    add("--json", action="store_true", help="print one JSON object")
    add(
        "--warm",
        action="store_true",
        help="first compile the kernels of the usual losses, solvers, strategies and files, so "
        "that the first training need not wait for them",
    )


def run(parsed: argparse.Namespace) -> int:
    """Prints cores, load, memory, versions and kernel cache of this machine."""
    if parsed.warm:
        warm()
    found = _findings()
    if parsed.json:
        show(json.dumps(found))
        return 0
    cores, memory, cache = found["cores"], found["memory"], found["kernel_cache"]
    has = machine.counted(cores["machine"], cores["physical"])
    quota = "no quota" if cores["quota"] is None else f"a quota of {cores['quota']:g}"
    show(f"processor      {found['cpu']}")
    show(
        f"cores          {cores['usable']} may be used: the machine has {has}, "
        f"affinity allows {cores['affinity']}, {quota}"
    )
    show(f"load           other programs keep {found['other_load']:.2f} cores busy")
    limit, free, peak = (memory[name] / 2**30 for name in ("limit", "available", "peak"))
    show(f"memory         {limit:.1f} GiB, {free:.1f} free; this command took {peak:.2f}")
    show(f"workers        {found['workers']}")
    show(f"versions       {', '.join(f'{name} {v}' for name, v in found['versions'].items())}")
    if cache["folder"] is None:
        show("kernel cache   none: no folder can be written; kernels are compiled in every run")
    else:
        state = f"{cache['kernels']} kernels, {cache['bytes'] / 1e6:.1f} MB"
        show(f"kernel cache   {cache['folder']}: {state if cache['kernels'] else 'still empty'}")
    show(f"row fetching   {_fetching_words(found['fetching'])}")
    return 0


def _findings() -> dict[str, Any]:
    usage = machine.Usage()
    time.sleep(machine.SHORTEST)
    used = usage.so_far()
    folder = cache_folder()
    files = [] if folder is None else list(folder.glob("*.kernel"))
    return {
        "cpu": machine.cpu_name(),
        "cores": {
            "usable": machine.usable_cores(),
            "machine": os.cpu_count(),
            "physical": machine.physical_cores(),
            "affinity": machine.affinity_cores(),
            "quota": machine.cpu_quota(),
        },
        "other_load": used["other_load"],
        "memory": {
            "limit": machine.memory_limit(),
            "available": machine.available_memory(),
            "peak": used["peak_memory"],
        },
        "workers": "processes" if processes.available() else "threads (processes need Linux)",
        "versions": machine.versions(),
        "kernel_cache": {
            "folder": None if folder is None else str(folder),
            "kernels": len(files),
            "bytes": sum(file.stat().st_size for file in files),
        },
        "fetching": fetching.chosen().get(machine.cpu_name(), {}),
    }


def _fetching_words(chosen: dict[str, int]) -> str:
    """How far ahead rows are fetched, by the size of the data."""
    if not chosen:
        return "not measured yet; the first training on data of 1 MiB or more does"
    by_size = [
        f"{size}: {f'{ahead} non-zeros ahead' if ahead else 'off'}"
        for size, ahead in sorted(chosen.items(), key=lambda item: int(item[0].split()[0]))
    ]
    return "by the size of the data, " + ", ".join(by_size)
