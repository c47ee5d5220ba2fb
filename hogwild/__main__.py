"""`python -m hogwild`."""

import sys


def run() -> int:
    """The program: Ctrl-C ends it with exit code 130, while modules are imported, too."""
    try:
        from hogwild.cli import main

        return main()
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(run())
