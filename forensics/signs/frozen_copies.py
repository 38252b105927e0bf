"""Evaluations of a copy of the model that training does not reach: averaged weights, a target, another process's model."""

from __future__ import annotations

import numpy as np

from forensics.run.inputs import is_policy
from forensics.run.series import parts, series
from forensics.run.usable_values import WORDS, first_level, lacking, last_level, usable
from forensics.run.weight_norms import as_logged, digits
from forensics.signs.sign import Sign, Symptoms, absent, cannot_tell, seen
from parsers.loss_names import EVAL
from parsers.name_rules import words

EFFECTS = {"evaluation_never_moves": "loss.eval"}  # a symptom of its own, for which there is no detector

LEAST = 4  # bound: evaluations, as the plateau detector wants them
DIGITS = 5  # significant digits: a loss that moves by a hundred-thousandth of itself shows it
MOVED = 0.1  # share: of the training loss; ten thousand times what the evaluation would have shown


def evaluation_never_moves(s: Symptoms) -> Sign:
    """An evaluation loss, or an evaluated return, is the same number to its last digit in every evaluation, while the training loss (of a policy that of its values)
    moves by a tenth of itself, and what is evaluated is not what is trained; or while it is learnt nowhere, and nothing is trained. Shares of few samples
    repeat themselves and are not asked."""
    trained = "loss.train" if series(s.run, "loss.train") is not None or not is_policy(s.run) else "rl.loss_value"
    if why := lacking(s.run, LEAST, trained):
        return cannot_tell(why)
    held = [*parts(s.run, "loss.eval"), *(p for p in parts(s.run, "rl.reward") if EVAL.search(words(p.tag)))]
    found = [p for p in held if p.usable.sum() >= LEAST and max(map(digits, p.value[p.usable][:LEAST].tolist())) >= DIGITS]
    if not found:
        return cannot_tell(f"fewer than {LEAST} evaluations were logged with {DIGITS} digits.")
    loss = usable(s.run, trained)[1]
    first, last = first_level(loss), last_level(loss)
    told = f"the {WORDS.get(trained, trained).removeprefix('the ')} goes from {first:.4g} to {last:.4g}"
    fixed = [p for p in found if not np.ptp(p.value[p.usable])]
    moves, stuck = abs(last - first) > MOVED * abs(first), last >= first > 0 and np.ptp(loss) > 0
    if not fixed or not (moves or stuck):
        return absent(
            f"Of {len(found)} curves of evaluations {len(fixed)} {'is' if len(fixed) == 1 else 'are'} always the same, while {told}."
        )
    p = fixed[0]
    text = f"{p.tag} is {as_logged(p.value[p.usable][0])} in all {int(p.usable.sum())} evaluations, while {told}"
    others = [q.tag for q in found if q not in fixed]
    beside = f" and {others[0]} moves" if others else ""
    return seen(
        f"{text}{beside}.", where=p.place(s.run, int(np.flatnonzero(p.usable)[0])), first=int(p.step[p.usable][0]), last=int(p.step[-1])
    )
