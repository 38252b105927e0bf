"""The header of `nvidia-smi --query-gpu=... --format=csv`, and which of its columns mean what."""

from __future__ import annotations

import re

COLUMNS = {  # the name of a query -> the tag that a row becomes, after "system.gpu.<index>."
    "utilization.gpu": "util",
    "temperature.gpu": "temperature",
    "power.draw": "power",
    "clocks.current.sm": "clock",
    "clocks.sm": "clock",
    "memory.used": "mem",
    "ecc.errors.uncorrected.volatile.total": "ecc errors",
}
_UNIT = re.compile(r"(?<!\s)\s*+\[[^\[\]]*+\]$")


def columns(line: str) -> list[str]:
    """The queries of a header, in order; [] where it is none: it has a timestamp and one of the columns above."""
    names = [_UNIT.sub("", cell.strip()).lower() for cell in line.strip("\ufeff \r\n").split(",")]
    return names if "timestamp" in names and COLUMNS.keys() & set(names) else []
