"""A sign: one thing that was looked for in a run, and what became of it. Causes reason from signs and from nothing else.

A sign is a public function ``name(s: Symptoms) -> Sign`` in a module of this folder; the folder is the list. A module measures one
subject (the loss, the gradient, lines of the log ...), so signs of one module are not independent of each other.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, TypeVar

from forensics.case import BaseFacts, Finding
from forensics.findings import ALL, findings_of
from parsers.tables import Run

F = TypeVar("F", bound=BaseFacts)
SEEN, ABSENT, CANNOT_TELL = "seen", "absent", "cannot tell"


@dataclass(frozen=True)
class Sign:
    """What a look at the run came to.

    `text` is one plain sentence with the numbers in it; `where` the file and line that says so, where one does; `numbers` what
    sentences of causes may name in braces (``{step}``); `do` what to do first where just this was seen.
    """

    state: str
    text: str
    findings: tuple[Finding[Any], ...] = ()
    where: str = ""
    numbers: dict[str, Any] = field(default_factory=dict)
    do: tuple[str, ...] = ()
    missing: bool = False  # cannot tell because something was not logged, not because the question does not arise

    @property
    def place(self) -> str:
        """File and line of the sign, or of the first finding that has one."""
        return self.where or next((e.where for f in self.findings for e in f.evidence if e.where), "")


def seen(text: str, findings: Sequence[Finding[Any]] = (), *, where: str = "", do: Sequence[str] = (), **numbers: Any) -> Sign:
    return Sign(SEEN, text, tuple(findings), where, numbers, tuple(do))


def absent(text: str, findings: Sequence[Finding[Any]] = (), *, where: str = "") -> Sign:
    """Looked for, with what would have shown it at hand, and not there. The sentence says what was measured instead."""
    return Sign(ABSENT, text, tuple(findings), where)


def cannot_tell(text: str) -> Sign:
    """Not logged. The sentence begins with what is missing: 'the gradient norm was not logged'."""
    return Sign(CANNOT_TELL, text, missing=True)


def does_not_arise(text: str) -> Sign:
    """The question makes no sense in this run: 'no spike, so nothing to say of its shape'. As little known as what was not logged."""
    return Sign(CANNOT_TELL, text)


@dataclass(frozen=True)
class Symptoms:
    """What signs look at: the run and the findings of its detectors."""

    run: Run
    findings: tuple[Finding[Any], ...]

    def of(self, *facts: type[F], severity: Sequence[str] = ALL, traps: bool = False) -> list[Finding[F]]:
        """The findings that have these ``Facts``, in step order. What only looks like a spike (class ``not_a_spike``) with `traps` only."""
        return findings_of(self.findings, *facts, severity=severity, traps=traps)


Look = Callable[[Symptoms], Sign]


@cache
def looks() -> dict[str, Look]:
    """Every sign by name, module by module."""
    package = importlib.import_module("forensics.signs")
    modules = [importlib.import_module(f"{package.__name__}.{m.name}") for m in pkgutil.iter_modules(package.__path__)]
    return {
        name: f
        for m in modules
        for name, f in vars(m).items()
        if inspect.isfunction(f)
        and f.__module__ == m.__name__
        and not name.startswith("_")
        and list(f.__annotations__.values()) == ["Symptoms", "Sign"]
    }


def subject(name: str) -> str:
    """What a sign is measured on: its module, or the one that its module is the other half of. Two signs of one subject are one observation."""
    module = sys.modules[looks()[name].__module__]
    return str(getattr(module, "SUBJECT", module.__name__.rpartition(".")[2]))


@cache
def effects() -> dict[str, str]:
    """The signs that are symptoms of their own, since no detector looks for them, and what each looks at (a metric or an artefact):
    those that their modules name in ``EFFECTS``."""
    named = {n: at for module in {f.__module__ for f in looks().values()} for n, at in getattr(sys.modules[module], "EFFECTS", {}).items()}
    return {n: named[n] for n in looks() if n in named}


def look(s: Symptoms) -> tuple[dict[str, Sign], dict[str, str]]:
    """Every sign of a run, and the error of each that broke (which costs only itself)."""
    found, broken = {}, {}
    for name, f in looks().items():
        try:
            found[name] = f(s)
        except Exception as e:
            broken[name] = f"{type(e).__name__}: {e}"[:300]
            found[name] = cannot_tell(f"this look failed: {broken[name]}")
    return found, broken
