"""Values that are NaN or infinite before training can have made them so, in the first updates of a run, that no sample can have made so, or that do
not reach the weights."""

from __future__ import annotations

import numpy as np

from forensics.case import Finding
from forensics.detectors import nonfinite
from forensics.run import plan
from forensics.run.series import series
from forensics.run.usable_values import lacking, metric
from forensics.signs.not_finite import routine
from forensics.signs.sign import Sign, Symptoms, absent, cannot_tell, does_not_arise, seen

SUBJECT = "not_finite"  # the other half of it

# Updates: one logging interval of ten, the most usual one. Adam has moved a weight by ten times the rate at most (arXiv 1412.6980, 2.1),
# which is 0.01 at the usual 1e-3, and most warmups have hardly begun
FEW_UPDATES = 10
UPDATES = 3  # bound: an evaluation may come before the first update that its NaN made


def nan_in_first_updates(s: Symptoms) -> Sign:
    """Loss or gradient norm is not finite from its first value on, and that comes after ten updates at most: too early for an ordinary rate."""
    found = [f for f in s.of(nonfinite.Facts) if f.facts.first is not None and _counts(s, f)]
    if not found:
        why = lacking(s.run, 1) if metric(s.run) is None else ""
        return cannot_tell(why) if why else does_not_arise("neither loss nor gradient norm is NaN and stays so.")
    first = min(found, key=lambda f: f.facts.first or 0)
    step = first.facts.first or 0
    if not first.facts.at_start:
        return absent(f"Finite values come before the first that is not, at step {step}.", [first])
    if plan.counts_epochs(s.run) or plan.unit(s.run) == "epoch":
        return cannot_tell("the updates before the first logged value are not known: it is that of a whole epoch.")
    if step > FEW_UPDATES:
        return absent(f"The first logged value that is not finite is that of step {step}: many updates may come before it.", [first])
    text = f"Nothing finite comes before step {step}, where {first.title[0].lower()}{first.title[1:]}: hardly an update had been made."
    return seen(text, found, first=step, last=first.facts.last)


def _counts(s: Symptoms, f: Finding[nonfinite.Facts]) -> bool:
    """A loss that stays NaN; a gradient norm, too, where no loss scale makes infinite ones as a matter of routine."""
    loss = f.facts.metric.startswith(("loss", "ppl")) and not f.facts.metric.endswith(".eval")
    return f.facts.recovered is False and (loss or (f.facts.metric == "grad.norm" and not routine(s.run)))


def gradient_nan_at_first_step(s: Symptoms) -> Sign:
    """The first gradient norm is not finite while its loss is, and the loss is not from the next value on: the backward pass began it."""
    norm, loss = series(s.run, "grad.norm"), metric(s.run)
    if norm is None or loss is None:
        return cannot_tell(f"the {'gradient norm' if norm is None else 'loss'} was not logged.")
    if why := routine(s.run):
        return does_not_arise(why)
    step = int(norm.step[0])
    if np.isfinite(norm.value[0]):
        return absent(f"The first gradient norm, of step {step}, is finite ({norm.value[0]:.3g}).", where=norm.place(s.run, 0))
    at = np.flatnonzero(loss.step == step)
    if not len(at):
        return cannot_tell(f"no loss was logged at step {step}, where the first gradient norm is not finite.")
    later = loss.value[loss.step > step]
    if np.isfinite(loss.value[at[0]]) and len(later) and not np.isfinite(later).any():
        found = [f for f in s.of(nonfinite.Facts) if f.facts.metric == "grad.norm"][:1]
        told = f"the loss is {loss.value[at[0]]:.4g} and the gradient norm {norm.value[0]}"
        text = f"At step {step}, the first in the log, {told}; from the next value on the loss is not finite."
        return seen(text, found, where=norm.place(s.run, 0), first=step, last=int(loss.step[-1]))
    how = "goes on finite" if np.isfinite(later).any() else "is not finite either"
    return absent(f"The first gradient norm, of step {step}, is not finite, and the loss {how}.", where=norm.place(s.run, 0))


def weights_outlive_nan(s: Symptoms) -> Sign:
    """The loss stays NaN, and every evaluation behind its third value that is NaN is finite: no update of it reached the weights. So it is where no
    target counts, for a mean over none is NaN and its gradient zero (torch.nn.functional.cross_entropy), or where every update is skipped."""
    stays = [f for f in s.of(nonfinite.Facts) if f.facts.recovered is False and f.facts.metric == "loss.train"]
    loss, held_out = series(s.run, "loss.train"), series(s.run, "loss.eval")
    if not stays or loss is None:
        return does_not_arise("no training loss stays NaN.")
    found, first = stays[0], stays[0].facts.first or 0
    broken = loss.step[(loss.step >= first) & ~np.isfinite(loss.value)]
    after = held_out.value[held_out.step > broken[UPDATES - 1]] if held_out is not None and len(broken) >= UPDATES else np.zeros(0)
    if not len(after):
        return cannot_tell("no evaluation loss was logged behind the NaN of the training loss.")
    if not np.isfinite(after).all():
        return absent(f"{found.title}, and evaluations after it are not finite either.", [found])
    norm = series(s.run, "grad.norm")
    still = norm is not None and (norm.step > first).any() and not norm.value[norm.step > first].any()
    count = f"all {len(after)} evaluations after it are" if len(after) > 1 else "the evaluation after it is"
    text = f"{found.title}, and {count} finite{', the gradient norm exactly zero' if still else ''}"
    return seen(f"{text}: the weights are not NaN.", [found], first=first, last=found.facts.last)
