"""Runs the tests of this folder, in an environment of its own with the libraries they are about.

python tests/extras/run.py
"""

import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent.parent))

from experiments.environments import Environment

FOLDER = Path(__file__).resolve().parent

# mlflow-skinny is MLflow's client; what it needs of a database comes with Optuna
LIBRARIES = ("mlflow-skinny", "tensorboard", "optuna", "rich", "pyarrow", "polars", "ipykernel")
NEEDED = ("numba", "scipy", "psutil", "scikit-learn", "pandas", "pytest")


def main() -> int:
    """The command line."""
    versions = FOLDER / "versions.txt"
    place = Environment("extras", LIBRARIES + NEEDED, versions, "make test-extras")
    if problem := place.install():
        print(f"the libraries could not be installed: {problem}", file=sys.stderr)
        return 1
    tests = [str(place.python), "-m", "pytest", "-rs", str(FOLDER)]
    return subprocess.run(tests, cwd=FOLDER.parent.parent, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
