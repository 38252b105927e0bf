"""Reads what `nvidia-smi --query-gpu=timestamp,index,... --format=csv -l` wrote beside a training.

- A row is one device at one moment; it has no step, and its clock is that of the machine, without a zone: taken as UTC.
- Numbers come with or without their units ("37 %", "40536 MiB"); "[N/A]" and "[Not Supported]" are not logged.
- Load, temperature, power, clock, memory and uncorrected errors are kept; the device's index and name go into the tag and the config.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa

from parsers.lazy_regex import lazy_re
from parsers.records.gpu_monitor_rows import COLUMNS, columns
from parsers.tables import Gap, Rows

AT = "line"
_NUMBER = lazy_re(r"^\s*(-?\d+(?:\.\d+)?)\s*(?:%|MiB|W|MHz|C)?\s*$")


def claims(path: Path, head: bytes) -> bool:
    """Its header, by the names of the queries."""
    return bool(columns(head.split(b"\n", 1)[0].decode("utf-8", "replace")))


def parse(path: Path) -> Iterator[pa.RecordBatch | Gap]:
    """Rows without a step, in file order. Raises OSError only."""
    rows, names, odd, named = Rows(), list[str](), 0, set[str]()
    with path.open(encoding="utf-8", errors="replace") as f:
        for at, line in enumerate(f, start=1):
            if header := columns(line):
                names = header  # a monitor that was started again writes it again
                continue
            cells = [c.strip() for c in line.rstrip("\r\n").split(",")]
            if len(cells) != len(names):
                odd += bool(line.strip())
                continue
            row = dict(zip(names, cells, strict=True))
            time, index = _time(row["timestamp"]), row.get("index", "0")
            for name, tag in COLUMNS.items():
                if (m := _NUMBER.match(row.get(name, ""))) is not None:
                    rows.metric(None, f"system.gpu.{index}.{tag}", float(m[1]), time=time, at=at)
            if row.get("name") and index not in named:
                named.add(index)
                rows.config(f"gpu.{index}.name", row["name"], at=at)
            if rows.full():
                yield from rows.flush()
    if odd:
        yield Gap("line 1", f"{odd} lines with another number of columns than the header", odd)
    yield from rows.flush()


def _time(text: str) -> float | None:
    """'2026/03/04 05:06:07.123' in seconds since 1970."""
    try:
        return datetime.strptime(text[:19], "%Y/%m/%d %H:%M:%S").replace(tzinfo=UTC).timestamp() + float(
            f"0{text[19:]}" if text[19:] else 0
        )
    except ValueError:
        return None
