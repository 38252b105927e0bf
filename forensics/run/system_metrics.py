"""What monitors logged beside the training: GPU load, temperature, clock, memory; by the clock, with steps or without.

A monitor writes by time, not by step, so its rows have no step in many formats (W&B's system metrics); ``series`` leaves
them out, this reads them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from forensics.run.metric_columns import arrays
from forensics.run.once import once
from forensics.run.robust import median
from forensics.run.series import Floats
from parsers import arrow
from parsers.tables import Run


@dataclass(frozen=True, eq=False)
class Clocked:
    """One tag of one rank, in the order of its clock; `time` in seconds since 1970, `x` counts rows where no row has a clock."""

    tag: str
    rank: int | None
    time: Floats
    value: Floats


@once
def clocked(run: Run, name: str) -> list[Clocked]:
    """Every (tag, rank) that carries a canonical name, finite values only."""
    table = run.tables["metrics"]
    if not table.num_rows:
        return []
    columns = arrays(run)
    code = columns["code_of"].get(name)
    if code is None:
        return []
    rows = columns["by_name"][columns["ends"][code] : columns["ends"][code + 1]]
    tags, ranks, ranked = columns["tag"][rows].tolist(), columns["rank"][rows].tolist(), arrow.present(table["rank"])[rows].tolist()
    groups: dict[tuple[str, int | None], list[int]] = {}
    for i, (tag, rank, known) in enumerate(zip(tags, ranks, ranked, strict=True)):
        groups.setdefault((columns["tags"][tag], rank if known else None), []).append(i)
    time, value = columns["time"][rows], columns["value"][rows]
    found = []
    for (tag, rank), mine in groups.items():
        picked = np.array(mine)[np.isfinite(value[mine])]
        t = time[picked] if np.isfinite(time[picked]).all() else np.arange(len(picked), dtype=np.float64)
        order = np.argsort(t, kind="stable")
        if len(picked):
            found.append(Clocked(tag, rank, t[order], value[picked][order]))
    return found


def smooth_growth(value: Floats, least: int = 40) -> float | None:
    """Relative growth over the last half, where hardly a stretch of it falls and four or more rise; None where it does not grow."""
    half = value[len(value) // 2 :]
    if len(value) < least:
        return None
    parts = [median(p) for p in np.array_split(half, 12)]
    change = np.diff(parts)
    if parts[0] <= 0 or float(np.mean(change >= 0)) < 0.9 or int((change > 0).sum()) < 4:
        return None
    return parts[-1] / parts[0] - 1
