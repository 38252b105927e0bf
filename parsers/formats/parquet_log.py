"""Reads Parquet and Arrow IPC (Feather) tables of metrics or batches: W&B and trackio exports, pandas by hand.

- Columns are known by name and look, as in csv_log: ``_step`` and ``_timestamp`` of W&B's ``history.parquet``,
  trackio's flattened columns, long tables with a column of metric names, manifests with lists of sample ids.
- A null is "not logged", a NaN is a value; ints become float64 (exact up to 2**53), steps stay int64.
- A Parquet file is often data: without a step or time beside numbers, nothing is read and a Note says what the file
  is.
- A Parquet file keeps its table of contents at its end, so a cut file is lost whole; a damaged row group costs
  itself. An IPC *stream* (no trailer) is read up to the damage.
- ``at`` is the row, from 0.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from parsers.records import column_roles, delimited
from parsers.records.table_rows import TableLog, as_cell
from parsers.tables import Gap, Note

AT = "row"

_PARQUET, _ARROW, _STREAM = b"PAR1", b"ARROW1", b"\xff\xff\xff\xff"
_BATCH_ROWS = 1 << 16
_SAMPLE_ROWS = 300


def claims(path: Path, head: bytes) -> bool:
    """By the magic bytes of Parquet and Arrow files; an IPC stream by its marker and its suffix."""
    streams = {".arrow", ".arrows", ".ipc", ".feather"}
    return head.startswith((_PARQUET, _ARROW)) or (head.startswith(_STREAM) and path.suffix.lower() in streams)


def parse(path: Path) -> Iterator[pa.RecordBatch | Gap | Note]:
    """Metric rows in the order of the table; manifests as ``batches``."""
    table = TableLog()
    row, said = 0, False
    for item in _batches(path):
        said = True
        if isinstance(item, Gap):
            row += item.lost or 0
            yield item
        elif isinstance(item, Note):
            yield item
        else:
            if not table.names:
                refusal = _begin(table, item, path)
                if refusal:
                    yield Note(f"{refusal}: {_summary(item.schema, item.num_rows)} in its first part")
                    return
            table.take({i: _plain(item.column(i)) for i in table.used()}, np.arange(row, row + item.num_rows))
            row += item.num_rows
    if not said:
        yield Note("a table without rows")
    yield from table.finish()


def _begin(table: TableLog, first: pa.RecordBatch, path: Path) -> str:
    """Learns the columns from the first rows. Says why the table is no log, if it is none."""
    names = list(first.schema.names)
    head = first.slice(0, _SAMPLE_ROWS)
    roles = column_roles.assign(names, [[as_cell(v) for v in _plain(c).to_pylist()] for c in head.columns])
    table.columns_are(names, delimited.tags(names, path, roles.metrics), roles)
    sure = roles.stepped or roles.tag is not None or roles.time is not None
    return roles.refusal or ("" if sure else "a table without steps, not a log of training")  # a Parquet file is a data set more often


def _batches(path: Path) -> Iterator[pa.RecordBatch | Gap | Note]:
    """Record batches of a file, one row group after the other; only columns that may matter."""
    try:
        with path.open("rb") as f:
            head = f.read(8)
        yield from _parquet(path) if head.startswith(_PARQUET) else _ipc(path, head.startswith(_ARROW))
    except (pa.ArrowException, OSError, ValueError, MemoryError) as e:
        yield Gap("row 0", f"cannot be read: {_reason(e)}", None)


def _parquet(path: Path) -> Iterator[pa.RecordBatch | Gap | Note]:
    import pyarrow.parquet as pq

    with pq.ParquetFile(path, memory_map=False) as file:
        if b"forensics" in (file.schema_arrow.metadata or {}):
            yield Note("the table of an audit by forensics, no log")
            return
        wanted = [f.name for f in file.schema_arrow if _may_matter(f.type)]
        if not any(_is_number(f.type) for f in file.schema_arrow):
            yield Note(f"a table without numbers: {_summary(file.schema_arrow, file.metadata.num_rows)}")
            return
        row = 0
        for group in range(file.num_row_groups):
            rows = file.metadata.row_group(group).num_rows
            got = 0
            try:
                for batch in file.iter_batches(_BATCH_ROWS, row_groups=[group], columns=wanted, use_threads=False):
                    got += batch.num_rows
                    yield batch
            except (pa.ArrowException, OSError, ValueError) as e:
                yield Gap(f"row {row + got}", f"damaged row group: {_reason(e)}", max(rows - got, 0))
            row += rows


def _ipc(path: Path, has_trailer: bool) -> Iterator[pa.RecordBatch | Gap]:
    row = 0
    file: Any = None
    with pa.OSFile(str(path)) as source:
        try:
            file = pa.ipc.open_file(source) if has_trailer else None
        except pa.ArrowException as e:
            yield Gap("row 0", f"no table of contents: {_reason(e)}; read as a stream", 0)
            source.seek(8)  # behind the magic and its padding, a file is a stream
        stream = pa.ipc.open_stream(source) if file is None else None
        for i in count() if file is None else range(file.num_record_batches):
            batch = None
            try:
                batch = _narrow(stream.read_next_batch() if stream is not None else file.get_batch(i))
                batch.validate(full=True)
            except StopIteration:
                return
            except (pa.ArrowException, OSError, MemoryError) as e:
                if batch is None and stream is not None:
                    yield Gap(f"row {row}", f"the stream breaks off: {_reason(e)}", None)
                    return
                yield Gap(f"row {row}", f"damaged record batch: {_reason(e)}", None if batch is None else batch.num_rows)
            else:
                yield batch
            row += 0 if batch is None else batch.num_rows


def _narrow(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The columns that may matter. Arrow believes offsets and codes: unless all are validated, hostile ones end the process."""
    names = batch.schema.names  # a name that is no UTF-8 raises here, where it can be said; and two may share one
    return batch.select([i for i in range(len(names)) if _may_matter(batch.schema.field(i).type)])


def _reason(error: BaseException) -> str:
    return str(error).strip().split("\n")[0][:160]


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))


def _may_matter(kind: pa.DataType) -> bool:
    """Numbers, text, times, and lists of ids; not the images and nested records of a data set."""
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        kind = kind.value_type
    text = pa.types.is_string(kind) or pa.types.is_large_string(kind)
    return bool(_is_number(kind) or text or pa.types.is_timestamp(kind))


def _summary(schema: pa.Schema, rows: int) -> str:
    names = ", ".join(schema.names[:8])
    return f"{rows} rows, {len(schema.names)} columns ({names}{', ...' if len(schema.names) > 8 else ''})"


def _plain(column: pa.Array) -> pa.Array:
    """Without dictionaries, decimals and timestamps: text, lists, numbers, seconds since 1970."""
    kind = column.type
    if pa.types.is_dictionary(kind):
        column = column.dictionary_decode()
    if pa.types.is_timestamp(kind):
        micros = column.cast(pa.timestamp("us", kind.tz), safe=False).cast(pa.int64())
        return pa.array([None if t is None else t / 1e6 for t in micros.to_pylist()], pa.float64())
    return column.cast(pa.float64()) if pa.types.is_decimal(kind) or pa.types.is_float16(kind) else column
