"""A loss that lies below what the wrong answers beside it cost."""

from __future__ import annotations

import math

import numpy as np

from forensics.run import settings
from forensics.run.evaluations import classes, shares
from forensics.run.series import Floats, Series, names, series
from forensics.signs.loss_beside_hits import CLEAR, LEAST, WHOLE
from forensics.signs.sign import Sign, Symptoms, absent, cannot_tell, does_not_arise, seen
from parsers.lazy_regex import lazy_re
from parsers.loss_names import is_likelihood
from parsers.tables import Run

SUBJECT = "loss_beside_hits"  # the other half of it
PAIR = 2  # bound: two evaluations, of which one may be a slip of the log
FEWER = 0.25  # unit: half of the hits that guessing between two gives
_OTHER_COUNT = lazy_re(r"(?i)exact|subset|balanced|macro|mean_?class|iou|knn|probe|retrieval|seq|sentence|top_?[2-9]|@[2-9]")
_OTHER_LOSS = lazy_re(r"(?i)focal|hinge|multi_?label|sigmoid|poly_?loss|contrastive|triplet|infonce")


def loss_too_low_for_its_misses(s: Symptoms) -> Sign:
    """Evaluation loss lies below what its wrong answers cost alone: who names a wrong class gives the right one half at most, so that each miss
    costs ln 2 or more. Then the loss is no mean over the answers that are counted: it is weighted by class, divided twice, or of other samples."""
    loss, hits = series(s.run, "loss.eval"), series(s.run, "acc.eval")
    if loss is None or hits is None:
        return cannot_tell("evaluation loss and accuracy were not both logged.")
    if why := _another_objective(s.run, loss, hits):
        return does_not_arise(why)
    both, i, j = np.intersect1d(loss.step[loss.usable], hits.step[hits.usable], return_indices=True)
    if len(both) < PAIR:
        return cannot_tell(f"evaluation loss and accuracy were not logged together {PAIR} times.")
    x, share = loss.value[loss.usable][i], shares(hits.value[hits.usable])[j]
    if _yes_or_no(x, share):
        return does_not_arise(f"{loss.tag} begins as guesses between yes and no do, of which {hits.tag} would count half as right.")
    below = (1 - share) * math.log(2) - x
    worst = int(np.argmax(below))
    text = f"{loss.tag} is {x[worst]:.3g} at step {both[worst]}, where {share[worst]:.1%} of the answers are right"
    text += f"; the others alone cost {(1 - share[worst]) * math.log(2):.3g} or more"
    if (below > CLEAR).sum() < PAIR:
        return absent(f"{text}.")
    where = loss.place(s.run, int(np.flatnonzero(loss.usable)[i[worst]]))
    return seen(f"{text}.", where=where, first=int(both[np.flatnonzero(below > CLEAR)[0]]), last=int(both[-1]))


def loss_below_probabilities(s: Symptoms) -> Sign:
    """Training or evaluation loss comes below ln(e + classes - 1) - 1, the least that a cross entropy of probabilities can be: it is given logits."""
    n = classes(s.run)
    logged = [p for p in (series(s.run, "loss.train"), series(s.run, "loss.eval")) if p is not None and p.usable.sum() >= LEAST]
    if n is None or not logged:
        return cannot_tell("the number of classes is not known." if n is None else f"fewer than {LEAST} losses were logged.")
    floor = math.log(math.e + n - 1) - 1
    p, lowest = min(((p, float(np.sort(p.value[p.usable])[LEAST - 1])) for p in logged), key=lambda x: x[1])
    text = f"{p.tag} comes down to {lowest:.3g}; of probabilities of {n:.0f} classes a cross entropy is {floor:.3g} at least."
    return seen(text, where=p.place(s.run, 0)) if lowest < floor - WHOLE else absent(text)


def _another_objective(run: Run, loss: Series, hits: Series) -> str:
    """Why the loss is no cross entropy of the answers that the accuracy counts."""
    if any(name.startswith(("rl.", "pref.", "gan.")) for name in names(run, LEAST)):
        return "a policy, a preference or a generator is trained, whose loss is no cross entropy of answers."
    if not is_likelihood(loss.tag) or _OTHER_COUNT.search(hits.tag) or (loss.value < 0).any():
        return f"{loss.tag} need not be the cross entropy of the answers that {hits.tag} counts."
    if any(_OTHER_LOSS.search(f"{x.key}={x.value}") for x in settings.every(run)):
        return "config names a loss that costs less than a cross entropy."
    return ""


def _yes_or_no(loss: Floats, share: Floats) -> bool:
    """Whether the loss begins at ln 2 with next to no hits: it is of each of several questions, where those are counted whose answers are all right."""
    return bool(np.any((np.abs(loss[:LEAST] - math.log(2)) <= WHOLE) & (share[:LEAST] < FEWER)))
