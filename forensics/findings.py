"""The findings of one detector among those of a run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

from forensics.case import BaseFacts, Finding

F = TypeVar("F", bound=BaseFacts)
ALL, GRAVE = ("info", "warning", "critical"), ("warning", "critical")


def findings_of(findings: Sequence[Finding[Any]], *facts: type[F], severity: Sequence[str] = ALL, traps: bool = False) -> list[Finding[F]]:
    """The findings that have these ``Facts``, in step order. What only looks like a spike (class ``not_a_spike``) with `traps` only."""
    found = [f for f in findings if f.severity in severity and isinstance(f.facts, facts)]
    found = [f for f in found if traps or getattr(f.facts, "class_", "") != "not_a_spike"]
    return sorted(found, key=lambda f: (f.first_step is None, f.first_step or 0))


SETTINGS = ("warmup", "config_change")  # a setting is no effect: where it was made, nothing had gone wrong yet
FILES = ("checkpoint_state", "checkpoint_damage")  # what lies in a file says nothing of the step at which something went wrong


def began(findings: Sequence[Finding[Any]], but: Sequence[str] = ()) -> int | None:
    """The first step at which something had gone wrong, apart from findings of the kinds `but`; None where no finding names one."""
    known = [f for f in findings if f.severity in GRAVE and f.first_step is not None and f.kind not in but]
    effects = [f for f in known if f.kind not in (*SETTINGS, *FILES)]
    return min((f.first_step for f in effects or known if f.first_step is not None), default=None)
