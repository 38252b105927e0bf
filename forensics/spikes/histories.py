"""The values that each attempt is judged by: its own, and the last of those that it went on from."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from forensics.run.series import Series
from forensics.spikes.excursions import Floats, Ints, scaled, size_of

HISTORY = 1000  # values of the attempt before that a new attempt is compared with; not critical: six times what any yardstick reaches back


@dataclass(frozen=True)
class History:
    """The loss of an attempt, with the end of what it went on from."""

    attempt: int
    rows: Ints  # of the series
    first: int  # index of the first of these rows that is the attempt's own
    step: Ints
    value: Floats
    y: Floats  # as ``scaled``
    logs: bool
    size: float  # of the values, as ``size_of``
    finite: Floats  # y, NaN where the value is not finite


def histories(s: Series) -> Iterator[History]:
    """Each attempt of a series, in order."""
    kept = np.array([], np.int64)
    for attempt in np.unique(s.attempt):
        rows = np.flatnonzero(s.attempt == attempt)
        before = kept[s.step[kept] < s.step[rows].min()]
        kept = np.concatenate([before, rows])
        before = before[-HISTORY:]
        rows = np.concatenate([before, rows])
        x = s.value[rows]
        y, logs = scaled(x)
        yield History(int(attempt), rows, len(before), s.step[rows], x, y, logs, size_of(x, logs), np.where(np.isfinite(x), y, np.nan))
