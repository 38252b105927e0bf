"""Oscillation

What it sees
    The loss swings wildly from a step on, many times wider than before; or it freezes and repeats one value.

How it decides
    The swing is the local noise on the log scale: the median distance of 40 values from their running median.
    It is wild when over at least 40 values in a row it is four times what it was at its calmest before, at
    least 15 % of the level, and in units of the loss twice the widest before it began, and 4 % of where the
    loss began (a loss near zero is naturally noisy). Frozen means at least 30 equal values in a row, not zero,
    after values that differed; a running mean of each epoch hardly moves at its end.

Cannot tell
    With fewer than 120 values. A loss that swings from the very beginning has nothing to be compared with;
    plateau and divergence look at that. Smoothed logs show no swing.

Folklore
    "The loss goes up and down like a saw": a rate at the edge of stability. A constant loss: dead units, or a
    model that always answers the same.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from forensics import evidence
from forensics.case import BaseFacts, Finding
from forensics.run import epoch_means
from forensics.run.inputs import finite_loss
from forensics.run.robust import ROUNDED, SIGMA, last_digit, median
from forensics.run.series import Series
from forensics.spikes import excursions, medians
from forensics.spikes.once_per_series import once_per_series
from parsers.tables import Run

NEEDS = ["loss.train|loss.eval"]
WINDOW = 40  # statistical: the median distance of 40 values is known to a sixth; measured: with 28 the one faulty run is lost
LEAST_VALUES = 3 * WINDOW  # bound: a calm stretch, a wild one, and the window between them
TIMES = 4.0  # measured, not critical: 2.8 and 5.6 tell the same runs (docs/thresholds.md)
LEAST_SWING = 0.15  # of the level; measured, not critical: 0.105 and 0.21 tell the same runs (docs/thresholds.md)
WIDER = 2.0  # in units of the loss; measured: at 1.4 one of 107 healthy runs fires, at 2.8 the one faulty is lost (docs/thresholds.md)
OF_START = 0.04  # of the first loss; not critical in the runs of docs/thresholds.md: it keeps out losses near zero, which scatter widely
LEAST = 1e-4  # bound: what four printed digits can show; no loss is calmer
FROZEN = 30  # bound: where no more than half of the neighbours are alike, chance makes 30 in a row once in a thousand million
DIGITS = 2  # bound: last printed digits; a value half-way between two goes to either
SHOWS = 2.0  # statistical: a median of nine follows the swings by an eighth, and 40 values know their width to a sixth, twice
CALM, SETTLED = 9, 10  # values of the running median, which carry no trend; bound: values that differ before one counts as frozen


@dataclass(frozen=True)
class Facts(BaseFacts):
    """A stretch of the loss, by its steps."""

    kind: str  # wild or frozen
    start: int
    end: int
    to_end: bool
    swing: float | None = None  # as a share of the level
    before: float | None = None  # the calmest swing before
    ratio: float | None = None  # of the swing over that
    value: float | None = None  # that the loss repeats
    count: int | None = None  # times


def detect(run: Run) -> Iterator[Finding]:
    s, rows = finite_loss(run, LEAST_VALUES)
    x = s.value[rows]
    wild = swings(x)
    if wild is not None:
        first, last, before, swing = wild
        title = f"Loss swings by {swing:.0%} from step {s.step[rows[first]]} on, {swing / before:.0f} times as wide as before"
        facts = Facts("wild", *_where(s, rows, first, last), swing=swing, before=before, ratio=swing / before)
        yield _finding(run, s, (rows[first], rows[last]), title, facts)
    frozen = freezes(x)
    if frozen is not None and not epoch_means.few_make_it(run, s).any():  # a mean over the epoch hardly moves at its end
        first, last = frozen
        count = last - first + 1
        title = f"Loss freezes at {x[first]:.6g} at step {s.step[rows[first]]}: the same value {count} times in a row"
        facts = Facts("frozen", *_where(s, rows, first, last), value=float(x[first]), count=count)
        yield _finding(run, s, (rows[first], rows[last]), title, facts)


def swings(x: excursions.Floats) -> tuple[int, int, float, float] | None:
    """(first index, last index, swing before, swing) of the longest wild stretch; swings are shares of the level."""
    y, logs = excursions.scaled(x)
    if not logs or len(y) < LEAST_VALUES:
        return None
    swing, height = _width(y), _width(x)
    calm = np.minimum.accumulate(np.where(np.arange(len(y)) >= WINDOW, swing, np.inf))
    widest = np.maximum.accumulate(height)
    earlier = np.concatenate([np.full(WINDOW, np.inf), widest[:-WINDOW]])  # in units of the loss: near zero all swings are small
    earlier[: max(4 * WINDOW, len(x) // 5)] = np.inf
    earlier = np.maximum(earlier, OF_START / WIDER * median(x[:15]))
    wild = (swing >= TIMES * np.maximum(calm, LEAST)) & (swing >= LEAST_SWING)
    wild &= _begun(height >= WIDER * earlier, wild)
    edges = np.flatnonzero(np.diff(np.concatenate([[False], wild, [False]]).astype(np.int8)))
    spans = [(int(a), int(b)) for a, b in zip(edges[::2], edges[1::2], strict=True) if b - a >= WINDOW]
    if not spans:
        return None
    first, stop = max(spans, key=lambda span: span[1] - span[0])
    return max(first - WINDOW // 2, 0), stop - 1, max(float(calm[first]), LEAST), median(swing[first:stop])


@once_per_series
def _width(x: excursions.Floats) -> excursions.Floats:
    """How widely the last values scatter about their running median."""
    return SIGMA * medians.rolling_median(np.abs(x - medians.centred_median(x, CALM)), WINDOW)


def smallest_effect(run: Run) -> str:
    s, rows = finite_loss(run, LEAST_VALUES)
    x = s.value[rows]
    y, logs = excursions.scaled(x)
    equal = f"{FROZEN} equal values in a row"
    if not logs:
        return equal
    level = median(x[-WINDOW:])
    wider = WIDER * float(_width(x).max()) / level if level > 0 else np.inf
    start = OF_START * median(x[:15]) / level if level > 0 else np.inf
    swing = max(LEAST_SWING, TIMES * max(float(_width(y)[WINDOW:].min()), LEAST), wider, start)
    return f"swings of {SHOWS * swing:.1%} over {3 * WINDOW} values, or {equal}"


def _begun(outgrown: np.ndarray, wild: np.ndarray) -> np.ndarray:
    """From the first value of each wild stretch that has outgrown the past on, to the end of the stretch."""
    fresh = np.where(wild, 0, np.arange(1, len(wild) + 1))
    last_calm = np.maximum.accumulate(fresh)
    last_outgrown = np.maximum.accumulate(np.where(outgrown, np.arange(1, len(wild) + 1), 0))
    begun: np.ndarray = last_outgrown > last_calm
    return begun


def freezes(x: excursions.Floats) -> tuple[int, int] | None:
    """(first, last index) of the longest run of one value that is not zero, where other values came before."""
    edges = np.concatenate([[0], np.flatnonzero(np.diff(x) != 0) + 1, [len(x)]])
    lengths = np.diff(edges)
    lengths[x[edges[:-1]] == 0] = 0
    best = int(np.argmax(lengths))
    first = int(edges[best])
    if lengths[best] < FROZEN or first < SETTLED or np.median(lengths[lengths > 0]) > 1:
        return None
    digit, before = last_digit(x), x[first - SETTLED : first]
    if abs(x[first]) < ROUNDED * digit or np.ptp(before) <= DIGITS * digit or median(np.abs(np.diff(before))) <= (1 + 1e-6) * digit:
        return None  # it moved by less than is printed
    return first, first + int(lengths[best]) - 1


def _where(s: Series, rows: excursions.Ints, first: int, last: int) -> tuple[int, int, bool]:
    """(first step, last step, whether it lasts to the end)."""
    return int(s.step[rows[first]]), int(s.step[rows[last]]), last >= len(rows) - 2


def _finding(run: Run, s: Series, rows: tuple[int, int], title: str, facts: Facts) -> Finding[Facts]:
    bands = [{"from": facts.start, "to": facts.end, "kind": "event"}]
    where = s.place(run, rows[0])
    shown = evidence.window(s, facts.start, facts.end, *bands, title=f"{s.tag} from step {facts.start} on", where=where)
    return evidence.on_rows(s, rows, facts, title, "warning", shown, key=f"{facts.start}-{facts.kind}")
