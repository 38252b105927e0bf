"""Two sets that were held out and evaluated along the way: whether both say the same of what is learnt."""

from __future__ import annotations

from forensics.detectors import train_eval_gap
from forensics.errors import CannotTell
from forensics.run.inputs import surviving
from forensics.run.robust import median
from forensics.run.scores import held_out
from forensics.run.series import parts, series
from forensics.signs.sign import Sign, Symptoms, absent, cannot_tell, seen
from parsers.lazy_regex import lazy_re
from parsers.name_rules import words

SUBJECT = "held_out"  # a part of it
# symptoms of their own, for which there is no detector
EFFECTS = {"second_evaluation_turns_up": "loss.eval", "second_evaluation_stays_behind": "loss.eval"}
FEW = 3  # bound: three values make a median that one odd value does not move
ALIKE = 0.6  # unit: about half of the other, the first evaluation of either is of a model that knows nothing
FOLLOWS, BEHIND = 2.0, 2.5  # measured: of 121 runs with two held-out sets two are so far apart, both for a leak
UP = 1.2  # unit: a fifth above its best; what turns up is for the other look
# shares of the first value; measured: the same two; a sound one that learns both, one better, keeps 0.06 of the other
LEARNT, LEFT = 0.25, 0.4
_TEST = lazy_re(r"\btest\b")


def second_evaluation_turns_up(s: Symptoms) -> Sign:
    """The loss of a second set that is held out turns up while training goes on, as where a model overfits, and that of the first does not: what is
    evaluated first may have been trained on (Kaufman et al., Leakage in data mining, KDD 2011)."""
    held, train = held_out(s.run), series(s.run, "loss.train")
    others = [
        p for p in parts(s.run, "loss.eval") if held is not None and p.tag != held.tag and len(surviving(p)) >= train_eval_gap.LEAST_EVALS
    ]
    if held is None or held.name != "loss.eval" or train is None or not others:
        return cannot_tell("two losses of held-out sets, and the training loss, were not logged along the way.")
    try:
        if train_eval_gap.gap(s.run, held, train) is not None:
            return absent(f"{held.tag} turns up itself.")
        turned = [(p, f) for p in others if (f := train_eval_gap.gap(s.run, p, train)) is not None]
    except CannotTell as e:
        return cannot_tell(f"{e}.")
    turned = [(p, f) for p, f in turned if p.value[surviving(p)][0] >= UP * f.facts.best]  # what was best at first is forgotten
    if not turned:
        return absent(f"Neither {held.tag} nor {others[0].tag} comes down and turns up.")
    p, f = turned[0]
    x = held.value[surviving(held)]
    told = f"{p.tag} is lowest at step {f.facts.best_step} ({f.facts.best:.4g}) and ends at {f.facts.final:.4g}"
    return seen(
        f"{told}, while {held.tag} ends at {x[-1]:.4g}, and {x.min():.4g} is its best.", where=p.place(s.run, 0), first=f.facts.best_step
    )


def second_evaluation_stays_behind(s: Symptoms) -> Sign:
    """Two held-out sets begin alike; the loss of one comes down with that of training, and that of the other stays more than twice as high: the first
    may have been trained on, or the second is of other data."""
    train = series(s.run, "loss.train")
    sets = [*parts(s.run, "loss.eval"), *(p for p in parts(s.run, "loss.part") if _TEST.search(words(p.tag)))]
    sets = [p for p in sets if len(surviving(p)) >= train_eval_gap.LEAST_EVALS]
    if train is None or not train.usable.any() or len({p.tag for p in sets}) < 2:
        return cannot_tell("two losses of held-out sets, and the training loss, were not logged along the way.")
    least = FOLLOWS * median(train.value[train.usable][-FEW:])
    ends = {p.tag: (p, x[0], median(x[-FEW:]), x.min()) for p in sets if (x := p.value[surviving(p)])[0] > 0}
    for one, first, end, _ in ends.values():
        for two, other_first, other_end, best in ends.values():
            alike = ALIKE <= other_first / first <= 1 / ALIKE and end <= min(LEARNT * first, least)
            if alike and other_end >= max(BEHIND * end, LEFT * other_first) and other_end <= UP * best:
                told = f"{one.tag} goes from {first:.4g} to {end:.4g} as training does, and {two.tag} from {other_first:.4g} to {other_end:.4g}"
                return seen(f"{told}: {other_end / end:.1f} times as high.", where=two.place(s.run, 0), first=int(two.step[0]))
    return absent(f"The losses of held-out sets end near each other, or none of them comes down with training: {', '.join(ends)}.")
