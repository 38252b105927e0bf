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
import shutil
import sqlite3
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pyarrow as pa

from parsers.records import column_roles
from parsers.tables import FLUSH_ROWS, Gap, Note, Rows

AT = "row"

_MAGIC = b"SQLite format 3\x00"
_MOST_DAMAGES = 200  # places of a table behind which reading goes on
_MOST_TICKS = 50_000  # of 100 000 steps of SQLite's machine each: a minute or two, some hundred million rows
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
            _distrust(database)
            if _kind(database) or path.stat().st_size > _SMALL or not _beside(path, "-wal").is_file():
                return _kind(database) is not None
    except (sqlite3.Error, OSError, ValueError):
        return False
    try:
        with _copied(path) as database:
            return _kind(database) is not None
    except (sqlite3.Error, OSError):
        return False


def parse(path: Path) -> Iterator[pa.RecordBatch | Gap | Note]:
    """Metrics, params and statuses of every run that was not deleted, run by run, each in the order of writing."""
    runs: dict[str, Rows] = {}
    try:
        with _copied(path) as database:
            kind = _kind(database)
            yield from (_mlflow if kind == "mlflow" else _trackio)(database, runs)
    except (sqlite3.Error, UnicodeDecodeError, MemoryError) as e:
        yield from _flush(runs)
        yield Gap("row 0", f"SQLite cannot read on: {str(e)[:120]}", None)
    yield from _flush(runs)


def _flush(runs: dict[str, Rows]) -> Iterator[pa.RecordBatch]:
    for rows in runs.values():
        yield from rows.flush()


class _copied:
    """A connection to a copy of a database, its write-ahead log included; both are gone afterwards."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __enter__(self) -> sqlite3.Connection:
        self.folder = tempfile.TemporaryDirectory(prefix="forensics-")
        try:
            copy = Path(self.folder.name) / "copy.db"
            shutil.copyfile(self.path, copy)
            for suffix in ("-wal", "-journal"):
                beside = _beside(self.path, suffix)
                if beside.is_file():
                    shutil.copyfile(beside, copy.with_name(copy.name + suffix))
            self.database = sqlite3.connect(copy)
            self.database.text_factory = lambda b: b.decode("utf-8", "replace")
            _distrust(self.database)
        except BaseException:
            self.folder.cleanup()
            raise
        return self.database

    def __exit__(self, *_: object) -> None:
        self.database.close()
        self.folder.cleanup()


def _distrust(database: sqlite3.Connection) -> None:
    """The schema is somebody else's: it may call no function that does anything, and no query may run for ever."""
    database.execute("PRAGMA trusted_schema=OFF")
    database.execute("PRAGMA cell_size_check=ON")
    ticks = iter(range(_MOST_TICKS))
    database.set_progress_handler(lambda: next(ticks, None) is None, 100_000)


def _columns_of(database: sqlite3.Connection, table: str) -> set[str]:
    """Of a table; what a view would answer, nobody logged."""
    if not database.execute("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?", [table]).fetchone():
        return set()
    return {row[1] for row in database.execute(f"PRAGMA table_info({table})")}


def _kind(database: sqlite3.Connection) -> str | None:
    metrics = _columns_of(database, "metrics")
    if {"key", "value", "step", "run_uuid"} <= metrics and "run_uuid" in _columns_of(database, "runs"):
        return "mlflow"
    return "trackio" if {"run_name", "step", "metrics"} <= metrics else None


def _beside(path: Path, suffix: str) -> Path:
    return path.with_name(path.name + suffix)


def _walk(database: sqlite3.Connection, table: str, wanted: str) -> Iterator[tuple[Any, ...] | Gap]:
    """Rows (row id first) in the order of writing. Behind a damaged page, reading goes on at the next readable row."""
    query = f"SELECT rowid, {wanted} FROM {table} WHERE rowid > ? ORDER BY rowid"
    last = 0
    for _ in range(_MOST_DAMAGES):
        try:
            with closing(database.execute(query, [last])) as cursor:
                for row in cursor:
                    if row[0] <= last:  # a torn tree may lead back to where it was, for ever
                        raise sqlite3.DatabaseError("its rows are out of order")
                    last = row[0]
                    yield row
            return
        except sqlite3.DatabaseError as e:
            found = _next_readable(database, table, last)
            what = f"{table}: {str(e)[:100]}"
            if found is None or found <= last:
                yield Gap(f"row {last}", f"{what}; no rows behind it can be read", None)
                return
            yield Gap(f"row {last}", f"{what}; read on from row {found}", found - last - 1)
            last = found - 1
    yield Gap(f"row {last}", f"{table}: damaged in more than {_MOST_DAMAGES} places; the rest is not read", None)


def _next_readable(database: sqlite3.Connection, table: str, last: int) -> int | None:
    """The first row id behind a damage from which on reading works again."""

    def row_behind(jump: int) -> int | None:
        try:
            row = database.execute(f"SELECT * FROM {table} WHERE rowid > ? ORDER BY rowid LIMIT 1", [last + jump]).fetchone()
            return (
                None
                if row is None
                else int(database.execute(f"SELECT rowid FROM {table} WHERE rowid > ? ORDER BY rowid LIMIT 1", [last + jump]).fetchone()[0])
            )
        except sqlite3.DatabaseError:
            return None

    works = next((1 << n for n in range(40) if row_behind(1 << n) is not None), None)
    if works is None:
        return None
    fails = works // 2
    while works - fails > 1:
        middle = (works + fails) // 2
        works, fails = (middle, fails) if row_behind(middle) is not None else (works, middle)
    return row_behind(works)


def _mlflow(database: sqlite3.Connection, runs: dict[str, Rows]) -> Iterator[pa.RecordBatch | Gap | Note]:
    known: list[tuple[Any, ...]] = []
    for row in _walk(database, "runs", "run_uuid, name, status, start_time, end_time, lifecycle_stage"):
        if isinstance(row, Gap):
            yield row
        else:
            known.append(row)
    living = [r for r in known if r[6] != "deleted"]
    names = _names([(r[1], r[2]) for r in living])
    runs |= {run: Rows(name if len(living) > 1 else "") for run, name in names.items()}
    if len(living) > 1:
        yield Note(f"{len(living)} runs: " + ", ".join(f"{names[r[1]]} ({r[3]})" for r in living[:20]))
    if len(known) > len(living):
        yield Note(f"{len(known) - len(living)} deleted runs left out")
    infinite, held = 0, 0
    is_nan = "is_nan" if "is_nan" in _columns_of(database, "metrics") else "0"
    for row in _walk(database, "metrics", f"run_uuid, key, value, step, timestamp, {is_nan}"):
        if isinstance(row, Gap):
            yield row
            continue
        at, run, tag, value, step, time, nan = row
        number = float("nan") if nan else column_roles.cell(str(value))
        if run not in runs:
            continue
        if not isinstance(number, (int, float)):
            yield Gap(f"row {at}", f"metric {tag!r}: no number", 1)
            continue
        if abs(number) == _LARGEST:
            number = float("inf") if number > 0 else float("-inf")
            infinite += 1
        runs[run].metric(_whole(step), str(tag), number, time=_seconds(time), at=at)
        held += 1
        if held % FLUSH_ROWS == 0:
            yield from _flush(runs)
    for table in ("params", "tags"):
        for row in _walk(database, table, "run_uuid, key, value"):
            if isinstance(row, Gap):
                yield row
            elif row[1] in runs:
                runs[row[1]].config(str(row[2]), row[3], at=row[0])
    for at, run, _, status, start, end, _ in living:
        time = _seconds(end if end is not None else start)
        runs[run].event("status", f"mlflow status {status}", level="error" if status in _ERROR else "info", time=time, at=at)
    if infinite:
        yield Note(f"{infinite} values of +-1.7976931348623157e308 read as infinity, which is how MLflow stores it")


def _trackio(database: sqlite3.Connection, runs: dict[str, Rows]) -> Iterator[pa.RecordBatch | Gap | Note]:
    told = [str(r[0]) for r in database.execute("SELECT run_name, MIN(id) FROM metrics GROUP BY run_name ORDER BY 2")]
    runs |= {run: Rows(name if len(told) > 1 else "") for run, name in _names([(run, run) for run in told]).items()}
    held = 0
    if len(told) > 1:
        yield Note(f"{len(told)} runs: " + ", ".join(told[:20]))
    for table in ("metrics", "system_metrics"):
        if "metrics" not in _columns_of(database, table):
            continue
        step_column = "step" if "step" in _columns_of(database, table) else "NULL"
        for row in _walk(database, table, f"run_name, {step_column}, timestamp, metrics"):
            if isinstance(row, Gap):
                yield row
                continue
            at, run, step, time, text = row
            values = _json(text)
            if values is None:
                yield Gap(f"row {at}", f"{table}: not a JSON object", 1)
                continue
            rows = _of(runs, run)
            for tag, value in _flat(values):
                number = column_roles.cell(value) if isinstance(value, str) else value
                if isinstance(number, (int, float)) and not isinstance(number, bool) and tag not in _TRACKIO_META:
                    number = _double(number)
                    rows.metric(_whole(step), tag, number, time=column_roles.seconds(time, 0.0), at=at)
                    held += 1
            if held >= FLUSH_ROWS:
                yield from _flush(runs)
                held = 0
    if "config" in _columns_of(database, "configs"):
        for at, run, text in database.execute("SELECT rowid, run_name, config FROM configs"):
            for key, value in (_json(text) or {}).items():
                _of(runs, run).config(key, value, at=at)
    if {"title", "text", "level"} <= _columns_of(database, "alerts"):
        whose = "run_name" if "run_name" in _columns_of(database, "alerts") else "NULL"
        for at, run, title, text, level, step in database.execute(f"SELECT rowid, {whose}, title, text, level, step FROM alerts"):
            _of(runs, run).event("alert", f"{title}: {text}", level=str(level).lower(), step=_whole(step), at=at)


def _of(runs: dict[str, Rows], run: Any) -> Rows:
    """The rows of a run; of the only one, where a table does not say whose they are."""
    name = str(run)
    if run is None and len(runs) == 1:
        return next(iter(runs.values()))
    return runs.setdefault(name, Rows(name if len(runs) else ""))


def _json(text: Any) -> dict[str, Any] | None:
    if isinstance(text, bytes):
        text = text.decode("utf-8", "replace")
    try:
        value = json.loads(text)
    except (TypeError, ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _flat(values: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """Leaves of nested objects, named by their path; deeper than 20 levels nothing is a metric."""
    stack: list[tuple[str, Any, int]] = [(k, v, 0) for k, v in reversed(values.items())]
    while stack:
        name, value, depth = stack.pop()
        if isinstance(value, dict):
            if depth < 20 and "_type" not in value:  # a table or an image of trackio's
                stack += [(f"{name}/{k}", v, depth + 1) for k, v in reversed(value.items())]
        else:
            yield name, value


def _names(runs: list[tuple[str, str | None]]) -> dict[str, str]:
    """Run id -> its name as the last part of a path, with the beginning of its id where the name is missing or not the only one."""
    names = [re.sub(r"[\x00-\x1f/\\]+", "_", str(name or "run")).lstrip(".") for _, name in runs]
    count = Counter(names)
    return {run: name if told and count[name] == 1 else f"{name}-{str(run)[:8]}" for (run, told), name in zip(runs, names, strict=True)}


def _whole(value: Any) -> int | None:
    return column_roles.whole(value) if isinstance(value, (int, float, str)) else None


def _double(value: float) -> float:
    try:
        return float(value)
    except OverflowError:
        return float("inf") if value > 0 else float("-inf")


def _seconds(milliseconds: Any) -> float | None:
    return milliseconds / 1000 if isinstance(milliseconds, (int, float)) and re.match(r"-?\d", str(milliseconds)) else None
