"""Columns with large values, and advice about them.

The largest column limits the learning rate. At that rate, the other columns and the intercept learn
next to nothing.
"""

from collections.abc import Sequence

NAMED = 3  # columns, at most, in a message
LARGE = 10.0  # the intercept's value is 1

Sizes = Sequence[tuple[int, float]]  # columns and the typical size of their values


def are_large(largest: Sizes) -> bool:
    """Whether large values are the likely cause of a failed training."""
    return any(size >= LARGE for _, size in largest)


def advice(largest: Sizes, index_base: int | None) -> str:
    """A sentence that says to scale the columns and names the largest."""
    named = ", ".join(f"{place + (index_base or 0)} ({_rounded(size)})" for place, size in largest)
    counting = "" if index_base else ", counted from 0,"
    return (
        "Scale the columns, for example with scikit-learn's MaxAbsScaler; those with the largest "
        f"typical values{counting} are {named}"
    )


def _rounded(size: float) -> str:
    rounded = float(f"{size:.2g}")
    return f"{rounded:,.0f}" if 10 <= rounded < 1e15 else f"{rounded:g}"
