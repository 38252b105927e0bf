"""Weighs the causes: signs that were measured times weights that were learned, as clues that anyone can add up by hand.

Weights are decibans: +10 makes a cause ten times likelier than "something not on our list", -10 ten times less so. They stand in
weights.csv, which ``make fit`` writes (benchmarks/fit); a sign without a weight there has shown none.
"""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

from forensics.case import Clue, Finding, Hypothesis
from forensics.causes.files import NOTHING, Cause, causes
from forensics.certainty import UNNAMED
from forensics.findings import GRAVE
from forensics.signs.sign import ABSENT, CANNOT_TELL, SEEN, Sign

PRIOR, UNEXPLAINED = "prior", "unexplained"  # rows of the weights that are no signs


@dataclass(frozen=True)
class Weight:
    """Decibans of a sign for one cause, where it was seen and where it was looked for and absent."""

    seen: float
    absent: float

    def of(self, sign: Sign) -> float:
        return {SEEN: self.seen, ABSENT: self.absent}.get(sign.state, 0.0)


NONE = Weight(0.0, 0.0)
TELLING = 1.0  # decibans: what could have made a cause a quarter likelier is missed, what could not is not
MOST_TOLD = 2  # effects that the first clue quotes: it has to stay a sentence


@cache
def weights() -> dict[tuple[str, str], Weight]:
    """(cause, sign) -> weight."""
    text = resources.files("forensics.causes").joinpath("weights.csv").read_text("utf-8")
    rows = csv.DictReader(text.splitlines())
    return {(r["cause"], r["sign"]): Weight(float(r["seen"]), float(r["absent"] or 0)) for r in rows}


def start(cause: str) -> float:
    """Decibans from which a cause starts where its effects were seen, against all causes that no rule is for."""
    return weights().get((cause, PRIOR), NONE).seen


def _start(cause: str, effects: Sequence[Sign]) -> Clue:
    """The first clue: what was seen, and how often this was the cause where that was."""
    weight = start(cause)
    times = 10 ** (abs(weight) / 10)
    share = "as common as" if f"{times:.2g}" == "1" else f"{times:.2g} times as common as" if weight >= 0 else f"1 in {times:.2g} of"
    seen = " ".join(dict.fromkeys(e.text for e in effects[:MOST_TOLD]))
    text = f"{seen} Where that is seen, this cause is {share} all unlisted causes together."
    return Clue(text, weight, tuple(dict.fromkeys(f.id for e in effects for f in e.findings)))


def weigh(signs: dict[str, Sign], findings: Sequence[Finding[Any]], saved: dict[str, Any] | None = None) -> list[Hypothesis]:
    """The causes of which an effect was seen, with their clues, not yet ranked; ``saved``: numbers of the checkpoints that there are, for
    what to do."""
    return [_weighed(c, signs, findings, saved or {}) for c in causes().values() if c.id != NOTHING and c.effects(signs)]


def _weighed(cause: Cause, signs: dict[str, Sign], findings: Sequence[Finding[Any]], saved: dict[str, Any]) -> Hypothesis:
    effects = [signs[n] for n in cause.effects(signs)]
    clues = [_start(cause.id, effects), *of_signs(cause, signs)]
    left = unexplained(cause, signs, findings)
    if left and (weight := weights().get((cause.id, UNEXPLAINED), NONE).seen):
        clues.append(Clue(f"It does not explain this: {left[0].title}.", weight, tuple(f.id for f in left[:3])))
    seen = [*effects, *(signs[n] for n in cause.for_ if signs[n].state == SEEN)]
    numbers: dict[str, Any] = dict(saved)
    for sign in seen:
        numbers = {**sign.numbers, **numbers}
    if {"start", "peak"} <= numbers.keys():
        numbers["window"] = window(numbers["start"], numbers["peak"])
    rests_on = [f for sign in effects for f in sign.findings]
    do = [text for sign in seen for text in sign.do]
    kind = str(numbers.get("kind") or (UNNAMED if cause.names_symptom else ""))
    return Hypothesis(
        cause.id,
        f"{cause.title}: {kind}" if kind else cause.title,
        tuple(clues),
        next(iter(filled(cause.settle, numbers)), ""),
        tuple(dict.fromkeys([*do, *filled(cause.interventions, numbers)]))[:4],
        span(rests_on),
    )


def window(first: Any, last: Any) -> str:
    return f"step {first}" if first == last else f"steps {first} to {last}"


def of_signs(cause: Cause, signs: dict[str, Sign]) -> list[Clue]:
    """What the signs of a cause say in this run, heaviest first; then what could not be told and would have weighed in."""
    told = [(weights().get((cause.id, n), NONE), signs[n]) for n in cause.signs]
    weighty = [Clue(sign.text, w.of(sign), tuple(f.id for f in sign.findings)) for w, sign in told if w.of(sign)]
    missing = [sign.text for w, sign in told if sign.state == CANNOT_TELL and sign.missing and max(abs(w.seen), abs(w.absent)) >= TELLING]
    return [*sorted(weighty, key=lambda c: -abs(c.weight)), *(Clue(f"Cannot tell: {text}", 0.0) for text in dict.fromkeys(missing))]


def unexplained(cause: Cause, signs: dict[str, Sign], findings: Sequence[Finding[Any]]) -> list[Finding[Any]]:
    """The critical findings that none of the cause's signs rests on."""
    told = {f.id for n in (*cause.for_, *cause.effects(signs)) if signs[n].state == SEEN for f in signs[n].findings}
    return [f for f in findings if f.severity == GRAVE[-1] and f.id not in told]


def filled(texts: Sequence[str], numbers: dict[str, Any]) -> list[str]:
    """Sentences with numbers in braces, without those whose numbers were not measured."""
    out = []
    for text in texts:
        try:
            out.append(text.format_map(numbers))
        except (KeyError, IndexError, ValueError, TypeError):  # not measured in this run
            continue
    return out


def span(findings: Sequence[Finding[Any]]) -> tuple[int | None, int | None]:
    """First and last step that a set of findings covers."""
    firsts = [f.first_step for f in findings if f.first_step is not None]
    lasts = [x for f in findings if (x := f.last_step if f.last_step is not None else f.first_step) is not None]
    return (min(firsts) if firsts else None, max(lasts) if lasts else None)
