"""What hashed features mean, in plain Python."""

import math
import unicodedata
from collections.abc import Iterator


def murmur(key: bytes, seed: int = 0) -> int:
    """MurmurHash3, x86, 32 bits."""
    h, whole = seed, len(key) // 4 * 4
    for at in range(0, len(key), 4):
        k = int.from_bytes(key[at : at + 4], "little") * 0xCC9E2D51 & 0xFFFFFFFF
        h ^= (k << 15 | k >> 17) * 0x1B873593 & 0xFFFFFFFF
        if at < whole:
            h = ((h << 13 | h >> 19) & 0xFFFFFFFF) * 5 + 0xE6546B64 & 0xFFFFFFFF
    h ^= len(key)
    for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35), (16, 1)):
        h = (h ^ h >> shift) * factor & 0xFFFFFFFF
    return h


def finished(h: int) -> int:
    for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35), (16, 1)):
        h = (h ^ h >> shift) * factor & 0xFFFFFFFF
    return h


def of_hash(h: int, seed: int) -> int:
    """The hash of an interaction."""
    return murmur(h.to_bytes(4, "little"), seed)


def places(h: int, bits: int = 20, hashes: int = 1) -> Iterator[tuple[int, int]]:
    """The columns of a feature, and its signs there."""
    for number in range(hashes):
        h = finished(h + 0x9E3779B9 & 0xFFFFFFFF) if number else h
        signed = h - (h >> 31 << 32)
        yield abs(signed) % 2**bits, 1 if signed >= 0 else -1


def words_of(document: str, lowercase: bool = True) -> list[str]:
    text = "".join(
        c if unicodedata.category(c)[0] in "LNM" or c == "_" or ord(c) > 0xFFFF else " "
        for c in document
    )
    if lowercase:
        text = "".join(small(c) for c in text)
    return text.split(" ")


def small(c: str) -> str:
    lower = c.lower()
    same = len(lower) == 1 and len(lower.encode()) == len(c.encode()) and ord(c) < 0x10000
    return lower if same else c


def runs(word: str, least: int, most: int) -> Iterator[str]:
    padded = f" {word} "
    for size in range(least, most + 1):
        for begin in range(max(1, len(padded) - size + 1)):
            yield padded[begin : begin + size]
        if size >= len(padded):
            return


def row(
    document: str,
    seed: int = 0,
    *,
    ngrams: int = 1,
    characters: tuple[int, int] = (0, 0),
    lowercase: bool = True,
    stop_words: tuple[str, ...] = (),
    counting: str = "log",
    norm: str = "l2",
    bits: int = 20,
    hashes: int = 1,
) -> dict[int, float]:
    """The columns and values of a document."""
    words = [w for w in words_of(document, lowercase) if w and w not in stop_words]
    found = [
        murmur(" ".join(words[i : i + n]).encode(), seed)
        for n in range(1, ngrams + 1)
        for i in range(len(words) - n + 1)
    ]
    if characters[1]:
        other = murmur(b"char", seed)
        found += [murmur(r.encode(), other) for w in words for r in runs(w, *characters)]
    sums: dict[int, float] = {}
    for h in found:
        for column, sign in places(h, bits, hashes):
            sums[column] = sums.get(column, 0) + sign
    values = {
        column: math.copysign(
            {"count": abs(v), "log": 1 + math.log(abs(v)), "binary": 1}[counting], v
        )
        for column, v in sums.items()
        if v
    }
    scale = math.sqrt(sum(v * v for v in values.values())) if norm == "l2" and values else 1
    return {column: v / scale for column, v in sorted(values.items())}
