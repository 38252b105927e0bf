"""What the loss did around a jump: what it was before, where it went after, and whether evaluation turned with it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from forensics.case import Finding
from forensics.detectors import loss_spike, lr_schedule, train_eval_gap
from forensics.ledger import GRAVE, Findings, findings_of
from forensics.run.series import series
from parsers.tables import Run

BELOW = 0.9  # of the first loss
LONG, FALLEN = 0.2, 0.75  # share of the run at the full rate, share of the first loss: it trained well before


def trained_well(run: Run, step: int) -> str:
    """What to say where the loss had fallen for long at the full rate before `step`; empty where it had not.

    At least a fifth of the run and fifty values beyond the peak of the rate, with a loss down by a quarter of its first level.
    """
    s, shape = series(run, "loss.train"), lr_schedule.shape(run)
    if s is None or shape is None:
        return ""
    before = s.value[(s.step >= shape.peak_step) & (s.step < step) & np.isfinite(s.value)]
    length = int(s.step.max() - s.step.min())
    if len(before) < 50 or step - shape.peak_step < LONG * length:
        return ""
    first, level = float(np.median(s.value[:5])), float(np.median(before[-15:]))
    if not 0 < level <= FALLEN * first:
        return ""
    return f"The run trained well for {step - shape.peak_step} steps at its peak rate (loss down from {first:.3g} to {level:.3g})."


def learns_on(run: Run, diverged: Sequence[Finding], spikes: Sequence[Finding]) -> str:
    """A jump after which the loss falls again is another level, not a divergence. Empty where it is none."""
    s = series(run, "loss.train")
    jump = next(
        (
            f
            for f in spikes
            if f.facts.class_ == "non_recovering" and abs(f.facts.start - (diverged[0].first_step or 0)) <= 20 * (s.interval if s else 1)
        ),
        None,
    )
    if s is None or jump is None:
        return ""
    after = s.value[(s.step >= jump.facts.peak) & s.alive & np.isfinite(s.value)]
    if len(after) < 20:
        return ""
    top, last = float(np.median(after[:5])), float(np.median(after[-max(len(after) // 10, 5) :]))
    if last - jump.facts.level < 0.6 * (top - jump.facts.level):
        return f"After the jump the loss falls again, from {top:.3g} to {last:.3g}: learning goes on at another level."
    return ""


def over_at_once(run: Run, spikes: Sequence[Finding]) -> str:
    """A step to a level well below the first loss, with no further rise: no divergence climbs so. Empty where it is none."""
    s = series(run, "loss.train")
    for f in spikes:
        if s is None or f.facts.class_ not in ("non_recovering", "not_a_spike") or not np.isfinite(f.facts.top):
            continue
        after = s.value[(s.step >= f.facts.start) & s.alive & np.isfinite(s.value)]
        if len(after) < 40:
            continue
        level, first = f.facts.level, float(np.median(s.value[:5]))
        early, late = float(np.median(after[2:12])), float(np.median(after[-max(len(after) // 5, 10) :]))
        if late - level <= 1.15 * (early - level) and level < late < BELOW * first:
            return f"After the step the loss rises no further ({early:.3g}, then {late:.3g}), and stays below its first level."
    return ""


def state_hit(run: Run, spikes: Sequence[Finding]) -> Finding | None:
    """A jump within two values, out of a trained state, to above the first loss, which takes long to decay: weights were hit.

    Data from another world cost a model about what guessing costs; only a state that is confidently wrong costs more.
    """
    s = series(run, "loss.train")
    for f in spikes:
        if s is None or f.facts.class_ not in ("non_recovering", "slow") or f.facts.top != f.facts.top:
            continue
        first = float(np.median(s.value[:3]))
        at_once = f.facts.peak - f.facts.start <= 2 * s.interval
        if at_once and f.facts.level < 0.5 * first and f.facts.top > 1.1 * first:
            return f
    return None


def turned_with_training(run: Run, findings: Findings) -> list[Finding]:
    """Spikes of the training loss that begin between the best evaluation and the next one: then it was no slow turn."""
    held = series(run, "loss.eval")
    gap = findings_of(findings, train_eval_gap.Facts)
    if not gap or held is None:
        return []
    best = gap[0].facts.best_step
    after = held.step[held.alive & (held.step > best)]
    if not len(after):
        return []
    spikes = findings_of(findings, loss_spike.Facts, severity=GRAVE)
    return [f for f in spikes if best < f.facts.start <= int(after[0]) and f.facts.class_ != "fast"]
