"""The tables every parser fills, and the few nouns around them.

A parser module has two functions and no class::

    def claims(path: pathlib.Path, head: bytes) -> bool      # does this file belong to me?  head = its first HEAD_BYTES
    def parse(path: pathlib.Path) -> Iterator[pa.RecordBatch | Gap | Note]

It collects rows in a :class:`Rows` and yields what ``Rows.flush()`` gives. The columns ``name``, ``attempt`` and ``source``
are filled in by :func:`parsers.read`, which knows the whole run; a parser leaves them out. A column means the same whatever file it came from:

========== ============================================================================================
step       optimizer steps in the run's own labels (never shifted); null where the row has no step
tag        the metric's name as it was logged
name       its canonical name (``loss.train``), or ``other/<tag>``
value      float64, as logged: NaN and infinities are kept, nothing is converted
time       seconds since 1970-01-01 UTC as float64; null where the file says nothing. A clock that no one can date counts from
           the file's first one (below `DATED`): only differences within the file mean something then
rank       the process that wrote the row; null where the file says nothing
attempt    which attempt of the run the row belongs to, from 0
source, at the file (relative to the run) and the place in it; the unit of ``at`` is the source's ``unit``
========== ============================================================================================
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa

from parsers import arrow, secrets

HEAD_BYTES = 8192
FLUSH_ROWS = 65536
DATED = 3.1e8  # seconds since 1970 of late 1979: wall clocks of trainings lie above, relative ones and durations below
WIDEST_ZONE = 14 * 3600.0  # seconds: Kiribati is that far ahead of UTC (tz database)
ZONES_APART = 86400.0  # seconds, and some, by which two clocks without a zone may differ: from 12 hours behind UTC to 14 ahead
DOUBTED = 30 * 86400.0  # seconds between two lines of one run that are a wrong clock or another run: no job waits so long
NO_YEAR = 1972  # a leap year: a parser gives clocks without a year in it, those without a date on 1970-01-01 (parsers.clocks)
LINES_COUNTED = "the running number of the line, for the log names no steps"  # a note on the steps of a file

_NAME = pa.dictionary(pa.int32(), pa.string())
_ORIGIN = [("source", _NAME), ("at", pa.int64())]

SCHEMAS: dict[str, pa.Schema] = {
    "metrics": pa.schema(
        [("step", pa.int64()), ("tag", _NAME), ("name", _NAME), ("value", pa.float64()), ("time", pa.float64())]
        + [("rank", pa.int32()), ("attempt", pa.int32()), *_ORIGIN]
    ),
    "histograms": pa.schema(  # distributions of weights, gradients, activations: a summary each
        [("step", pa.int64()), ("tag", _NAME), ("time", pa.float64()), ("count", pa.float64())]
        + [(c, pa.float64()) for c in ("min", "max", "mean", "std", "p05", "p25", "p50", "p75", "p95")]
        + [("rank", pa.int32()), ("attempt", pa.int32()), *_ORIGIN]
    ),
    "events": pa.schema(
        [("step", pa.int64()), ("time", pa.float64()), ("rank", pa.int32()), ("attempt", pa.int32())]
        + [("kind", pa.string()), ("level", pa.string()), ("text", pa.string()), *_ORIGIN]
    ),
    "config": pa.schema([("attempt", pa.int32()), ("key", pa.string()), ("value", pa.string()), *_ORIGIN]),
    "batches": pa.schema(
        [("step", pa.int64()), ("rank", pa.int32()), ("attempt", pa.int32()), ("position", pa.int64())]
        + [("sample", pa.string()), ("shard", pa.string()), ("how", pa.string()), *_ORIGIN]
    ),
    "checkpoints": pa.schema(
        [("step", pa.int64()), ("path", pa.string()), ("kind", pa.string()), ("format", pa.string())]
        + [("bytes", pa.int64()), ("complete", pa.bool_()), ("time", pa.float64()), ("attempt", pa.int32()), *_ORIGIN]
    ),
    "tensors": pa.schema(
        [("checkpoint", pa.string()), ("name", pa.string()), ("role", pa.string()), ("dtype", pa.string())]
        + [("shape", pa.list_(pa.int64()))]
        + [(c, pa.float64()) for c in ("norm", "mean", "std", "absmax")]
        + [("nonfinite", pa.int64()), ("zeros", pa.int64()), *_ORIGIN]
    ),
}
"""Extend freely; rename nothing: these are the Parquet files of ``forensics tables``."""

FILLED_BY_READ = ("name", "attempt", "source")


@dataclass(frozen=True)
class Gap:
    """Something that could not be read: where, what, and how many records it cost (None: unknown)."""

    at: str  # "byte 1024" or "line 12"
    what: str
    lost: int | None = None
    path: str = ""  # relative to the run; filled in by read()


@dataclass(frozen=True)
class Note:
    """Something true of a file as a whole ("12 images counted, not decoded"); shown beside it in the sources.

    ``clock``: "local" where the file's clock names no time zone.
    """

    text: str
    clock: str = ""


@dataclass(frozen=True)
class Source:
    """A file that was looked at, claimed by a parser or not."""

    path: str
    format: str  # the parser's name, or what the file is when no parser claims it
    bytes: int
    records: int = 0
    sha256: str | None = None
    unit: str = "line"  # what `at` counts in this file
    note: str = ""
    claimed: bool = True
    clock: str = ""  # of its times: "local" without a zone, read as UTC; "relative" without a date; else they are moments


@dataclass
class Run:
    """Everything that could be read of one run. ``tables`` maps the names of SCHEMAS to materialized Arrow tables."""

    id: str
    path: str
    tables: dict[str, pa.Table]
    sources: list[Source]
    gaps: list[Gap]
    root: str = ""  # the local file or folder that the paths of the sources are relative to
    siblings: list[dict[str, Any]] = field(default_factory=list)  # the other runs of its place, as the case lists them (docs/case.md)
    group: list[Run] = field(default_factory=list)  # the runs that differ from this one only in their seed, itself included
    attempts: list[dict[str, Any]] = field(default_factory=list)
    launch: tuple[int, int] = (1, 1)  # which of how many trainings it is that wrote the same files, each from its beginning
    ends: tuple[int, ...] = ()  # the last steps of these trainings
    merged: int = 0  # metric rows left out because another file says the same
    framework: str | None = None
    meanings: dict[tuple[str, str], Any] = field(default_factory=dict)  # (source, tag) -> names.Meaning
    cache: dict[Any, Any] = field(default_factory=dict, repr=False)  # forensics.run.once: derived from the tables, used by many
    aliases: Any = None  # forensics.run.metric_aliases.Aliases: which tags were given which names
    copy: Any = field(default=None, repr=False)  # of a run behind a URL its forensics.outlines.Copy, deleted with the last of its runs
    files: dict[str, Path] = field(default_factory=dict, repr=False)  # of sources that are shown under another name

    def file(self, source: str) -> Path:
        """Where the file of a source lies, whatever name it is shown under."""
        root = Path(self.root)
        return self.files.get(source) or (root / source if root.is_dir() else root)

    def where(self, source: str, at: int | None) -> str:
        """'log.jsonl line 1501': the place a row came from, as a person would write it."""
        unit = next((s.unit for s in self.sources if s.path == source), "line")
        return source if at is None else f"{source} {unit} {at}"


class Rows:
    """Collects rows of any table and hands them over as record batches of that table's schema.

    Text and the values of config are masked here, so that no secret ever leaves a parser; names are hidden by parsers.shown. ``run`` names the run that the rows belong to,
    where a file holds several; it is none of the columns, and the file becomes several runs.
    """

    def __init__(self, run: str = "") -> None:
        self._run = run
        self._columns: dict[str, dict[str, list[Any]]] = {}
        self._count: dict[str, int] = {}

    def add(self, table: str, **row: Any) -> None:
        columns = self._columns.get(table)
        if columns is None:
            columns = self._columns[table] = {c: [] for c in SCHEMAS[table].names if c not in FILLED_BY_READ}
            self._count[table] = 0
        self._count[table] += 1
        for name, column in columns.items():
            column.append(row.get(name))

    def metric(
        self, step: int | None, tag: str, value: float, *, time: float | None = None, at: int | None = None, rank: int | None = None
    ) -> None:
        self.add("metrics", step=step, tag=tag, value=value, time=time, at=at, rank=rank)

    def event(self, kind: str, text: str, *, level: str = "info", **where: int | float | None) -> None:
        """``where``: step, time, at and rank, as far as they are known."""
        self.add("events", kind=kind, text=text, level=level, **where)

    def texts(self, kind: str, texts: list[str], steps: list[int], times: list[float], places: list[int]) -> None:
        """Many events at once."""
        for text, step, time, at in zip(texts, steps, times, places, strict=True):
            self.add("events", kind=kind, text=text, level="info", step=step, time=time, at=at)

    def config(self, key: str, value: Any, *, at: int | None = None) -> None:
        self.add("config", key=key, value=secrets.mask_config(key, value), at=at)

    def full(self) -> bool:
        return any(n >= FLUSH_ROWS for n in self._count.values())

    def flush(self) -> Iterator[pa.RecordBatch]:
        for table, columns in self._columns.items():
            if table == "events":  # together, for a private key may go on from line to line
                columns["text"] = secrets.mask_texts(columns["text"])
            yield record_batch(table, columns, self._run)
        self._columns, self._count = {}, {}


def record_batch(table: str, columns: dict[str, Any], run: str = "") -> pa.RecordBatch:
    """Columns (lists, numpy or Arrow arrays) -> a batch that knows its table, and its run in a file of several; missing
    columns are null.

    Arrow arrays (:mod:`parsers.arrow`) are the fast way in: a Python list is walked value by value.
    """
    schema = SCHEMAS[table]
    length = len(next(iter(columns.values())))
    arrays, fields = [], []
    for f in schema:
        if f.name in FILLED_BY_READ:
            continue
        column = columns.get(f.name)
        if column is None:
            array = arrow.nothing(length, f.type)
        elif isinstance(column, (pa.Array, pa.ChunkedArray)):
            array = column if column.type == f.type else column.cast(f.type)
        elif isinstance(column, list):
            array = arrow.column(column, f.type)
        else:
            array = pa.array(column, f.type, from_pandas=False)
        arrays.append(array)
        fields.append(pa.field(f.name, f.type))
    return pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields, metadata={"table": table} | ({"run": run} if run else {})))


def table_of(batch: pa.RecordBatch) -> str:
    return str((batch.schema.metadata or {})[b"table"].decode())


def run_of(batch: pa.RecordBatch) -> str:
    """The run that a batch belongs to, where its file holds several; else nothing."""
    return str((batch.schema.metadata or {}).get(b"run", b"").decode())


@cache
def empty(table: str) -> pa.Table:
    return pa.Table.from_arrays([pa.nulls(0, f.type) for f in SCHEMAS[table]], schema=SCHEMAS[table])  # without pandas


def relative(path: Path, root: Path) -> str:
    """The path as the report names it: relative to the run, with forward slashes, undecodable bytes escaped. Secrets in it are
    hidden where it leaves (:mod:`parsers.shown`)."""
    try:
        text = path.relative_to(root).as_posix()
    except ValueError:
        text = path.as_posix()
    text = path.name if text == "." else text
    return text.encode("utf-8", "backslashreplace").decode()
