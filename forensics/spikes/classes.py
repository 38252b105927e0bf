"""Judges excursions of a loss: is it a spike or noise, which of the three kinds, and is it an instability at all?

Spike or noise: a logistic regression over ``features`` whose numbers stand in ``class_model``
(benchmarks/spikes.py fits them). The kind is a rule. What would tempt a detector and is no instability has
rules of its own: weights that start anew, a level that steps up without an overshoot (a schedule that starts
again, other data), the same bump at regular distances.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from forensics.run.robust import median, robust_sigma
from forensics.spikes import class_model, jumps
from forensics.spikes.excursions import CROWD_SIGMA, END_SIGMA, WARMUP, Excursion, Floats, candidates, middle_of_three, scaled
from forensics.spikes.features import NAMES, features, smoothness
from forensics.spikes.medians import centred_median, rolling_median
from forensics.spikes.trend import turn

Ints = NDArray[np.int64]

# Scores are precision, recall and macro-F1 on annotated curves, now .944, .937, .934 (docs/thresholds.md has all of them).
FAST_SHARE = 0.004  # source: S. Bekman, Machine Learning Engineering Open Book: the cut between the cases whose lengths it records
FAST_INTERVALS, FAST_STEPS = 3, 20  # bound: what three rows show has no length; unit: steps. Measured: with two rows macro-F1 .920
REINIT_VALUES, REINIT_TOP = 20, 0.05  # measured: with 14 values precision .937; without the top recall .906
REINIT_MATCH, REINIT_SHARE, REINIT_FALL = 0.2, 0.06, 0.2  # in ln; of the fall; in ln. Not critical: 0.7 and 1.4 of them score alike
STEP_VALUES, STEP_RISE = 25, 6  # measured: at 1.4 of either precision .937, at 0.7 alike: values of a level, values to climb to it
STEP_OVERSHOOT, STEP_CLEAR = 4.0, 4.0  # statistical: chance does it once in 16,000; measured: precision .937 at 0.7 and at 1.4 of them
STEP_MOST, BUMP_DENSE = 0.7, 6.0  # in ln; widths of a bump. Measured: without either one of 67 faulty runs is lost, the scores are alike
BUMPS, BUMP_SIZE, BUMP_DISTANCE = 3, 0.4, 0.15  # measured: two bumps make recall .898, four precision .922; alike in size; in distance
# Where neighbours are alike the local noise is too small a yardstick, and the spread of the tested statistic decides.
SMOOTH, CLEAR_SPREAD = 0.65, 6.2  # measured: without them 6 of 20 smoothed healthy curves alarm (test_loss_spike), docs/thresholds.md
PLAIN_SIGMA = 30.0  # measured: without it recall .929 for .937; 0.7 and 1.4 of it score alike
LASTING_RISE = 0.9  # told as the odds of a lasting rise; not critical: no class hangs on it (docs/thresholds.md)
JUMP = 0.95  # told as the odds of a jump of a short log; measured: at 0.7 of it one of 11 faulty runs is lost (docs/thresholds.md)
JUDGED = 150  # of more excursions in one attempt the smaller ones are noise; bound: seconds that a log of noise may take
LASTING, OFFSET = 10, 0.25  # values; of the height. Measured: at 1.4 of them macro-F1 .894 and .915, at 0.7 alike
UNFINISHED = 0.3  # of the height; measured: at 0.21 macro-F1 .941, at 0.42 .916: more spikes, of the wrong kind


@dataclass(frozen=True)
class Spike:
    """One judged excursion, in the unit of ``scaled``; ``why`` says why it is none, or what sort of spike."""

    at: Excursion
    probability: float  # that it is a spike and not noise
    kind: str  # fast | slow | non_recovering | not_a_spike
    limit: float  # steps within which a recovery counts as fast
    why: str = ""  # reinit | step | periodic | divergence | nonfinite


def judge(step: Ints, value: Floats, length: float) -> list[Spike]:
    """The spikes of one attempt, in order; `length`: planned steps, or the steps covered where no plan is known."""
    y, _ = scaled(value)
    found = candidates(y)
    strongest = sorted(sorted(range(len(found)), key=lambda i: -found[i].sigmas)[:JUDGED])
    rows = features(y, found, strongest)
    odds = probability(rows)
    finite = np.isfinite(value)
    told = is_spike(y, [found[i] for i in strongest], rows)
    kept = [(found[i], float(p)) for i, p, spike in zip(strongest, odds, told, strict=True) if spike or not finite[found[i].peak]]
    kept = _with_jumps(y, _distinct(kept))
    judged = []
    for i, (e, p) in enumerate(kept):
        following = next((o.start for o, _ in kept[i + 1 :] if e.end is not None and o.start >= e.end), len(y))
        judged.append(_spike(step, y, e, p, _limit(step, e, length), following, bool(finite[e.peak])))
    likely = [found[i] for i, p in zip(strongest, odds, strict=True) if p >= class_model.THRESHOLD]
    judged = [
        replace(s, kind="not_a_spike", why="periodic") if _periodic(s, likely) or _at_multiples(step, s, likely) else s for s in judged
    ]
    rise = turn(y, found)
    if rise is not None and not any(_explains(s, rise.start, rise.peak) for s in judged):
        height = max(rise.rise, float(y[rise.peak]) - rise.level)
        e = Excursion(rise.start, rise.peak, None, rise.level, rise.noise, height, True)
        kind, why = ("not_a_spike", "step") if _steps_up(y, e) else ("non_recovering", "divergence")
        judged.append(Spike(e, LASTING_RISE, kind, _limit(step, e, length), why))
    return sorted(judged, key=lambda s: s.at.start)


def _with_jumps(y: Floats, kept: list[tuple[Excursion, float]]) -> list[tuple[Excursion, float]]:
    """With the jumps of a short log, which the regression has not enough values to be sure of: added, or made sure."""
    seen = jumps.jumps(y)
    fresh = [j for j in seen if not any(_same_event(e, j.at, len(y)) for e, _ in kept)]
    kept = [(e, max(p, JUMP) if any(abs(e.start - j.at) < jumps.AFTER for j in seen) else p) for e, p in kept]
    new = [(e, JUMP) for j in fresh if (e := jumps.excursion(y, j)) is not None]
    return sorted([*kept, *new], key=lambda k: k[0].start)


def _same_event(e: Excursion, at: int, n: int) -> bool:
    return e.start - jumps.AFTER <= at < (e.end if e.end is not None else n)


def is_spike(y: Floats, found: Sequence[Excursion], rows: Floats) -> NDArray[np.bool_]:
    """Whether each excursion, with its row of ``features``, is a spike and not noise."""
    clear = np.exp(rows[:, NAMES.index("spread")]) >= CLEAR_SPREAD if len(rows) else np.empty(0, bool)
    likely = probability(rows) >= class_model.THRESHOLD
    plain = (p and (c or e.sigmas >= PLAIN_SIGMA or smoothness(y, e) < SMOOTH) for p, c, e in zip(likely, clear, found, strict=True))
    return np.fromiter(plain, bool, len(found))


def probability(rows: Floats) -> Floats:
    """Probability of a spike for rows of ``features.NAMES``."""
    z = (rows - np.array(class_model.MEAN)) / np.array(class_model.SCALE)
    score: Floats = z @ np.array(class_model.WEIGHT) + class_model.INTERCEPT
    return 1 / (1 + np.exp(-score))


def _limit(step: Ints, e: Excursion, length: float) -> float:
    gaps = np.diff(step[max(e.start - 8, 0) : e.start + 9])
    return max(FAST_SHARE * length, FAST_INTERVALS * median(gaps) if len(gaps) else 0.0, FAST_STEPS)


def _distinct(kept: list[tuple[Excursion, float]]) -> list[tuple[Excursion, float]]:
    """Folds what rides on the tail of a larger one into it, before that has lost two thirds of its height."""
    out: list[tuple[Excursion, float]] = []
    for e, p in kept:
        over = [i for i, (o, _) in enumerate(out) if o.start < e.start and (o.end is None or e.start < o.end)]
        if not over:
            out.append((e, p))
            continue
        o, q = out[over[-1]]
        if o.end is None and e.end is None and e.height > o.height:  # it never came back and climbs on: one event
            start, level = (o.start, o.level) if 2 * o.height >= e.height else (e.start, e.level)
            out[over[-1]] = (replace(e, start=start, level=level, height=e.level + e.height - level, depth=o.depth), max(p, q))
            continue
        if e.level > o.level + UNFINISHED * o.height:
            if e.level + e.height > o.level + o.height:
                out[over[-1]] = (replace(o, peak=e.peak, height=e.level + e.height - o.level), q)
        elif e.sigmas >= CROWD_SIGMA or e.level + e.height > o.level + UNFINISHED * o.height:
            out.append((e, p))
    return out


def _explains(s: Spike, first: int, last: int) -> bool:
    """Whether a judged excursion accounts for a rise of the level from `first` to `last`."""
    never_back = s.kind != "fast" and s.at.end is None
    return s.at.start >= first - STEP_RISE or never_back or (s.at.end or 0) >= first - STEP_VALUES


def _spike(step: Ints, y: Floats, e: Excursion, p: float, limit: float, following: int, finite: bool) -> Spike:
    if finite and _starts_anew(step, y, e):
        return Spike(e, p, "not_a_spike", limit, "reinit")
    if finite and _steps_up(y, e):
        return Spike(e, p, "not_a_spike", limit, "step")
    why = "" if finite else "nonfinite"
    back = e.end if _comes_back(y, e, following) else _undone(y, e)
    if back is None:
        return Spike(replace(e, end=None), p, "non_recovering", limit, why)
    e = replace(e, end=back)
    took = step[min(back, len(step) - 1)] - step[e.start]
    return Spike(e, p, "fast" if took <= limit else "slow", limit, why)


def _undone(y: Floats, e: Excursion) -> int | None:
    """Where a loss that only touched its old level is back at it to stay: later learning undoes what the spike did. None where that never is."""
    if e.end is None or len(y) - e.end < LASTING:
        return None
    level = rolling_median(y[e.end :], LASTING)[LASTING - 1 :]
    above = np.flatnonzero(level > e.level)
    stays = int(above[-1]) + 1 if len(above) else 0
    return e.end + stays if stays < len(level) else None


def _comes_back(y: Floats, e: Excursion, following: int) -> bool:
    """False where the loss only touched its old level and then stayed above it until the next event or the end."""
    if e.end is None or following - e.end < LASTING or e.end - e.start < STEP_RISE:
        return True
    above = median(y[e.end : following]) - e.level
    return above <= max(END_SIGMA * e.sigma, OFFSET * e.height)


def _starts_anew(step: Ints, y: Floats, e: Excursion) -> bool:
    """Whether the curve from the peak on is the beginning of the run over again: weights that were initialized anew."""
    drop = float(y[0]) - e.level
    n = min(REINIT_VALUES, len(y) - e.peak)
    if drop < REINIT_FALL or n < WARMUP or abs(float(y[e.peak]) - float(y[0])) > REINIT_TOP:
        return False
    again = np.interp(step[e.peak : e.peak + n] - step[e.peak], step[: e.start] - step[0], y[: e.start])
    return median(np.abs(y[e.peak : e.peak + n] - again)) <= min(REINIT_MATCH, REINIT_SHARE * drop)


def _steps_up(y: Floats, e: Excursion) -> bool:
    """Whether the level steps up at once, without an overshoot, and learning goes on from there."""
    after = y[e.start : e.start + STEP_VALUES + STEP_RISE]
    if len(after) < STEP_VALUES or (e.end is not None and e.end - e.start < STEP_VALUES):
        return False
    plateau = middle_of_three(after[STEP_RISE:])
    level = median(plateau[:10])
    height = level - e.level
    noise = max(robust_sigma(after[STEP_RISE:], centred_median(after, 9)[STEP_RISE:]), e.sigma)
    arrived = np.flatnonzero(after >= level - 2 * noise)
    at_once = len(arrived) > 0 and int(arrived[0]) <= STEP_RISE
    top = float(y[e.start : e.start + 3 * STEP_VALUES].max())
    flat = top - level <= STEP_OVERSHOOT * noise and float(plateau.min()) > e.level + 0.3 * height
    stretch = y[e.start : e.end] - e.level if e.end is not None else np.zeros(1)
    ends_at_once = median(stretch[-len(stretch) // 5 :]) > 0.5 * height  # a stretch of bad data, not a level learned off
    return at_once and flat and not ends_at_once and STEP_CLEAR * noise < height < STEP_MOST


def _periodic(s: Spike, likely: list[Excursion]) -> bool:
    """Whether bumps like this one come at regular distances: the loop makes them (a loader, a restart), not training."""
    if s.kind not in ("fast", "slow"):
        return False
    ratios = ((e, e.height / s.at.height, _values(e) / _values(s.at)) for e in likely if e.end is not None)
    alike = [e for e, height, values in ratios if min(height, values) >= BUMP_SIZE and max(height, values) <= 1 / BUMP_SIZE]
    if len(alike) < BUMPS:
        return False
    gaps, width = np.diff([e.start for e in alike]), float(np.mean([_values(e) for e in alike]))
    return bool(np.ptp(gaps) <= BUMP_DISTANCE * gaps.mean() and gaps.mean() <= BUMP_DENSE * width)


def _at_multiples(step: Ints, s: Spike, likely: list[Excursion]) -> bool:
    """Whether half of the bumps as high as this one, or more, begin at multiples of their distance, one after the other from the first or second on: what
    the loop does every so many steps makes them (a reset of opacities in Gaussian splatting, arXiv 2308.04079). A bad batch comes anywhere in an epoch."""
    if s.kind not in ("fast", "slow") or _values(s.at) <= BUMPS:  # a single bad batch is over sooner
        return False
    start, every = int(step[s.at.start]), int(np.median(np.diff(step)))
    high = (e for e in likely if e.end is not None and 2 / 3 <= e.height / s.at.height <= 3 / 2)  # unit: half as high again
    others = {int(step[e.start]) for e in high} - {start}
    far = 10 * BUMPS * every  # statistical: three bumps lie at such places by chance once in 1,000, give or take a value
    for gap in {abs(o - start) for o in others if abs(o - start) >= far}:
        at = {round(o / gap) for o in (*others, start) if o >= gap - every and abs(o - round(o / gap) * gap) <= every}
        if round(start / gap) in at and 2 * len(at) > len(others) and ({1, 2, 3} <= at or {2, 3, 4} <= at):
            return True
    return False


def _values(e: Excursion) -> int:
    return (e.end if e.end is not None else e.peak) - e.start
