"""How numbers and names stand in sentences."""

import re

# A configuration's name, and a number with its unit
TOGETHER = re.compile(r"\w+ x \d+(?: \(\w+\))?|\d (?:ms|s|%|times|GB/s|MB)(?!\w)")
BLANK = "\N{NO-BREAK SPACE}"


def unbroken(text: str) -> str:
    """The text with blanks at which no line ends, where names and numbers would be torn apart."""
    return TOGETHER.sub(lambda found: found[0].replace(" ", BLANK), text)


def milliseconds(seconds: float) -> str:
    """A time, with its unit."""
    return f"{seconds:.3g} s" if seconds >= 1 else f"{1e3 * seconds:.3g} ms"


def gigabytes(speed: float) -> str:
    """A speed, with its unit."""
    return f"{speed / 1e9:.3g} GB/s"


def megabytes(size: float) -> str:
    """A size, with its unit."""
    return f"{size / 1e6:,.3g} MB" if size < 1e9 else f"{size / 1e6:,.0f} MB"


def cores(count: int) -> str:
    """So many cores, at the beginning of a sentence."""
    return "One core" if count == 1 else f"{count} cores"


def sentence(text: str) -> str:
    """With a capital letter."""
    return text[:1].upper() + text[1:]


def figures(value: float) -> str:
    """Four figures, and as many decimals as that takes."""
    decimals = 3 if value < 10 else 2 if value < 100 else 1 if value < 1000 else 0
    return f"{value:.{decimals}f}"
