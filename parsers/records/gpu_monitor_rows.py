"""The headers of `nvidia-smi --query-gpu=... --format=csv` and of `dmon`, and which of their columns mean what."""

from __future__ import annotations

from parsers.lazy_regex import lazy_re

COLUMNS = {  # the name of a query -> the tag that a row becomes, after "system.gpu.<index>."
    "utilization.gpu": "util",
    "temperature.gpu": "temperature",
    "power.draw": "power",
    "clocks.current.sm": "clock",
    "clocks.sm": "clock",
    "memory.used": "mem",
    "ecc.errors.uncorrected.volatile.total": "ecc errors",
}
_UNIT = lazy_re(r"(?<!\s)\s*+\[[^\[\]]*+\]$")


def columns(line: str) -> list[str]:
    """The queries of a header, in order; [] where it is none: it has a timestamp and one of the columns above."""
    names = [_UNIT.sub("", cell.strip()).lower() for cell in line.strip("\ufeff \r\n").split(",")]
    return names if "timestamp" in names and COLUMNS.keys() & set(names) else []


DMON = {  # the same for `nvidia-smi dmon` and `dcgmi dmon`
    "sm": "util",
    "gputl": "util",
    "gtemp": "temperature",
    "tmptr": "temperature",
    "pwr": "power",
    "power": "power",
    "pclk": "clock",
    "smclk": "clock",
    "fb": "mem",
    "fbusd": "mem",
    "dbecc": "ecc errors",
}


def dmon_columns(line: str) -> list[str]:
    """The columns of a header of dmon, in lower case; [] where it is none: it begins with ``#`` and has a device and two of the columns above."""
    names = line.lower().lstrip("# ").split() if line.lstrip("\ufeff ").startswith("#") else []
    return names if {"gpu", "entity"} & set(names) and len((DMON.keys() | {"xider", "mem"}) & set(names)) >= 2 else []
