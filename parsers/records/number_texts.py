"""Numbers that stand as text in a buffer, read by the thousand. A helper of parsers, no parser."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

Words = NDArray[np.uint64]
Ints = NDArray[np.int64]

_U = np.uint64
_LOW_BYTES = np.array([(1 << 8 * n) - 1 for n in range(9)], _U)


def words(data: bytes) -> Words:
    """The 8-byte little-endian word at every position of ``data`` (a view, nothing is copied)."""
    return np.ndarray((max(len(data) - 7, 0),), "<u8", data, 0, (1,))


def floats(data: bytes, at: Words, start: Ints, length: Ints) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Parses the texts at ``start``, of which ``at`` are the words: their values, and which were numbers.

    The data has at least 12 bytes behind the last text. polars parses them in place, through an Arrow array of string
    views: 16 bytes a text, its length, its first four bytes, then its other eight or, where it is longer than 12, the
    buffer's number (0) and the place in it.
    """
    import polars as pl

    if not len(start):
        return np.zeros(0), np.zeros(0, np.bool_)
    views = np.empty((len(start), 2), _U)
    head = at[start] & _LOW_BYTES[np.minimum(length, 4)]
    tail = at[start + 4] & _LOW_BYTES[np.clip(length - 4, 0, 8)]
    views[:, 0] = length.astype(_U) | head << _U(32)
    views[:, 1] = np.where(length <= 12, tail, start.astype(_U) << _U(32))
    buffers = [None, pa.py_buffer(views), pa.py_buffer(data)]
    parsed = pl.Series(pa.Array.from_buffers(pa.string_view(), len(start), buffers)).cast(pl.Float64, strict=False)
    known = parsed.is_not_null().to_numpy() if parsed.null_count() else np.ones(len(start), np.bool_)
    return parsed.to_numpy(), known  # null comes as NaN
