"""The settings of features: how raw input becomes rows of a sparse matrix."""

import dataclasses
import numbers
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from hogwild.errors import OptionError

FORMATS = "text", "csv", "tsv", "parquet", "jsonl", "vw"
TABLES = "csv", "tsv", "parquet"  # which differ only in how fields are written
COUNTING = "count", "log", "binary"
NORMS = "l2", "none"
LABELS = "tab", "word", "fasttext", "none"
LISTS = "numeric", "categorical", "text", "ignore", "interact"
SUFFIXES = {f".{name}": name for name in FORMATS if name != "text"}
RAW = SUFFIXES.keys() - {".csv", ".tsv"}  # which hold nothing else; these may hold ratings
# Settings that decide what features are, and so which models fit which rows
MEANING = "bits", "hashes", "ngrams", "characters", "lowercase", "interact"
MOST_BITS = 30
MOST_WORDS = 8
MOST_CHARACTERS = 16


def option(
    default: Any, text: str, least: int | None = None, most: int | None = None, choices: Any = ()
) -> Any:
    """A field, with what help says of it and its limits."""
    known = {"text": text, "least": least, "most": most, "choices": choices}
    return dataclasses.field(default=default, metadata=known)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Settings:
    """How text and tables become features.

    Attributes:
        format: text (a document a line), csv, tsv, parquet, jsonl or vw; by default what the name
            of the file says.
        label: the column of the label, by name or by place from 1 on.
        label_style: where a line of text has its label: "tab" (before the first tab), "word" (the
            first word), "fasttext" (words that begin with `__label__`) or "none". By default the
            first line tells.
        numeric, categorical, text, ignore: columns of a table, by name or place. What is not named
            is guessed from the first rows.
        interact: pairs of columns, such as "site:device", whose values together are features, too.
        header: False where a table has no names of columns in its first line.
        ngrams: words in a row that are one feature, at most; 0 takes no words.
        characters: runs of characters within words that are features: "3:5" for three to five of
            them, 0 for none.
        lowercase: whether capital letters are small ones.
        stop_words: words to leave out.
        counting: what a word that occurs n times counts: n ("count"), 1 + log(n) ("log") or 1
            ("binary").
        idf: whether columns are multiplied by log((1 + rows) / (1 + rows with it)) + 1.
        norm: "l2" scales rows to norm 1; by default where there is text.
        bits: there are 2^bits columns for hashed features.
        hashes: columns of each feature.
        keep_names: keep the names of features, for `inspect --top`.
        strict_utf8: refuse damaged UTF-8, which else separates words like a blank.
    """

    format: str | None = option(
        None, "what the file holds [by its name]", choices=(*FORMATS, "svmlight")
    )
    label: str | int | None = option(None, "the column of the label, by name or place")
    label_style: str | None = option(
        None, "where a line of text has its label [as the first line has it]", choices=LABELS
    )
    numeric: tuple[str, ...] = option((), "columns that are numbers, with commas between them")
    categorical: tuple[str, ...] = option((), "columns whose different values are features")
    text: tuple[str, ...] = option((), "columns whose words are features")
    ignore: tuple[str, ...] = option((), "columns to leave out")
    interact: tuple[str, ...] = option((), "pairs of columns that are features together, as A:B")
    header: bool = option(True, "take the first line of a table for names")
    ngrams: int = option(1, "words in a row that are one feature, at most", 0, MOST_WORDS)
    characters: str | int = option(0, "runs of characters within words, as 3:5 [none]")
    lowercase: bool = option(True, "take capital letters for small ones")
    stop_words: tuple[str, ...] = option((), "a file of words to leave out, a word a line")
    counting: str = option("log", "what repeated words count", choices=COUNTING)
    idf: bool = option(False, "weigh columns by how few rows have them (tf-idf)")
    norm: str | None = option(None, "l2 scales rows to norm 1 [where there is text]", choices=NORMS)
    bits: int = option(20, "2^bits columns for hashed features", 1, MOST_BITS)
    hashes: int = option(1, "columns of each feature", 1, 16)
    keep_names: bool = option(False, "keep the names of features in the model")
    strict_utf8: bool = option(False, "refuse damaged UTF-8")

    def __post_init__(self) -> None:
        problems = [problem for known in dataclasses.fields(self) for problem in self._wrong(known)]
        if problems:
            raise OptionError("\n".join(problems))

    def _wrong(self, known: "dataclasses.Field[Any]") -> Iterable[str]:
        """What is wrong with a field; lists become tuples of text."""
        name, value, limits = known.name, getattr(self, known.name), known.metadata
        if name in (*LISTS, "stop_words"):
            words = value.split(",") if isinstance(value, str) else value
            if not isinstance(words, list | tuple) or not all(
                isinstance(word, str | int) and not isinstance(word, bool) for word in words
            ):
                yield f"{name}: must be names with commas between them, not {value!r}"
                return
            words = tuple(str(word).strip() for word in words)
            object.__setattr__(self, name, words)
            if name == "interact" and not all(_is_pair(word) for word in words):
                yield f"interact: must be pairs of different columns such as a:b, not {value!r}"
        elif limits["choices"] and value not in (known.default, *limits["choices"]):
            yield f"{name}: must be one of {', '.join(limits['choices'])}, not {value!r}"
        elif limits["least"] is not None:
            if not isinstance(value, numbers.Integral) or isinstance(value, bool):
                yield f"{name}: must be a whole number, not {value!r}"
            elif not limits["least"] <= value <= limits["most"]:
                yield f"{name}: must be from {limits['least']} to {limits['most']}, not {value}"
        elif isinstance(known.default, bool) and not isinstance(value, bool):
            yield f"{name}: must be True or False, not {value!r}"
        elif name == "characters":
            try:
                least, most = self.runs
            except ValueError:
                yield f"characters: must be 0, or two numbers such as 3:5, not {value!r}"
                return
            if (least, most) != (0, 0) and not 1 <= least <= most <= MOST_CHARACTERS:
                yield f"characters: must be from 1 to {MOST_CHARACTERS}, not {value!r}"
            elif not most and not self.ngrams:
                yield "ngrams: 0 takes no words, and there are no characters: give one of them"

    @property
    def runs(self) -> tuple[int, int]:
        """The least and the most characters of a run; 0 and 0 for none."""
        least, _, most = str(self.characters).partition(":")
        return int(least), int(most or least)

    def refuse(self, names: Iterable[str], what: str) -> None:
        """Refuses settings that some format has no use for."""
        plain = {known.name: known.default for known in dataclasses.fields(self)}
        given = [name for name in names if getattr(self, name) != plain[name]]
        if given:
            raise OptionError("\n".join(f"{name}: not for {what}; leave it out" for name in given))

    def as_dict(self) -> dict[str, Any]:
        """The settings by name, as a file can hold them."""
        return {
            name: list(value) if isinstance(value, tuple) else value
            for name, value in dataclasses.asdict(self).items()
        }


NAMES = tuple(known.name for known in dataclasses.fields(Settings))


def _is_pair(word: str) -> bool:
    one, colon, other = word.partition(":")
    return bool(one and colon and other) and one != other


def stop_words_of(path: str) -> tuple[str, ...]:
    """The words in a file, or those with commas between them."""
    if "," in path and not Path(path).is_file():
        return tuple(path.split(","))
    try:
        return tuple(Path(path).read_text(encoding="utf-8").split())
    except (OSError, UnicodeDecodeError) as problem:
        raise OptionError(f"stop_words: {path} cannot be read: {problem}") from None
