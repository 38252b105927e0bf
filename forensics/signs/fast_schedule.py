"""A schedule that runs too fast: the warmup is over long before config ends it."""

from __future__ import annotations

import numpy as np

from forensics.run import plan, settings
from forensics.run.configured_rate import CYCLES
from forensics.run.series import series
from forensics.signs.learning_rate import NOT_LOGGED
from forensics.signs.sign import Sign, Symptoms, absent, cannot_tell, does_not_arise, seen
from forensics.signs.slow_schedule import FEW, TWICE

SUBJECT = "learning_rate"  # the other half of it
EFFECTS = {"warmup_ends_early": "lr"}  # a symptom of its own, for which there is no detector

ALIKE = 0.25  # share by which a factor misses the accumulation: one value in between two that were logged


def warmup_ends_early(s: Symptoms) -> Sign:
    """The rate is at its peak before half of the configured warmup: a scheduler that is stepped for each micro-batch or each process. Told where the
    steps of the log are those of config: the run reached its planned length in them, or the factor is that of the accumulation."""
    lr, told = series(s.run, "lr"), settings.setting(s.run, "warmup_steps")
    length = settings.as_number(told.value) if told is not None else None
    if lr is None or lr.usable.sum() < FEW:
        return cannot_tell(f"{NOT_LOGGED}." if lr is None else f"fewer than {FEW} learning rates were logged.")
    if told is None or length is None or length <= 1:
        return cannot_tell("config does not say how many steps the warmup takes.")
    kind = settings.setting(s.run, "schedule")
    if plan.unit(s.run) == "epoch" or len(s.run.attempts) > 1 or (kind is not None and any(c in str(kind.value).lower() for c in CYCLES)):
        return does_not_arise("the log counts epochs, the run was restarted, or the schedule begins again by itself.")
    step, x = lr.step[lr.usable], lr.value[lr.usable]
    top = int(np.argmax(x))
    over = int(step[min(top + 1, len(step) - 1)])  # by then: the peak may lie behind the highest rate that was logged
    text = f"The warmup of the learning rate is over by step {step[top]}, and config gives it {length:g} steps ({told.where})"
    if top == 0 or over >= length / TWICE:
        return absent(f"{text}.", where=lr.place(s.run, top))
    factor, accumulation = length / max(int(step[top]), 1), settings.number(s.run, "accumulation") or 1
    if not plan.reached(s.run) and abs(accumulation / factor - 1) > ALIKE:
        return cannot_tell("whether the log counts the steps that config means is not known: the run did not reach its plan in them.")
    return seen(
        f"{text}: the schedule runs some {factor:.2g} times too fast.", where=lr.place(s.run, top), first=int(step[0]), last=int(step[top])
    )
