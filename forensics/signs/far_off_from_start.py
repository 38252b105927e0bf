"""A regression that begins absurdly far off: the first error against how widely the targets scatter."""

from __future__ import annotations

from forensics.run.scores import scores
from forensics.run.series import names
from forensics.signs.held_out_chance import eval_at_chance_throughout
from forensics.signs.sign import SEEN, Sign, Symptoms, absent, cannot_tell, does_not_arise, seen

SUBJECT = "held_out"  # a part of it
EFFECTS = {"far_off_from_start": "score.eval"}  # a symptom of its own, for which there is no detector

TIMES = 100.0  # unit: of the variance; an error ten times as wide as the targets, which none has that predicts their mean, or zero for centred ones


def far_off_from_start(s: Symptoms) -> Sign:
    """The first R2 says that the error is a hundred times the variance of the targets and more, and no later one is better than their mean: inputs or
    weights are of an absurd size, and the run was spent on undoing it. Targets far from zero begin so, too, and are learnt."""
    if any(name.startswith("rl.") for name in names(s.run)):
        return does_not_arise("the values of a policy are no targets that stand still.")
    told = [c for c in scores(s.run) if c.rises and c.guess == 0.0 and c.value.min() < 0]
    if not told:
        return cannot_tell("no R2 of held-out data was logged.")
    c = min(told, key=lambda c: float(c.value[0]))
    text = f"{c.tag} is {c.value[0]:.4g} at first: the error is {1 - c.value[0]:.3g} times the variance of the targets"
    text += f"; at the best of {len(c.value)} evaluations it is {c.value.max():.3g}"
    never = eval_at_chance_throughout(s).state == SEEN
    if 1 - c.value[0] < TIMES or not never:
        return absent(f"{text}.")
    return seen(f"{text}.", where=c.logged.place(s.run, 0), first=int(c.step[0]), last=int(c.step[-1]))
