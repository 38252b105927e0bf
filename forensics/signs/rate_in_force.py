"""The rate that the log shows beside the one that config asks for."""

from __future__ import annotations

import math
import re

from forensics.detectors import lr_schedule, peak_rate, plateau
from forensics.run import settings
from forensics.run.configured_rate import CYCLES
from forensics.run.series import Series, series
from forensics.run.usable_values import begins_late, first_level, lacking, last_level, usable
from forensics.signs.sign import Sign, Symptoms, absent, cannot_tell, does_not_arise, seen
from parsers.tables import Run

SUBJECT = "learning_rate"  # the third part of it
EFFECTS = {"rate_above_configured": "lr"}  # a symptom of its own, for which there is no detector
TIMES, LIKE = 2.0, 0.05  # unit: twice; two rates are one within so much, of which one was printed with two digits
NEAR = 0.1  # of the warmup; the peak is read off at 99 % of it
REFERENCE = 256  # samples: rates are given for a batch of so many and scaled with it (Goyal et al., arXiv 1706.02677)
_RATE = re.compile(r"(?i)(^|[^a-z])(lr|eta0?|lrs|learning_?rates?)([^a-z]|$)")
_OF_RATE = re.compile(
    r"(?i)frac|ratio|share|steps|iters|epochs|patience|threshold|power|gamma|mult|scal|factor|decay|schedul|warmup|anneal"
)  # none is a rate
_SCALED = re.compile(
    r"(?i)(^|[^a-z])(blr|mup)([^a-z]|$)|(lr|rate)_?(mult|scal|factor|decay|layer)|(mult|scal)\w{0,20}(lr|rate)|layer_?decay|find|noam|cycl|prodigy|adapt|auto"
)


def rate_above_configured(s: Symptoms) -> Sign:
    """The warmup that config names leads to twice the highest rate that config names, or more, no factor that config names (batch,
    accumulation, processes) makes up for it, and the loss falls by less than half: what trains is not what was asked for, and learns little.
    Cycles, and schedules without a warmup in steps, may begin below their peak."""
    shape, rate = lr_schedule.shape(s.run), series(s.run, "lr")
    if shape is None or rate is None:
        return cannot_tell("the learning rate was not logged.")
    every = [x for x in settings.every(s.run) if _RATE.search(x.key) and not _OF_RATE.search(x.key)]
    told = [(n, x) for x in every if (n := settings.as_number(x.value)) is not None and n > 0]
    asked = settings.setting(s.run, "lr")
    if asked is None or not told:
        return cannot_tell("config does not name the learning rate.")
    highest, setting = max(told, key=lambda t: t[0])
    text = f"The learning rate peaks at {shape.peak:.3g}; config asks for {highest:.3g} ({setting.key})"
    if shape.peak < TIMES * highest:
        return absent(f"{text}.", where=setting.where)
    if meant := _meant(s.run, shape, rate, shape.peak / highest):
        return does_not_arise(f"{meant}: {text[0].lower()}{text[1:]}.")
    if why := lacking(s.run, plateau.LEAST_VALUES, "loss.train") or begins_late(s.run):
        return cannot_tell(why)
    x = usable(s.run, "loss.train")[1]
    first, last = first_level(x), last_level(x)
    told_loss = f", and the loss goes from {first:.4g} to {last:.4g}"
    if last <= peak_rate.FELL * first:
        return absent(f"{text}{told_loss}.", where=setting.where)
    return seen(
        f"{text}, which is {shape.peak / highest:.3g} times less{told_loss}.",
        where=setting.where,
        first=int(rate.step[0]),
        last=int(rate.step[-1]),
    )


def _meant(run: Run, shape: lr_schedule.Shape, rate: Series, factor: float) -> str:
    """Why a peak above the configured rate may be meant, in words."""
    warmup, schedule = settings.number(run, "warmup_steps"), settings.setting(run, "schedule")
    kind = "" if schedule is None else str(schedule.value).lower()
    if not warmup or abs(shape.warmup - warmup) > max(NEAR * warmup, 2 * rate.interval):
        return "config names no warmup that ends at this peak, so that its rate may be another point of the schedule"
    if lr_schedule.restarts(rate) or any(c in kind for c in CYCLES):
        return "the rate goes in cycles, whose height is their own"
    if any(_SCALED.search(text) for text in (kind, *(x.key for x in settings.every(run)))):
        return "config scales rates, or finds them"
    if any(abs(factor / f - 1) <= LIKE for f in _factors(run)):
        return "the rate is scaled with the batch or the processes"
    return ""


def _factors(run: Run) -> list[float]:
    """What rates are multiplied by on purpose: processes, accumulation, the batch over a reference, their products and the roots of them."""
    named = [n for name in ("world_size", "accumulation", "batch_size") if (n := settings.number(run, name)) and n > 0]
    products = [math.prod(x for i, x in enumerate(named) if mask >> i & 1) for mask in range(1, 2 ** len(named))]
    whole = [*products, *(p / REFERENCE for p in products)]
    return [*whole, *(math.sqrt(p) for p in whole)]
