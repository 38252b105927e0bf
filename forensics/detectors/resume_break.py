"""Resume break

What it sees
    The loss after a restart does not go on where it stood: a bump, or a level that is too low.

How it decides
    Compares the first values of the new attempt with those of the old one at the same steps; where no step was logged twice,
    with the median of the last values before and the line through them, whichever is nearer. A difference of more than five standard errors of the local noise and 1 % is a break:
    upwards, with the steps it takes to decay, downwards (data seen before), or none. In a log of few values before the restart, as by epoch, whose
    first fall is most of what they scatter, the first value behind it may be half as high again as the highest of the last three instead: that is a
    break, too, and with less than ten values the only one.

Cannot tell
    With fewer than five values before the restart, or three after it.

Folklore
    "Training resumes with increased loss despite checkpoint loading" (transformers#33336): moments lost. "Loss is lower
    upon resumption because it repeats samples" (llm-foundry#1277).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from forensics import evidence
from forensics.case import BaseFacts, Finding
from forensics.errors import CannotTell
from forensics.run.inputs import needed
from forensics.run.robust import error_of_median, median
from forensics.run.series import Floats, Ints, Series
from forensics.spikes import excursions, medians
from forensics.spikes.visible import MARGIN
from parsers.tables import Run

NEEDS = ["loss.train"]
INPUTS = ["restarts"]
LEAST = 10  # bound: the old attempt's noise comes from its values, and ten give a sigma within a quarter
FEW = 5  # bound: values that show which way a loss went
HALF_AGAIN = math.log(1.5)  # unit: half again as high; no scatter of a mean over an epoch, which falls besides
AFTER = 3  # bound: three values make a median
AHEAD = 20  # values compared; not critical: 14 and 28 tell the same runs (docs/thresholds.md)
ERRORS = 5.0  # statistical: chance does it once in 1.7 million, and a heavy tail seldom; not critical (docs/thresholds.md)
SHARE = 0.01  # unit: a percent; not critical: 0.7 and 1.4 of it tell the same runs (docs/thresholds.md)
SAME, MOSTLY = 1e-5, 0.9  # unit: what six printed digits keep; nine in ten values alike are the same steps logged again


@dataclass(frozen=True)
class Facts(BaseFacts):
    """The loss across a restart."""

    step: int
    height: float  # as a share of the level before
    sigmas: float | None  # height over the local noise
    length: int | None  # steps until it is back
    up: bool
    compared: str  # with what
    attempt: int


def detect(run: Run) -> Iterator[Finding]:
    s = needed(run, "loss.train")
    sides = list(_sides(run, s))
    for old, new, attempt in sides:
        yield from _break(run, s, old, new, attempt)
    if len(run.attempts) > 1 and not sides:
        raise CannotTell(f"fewer than {FEW} values before, or {AFTER} after the restart")


def _sides(run: Run, s: Series) -> Iterator[tuple[Ints, Ints, int]]:
    """(rows before, rows after, attempt) of each restart with enough finite values on either side."""
    for before, after in pairwise(run.attempts):
        old, new = (np.flatnonzero((s.attempt == a["index"]) & np.isfinite(s.value)) for a in (before, after))
        if len(old) >= FEW and len(new) >= AFTER:
            yield old, new, after["index"]


def equal_again(s: Series, old: np.ndarray, new: np.ndarray) -> bool:
    """Whether steps that the rows of both attempts logged have the same loss: the same data at the same weights."""
    twice, i, j = np.intersect1d(s.step[old], s.step[new], return_indices=True)
    return len(twice) >= 5 and bool(np.isclose(s.value[old][i], s.value[new][j], rtol=SAME).mean() > MOSTLY)


def _break(run: Run, s: Series, old: np.ndarray, new: np.ndarray, attempt: int) -> Iterator[Finding[Facts]]:
    begin = int(s.step[new[0]])
    logs = bool((s.value[np.r_[old, new]] > 0).all())
    y = np.log(np.maximum(s.value, np.finfo(float).tiny)) if logs else s.value / max(median(np.abs(s.value[old])), 1e-12)
    twice, i, j = np.intersect1d(s.step[old], s.step[new], return_indices=True)
    noise = _noise(y[old])
    kept = old[s.step[old] < begin][-AHEAD:]
    if len(twice) >= LEAST:
        gap = y[new][j][:AHEAD] - y[old][i][:AHEAD]
    elif len(kept) >= LEAST:
        gap = y[new][:AHEAD] - np.median(y[kept])
    else:
        yield from _of_few(run, s, kept, new, attempt)
        return
    few = max(len(gap) // 4, AFTER)
    height = median(gap[:few])
    if len(twice) < LEAST:
        # a loss that was falling, or rising, goes on so: only what lies beyond its own trend, too, is a break
        trend = np.polyfit(s.step[kept], y[kept], 1)
        beyond = median(y[new][:few] - np.polyval(trend, s.step[new][:few]))
        height = max(min(height, beyond), 0.0) if height > 0 else min(max(height, beyond), 0.0)
    if equal_again(s, old, new) or abs(height) < max(ERRORS * error_of_median(noise, few), SHARE):
        if len(kept) < AHEAD and not len(twice):
            yield from _of_few(run, s, kept, new, attempt)
        return
    level = median(y[kept]) if len(kept) else float(y[old][i][0])
    back = np.flatnonzero(medians.rolling_median(y[new], 5) <= level + 2 * noise)
    length = int(s.step[new[int(back[0])]] - begin) if len(back) else None
    compared = "steps logged twice" if len(twice) >= LEAST else "values before"
    sigmas = abs(height) / noise if noise else None
    facts = Facts(begin, float(np.expm1(height)) if logs else height, sigmas, length, height > 0, compared, attempt)
    yield _finding(run, s, (old[-1], new[0]), facts)


def _noise(old: Floats) -> float:
    """Of one value, through the attempt or next to the restart: a loss that comes to rest scatters more, as a share of it."""
    local = excursions.local_noise(old)
    return max(median(local), median(local[-AHEAD:]))


def _of_few(run: Run, s: Series, kept: np.ndarray, new: np.ndarray, attempt: int) -> Iterator[Finding[Facts]]:
    """A loss that begins again far above where it stood, in a log of few values."""
    if len(kept) < FEW or (s.value[np.r_[kept, new]] <= 0).any():
        return
    level = float(s.value[kept[-AFTER:]].max())
    height = math.log(float(s.value[new[0]]) / level)
    if height < HALF_AGAIN:
        return
    begin, back = int(s.step[new[0]]), np.flatnonzero(s.value[new] <= level)
    length = int(s.step[new[int(back[0])]] - begin) if len(back) else None
    yield _finding(run, s, (kept[-1], new[0]), Facts(begin, math.expm1(height), None, length, True, "values before", attempt))


def _finding(run: Run, s: Series, rows: tuple[int, int], f: Facts) -> Finding[Facts]:
    """`rows`: the last of the old attempt and the first of the new one."""
    lasts = f" and is back after {f.length} steps" if f.length and f.up else ""
    title = f"After the restart at step {f.step} the loss stands {abs(f.height):.1%} {'above' if f.up else 'below'} where it was{lasts}"
    marks = [{"step": f.step, "label": "restart", "kind": "restart"}]
    last = f.step + (f.length or AHEAD * s.interval)
    shown = evidence.window(s, f.step, last, *marks, title="loss across the restart", where=s.place(run, rows[1]))
    severity = "warning" if f.up else "info"  # lower is no harm; where samples come again, repeated_data says so
    steps, times = (f.step, f.step + (f.length or 0)), (s.clock(rows[0]), s.clock(rows[1]))
    return evidence.found(f, title, steps, severity, shown, times=times)


def smallest_effect(run: Run) -> str:
    if len(run.attempts) < 2:
        return "no restart to judge"
    s = needed(run, "loss.train")
    sides = [(s.value[old], len(new)) for old, new, _ in _sides(run, s) if (s.value[np.r_[old, new]] > 0).all()]
    rises = [_needed(np.log(old), max(min(values, AHEAD) // 4, AFTER)) for old, values in sides]
    return f"a loss that stands {np.expm1(max(rises)):.1%} higher after the restart" if rises else ""


def _needed(old: np.ndarray, few: int) -> float:
    """The least rise of the log that is found: it has to make up for what the loss was falling, and for the error of both levels."""
    noise, last = _noise(old), old[-AHEAD:]
    falls = max(-float(np.polyfit(np.arange(len(last)), last, 1)[0]), 0.0) * (len(last) + few) / 2
    error = float(np.hypot(error_of_median(noise, few), 2 * error_of_median(noise, len(last))))  # of the level, and of its trend
    return max(ERRORS * error_of_median(noise, few), SHARE) + MARGIN * error + falls
