"""Divergence

What it sees
    The training loss turns round and ends well above the best level it had reached.

How it decides
    Levels are medians of 15 logged values, in a log of fewer than 150 also of a tenth of them, at least 5. It fires
    when the last level lies above the best one by at least 10 % and by eight times its noise (in the short form, of
    the steps between neighbours), and by 5 % of all it had fallen. Or, for smaller rises of longer runs, when the loss
    smoothed over 25 values has risen four times further than ever before in the run, by 15 standard errors, and
    keeps at least 40 % of that to the end (``forensics.spikes.trend``). The step it names is where the loss last stood
    near its best, or where the rise began. A loss that stands a quarter above its first level for a tenth of the run and
    then comes back was divergence, too, until something (usually the falling rate) caught it: a warning.

Cannot tell
    With fewer than 15 values of the loss. A rise caused by harder data or another loss function looks the same: the
    hypotheses weigh that.

Folklore
    "Divergence without a spike" is the fourth pattern beside the three kinds of spike (Bekman's
    training-loss-patterns).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from forensics import evidence
from forensics.case import BaseFacts, Finding
from forensics.run.inputs import ANY_LOSS, finite_loss
from forensics.run.robust import SIGMA
from forensics.run.series import Series
from forensics.spikes import excursions
from forensics.spikes.trend import turn
from parsers.tables import Run

NEEDS = [ANY_LOSS]
LEAST_VALUES, ENOUGH, LEVEL = 15, 40, 15
TENTH = 10  # a level is a tenth of the values, so that it can turn within the first fifth; five at least, LEVEL at most
RISE, NOISES, UNDONE = 0.10, 8.0, 0.05
FEW, CLIMB, STRETCH = 5, 1.25, 0.1  # median of so many values above so many times the first, for this share of the run
SMALLEST_EFFECT = "a last level 10 % above the best one, or a lasting rise of 1 % four times larger than any before"


@dataclass(frozen=True)
class Facts(BaseFacts):
    """The turn of the loss, in its own units."""

    start: int  # step of the turn
    best: float  # level before it
    final: float  # level at the end
    rise: float  # of the final over the best level, as a share
    best_step: int
    first: float  # value of the run
    above_first: int | None = None  # values above the first level, of a loss that came back


def detect(run: Run) -> Iterator[Finding]:
    s, rows = finite_loss(run, LEAST_VALUES)
    x = s.value[rows]
    y, logs = excursions.scaled(x)
    short = max(len(y) // TENTH, FEW)
    turned = _turned(y, logs, short, _noise_of_steps(y, short)) if short < LEVEL else None
    if turned is None and len(rows) >= ENOUGH:
        turned = _turned(y, logs, LEVEL, excursions.local_noise(y))
    width = short if len(rows) < ENOUGH else LEVEL
    if turned is not None:
        best, at, width = turned
    else:
        slow = turn(y, excursions.candidates(y)) if len(rows) >= ENOUGH else None
        if slow is None:
            yield from _above_first(run, s, rows)
            return
        at, level = slow.start, excursions.rolling_median(y, LEVEL)
        best = min(int(np.argmin(level[LEVEL:])) + LEVEL, at)
    row = rows[at]
    start, last = int(s.step[row]), int(s.step[rows[-1]])
    low, end = float(np.median(x[max(best - width + 1, 0) : best + 1])), float(np.median(x[-width:]))
    if end <= low:
        return
    how = f"{end / low - 1:.0%} above" if abs(end) < 100 * abs(low) else f"{end / low:.2g} times" if low else "above"
    title = f"From step {start} the loss drifts up to {end:.4g}, {how} its best level of {low:.4g}"
    up = end / low - 1 if low else float("inf")
    facts = Facts(start, best=low, final=end, rise=up, best_step=int(s.step[rows[best]]), first=float(x[0]))
    bands = [{"from": start, "to": last, "kind": "non_recovering"}]
    shown = evidence.window(s, start, last, *bands, title=f"{s.tag} from step {start} on", where=s.place(run, row))
    yield evidence.on_rows(s, (row, rows[-1]), facts, title, "critical", shown)


def _turned(y: excursions.Floats, logs: bool, width: int, spread: excursions.Floats) -> tuple[int, int, int] | None:
    """(index of the best level, where it was last near it, width) where the last level lies above the best beyond its noise."""
    level = excursions.rolling_median(y, width)
    best = int(np.argmin(level[width:])) + width
    noise = (
        float(max(np.median(spread), spread[best], np.median(spread[best:]))) / np.sqrt(width) * 1.25
    )  # a loss near zero scatters more, as a share
    rise = float(level[-1] - level[best])
    undone = float(np.exp(y[:width].mean()) - np.exp(level[best])) * UNDONE
    above = float(np.exp(level[-1]) - np.exp(level[best]))
    if rise < max(np.log1p(RISE), NOISES * noise) or best > len(y) - width or (logs and above < undone):
        return None
    return best, int(np.flatnonzero(level <= level[best] + max(3 * noise, 0.25 * rise))[-1]), width


def _noise_of_steps(y: excursions.Floats, width: int) -> excursions.Floats:
    """Noise of one value by the steps between its neighbours on either side: in a short log a fall of ten values is no noise."""
    steps = np.abs(np.diff(y, prepend=y[:1]))
    return np.maximum(SIGMA * excursions.centred_median(steps, 4 * width + 1) / 2**0.5, excursions.LEAST_SIGMA)


def _above_first(run: Run, s: Series, rows: excursions.Ints) -> Iterator[Finding]:
    """A loss that stood far above its first level for a tenth of the run, though it came back in the end."""
    x = s.value[rows]
    first = float(np.median(x[:3]))
    high = np.flatnonzero(excursions.rolling_median(x, FEW) > CLIMB * first)
    if first <= 0 or len(high) < max(LEVEL, STRETCH * len(x)) or np.median(x[-LEVEL:]) >= first:
        return
    a, b = int(high[0]), int(high[-1])
    start, last, top = int(s.step[rows[a]]), int(s.step[rows[b]]), float(x[a : b + 1].max())
    title = f"Loss climbs from {first:.4g} to {top:.4g}: it stays above its first level for {len(high)} values, until step {last}"
    final, begin = float(np.median(x[-LEVEL:])), int(s.step[rows[0]])
    facts = Facts(start, best=first, final=final, rise=top / first - 1, best_step=begin, first=first, above_first=len(high))
    band = [{"from": start, "to": last, "kind": "slow"}]
    shown = evidence.window(s, start, last, *band, title=f"{s.tag} above its first level", where=s.place(run, rows[a]))
    yield evidence.on_rows(s, (rows[a], rows[b]), facts, title, "warning", shown)
