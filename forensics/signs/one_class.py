"""Whether a classifier names one class whatever it sees, by what was logged of each class."""

from __future__ import annotations

import numpy as np

from forensics.run.class_hits import class_hits, class_overlaps
from forensics.run.evaluations import evaluations, shares
from forensics.run.metrics_in_words import probability, worded
from forensics.run.scores import scores
from forensics.run.series import Floats, Series, series
from forensics.signs.held_out_level import ALIKE
from forensics.signs.sign import Sign, Symptoms, absent, cannot_tell, seen
from parsers import loss_names
from parsers.lazy_regex import lazy_re
from parsers.name_rules import words
from parsers.tables import Run

EFFECTS = {"one_class_gets_all": "score.eval"}  # a symptom of its own, for which there is no detector
ALL, NONE = 0.98, 0.02  # unit: all but one in fifty, and one in fifty: what a model does that hardly ever names another class
# of held-out data a share of positives that goes to nothing is that of the answers
_POSITIVES = r"\bpred(icted|ictions?|s)? (pos(itive)?s?|true|ones?|fg|foreground)( (rate|share|frac(tion)?|ratio))?$|^(val|valid|validation|eval|test|dev) pos(itive)?s? (rate|share|frac(tion)?|ratio)$"
_NAMED = r"\b((n|num|number|count|distinct|unique)( of)?( distinct| unique)?( classes)? pred(icted|ictions?|s)?|pred(icted|ictions?|s)? (n |num )?(distinct|unique|classes|labels))\b(?!.*\b(rate|share|frac|loss|acc)\b)"
_FOUND = r"(?<!at )\b(recall|sensitivity|tpr|f 1)( score)?$"  # of the positives
SAME = 1e-3  # unit: the third digit, in which a log may round; a ranking by chance scatters by more, one that has no order by nothing
AT_CHANCE = 0.5  # unit: the AUC of a ranking that knows nothing
HALF = 0.5  # unit: of the first evaluation loss; what still falls by less may be at its beginning
_F1 = lazy_re(r"\bf 1\b")
TWICE, MOST_CLASSES = 2, 20  # bound: evaluations; classes, over which a mean of F1 scores is such a share by chance once in 50
MOST_ARE = 0.5  # bound: of the answers are right, so that the positives that are missed are the fewer
_OVERLAP = (
    r"^(?!.*\b(best|max|loss|std)\b)(.*\b((mean|avg|average|macro) (dice|iou|jaccard)|m ?(dice|iou)|m io u|(dice|iou|jaccard) (score )?(mean|avg|average|macro))"
    r"|((val(id(ation)?)?|eval|test|dev) )?(dice|iou|jaccard)( (score|index|coef(ficient)?))?)$"
)


def one_class_gets_all(s: Symptoms) -> Sign:
    """In the later half of the evaluations all samples of one class are found and none of the others; or no answer is positive, or every one; or
    of one kind none is ever found while the loss of the evaluations halves; or the F1 score is that of one answer to all; or nothing that is no background was segmented; or the count of classes that are predicted is one; or the ranking has no order at all, an AUC of 0.5 to the digit."""
    groups, overlaps = (
        [of for of in told if min(int(p.usable.sum()) for p in of) >= ALIKE] for told in (class_hits(s.run), class_overlaps(s.run))
    )
    # a mean that never was above nothing may be of answers and labels that do not fit each other
    means = [[p] for p in worded(s.run, _OVERLAP) if int(p.usable.sum()) >= ALIKE and p.value[p.usable].max() > NONE]
    for of in [*overlaps, *means]:
        most = max(float(_late(p).max()) for p in of)
        if most <= NONE:
            told = f"All {len(of)} overlaps ({of[0].tag} and on) are" if len(of) > 1 else f"{of[0].tag} is"
            text = f"{told} {most:.2g} at most from step {_since(of[0])} on: all is background."
            return seen(text, where=of[0].place(s.run, 0), first=_since(of[0]), last=int(of[0].step[-1]))
    for of in groups:
        whole = [bool((_late(p) >= ALL).all()) for p in of]
        empty = [p for p in of if (_late(p) <= NONE).all()]
        if sum(whole) == 1 and len(empty) == len(of) - 1:
            p = of[whole.index(True)]
            text = f"{p.tag} is {_late(p)[-1]:.3g} and {empty[0].tag} {_late(empty[0])[-1]:.3g}, and so since step {_since(p)}."
            return seen(text, where=p.place(s.run, 0), first=_since(p), last=int(p.step[-1]))
    if (named := _one_named(s.run) or _by_f1(s.run)) is not None:
        return named
    if (share := _share_of_positives(s.run, [*overlaps, *means])) is not None:
        return share
    found = [p for p in worded(s.run, _FOUND) if p.usable.sum() >= ALIKE]
    held_out = [
        p for p in found if loss_names.EVAL.search(words(p.tag))
    ]  # a mean over an epoch has the first steps, of another model, in it
    found = held_out or found
    right = next((a for a in (series(s.run, "acc.eval"), series(s.run, "acc.train")) if a is not None and a.usable.sum() >= ALIKE), None)
    # where no answer is positive, the share of right ones is that of the negatives, each time
    same = right is not None and shares(_late(right)).min() > MOST_ARE and float(np.ptp(shares(_late(right)))) <= SAME
    if found and right is not None and same and not any((p.value[p.usable] > 0).any() for p in found):
        text = f"{found[0].tag} is 0 in all {int(found[0].usable.sum())} values, and {right.tag} {_late(right)[-1]:.3g}: no answer is positive."
        return seen(text, where=found[0].place(s.run, 0), first=int(found[0].step[0]), last=int(found[0].step[-1]))
    if (none := _none_found(s.run, held_out)) is not None:
        return none
    for c in (c for c in scores(s.run) if c.guess == AT_CHANCE and len(c.value) >= ALIKE):
        if (np.abs(c.value[len(c.value) // 2 :] - AT_CHANCE) <= SAME / 100).all():
            text = f"{c.tag} is {c.value[-1]:g} at each of the last evaluations: no answer is above another."
            return seen(text, where=c.logged.place(s.run, 0), first=int(c.step[len(c.step) // 2]), last=int(c.step[-1]))
    for of in [*groups, *overlaps]:
        return absent(f"No class of {len(of)} gets all samples, as {of[0].tag} says.")
    return cannot_tell("the hits of each class were not logged.")


def _none_found(run: Run, held_out: list[Series]) -> Sign | None:
    """Of some kind nothing is found at any evaluation while the loss of the evaluations falls to half: what is learnt is to answer the others."""
    step, loss = evaluations(run)
    if len(loss) < ALIKE or loss[-1] > HALF * loss[0]:
        return None
    for p in (p for p in held_out if not p.value[p.usable][1:].any()):  # at the first an untrained model answers at random
        which = "all but the first of" if p.value[p.usable][0] else "all"
        text = f"{p.tag} is 0 in {which} {int(p.usable.sum())} values, while the evaluation loss goes from {loss[0]:.3g} to {loss[-1]:.3g}"
        return seen(f"{text}.", where=p.place(run, 0), first=int(p.step[0]), last=int(step[-1]))
    return None


def _share_of_positives(run: Run, overlaps: list[list[Series]]) -> Sign | None:
    """No answer is positive, or every one; a rare class may be all found with few positives, which its overlap tells."""
    share = probability(worded(run, _POSITIVES))
    if share is None or share.usable.sum() < ALIKE:
        return None
    x = _late(share)
    text = f"{share.tag} is {x.min():.3g} to {x.max():.3g} from step {_since(share)} on"
    if (found := next((p for of in overlaps for p in of if float(_late(p).min()) > NONE), None)) is not None:
        return absent(f"{text}, and {found.tag} {_late(found).min():.3g} or more: what there is of it is found.")
    if (x <= NONE).all() or (x >= 1 - NONE).all():
        return seen(f"{text}.", where=share.place(run, 0), first=_since(share), last=int(share.step[-1]))
    return absent(f"{text}.")


def _one_named(run: Run) -> Sign | None:
    """The count of classes that are predicted is one."""
    counts = (p for p in worded(run, _NAMED) if p.usable.sum() >= ALIKE)
    p = next((p for p in counts if (_late(p) == 1).all()), None)
    return (
        None if p is None else seen(f"{p.tag} is 1 from step {_since(p)} on.", where=p.place(run, 0), first=_since(p), last=int(p.step[-1]))
    )


def _by_f1(run: Run) -> Sign | None:
    """The F1 score is what an accuracy a gives over k classes where all answers are one of them: 2a / (1 + a) for that class, 0 for the others, and their mean."""
    hits = series(run, "acc.eval")
    if hits is None:
        return None
    for c in (c for c in scores(run) if _F1.search(words(c.tag))):
        step, i, j = np.intersect1d(hits.step[hits.usable], c.step, return_indices=True)
        if len(step) < TWICE or not (c.value[j] > 0).all():
            continue
        a = shares(hits.value[hits.usable])[i]
        k = (2 * a / (1 + a) / shares(c.value)[j])[len(step) // 2 :]
        n = round(float(k[-1]))
        if 2 <= n <= MOST_CLASSES and (np.abs(k - n) <= SAME / 2 * n).all():
            text = f"{c.tag} is {c.value[-1]:.4g} at an accuracy of {a[-1]:.4g}: what one answer to all gives over {n} classes, 2a / (1 + a) / {n}."
            return seen(text, where=c.logged.place(run, 0), first=int(step[len(step) // 2]), last=int(step[-1]))
    return None


def _late(p: Series) -> Floats:
    """The later half of the values."""
    x = p.value[p.usable]
    return x[len(x) // 2 :]


def _since(p: Series) -> int:
    step = p.step[p.usable]
    return int(step[len(step) // 2])
