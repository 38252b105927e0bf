"""Reads SwanLab's run files: ``swanlog/run-<time>-<id>/run-<id>.swanlab`` (0.7 and later) and ``backup.swanlab`` (0.6).

- A header of seven bytes (":SWL", two bytes, a version), then LevelDB's log frames, as W&B has them (:mod:`parsers.wandb_format.leveldb_log`). A record is JSON (version 1) or
  protobuf (version 2: ``record.proto`` of swanlab 0.10). Seen in files of swanlab 0.10.3; version 1 as described there.
- A step that is logged twice keeps its first value; version 1 writes "INF" for both infinities. A killed process loses the last records and leaves no finish record.
- Settings are in ``files/config.yaml``, which is read like that of W&B.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from struct import unpack
from typing import Any

import pyarrow as pa

from parsers import protobuf_wire
from parsers.lazy_regex import lazy_re
from parsers.protobuf_wire import BYTES, VARINT, Malformed
from parsers.records import cells, tolerant_json
from parsers.records.tracked import Tracked
from parsers.tables import Gap, Note
from parsers.wandb_format import leveldb_log

AT = "byte"
_HEADER = 7
_STATES = {0: "RUNNING", 1: "FINISHED", 2: "FAILED", 3: "KILLED"}  # 2: crashed, 3: aborted, in the words of other trackers
_START, _FINISH, _SCALAR, _LOG = 10, 11, 13, 16
_ANSI = lazy_re(r"\x1b\[[0-9;]*m")


def claims(path: Path, head: bytes) -> bool:
    return head.startswith(b":SWL")


def parse(path: Path) -> Iterator[pa.RecordBatch | Gap | Note]:
    run, bad, ended = Tracked(), 0, False
    for window in leveldb_log.windows(path, _HEADER):
        if isinstance(window, Gap):
            yield window
            continue
        for start, length, at in zip(window.start, window.length, window.at, strict=True):
            record = window.data[start : start + length]
            try:
                ended |= _json(run, record, at) if record[:1] == b"{" else _protobuf(run, memoryview(record), at)
            except (Malformed, ValueError, RecursionError):
                bad += 1
    yield from run.rows_out()
    if bad:
        yield Gap("byte 7", f"{bad} records that are neither JSON nor protobuf", bad)
    if not ended:
        yield Note("no record says that the run ended: it still runs, or was killed, and its last records were not written")


def _json(run: Tracked, record: bytes, at: int) -> bool:
    """A record of version 1; True for the one that ends the run."""
    row = tolerant_json.loads(record)
    data = row.get("data") if isinstance(row.get("data"), dict) else {}
    kind = row.get("model_type")
    if kind == "Scalar":
        metric = data.get("metric")
        value = metric.get("data") if isinstance(metric, dict) else metric
        run.value(str(data.get("key")), value, step=data.get("step"), time=cells.seconds((metric or {}).get("create_time")), at=at)
    elif kind == "Log":
        run.line(_ANSI.sub("", str(data.get("message", ""))), cells.seconds(data.get("create_time")), at)
    elif kind == "Footer":
        ok = bool(data.get("success", True))
        run.rows.event("status", f"swanlab status {'FINISHED' if ok else 'FAILED'}", level="info" if ok else "error", at=at)
    return bool(kind == "Footer")


def _protobuf(run: Tracked, record: memoryview, at: int) -> bool:
    """A record of version 2; True for the one that ends the run."""
    fields = _fields(record)
    time = _time(fields.get(2))
    if _SCALAR in fields:
        scalar = _fields(fields[_SCALAR])
        value = _fields(scalar.get(5, memoryview(b""))).get(1, 0)
        number = unpack("<d", int(value).to_bytes(8, "little"))[0]
        run.value(_text(scalar.get(1)), number, step=scalar.get(2, 0), time=_time(scalar.get(4)) or time, at=at)
    elif _LOG in fields:
        run.line(_ANSI.sub("", _text(_fields(fields[_LOG]).get(1))), time, at)
    elif _FINISH in fields:
        finish = _fields(fields[_FINISH])
        state = _STATES.get(finish.get(1, 0), "unknown")
        said = " ".join(["swanlab status", state, _text(finish.get(2))]).strip()
        run.rows.event("status", said, level="error" if state in ("FAILED", "KILLED") else "info", time=_time(finish.get(3)) or time, at=at)
    elif _START in fields:
        start = _fields(fields[_START])
        for number_of, key in ((1, "project"), (4, "name"), (10, "id")):
            if number_of in start:
                run.rows.config(f"swanlab.{key}", _text(start[number_of]), at=at)
    return _FINISH in fields


def _fields(message: memoryview) -> dict[int, Any]:
    """Field -> its last value: numbers as they stand in the message, bytes as a view."""
    found: dict[int, Any] = {}
    for number, wire, value, end in protobuf_wire.fields(message, (0, len(message))):
        found[number] = message[value:end] if wire == BYTES else protobuf_wire.signed(value) if wire == VARINT else value
    return found


def _text(value: Any) -> str:
    return bytes(value).decode("utf-8", "replace") if isinstance(value, memoryview) else ""


def _time(value: Any) -> float | None:
    """A protobuf Timestamp in seconds."""
    if not isinstance(value, memoryview):
        return None
    parts = _fields(value)
    return float(parts.get(1, 0)) + float(parts.get(2, 0)) / 1e9
