"""The weight of a KL term: raised step by step or in cycles, and what of the loss it lifts."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forensics.case import Finding
from forensics.detectors import divergence, level_shift, loss_spike, plateau
from forensics.run import settings
from forensics.run.levels import ROOM
from forensics.run.loss_terms import A_WEIGHT, RECONSTRUCTION, kl_term, of_a_loss
from forensics.run.metrics_in_words import stays_from, together, worded
from forensics.run.robust import median
from forensics.run.series import Floats, Series, series
from forensics.signs.other_objectives import HALF
from forensics.signs.sign import Sign, Symptoms, absent, cannot_tell, does_not_arise, seen

SUBJECT = "other_objectives"  # a part of it

Rise = tuple[Finding[Any], int, int | None, float]  # finding, step before it, step of its peak, height
SETTLED = 0.2  # of a weight; bound: what terms of single batches say of it scatters, and a weight that is raised at least doubles
A_TENTH, AT_ONE = 0.1, 3  # of a weight: within it two are the same; bound: three values make a median
KL_WEIGHT = rf"\b(kl|kld|beta)\b.*\b{A_WEIGHT}\b|\b(w|weight|lambda|beta) (kl|kld)\b|(^|/)(train )?(beta|anneal(ing)?( factor| weight)?)$"
KL_KEYS = "kl_anneal kl_annealing kl_anneal_steps kl_warmup kl_warmup_steps kl_weight_schedule kl_start beta_anneal beta_start beta_warmup anneal_steps"


def _weight(s: Symptoms) -> Series | None:
    """The weight of the KL term as it was logged, else as the loss and its two terms tell it: what it adds to the reconstruction, over the term.
    That is a weight where it is raised and settles; a loss that adds up something else tells none."""
    logged = next(iter(worded(s.run, KL_WEIGHT)), None)
    total, kl, rest = series(s.run, "loss.train"), kl_term(s.run), next(iter(of_a_loss(s.run, rf"^(?!.*\beval\b).*{RECONSTRUCTION}")), None)
    if logged is not None or total is None or kl is None or rest is None or rest.tag == total.tag:
        return logged
    step, (x, k, r) = together(total, kl, rest)
    if len(step) < 4 * divergence.FEW or (k <= 0).any():
        return None
    told = (x - r) / k
    early, late = told[: len(told) // 4], told[-len(told) // 4 :]
    end = median(late)
    raised, settled = 0 < 2 * median(early) < end, median(np.abs(late - end)) < SETTLED * end
    if not raised or not settled:
        return None
    rows = np.isin(kl.step, step) & kl.usable
    values = np.full(len(kl), np.nan)
    values[rows] = told[np.searchsorted(step, kl.step[rows])]
    return replace(kl, name="other/implied", tag=f"weight of {kl.tag}, as loss and terms tell it,", value=values)


def kl_weight_annealed(s: Symptoms) -> Sign:
    """The weight of the KL term was raised step by step, as logged, or was to be raised by config."""
    found = [p for p in worded(s.run, KL_WEIGHT) if kl_term(s.run) is not None]
    if found:
        x = found[0].value[found[0].usable]
        text = f"{found[0].tag} goes from {x[0]:.3g} to {x[-1]:.3g}."
        rising = x[-1] > x[0] and (np.diff(x) >= 0).mean() > 1 - 1 / 10  # cyclical schedules fall back ten times or less
        return seen(text, last=stays_from(found[0], float(x[0]))) if rising else absent(text)
    keys = [k for k in settings.named(s.run, KL_KEYS) if k.value not in (None, False, 0, "none")]
    if keys and kl_term(s.run) is not None:
        return seen(f"Config sets {keys[-1].key} to {keys[-1].value}.", where=keys[-1].where)
    return cannot_tell("the weight of a KL term was not logged.")


def kl_weight_lifts_loss(s: Symptoms) -> Sign:
    """The loss drifts, steps or jumps up as the weight of its KL term is raised, once or in cycles: at the later weight it would have risen by less than
    half as much, or had been as high before at that weight."""
    turned, jumped, stepped = s.of(divergence.Facts), s.of(loss_spike.Facts), [f for f in s.of(level_shift.Facts) if f.facts.up]
    rises: list[Rise] = [(f, f.facts.best_step, None, f.facts.final - f.facts.best) for f in turned]
    rises += [(f, f.facts.start - 1, f.facts.peak, f.facts.height) for f in jumped]
    rises += [(f, f.facts.step - 1, None, f.facts.size * f.facts.level) for f in stepped]
    if not rises:
        return does_not_arise("the loss neither drifts nor jumps up.")
    total, weight, kl = series(s.run, "loss.train"), _weight(s), kl_term(s.run)
    if weight is None or total is None or (kl is None and not _cycled(rises, total, weight)):
        return cannot_tell("a KL term and its weight were not logged beside the loss.")
    at_one = _cycled(rises, total, weight)
    told = [(f, rise, left) for f, last, peak, rise in rises if kl and (left := _left_at_weight(total, weight, kl, last, peak)) is not None]
    lifted = [x for x in told if x[2] < HALF * x[1]]
    if lifted:
        _, rise, left = lifted[0]
        text = (
            f"Of the loss's rise by {rise:.3g}, {left:.3g} would be left at the {weight.tag} that stands there, which is raised meanwhile."
        )
        owed = [f for f, _, _ in lifted]
        return seen(text, [*owed, *(f for f, _, _ in at_one if f not in owed)])
    if at_one:
        _, before, after = at_one[0]
        text = f"The loss goes from {before:.4g} to {after:.4g} between steps of one {weight.tag}, which is raised in cycles."
        return seen(text, [f for f, _, _ in at_one])
    if not told:
        return cannot_tell("a KL term and its weight were logged beside too few values of the loss.")
    _, rise, left = told[0]
    what = f"{left:.3g} are left at the {weight.tag} that stands there" if math.isfinite(left) else f"nothing is owed to {weight.tag}"
    return absent(f"Of the loss's rise by {rise:.3g}, {what}.")


def kl_weight_holds_loss_up(s: Symptoms) -> Sign:
    """The loss does not fall as the weight of its KL term is raised, while what is left of it without that term lies far below where it began: it
    learns, under a loss that is made to cost more."""
    still = s.of(plateau.Facts)
    if not still:
        return does_not_arise("the loss falls.")
    total, weight, kl = series(s.run, "loss.train"), _weight(s), kl_term(s.run)
    if weight is None or total is None or kl is None:
        return cannot_tell("a KL term and its weight were not logged beside the loss.")
    step, (x, w, k) = together(total, weight, kl)
    if len(step) < 2 * divergence.FEW:
        return cannot_tell("a KL term and its weight were logged beside too few values of the loss.")
    first, last = still[0].facts.first, median((x - w * k)[-divergence.FEW :])
    was, now = (median(some) for some in (w[:AT_ONE], w[-divergence.FEW :]))
    text = f"The loss begins at {first:.4g} and comes to {last:.4g} without {kl.tag}, whose weight ({weight.tag}) goes from {was:.3g} to {now:.3g}."
    fell = first > 0 and last < (1 - ROOM) * first and now > was + A_TENTH * abs(now)
    return seen(text, still, first=int(step[0]), last=int(step[-1])) if fell else absent(text, still)


def _cycled(rises: list[Rise], total: Series, weight: Series) -> list[tuple[Finding[Any], float, float]]:
    """The rises of a loss that is hardly higher than before at the weight that stands there: (finding, level before, level after)."""
    told = [(f, rise, levels) for f, last, peak, rise in rises if (levels := _at_one_weight(total, weight, last, peak)) is not None]
    return [(f, before, after) for f, rise, (before, after) in told if after - before < HALF * rise]


def _at_one_weight(total: Series, weight: Series, last: int, peak: int | None) -> tuple[float, float] | None:
    """The loss until a step and after it (until a peak), at the weight that stands there; None where it never stood there before, or is no higher
    than at the step. What is minimized at another weight is another loss (arXiv 1903.10145: KL weights in cycles)."""
    step, (x, w) = together(total, weight)
    before, after = np.flatnonzero(step <= last), np.flatnonzero((step > last) & (step <= (peak if peak is not None else step[-1])))
    if not len(before) or not len(after) or w[after].max() <= w[before[-1]] + A_TENTH * abs(w[after].max()):
        return None
    after = after[len(after) // 2 :] if peak is None else after[-1:]  # where it has come to
    pairs = [(x[same], x[i]) for i in after if len(same := before[np.abs(w[before] - w[i]) <= A_TENTH * abs(w[i])])]
    if len(pairs) < min(AT_ONE, len(after)) or len(pairs) < HALF * len(after):
        return None
    return median([np.median(then[-AT_ONE:]) for then, _ in pairs]), median([now for _, now in pairs])


def _high(x: Floats, after: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """The upper half of the values behind a step: the loss of a weight in cycles ends low where a cycle begins."""
    return x >= np.median(x[after]) if after.any() else after


def _left_at_weight(total: Series, weight: Series, kl: Series, last: int, peak: int | None) -> float | None:
    """By how much the loss rises from step `last` and before to its peak (None: to its end), had it had the later weight before,
    too: what is minimized at another weight is another loss; infinity where the weight was not raised. None by few values."""
    step, (x, w, k) = together(total, weight, kl)
    before, after = np.flatnonzero(step <= last)[-divergence.FEW :], np.flatnonzero(step > last)
    if peak is None:
        after = after[_high(x, step > last)[after]][-divergence.FEW :]
    if len(before) < divergence.FEW or len(after) < divergence.FEW:
        return None
    if peak is not None:
        after = after[[int(np.argmin(np.abs(step[after] - peak)))]]
    then, now = median(w[before]), median(w[after])
    return float(np.median(x[after]) - np.median((x + (now - w) * k)[before])) if now > then else math.inf
