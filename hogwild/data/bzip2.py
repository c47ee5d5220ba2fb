"""Reading bzip2 to the last byte.

Python's own reader takes bytes that are no bzip2 for garbage behind the last stream, and leaves
out the rest of the file. But a file may be several streams one after the other, and a stream with a
flipped bit looks just like garbage.
"""

import bz2
import io
from typing import Any, BinaryIO

BLOCK = 1 << 16  # bytes to read at a time


class Streams(io.RawIOBase):
    """The contents of bzip2 streams one after the other, with nothing between and behind them.

    bzip2 knows no padding, unlike gzip: zeros at the end are refused like all else.
    """

    def __init__(self, packed: BinaryIO) -> None:
        self._packed = packed
        self._stream = bz2.BZ2Decompressor()

    def readable(self) -> bool:
        """Always."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Fills some of the buffer; 0 at the end of the last stream.

        Raises:
            OSError: what is there is no bzip2.
            EOFError: the file ends within a stream.
        """
        data = b""
        while not data:
            packed = b""
            if self._stream.eof or self._stream.needs_input:
                packed = self._stream.unused_data or self._packed.read(BLOCK)
                if not packed and not self._stream.eof:
                    raise EOFError("the file ends within a stream")
                if not packed:
                    return 0
            if self._stream.eof:
                self._stream = bz2.BZ2Decompressor()
            data = self._stream.decompress(packed, len(buffer))
        buffer[: len(data)] = data
        return len(data)
