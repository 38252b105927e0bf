"""Level shift

What it sees
    The loss steps up or down to another level and stays there: by a few percent, without a spike.

How it decides
    On the log of the loss, with spikes cut off, a curve of second order plus a step is fitted around every
    value (100 values on either side, a quarter of the series where it is short). A step counts when it is at
    least 1 %, eight standard errors, and five times as large as the steps that the same fit finds elsewhere in
    the series, which accounts for smoothing. A step up is a warning where the loss never comes back to the level before it, unless eight
    others were taken back: such a loss wanders with its data. The size comes with its 95 % interval. A step at a restart belongs
    to resume_break. With fewer than 80 values a step up counts when the lowest of the next three values stands
    clear of the highest of the five before (``forensics.spikes.jumps``), and no later level is back half of the way.

Cannot tell
    With fewer than 11 values, and with fewer than 80 a step down; in the first fit window, where every loss falls
    too fast; where a spike stands at the same place (its residual offset says it). The smallest step that would
    have been seen is given with the check.

Folklore
    Lower from one value to the next at regular distances: epochs of a model that remembers. Higher: other data,
    another loss function. "Marin 32B recovered only to 1.975" (marin#1390).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from forensics import evidence
from forensics.case import BaseFacts, Finding
from forensics.run.inputs import finite_loss, loss_of
from forensics.run.once import once
from forensics.run.robust import error_of_median, median, robust_sigma
from forensics.run.series import Series
from forensics.spikes import excursions, jumps, medians
from forensics.spikes.trend import without
from forensics.spikes.visible import MARGIN
from parsers.tables import Run

NEEDS = ["loss.train|loss.eval"]
MEANT = ("kl_weight_lifts_loss", "loss_redefined_as_announced")
WIDTH = 100  # measured: at 70 one more of 302 faulty runs is found, at 140 two of 12 are lost (docs/thresholds.md)
LEAST_WIDTH = 20  # statistical: the step that 20 values on either side show is off by half a noise, and eight of these are asked for
LEAST_VALUES = 4 * LEAST_WIDTH  # bound: two stretches for the step, two that say how large steps usually are; with fewer values gaps decide
LEAST_SHORT = jumps.BEFORE + 2 * jumps.AFTER  # bound: values with a gap to look at
LEAST = 0.01  # unit: a percent; not critical: 0.7 and 1.4 of it tell the same runs (docs/thresholds.md)
ERRORS = 8.0  # statistical: the error comes from few values and the largest of all places is taken; not critical (docs/thresholds.md)
USUAL = 5.0  # measured: at 3.5 of them four more faulty runs are found, at 7 one is lost, no healthy one fires (docs/thresholds.md)
GRAVE = 0.02  # a step up of this size that stays is a warning; not critical: 0.014 and 0.028 tell the same runs (docs/thresholds.md)
MOST, LONG = 20, 10  # unit: steps on a page; values of a spike that the fit would take for a step. Not critical (docs/thresholds.md)
STAYS = 0.5  # of a step; half of the way is where two levels part; measured: at 0.35 three more faulty runs, at 0.7 four of 12 are lost
MANY = 8  # statistical: steps up that the loss took back; with as many the ones of late, which it had no time for, are none of another kind
PLACES, HALVINGS, HUGE = 24, 10, 2.0  # bound: places where a step is planted; its size is then known to half a percent; in ln
ENOUGH = 100_000  # statistical: values that make the spread of a fit; it is then known to 0.4 %, and more take seconds
LEVELS, CUT = 15, 3.0  # statistical: a median of 15 is off by a third of a sigma; beyond 3 sigma lies 1 value of 370

Fit = tuple[excursions.Floats, float, float, int, list[tuple[int, int]]]


@dataclass(frozen=True)
class Facts(BaseFacts):
    """The step of the loss, with its 95 % interval as shares of the level."""

    step: int
    size: float
    low: float
    high: float
    up: bool
    stays: bool  # the loss keeps clear of the level before
    level: float  # before the step
    total: int  # such steps in the run


@dataclass(frozen=True)
class Shift:
    """A step at an index, as a difference of logs with its standard error."""

    at: int
    size: float
    error: float


def detect(run: Run) -> Iterator[Finding]:
    s, rows = finite_loss(run, LEAST_SHORT)
    restarts = np.flatnonzero(np.diff(s.attempt[rows])) + 1
    long = len(rows) >= LEAST_VALUES
    every, near = (shifts(_fit(run)), WIDTH // 4) if long else (short_shifts(s.value[rows]), jumps.BEFORE)
    found = [f for f in every if not (np.abs(restarts - f.at) <= near).any()]
    x = s.value[rows]
    wanders = sum(f.size > 0 and _lowest(x, f) <= 1 + STAYS * np.expm1(f.size) for f in found) >= MANY
    for f in found[:MOST]:
        yield _finding(run, s, rows, f, len(found), stays=_lowest(x, f) > 1 and not wanders)


def _lowest(x: excursions.Floats, f: Shift) -> float:
    """The lowest level of the loss behind a step, its last one among them, over the level before it."""
    rest = x[f.at :]
    later = medians.rolling_median(rest, WIDTH)[min(WIDTH, len(rest) - 1) :]
    return min(median(rest[-LEVELS:]), float(later.min())) / median(x[max(f.at - LEVELS, 0) : f.at])


def smallest_effect(run: Run) -> str:
    s = loss_of(run)
    x = s.value[s.usable]
    if len(x) < LEAST_SHORT:
        return ""
    if len(x) < LEAST_VALUES:
        y, logs = excursions.scaled(x)
        return f"a step up of {np.expm1(jumps.smallest_step(y)):.0%} that stays, where the loss falls no further" if logs else ""
    fit = _fit(run)
    if fit is None:
        return ""
    width = fit[3]
    seen = _needed(fit, np.unique(np.linspace(2 * width, len(x) - width, PLACES).astype(int)).tolist())
    if seen >= HUGE:
        return f"no step: {len(x)} values do not tell one from their own ups and downs"
    return f"a step of {np.expm1(seen):.1%} with {width} values before it and {width} after it"


def _needed(fit: Fit, places: Sequence[int]) -> float:
    """The least step that is found at all of these indices; HUGE or more where none is."""
    step, error, usual, width, _ = fit
    seen = float(np.log1p(LEAST))
    for at in sorted(places, key=lambda at: step[min(at - width, len(step) - 1)]):  # where it falls most first: that place decides
        if _is_found(fit, at, seen):
            continue
        low, seen = seen, HUGE
        for _ in range(HALVINGS):
            size = float(np.sqrt(low * seen))
            low, seen = (low, size) if _is_found(fit, at, size) else (size, seen)
    return seen + MARGIN * (error + usual)


def _is_found(fit: Fit, at: int, size: float) -> bool:
    """Whether a step of the size would be found at an index; it widens what is usual, too."""
    step, error, _, width, _ = fit
    first, last = max(at - 2 * width, 0), min(at, len(step))
    lift, here = size * _response(width)[first - (at - 2 * width) :][: last - first], min(at - width, len(step) - 1)
    top = float(step[here] + lift[here - first])
    if top < max(ERRORS * error, np.log1p(LEAST)):
        return False
    planted = step.copy()
    planted[first:last] += lift
    return top >= USUAL * robust_sigma(planted[:: max(len(planted) // ENOUGH, 1)])


@cache
def _response(width: int) -> excursions.Floats:
    """What the fit makes of a step of one in a flat series, from 2 x width - 1 values before its own place on."""
    response: excursions.Floats = np.convolve(np.repeat([0.0, 1.0], 2 * width), _kernel(width)[::-1], "valid")[:-1]
    return response


def shifts(fit: Fit | None) -> list[Shift]:
    """Lasting steps of a positive series, in order."""
    if fit is None:
        return []
    step, error, usual, width, spikes = fit
    limit = max(ERRORS * error, USUAL * usual, float(np.log1p(LEAST)))
    found: list[Shift] = []
    size = np.abs(step)
    size[:width] = 0  # the fall at the beginning is no step
    for first, last in spikes:
        size[max(first - 2 * width, 0) : max(last, 0)] = 0  # nor is what the fit makes of a spike
    while len(found) < 10 * MOST:
        at = int(np.argmax(size))
        if size[at] < limit:
            break
        found.append(Shift(at + width, float(step[at]), max(error, usual / 2)))
        size[max(at - width, 0) : at + width] = 0
    return sorted(found, key=lambda f: f.at)


def short_shifts(x: excursions.Floats) -> list[Shift]:
    """The jumps of a short positive series after which no later level is back half of the way: all that so few values can show."""
    y, logs = excursions.scaled(x)
    found: list[Shift] = []
    for j in jumps.jumps(y) if logs else []:
        after = y[j.at :]
        size = median(after[: jumps.BEFORE]) - j.level
        lasting = median(after) - j.level
        flat = float(medians.rolling_median(after, jumps.BEFORE).min()) > j.level + STAYS * lasting
        if flat and float(after.max()) - j.level <= lasting / STAYS:
            found.append(Shift(j.at, size, 2**0.5 * error_of_median(j.sigma, jumps.BEFORE)))  # of a difference of two medians
    return found


@once
def _fit(run: Run) -> Fit | None:
    """(step at each value from index `width` on, standard error, usual size, width, long spikes)."""
    s, rows = finite_loss(run, LEAST_SHORT)
    y, logs = excursions.scaled(s.value[rows])
    width = min(WIDTH, len(y) // 4)
    if not logs or width < LEAST_WIDTH:
        return None
    found = excursions.candidates(y)
    calm = without(y, found)
    middle = medians.centred_median(calm, LEVELS)
    noise = max(robust_sigma(calm, middle), excursions.noise_floor(y))
    calm = np.clip(calm, middle - CUT * noise, middle + CUT * noise)
    kernel = _kernel(width)
    step = np.convolve(calm, kernel[::-1], "valid")
    usual = robust_sigma(step)
    return (
        step,
        noise * float(np.sqrt((kernel**2).sum())),
        usual,
        width,
        [(e.start, e.end) for e in found if e.sigmas > 8 and e.end is not None and e.end - e.start > LONG],
    )


@cache
def _kernel(width: int) -> excursions.Floats:
    """Weights that make the least-squares step in the middle of 2 x width values, beside a curve of second order."""
    t = (np.arange(2 * width) - width + 0.5) / width
    design = np.stack([np.ones_like(t), t, t**2, (t > 0).astype(np.float64)], axis=1)
    weights: excursions.Floats = np.linalg.pinv(design)[3]
    return weights


def _finding(run: Run, s: Series, rows: excursions.Ints, f: Shift, total: int, *, stays: bool) -> Finding:
    row = rows[f.at]
    step, ratio = int(s.step[row]), float(np.expm1(f.size))
    low, high = float(np.expm1(f.size - 1.96 * f.error)), float(np.expm1(f.size + 1.96 * f.error))
    before = median(s.value[rows[max(f.at - LEVELS, 0) : f.at]])
    way = "up" if ratio > 0 else "down"
    title = f"Loss steps {way} by {abs(ratio):.1%} at step {step} (95 % interval {low:+.1%} to {high:+.1%})"
    facts = Facts(step, ratio, low, high, ratio > 0, stays, before, total)
    marks = [{"step": step, "label": f"{ratio:+.1%}", "kind": "event"}]
    shown = evidence.window(s, step, step, *marks, title=f"{s.tag} around step {step}", where=s.place(run, row), margin=0)
    return evidence.on_rows(s, (row, row), facts, title, "warning" if ratio >= GRAVE and stays else "info", shown)
