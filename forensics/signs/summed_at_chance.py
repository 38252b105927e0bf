"""A loss that stands at a whole multiple of what guessing costs, while the answers are no better than guesses."""

from __future__ import annotations

import math

from forensics.detectors.plateau import LEVEL, NEAR_CHANCE
from forensics.run import loss_factor
from forensics.run.evaluations import outcomes, shares
from forensics.run.robust import median
from forensics.run.series import names, series
from forensics.run.usable_values import last_level, usable
from forensics.signs.held_out_chance import GUESSED
from forensics.signs.sign import Sign, Symptoms, absent, cannot_tell, does_not_arise, seen

SUBJECT = "logged_wrongly"  # a part of it
EFFECTS = {"loss_stands_at_multiple_of_guess": "loss.train"}  # a symptom of its own, for which there is no detector

LEAST = 4  # bound: accuracies, as the plateau detector wants them
HALF = 0.5  # bound: the share of right answers of a coin


def loss_stands_at_multiple_of_guess(s: Symptoms) -> Sign:
    """The training loss ends at n ln(K), n a batch size, accumulation or length that config sets, and the share of right answers stands at 1/K all along:
    the sum over n guesses where their mean was meant, and updates so large that nothing was learnt."""
    if any(name.startswith(("rl.", "pref.", "gan.")) for name in names(s.run, LEAST)):
        return does_not_arise("a policy, a preference or a generator is trained.")
    factors, (step, x) = loss_factor.candidates(s.run), usable(s.run, "loss.train")
    logged = [a for name in ("acc.eval", "acc.train") if (a := series(s.run, name)) is not None and a.usable.sum() >= LEAST]
    if not factors or not logged or len(x) < LEAST:
        return cannot_tell("a factor that config sets, an accuracy and a training loss were not all logged.")
    a = logged[0]
    hits = shares(a.value[a.usable])
    middle, end = median(hits), last_level(x)
    k = outcomes(s.run) or round(1 / middle) if 0 < middle <= HALF else 0
    text = f"The training loss ends at {end:.4g}, and {a.tag} is {middle:.3g} in the median and {hits.max():.3g} at most"
    ends = [median(hits[:LEVEL]), median(hits[-LEVEL:])]
    if k < 2 or not all(1 / GUESSED <= h * k <= GUESSED for h in (middle, *ends)):
        return absent(f"{text}.")
    for f in factors:
        among = (
            k if outcomes(s.run) else round(math.exp(min(end / f.value, 20.0)))
        )  # the loss tells it to more digits than a few hundred answers
        guess = math.log(max(among, 2))
        if abs(math.log(max(among, 2) * middle)) <= math.log(GUESSED) and abs(end / (f.value * guess) - 1) <= NEAR_CHANCE:
            text += f": {f.value} times ln({among:.0f}), and {f.says} is {f.value}"
            return seen(f"{text}.", where=f.where, first=int(step[0]), last=int(step[-1]))
    return absent(f"{text}, no multiple of a guess that config sets.")
