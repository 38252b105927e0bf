"""A detector's or cause's page in the terminal: its docstring, which is the documentation."""

from __future__ import annotations

import inspect

from forensics.errors import ForensicsError
from forensics.pipeline import id_of, modules

KINDS = (("detectors", "Symptoms"), ("hypotheses", "Causes"))


def index() -> str:
    """Every id with its title, symptoms first."""
    lines = []
    for kind, heading in KINDS:
        lines.append(f"{heading}:")
        lines += [f"  {id_of(m):<26} {title(m.__doc__)}" for m in modules(kind)]
        lines.append("")
    return "\n".join([*lines, "`forensics explain ID` prints one of them."])


def page(topic: str) -> str:
    """The docstring of a detector or cause. Raises ForensicsError for an id that does not exist."""
    for kind, _ in KINDS:
        for module in modules(kind):
            if id_of(module) == topic:
                return f"{topic}: {inspect.cleandoc(module.__doc__ or '')}"
    import difflib

    known = [id_of(m) for kind, _ in KINDS for m in modules(kind)]
    near = difflib.get_close_matches(topic, known, 3)
    raise ForensicsError(
        f"no detector or cause is called {topic}",
        f"Near: {', '.join(near)}" if near else "`forensics explain` lists all.",
    )


def title(doc: str | None) -> str:
    return (doc or "").strip().splitlines()[0] if doc else ""
