"""Reads what ClearML keeps of an offline task: ``metrics.jsonl`` and ``task.json``, from the zip or the folder; its ``log.jsonl`` is read as the console log that it is.

- A line of ``metrics.jsonl`` is an array of ``{type, iter, metric, variant, value, timestamp}``: the tag is ``metric/variant``. Seen in files of clearml 2.1.
- NaN and infinities are written as 0.0: an exact zero in a series that is else never near zero is told, for the explosion may be there.
- ``task.json`` has the settings as text, and the program's source, which is left.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from parsers.formats import jsonl
from parsers.records import cells, tolerant_json, tracker_files
from parsers.records.tracked import Tracked, listed
from parsers.tables import Gap, Note, Rows

AT = "line"
_FEW = 0.5  # share of a series: where more of it is zero, zero is its usual value
_PLAIN = {"General", "Args"}  # sections that say nothing of their settings


def claims(path: Path, head: bytes) -> bool:
    return tracker_files.kind_of(path, head) in ("clearml", "clearml task")


def parse(path: Path) -> Iterator[pa.RecordBatch | Gap | Note]:
    with path.open("rb") as f:
        first = f.read(1)
    yield from _task(path) if first == b"{" else _metrics(path)


def _metrics(path: Path) -> Iterator[pa.RecordBatch | Gap | Note]:
    run, series, other = Tracked(), defaultdict[str, list[tuple[int, float]]](list), 0
    for item in jsonl.entries(path):
        if isinstance(item, Gap):
            yield item
            continue
        for row, at in zip(*item, strict=True):
            if row.get("type") != "training_stats_scalar":
                other += 1
                continue
            tag = "/".join(str(row[k]) for k in ("metric", "variant") if row.get(k))
            clock, step, value = cells.as_number(row.get("timestamp")), cells.whole(row.get("iter")), cells.as_number(row.get("value"))
            run.value(tag, row.get("value"), step=step, time=None if clock is None else clock / 1000, at=at)
            if step is not None and value is not None:
                series[tag].append((step, value))
    yield from run.rows_out()
    for tag, points in series.items():
        zeros = [step for step, value in points if value == 0]
        if 0 < len(zeros) < _FEW * len(points) and _never_near_zero(np.array([v for _, v in points if v])):
            yield Note(f"{tag} is exactly 0.0 at {listed(zeros)}: ClearML writes NaN and infinity so")
    if other:
        yield Note(f"{other} records of plots, images and tables not read")


def _never_near_zero(values: np.ndarray[Any, Any]) -> bool:
    """Does a series keep its sign and lie away from zero by as much as it varies?"""
    return bool((np.sign(values) == np.sign(values[0])).all()) and bool(np.abs(values).min() > 1e-3 * np.median(np.abs(values)))


def _task(path: Path) -> Iterator[pa.RecordBatch | Gap]:
    text, gaps = tolerant_json.read(path)
    yield from gaps
    document, damage = tolerant_json.whole(text)
    if damage:
        yield Gap(damage, "damaged JSON: settings behind the damage could not be read", None)
    rows = Rows()
    for key in ("name", "project_name", "tags", "type"):
        if isinstance(document, dict) and document.get(key):
            rows.config(f"clearml.{key}", document[key], at=1)
    sections = document.get("hyperparams") if isinstance(document, dict) else None
    for section, params in (sections or {}).items():
        for name, param in params.items() if isinstance(params, dict) else ():
            key = name if section in _PLAIN else f"{section}.{name}"
            rows.config(key.replace("/", "."), param.get("value") if isinstance(param, dict) else param, at=1)
    yield from rows.flush()
