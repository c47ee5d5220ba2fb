"""Converts files of any format to another format; text becomes a `.rows` file in little memory."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from hogwild import status
from hogwild.data import rows_file, svmlight
from hogwild.data.files import (
    FORMATS,
    OTHERWISE,
    by_name,
    check_index_base,
    features_of,
    format_of,
    load,
    save,
)
from hogwild.data.labels import LabelSets
from hogwild.data.opening import explained
from hogwild.data.ratings_files import named_as_ratings
from hogwild.data.rows import Rows, check_same_features
from hogwild.data.rows_file import SETS, Spool, Writer, rows_of_block
from hogwild.data.sets import Files, files_of, name_of
from hogwild.errors import DataError, OptionError
from hogwild.features.encoder import Features
from hogwild.paths import PathLike, check_files, writing

Array = npt.NDArray[Any]


def convert(
    sources: Files,
    target: PathLike,
    *,
    index_base: str | int = "auto",
    about: dict[str, Any] | None = None,
    features: Features | None = None,
    **settings: Any,
) -> None:
    """Writes the rows of one or several files to another one, in the format of its suffix.

    Args:
        sources: one or several files of any format, as `load` takes them.
        target: the file to write. It appears once all is written, and stays untouched if anything
            fails.
        index_base: as for `load`.
        about: what else is to be known of a `.rows` file: text and numbers.
        features: how rows are made from the text or tables in the sources. A `.rows` file keeps
            this, so models trained on it read such text or tables. All rows must fit into memory.
        **settings: the same, by the options of `hogwild.Features`.

    Raises:
        DataError: a source cannot be used; the text says where, and what is expected there.
        HogwildError: the target cannot be written.
    """
    check_index_base(index_base)
    given = files_of(sources)
    target = Path(target)
    check_files({"target": target}, *given)
    for source in given:
        with explained(source):
            source.stat()
    how = by_name(given, features_of(features, settings))
    if how is not None and how.settings.format == "svmlight":
        how = None
    if how is None and named_as_ratings(given):
        raise OptionError(
            f"label: {name_of(given)} holds ratings or a table, by its name; say which column of a "
            "table has the label"
        )
    if format_of(target, FORMATS, OTHERWISE) != FORMATS[rows_file.SUFFIX]:
        save(load(given, index_base=index_base, labels=how is not None, features=how), target)
        return
    with writing(target) as file, status.doing(f"writing {target.name}"):
        _Conversion(target, file).write(given, index_base, about, how)


class _Conversion:
    """What the rows written so far have in common."""

    def __init__(self, target: Path, file: BinaryIO) -> None:
        self._folder, self._file = target.parent, file
        self._rows = self._columns = 0
        self._base: int | None = None
        self._writer: Writer | None = None
        self._labels: _Labels | None = None
        self._weights: Spool | None = None
        self._names: list[str] | None = None
        self._features: Features | None = None

    def write(
        self, sources: Sequence[Path], base: str | int, about: Any, how: Features | None
    ) -> None:
        """Writes all sources to the file."""
        if how is not None:
            self._add(load(sources, index_base=base, features=how))
        for source in sources if how is None else ():
            known = 0 if self._base == 0 else base
            if format_of(source, FORMATS, OTHERWISE) == OTHERWISE:  # text, in little memory
                svmlight.hand_on([source], self._add, index_base=known, labels=False)
            else:
                self._add(load(source, index_base=known, labels=False))
        assert self._writer is not None  # a source without rows is refused
        arrays = {} if self._labels is None else self._labels.arrays()
        if self._weights is not None:
            arrays["weights"] = self._weights.array()
        given = self._base, self._names, about, self._features
        self._writer.finish(self._columns, arrays, *given)

    def _add(self, rows: Rows) -> None:
        if self._writer is None:
            self._writer = Writer(
                self._file, rows_of_block(8 + 6 * rows.nonzeros / max(1, len(rows)))
            )
            self._base, self._names = rows.index_base, rows.feature_names
            self._features = rows.features
            if rows.y is not None:
                self._labels = _Labels(self._folder)
        check_same_features(rows, self._features, "the files before it")
        if (self._labels is None) != (rows.y is None):
            raise DataError(
                f"{rows.name}: {'has' if rows.y is not None else 'does not have'} labels, unlike "
                "the files before it; convert files with and without labels separately"
            )
        if self._base == 1 and rows.index_base == 0:  # so they did in all that came before
            self._writer.shift()
            self._columns += self._columns > 0
        elif rows.index_base != self._base and None not in (rows.index_base, self._base):
            raise DataError(
                f"{rows.name}: its columns count from {rows.index_base}, and those of the files "
                f"before it from {self._base}; give an index base"
            )
        self._base = rows.index_base if self._base is None else self._base
        self._base = 0 if rows.index_base == 0 else self._base
        self._columns = max(self._columns, rows.columns)
        self._writer.add(rows)
        if self._labels is not None:
            self._labels.add(rows)
        self._add_weights(rows)
        self._rows += len(rows)

    def _add_weights(self, rows: Rows) -> None:
        given = rows.sample_weight
        if given is not None and self._weights is None:
            self._weights = Spool(self._folder, np.float32)
            self._weights.add(np.ones(self._rows))
        if self._weights is not None:
            self._weights.add(np.ones(len(rows)) if given is None else given)


class _Labels:
    """Labels that wait on the disk for the end of the rows: numbers, or text in memory."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._numbers = Spool(folder, np.float64)
        self._counts: Spool | None = None  # of each row, where some row has not just one
        self._names: set[Any] = set()
        self._texts: list[Array] = []
        self._rows = 0

    def add(self, rows: Rows) -> None:
        """Adds the labels of some rows."""
        y = rows.y
        if isinstance(y, LabelSets):
            if self._counts is None:
                self._counts = Spool(self._folder, np.uint64)
                self._counts.add(np.ones(self._rows))
                self._names |= {*self._numbers.array().tolist()}
            labels, counts = y.names[y.numbers], np.diff(y.starts)
        else:
            labels, counts = y, np.ones(len(y))
        if labels.dtype.kind in "US":
            self._texts.append(labels)
        else:
            self._numbers.add(labels)
        if self._numbers.size and self._texts:
            raise DataError(f"{rows.name}: its labels are of another kind than those before it")
        if self._counts is not None:
            self._counts.add(counts)
            self._names |= {*np.unique(labels).tolist()}
        self._rows += len(rows)

    def arrays(self) -> dict[str, Array]:
        """All of them, as a file has them."""
        labels = np.concatenate(self._texts) if self._texts else self._numbers.array()
        if self._counts is None:
            return {"labels": labels}
        names = np.array(sorted(self._names))
        starts = np.concatenate([[0], np.cumsum(self._counts.array())]).astype(np.uint64)
        numbers = np.searchsorted(names, labels).astype(np.uint32)
        return dict(zip(SETS, (starts, numbers, names), strict=True))
