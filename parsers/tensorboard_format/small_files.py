"""Small event files read as one: what it takes to begin and to end a file is paid once for hundreds of runs.

Sound files laid end to end are one chain of records. Where that chain is not whole, or where what is known of one file
could change how another is read, the answer is None, and each file has to be read alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa

from parsers import arrow
from parsers.formats import tensorboard
from parsers.tables import Gap
from parsers.tensorboard_format import tfrecord


def parse(paths: Sequence[Path]) -> list[list[pa.RecordBatch]] | None:
    """The record batches of each file, as ``tensorboard.parse`` gives them."""
    texts = [path.read_bytes() for path in paths]
    offsets = np.cumsum([0, *map(len, texts)])
    data = np.frombuffer(b"".join([*texts, bytes(tfrecord.PADDING)]), np.uint8)
    records = tfrecord.whole(data, int(offsets[-1]))
    if records is None or not len(records.start):
        return None
    begins, at = offsets[:-1][np.diff(offsets) > 0], records.at()
    if (at[np.minimum(np.searchsorted(at, begins), len(at) - 1)] != begins).any():
        return None
    reader = tensorboard.Reader()
    batches = [*reader.window(records), *reader.flush()]
    if any(isinstance(b, Gap) for b in batches) or any(reader.counts.values()) or set(reader.names.plugin.values()) - {"scalars"}:
        return None
    found: list[list[pa.RecordBatch]] = [[] for _ in paths]
    for batch in batches:
        _deal(batch, offsets, found)
    return found


def _deal(batch: pa.RecordBatch, offsets: np.ndarray, found: list[list[pa.RecordBatch]]) -> None:
    """Cuts a batch where the next file begins; places in it count from there."""
    at = arrow.values(batch["at"])
    file = np.searchsorted(offsets, at, side="right") - 1
    if (file[1:] < file[:-1]).any():
        raise ValueError("rows out of file order")
    columns = {name: batch[name] for name in batch.schema.names} | {"at": arrow.numbers(at - offsets[file])}
    ends = np.searchsorted(file, np.arange(len(found) + 1))
    for i in np.flatnonzero(np.diff(ends)).tolist():
        first, count = int(ends[i]), int(ends[i + 1] - ends[i])
        parts = [_own(c.slice(first, count)) for c in columns.values()]
        found[i].append(pa.RecordBatch.from_arrays(parts, schema=batch.schema))


def _own(column: pa.Array) -> pa.Array:
    """A column of tags with no other tags than its own."""
    if not isinstance(column, pa.DictionaryArray) or column.null_count:
        return column
    codes = arrow.values(column.indices)
    seen = np.zeros(len(column.dictionary), np.bool_)
    seen[codes] = True
    if seen.all():
        return column
    names = column.dictionary.to_pylist()
    return arrow.coded((np.cumsum(seen) - 1)[codes], [n for n, here in zip(names, seen.tolist(), strict=True) if here])
