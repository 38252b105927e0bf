"""Reads the operations that Neptune 1.x keeps on disk: ``.neptune/{offline,async,sync}/run__*/data-*.log``.

- JSON lines ``{"obj": {"type", "path", ...}, "version", "at"}``: ``LogFloats`` has values with step and time, ``Assign*`` a setting, ``LogStrings`` below
  ``monitoring`` what the program printed. Seen in files of neptune 1.14.
- NaN and infinities are never written: steps that one series lacks and others have are told, for the explosion may be there.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa

from parsers.formats import jsonl
from parsers.records import cells, tracker_files
from parsers.records.tracked import Tracked, listed
from parsers.tables import Gap, Note

AT = "line"
_PRINTED = {"stdout", "stderr", "traceback"}
_SAME_STEPS = 0.9  # share of the steps that two series must have in common to be logged together; a metric of every tenth step is not


def claims(path: Path, head: bytes) -> bool:
    return tracker_files.kind_of(path, head) == "neptune"


def parse(path: Path) -> Iterator[pa.RecordBatch | Gap | Note]:
    run, steps = Tracked(), defaultdict[str, set[int]](set)
    for item in jsonl.entries(path):
        if isinstance(item, Gap):
            yield item
            continue
        for row, at in zip(*item, strict=True):
            if isinstance(row.get("obj"), dict):
                _operation(run, row["obj"], cells.as_number(row.get("at")), at, steps)
    yield from run.rows_out()
    yield from (Note(s) for s in _left_out(steps))


def _operation(run: Tracked, said: dict[str, Any], time: float | None, at: int, steps: dict[str, set[int]]) -> None:
    kind, path = str(said.get("type")), [str(p) for p in said["path"]] if isinstance(said.get("path"), list) else []
    tag, values = "/".join(path), said.get("values")
    values = [v for v in values if isinstance(v, dict)] if isinstance(values, list) else []
    if kind == "LogFloats":
        for v in values:
            run.value(tag, v.get("value"), step=v.get("step"), time=cells.as_number(v.get("ts")), at=at)
            if (step := cells.whole(v.get("step"))) is not None and path[:1] != ["monitoring"]:
                steps[tag].add(step)
    elif kind == "LogStrings":
        for v in values if path[-1:] and path[-1] in _PRINTED else ():
            run.line(v.get("value"), cells.as_number(v.get("ts")), at)
    elif path[:2] == ["sys", "failed"] and said.get("value") is True:
        run.rows.event("status", "neptune status FAILED", level="error", time=time, at=at)
    elif kind.startswith("Assign") and path[:1] not in (["monitoring"], ["sys"]):
        run.rows.config(tag.replace("/", "."), said.get("value"), at=at)


def _left_out(steps: dict[str, set[int]]) -> Iterator[str]:
    """Sentences on the steps that a series lacks where the others of its cadence have them."""
    for tag, own in steps.items():
        others = [s for t, s in steps.items() if t != tag and len(s & own) >= _SAME_STEPS * max(len(s), len(own))]
        lacks = sorted(set().union(*others) - own) if others else []
        if lacks:
            yield f"{tag} has no value at {listed(lacks)}: Neptune leaves out NaN and infinity"
