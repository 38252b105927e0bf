"""Divergence

What it sees
    The training loss turns round and ends well above the best level it had reached.

How it decides
    Levels are medians of 15 logged values, in a log of fewer than 150 also of a tenth of them, at least 5 (3 in a log of fewer than 15). It fires when the last level
    lies above the best one by at least 10 % and by eight times its noise (in the short form, of the steps between neighbours), and by 5 % of all it had fallen. Or,
    for smaller rises of longer runs, when the loss smoothed over 25 values has risen four times further than ever before in the run, by 15 standard errors, and keeps
    at least 40 % of that to the end (``forensics.spikes.trend``). A level that rose half as far from its best until then more than three times before, came back, and
    once stayed up as long, wanders with its data. Of a running mean of each epoch its last values alone are judged. The step it names is the first after the loss
    last stood near its best, or where the rise began. A loss that stands a quarter above its first level for a tenth of the run and then comes back was divergence,
    too, until something (usually the falling rate) caught it: a warning; so is one that the first updates drove to four times its first value, for five values. And it fires at once where no value comes below twice the very first one again, which no
    update had touched, and the loss does not fall in order from the next one on, to half of it; or where the loss ends a thousand times as far below zero as it began
    above. Where the evaluation goes on getting better to the end meanwhile, or the weight of a KL term lifts the loss, it is information. A loss that has fallen from
    value to value since its top, and lost half of its rise, is a spike that comes back. Where no loss was logged a score is judged, and the reward wherever it was,
    turned round: it has to lose half of what it had gained, too, in its mean by three standard errors, and not to make up a third of that.

Cannot tell
    With fewer than eight values of the loss, unless five never give back a quarter of their fall. Harder data or another loss rise the same way.

Folklore
    "Divergence without a spike" is the fourth pattern beside the three kinds of spike (Bekman's training-loss-patterns).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from forensics import evidence
from forensics.case import BaseFacts, Finding
from forensics.errors import CannotTell
from forensics.run.evaluations import improves_after
from forensics.run.inputs import LOST, OBJECTIVE, comes_back, whole_means
from forensics.run.partial_window import first_is_partial
from forensics.run.robust import SIGMA, error_of_median, mean_exceeds, median
from forensics.run.series import Series
from forensics.spikes import excursions, medians
from forensics.spikes.trend import HALF, IN_ORDER, ORDERED, falls_in_order, falls_without_end, far_below_zero, turn, wanders
from forensics.spikes.visible import MARGIN
from parsers.tables import Run

NEEDS = [OBJECTIVE]
MEANT = ("kl_weight_lifts_loss", "stage_learned", "loss_redefined_as_announced")
LEVEL, ENOUGH = 15, 40  # statistical: a median of 15 is off by a third of a sigma; two levels and what lies between them
# bound: a level of a tenth can turn within the first fifth; two levels of three values and two between, as for the plateau
TENTH, LEAST_VALUES = 10, 8
RISE = 0.10  # measured: at 0.07 the same runs, at 0.14 two of 34 faulty ones are lost (docs/thresholds.md)
# measured: at 5.6 of them two more faulty runs are found, no healthy one; errors of a level, which a tail of noise does not reach
NOISES = 8.0
UNDONE = 0.05  # of all that the loss had fallen; not critical in the runs of docs/thresholds.md: it keeps out losses near zero
# statistical: values of the shortest level, whose median is off by half a sigma; in fewer than three levels of that, three make a median
FEW, FEWEST = 5, 3
TWICE = 2.0  # measured: 3 of 1,173 made runs, all faulty, and 3 real ones, all diverged; at 1.25 two real ones that were well, too
FAR = 4.0  # unit: four times what no update had touched, by the median of five values; learning begins below that or at once
CLIMB, STRETCH = 1.25, 0.1  # measured: at 0.7 of CLIMB four of 107 healthy runs fire, at 1.4 none is lost; STRETCH: not critical


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
    s, rows = whole_means(run, ORDERED)
    x = s.value[rows]
    if len(x) < LEAST_VALUES:
        if falls_in_order(x):
            return
        raise CannotTell(f"only {len(rows)} finite values of {s.tag}, which do not fall in order")
    if not s.rises and falls_without_end(x):
        yield _below_zero(run, s, rows)
        return
    if not s.rises and 0 < TWICE * x[0] < x[1:].min():
        learns = falls_in_order(x[1:]) and TWICE * median(x[-FEW:]) < x[1]
        if not learns and not first_is_partial(run, s, rows):
            yield _left_at_once(run, s, rows)
            return
        rows, x = rows[1:], x[1:]  # the first value alone is of something else
    y, logs = excursions.scaled(x)
    turned = next((found for width, spread in _spreads(y) if (found := _turned(y, logs, width, spread))), None)
    if turned is not None:
        best, at, width = turned
    else:
        slow = turn(y, excursions.candidates(y)) if len(rows) >= ENOUGH else None
        if slow is None:
            yield from _above_first(run, s, rows)
            return
        at, level, width = slow.start, medians.rolling_median(y, LEVEL), LEVEL
        best = min(_best(level, LEVEL), at)
    if _recovers(y[at:], float(y[best])) or (not s.rises and wanders(medians.rolling_median(y, width)[width:])):
        return  # a median of games that are lost or won goes up and down by itself: their means decide below
    row = rows[at]
    start, last = int(s.step[row]), int(s.step[rows[-1]])
    held, left = x[max(best - width + 1, 0) : best + 1], x[-width:]
    low, end = median(held), median(left)
    if end <= low or (s.rises and (not mean_exceeds(left, held) or _is_borne(x, best, width, end))):
        return
    how = f"{end / low - 1:.0%} above" if abs(end) < 100 * abs(low) else f"{end / low:.2g} times" if low else "above"
    moves = "drifts up to" if end >= median(x[(at + len(x)) // 2 :][:width]) else "stays up: it ends at"
    title = f"From step {start} the loss {moves} {end:.4g}, {how} its best level of {low:.4g}"
    if s.rises:
        title = f"From step {start} {s.tag} falls to {-end:.4g}, below its best level of {-low:.4g}"
    up = end / low - 1 if low else float("inf")
    facts = Facts(start, s.logged(low), s.logged(end), rise=up, best_step=int(s.step[rows[best]]), first=s.logged(float(x[0])))
    band = {"from": start, "to": last, "kind": "non_recovering"}
    shown = evidence.window(s, start, last, band, title=f"{s.tag} from step {start} on", where=s.place(run, row))
    against = improves_after(run, start)
    title = f"{title}, while {against}" if against else title
    yield evidence.on_rows(s, (row, rows[-1]), facts, title, "info" if against else "critical", shown)


def smallest_effect(run: Run) -> str:
    s, rows = whole_means(run, ORDERED)
    if len(rows) < LEAST_VALUES:
        return IN_ORDER
    y, logs = excursions.scaled(s.value[rows])
    share, width = min((_least(y, logs, width, spread), width) for width, spread in _spreads(y))
    return f"a loss that ends {share:.1%} above its best level for {2 * width} values"


def _least(y: excursions.Floats, logs: bool, width: int, spread: excursions.Floats) -> float:
    """The rise that levels of so many values show nearly always, as a share."""
    level, noise = _levels(y, width, spread)
    falls = max(float(level[-1 - width] - level[-1]), 0.0)  # what it goes on falling
    seen = max(float(np.log1p(RISE)), NOISES * noise) + MARGIN * noise + falls
    best = float(level[width:].min())
    return max(float(np.expm1(seen)), _undone(y, width, best) / float(np.exp(best))) if logs else seen


def _recovers(y: excursions.Floats, best: float) -> bool:
    """Whether every value since the highest one lies below the one before, and the last has lost most of the rise: a spike that is coming back."""
    top = int(np.argmax(y))
    after = np.diff(y[top:])
    return len(after) >= FEW and bool((after < 0).all()) and y[-1] - best < HALF * (y[top] - best)


def _is_borne(x: excursions.Floats, best: int, width: int, end: float) -> bool:
    """Whether an objective lost less than half of what it had gained at its best since the worst before it (of nothing gained, of its first level), or
    has made up a third of what it lost."""
    low, worst = median(x[max(best - width + 1, 0) : best + 1]), float(medians.rolling_median(x[: best + 1], FEW).max())
    gained = worst - low if worst - low > RISE * abs(worst) else abs(median(x[:FEW]))
    return end - low < LOST * gained or comes_back(-low, -float(medians.rolling_median(x, width)[best:].max()), -end)


def _spreads(y: excursions.Floats) -> list[tuple[int, excursions.Floats]]:
    """(values of a level, noise of each value) of the two ways in which levels are taken, the short one first."""
    short = max(len(y) // TENTH, FEW if len(y) >= 3 * FEW else FEWEST)
    few = [(short, _noise_of_steps(y, short))] if short < LEVEL else []
    return [*few, (LEVEL, excursions.local_noise(y))] if len(y) >= ENOUGH else few


def _turned(y: excursions.Floats, logs: bool, width: int, spread: excursions.Floats) -> tuple[int, int, int] | None:
    """(index of the best level, where it was last near it, width) where the last level lies above the best beyond its noise."""
    level, noise = _levels(y, width, spread)
    best = _best(level, width)
    end, low = float(level[-1]), float(level[best])
    rise = end - low
    if rise < max(np.log1p(RISE), NOISES * noise) or best > len(y) - width or (logs and np.exp(end) - np.exp(low) < _undone(y, width, low)):
        return None
    near = level[best] + max(3 * noise, 0.25 * rise)
    at = int(np.flatnonzero(level <= near)[-1])  # the level follows the values: the last of them that was near is the last before the turn
    last = max(at - width + 1, 0) + int(np.flatnonzero(y[max(at - width + 1, 0) : at + 1] <= near)[-1])
    return best, min(last + 1, len(y) - 1), width


def _best(level: excursions.Floats, width: int) -> int:
    return int(np.argmin(level[width:])) + width


def _levels(y: excursions.Floats, width: int, spread: excursions.Floats) -> tuple[excursions.Floats, float]:
    """(level at each value, its standard error)."""
    level = medians.rolling_median(y, width)
    best = _best(level, width)
    noise = max(np.median(spread), spread[best], np.median(spread[best:]))  # a loss near zero scatters more, as a share
    return level, error_of_median(float(noise), width)


def _noise_of_steps(y: excursions.Floats, width: int) -> excursions.Floats:
    """Noise of one value by what it is off the middle of its neighbours: in a short log a fall of ten values is no noise."""
    off = np.abs(np.diff(np.r_[y[1], y, y[-2]], 2))
    return np.maximum(SIGMA * medians.centred_median(off, 4 * width + 1) / 6**0.5, excursions.LEAST_SIGMA)


def _undone(y: excursions.Floats, width: int, best: float) -> float:
    """The part of its fall that a loss has to lose again, in its own units."""
    return float(np.exp(y[:width].mean()) - np.exp(best)) * UNDONE


def _below_zero(run: Run, s: Series, rows: excursions.Ints) -> Finding:
    x, step = s.value[rows], s.step[rows]
    at = int(np.flatnonzero(x < far_below_zero(x))[0])
    first, final, start, last = float(x[0]), median(x[-FEW:]), int(step[at]), int(step[-1])
    title = f"The loss falls through zero and without end: {first:.4g} at the beginning, {final:.4g} at the end"
    facts = Facts(start, first, final, rise=0.0, best_step=start, first=first)
    band = {"from": start, "to": last, "kind": "non_recovering"}
    shown = evidence.window(s, int(step[0]), last, band, title=s.tag, where=s.place(run, rows[at]))
    return evidence.on_rows(s, (rows[at], rows[-1]), facts, title, "critical", shown)


def _left_at_once(run: Run, s: Series, rows: excursions.Ints) -> Finding:
    """A loss that the first updates drove up for good: levels, which are medians, hide the one value before them."""
    x, step = s.value[rows], s.step[rows]
    first, final, low = float(x[0]), median(x[-FEW:]), float(x[1:].min())
    title = f"The loss leaves its first value of {first:.4g} at once: it never comes below {low:.4g} again, and ends at {final:.4g}"
    facts = Facts(int(step[1]), first, final, rise=final / first - 1, best_step=int(step[0]), first=first)
    band = [{"from": int(step[1]), "to": int(step[-1]), "kind": "non_recovering"}]
    shown = evidence.window(s, int(step[0]), int(step[-1]), *band, title=s.tag, where=s.place(run, rows[0]))
    return evidence.on_rows(s, (rows[1], rows[-1]), facts, title, "critical", shown)


def _longest(where: np.ndarray) -> excursions.Ints:
    """The rows of the longest stretch: data in one order come back to it again and again."""
    at = np.flatnonzero(where)
    return max(np.split(at, np.flatnonzero(np.diff(at) > FEW) + 1), key=len)


def _above_first(run: Run, s: Series, rows: excursions.Ints) -> Iterator[Finding]:
    """A loss that stood far above its first level for a tenth of the run, though it came back in the end."""
    x = s.value[rows]
    first, level = median(x[:3]), medians.rolling_median(x, FEW)
    high = _longest(level > CLIMB * first)
    least = max(LEVEL, STRETCH * len(x))
    early = len(high) < least and x[0] < first and not s.rises  # driven up by the first updates: the first value alone has seen none
    if early:
        first, high, least = float(x[0]), _longest(level > FAR * x[0]), FEW
    if first <= 0 or len(high) < least or np.median(x[-LEVEL:]) >= first:
        return
    a, b = int(high[0]), int(high[-1])
    start, last, top = int(s.step[rows[a]]), int(s.step[rows[b]]), float(x[a : b + 1].max())
    side = "below" if s.rises else "above"
    moves = f"{s.tag} falls from {-first:.4g} to {-top:.4g}" if s.rises else f"Loss climbs from {first:.4g} to {top:.4g}"
    title = f"{moves}: it stays {side} its first level for {len(high)} values, until step {last}"
    begins, final = s.logged(first), s.logged(median(x[-LEVEL:]))
    facts = Facts(start, begins, final, rise=top / first - 1, best_step=int(s.step[rows[0]]), first=begins, above_first=len(high))
    band, where = {"from": start, "to": last, "kind": "slow"}, s.place(run, rows[a])
    shown = evidence.window(s, start, last, band, title=f"{s.tag} {side} its first level", where=where)
    borne = s.rises or (not early and improves_after(run, start))  # evaluations behind a climb of the first updates say nothing of it
    yield evidence.on_rows(s, (rows[a], rows[b]), facts, title, "info" if borne else "warning", shown)
