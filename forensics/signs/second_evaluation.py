"""Two sets that were held out and evaluated along the way: whether both say the same of what is learnt."""

from __future__ import annotations

from forensics.detectors import train_eval_gap
from forensics.errors import CannotTell
from forensics.run.inputs import surviving
from forensics.run.scores import held_out
from forensics.run.series import parts, series
from forensics.signs.sign import Sign, Symptoms, absent, cannot_tell, seen

SUBJECT = "held_out"  # a part of it
EFFECTS = {"second_evaluation_turns_up": "loss.eval"}  # a symptom of its own, for which there is no detector


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
    if not turned:
        return absent(f"Neither {held.tag} nor {others[0].tag} turns up.")
    p, f = turned[0]
    x = held.value[surviving(held)]
    told = f"{p.tag} is lowest at step {f.facts.best_step} ({f.facts.best:.4g}) and ends at {f.facts.final:.4g}"
    return seen(
        f"{told}, while {held.tag} ends at {x[-1]:.4g}, and {x.min():.4g} is its best.", where=p.place(s.run, 0), first=f.facts.best_step
    )
