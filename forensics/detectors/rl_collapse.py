"""Collapse of the reward

What it sees
    A reward that had risen, loses half of what it had gained or more, and comes back later, or does not.

How it decides
    Takes medians of five logged rewards. A collapse begins where they fall short of the best so far by half of its gain over
    the first level, and ends where half of that loss is made up. Gain and loss must both be eight times the noise of such a median. The three
    deepest are told, for information: policies collapse and recover in runs that end well. That a run ends without its
    reward is judged elsewhere; but a reward that ends eight times that noise, and half of itself, below its first level is a warning, unless a
    third of what it had lost is made up by then.

Cannot tell
    With fewer than 20 rewards. A reward that never rose has nothing to lose; that is for the plateau detector to say.

Folklore
    "Chase the anomaly": an average over the run hides a policy that was lost and learned again.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from forensics import evidence
from forensics.case import BaseFacts, Finding
from forensics.errors import CannotTell
from forensics.run.inputs import LOST, comes_back, is_policy, needed, surviving
from forensics.run.robust import error_of_median, noise_by_steps
from forensics.run.series import Floats
from forensics.spikes.medians import centred_median
from parsers.tables import Run

NEEDS = ["rl.reward"]
LEAST, WIDTH = 20, 5  # bound: four medians that share no value; statistical: a median of five is off by half a sigma
NOISES = 8.0  # statistical: as in the divergence detector; neighbouring rewards of one policy scatter in long tails
SHOWN = 3  # unit: collapses that a page tells
SMALLEST_EFFECT = f"half of the reward's gain, and {NOISES:.0f} times the noise of a median of {WIDTH}"


@dataclass(frozen=True)
class Facts(BaseFacts):
    """One collapse, in units of the reward."""

    best: float
    lowest: float
    recovered: int | None  # step; None where it did not come back in this log


@dataclass(frozen=True)
class BelowFirst(BaseFacts):
    """A reward that ends below its first level, in its units."""

    first: float
    last: float


class Collapse(NamedTuple):
    """Indices of the values: the last one near the best before, the lowest, the first that has made up half (or one past the end)."""

    begin: int
    lowest: int
    end: int


def detect(run: Run) -> Iterator[Finding]:
    s = needed(run, "rl.reward")
    rows = surviving(s)
    if len(rows) < LEAST:
        raise CannotTell(f"only {len(rows)} finite values of {s.tag}")
    y = centred_median(s.value[rows], WIDTH)
    error = error_of_median(noise_by_steps(s.value[rows]), WIDTH)
    first, final = float(y[:WIDTH].max()), float(np.median(y[-max(len(y) // 10, WIDTH) :]))
    below = first - final >= max(NOISES * error, LOST * abs(first)) and final < float(y[0])
    if is_policy(run) and below and not comes_back(first, float(y.min()), final):
        title = f"{s.tag} ends at {final:.4g}, below its first level of {first:.4g}"
        shown = evidence.window(s, int(s.step[rows[0]]), int(s.step[rows[-1]]), title=s.tag, margin=0, where=s.place(run, rows[-1]))
        yield evidence.on_rows(s, (rows[0], rows[-1]), BelowFirst(first, final), title, "warning", shown, key="below-first")
    for c in sorted(_collapses(y, error), key=lambda c: float(y[c.lowest] - y[c.begin]))[:SHOWN]:
        begin, back = int(s.step[rows[c.begin]]), int(s.step[rows[c.end]]) if c.end < len(rows) else None
        best, lowest, last = float(y[: c.begin + 1].max()), float(y[c.lowest]), int(s.step[rows[min(c.end, len(rows) - 1)]])
        how = f"comes back at step {back}" if back is not None else "does not come back in this log"
        title = f"{s.tag} collapses from {best:.4g} to {lowest:.4g} after step {begin}, and {how}"
        shown = evidence.window(s, begin, last, title=f"{s.tag} from step {begin} on", where=s.place(run, rows[c.begin]))
        facts = Facts(best, lowest, back)
        yield evidence.on_rows(s, (rows[c.begin], rows[min(c.end, len(rows) - 1)]), facts, title, "info", shown)


def _collapses(y: Floats, error: float) -> list[Collapse]:
    best = np.maximum.accumulate(y)
    gain = best - y[0]
    fallen = (gain > 0) & (gain >= NOISES * error) & (best - y >= np.maximum(LOST * gain, NOISES * error)) & (best > y)
    back = y >= best - LOST * gain / 2
    told = np.maximum.accumulate(np.where(fallen | back, np.arange(len(y)), 0))  # the last value that says either
    down = np.flatnonzero(np.diff(fallen[told].astype(np.int8), prepend=0, append=0))
    begin = np.maximum.accumulate(np.where(back, np.arange(len(y)), 0))
    return [Collapse(int(begin[i]), i + int(np.argmin(y[i:j])), int(j)) for i, j in down.reshape(-1, 2)]
