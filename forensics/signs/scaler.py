"""The loss scaler of half-precision training: its scale, the steps it skipped, and what the log says of overflow."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from forensics.detectors import loss_scale
from forensics.run import settings
from forensics.run.series import Floats, Series, series
from forensics.signs import not_finite
from forensics.signs.sign import SEEN, Sign, Symptoms, absent, cannot_tell, does_not_arise, seen
from parsers.tables import Run

EFFECTS = {"overflows_to_the_end": "grad.norm"}  # a symptom of its own, for which there is no detector

LEAST = 6  # values: fewer show neither a scale that moves nor one that does not
NEARLY_ALL, SEARCH = 0.9, 0.1  # of the reports; of the run, in which a dynamic scale looks for its height (forensics.detectors.loss_scale)
HALF = 0.5  # unit: training of half the length; a scale that is fixed cannot come down to where updates fit
LONG = 20  # bound: reports, of which a tenth is two: a scale of 2^24 is halved twenty times at most until it is small enough
NOT_LOGGED = "the loss scale was not logged"


def scale_collapsed(s: Symptoms) -> Sign:
    """The loss scale falls by 2^6 or more and stays there, or to 1 (forensics.detectors.loss_scale)."""
    found = [f for f in s.of(loss_scale.Facts) if f.facts.collapsed]
    if found:
        facts = found[0].facts
        text = f"The loss scale falls from {facts.top:g} to {facts.low:g}, beginning at step {facts.first}."
        return seen(text, found, first=facts.first)
    return _moves(s.run, absent)


def steps_skipped(s: Symptoms) -> Sign:
    """At least 5 % of the steps after the first tenth were skipped for overflow; one in 2000 is how a dynamic scale searches."""
    told = s.of(loss_scale.Facts)
    found = [f for f in told if f.facts.share >= loss_scale.SKIPPED]
    if found:
        facts = found[0].facts
        return seen(f"{facts.share:.0%} of the steps were skipped for overflow: {facts.skipped} steps.", found, first=facts.first)
    if told:
        return absent(f"{told[0].facts.share:.1%} of the steps were skipped for overflow: {told[0].facts.skipped} steps.", told)
    return _moves(s.run, absent)


def scale_static(s: Symptoms) -> Sign:
    """The logged loss scale is above 1 and never moves, so that it cannot give way to an overflow."""
    scale = series(s.run, "loss_scale")
    x = _finite(scale)
    if scale is None or len(x) < LEAST:
        return _unlogged(s.run, scale)
    where = scale.place(s.run, 0)
    if x[0] > 1 and (x == x[0]).all():
        return seen(f"The loss scale is {x[0]:g} in all {len(x)} logged values.", where=where)
    return absent(f"The loss scale goes between {x.min():g} and {x.max():g}.", where=where)


def scale_healthy(s: Symptoms) -> Sign:
    """The loss scale moves, neither collapses nor skips a share of the steps that weighs."""
    if found := s.of(loss_scale.Facts):
        return absent(f"{found[0].title}.", found)
    return _moves(s.run, seen)


def overflows_to_the_end(s: Symptoms) -> Sign:
    """Nearly all updates from the first tenth of the run to its end were skipped, or under a loss scale nearly every report has an infinite gradient
    norm; under a scale that never moves, every second one. A dynamic scale that begins too high overflows some ten times, and then fits."""
    norm, skips = series(s.run, "grad.norm"), series(s.run, "skip.count")
    scaled = not_finite.routine(s.run)
    if not scaled and (skips is None or settings.precision(s.run) in ("bf16", "fp32")):
        return does_not_arise("neither config nor log has a loss scale that could overflow, and no skipped updates were counted.")
    told = []
    if norm is not None and scaled:
        told = [(norm, (~np.isfinite(norm.value)).astype(float), 1, "reports have a gradient norm that is not finite")]
    if skips is not None and (shares := _skipped(s.run, skips)) is not None:
        told += [(skips, shares, skips.interval, "updates were skipped")]
    long = [t for t in told if int(t[0].alive.sum()) >= LONG]
    if not long:
        return cannot_tell(f"neither the gradient norm nor skipped updates were logged {LONG} times.")
    texts, enough = [], HALF if scale_static(s).state == SEEN else NEARLY_ALL
    for x, sick, each, how in long:
        rows = np.flatnonzero(x.alive)
        late = rows[x.step[rows] >= x.step[rows[0]] + SEARCH * (x.step[rows[-1]] - x.step[rows[0]])]
        last = late[-max(len(late) // 10, 1) :]
        texts.append(f"after the first tenth of the run {sick[late].sum() * each:.0f} of {len(late) * each} {how}")
        if sick[late].mean() >= enough and sick[last].mean() >= enough:
            at = int(late[np.argmax(sick[late])])
            return seen(f"Overflow to the end: {texts[-1]}.", where=x.place(s.run, at), first=int(x.step[at]), last=int(x.step[rows[-1]]))
    return absent(f"No overflow to the end: {'; '.join(texts)}.")


def _skipped(run: Run, skips: Series) -> Floats | None:
    """The share of the updates that were skipped since the report before; None where the count does not tell. It is counted anew in each report, or
    up; where only lines of skipped updates have it, it tells nothing of the time behind them."""
    x, step = skips.value, skips.step
    if not len(x) or not np.isfinite(x).all():
        return None
    counts_on = len(x) >= LEAST and bool((np.diff(x) >= 0).all()) and x[-1] < skips.interval  # a few at the start, and none since
    if (x <= skips.interval).all() and not counts_on:
        of_each = skips.interval > 1 or len(x) >= NEARLY_ALL * (step[-1] - step[0] + 1)
        return np.asarray(x / skips.interval) if of_each and _reaches(run, skips) else None
    each, steps = np.diff(x), np.diff(step)
    if (each < 0).any() or (steps <= 0).any() or (each > steps).any():
        return None
    return np.append(min(x[0] / skips.interval, 1.0), each / steps) if _reaches(run, skips) else None


def _reaches(run: Run, skips: Series) -> bool:
    """Whether the count was logged to the end of the training."""
    loss = series(run, "loss.train")
    return loss is None or not len(loss) or bool(skips.step[-1] >= loss.step[-1] - SEARCH * (loss.step[-1] - loss.step[0]))


def _moves(run: Run, state: Callable[..., Sign]) -> Sign:
    """What the scale does, as SEEN or ABSENT, where the detector has nothing to tell."""
    scale = series(run, "loss_scale")
    x = _finite(scale)
    if scale is None or len(x) < LEAST:
        return _unlogged(run, scale)
    if (x == x[0]).all() and (state is seen or x[0] <= 1):
        return does_not_arise(f"no scaler is seen at work: the loss scale is {x[0]:g} in all {len(x)} logged values.")
    text = f"The loss scale begins at {x[0]:g}, ends at {x[-1]:g}, and stays between {x.min():g} and {x.max():g}."
    return state(text, where=scale.place(run, 0))


def _finite(scale: Series | None) -> np.ndarray:
    return np.zeros(0) if scale is None else scale.value[scale.usable]


def _unlogged(run: Run, scale: Series | None) -> Sign:
    precision = settings.precision(run)
    if scale is None and precision in ("bf16", "fp32"):
        return does_not_arise(f"no loss scale is needed: config asks for {precision}.")
    return cannot_tell(
        f"{NOT_LOGGED}." if scale is None else f"the loss scale was logged as a finite number only {len(_finite(scale))} times."
    )
