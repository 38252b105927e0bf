"""Reads what Comet keeps of an offline experiment: ``messages.json`` and ``experiment.json``, from the zip or unpacked.

- A message a line, ``{"type": ..., "payload": ...}``: ``metric_msg`` has name, value, step and epoch; ``parameter_msg`` a setting; ``standard_output`` what the program printed.
  Times are milliseconds. NaN and infinities are the texts "NaN" and "Infinity". Seen in files of comet_ml 3.58.
- The zip is written when the experiment ends. A process that is killed leaves an empty zip, and ``messages.json`` in its temporary folder.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa

from parsers.formats import jsonl
from parsers.records import cells, tolerant_json, tracker_files
from parsers.records.tracked import Tracked
from parsers.tables import Gap, Note, Rows

AT = "line"
_NO_SETTINGS = {"curr_step", "curr_epoch"}  # Comet's own counters, logged as parameters


def claims(path: Path, head: bytes) -> bool:
    return tracker_files.kind_of(path, head) in ("comet", "comet experiment")


def parse(path: Path) -> Iterator[pa.RecordBatch | Gap | Note]:
    with path.open("rb") as f:
        head = f.read(4096)
    if tracker_files.kind_of(path, head) == "comet experiment":
        yield from _experiment(path)
        return
    run, other = Tracked(), 0
    for item in jsonl.entries(path):
        if isinstance(item, Gap):
            yield item
            continue
        for row, at in zip(*item, strict=True):
            other += not _message(run, row, at)
    yield from run.rows_out()
    if other:
        yield Note(f"{other} messages of other kinds (assets, graphs, system metrics) not read")


def _message(run: Tracked, row: dict[str, Any], at: int) -> bool:
    """Takes a message; False where it is of a kind that is not read."""
    payload, kind = row.get("payload"), row.get("type")
    if not isinstance(payload, dict):
        return False
    clock = cells.as_number(payload.get("local_timestamp"))
    time = None if clock is None else clock / 1000
    metric, param = payload.get("metric"), payload.get("param")
    if kind == "metric_msg" and isinstance(metric, dict):
        tag = str(metric.get("metricName"))
        run.value(tag, metric.get("metricValue"), step=metric.get("step"), time=time, at=at, epoch=metric.get("epoch"))
    elif kind == "parameter_msg" and isinstance(param, dict):
        if param.get("paramName") not in _NO_SETTINGS:
            run.rows.config(str(param.get("paramName")), param.get("paramValue"), at=at)
    elif kind == "standard_output":
        run.line(payload.get("output"), time, at)
    else:
        return kind == "log_other"
    return True


def _experiment(path: Path) -> Iterator[pa.RecordBatch | Gap]:
    text, gaps = tolerant_json.read(path)
    yield from gaps
    document, damage = tolerant_json.whole(text)
    if damage:
        yield Gap(damage, "damaged JSON: the rest of the experiment's description could not be read", None)
    document = document if isinstance(document, dict) else {}
    rows = Rows()
    for key in ("offline_id", "project_name", "workspace", "tags"):
        if document.get(key):
            rows.config(f"comet.{key}", document[key], at=1)
    if document.get("customer_error_reported"):
        rows.event("status", f"comet status FAILED: {document.get('customer_error_message')}", level="error", at=1)
    elif (stop := cells.as_number(document.get("stop_time"))) is not None:
        rows.event("status", "comet status: the experiment was closed", time=stop / 1000, at=1)
    yield from rows.flush()
