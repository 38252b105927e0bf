"""How large the rate is: against what is usual, at the trouble, and in the first steps."""

from __future__ import annotations

import math

import numpy as np

from forensics.detectors import plateau, warmup
from forensics.run import rate_shape, reach, settings, trained_before
from forensics.run.plan import planned_steps
from forensics.run.recipe import FAR, HIGH, of_width, recipe
from forensics.run.series import series
from forensics.run.trouble import NONE, trouble
from forensics.run.usual_rate import ADAPTERS, WIDEST, family, named, tuned, tuned_by_adapters, usual
from forensics.signs.sign import Sign, Symptoms, absent, cannot_tell, does_not_arise, seen
from parsers.tables import Run

LOW = 0.03  # times the usual: rate times steps is how far a run goes, and this one goes no further than a usual one in 3 % of its steps
NEAR_PEAK = 0.7  # of the peak: noise in the weights goes with the square of the rate, so that half of it is gone below
EARLY = 0.1  # share of the run; a usual warmup takes 1 to 5 % of it, so that it is over by then
NOT_LOGGED = "the learning rate was not logged"


def rate_far_above_usual(s: Symptoms) -> Sign:
    """The peak rate is at least nine times what is usual for this kind of model, width and optimizer (forensics.run.recipe)."""
    return _against_usual(s.run, FAR, float("inf"))


def rate_above_usual(s: Symptoms) -> Sign:
    """The peak rate is three to nine times what is usual for this kind of model, width and optimizer."""
    return _against_usual(s.run, HIGH, FAR)


def rate_ordinary(s: Symptoms) -> Sign:
    """The peak rate is within three times of what is usual for this kind of model, width and optimizer, up or down."""
    return _against_usual(s.run, 1 / HIGH, HIGH)


def rate_far_below_usual(s: Symptoms) -> Sign:
    """The peak rate is no more than three hundredths of what is usual for this kind of model, width and optimizer; where config does not name
    the optimizer, of the lowest that is usual with any, in a run whose loss does not fall: who tunes a trained model takes such rates, too."""
    r, lowest = recipe(s.run), of_width(WIDEST)
    if rate_shape.still_warming(s.run):
        return cannot_tell("the log breaks off in the warmup, and does not say how high the rate was to go.")
    if trained_before.begins_trained(s.run):
        return does_not_arise("the model knew from the first on what it trains on, and tuning a trained one takes low rates.")
    if not r.rate or r.rate > LOW * lowest or named(s.run) or tuned(s.run):
        return _against_usual(s.run, 0.0, math.nextafter(LOW, 1.0))
    text = f"The peak learning rate of {r.rate:.3g} is {r.rate / lowest:.2g} times the lowest that is usual with any optimizer and model ({lowest:.2g})"
    if not s.of(plateau.Facts, severity=["warning"]):
        return cannot_tell(f"config does not say whether a trained model is tuned, which takes such rates: {text[0].lower()}{text[1:]}.")
    return seen(f"{text}.", where=_rate_place(s.run))


def rate_zero_throughout(s: Symptoms) -> Sign:
    """Every logged value of the rate is exactly zero."""
    rate = series(s.run, "lr")
    if rate is None or not rate.usable.any():
        return cannot_tell(f"{NOT_LOGGED}.")
    x, where = rate.value[rate.usable], rate.place(s.run, int(np.flatnonzero(rate.usable)[0]))
    if x.any():
        return absent(f"The logged learning rate reaches {x.max():.3g}.", where=where)
    if any("console" in f.format for f in s.run.sources if f.path in rate.source):
        return cannot_tell("the console prints the learning rate as 0, which may be its rounding.")
    text = f"All {len(x)} logged values of the learning rate are zero."
    return seen(text, where=where, first=int(rate.step[0]), last=int(rate.step[-1]))


def rate_high_at_trouble(s: Symptoms) -> Sign:
    """The first trouble begins with the rate at seven tenths of its peak or more."""
    return _at_trouble(s, high=True)


def rate_fallen_at_trouble(s: Symptoms) -> Sign:
    """The first trouble begins when the rate had fallen below seven tenths of its peak."""
    return _at_trouble(s, high=False)


def no_warmup(s: Symptoms) -> Sign:
    """The rate is at its peak from the first steps on, and so high that a model with attention needs a warmup (Goyal et al., arXiv 1706.02677)."""
    if found := s.of(warmup.Facts):
        return seen(f"{found[0].title}.", found, first=found[0].first_step)
    r = recipe(s.run)
    if r.warmup is None or r.rate is None:
        return cannot_tell(f"{NOT_LOGGED}, and config does not say {'how long it warms up' if r.warmup is None else 'how high it is'}.")
    if _warmed(s.run, r.warmup):
        return absent(f"{_warming(r.warmup)}.", where=_warmup_place(s.run))
    if tuned(s.run):
        return does_not_arise("the model was trained before (config), and no usual rate is known for tuning it.")
    if not r.attention:
        return cannot_tell("config does not say that the model has attention, and others need no warmup.")
    if (reach.first(s.run) or 0) > warmup.STEPS:
        return cannot_tell(f"the first steps were not logged: the log begins at step {reach.first(s.run)}.")
    return absent(f"{_warming(r.warmup)}, and its peak of {r.rate:.3g} needs none.", where=_warmup_place(s.run))


def warmup_present(s: Symptoms) -> Sign:
    """The rate warms up over ten steps and one percent of the run, or more."""
    steps = recipe(s.run).warmup
    if steps is None:
        return cannot_tell(f"{NOT_LOGGED}, and config does not say how long it warms up.")
    return (seen if _warmed(s.run, steps) else absent)(f"{_warming(steps)}.", where=_warmup_place(s.run))


def trouble_in_first_tenth(s: Symptoms) -> Sign:
    """The first trouble begins in the first tenth of the run."""
    found = trouble(s.findings)
    first, last = reach.first(s.run), reach.last(s.run)
    if not found or first is None or last is None:
        return does_not_arise(f"{NONE}.")
    length, step = max(last, planned_steps(s.run) or 0) - first, found[0].first_step or 0
    if length <= 0:
        return does_not_arise("the run has no length: all values stand at one step.")
    share = (step - first) / length
    text = f"The trouble begins at step {step}, after {max(share, 0):.0%} of the run."
    return seen(text, found[:1], first=step) if 0 <= share <= EARLY else absent(text, found[:1])


def _warming(steps: float) -> str:
    if not steps:
        return "The learning rate has no warmup"
    return f"The learning rate warms up over {steps:.0f} step{'' if steps == 1 else 's'}"


def _against_usual(run: Run, low: float, high: float) -> Sign:
    """SEEN from `low` times the usual on and below `high`, and ABSENT outside, whatever the model is where that is not known."""
    r, known = recipe(run), usual(run)
    if not r.rate:
        return cannot_tell("neither log nor config says the learning rate.")
    most_of_tuned = (r.usual or 0) * (ADAPTERS if tuned_by_adapters(run) else 1)
    if known.low is None and low >= FAR and tuned(run) and family(run) == "adam" and most_of_tuned and r.rate >= FAR * most_of_tuned:
        text = f"The peak learning rate of {r.rate:.3g} is {r.rate / most_of_tuned:.0f} times what is usual where such a model is trained from the start"
        text = f"{text} ({r.usual:.2g})" if most_of_tuned == r.usual else f"{text} with adapters ({ADAPTERS:.0f} times {r.usual:.2g})"
        return seen(f"{text}, and one that is tuned takes no more.", where=_rate_place(run))
    if known.low is None or known.high is None:
        return cannot_tell(f"{known.why}.") if known.missing else does_not_arise(f"{known.why}.")
    least, most = r.rate / known.high, r.rate / known.low
    where = _rate_place(run)
    text = f"The peak learning rate of {r.rate:.3g} is {_beside_usual(run, known.low, known.high, r.rate)}."
    if low <= least and most < high:
        return seen(text, where=where)
    return absent(text, where=where) if most < low or least >= high else cannot_tell(f"{known.why}.")


def _beside_usual(run: Run, low: float, high: float, rate: float) -> str:
    if low == high:
        return f"{rate / low:.3g} times the usual {low:.2g} {'of SGD' if family(run) == 'sgd' else 'for such a model and optimizer'}"
    if low < rate < high:
        return f"among the rates that are usual with this optimizer, {low:.2g} to {high:.2g} by the model"
    end, bound = ("highest", high) if rate >= high else ("lowest", low)
    return f"{rate / bound:.3g} times the {end} that is usual with this optimizer for any model ({bound:.2g})"


def _rate_place(run: Run) -> str:
    """Where the peak rate stands: in the log, else in the config."""
    shape, rate, told = rate_shape.shape(run), series(run, "lr"), settings.setting(run, "lr")
    if shape is not None and rate is not None:
        rows = np.flatnonzero(rate.usable & (rate.step == shape.peak_step))
        return rate.place(run, int(rows[0])) if len(rows) else ""
    return told.where if told is not None else ""


def _warmup_place(run: Run) -> str:
    told = settings.setting(run, "warmup_steps")
    return _rate_place(run) if rate_shape.shape(run) is not None or told is None else told.where


def _warmed(run: Run, steps: float) -> bool:
    """As the detector has it: ten steps and one percent of the plan."""
    return steps > 0 and steps >= max(warmup.STEPS, warmup.SHARE * (planned_steps(run) or 0))


def _at_trouble(s: Symptoms, *, high: bool) -> Sign:
    """Where the rate stood at the first trouble, against its peak."""
    shape, rate, found = rate_shape.shape(s.run), series(s.run, "lr"), trouble(s.findings)
    if shape is None or rate is None:
        return cannot_tell(f"{NOT_LOGGED}.")
    if not found:
        return does_not_arise(f"{NONE}.")
    step = found[0].first_step or 0
    rows = np.flatnonzero(rate.usable & (rate.step <= step))
    if not len(rows):
        return cannot_tell(f"the learning rate was not logged before step {step}, where the trouble begins.")
    share, where = float(rate.value[rows[-1]]) / shape.peak, rate.place(s.run, int(rows[-1]))
    fallen = share < NEAR_PEAK and shape.peak_step < step
    rising = "" if share >= NEAR_PEAK or fallen else " and rising"
    text = f"The trouble begins at step {step}, with the learning rate at {share:.0%} of its peak of {shape.peak:.3g}{rising}."
    if (share >= NEAR_PEAK) if high else fallen:
        return seen(text, found[:1], where=where, first=step)
    return absent(text, found[:1], where=where)
