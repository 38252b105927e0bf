"""What earlier nights said: a data set of Parquet files, one a night, that only ever grows (`--history`).

A night's file holds every run of its audit: the columns of `audit.parquet`, by what the run is known (`fingerprint`), and the findings that made
its verdict, those that were judged then apart. A run is told again by where it lies and how its first logs begin, so that one that grew
is the same and one that was written over it is another. A part that cannot be read costs only itself: the night before it counts.
"""

from __future__ import annotations

import io
import uuid
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from itertools import chain
from typing import Any

from forensics.audits import storage, trends
from forensics.audits.row_columns import COLUMNS
from forensics.case import jsonable
from forensics.causes.files import named_cause
from forensics.run import identity
from parsers import arrow
from parsers.lazy_regex import lazy_re

SCHEMA = 1
MOMENT = "%Y-%m-%dT%H:%M:%SZ"
_NAME = lazy_re(r"\d{8}T\d{6}\.\d{6}Z-[0-9a-f]{8}\.parquet")
_LISTS, _OWN = ("findings", "judged"), ("night", "fingerprint")
_READ = ("id", "path", "verdict", "status", "started", "seconds", "gpu_hours", "lost_gpu_hours")  # of COLUMNS
_MOST_NOTICES = 20


@dataclass(frozen=True)
class Mark:
    """By what the next night knows a run, and its grave findings: ``id`` or, where the id does not say it, ``id@step``."""

    fingerprint: str  # one for each of its first logs, with blanks between; empty where the run could not be analyzed
    findings: tuple[str, ...]
    judged: tuple[str, ...] = ()  # of these, by --known

    @classmethod
    def of(cls, record: dict[str, Any], judged: set[str]) -> Mark:
        named = [(f[0], _named(*f)) for f in record["grave"]]
        return cls(" ".join(record.get("identity", ())), tuple(n for _, n in named), tuple(n for i, n in named if i in judged))


def _named(id: str, kind: str, step: int | None = None) -> str:
    return id if step is None or str(step) in id else f"{id}@{step}"


@dataclass
class Past:
    """The last state of every run of the earlier nights (the columns `_READ`, and what a Mark holds)."""

    nights: int = 0
    last: str | None = None  # when the newest part that can be read was written
    notices: list[str] = field(default_factory=list)  # of parts that were left out
    runs: list[dict[str, Any]] = field(default_factory=list)
    _known: dict[str, list[dict[str, Any]]] = field(default_factory=dict)  # by the beginning of the fingerprint, or by the path

    def find(self, fingerprint: str, path: str) -> dict[str, Any] | None:
        """The run as it was when it was last seen; None where it is new. Without a fingerprint on either side the path decides."""
        prints = fingerprint.split()
        for old in (old for p in prints for old in self._known.get(p.split(".")[0], [])):
            if identity.same(old["fingerprint"].split(), prints):
                return old
        return next((old for old in self._known.get(path, []) if not (fingerprint and old["fingerprint"])), None)

    def add(self, rows: Iterable[dict[str, Any]]) -> None:
        """The runs of one night that no later one had."""
        new = [r for r in rows if self.find(r["fingerprint"], r["path"]) is None]
        self.runs += new
        for r in new:
            for key in {*(p.split(".")[0] for p in r["fingerprint"].split()), r["path"]}:
                self._known.setdefault(key, []).append(r)


def read(folder: str) -> Past:
    """The history of a folder or URL, the newest night first; empty where there is none yet."""
    import pyarrow as pa
    import pyarrow.compute as pc

    past, seen = Past(), pa.nulls(0, pa.string())
    for name in sorted(filter(_NAME.fullmatch, storage.names(folder, "")), reverse=True):
        try:
            table = _part(storage.read(folder, name))
        except (OSError, ValueError, KeyError, TypeError, MemoryError, pa.ArrowException) as e:
            past.notices.append(f"{name} of the history cannot be read and is left out: {next(iter(str(e).splitlines()), '')[:160]}")
            continue
        past.nights += 1
        past.last = past.last or (table["night"][0].as_py() if table.num_rows else None)
        past.add(table.filter(pc.invert(pc.is_in(table["fingerprint"], seen))).to_pylist())
        prints = pc.unique(table["fingerprint"])
        seen = pa.concat_arrays([seen, prints.filter(pc.and_(pc.invert(pc.is_in(prints, seen)), pc.not_equal(prints, "")))])
    if len(past.notices) > _MOST_NOTICES:
        past.notices[_MOST_NOTICES:] = [f"{len(past.notices) - _MOST_NOTICES} more parts of the history cannot be read"]
    return past


def _part(data: bytes | None) -> Any:
    """The columns that are asked of a night's file; one that it does not have yet is empty. Raises ValueError where it is no part."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    file = pq.ParquetFile(io.BytesIO(data or b""))
    schema = int((file.schema_arrow.metadata or {}).get(b"history", b"0"))
    if not 0 < schema <= SCHEMA:
        raise ValueError(f"its schema is {schema or 'not said'}, this version knows {SCHEMA}" if schema else "it is no part of a history")
    fields = [*((c, pa.string()) for c in _OWN), *((c, pa.list_(pa.string())) for c in _LISTS)]
    fields += [(c, pa.type_for_alias(COLUMNS[c])) for c in _READ]
    table = file.read([c for c, _ in fields if c in file.schema_arrow.names])
    arrays = [table[c].cast(t) if c in table.column_names else pa.nulls(table.num_rows, t) for c, t in fields]
    if any(table[c].null_count for c in (*_OWN, "path") if c in table.column_names) or "fingerprint" not in table.column_names:
        raise ValueError("it does not say which runs it is about")
    return pa.Table.from_arrays(arrays, names=[c for c, _ in fields])


def append(folder: str, rows: Sequence[tuple[Any, ...]], marks: Sequence[Mark], night: datetime) -> str:
    """Adds tonight's file, whole or not at all, under a name that no other has; -> its name."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    told = list(zip(*rows, strict=True))
    arrays = [arrow.column(c, pa.string()) for c in ([night.strftime(MOMENT)] * len(rows), [m.fingerprint for m in marks])]
    arrays += [arrow.column([list(getattr(m, c)) for m in marks], pa.list_(pa.string())) for c in _LISTS]
    arrays += [arrow.column(c, pa.type_for_alias(t)) for c, t in zip(told, COLUMNS.values(), strict=True)]
    table = pa.Table.from_arrays(arrays, names=[*_OWN, *_LISTS, *COLUMNS])
    buffer = io.BytesIO()
    marked = table.replace_schema_metadata({"forensics": "audit", "history": str(SCHEMA)})  # no log to read
    pq.write_table(marked, buffer, compression="zstd")
    name = f"{night.strftime('%Y%m%dT%H%M%S.%fZ')}-{uuid.uuid4().hex[:8]}.parquet"
    storage.write(folder, name, buffer.getvalue())
    return name


def now() -> datetime:
    return datetime.now(UTC)


def told_apart(marks: Sequence[Mark]) -> list[Mark]:
    """The same with a number on the fingerprint of all but the first run of one log."""
    met: Counter[str] = Counter()
    told = []
    for m in marks:
        met[m.fingerprint] += 1
        n = met[m.fingerprint]
        told.append(replace(m, fingerprint=" ".join(f"{p}+{n}" for p in m.fingerprint.split())) if n > 1 else m)
    return told


def news(past: Past, rows: Iterable[dict[str, Any]], marks: Sequence[Mark]) -> list[dict[str, Any]]:
    """The runs with a grave finding that neither the run's last entry nor --known has; what cost the most comes first."""
    found = []
    for row, mark in zip(rows, marks, strict=True):
        if row["verdict"] != "unhealthy" or not past.nights:
            continue
        old = past.find(mark.fingerprint, row["path"])
        known = {*mark.judged, *((old["findings"] or ()) if old is not None else ())}
        new = [f for f in mark.findings if f not in known]
        if new:
            keys = ("id", "path", "ending", "answer", "owner", "host", "lost_gpu_hours", "rerun")
            cause = named_cause(row)
            found.append(
                {k: row[k] for k in keys} | {"top_cause": cause, "findings": new, "was": old["verdict"] if old is not None else None}
            )
    return sorted(found, key=lambda n: (-(n["lost_gpu_hours"] or 0), n["id"]))


def since(past: Past, rows: Sequence[dict[str, Any]], marks: Sequence[Mark], night: datetime) -> dict[str, Any]:
    """``history`` of audit.json: what is new since the last night, and the weeks of all nights with this one."""
    again = {id(past.find(m.fingerprint, r["path"])) for m, r in zip(marks, rows, strict=True)}
    weeks, undated = trends.weeks(chain((r for r in past.runs if id(r) not in again), rows), night)
    told = {"nights": past.nights, "last": past.last, "new": news(past, rows, marks), "weeks": weeks, "undated": undated}
    found: dict[str, Any] = jsonable(told | {"notices": past.notices})
    return found
