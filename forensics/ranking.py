"""Ranks causes: probabilities from sums of decibans, against "something not on our list" at zero.

Three rules hold whatever the weights are, each as a clue of its own, so that the sums still add up: 95 % and more asks for two
independent observations, one of them with file and place; no cause stands at 50 % or more on a run that is not unhealthy, but one that
the log itself names: who stopped the run; and that nothing is wrong at all competes with every cause.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from forensics.case import HELD, Clue, Hypothesis
from forensics.causes.files import NOTHING, UNKNOWN, causes
from forensics.causes.weigh import of_signs, start
from forensics.experiments import settled
from forensics.signs.sign import SEEN, Sign, subject

NOT_LISTED, OR_NOTHING = "Something not on our list", ", or nothing wrong"
SURE, EVEN, HALF = 0.944, 0.45, 0.5  # below the 95 % and the 50 % of the contract, as they are shown; what it allows on a healthy run
EVENED = "Held below 50 %: nothing was seen that the owner of this run should act on."
HALVED = "Held at 50 %: it ended the run, and nothing is wrong with what was logged."
HOLDS = {EVENED: EVEN, HALVED: HALF}
OBSERVATIONS = 2  # independent ones that 95 % asks for: the contract


def unknown(signs: dict[str, Sign] | None = None, dead: bool = False) -> Hypothesis:
    """No cause on our list, the yardstick of all, and no cause because nothing is wrong, which a dead run rules out: their odds
    add up."""
    clues = [Clue("The yardstick: every other cause is weighed against this one.", 0.0)]
    if dead:
        return Hypothesis(UNKNOWN, NOT_LISTED, tuple(clues))
    if signs is not None:
        told = of_signs(causes()[NOTHING], signs)
        score = start(NOTHING) + sum(c.weight for c in told)
        why = " ".join(c.text for c in told if c.weight > 0)[:400]
        gain = round(10 * math.log10(1 + 10 ** (score / 10)), 1)
        clues.append(Clue(f"Nothing may be wrong at all. {why}".strip(), gain, tuple(dict.fromkeys(f for c in told for f in c.findings))))
    return Hypothesis(UNKNOWN, NOT_LISTED + OR_NOTHING, tuple(clues))


def ranked(hypotheses: Sequence[Hypothesis], signs: dict[str, Sign], verdict: str, dead: bool = False) -> tuple[Hypothesis, ...]:
    """The causes of a run, best first, within the rules. `dead`: its process died, or its
    values did."""
    none = unknown(signs, dead)
    held = list(hypotheses)
    if verdict != "unhealthy":
        said = {h.id for h in held if (c := causes().get(h.id)) and any(signs[n].state == SEEN for n in c.said_by)}
        held = _all_held(held, none, {h.id for h in held} - said, EVEN, EVENED)
        if verdict == "healthy":
            held = _all_held(held, none, said, HALF, HALVED)
    return rank([*(_sure(h, signs, [*held, none]) for h in held), none])


def rank(hypotheses: Sequence[Hypothesis]) -> tuple[Hypothesis, ...]:
    """Best first, `unknown` among them (added where it is not); the probabilities sum to 1. What was held stays held. The first two
    name the experiment that separates them."""
    all_of = [*hypotheses, *([] if any(h.id == UNKNOWN for h in hypotheses) else [unknown()])]
    competitors = [_again(h, all_of) for h in all_of]
    odds = [10 ** (h.score / 10) for h in competitors]
    total = sum(odds)
    found = [replace(h, probability=o / total) for h, o in zip(competitors, odds, strict=True)]
    return settled(tuple(sorted(found, key=lambda h: (-round(h.score, 2), h.id))))


def _again(h: Hypothesis, competitors: Sequence[Hypothesis]) -> Hypothesis:
    """A cause that was held, held among these competitors; a replay that spoke for it is the observation that it lacked."""
    held = next((c for c in h.clues if c.part == HELD), None)
    if held is None:
        return h
    free = replace(h, clues=tuple(c for c in h.clues if c is not held))
    if held.text not in HOLDS and any(c.part == "replay" and c.weight > 0 for c in h.clues):
        return free
    return _held(free, competitors, HOLDS.get(held.text, SURE), held.text)


def _sure(h: Hypothesis, signs: dict[str, Sign], competitors: Sequence[Hypothesis]) -> Hypothesis:
    """The cause, held below 95 % where too little was observed for that."""
    cause = causes().get(h.id)
    if cause is None:  # another package's, which answers for itself
        return h
    seen = {n: signs[n] for n in (*cause.effects(signs), *cause.for_) if signs[n].state == SEEN}
    observed = {subject(n) for n in seen}
    placed = any(s.place for s in seen.values())
    if len(observed) >= OBSERVATIONS and placed:
        return h
    lacks = "one observation alone" if len(observed) < OBSERVATIONS else "no observation has a file and a line"
    return _held(h, competitors, SURE, f"Held below 95 %: {lacks}.")


def _all_held(hypotheses: Sequence[Hypothesis], none: Hypothesis, ids: set[str], most: float, text: str) -> list[Hypothesis]:
    """Those of `ids` held at or below `most`, together: what one loses, none of the others may win beyond it."""
    odds = {h.id: 10 ** (h.score / 10) for h in [*hypotheses, none]}
    over: set[str] = set()
    cap = most * sum(odds.values())
    while more := {i for i in ids if odds[i] > cap} - over:
        over |= more
        cap = most / (1 - most * len(over)) * sum(o for i, o in odds.items() if i not in over)
    limit = 10 * math.log10(cap)
    excess = {h.id: h.score - limit for h in hypotheses if h.id in over}
    clue = {i: Clue(text, -math.ceil(x * 1e4) / 1e4, part=HELD) for i, x in excess.items()}
    return [replace(h, clues=(*h.clues, clue[h.id])) if h.id in over else h for h in hypotheses]


def _held(h: Hypothesis, competitors: Sequence[Hypothesis], most: float, text: str) -> Hypothesis:
    """The cause with a clue that keeps its probability at or below `most`, where it would be above."""
    others = sum(10 ** (o.score / 10) for o in competitors if o.id != h.id)
    limit = 10 * math.log10(others * most / (1 - most))
    over = h.score - limit
    return h if over <= 0 else replace(h, clues=(*h.clues, Clue(text, -math.ceil(over * 1e4) / 1e4, part=HELD)))
