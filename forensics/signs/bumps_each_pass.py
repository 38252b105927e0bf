"""High stretches of the loss that come again at even distances: data that are read once in each pass, unless the schedule does it."""

from __future__ import annotations

import numpy as np

from forensics.case import Finding
from forensics.detectors import loss_spike, lr_schedule
from forensics.run.metrics_in_words import worded
from forensics.run.series import series
from forensics.signs.kl_weight import KL_WEIGHT
from forensics.signs.sign import Sign, Symptoms, absent, cannot_tell, does_not_arise, seen
from forensics.spikes.classes import BUMP_DISTANCE

SUBJECT = "spike_shape"  # a part of it
EFFECTS = {"bumps_high_each_pass": "loss.train"}  # a symptom of its own, for which there is no detector

LEAST = 3  # bound: bumps, whose two distances are one
LASTS, APART = 2, 5  # bound: values of a bump, and logging intervals from one to the next: what is shorter alternates
TIMES = 2.0  # unit: twice the level; regions of sound data that are not shuffled differ by less
AT = 2  # logging intervals between a bump and a rate that begins anew


def bumps_high_each_pass(s: Symptoms) -> Sign:
    """Stretches of twice the loss or more come three times or more at even distances, and neither rate nor a loss's weights do."""
    back = [
        f
        for f in s.of(loss_spike.Facts, traps=True)
        if f.facts.end is not None and f.facts.values >= LASTS and f.facts.why in ("", "periodic")
    ]
    high = [f for f in back if f.facts.level > 0 and f.facts.top >= TIMES * f.facts.level]
    if len(high) < LEAST:
        return does_not_arise("the loss does not rise to twice its level and come back three times.")
    apart = np.diff([f.facts.start for f in high])
    loss, rate, weight = series(s.run, "loss.train"), series(s.run, "lr"), next(iter(worded(s.run, KL_WEIGHT)), None)
    every = int(np.median(apart))
    if loss is None or np.ptp(apart) > max(BUMP_DISTANCE * every, AT * loss.interval) or every < APART * loss.interval:
        return absent(f"{len(high)} stretches of twice the loss come at distances of {apart.min()} to {apart.max()} steps.", high[:3])
    if rate is not None and _near(high, [int(rate.step[i]) for i in lr_schedule.restarts(rate)], rate.interval):
        return absent("The bumps come where the learning rate begins anew.", high[:3])
    if weight is not None and np.ptp(weight.value[weight.usable]) > 0:
        return cannot_tell(f"{weight.tag} changes on the way, which lifts the loss, too.")
    tops = ", ".join(f"{f.facts.top:.3g} at step {f.facts.peak}" for f in high[:4])
    text = f"The loss rises every {every} steps, to twice its level and more ({tops}), and comes back each time"
    first, last = int(high[0].facts.start), high[-1].last_step
    return seen(f"{text}: what is read there comes again in each pass.", high[:4], first=first, last=last, period=every)


def _near(bumps: list[Finding[loss_spike.Facts]], begins: list[int], interval: int) -> bool:
    """Whether most bumps begin where something else begins anew."""
    return sum(any(abs(f.facts.start - b) <= AT * interval for b in begins) for f in bumps) * 2 > len(bumps)
