"""What a single tree of a boosted model gave already."""

from __future__ import annotations

import numpy as np

from forensics.run.boosting import boosted
from forensics.run.scores import scores
from forensics.signs.sign import Sign, Symptoms, absent, cannot_tell, does_not_arise, seen

SUBJECT = "held_out"  # a part of it

# unit: one pair in a hundred in the wrong order, which a few leaves do not come to on what has to be learnt; bound: rounds that could do better,
# and half of those pairs, which they leave
SURE, ROUNDS, LEFT = 0.99, 50, 0.5


def ranked_by_first_tree(s: Symptoms) -> Sign:
    """The first round of a boosted model puts 99 of 100 held-out pairs in order (its AUC), and fifty rounds and more do not halve what it gets wrong:
    one feature, or a few, give the target away."""
    if not boosted(s.run):
        return does_not_arise("config names no trees, of which one alone could be judged.")
    found = [p for p in scores(s.run) if p.guess == 0.5 and p.rises and p.step[0] <= 1 and p.value.max() <= 1]
    if not found or len(found[0].value) < ROUNDS:
        return cannot_tell(f"no AUC of held-out data was logged from the first round on, for {ROUNDS} rounds.")
    first, best = float(found[0].value[0]), float(np.max(found[0].value))
    text = f"{found[0].tag} is {first:.4g} after the first round, and {best:.4g} at most in {len(found[0].value)}."
    where = found[0].logged.place(s.run, 0)
    given = first >= SURE and 1 - best >= LEFT * (1 - first)
    return seen(text, where=where, first=int(found[0].step[0])) if given else absent(text, where=where)
