"""`python -m hogwild`."""

import sys

from hogwild.cli import main

sys.exit(main())
