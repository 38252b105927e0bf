"""The spikes that signs speak of, and what there is to say where a run has none."""

from __future__ import annotations

import math

import numpy as np

from forensics.case import Finding
from forensics.detectors import divergence, loss_spike, spike_data
from forensics.findings import GRAVE
from forensics.run.series import Floats
from forensics.run.usable_values import interval, lacking, metric
from forensics.signs.sign import Sign, Symptoms, cannot_tell, does_not_arise
from forensics.spikes.excursions import WARMUP

Spike = Finding[loss_spike.Facts]
NEAR = 20  # not critical: logged intervals between a jump and the turn that the levels of the detector of divergence see there
AT_ONCE = 2  # logged intervals from the first high value to the peak: a step may fall between two logged ones
LEAST = WARMUP + 2  # values of the loss that the detector needs


def grave(s: Symptoms) -> list[Spike]:
    """Those worth a warning."""
    return _finite(s.of(loss_spike.Facts, severity=GRAVE))


def _finite(found: list[Spike]) -> list[Spike]:
    """Without what is no jump but only a value that is not finite, which the signs of such values speak of."""
    return [f for f in found if math.isfinite(f.facts.top) or f.facts.peak > f.facts.start]


def of_note(s: Symptoms) -> list[Spike]:
    """The grave ones; where there are none the small ones; else bumps at regular distances that data explain."""
    behind = {step for f in s.of(spike_data.Facts) for step in f.facts.steps}
    return grave(s) or _finite(s.of(loss_spike.Facts)) or [f for f in s.of(loss_spike.Facts, traps=True) if f.facts.start in behind]


def not_finite(s: Symptoms) -> list[Spike]:
    """Those that are only a value that is not finite, which the signs of such values rest on."""
    jumps = s.of(loss_spike.Facts, severity=GRAVE)
    kept = _finite(jumps)
    return [f for f in jumps if f not in kept]


def with_turns(s: Symptoms, spikes: list[Spike]) -> list[Finding]:
    """The spikes, and where the loss turns round at one of them: one event."""
    near = NEAR * interval(s.run)
    turns = [f for f in s.of(divergence.Facts) if any(abs(f.facts.start - spike.facts.start) <= near for spike in spikes)]
    return [*spikes, *turns]


def highest(spikes: list[Spike]) -> Spike:
    """The one that stands out most from the noise."""
    return max(spikes, key=lambda f: f.facts.noise_sigmas)


def peaks_at_once(s: Symptoms, f: Spike) -> bool:
    return f.facts.peak - f.facts.start <= AT_ONCE * interval(s.run)


def heights(s: Symptoms, f: Spike, end: int) -> Floats:
    """The values of a spike until a step, above the level before it."""
    logged, facts = metric(s.run), f.facts
    if logged is None:
        return np.zeros(0)
    x: Floats = next((v for a, _, v in logged.attempts(facts.start, end - 1) if a == facts.attempt), np.zeros(0)) - facts.level
    finite: Floats = x[np.isfinite(x)]
    return finite


def none(s: Symptoms) -> Sign:
    """There is no spike whose shape could be told."""
    why = lacking(s.run, LEAST)
    return cannot_tell(why) if why else does_not_arise("the loss has no spike, so there is no shape of one to tell.")
