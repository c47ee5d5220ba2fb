"""Synthetic reviews: documents with topics, words by Zipf's law, and pairs of words that tell.

A document has a label, a topic and a log-normal number of words. Its words are common ones, those
of its topic, and some that lean to the label. Planted pairs stand in one order in documents of one
label and in the other order in the others: a single word says nothing about the label.
"""

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from hogwild.data.synthetic import whole_number_problems
from hogwild.errors import OptionError

WORDS, TOPICS, TOPIC_WORDS = 50_000, 20, 2_000
SHIFT = 3  # of Zipf's law: odds of rank r ~ 1 / (SHIFT + r)
LENGTH, SIGMA = 100, 0.6  # words of a document: the median, and the spread of their logarithm
OF_TOPIC = 0.3  # share of the words that are of the topic
LEANING, LEAN = 400, 0.06  # words that lean to a label, and their share
TRUE = 0.65  # share of these that lean to the document's label
PAIRS, PAIRED, IN_ORDER = 200, 0.03, 0.8  # pairs, their share, and how many are in true order
NOISE = 0.03  # share of the labels that are changed
CHUNK = 4_096  # rows that are drawn together
LABELS = b"neg", b"pos"
ONSETS = *"bdfghklmnprstvwz", "ch", "sh", "st"
VOWELS, CODAS = "aeiou", (*"nrslt", "")

Ids = npt.NDArray[np.int64]


def reviews(rows: int, seed: int = 0, *, first_row: int = 0) -> Iterator[bytes]:
    """Lines of documents, each with its label before a tab, some thousand at a time.

    Row i depends on i and the seed only.
    """
    limits = {"rows": (1, 2**32), "seed": (0, 2**64 - 1), "first_row": (0, 2**62)}
    given = {"rows": rows, "seed": seed, "first_row": first_row}
    if problems := whole_number_problems(given, limits):
        raise OptionError("\n".join(problems))
    text = _Text(seed)
    end = first_row + rows
    for chunk in range(first_row // CHUNK, -(-end // CHUNK)):
        lines = text.chunk(chunk)
        begin = chunk * CHUNK
        yield b"".join(lines[max(first_row - begin, 0) : end - begin])


class _Text:
    def __init__(self, seed: int) -> None:
        self._seed = seed
        draw = np.random.default_rng([seed, 0])
        self._words = np.array(_vocabulary(draw), object)
        self._common = _zipf(WORDS)
        self._of_topic = _zipf(TOPIC_WORDS)
        self._topics = draw.integers(200, WORDS, (TOPICS, TOPIC_WORDS))
        telling = draw.permutation(np.arange(50, 50 + 2 * LEANING + 2 * PAIRS))
        self._leaning = telling[: 2 * LEANING].reshape(2, LEANING)
        self._pairs = telling[2 * LEANING :].reshape(PAIRS, 2)

    def chunk(self, number: int) -> list[bytes]:
        draw = np.random.default_rng([self._seed, 1, number])
        labels, topics = draw.integers(0, 2, CHUNK), draw.integers(0, TOPICS, CHUNK)
        sizes = np.maximum(5, np.rint(LENGTH * np.exp(SIGMA * draw.normal(size=CHUNK)))).astype(int)
        words = self._drawn(draw, np.repeat(labels, sizes), np.repeat(topics, sizes))
        flipped = labels ^ (draw.random(CHUNK) < NOISE)
        texts = self._words[words].tolist()
        ends = np.cumsum(sizes).tolist()
        return [
            LABELS[label] + b"\t" + b" ".join(texts[begin:end]).capitalize() + b".\n"
            for label, begin, end in zip(flipped, [0, *ends], ends, strict=False)
        ]

    def _drawn(self, draw: np.random.Generator, labels: Ids, topics: Ids) -> Ids:
        """A word for each place of all documents."""
        count = len(labels)
        words = np.searchsorted(self._common, draw.random(count))
        kind = draw.random(count)
        of_topic = kind < OF_TOPIC
        ranks = np.searchsorted(self._of_topic, draw.random(int(of_topic.sum())))
        words[of_topic] = self._topics[topics[of_topic], ranks]
        leaning = (kind >= OF_TOPIC) & (kind < OF_TOPIC + LEAN)
        side = labels[leaning] ^ (draw.random(int(leaning.sum())) >= TRUE)
        words[leaning] = self._leaning[side, draw.integers(0, LEANING, len(side))]
        paired = np.flatnonzero(draw.random(count - 1) < PAIRED)  # and the word behind each
        which = draw.integers(0, PAIRS, len(paired))
        first = labels[paired] ^ (draw.random(len(paired)) >= IN_ORDER)
        words[paired], words[paired + 1] = self._pairs[which, first], self._pairs[which, 1 - first]
        return np.asarray(words)


def _zipf(count: int) -> npt.NDArray[np.float64]:
    odds = np.cumsum(1 / (SHIFT + np.arange(1, count + 1)))
    return np.asarray(odds / odds[-1])


def _vocabulary(draw: np.random.Generator) -> list[bytes]:
    """Different words of syllables; frequent ones are short."""
    words: dict[bytes, None] = {}
    while len(words) < WORDS:
        count = 1 + (len(words) > 300) + int(draw.random() < 0.3 + (len(words) > 5_000) / 3)
        parts = draw.integers(0, (len(ONSETS), len(VOWELS), len(CODAS)), (count, 3))
        word = "".join(ONSETS[a] + VOWELS[b] + CODAS[c] for a, b, c in parts.tolist())
        words[word.encode()] = None
    return list(words)
