"""Loss by dataset

What it sees
    One dataset or benchmark that becomes worse while the others go on improving: its loss rises or its accuracy falls, though the mean over all
    may get better.

How it decides
    All tags that carry an evaluation loss, an accuracy of an evaluation, or the training loss of one part of the data, of which two or more were
    logged at least six times. It fires for a set whose last three values lie 5 % and three noises beyond its best, at least three
    evaluations back, while the median of the other sets got better over the same steps. For information: to forget one source
    can be what a new mixture is meant to do, and overfitting has its own detector. A warning where all that was known is gone: the set
    ends worse than the others were before they were learnt.

Cannot tell
    Where one evaluation alone was logged: a mean over datasets hides what each of them does.

Folklore
    A change of mixture shows in the parts before it shows in the mean; evaluate every source by itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from forensics import evidence
from forensics.case import BaseFacts, Finding
from forensics.detectors.eval_noise import noise_of
from forensics.errors import CannotTell
from forensics.run.inputs import surviving
from forensics.run.robust import error_of_median
from forensics.run.series import Series, parts
from forensics.spikes.visible import MARGIN
from parsers.tables import Run

NEEDS: list[str] = []
INPUTS = ["loss.eval"]
LEAST = 6  # bound: three evaluations make the last level, and the four second differences of six its noise
RISE = 0.05  # unit: what a change of data is worth telling from; not critical: for information only (docs/thresholds.md)
NOISES = 3.0  # statistical: a median of three is off by 0.7 noises, so this is 4 sigma, which chance does once in 30,000
NAMES = {"loss.eval": 1.0, "loss.part": 1.0, "acc.eval": -1.0}  # -1: the higher, the better
HALF = 0.5  # unit: half of the first value is left of what was learnt
BACK = 3  # bound: three values make a median, and the lowest one is not among them


@dataclass(frozen=True)
class Facts(BaseFacts):
    """The set that became worse."""

    tag: str
    rise: float  # beyond its best, in its units
    step: int  # of its best
    others: int  # other sets that were compared
    interval: int  # steps between its evaluations


def smallest_effect(run: Run) -> str:
    needed = []
    for name, sign in NAMES.items():
        sets = [sign * s.value[rows] for s in parts(run, name) if len(rows := surviving(s)) >= LEAST]
        needed += [_needed(x) for x in sets] if len(sets) > 1 else []
    return f"one dataset {max(needed):.1%} beyond its best for {BACK} evaluations, while the others improve" if needed else ""


def _needed(x: np.ndarray) -> float:
    """The rise over the lowest value that is found, with the margin for the error of the last level, as a share of it."""
    noise, lowest = noise_of(x), abs(float(x.min())) or 1.0
    return max(RISE, NOISES * noise / lowest) + MARGIN * error_of_median(noise, BACK) / lowest


def detect(run: Run) -> Iterator[Finding]:
    judged = False
    for name, sign in NAMES.items():
        sets = [(s, rows) for s in parts(run, name) if len(rows := surviving(s)) >= LEAST]
        if len(sets) < 2:
            continue
        judged = True
        for i, (s, rows) in enumerate(sets):
            x = sign * s.value[rows]
            best, end = int(np.argmin(x)), float(np.median(x[-BACK:]))
            noise = noise_of(x)
            rise = end - float(x[best])
            if len(x) - 1 - best < BACK or rise < max(RISE * abs(x[best]), NOISES * noise):
                continue
            changes = [_change(o, r, int(s.step[rows[best]]), sign) for j, (o, r) in enumerate(sets) if j != i]
            others = [c for c in changes if c is not None]
            if not others or float(np.median(others)) >= 0:
                continue
            first, last = int(s.step[rows[best]]), int(s.step[rows[-1]])
            way, high, low = ("rises", x[best], end) if sign > 0 else ("falls", -x[best], -end)
            title = f"{s.tag} {way} from {high:.4g} at step {first} to {low:.4g} while the other {len(others)} improve by {-float(np.median(others)):.1%}"
            table = [
                [o.tag, *(float(f"{v:.4g}") for v in (o.value[r[0]], sign * (sign * o.value[r]).min(), o.value[r[-1]]))]
                for o, r in sets[:20]
            ]
            shown = (
                evidence.window(s, first, last, title=s.tag, where=s.place(run, rows[best])),
                evidence.table("by dataset", ["tag", "first", "best", "last"], table),
            )
            unlearnt = [v for j, (o, r) in enumerate(sets) if j != i and (v := _before_learning(sign * o.value[r])) is not None]
            gone = bool(unlearnt) and x[best] < min(unlearnt) and end > max(unlearnt)
            facts = Facts(s.tag, rise, first, len(others), s.interval)
            severity = "warning" if gone else "info"
            yield evidence.on_rows(s, (rows[best], rows[-1]), facts, title, severity, *shown, key=f"{first}-{i}")
    if not judged:
        raise CannotTell("the loss or accuracy of fewer than two datasets was logged")


def _before_learning(x: np.ndarray) -> float | None:
    """What another set costs before it is learnt: its first value, where it comes to less than half of it; of hits, to twice as many."""
    first, best = float(x[0]), float(x.min())
    learnt = best < HALF * first if first > 0 else best < first / HALF < 0
    return first if learnt else None


def _change(s: Series, rows: np.ndarray, since: int, sign: float) -> float | None:
    """Relative change of another set over the same steps; above zero: worse."""
    x = s.value[rows][s.step[rows] >= since]
    return sign * float(np.median(x[-3:]) / x[0] - 1) if len(x) >= BACK and x[0] else None
