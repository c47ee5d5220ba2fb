"""The other trainers: each in a virtual environment of its own, and asked there in JSON."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

from experiments import report

PEERS = report.FOLDER / ".peers"

Row = dict[str, Any]


class Environment(NamedTuple):
    """A virtual environment in `experiments/.peers`.

    Attributes:
        name: of the peer and of its folder.
        packages: what pip installs.
        versions: the file of pip's constraints. Another one means installing anew.
        how: the command that installs, for the message that something is missing.
        flags: environment variables for what pip compiles.
        builders: packages that its build imports without asking pip for them.
    """

    name: str
    packages: tuple[str, ...]
    versions: Path
    how: str
    flags: dict[str, str] = {}  # noqa: RUF012
    builders: tuple[str, ...] = ()

    @property
    def folder(self) -> Path:
        """Where it is."""
        return PEERS / self.name

    @property
    def python(self) -> Path:
        """Its Python."""
        return self.folder / "bin" / "python"

    def missing(self) -> str | None:
        """Why the peer cannot take part, or None if it can."""
        if (self.folder / "failed").exists():
            return f"could not be installed: {(self.folder / 'failed').read_text()}"
        installed = self.folder / "installed"
        if not installed.exists() or installed.read_text() != pins(self.versions):
            return f"not installed: {self.how}"
        return None

    def install(self) -> str | None:
        """Makes the environment, unless it is there; the reason, if that fails."""
        if self.missing() is None:
            return None
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.parent.mkdir(exist_ok=True)
        for command in self._commands():
            done = subprocess.run(
                command,
                env=os.environ | self.flags,
                capture_output=True,
                text=True,
                check=False,
            )
            if done.returncode:
                reason = last_error(done.stderr + done.stdout)
                shutil.rmtree(self.folder, ignore_errors=True)
                self.folder.mkdir()
                (self.folder / "failed").write_text(reason)
                return reason
        (self.folder / "installed").write_text(pins(self.versions))
        return None

    def _commands(self) -> list[list[str]]:
        pip = [str(self.python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        pip += ["--constraint", str(self.versions)]
        commands = [[sys.executable, "-m", "venv", str(self.folder)]]
        if self.builders:
            commands.append([*pip, *self.builders])
        # A wheel in pip's cache may have been built without these flags
        pip += ["--no-cache-dir"] if self.flags else []
        pip += ["--no-build-isolation"] if self.builders else []
        return [*commands, [*pip, *self.packages]]

    def ask(
        self, script: Path, request: Row, threads: int, seconds: float | None = None
    ) -> "Answer":
        """Runs a script on a request, for `seconds` at most; it prints a row on each line."""
        # What else has threads (BLAS, below the peer's own) takes one
        counts = {"OMP_NUM_THREADS": str(threads), "OPENBLAS_NUM_THREADS": "1"}
        try:
            done = subprocess.run(
                [str(self.python), str(script)],
                input=json.dumps({"peer": self.name, "threads": threads} | request).encode(),
                env=os.environ | counts,
                capture_output=True,
                timeout=seconds,
                check=False,
            )
        except subprocess.TimeoutExpired as late:
            return Answer(_rows_in(late.stdout), f"ended after {seconds:g} s, within a call")
        rows = _rows_in(done.stdout)
        if not done.returncode:
            return Answer(rows)
        error = done.stderr.decode(errors="replace")
        return Answer(rows, last_error(f"ended with {done.returncode}\n{error}"))


class Answer(NamedTuple):
    """What a peer answered: its rows, and the reason if it broke off."""

    rows: list[Row]
    problem: str | None = None


def _rows_in(output: bytes | None) -> list[Row]:
    return [json.loads(line) for line in (output or b"").splitlines()]


def pins(versions: Path) -> str:
    """The lines of a file of constraints, without comments."""
    lines = versions.read_text().splitlines()
    return "".join(f"{line}\n" for line in lines if line and not line.startswith("#"))


def last_error(text: str) -> str:
    """The last line that says what is wrong, or the last line."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    wrong = [line for line in lines if "error" in line.lower()]
    return (wrong or lines or ["no reason was given"])[-1]
