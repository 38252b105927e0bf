"""Reads what `nvidia-smi dmon` and `dcgmi dmon` print beside a training: a row a device and moment, in columns below a header that begins with ``#``.

- nvidia-smi names dates and times only with ``-o DT``, dcgmi never: rows without them have neither step nor time, and stand in the order of the file.
- Load, temperature, power, clock and memory are kept; "-" and "N/A" are not logged. An Xid (dcgmi's XIDER) that is not 0 is an event once for each device and code.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa

from parsers.records import cells
from parsers.records.gpu_monitor_rows import DMON, dmon_columns
from parsers.tables import Gap, Note, Rows

AT = "line"


def claims(path: Path, head: bytes) -> bool:
    return bool(dmon_columns(head.split(b"\n", 1)[0].decode("utf-8", "replace")))


def parse(path: Path) -> Iterator[pa.RecordBatch | Gap | Note]:
    """Rows without a step, in file order. Raises OSError only."""
    rows, names, odd, timed, told = Rows(), list[str](), 0, False, set[tuple[str, int]]()
    with path.open(encoding="utf-8", errors="replace") as f:
        for at, line in enumerate(f, start=1):
            if line.lstrip().startswith("#") or not line.strip():
                names = dmon_columns(line) or names  # the line of units begins with # as well
                continue
            words = line.split()
            if words == ["ID"]:
                continue
            if names[:1] == ["entity"] and len(words) == len(names) + 1:
                words = words[1:]  # "GPU 0"
            if len(words) != len(names):
                odd += 1
                continue
            row = dict(zip(names, words, strict=True))
            date = row.get("date", "")
            time = cells.seconds(f"{date[:4]}-{date[4:6]}-{date[6:]} {row.get('time', '')}") if len(date) == 8 else None
            timed |= time is not None
            _row(rows, row, time, at, told)
            if rows.full():
                yield from rows.flush()
    if odd:
        yield Gap("line 1", f"{odd} lines with another number of columns than the header", odd)
    if timed:
        yield Note("clock without zone, read as UTC", clock="local")
    yield from rows.flush()


def _row(rows: Rows, row: dict[str, str], time: float | None, at: int, told: set[tuple[str, int]]) -> None:
    device = row.get("gpu", row.get("entity", "0"))
    for name, tag in DMON.items():
        if name in row and (value := cells.number(row[name])) is not None:
            rows.metric(None, f"system.gpu.{device}.{tag}", value, time=time, at=at)
    code = cells.whole(row.get("xider", "0")) or 0
    if code and (device, code) not in told:
        told.add((device, code))
        rows.event("hardware", f"GPU {device} reported Xid {code}", level="error", time=time, at=at)
