"""What a clock without a time zone is ahead of UTC, from values that another file logged at the same steps.

A console prints local time, an event file UTC. Where both hold the same losses at the same steps and their clocks differ by the same
amount throughout, that amount is the zone: a multiple of a quarter of an hour (tz database: all zones in use since 1972 are). Without such
pairs nothing is shifted, and ``Source.clock`` stays "local".
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from parsers import arrow, names
from parsers.runs.assemble import FileRead
from parsers.tables import DATED, WIDEST_ZONE

QUARTER = 900.0  # seconds
LATE = 120.0  # seconds between a value's printing and its writing elsewhere: TensorBoard's writer flushes that often
LEAST, PAIRS, ROWS = 3, 200, 20_000  # common steps needed and looked at; rows of a file that are looked at
SAME = 2e-3  # relative: what is left of a value printed with three digits


class Points(NamedTuple):
    """Losses with a step and a time, sorted by step."""

    step: NDArray[np.int64]
    time: NDArray[np.float64]
    value: NDArray[np.float64]


def align(files: list[FileRead]) -> None:
    """Puts clocks without a zone, and relative ones, on the clock of a file that logs the same values."""
    open_ = [f for f in files if f.source.clock in ("local", "relative")]
    sure = [p for f in files if f.source.clock == "" and len((p := _points(f)).step)] if open_ else []
    ahead: dict[str, float] = {}
    for f in open_ if sure else []:
        mine = _points(f)
        found = max((x for x in (_ahead(mine, other) for other in sure) if x is not None), key=lambda x: x[1], default=None)
        if found is None:
            continue
        seconds = found[0]
        if f.source.clock == "relative":
            _shift(f, seconds, "its times are those of a clock that logged equal values at the same steps")
        elif abs(seconds) <= WIDEST_ZONE + LATE and abs(seconds - (zone := round(seconds / QUARTER) * QUARTER)) <= LATE:
            ahead[_folder(f)] = zone
    for f in open_:
        if f.source.clock == "local" and (hours := ahead.get(_folder(f))) is not None:  # one folder, one machine, one zone
            _shift(f, hours, f"its clock is {hours / 3600:+.4g} h from UTC: equal values at the same steps of another file")


def _folder(f: FileRead) -> str:
    return f.source.path.rpartition("/")[0]


def _points(f: FileRead) -> Points:
    """The first of its losses; rates and counters are equal in runs that have nothing else in common."""
    step, time, value = [np.zeros(0, np.int64)], [np.zeros(0)], [np.zeros(0)]
    for b in f.batches.get("metrics", []):
        code, tags = arrow.codes(b["tag"])
        known = names.meanings(tags)
        lossy = np.array([known[t].name.startswith(("loss.", "grad.", "ppl")) for t in tags], np.bool_)
        s, t, v = arrow.filled(b["step"], -1), arrow.filled(b["time"], np.nan), arrow.values(b["value"])
        keep = np.flatnonzero(lossy[code] & (s >= 0) & np.isfinite(t) & np.isfinite(v) & (v != np.floor(v)))
        step, time, value = [*step, s[keep]], [*time, t[keep]], [*value, v[keep]]
        if sum(map(len, step)) > ROWS:
            break
    found = Points(np.concatenate(step)[:ROWS], np.concatenate(time)[:ROWS], np.concatenate(value)[:ROWS])
    order = np.argsort(found.step, kind="stable")
    return Points(found.step[order], found.time[order], found.value[order])


def _ahead(a: Points, b: Points) -> tuple[float, int] | None:
    """By how many seconds a's clock is ahead of b's, and the number of steps that say so; None where they do not."""
    common = np.intersect1d(a.step, b.step)
    if len(common) < LEAST or not (b.time >= DATED).all():
        return None
    common = common[np.unique(np.linspace(0, len(common) - 1, min(PAIRS, len(common))).astype(int))]
    apart = []
    for step in common.tolist():
        i, j = (slice(*np.searchsorted(p.step, [step, step + 1])) for p in (a, b))
        equal = np.argwhere(np.abs(a.value[i][:, None] - b.value[j][None, :]) <= SAME * np.abs(b.value[j]))
        if len(equal):
            apart.append(float(a.time[i][equal[0, 0]] - b.time[j][equal[0, 1]]))
    if len(apart) < max(LEAST, len(common) / 2):
        return None
    middle = float(np.median(apart))
    return (middle, len(apart)) if float(np.median(np.abs(np.array(apart) - middle))) <= LATE else None


def _shift(f: FileRead, seconds: float, note: str) -> None:
    for table in ("metrics", "events"):
        if seconds and f.batches.get(table):
            f.batches[table] = [with_times(b, arrow.filled(b["time"], np.nan) - seconds) for b in f.batches[table]]
    f.source = replace(f.source, clock="", note="; ".join([*([f.source.note] if f.source.note else []), note]))


def with_times(b: pa.RecordBatch, times: NDArray[np.float64]) -> pa.RecordBatch:
    """The batch with other times; NaN becomes null."""
    return arrow.with_column(b, "time", arrow.numbers(times, np.isfinite(times)))
