"""Data frames, Arrow tables and Parquet files, as the text of a table: all through pyarrow."""

import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hogwild.errors import DataError
from hogwild.extras import library

WHAT = "reading Parquet files and data frames"
BATCH = 1 << 14  # rows that are turned into text at a time


class FrameText(io.RawIOBase):
    """The text of a table: it is written as it is read.

    Attributes:
        names: all columns.
        words: the columns that are text, and not numbers, whatever they look like.
    """

    def __init__(self, batches: Iterator[Any], schema: Any, name: str) -> None:
        self._pyarrow = library("pyarrow", "hogwild[arrow]", WHAT)
        self._csv = library("pyarrow.csv", "hogwild[arrow]", WHAT)
        kinds = self._pyarrow.types
        for field in schema:
            if kinds.is_nested(field.type):
                raise DataError(
                    f"{name}: the column {field.name!r} holds {field.type}: take it apart into "
                    "columns of numbers or text, or leave it out"
                )
        numbers = {
            field.name
            for field in schema
            if kinds.is_integer(field.type)
            or kinds.is_floating(field.type)
            or kinds.is_decimal(field.type)
            or kinds.is_null(field.type)
        }
        self.names = frozenset(schema.names)
        self.words = self.names - numbers
        self._schema = schema
        self._batches = batches
        self._text = memoryview(self._written(schema.empty_table(), True))

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        """Fills some of the buffer; 0 at the end."""
        while not len(self._text):
            batch = next(self._batches, None)
            if batch is None:
                return 0
            self._text = memoryview(self._written(batch, False))
        size = min(len(buffer), len(self._text))
        buffer[:size] = self._text[:size]
        self._text = self._text[size:]
        return size

    def _written(self, batch: Any, header: bool) -> bytes:
        table = self._pyarrow.table(batch) if not hasattr(batch, "num_columns") else batch
        plain = [
            column.cast(column.type.value_type)
            if self._pyarrow.types.is_dictionary(column.type)
            else column
            for column in table.columns
        ]
        table = self._pyarrow.Table.from_arrays(plain, names=table.schema.names)
        out = self._pyarrow.BufferOutputStream()
        try:
            self._csv.write_csv(table, out, self._csv.WriteOptions(include_header=header))
        except self._pyarrow.ArrowException as problem:
            raise DataError(f"a column cannot be written as text: {problem}") from None
        return out.getvalue().to_pybytes()  # type: ignore[no-any-return]


def of_parquet(path: Path) -> FrameText:
    """The text of a Parquet file."""
    parquet = library("pyarrow.parquet", "hogwild[arrow]", WHAT)
    pyarrow = library("pyarrow", "hogwild[arrow]", WHAT)
    try:
        file = parquet.ParquetFile(path)
    except (pyarrow.ArrowException, OSError) as problem:
        raise DataError(f"{path}: is no Parquet file, or damaged: {problem}") from None
    return FrameText(file.iter_batches(BATCH), file.schema_arrow, str(path))


def of_frame(data: Any, name: str) -> FrameText:
    """The text of an Arrow table, or of a data frame of pandas or polars."""
    pyarrow = library("pyarrow", "hogwild[arrow]", WHAT)
    try:
        if hasattr(data, "to_arrow"):  # polars
            data = data.to_arrow()
        elif isinstance(data, pyarrow.RecordBatch):
            data = pyarrow.Table.from_batches([data])
        elif not isinstance(data, pyarrow.Table):
            data = pyarrow.Table.from_pandas(data, preserve_index=False)
    except (pyarrow.ArrowException, TypeError, ValueError, AttributeError) as problem:
        raise DataError(
            f"{name}: expected a list of text, an Arrow table or a data frame of pandas or polars, "
            f"not {type(data).__name__} ({problem})"
        ) from None
    return FrameText(iter(data.to_batches(BATCH)), data.schema, name)
