"""How long steps took by the log's clock: between rows of one process, each step counted, evaluations and saves told apart."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from forensics.run import endings
from forensics.run.metric_columns import arrays
from forensics.run.once import once
from forensics.run.robust import median
from forensics.run.series import Floats, Ints, Series
from parsers.lazy_regex import lazy_re
from parsers.tables import DATED, DOUBTED, Run

DAY, MOST_DAYS = 86400.0, 100_000
# statistical: of eight pieces of noise all rise once in 40,000, all but one once in 160
PIECES = 8
TICKS = 10  # seconds that a side lasts; bound: a clock of whole seconds is then off by a tenth
EVALUATION = lazy_re(r"(?i)(?:^|[/_.])(?:val|valid|validation|eval|evaluation|test)(?:[/_.]|$)")


class Pauses(NamedTuple):
    """From ``row[i]`` to ``row[i + 1]``, rows that have a clock: seconds and steps."""

    row: Ints
    seconds: Floats  # NaN where an attempt ends, where the clock goes back or is doubted, between files without a common clock
    steps: Ints

    @property
    def a_step(self) -> Floats:
        """Seconds a step: a log that is written more or less often is no change of speed."""
        return np.where(self.steps > 0, self.seconds / np.maximum(self.steps, 1), np.nan)


def pauses(s: Series) -> Pauses:
    row = np.flatnonzero(np.isfinite(s.time))
    time = s.time[row]
    gap = np.diff(time)
    apart = np.diff(s.attempt[row]) != 0
    apart |= (np.diff(s.source_code[row]) != 0) & ((time[1:] < DATED) | (time[:-1] < DATED))
    return Pauses(row, np.where(~apart & (gap >= 0) & (gap <= DOUBTED), gap, np.nan), np.diff(s.step[row]))


@once
def _stops(run: Run) -> Ints:
    """Steps at which training is known to have paused for an evaluation or a save, sorted."""
    found = {int(e["step"]) for e in endings.events(run, "checkpoint_saved", "evaluation") if e["step"] is not None}
    found |= {int(s) for s in run.tables["checkpoints"]["step"].to_pylist() if s is not None}
    columns = arrays(run)
    said = [i for i, name in enumerate(columns["names"]) if name and EVALUATION.search(name)]
    rows = np.concatenate([np.zeros(0, np.int64), *(columns["by_name"][columns["ends"][i] : columns["ends"][i + 1]] for i in said)])
    return np.unique(np.r_[np.array(sorted(found), np.int64), columns["step"][rows[columns["stepped"][rows]]]])


def stopped(run: Run, s: Series, p: Pauses) -> NDArray[np.bool_]:
    """Pauses in which an evaluation or a save is known to lie. Its line may come before or after the row of its step, so that a
    pause that begins or ends there counts."""
    known = _stops(run)
    return np.asarray(np.searchsorted(known, s.step[p.row[1:]], side="right") > np.searchsorted(known, s.step[p.row[:-1]]), np.bool_)


@once
def is_doubted(run: Run) -> bool:
    """Do more than 30 days lie between two neighbouring moments of the log?"""
    time = arrays(run)["time"]
    days = (time[time >= DATED] // DAY).astype(np.int64)
    seen = np.flatnonzero(np.bincount(days - days.min())) if len(days) and np.ptp(days) < MOST_DAYS else np.unique(days)
    return bool((np.diff(seen) > DOUBTED / DAY).any())


def ratio(s: Series, rows: Ints, split: int) -> float:
    """How fast the steps come from a row on, over how fast they came before it, by the clock of the rows and whatever passed between both sides;
    NaN where there is no clock, or one side lasts too short for it."""
    steps, times = (np.array([x[rows[b - 1]] - x[rows[a]] for a, b in ((0, split), (split, len(rows)))]) for x in (s.step, s.time))
    speeds = steps / times if (times >= TICKS).all() else np.full(2, np.nan)
    return float(speeds[1] / speeds[0]) if speeds[0] > 0 else float("nan")


def pieces(x: Floats) -> list[float]:
    """Medians of eight pieces of a run; none of fewer values."""
    return [median(part) for part in np.array_split(x, PIECES)] if len(x) >= PIECES else []


def ever_slower(speed: Floats, share: float) -> bool:
    """Whether each piece of a run is slower than the one before, down to less than a share of the first."""
    each = pieces(speed)
    return bool(each) and bool((np.diff(each) < 0).all()) and each[-1] < share * each[0]


def fades(step: Ints, speed: Floats, share: float) -> bool:
    """Whether a speed that falls and falls may be a mean since the start, whose steps take as long as ever: what was fast at first fades out of it."""
    since = step / speed
    apart = np.diff(since)
    return bool((apart > 0).all()) and not ever_slower(np.diff(step) / apart, share)
