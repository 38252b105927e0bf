"""Reads metrics of Determined as its command line and API give them: ``det trial describe --json`` and ``/api/v1/trials/metrics``.

An object with ``totalBatches`` is a report: its step is that number, its values are the averages (``avgMetrics``); those of a validation get ``val/`` in front. Settings are
the trial's ``hparams``. Fields: determined's ``proto/src/determined/trial/v1/trial.proto``.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa

from parsers.records import cells, tolerant_json, tracker_files
from parsers.records.json_values import flat
from parsers.records.tracked import Tracked
from parsers.tables import Gap, Note

AT = "entry"
_AVERAGES = ("avgMetrics", "avg_metrics", "validationMetrics", "validation_metrics")
_DEEPEST = 20


def claims(path: Path, head: bytes) -> bool:
    return tracker_files.kind_of(path, head) == "determined"


def parse(path: Path) -> Iterator[pa.RecordBatch | Gap | Note]:
    text, gaps = tolerant_json.read(path)
    yield from gaps
    document, damage = tolerant_json.whole(text)
    if damage:
        yield Gap(damage, "cut off or damaged JSON", None)
    run = Tracked()
    for at, (kind, report) in enumerate(_reports(document, ""), 1):
        _report(run, kind, report, at)
    for key, value in _settings(document):
        run.rows.config(key, value, at=1)
    yield from run.rows_out()


def _reports(value: Any, kind: str, depth: int = 0) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every report with its kind: what it says itself, else the key that it stands under."""
    if isinstance(value, list) and depth < _DEEPEST:
        for x in value:
            yield from _reports(x, kind, depth + 1)
    elif isinstance(value, dict) and depth < _DEEPEST:
        if ("totalBatches" in value or "total_batches" in value) and isinstance(value.get("metrics"), dict):
            yield str(value.get("group") or kind), value
            return
        for key, x in value.items():
            yield from _reports(x, key, depth + 1)


def _report(run: Tracked, kind: str, report: dict[str, Any], at: int) -> None:
    step = report.get("totalBatches", report.get("total_batches"))
    time = cells.seconds(str(report.get("endTime") or report.get("end_time") or ""))
    held = report["metrics"]
    values = next((held[k] for k in _AVERAGES if isinstance(held.get(k), dict)), held)
    for name, value in flat("", values, "/"):
        if cells.as_number(value) is not None:
            run.value(f"val/{name}" if kind.startswith("val") and not name.startswith("val") else name, value, step=step, time=time, at=at)


def _settings(document: Any) -> Iterator[tuple[str, Any]]:
    trial = document.get("trial") if isinstance(document, dict) else None
    if isinstance(trial, dict) and isinstance(trial.get("hparams"), dict):
        yield from flat("", trial["hparams"])
