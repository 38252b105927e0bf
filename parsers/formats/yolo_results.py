"""Reads ``results.txt`` of YOLOv5 before its CSV (2021), YOLOv7 and ultralytics' YOLOv3: fifteen columns without names, a row an epoch.

The columns are fixed (train.py writes them with ``%10s`` and ``%10.4g``): ``epoch/last``, GPU memory, the losses of boxes, objects and classes
and their sum, labels of the last batch, image size; then of the evaluation precision, recall, mAP at 0.5, mAP at 0.5 to 0.95, and the three
losses. They are named here as in the ``results.csv`` that followed. YOLOv3 has F1 where the others have mAP at 0.5 to 0.95, which shows in
its values. The seven of the evaluation are all zero in an epoch that had none.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa

from parsers.lazy_regex import lazy_re
from parsers.records import line_blocks
from parsers.records.cells import number
from parsers.records.gaps import GapList
from parsers.records.json_rows import Log
from parsers.tables import HEAD_BYTES, Gap, Note

AT = "line"
GROWS = "rows"

Row = dict[str, Any]
_ROW = lazy_re(r"\s*(\d{1,6})/\d{1,6}\s+(\d{1,4}(?:\.\d{1,4})?)G((?:\s+\S{1,20}){13})\s*")
_TRAIN = ("train/box_loss", "train/obj_loss", "train/cls_loss", "train/loss")
_MAP, _F1 = "metrics/mAP_0.5:0.95", "metrics/F1"
_EVAL = ("metrics/precision", "metrics/recall", "metrics/mAP_0.5", _MAP, "val/box_loss", "val/obj_loss", "val/cls_loss")
_ROUNDED = 0.002  # unit: what rounding to four digits can change in F1


def claims(path: Path, head: bytes) -> bool:
    if path.suffix.lower() not in (".txt", "") or b"/" not in head[:16]:
        return False
    lines = [x for x in head.decode("utf-8", "replace").splitlines() if x.strip()]
    lines = lines[:-1] if len(head) >= HEAD_BYTES else lines
    return bool(lines) and sum(_row(x) is not None for x in lines) * 4 >= 3 * len(lines)


def parse(path: Path) -> Iterator[pa.RecordBatch | Gap | Note]:
    """A row an epoch. Raises OSError only."""
    log, gaps, found, places = Log(), GapList(), list[Row](), list[int]()
    for block in line_blocks.blocks(path):
        if isinstance(block, Gap):
            yield block
            continue
        for at, line in enumerate(block[1].decode("utf-8", "replace").split("\n"), block[0]):
            if (row := _row(line)) is not None:
                found.append(row)
                places.append(at)
            elif line.strip():
                gaps.add(at, "not the fifteen columns of results.txt", 1)
    if found and all(map(_has_f1, found)):
        found = [{_F1 if k == _MAP else k: v for k, v in row.items()} for row in found]
    yield from log.add(found, places)
    yield from gaps.told()
    yield from log.finish()


def _row(line: str) -> Row | None:
    m = _ROW.fullmatch(line)
    values = [number(x) for x in m[3].split()] if m is not None else []
    measured = [v for v in values if v is not None]
    if m is None or len(measured) < len(values):
        return None
    evaluated = measured[-len(_EVAL) :]
    row = {"epoch": int(m[1]), "mem_reserved (GB)": float(m[2]), **dict(zip(_TRAIN, measured, strict=False))}
    return row | dict(zip(_EVAL, evaluated, strict=True)) if any(evaluated) else row


def _has_f1(row: Row) -> bool:
    """Is the tenth column the harmonic mean of precision and recall, or was nothing evaluated?"""
    precision, recall, told = (float(row.get(name, 0.0)) for name in (_EVAL[0], _EVAL[1], _MAP))
    return abs(told * (precision + recall) - 2 * precision * recall) <= _ROUNDED * (precision + recall)
