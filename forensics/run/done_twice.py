"""The steps that two attempts of a run both did."""

from __future__ import annotations

from typing import Any

import numpy as np

from forensics.run import reach
from forensics.run.once import once
from forensics.run.series import Floats, Ints
from parsers import arrow
from parsers.tables import Run


def steps(run: Run, before: dict[str, Any], after: dict[str, Any]) -> int:
    """How many of the steps of the attempt `before` the attempt `after` does again: none where rows that it logs of these steps are of a later
    epoch. A loop that works out its step from the number of batches of an epoch counts otherwise once a batch holds more samples.
    A log whose first row is one logging interval after step 0 names each row by its last step: its first row again is a whole interval."""
    last, first, every = before["steps"][1], run.attempts[0]["steps"][0], reach.interval(run)
    again = max(last - after["steps"][0] + (every if first == every else 1), 0)
    attempt, step, epoch = _epochs(run)
    ended, begun = epoch[attempt == before["index"]], epoch[(attempt == after["index"]) & (step <= last)]
    to_its_end = step[attempt == before["index"]].max(initial=-1) >= last - every  # a row that both files have is the later attempt's
    return 0 if to_its_end and len(ended) and len(begun) and begun.min() > ended.max() else again


@once
def _epochs(run: Run) -> tuple[Ints, Ints, Floats]:
    """Attempt, step and epoch of all rows that have one: a series lacks those that a later attempt does again."""
    table = run.tables["metrics"]
    code, names = arrow.codes(table["name"])
    named = np.array([n == "epoch" for n in names], bool)[code] if names else np.zeros(0, bool)
    rows = np.flatnonzero(named & arrow.present(table["step"]))
    value = arrow.values(table["value"].take(rows))
    told = np.isfinite(value)
    return arrow.filled(table["attempt"].take(rows), -1)[told], arrow.values(table["step"].take(rows))[told], value[told]
