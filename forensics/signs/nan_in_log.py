"""Values that are not finite in the log alone: what was trained on was finite at the same step."""

from __future__ import annotations

import numpy as np

from forensics.detectors import nonfinite
from forensics.run.robust import median
from forensics.run.series import series
from forensics.signs.not_finite import routine
from forensics.signs.sign import Sign, Symptoms, absent, cannot_tell, does_not_arise, seen

SUBJECT = "not_finite"  # another part of it

FEW = 0.05  # of the values; measured on 7 runs: 1.3 % at most where the logger lost them, 6 % at least where data or state made them NaN
NEAR = 5  # bound: values on either side, whose median two odd ones do not move
ORDINARY = 3.0  # bound: times the median of the neighbours, as a calm gradient has it (forensics.detectors.nonfinite)


def nan_beside_ordinary_gradient(s: Symptoms) -> Sign:
    """A loss is NaN in a few rows, and the gradient norm of the very same steps is finite and as large as before and after: a loss that was NaN
    would have made it NaN. Under a loss scale such steps are skipped, and tell nothing; a norm that is that of the row before to the last digit
    was not computed anew, as where a guard skips the step."""
    found = [f for f in s.of(nonfinite.Facts) if f.facts.metric != "grad.norm" and not f.facts.infinite]
    loss = series(s.run, found[0].facts.metric) if found else None
    if loss is None:
        return cannot_tell("no loss is NaN at a step of its own.")
    if why := routine(s.run):
        return does_not_arise(why)
    norm, bad = series(s.run, "grad.norm"), loss.step[np.isnan(loss.value)]
    if norm is None or not np.isin(bad, norm.step).any():
        return cannot_tell(f"the gradient norm was not logged where {loss.tag} is NaN (first at step {bad[0]}).")
    text = f"{loss.tag} is NaN in {len(bad)} of {len(loss)} values (first at step {bad[0]})"
    if len(bad) > FEW * len(loss) or not np.isfinite(loss.value[-1]):
        return absent(f"{text}: more than a logger drops now and then.")
    told = []
    for i in np.flatnonzero(np.isin(norm.step, bad)):
        around = np.r_[norm.value[max(i - NEAR, 0) : i], norm.value[i + 1 : i + 1 + NEAR]]
        usual = median(around) if len(around) and np.isfinite(around).all() else np.nan
        told.append((float(norm.value[i]), usual))
        if i and norm.value[i] == norm.value[i - 1]:
            return absent(
                f"{text}, and the gradient norm at step {norm.step[i]} is that of the row before: the step may have been skipped."
            )
    if all(usual / ORDINARY <= x <= usual * ORDINARY for x, usual in told):  # NaN is in no range
        x, usual = told[0]
        return seen(
            f"{text}, and the gradient norm there is {x:.3g}, as around it ({usual:.3g}).", found, first=int(bad[0]), last=int(bad[-1])
        )
    return absent(f"{text}, and the gradient norm is not as usual there.")
