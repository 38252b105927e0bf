"""Arrow columns from numpy arrays and lists, and back, by their buffers.

``pyarrow.array`` imports pandas where that is installed, merely to ask whether its argument is a Series, and
``pyarrow.compute`` takes a tenth of a second to import: more than reading a small run. Nothing here needs either.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

BLOCK = 1 << 20  # bound: rows looked at in one go; memory peaks where whole columns of a long run are copied

Bools = npt.NDArray[np.bool_]

_KINDS = {"f8": pa.float64(), "i8": pa.int64(), "i4": pa.int32(), "f4": pa.float32()}
_DTYPES = {pa.float64(): "f8", pa.int64(): "i8", pa.int32(): "i4", pa.float32(): "f4"}


def numbers(values: npt.NDArray[Any], valid: Bools | None = None) -> pa.Array:
    """Numbers without a copy; null where not ``valid``."""
    values = np.ascontiguousarray(values)
    bits = None if valid is None or valid.all() else pa.py_buffer(np.packbits(valid, bitorder="little"))
    return pa.Array.from_buffers(_KINDS[values.dtype.str[1:]], len(values), [bits, pa.py_buffer(values)])


def is_number(kind: pa.DataType) -> bool:
    """Is it one of the types that :func:`numbers` and :func:`values` are for?"""
    return kind in _DTYPES


def nothing(length: int, kind: pa.DataType) -> pa.Array:
    """Nulls of a type of numbers; their pages are never touched, so they take no memory until someone writes."""
    if kind not in _DTYPES:
        return pa.nulls(length, kind)
    bits, values = np.zeros((length + 7) // 8, np.uint8), np.zeros(length, _DTYPES[kind])
    return pa.Array.from_buffers(kind, length, [pa.py_buffer(bits), pa.py_buffer(values)], null_count=length)


def texts(values: Sequence[str | None]) -> pa.Array:
    """Strings; half of a surrogate pair becomes a question mark."""
    encoded = [b"" if v is None else v.encode("utf-8", "replace") for v in values]
    ends = np.fromiter(accumulate(map(len, encoded), initial=0), np.int64, len(encoded) + 1)
    if int(ends[-1]) >= 1 << 31:
        raise MemoryError("more than 2 GiB of text in one batch")
    valid = None if None not in values else np.array([v is not None for v in values])
    bits = None if valid is None else pa.py_buffer(np.packbits(valid, bitorder="little"))
    held = [bits, pa.py_buffer(ends.astype(np.int32)), pa.py_buffer(b"".join(encoded))]
    return pa.StringArray.from_buffers(len(encoded), held[1], held[2], held[0])


def repeated(text: str, times: int) -> pa.Array:
    """A string column that says the same in every row."""
    raw = text.encode()
    ends = np.arange(times + 1, dtype=np.int32) * np.int32(len(raw))
    return pa.StringArray.from_buffers(times, pa.py_buffer(ends), pa.py_buffer(raw * times))


def blobs(values: Sequence[bytes]) -> pa.Array:
    """Bytes, of any size together."""
    ends = np.fromiter(accumulate(map(len, values), initial=0), np.int64, len(values) + 1)
    return pa.Array.from_buffers(pa.large_binary(), len(values), [None, pa.py_buffer(ends), pa.py_buffer(b"".join(values))])


def flags(values: Bools) -> pa.Array:
    """True and false, for instance which rows to keep."""
    return pa.Array.from_buffers(pa.bool_(), len(values), [None, pa.py_buffer(np.packbits(values, bitorder="little"))])


def coded(codes: npt.NDArray[Any], values: Sequence[str]) -> pa.DictionaryArray:
    """A dictionary column from the codes of its values."""
    return pa.DictionaryArray.from_arrays(numbers(codes.astype(np.int32, copy=False)), texts(values), safe=False)


def column(values: Sequence[Any], kind: pa.DataType) -> pa.Array:
    """A list with None in it as a column; whatever is no plain number or text goes through pyarrow."""
    if pa.types.is_dictionary(kind):
        codes: dict[str | None, int] = {v: i for i, v in enumerate(dict.fromkeys(v for v in values if v is not None))}
        picked = np.fromiter((codes.get(v, -1) for v in values), np.int32, len(values))
        indices = numbers(np.maximum(picked, 0), picked >= 0)
        return pa.DictionaryArray.from_arrays(indices, texts(list(codes)), safe=False)
    if pa.types.is_string(kind):
        return texts(values)
    if pa.types.is_list(kind):
        return _lists(values, kind)
    if pa.types.is_boolean(kind):
        bits = [_bits([v is not None for v in values]), _bits([v is True for v in values])]
        return pa.Array.from_buffers(kind, len(values), bits)
    if kind not in _DTYPES:
        return pa.array(values, kind, from_pandas=False)
    if None not in values:
        return numbers(np.array(values, _DTYPES[kind]))
    valid = np.array([v is not None for v in values], np.bool_)
    return numbers(np.array([0 if v is None else v for v in values], _DTYPES[kind]), valid)


def _lists(lists: Sequence[Sequence[Any] | None], kind: pa.ListType) -> pa.Array:
    ends = np.fromiter(accumulate((len(x or ()) for x in lists), initial=0), np.int32, len(lists) + 1)
    inner = column([v for x in lists for v in x or ()], kind.value_type)
    there = _bits([x is not None for x in lists])
    return pa.Array.from_buffers(kind, len(lists), [there, pa.py_buffer(ends)], children=[inner])


def _bits(flags: Sequence[bool]) -> pa.Buffer:
    return pa.py_buffer(np.packbits(np.array(flags, np.bool_), bitorder="little"))


def values(array: pa.Array | pa.ChunkedArray) -> npt.NDArray[Any]:
    """A column of numbers as it lies in memory; meaningless where it is null (see :func:`valid`)."""
    if isinstance(array, pa.ChunkedArray):
        if array.num_chunks != 1:
            parts = [values(c) for c in array.chunks]
            return np.concatenate(parts) if parts else np.zeros(0, _DTYPES[array.type])
        array = array.chunk(0)
    held, dtype, offset = array.buffers()[1], _DTYPES[array.type], array.offset
    if held is None:
        return np.zeros(len(array), dtype)
    whole = np.frombuffer(held, dtype, len(array) + offset)
    return whole[offset:] if offset else whole


def valid(array: pa.Array | pa.ChunkedArray) -> Bools | None:
    """Which values are not null; None: all of them."""
    if array.null_count == 0:
        return None
    if isinstance(array, pa.ChunkedArray):
        parts = [(valid(c), len(c)) for c in array.chunks]
        return np.concatenate([np.ones(n, np.bool_) if v is None else v for v, n in parts])
    bits = np.unpackbits(np.frombuffer(array.buffers()[0], np.uint8), bitorder="little")
    return bits[array.offset : array.offset + len(array)].view(np.bool_)


def present(array: pa.Array | pa.ChunkedArray) -> Bools:
    """Which values are not null, as an array in any case."""
    found = valid(array)
    return np.ones(len(array), np.bool_) if found is None else found


def filled(array: pa.Array | pa.ChunkedArray, fill: float) -> npt.NDArray[Any]:
    """A column of numbers with ``fill`` where it is null."""
    is_there = valid(array)
    return values(array) if is_there is None else np.where(is_there, values(array), values(array).dtype.type(fill))


def picked(array: pa.ChunkedArray, rows: npt.NDArray[np.int64], fill: float) -> npt.NDArray[Any]:
    """As ``filled(array, fill)[rows]``, of ascending rows, without a copy of the whole column."""
    ends = np.cumsum([0, *(len(c) for c in array.chunks)])
    cuts = np.searchsorted(rows, ends).tolist()
    parts = [
        filled(c, fill)[rows[i:j] - first] for c, first, i, j in zip(array.chunks, ends.tolist(), cuts, cuts[1:], strict=False) if j > i
    ]
    return np.concatenate(parts) if parts else np.zeros(0, _DTYPES[array.type])


def known(array: pa.Array | pa.ChunkedArray) -> npt.NDArray[Any]:
    """The numbers of a column that are not null."""
    is_there = valid(array)
    return values(array) if is_there is None else values(array)[is_there]


def distinct(array: pa.Array | pa.ChunkedArray) -> list[Any]:
    """What a column of numbers (ascending) or of coded texts (as coded) holds, nulls left out."""
    if not pa.types.is_dictionary(array.type):
        return list(ascending(array).tolist())
    if isinstance(array, pa.ChunkedArray):
        if array.num_chunks == 0:
            return []
        array = array.chunk(0) if array.num_chunks == 1 else array.combine_chunks()
    held = np.bincount(known(array.indices))
    return [text for text, times in zip(array.dictionary.to_pylist(), held.tolist(), strict=False) if times]


def ascending(array: pa.Array | pa.ChunkedArray) -> npt.NDArray[Any]:
    """The different numbers of a column, ascending, nulls left out."""
    found = known(array)
    rising = np.diff(found) > 0
    if not rising.all():  # steps mostly rise: a sort is then ten times as fast as np.unique
        found = np.sort(found)
        rising = np.diff(found) > 0
    return found[np.concatenate([[True], rising])] if len(found) else found


def taken(array: pa.Array, order: npt.NDArray[np.int64]) -> pa.Array:
    """The rows in this order, each once."""
    if pa.types.is_dictionary(array.type):
        return pa.DictionaryArray.from_arrays(taken(array.indices, order), array.dictionary, safe=False)
    if not is_number(array.type):
        return array.take(numbers(order))
    is_there = valid(array)
    return numbers(values(array)[order], None if is_there is None else is_there[order])


def with_column(batch: pa.RecordBatch, name: str, column: pa.Array) -> pa.RecordBatch:
    """The batch with another column in the place of one it has."""
    columns = [column if c == name else batch[c] for c in batch.schema.names]
    return pa.RecordBatch.from_arrays(columns, schema=batch.schema)


def codes(array: pa.Array | pa.ChunkedArray) -> tuple[npt.NDArray[np.int32], list[str]]:
    """A dictionary column without nulls: the code of each row, and what the codes stand for."""
    if isinstance(array, pa.ChunkedArray):
        if array.num_chunks == 0:
            return np.zeros(0, np.int32), []
        array = array.chunk(0) if array.num_chunks == 1 else array.combine_chunks()
    return values(array.indices), array.dictionary.to_pylist()


def stretches(codes: npt.NDArray[np.int32], count: int) -> list[tuple[int, int]]:
    """Where the rows of each code begin and end; they stand together, in the order of the codes."""
    if count == 1:
        return [(0, len(codes))]
    starts = np.searchsorted(codes, np.arange(count + 1, dtype=np.int32)).tolist()
    return list(zip(starts[:-1], starts[1:], strict=True))


def words(array: pa.ChunkedArray) -> list[str]:
    """What the codes of a dictionary column stand for."""
    return array.chunk(0).dictionary.to_pylist() if array.num_chunks == 1 else codes(array)[1]


def groups(group: npt.NDArray[Any]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Rows by the whole number of their group: an order in which those of a group stand together, as they came; where in it groups begin; how large they are."""
    order = np.argsort(group, kind="stable")
    first = np.flatnonzero(np.diff(group[order], prepend=~group[order[:1]]))
    return order, first, np.diff(first, append=len(order))


def nth_of_group(group: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    """Of each row, which of its group it is, from 0, in their order."""
    order, first, size = groups(group)
    place = np.empty(len(group), np.int64)
    place[order] = np.arange(len(group)) - np.repeat(first, size)
    return place
