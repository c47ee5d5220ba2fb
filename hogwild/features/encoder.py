"""From raw input to rows, and the state that is needed to repeat this for new input."""

import dataclasses
import io
from collections.abc import Sequence
from contextlib import AbstractContextManager, closing
from copy import copy
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from hogwild.data.early import Turns
from hogwild.data.opening import reading, suffix_of
from hogwild.data.rows import Rows
from hogwild.data.sets import name_of
from hogwild.errors import DataError, HogwildError, warn
from hogwild.features import documents, namespaces, objects, tables
from hogwild.features.blocks import Dealer
from hogwild.features.characters import tables_of
from hogwild.features.frames import of_frame, of_parquet
from hogwild.features.hashing import Collector, Hasher, Made, in_blocks
from hogwild.features.layout import Layout
from hogwild.features.murmur import hashes_of
from hogwild.features.settings import COUNTING, MEANING, SUFFIXES, TABLES, Settings
from hogwild.kernels.hashing import (
    DIGIT,
    WORDS,
    Plan,
    count_columns,
    sum_numbers,
    weigh_rows,
)
from hogwild.kernels.views import view
from hogwild.machine import usable_cores
from hogwild.model_file import Arrays, DamageError
from hogwild.models.contents import OBJECT, Contents
from hogwild.threads import in_shares, share_of, side_by_side

SHARES = 16  # of the rows, that are summed one by one: the same for any number of threads

Floats = npt.NDArray[np.float32]
Doubles = npt.NDArray[np.float64]


class Names(NamedTuple):
    """Names of columns, in order of the columns; the sign of a name's feature there."""

    columns: npt.NDArray[np.uint32]
    signs: npt.NDArray[np.int8]
    texts: list[str]


class Features:
    """How text and tables become rows of a sparse matrix.

    `rows` makes rows for training. The attribute `features` of these rows keeps the settings and
    what was learned from the data: the idf, means, names. `rows.features.rows` makes rows for
    prediction in the same way. So does `model.features.rows` of a model trained on such rows.

        features = hogwild.Features(ngrams=2)
        rows = features.rows(["a good film", "a bad film"], ["pos", "neg"])
        model = hogwild.train(rows).model
        model.predict(["not bad"])

    Attributes:
        settings: the options that were given, by name. See the options of `hogwild train`.
    """

    def __init__(self, settings: Settings | None = None, **options: Any) -> None:
        self.settings = settings or Settings(**options)
        self.idf: Floats | None = None
        self.names: Names | None = None
        self.learned = False
        self.norm = False
        self.labels: tuple[Any, ...] = ()
        self.table: tables.Columns = ()
        self.numbers: list[str] = []
        self.means: Doubles = np.empty(0)
        self.scales: Doubles = np.empty(0)

    def __repr__(self) -> str:
        settings = self.settings.as_dict()
        shown = [f"{name}={settings[name]!r}" for name in self.given]
        return f"<Features {', '.join(shown)}>"

    @property
    def given(self) -> list[str]:
        """The names of the settings that differ from their defaults."""
        plain = Settings().as_dict()
        return [name for name, value in self.settings.as_dict().items() if value != plain[name]]

    @property
    def columns(self) -> int:
        """How many columns rows have: two for each numeric column, and the hashed ones."""
        return 2 * len(self.numbers) + (1 << self.settings.bits)

    def rows(self, data: Any, y: Any = None) -> Rows:
        """Rows of data in memory.

        Args:
            data: a list of documents; or a table: a data frame of pandas or polars, or of Arrow
                (which needs the extra `arrow`).
            y: the labels. Without them, those of a table are in the column `label`, if it is there.
        """
        threads, found, name, settings = usable_cores(), Collector(), "the data", self.settings
        if isinstance(data, list | tuple):
            dealer = Dealer(_lines(data), name)
            settings = dataclasses.replace(settings, label_style="none")
            layout = documents.layout(settings, dealer, name, False, ())
            # Files may have labels in any style
            layout = layout._replace(settings=dataclasses.replace(self.settings, format="text"))
        else:
            frame = of_frame(data, name)
            dealer = Dealer(frame, name)
            labels = y is None and (not self.learned or str(settings.label) in frame.names)
            layout = tables.layout(settings, self.table, dealer, ".csv", name, labels, frame.words)
        fitted = self if self.learned else self._of(layout)
        fitted._gather(layout, dealer, found, threads, not self.learned)
        rows = fitted._rows(found, name, threads, not self.learned)
        rows.notes = layout.notes
        return rows if y is None else rows.labelled(y)

    def read(self, paths: Sequence[Path], labels: bool = True, threads: int | None = None) -> Rows:
        """Rows of files, one behind the other."""
        threads = usable_cores() if threads is None else threads
        fitted, found, name = self if self.learned else None, Collector(), name_of(paths)
        notes: tuple[str, ...] = ()
        with reading(paths) as progress, Turns(paths, progress, threads) as turns:
            for path in paths:
                with self._opened(path, turns) as file:
                    dealer = Dealer(file, str(path))
                    words: frozenset[str] = getattr(file, "words", frozenset())
                    layout = (fitted or self)._layout(dealer, path, labels, words)
                    fitted = fitted or self._of(layout)
                    try:
                        fitted._gather(layout, dealer, found, threads, not self.learned)
                    finally:
                        dealer.check()  # what is wrong with a file that changes is nobody's mistake
                notes = notes or layout.notes
        assert fitted is not None
        rows = fitted._rows(found, name, threads, not self.learned)
        rows.notes = notes
        if not labels:
            rows.y = None
        return rows

    def _opened(self, path: Path, turns: Turns) -> AbstractContextManager[Any]:
        """The text of a file."""
        if self._format(path) == "parquet":
            return closing(of_parquet(path))
        return turns.opened(path)

    def _format(self, path: Path) -> str:
        """The format of a file; what was learned from a table goes for tables of any format."""
        said, named = self.settings.format, SUFFIXES.get(suffix_of(path), "text")
        any_table = self.learned and {said, named} <= {*TABLES}
        return named if said is None or any_table else said

    def _layout(self, dealer: Dealer, path: Path, labels: bool, words: frozenset[str]) -> Layout:
        """The layout of a file, by its settings and its suffix."""
        name, suffix, settings = str(path), suffix_of(path), self.settings
        format_ = self._format(path)
        if format_ == "text":
            return documents.layout(settings, dealer, name, labels, self.labels)
        if format_ == "vw":
            return namespaces.layout(settings)
        settings = dataclasses.replace(settings, format=format_)
        if format_ == "jsonl":
            return objects.layout(settings, self.table, dealer, name, labels)
        return tables.layout(settings, self.table, dealer, suffix, name, labels, words)

    def knowing(self, labels: tuple[Any, ...]) -> "Features":
        """The same for data whose labels are known, to tell them from documents without any."""
        found = copy(self)
        found.labels = labels
        return found

    def names_of(self, columns: npt.NDArray[Any]) -> tuple[list[str], list[int]]:
        """The names of features in these columns, and their signs there."""
        if self.names is None:
            return [f"column {column}" for column in columns.tolist()], [1] * len(columns)
        known = self.names.columns
        places = np.minimum(np.searchsorted(known, columns), len(known) - 1).tolist()
        names, signs = [], []
        for place, column in zip(places, columns.tolist(), strict=True):
            named = known[place] == column
            names.append(self.names.texts[place] if named else f"column {column}")
            signs.append(int(self.names.signs[place]) if named else 1)
        return names, signs

    def _gather(
        self, layout: Layout, dealer: Dealer, found: Collector, threads: int, naming: bool
    ) -> None:
        """Hashes the rows of a file."""
        plan = self._plan(layout, naming)
        stops = hashes_of([word.encode() for word in layout.settings.stop_words])
        known = tables_of(layout.settings.lowercase, stops)

        def make() -> Any:
            return layout.parser(Hasher(layout.groups, layout.pairs, plan, known))

        in_blocks(dealer, make, threads, found)

    def _rows(self, found: Collector, name: str, threads: int, new: bool) -> Rows:
        """The rows that were found; from training rows, learns the idf, means and names."""
        made = found.made(name)
        if made.replaced:
            warn(
                f"{name}: {made.replaced:,} bytes are not UTF-8 and separate words like blanks; "
                "strict_utf8 refuses them"
            )
        if new:
            self._learn(made, threads)
        self._weigh(made, threads)
        arrays = made.indptr, made.indices, made.values
        rows = Rows.from_arrays(*arrays, self.columns, made.y, name=name)
        rows.features = self
        return rows if made.weights is None else rows.weighted(made.weights)

    def _of(self, layout: Layout) -> "Features":
        """The features of some training data, before anything was learned from it."""
        found = Features(layout.settings)
        found.learned = True
        found.table = layout.columns
        found.numbers = layout.numbers
        wordy = any(group.kind == WORDS for group in layout.groups)
        found.norm = layout.settings.norm == "l2" or (layout.settings.norm is None and wordy)
        return found

    def _plan(self, layout: Layout, naming: bool) -> Plan:
        settings = layout.settings
        least, most = settings.runs
        return view(
            Plan,
            (1 << settings.bits) - 1,
            settings.hashes,
            2 * len(self.numbers),
            len(self.numbers),
            settings.ngrams,
            least,
            most,
            COUNTING.index(settings.counting),
            settings.strict_utf8,
            -(-(self.columns - 1).bit_length() // int(DIGIT)),
            self.norm and not settings.idf and not self.numbers,
            settings.keep_names and naming,
        )

    def _learn(self, made: Made, threads: int) -> None:
        """What is to be remembered of the training data."""
        if self.settings.idf:
            self.idf = _idf(made, self.columns, threads)
        if self.numbers:
            self.means, self.scales = _spread(made, len(self.numbers), threads)
        if self.settings.keep_names:
            texts = [name.decode("utf-8", "replace") for name in made.names]
            whole = [*self.numbers, *(f"{name} is missing" for name in self.numbers), *texts]
            first = np.arange(2 * len(self.numbers), dtype=np.uint32)
            signs = 1 - 2 * (made.named & np.uint32(1)).astype(np.int8)
            self.names = Names(
                np.concatenate([first, made.named >> np.uint32(1)]),
                np.concatenate([np.ones(len(first), np.int8), signs]),
                whole,
            )

    def _weigh(self, made: Made, threads: int) -> None:
        """Weighs the values of rows in place."""
        if self.idf is None and not self.numbers:
            return
        idf = np.empty(0, np.float32) if self.idf is None else self.idf

        def weigh(begin: int, end: int) -> None:
            rows = made.indptr, begin, end, made.indices, made.values
            weigh_rows(*rows, (self.means, self.scales), idf, self.norm)

        in_shares(weigh, len(made.indptr) - 1, threads)

    def unlike(self, other: "Features | None") -> list[str]:
        """The settings by which the same input becomes other rows than with `other`; or none."""
        if self is other:
            return []
        if other is None:
            return ["features"]
        ours, theirs = self.settings, other.settings
        found = [name for name in MEANING if getattr(ours, name) != getattr(theirs, name)]
        found += ["columns"] if dict(self.table) != dict(other.table) else []
        about = ("norm", self.norm, other.norm), ("means", self.means, other.means)
        spread = ("standard deviations", self.scales, other.scales), ("idf", self.idf, other.idf)
        for name, one, another in (*about, *spread):
            if name not in found and not np.array_equal(one, another):  # type: ignore[arg-type]
                found.append(name)
        return found

    # Model files

    def about(self) -> dict[str, Any]:
        """What JSON can hold of it."""
        return {
            "settings": self.settings.as_dict(),
            "norm": self.norm,
            "table": [list(column) for column in self.table],
            "numbers": self.numbers,
            "means": self.means.tolist(),
            "scales": self.scales.tolist(),
        }

    def arrays(self) -> Arrays:
        """The arrays of a model file."""
        found: Arrays = {}
        if self.idf is not None:
            found["features_idf"] = self.idf
        if self.names is not None:
            encoded = [text.encode() for text in self.names.texts]
            found["features_names"] = np.frombuffer(b"".join(encoded), np.uint8)
            found["features_name_ends"] = np.cumsum([0, *map(len, encoded)], dtype=np.uint64)[1:]
            found["features_columns"] = self.names.columns
            found["features_signs"] = self.names.signs
        return found

    @classmethod
    def from_file(cls, file: Contents) -> "Features":
        """What `about` and `arrays` wrote.

        Raises:
            DamageError: the file says something that cannot be.
        """
        said = file.get("features", OBJECT)
        try:
            found = cls(Settings(**said["settings"]))
            found.norm, found.numbers = bool(said["norm"]), [str(name) for name in said["numbers"]]
            found.table = tuple((str(name), str(kind)) for name, kind in said["table"])
            found.means, found.scales = (
                np.array(said[name], np.float64).reshape(len(found.numbers))
                for name in ("means", "scales")
            )
        except (KeyError, TypeError, ValueError, HogwildError) as error:
            raise DamageError(f"its description of the features is invalid ({error!r})") from error
        found.learned = True
        found.idf = file.array("features_idf") if "features_idf" in file else None
        found.names = _names_in(file) if "features_names" in file else None
        if found.idf is not None and len(found.idf) != found.columns:
            raise DamageError(f"it has {len(found.idf):,} idf; expected {found.columns:,}")
        return found


def _names_in(file: Contents) -> Names:
    ends = file.array("features_name_ends", np.uint64).tolist()
    blob = file.array("features_names", np.uint8).tobytes()
    columns, signs = (
        file.array("features_columns", np.uint32),
        file.array("features_signs", np.int8),
    )
    if (
        not len(ends) == len(columns) == len(signs)
        or ends != sorted(ends)
        or ends[-1:] > [len(blob)]
    ):
        raise DamageError("the names of its features are not as many as their columns")
    texts = [
        blob[begin:end].decode("utf-8", "replace")
        for begin, end in zip([0, *ends], ends, strict=False)
    ]
    return Names(columns, signs, texts)


def _lines(documents: Sequence[str]) -> io.BytesIO:
    """Documents, a line each: a line's end within one separates words as a blank does."""
    if not all(isinstance(document, str) for document in documents):
        raise DataError("the documents must be a list of text")
    lines = "".join(document.replace("\n", " ") + "\n" for document in documents)
    return io.BytesIO(lines.encode("utf-8", "surrogatepass"))


def _spread(made: Made, numbers: int, threads: int) -> tuple[Doubles, Doubles]:
    """The means of columns of numbers, and one over their standard deviations."""
    zeros = np.zeros(numbers)
    sums, _, counts = _sums(made, zeros, threads)
    there = np.maximum(counts, 1)
    means = sums / there
    _, squares, _ = _sums(made, means, threads)
    deviations = np.sqrt(squares / there)
    return means, 1 / np.where(deviations > 0, deviations, 1)


def _sums(made: Made, means: Doubles, threads: int) -> tuple[Doubles, Doubles, Doubles]:
    """Sums and squares of how far numbers are above their means, and how many there are."""
    found = [np.zeros((SHARES, len(means)), kind) for kind in ("f8", "f8", "u8")]

    def add(number: int) -> None:
        begin, end = share_of(len(made.indices), SHARES, number)
        entries = made.indices[begin:end], made.values[begin:end]
        sum_numbers(*entries, means, *(part[number] for part in found))

    side_by_side([partial(add, number) for number in range(SHARES)], threads)
    sums, squares, counts = (part.sum(axis=0) for part in found)
    return sums, squares, counts


def _idf(made: Made, columns: int, threads: int) -> Floats:
    """log((1 + rows) / (1 + rows with the column)) + 1."""
    counts = [np.zeros(columns, np.uint32) for _ in range(threads)]

    def count(number: int) -> None:
        begin, end = share_of(len(made.indices), threads, number)
        count_columns(made.indices[begin:end], counts[number])

    side_by_side([partial(count, number) for number in range(threads)], threads)
    held = np.sum(counts, axis=0)
    rows = len(made.indptr) - 1
    return np.asarray(np.log((1 + rows) / (1 + held)) + 1, np.float32)
