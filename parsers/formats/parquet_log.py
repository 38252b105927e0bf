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
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa

from parsers.records import column_roles, delimited
from parsers.records.column_roles import Cell, Roles
from parsers.records.table_rows import EpochClock, Manifest, wide_batch
from parsers.tables import Gap, Note, Rows, record_batch

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
    table: _Table | None = None
    row, said = 0, False
    for item in _batches(path):
        said = True
        if isinstance(item, Gap):
            row += item.lost or 0
            yield item
        elif isinstance(item, Note):
            yield item
        else:
            if table is None:
                table = _Table(item, path)
                yield from (Note(text) for text in table.notes)
                if not table.is_log:
                    return
            yield from table.read(item, row)
            row += item.num_rows
    if not said:
        yield Note("a table without rows")


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


def _ipc(path: Path, has_trailer: bool) -> Iterator[pa.RecordBatch | Gap | Note]:
    row = 0
    with pa.OSFile(str(path)) as source:
        try:
            if has_trailer:
                file = pa.ipc.open_file(source)
                yield from _ipc_file(file)
                return
        except pa.ArrowException as e:
            yield Gap("row 0", f"no table of contents: {_reason(e)}; read as a stream", 0)
            source.seek(8)  # behind the magic and its padding, a file is a stream
        stream = pa.ipc.open_stream(source)
        while True:
            try:
                batch = _narrow(stream.read_next_batch())
            except StopIteration:
                return
            except (pa.ArrowException, OSError, MemoryError) as e:
                yield Gap(f"row {row}", f"the stream breaks off: {_reason(e)}", None)
                return
            try:
                batch.validate(full=True)
                yield batch
            except pa.ArrowException as e:
                yield Gap(f"row {row}", f"damaged record batch: {_reason(e)}", batch.num_rows)
            row += batch.num_rows


def _ipc_file(file: Any) -> Iterator[pa.RecordBatch | Gap | Note]:
    row = 0
    for i in range(file.num_record_batches):
        try:
            batch = _narrow(file.get_batch(i))
            batch.validate(full=True)
        except (pa.ArrowException, OSError, MemoryError) as e:
            yield Gap(f"row {row}", f"damaged record batch: {_reason(e)}", None)
            continue
        row += batch.num_rows
        yield batch


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


class _Table:
    """The columns by what they are, and what a row needs of the rows before it."""

    def __init__(self, first: pa.RecordBatch, path: Path) -> None:
        self.names = list(first.schema.names)
        head = first.slice(0, _SAMPLE_ROWS)
        self.roles = column_roles.assign(self.names, [[_cell(v) for v in _plain(c).to_pylist()] for c in head.columns])
        self.tags = delimited.tags(self.names, path, self.roles.metrics)
        self.rows, self.clock = Rows(), EpochClock()
        self.manifest = Manifest(self.rows)
        self.row_number = 0
        self.notes = []
        refusal = self.roles.refusal
        sure = self.roles.steps_are in ("steps", "epochs") or self.roles.tag is not None or self.roles.time is not None
        if not sure:  # a Parquet file is a data set more often than a log
            refusal = refusal or "a table without steps, not a log of training"
        self.is_log = not refusal
        if refusal:
            self.notes.append(f"{refusal}: {_summary(first.schema, first.num_rows)} in its first part")
        elif self.roles.steps_are != "steps":
            self.notes.append(f"steps are {self.roles.steps_are}")

    def read(self, batch: pa.RecordBatch, first: int) -> Iterator[pa.RecordBatch]:
        roles = self.roles
        n = batch.num_rows
        if not n:
            return
        plain = {i: _plain(batch.column(i)) for i in _used(roles)}
        step = pa.array(range(self.row_number, self.row_number + n), pa.int64())
        self.row_number += n
        if roles.step is not None:
            epochs = None if roles.epoch in (None, roles.step) else _numbers(plain[roles.epoch])
            step = self._steps(_whole(plain[roles.step]), epochs)
        rank = None if roles.rank is None else _whole(plain[roles.rank]).cast(pa.int32(), safe=False)
        time = None
        if roles.time is not None:
            values = plain[roles.time].to_pylist()
            time = pa.array([column_roles.seconds(_cell(v), roles.time_scale) for v in values], pa.float64())
        at = pa.array(range(first, first + n), pa.int64())
        if roles.sample is not None or roles.shard is not None:
            yield from self._manifest(plain, step, rank, at)
        if roles.tag is not None and roles.value is not None:
            yield from self._long(plain, step, time, rank, at)
        if roles.metrics:
            values = [_numbers(plain[i]) for i in roles.metrics]
            tags = [self.tags[i] for i in roles.metrics]
            yield wide_batch(tags, values, step=step, time=time, rank=rank, at=at)

    def _steps(self, steps: pa.Array, epochs: pa.Array | None) -> pa.Array:
        if epochs is None:
            return steps
        if not steps.null_count:
            filled = epochs.fill_null(float("nan")).to_numpy(zero_copy_only=False)
            if self.clock.untouched(steps.to_numpy(), filled):
                return steps
        pairs = zip(steps.to_pylist(), epochs.to_pylist(), strict=True)
        return pa.array([self.clock.step(s, e) for s, e in pairs], pa.int64())

    def _manifest(self, plain: dict[int, pa.Array], step: pa.Array, rank: pa.Array | None, at: pa.Array
                  ) -> Iterator[pa.RecordBatch]:  # fmt: skip
        def cells(i: int | None) -> list[Any]:
            return [None] * len(at) if i is None else plain[i].to_pylist()

        roles = self.roles
        ranks = rank.to_pylist() if rank is not None else [None] * len(at)
        places = zip(cells(roles.sample), cells(roles.shard), cells(roles.position), strict=True)
        for s, r, a, (sample, shard, position) in zip(step.to_pylist(), ranks, at.to_pylist(), places, strict=True):
            ids, shards = column_roles.split_ids(sample), column_roles.split_ids(shard)
            self.manifest.add(s, r, ids, shards, column_roles.whole(_cell(position)), a)
            if self.rows.full():
                yield from self.rows.flush()
        yield from self.rows.flush()

    def _long(self, plain: dict[int, pa.Array], step: pa.Array, time: pa.Array | None, rank: pa.Array | None,
              at: pa.Array) -> Iterator[pa.RecordBatch]:  # fmt: skip
        from pyarrow import compute as pc

        roles = self.roles
        assert roles.tag is not None and roles.value is not None
        value, tag = _numbers(plain[roles.value]), plain[roles.tag].cast(pa.string())
        keep = pc.and_(value.is_valid(), tag.is_valid())
        axes = {"step": step, "time": time, "rank": rank, "at": at, "value": value, "tag": tag.dictionary_encode()}
        yield record_batch("metrics", {k: v.filter(keep) for k, v in axes.items() if v is not None})


def _used(roles: Roles) -> set[int]:
    single = (roles.step, roles.epoch, roles.time, roles.rank, roles.tag, roles.value, roles.sample, roles.shard)
    return {i for i in (*single, roles.position, *roles.metrics) if i is not None}


def _plain(column: pa.Array) -> pa.Array:
    """Without dictionaries, decimals and timestamps: text, lists, numbers, seconds since 1970."""
    kind = column.type
    if pa.types.is_dictionary(kind):
        column = column.dictionary_decode()
    if pa.types.is_timestamp(kind):
        micros = column.cast(pa.timestamp("us", kind.tz), safe=False).cast(pa.int64())
        return pa.array([None if t is None else t / 1e6 for t in micros.to_pylist()], pa.float64())
    return column.cast(pa.float64()) if pa.types.is_decimal(kind) or pa.types.is_float16(kind) else column


def _numbers(column: pa.Array) -> pa.Array:
    """float64; text in a column of numbers is null unless it says a number ('NaN', 'Infinity')."""
    if _is_number(column.type):
        return column.cast(pa.float64(), safe=False)
    values = (_cell(v) for v in column.to_pylist())
    return pa.array([v if isinstance(v, (int, float)) else None for v in values], pa.float64(), from_pandas=False)


def _whole(column: pa.Array) -> pa.Array:
    if column.type == pa.int64():
        return column
    return pa.array([column_roles.whole(_cell(v)) for v in column.to_pylist()], pa.int64())


def _cell(value: Any) -> Cell:
    """A Python value as a cell of a table: numbers, text; a list as the text that lists its items."""
    if isinstance(value, (bool, bytes)):
        return None
    if isinstance(value, str):
        return column_roles.cell(value)
    if isinstance(value, list):
        return " ".join(str(v) for v in islice(value, 50))
    return value if isinstance(value, (int, float)) else None
