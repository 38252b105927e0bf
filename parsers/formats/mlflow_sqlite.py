"""Reads MLflow's ``mlflow.db`` and trackio's ``<project>.db``: SQLite databases that hold one run or several.

Format, from mlflow/store/tracking/dbmodels/models.py, trackio's sqlite_storage.py and databases that both wrote:

- MLflow stores NaN as value 0 with ``is_nan`` set, and infinities as the largest double: both are turned back, the
  second with a Note, for a value that was so large is indistinguishable. The row id is the order of writing. Params,
  tags and status belong to a run; a killed process stays RUNNING. A deleted run remains (``lifecycle_stage``) and is
  left out.
- trackio stores a JSON object for each step (in a BLOB or as text), where "NaN", "Infinity" and "-Infinity" are
  strings, and no status. One timestamp stands for a whole batch of rows that were sent together.
- Where a file holds several runs, each is a run of its own, by its name ("brave-owl-12").
- SQLite writes beside a database that it opens, even read-only, and a log in use is in ``-wal``: both are copied to a
  temporary folder and read there.
- ``at`` is the row id.
"""

from __future__ import annotations

import json
import re
import sqlite3
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from parsers.records import cells
from parsers.records.cells import as_number
from parsers.records.sqlite_copy import beside, columns_of, copied, distrust, walk
from parsers.tables import FLUSH_ROWS, Gap, Note, Rows

AT = "row"

_MAGIC = b"SQLite format 3\x00"
_SMALL = 1 << 24  # a database whose tables are all in its write-ahead log is not larger
_LARGEST = 1.7976931348623157e308
_ERROR = {"FAILED", "KILLED"}
_TRACKIO_META = {"timestamp", "step", "run_name", "run_id", "project"}


def claims(path: Path, head: bytes) -> bool:
    """SQLite with MLflow's or trackio's tables, by the schema text in the head or else in a copy."""
    if not head.startswith(_MAGIC):
        return False
    if b"CREATE TABLE" in head and b"latest_metrics" in head:
        return True
    try:  # immutable: nothing is written beside the file, but a write-ahead log is not seen either
        uri = path.resolve().as_uri() + "?mode=ro&immutable=1"
        with closing(sqlite3.connect(uri, uri=True)) as database:
            distrust(database)
            if _kind(database) or path.stat().st_size > _SMALL or not beside(path, "-wal").is_file():
                return _kind(database) is not None
        with copied(path) as database:
            return _kind(database) is not None
    except (sqlite3.Error, OSError, ValueError, MemoryError):  # the last is what SQLite says of some damaged schemas
        return False


def parse(path: Path) -> Iterator[pa.RecordBatch | Gap | Note]:
    """Metrics, params and statuses of every run that was not deleted, run by run, each in the order of writing."""
    found = _Found()
    try:
        with copied(path) as database:
            yield from (_mlflow if _kind(database) == "mlflow" else _trackio)(database, found)
    except (sqlite3.Error, UnicodeDecodeError, MemoryError) as e:
        found.gaps.append(Gap("row 0", f"SQLite cannot read on: {str(e)[:120]}", None))
    yield from found.flush()
    yield from found.gaps
    yield from (Note(text) for text in found.notes)


@dataclass
class _Found:
    """What a database holds: rows by run, and what to say of it."""

    runs: dict[str, Rows] = field(default_factory=dict)
    gaps: list[Gap] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def name(self, runs: list[tuple[str, str | None]], statuses: list[str]) -> None:
        """Runs by their id and name; each is named by the last part of a path, with the beginning of its id where the name is missing
        or not the only one."""
        names = [re.sub(r"[\x00-\x1f/\\]+", "_", str(name or "run")).lstrip(".") for _, name in runs]
        count = Counter(names)
        unique = [name if told and count[name] == 1 else f"{name}-{str(run)[:8]}" for (run, told), name in zip(runs, names, strict=True)]
        several = len(runs) > 1
        self.runs = {run: Rows(name if several else "") for (run, _), name in zip(runs, unique, strict=True)}
        if several:
            self.notes.append(f"{len(runs)} runs: " + ", ".join(map("".join, list(zip(unique, statuses, strict=True))[:20])))

    def of(self, run: Any) -> Rows:
        """The rows of a run; of the only one, where a table does not say whose they are."""
        if run is None and len(self.runs) == 1:
            return next(iter(self.runs.values()))
        return self.runs.setdefault(str(run), Rows(str(run) if self.runs else ""))

    def flush(self) -> Iterator[pa.RecordBatch]:
        for rows in self.runs.values():
            yield from rows.flush()


def _kind(database: sqlite3.Connection) -> str | None:
    metrics = columns_of(database, "metrics")
    if {"key", "value", "step", "run_uuid"} <= metrics and "run_uuid" in columns_of(database, "runs"):
        return "mlflow"
    return "trackio" if {"run_name", "step", "metrics"} <= metrics else None


def _mlflow(database: sqlite3.Connection, found: _Found) -> Iterator[pa.RecordBatch]:
    known = list(walk(database, "runs", "run_uuid, name, status, start_time, end_time, lifecycle_stage", found.gaps))
    living = [r for r in known if r[6] != "deleted"]
    found.name([(r[1], r[2]) for r in living], [f" ({r[3]})" for r in living])
    if len(known) > len(living):
        found.notes.append(f"{len(known) - len(living)} deleted runs left out")
    yield from _mlflow_metrics(database, found)
    for table in ("params", "tags"):
        for at, run, key, value in walk(database, table, "run_uuid, key, value", found.gaps):
            if run in found.runs:
                found.runs[run].config(str(key), value, at=at)
    for at, run, _, status, start, end, _ in living:
        time = _seconds(end if end is not None else start)
        found.runs[run].event("status", f"mlflow status {status}", level="error" if status in _ERROR else "info", time=time, at=at)


def _mlflow_metrics(database: sqlite3.Connection, found: _Found) -> Iterator[pa.RecordBatch]:
    infinite = held = 0
    is_nan = "is_nan" if "is_nan" in columns_of(database, "metrics") else "0"
    for row in walk(database, "metrics", f"run_uuid, key, value, step, timestamp, {is_nan}", found.gaps):
        at, run, tag, value, step, time, nan = row
        if run not in found.runs:
            continue
        number = float("nan") if nan else cells.cell(str(value))
        if not isinstance(number, (int, float)):
            found.gaps.append(Gap(f"row {at}", f"metric {tag!r}: no number", 1))
            continue
        if abs(number) == _LARGEST:
            number = float("inf") if number > 0 else float("-inf")
            infinite += 1
        found.runs[run].metric(cells.whole(step), str(tag), number, time=_seconds(time), at=at)
        held += 1
        if held % FLUSH_ROWS == 0:
            yield from found.flush()
    if infinite:
        found.notes.append(f"{infinite} values of +-1.7976931348623157e308 read as infinity, which is how MLflow stores it")


def _trackio(database: sqlite3.Connection, found: _Found) -> Iterator[pa.RecordBatch]:
    told = [str(r[0]) for r in database.execute("SELECT run_name, MIN(id) FROM metrics GROUP BY run_name ORDER BY 2")]
    found.name([(run, run) for run in told], [""] * len(told))
    for table in ("metrics", "system_metrics"):
        if "metrics" in columns_of(database, table):
            yield from _trackio_metrics(database, table, found)
    if "config" in columns_of(database, "configs"):
        for at, run, text in database.execute("SELECT rowid, run_name, config FROM configs"):
            for key, value in (_json(text) or {}).items():
                found.of(run).config(key, value, at=at)
    if {"title", "text", "level"} <= columns_of(database, "alerts"):
        whose = "run_name" if "run_name" in columns_of(database, "alerts") else "NULL"
        for at, run, title, text, level, step in database.execute(f"SELECT rowid, {whose}, title, text, level, step FROM alerts"):
            found.of(run).event("alert", f"{title}: {text}", level=str(level).lower(), step=cells.whole(step), at=at)


def _trackio_metrics(database: sqlite3.Connection, table: str, found: _Found) -> Iterator[pa.RecordBatch]:
    step_column = "step" if "step" in columns_of(database, table) else "NULL"
    held = 0
    for at, run, step, time, text in walk(database, table, f"run_name, {step_column}, timestamp, metrics", found.gaps):
        values = _json(text)
        if values is None:
            found.gaps.append(Gap(f"row {at}", f"{table}: not a JSON object", 1))
            continue
        rows = found.of(run)
        for tag, value in _flat(values):
            number = as_number(value)
            if number is not None and tag not in _TRACKIO_META:
                rows.metric(cells.whole(step), tag, number, time=cells.seconds(time), at=at)
                held += 1
        if held >= FLUSH_ROWS:
            yield from found.flush()
            held = 0


def _json(text: Any) -> dict[str, Any] | None:
    if isinstance(text, bytes):
        text = text.decode("utf-8", "replace")
    try:
        value = json.loads(text)
    except (TypeError, ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _flat(values: dict[str, Any], name: str = "", depth: int = 0) -> Iterator[tuple[str, Any]]:
    """Leaves of nested objects, named by their path; tables and images of trackio's, which have a ``_type``, hold no metrics."""
    for key, value in values.items():
        if not isinstance(value, dict):
            yield name + key, value
        elif depth < 20 and "_type" not in value:
            yield from _flat(value, f"{name}{key}/", depth + 1)


def _seconds(milliseconds: Any) -> float | None:
    return milliseconds / 1000 if isinstance(milliseconds, (int, float)) and re.match(r"-?\d", str(milliseconds)) else None
