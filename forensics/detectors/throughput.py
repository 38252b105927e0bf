"""Throughput

What it sees
    The run becomes slower, or faster, for good.

How it decides
    Takes the logged throughput of training, else the time of a step (a "time" that falls is none since the start, so it is
    one of a step, too), else the time since the start or the clock between logged rows, by the steps between them and
    without the pauses that hold an evaluation or a save, and looks for the one split
    into before and after that explains most of it (medians, at least five values on each side). It fires at a lasting
    slow-down to less than 80 % (to less than half where fewer than 20 values stand on a side, or only the time since the start is known), when the change is at least four times the noise, 2.6 sigma of the rank sum of both sides
    (few values tell only what divides them well), and three units of the last printed digit.

Cannot tell
    Where neither throughput, step time nor a clock was logged ten times.

Folklore
    Slower from a step on, whatever the reason: a loader that starves, a node that throttles, a file system that fills up.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from forensics import evidence
from forensics.case import BaseFacts, Finding
from forensics.errors import CannotTell
from forensics.run import pace
from forensics.run.inputs import surviving
from forensics.run.robust import robust_sigma
from forensics.run.series import Floats, Ints, Series, parts, series
from parsers.tables import Run

NEEDS: list[str] = []
SLOWER, NOISES, SIDE = 0.8, 4.0, 5
FEW, HALF = 20, 0.5  # a neighbour that comes to one's core takes half of it; few values do not tell whether it goes again
RANKS = 2.6  # sigma of Wilcoxon's rank sum: once in 200; 5 of 10 values reach it when not one of them lies among the others
ODD = 0.3  # of the changes are falls: half of them in noise, a third where every third step is fast
DIGITS = 3  # units of the last digit: 0.002 s that become 0.003 s are rounding
EVEN = 0.25  # share of pauses with an evaluation or a save by which the halves of a run may differ, so that medians compare alike
SPEEDS = ("tput.tokens", "tput.tokens_dev", "tput.samples", "tput.samples_dev", "tput.steps", "mfu", "flops.dev")
SMALLEST_EFFECT = f"a lasting slow-down to {SLOWER:.0%}, to {HALF:.0%} where less than {FEW} values stand on a side"


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
    y = np.log(np.maximum(speed, 1e-12))
    split = _best_split(y)
    before, after = float(np.median(speed[:split])), float(np.median(speed[split:]))
    noise = robust_sigma(np.r_[y[:split] - np.median(y[:split]), y[split:] - np.median(y[split:])], 0.0)
    is_total = s.name == "time.total" and not _is_of_steps(s)  # holds what the program did besides its steps, too
    least = SLOWER if min(split, len(speed) - split) >= FEW and not is_total else HALF
    if after >= least * before or np.log(before / after) < NOISES * noise or not _is_sure(s, speed, split):
        return
    row, last = rows[split], rows[-1]
    step = int(s.step[row])
    title = f"The run slows down to {after / before:.0%} of its speed at step {step} and stays slow"
    shown = evidence.window(s, step, int(s.step[last]), title=f"{s.tag} from step {step} on", where=s.place(run, row))
    yield evidence.on_rows(s, (row, last), Facts(step, after / before, s.name, before, after), title, "warning", shown)


def speed_of(run: Run) -> tuple[Series, Ints, np.ndarray]:
    """A series, rows of it, and their speed (more is faster), finite and positive. Raises CannotTell."""
    for name in (*SPEEDS, "time.step", "time.total"):
        for told in sorted((p for p in parts(run, name) if not pace.EVALUATION.search(p.tag)), key=len, reverse=True)[:1]:
            rows = surviving(told)
            if len(rows) >= 2 * SIDE and (told.value[rows] > 0).all() and (name != "time.total" or _is_of_steps(told)):
                return told, rows, told.value[rows] if name in SPEEDS else 1 / told.value[rows]
    s, total = series(run, "loss.train"), series(run, "time.total")
    if (s is None or np.isfinite(s.time).sum() < 2 * SIDE) and total is not None:
        s = replace(total, time=np.where(total.usable, total.value, np.nan))
    if s is None or np.isfinite(s.time).sum() < 2 * SIDE:
        raise CannotTell("neither throughput, step time nor a clock was logged often enough")
    p = pace.pauses(s)
    ok = (p.a_step > 0) & s.alive[p.row[1:]] & s.alive[p.row[:-1]]
    held = pace.stopped(run, s, p)
    halves = [float(held[rows].mean()) for rows in np.array_split(np.flatnonzero(ok), 2) if len(rows)]
    if (ok & ~held).sum() >= 2 * SIDE or np.ptp(halves or [0.0]) > EVEN:  # a pause that holds an evaluation or a save is no speed
        ok &= ~held
    if ok.sum() < 2 * SIDE:
        raise CannotTell("too few steps between the evaluations and saves have a clock")
    return s, p.row[1:][ok], 1 / p.a_step[ok]


def _is_of_steps(s: Series) -> bool:
    """Whether a time is that of a step: time since the start never falls within an attempt, this falls every other time. (Where the
    clocks of several processes are mixed, time falls, too, but its end is far above its beginning.)"""
    falls = (np.diff(s.value) < 0) & (np.diff(s.attempt) == 0)
    return bool(falls.mean() >= ODD) if len(falls) else False


def _is_sure(s: Series, speed: Floats, split: int) -> bool:
    """Whether both sides differ by more than chance and rounding."""
    n, m = split, len(speed) - split
    order = np.argsort(np.argsort(-speed, kind="stable"))  # 0: the fastest
    sums = order[split:].sum() - m * (m - 1) / 2  # pairs in which a later value is slower
    sigmas = (sums - n * m / 2) / np.sqrt(n * m * (n + m + 1) / 12)
    if sigmas < RANKS or not s.name.startswith((*SPEEDS, "time.")):
        return bool(sigmas >= RANKS)  # a clock: pauses are no printed numbers
    shown = speed if s.name in SPEEDS else 1 / speed
    digits = np.unique(np.diff(np.unique(np.round(shown, 9))))
    unit = float(digits[0]) if len(digits) else 0.0
    return bool(abs(np.median(shown[:split]) - np.median(shown[split:])) >= DIGITS * unit * (1 - 1e-6))


def _best_split(y: np.ndarray) -> int:
    """The split that leaves the smallest sum of squares; values are cut at the 5th and 95th percentile first."""
    z = np.clip(y, *np.percentile(y, [5, 95]))
    total, n = np.cumsum(z), len(z)
    k = np.arange(SIDE, n - SIDE + 1)
    left, right = total[k - 1], total[-1] - total[k - 1]
    return int(k[np.argmax(left**2 / k + right**2 / (n - k))])
