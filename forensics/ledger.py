"""Weighs one cause: a list of clues whose weights anyone can add up by hand.

Weights are decibans: +10 makes the cause ten times likelier than "something not on our list", -10 ten times less so.
Every cause starts with a prior below zero, because each single cause is rarer than all unlisted ones together.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from forensics.case import Clue, Finding, Hypothesis


def prior_clue(prior: float) -> Clue:
    """Where a cause starts from, in decibans: how common it is, against all causes that no rule is for."""
    share = 10 ** (-prior / 10)
    times = {2: "half", 3: "a third", 4: "a quarter", 5: "a fifth"}.get(round(share), f"1/{round(share)}")
    return Clue(f"Prior: how common this cause is ({times} as common as all unlisted causes together).", prior)


class Ledger:
    """Collects the clues of one cause, in the order in which a reader should weigh them."""

    def __init__(self, prior: float) -> None:
        self._clues = [prior_clue(prior)]

    def add(self, weight: float, text: str, findings: Iterable[Finding] = ()) -> None:
        self._clues.append(Clue(text, weight, tuple(f.id for f in findings)))

    def cannot_tell(self, text: str) -> None:
        """Something that would have weighed in, had it been logged: shown, and weighs nothing."""
        self._clues.append(Clue("Cannot tell: " + text, 0.0))

    def hypothesis(
        self, module: str, title: str, *, settle: str, interventions: Sequence[str], steps: tuple[int | None, int | None] = (None, None)
    ) -> Hypothesis:
        """`module`: the cause's ``__name__``; its last part is the cause id."""
        return Hypothesis(module.rsplit(".", 1)[-1], title, tuple(self._clues), settle, tuple(interventions), steps)


def of(
    findings: Sequence[Finding], kind: str, *, severity: Sequence[str] = ("info", "warning", "critical"), traps: bool = False
) -> list[Finding]:
    """The findings of one detector, in step order; what only looks like a spike (class ``not_a_spike``) with `traps` only."""
    found = [f for f in findings if f.kind == kind and f.severity in severity]
    found = [f for f in found if traps or f.facts.get("class") != "not_a_spike"]
    return sorted(found, key=lambda f: (f.first_step is None, f.first_step or 0))


def overflowed(findings: Sequence[Finding]) -> Finding | None:
    """The gradient norm that became infinite, not NaN, while every logged loss is finite."""
    dead = of(findings, "nonfinite")
    if any(f.facts["metric"] != "grad.norm" for f in dead):
        return None
    return next((f for f in dead if f.facts["infinite"]), None)


def span(findings: Sequence[Finding]) -> tuple[int | None, int | None]:
    """First and last step that a set of findings covers."""
    firsts = [f.first_step for f in findings if f.first_step is not None]
    lasts = [f.last_step if f.last_step is not None else f.first_step for f in findings]
    known = [x for x in lasts if x is not None]
    return (min(firsts) if firsts else None, max(known) if known else None)
