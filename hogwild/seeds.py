"""Seeds of all random choices: functions of the user's seed and of the purpose."""

import numpy as np


def seed_of(*words: int) -> int:
    """A seed that these words name, and (as good as) no others."""
    return int(np.random.SeedSequence(words).generate_state(1, np.uint64)[0])
