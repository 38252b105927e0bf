"""Throughput

What it sees
    The run becomes slower, or faster, for good.

How it decides
    Takes the logged throughput, else the time of a step, else the clock between logged rows, by the steps between them and
    without the pauses that hold an evaluation or a save, and looks for the one split
    into before and after that explains most of it (medians, at least 20 values on each side). It fires at a lasting
    slow-down to less than 80 %, when the change is at least four times the noise.

Cannot tell
    Where neither throughput, step time nor a clock was logged.

Folklore
    Slower from a step on, whatever the reason: a loader that starves, a node that throttles, a file system that fills up.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from forensics import evidence
from forensics.case import BaseFacts, Finding
from forensics.errors import CannotTell
from forensics.run import pace
from forensics.run.inputs import surviving
from forensics.run.robust import robust_sigma
from forensics.run.series import Ints, Series, series
from forensics.spikes.visible import MARGIN, error_of_median
from parsers.tables import Run

NEEDS: list[str] = []
SLOWER = 0.8  # measured: at 0.56 the same runs, at 1.12 (any change at all) one of 107 healthy runs fires (docs/thresholds.md)
NOISES = 4.0  # statistical: of one value; chance does it once in 16,000; measured: at 5.6 one of nine faulty runs is lost
SIDE = 20  # measured: with 14 values on a side one of 107 healthy runs fires, for the first steps of a run are slow (docs/thresholds.md)
EVEN = 0.25  # share of pauses with an evaluation or a save by which the halves of a run may differ, so that medians compare alike; not critical
SPEEDS = ("tput.tokens", "tput.tokens_dev", "tput.samples", "tput.samples_dev", "tput.steps", "mfu", "flops.dev")
CUT = 5  # statistical: percent on either side, so that single pauses move no split


@dataclass(frozen=True)
class Facts(BaseFacts):
    """A lasting change of speed, in the unit of the metric (more is faster)."""

    step: int
    ratio: float  # after over before
    metric: str  # canonical name
    before: float
    after: float


def detect(run: Run) -> Iterator[Finding]:
    s, rows, speed = speed_of(run)
    if len(speed) < 2 * SIDE:
        raise CannotTell(f"only {len(speed)} values")
    y = np.log(np.maximum(speed, 1e-12))
    split = _best_split(y)
    before, after = float(np.median(speed[:split])), float(np.median(speed[split:]))
    noise = robust_sigma(np.r_[y[:split] - np.median(y[:split]), y[split:] - np.median(y[split:])], 0.0)
    if after >= SLOWER * before or np.log(before / after) < NOISES * noise:
        return
    row, last = rows[split], rows[-1]
    step = int(s.step[row])
    title = f"The run slows down to {after / before:.0%} of its speed at step {step} and stays slow"
    shown = evidence.window(s, step, int(s.step[last]), title=f"{s.tag} from step {step} on", where=s.place(run, row))
    yield evidence.on_rows(s, (row, last), Facts(step, after / before, s.name, before, after), title, "warning", shown)


def smallest_effect(run: Run) -> str:
    _, _, speed = speed_of(run)
    if len(speed) < 2 * SIDE:
        return ""
    y = np.log(np.maximum(speed, 1e-12))
    split = _best_split(y)
    noise = robust_sigma(np.r_[y[:split] - np.median(y[:split]), y[split:] - np.median(y[split:])], 0.0)
    least = max(-float(np.log(SLOWER)), NOISES * noise) + MARGIN * np.sqrt(2) * error_of_median(noise, SIDE)
    return f"a slow-down to {np.exp(-least):.1%} of the speed that lasts {max(SIDE, len(speed) // 10)} values"


def speed_of(run: Run) -> tuple[Series, Ints, np.ndarray]:
    """A series, rows of it, and their speed (more is faster), finite and positive. Raises CannotTell."""
    for name in (*SPEEDS, "time.step"):
        s = series(run, name)
        if s is not None and len(s) >= 2 * SIDE:
            rows = surviving(s)
            if (s.value[rows] > 0).all():
                return s, rows, 1 / s.value[rows] if name == "time.step" else s.value[rows]
    s = series(run, "loss.train")
    if s is None or np.isfinite(s.time).sum() < 2 * SIDE:
        raise CannotTell("neither throughput, step time nor a clock was logged")
    p = pace.pauses(s)
    ok = (p.a_step > 0) & s.alive[p.row[1:]] & s.alive[p.row[:-1]]
    held = pace.stopped(run, s, p)
    halves = [float(held[rows].mean()) for rows in np.array_split(np.flatnonzero(ok), 2) if len(rows)]
    if (ok & ~held).sum() >= 2 * SIDE or np.ptp(halves or [0.0]) > EVEN:  # a pause that holds an evaluation or a save is no speed
        ok &= ~held
    if ok.sum() < 2 * SIDE:
        raise CannotTell("too few steps between the evaluations and saves have a clock")
    return s, p.row[1:][ok], 1 / p.a_step[ok]


def _best_split(y: np.ndarray) -> int:
    """The split that leaves the smallest sum of squares; values are cut at the 5th and 95th percentile first."""
    z = np.clip(y, *np.percentile(y, [CUT, 100 - CUT]))
    total, n = np.cumsum(z), len(z)
    k = np.arange(SIDE, n - SIDE + 1)
    left, right = total[k - 1], total[-1] - total[k - 1]
    return int(k[np.argmax(left**2 / k + right**2 / (n - k))])
