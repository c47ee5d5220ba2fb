"""Columns with large values: what to tell the user about them.

The largest column decides how large the learning rate may be. At such a rate, the other columns
and the intercept learn next to nothing.
"""

from collections.abc import Sequence

NAMED = 3  # columns, at most, in a message
LARGE = 10.0  # beside the intercept's 1

Sizes = Sequence[tuple[int, float]]  # places of columns and how large their values are


def are_large(largest: Sizes) -> bool:
    """Whether values are so large that they are likely to be the reason of what went wrong."""
    return any(size >= LARGE for _, size in largest)


def advice(largest: Sizes, index_base: int | None) -> str:
    """To scale the columns, the largest of which are given."""
    named = ", ".join(f"{place + (index_base or 0)} ({_rounded(size)})" for place, size in largest)
    counting = "" if index_base else ", counted from 0,"
    return (
        "Scale the columns, for example with scikit-learn's MaxAbsScaler; those with the largest "
        f"typical values{counting} are {named}"
    )


def _rounded(size: float) -> str:
    rounded = float(f"{size:.2g}")
    return f"{rounded:,.0f}" if 10 <= rounded < 1e15 else f"{rounded:g}"
