"""A rate that runs through its first values again after a restart."""

from __future__ import annotations

import numpy as np

from forensics.run.configured_rate import in_cycles
from forensics.run.series import series
from forensics.signs.learning_rate import NOT_LOGGED
from forensics.signs.sign import Sign, Symptoms, absent, cannot_tell, does_not_arise, seen

SUBJECT = "rate_path"  # the other half of it
EFFECTS = {"rate_repeats_after_restart": "lr"}  # a symptom of its own, for which there is no detector

LEAST, DISTINCT = 5, 4  # bound: values that two runs through one schedule share to the last digit; of them, so many that differ
SAME = 1e-6  # relative; unit: single precision, in which most logs write them


def rate_repeats_after_restart(s: Symptoms) -> Sign:
    """From a restart on the rate takes the values with which the run began, one by one, on later steps: the schedule counts from the restart. One in
    cycles does so, too, which config says."""
    rate = series(s.run, "lr")
    if len(s.run.attempts) < 2:
        return does_not_arise("the run was not restarted.")
    if rate is None:
        return cannot_tell(f"{NOT_LOGGED}.")
    if in_cycles(s.run):
        return cannot_tell("config names a schedule that runs in cycles.")
    usable = np.flatnonzero(rate.usable)
    first = rate.value[usable[rate.attempt[usable] == rate.attempt[usable[0]]]] if len(usable) else np.zeros(0)
    told = 0
    for index in dict.fromkeys(rate.attempt[usable].tolist()):
        rows = usable[rate.attempt[usable] == index]
        n = min(len(rows), len(first))
        if rate.step[rows[0]] <= rate.step[usable[0]] or n < LEAST:
            continue
        told += 1
        again = np.isclose(rate.value[rows[:n]], first[:n], rtol=SAME, atol=0)
        same = n if again.all() else int(np.argmin(again))
        if same >= LEAST and len(np.unique(first[:same])) >= DISTINCT:
            step = int(rate.step[rows[0]])
            text = f"From the restart at step {step} on the learning rate takes the {same} values with which the run began"
            text += f", {first[0]:.3g} to {first[same - 1]:.3g}: the schedule counts anew."
            return seen(text, where=rate.place(s.run, int(rows[0])), first=step, last=int(rate.step[rows[same - 1]]))
    if not told:
        return cannot_tell(f"the learning rate was not logged {LEAST} times on both sides of a restart.")
    return absent("After the restarts the learning rate does not take the values again with which the run began.")
