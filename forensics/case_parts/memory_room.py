"""Memory of a device against what the device has."""

from __future__ import annotations

from typing import Any

import numpy as np

from forensics.run import endings, memory_kinds, peak_flops, settings
from forensics.run.downsample import m4
from forensics.run.series import Series, series
from parsers.lazy_regex import lazy_re
from parsers.tables import Run

METRICS = ("mem.reserved", "gpu.mem", "mem.alloc")  # what fills the card first
COLUMNS = 200
GIB = float(2**30)
_UNITS = {"b": 1.0, "bytes": 1.0, "kib": 1024.0, "mib": 1024.0**2, "gib": GIB, "kb": 1e3, "mb": 1e6, "gb": 1e9}
_IN_TAG = lazy_re(r"(?i)(?:^|[/_. (])(bytes|[kmg]i?b)(?:$|[/_. )])")
_NAMED = lazy_re(r"(?i)\b[A-Z]{1,12}\d{1,6}\w{0,12}[ -].{0,30}?\b(\d{2,3}) ?GB\b")  # NVIDIA A100-SXM4-80GB


def memory(run: Run) -> dict[str, Any] | None:
    """The keys of `pictures.memory`, in GiB; None where the capacity is not known, or no memory was logged in a unit that is."""
    capacity, where, tried = _capacity(run)
    s = next((s for n in METRICS if (s := series(run, n)) is not None and len(s) > 1 and s.usable.any()), None)
    if s is None or capacity is None or (unit := _unit(s, capacity)) is None:
        return None
    rows = s.usable
    points = m4(s.step[rows], s.value[rows] * unit / GIB, COLUMNS)
    return {"metric": s.name, "tag": s.tag, "points": points, "capacity": capacity / GIB, "where": where,
            "tried": tried / GIB if tried else None}  # fmt: skip


def _capacity(run: Run) -> tuple[float | None, str, float | None]:
    """(bytes of the device, what says so, bytes that were asked for last): by an out-of-memory error, else by the device's name."""
    for e in endings.events(run, "oom"):
        told = memory_kinds.sizes(str(e["text"]))
        if told.get("capacity"):
            return told["capacity"], run.where(str(e["source"]), e["at"]), told.get("tried")
    for s in settings.every(run):
        m = _NAMED.search(str(s.value)) if peak_flops.DEVICE_KEYS.search(s.key) else None
        if m is not None:
            return float(m[1]) * GIB, f"{s.where}: {str(s.value)[:60]}", None
    return None, "", None


def _unit(s: Series, capacity: float) -> float | None:
    """Bytes in a unit of the series. Many write GB for GiB: where the highest value fits the card only as GB, it is GB."""
    m = _IN_TAG.search(s.tag)
    name = (s.unit or (m[1] if m else "")).lower()
    if name == "%":
        return capacity / 100
    unit = _UNITS.get(name)
    binary = _UNITS.get(name.replace("b", "ib")) if name in ("kb", "mb", "gb") else None
    return binary if binary and float(np.max(s.value[s.usable])) * binary <= capacity else unit
