"""The hash of texts, from Python."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from hogwild.kernels.hashing import hash_spans
from hogwild.kernels.text import PADDING


def hashes_of(texts: Sequence[bytes], seed: int = 0) -> npt.NDArray[np.uint32]:
    """MurmurHash3 (x86, 32 bits) of texts."""
    ends = np.cumsum([0, *map(len, texts)], dtype=np.uint64)
    blob = np.frombuffer(b"".join([*texts, bytes(PADDING)]), np.uint8)
    hashes = np.empty(len(texts), np.uint32)
    hash_spans(blob, ends[:-1], ends[1:], np.full(len(texts), seed, np.uint32), hashes)
    return hashes
