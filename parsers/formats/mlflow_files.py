"""Reads MLflow's file store: ``metrics/``, ``params/``, ``tags/``, ``meta.yaml`` of ``mlruns/<experiment>/<run>/``.

Format, from mlflow/store/tracking/file_store.py and stores that MLflow wrote:

- ``metrics/<name>``: a line ``timestamp_ms value step`` for each value (very old stores: without step), newest last;
  the path below ``metrics`` is the metric's name, slashes included. ``nan``, ``inf`` and ``-inf`` are spelled out.
  Newer writers may append dataset name and digest as a fourth and fifth word.
- ``params/<name>`` and ``tags/<name>``: the file is the value. ``mlflow.source.*`` and the like are tags.
- ``meta.yaml`` of a run: ``status`` 1 running, 2 scheduled, 3 finished, 4 failed, 5 killed; times in ms. A killed
  process stays "running". Only flat ``key: value`` lines are read, so no YAML library is needed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa

from parsers.lazy_regex import lazy_re
from parsers.records import cells
from parsers.records.gaps import GapList
from parsers.tables import Gap, Note, Rows

AT = "line"

_STATUS = {"1": "RUNNING", "2": "SCHEDULED", "3": "FINISHED", "4": "FAILED", "5": "KILLED"}
_ERROR = {"FAILED", "KILLED"}
_METRIC = lazy_re(rb"\s*\d{9,16} \S{1,40}(?: -?\d+(?: \S+){0,2})?\s*(?:\n|$)")
_RUN_ID = lazy_re(r"[0-9a-f]{32}")
_META = lazy_re(r"^([A-Za-z_]+):(.*)$", re.MULTILINE)
_MAX_TEXT = 1 << 16
_READ = 1 << 22


def claims(path: Path, head: bytes) -> bool:
    """Files below ``metrics``, ``params`` or ``tags`` of a run folder (known by id or meta.yaml), and meta.yaml."""
    if path.name == "meta.yaml":
        return b"lifecycle_stage:" in head and (b"run_id:" in head or b"run_uuid:" in head)
    place = _place(path)
    if place is None or head.startswith((b"{", b"PAR1", b"SQLite format")):
        return False
    return place[0] != "metrics" or _METRIC.match(head.replace(b"\x00", b"")) is not None


def parse(path: Path) -> Iterator[pa.RecordBatch | Gap | Note]:
    """Metrics with steps and times, params and tags as config, the status as an event."""
    rows = Rows()
    place = _place(path)
    if path.name == "meta.yaml" and place is None:
        yield from _meta(path, rows)
    elif place is not None and place[0] == "metrics":
        yield from _metric(path, place[1], rows)
    elif place is not None:
        with path.open("rb") as f:
            text = f.read(_MAX_TEXT + 1)
        if len(text) > _MAX_TEXT:
            yield Note(f"only the first {_MAX_TEXT} bytes were read")
        if b"\x00" in text:
            yield Gap("line 1", "NUL bytes: a hole left by a crash", None)
        name, value = place[1], text[:_MAX_TEXT].replace(b"\x00", b"").decode("utf-8", "replace")
        if not name.endswith("mlflow.log-model.history"):  # artifacts, no settings
            rows.config(name, value, at=1)
    yield from rows.flush()


def _place(path: Path) -> tuple[str, str] | None:
    """('metrics', 'train/loss') for a file of a run folder: the folder has a run's id for a name, or a meta.yaml."""
    parts = path.parts
    for i in range(len(parts) - 2, 0, -1):
        if parts[i] in ("metrics", "params", "tags"):
            if _RUN_ID.fullmatch(parts[i - 1]) or Path(*parts[:i], "meta.yaml").is_file():
                return parts[i], "/".join(parts[i + 1 :])
            if parts[i - 1] == "artifacts" or "artifacts" in parts[:i]:
                return None
    return None


def _metric(path: Path, tag: str, rows: Rows) -> Iterator[pa.RecordBatch | Gap]:
    gaps = GapList()
    with path.open("rb") as f:
        at = 0
        while line := f.readline(_READ):
            at += 1
            if b"\x00" in line:
                gaps.add(at, "NUL bytes: a hole left by a crash", None)
                line = line.rpartition(b"\x00")[2]
            if not line.strip():
                continue
            words = line.decode("utf-8", "replace").split()
            time = cells.whole(words[0]) if words else None  # text has more blanks than bytes have
            value = cells.number(words[1]) if len(words) > 1 else None
            step = cells.whole(words[2]) if len(words) > 2 else 0 if line.endswith(b"\n") else None
            if time is None or value is None or step is None:
                gaps.add(at, "not 'timestamp value step'" if line.endswith(b"\n") else "the last line is cut off", 1)
                continue
            rows.metric(step, tag, value, time=time / 1000, at=at)
            if rows.full():
                yield from rows.flush()
    yield from gaps.told()


def _meta(path: Path, rows: Rows) -> Iterator[Gap]:
    with path.open("rb") as f:
        text = f.read(_MAX_TEXT).decode("utf-8", "replace")
    values = {m[1]: (m[2].strip(" \t\r").strip("'\""), text.count("\n", 0, m.start()) + 1) for m in _META.finditer(text)}
    if "status" not in values:
        yield Gap("line 1", "no status: the file is cut off", 1)
        return
    status, at = values["status"]
    status = _STATUS.get(status, status)
    end, start = (cells.whole(values.get(k, ("", 0))[0]) for k in ("end_time", "start_time"))
    when = end if end is not None else start
    time = None if when is None else when / 1000
    rows.event("status", f"mlflow status {status}", level="error" if status in _ERROR else "info", time=time, at=at)
    for key in ("run_name", "run_id", "experiment_id", "lifecycle_stage", "start_time", "end_time"):
        if values.get(key, ("", 0))[0] not in ("", "null"):
            rows.config(f"mlflow.{key}", values[key][0], at=values[key][1])
