"""Weighs one cause: a list of clues whose weights anyone can add up by hand.

Weights are decibans: +10 makes the cause ten times likelier than "something not on our list", -10 ten times less so.
Every cause starts with a prior below zero, because each single cause is rarer than all unlisted ones together.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from typing import Any, TypeVar, overload

from forensics.case import BaseFacts, Clue, Finding, Hypothesis

F = TypeVar("F", bound=BaseFacts)
Findings = Sequence[Finding]
ALL, GRAVE = ("info", "warning", "critical"), ("warning", "critical")


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
        self,
        module: str,
        title: str = "",
        *,
        settle: str = "",
        interventions: Sequence[str] = (),
        steps: tuple[int | None, int | None] = (None, None),
    ) -> Hypothesis:
        """`module`: the cause's ``__name__``; its last part is the cause id. What is left out stands in the module as TITLE,
        SETTLE (what would decide it) and INTERVENTIONS (what to do, fast first, invasive last)."""
        cause = sys.modules.get(module)
        settle = settle or getattr(cause, "SETTLE", "")
        do = tuple(interventions or getattr(cause, "INTERVENTIONS", ()))
        return Hypothesis(module.rsplit(".", 1)[-1], title or getattr(cause, "TITLE", ""), tuple(self._clues), settle, do, steps)


@overload
def findings_of(findings: Findings, facts: type[F], *, severity: Sequence[str] = ..., traps: bool = ...) -> list[Finding[F]]: ...
@overload
def findings_of(findings: Findings, facts: str, *, severity: Sequence[str] = ..., traps: bool = ...) -> list[Finding]: ...
def findings_of(findings: Findings, facts: type[BaseFacts] | str, *, severity: Sequence[str] = ALL, traps: bool = False) -> list[Any]:
    """The findings that have these ``Facts`` (or are of this detector: one of another package), in step order.

    What only looks like a spike (class ``not_a_spike``) with `traps` only.
    """
    mine = (lambda f: f.kind == facts) if isinstance(facts, str) else (lambda f: isinstance(f.facts, facts))
    found = [f for f in findings if f.severity in severity and mine(f)]
    found = [f for f in found if traps or getattr(f.facts, "class_", "") != "not_a_spike"]
    return sorted(found, key=lambda f: (f.first_step is None, f.first_step or 0))


def all_of(findings: Findings, *facts: type[BaseFacts], severity: Sequence[str] = ALL) -> list[Finding[BaseFacts]]:
    """The findings that have any of these ``Facts``, one kind after the other."""
    return [f for each in facts for f in findings_of(findings, each, severity=severity)]


def span(findings: Findings) -> tuple[int | None, int | None]:
    """First and last step that a set of findings covers."""
    firsts = [f.first_step for f in findings if f.first_step is not None]
    lasts = [f.last_step if f.last_step is not None else f.first_step for f in findings]
    known = [x for x in lasts if x is not None]
    return (min(firsts) if firsts else None, max(known) if known else None)
