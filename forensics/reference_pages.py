"""A detector's, cause's or format's page in the terminal: its docstring, which is the documentation."""

from __future__ import annotations

import inspect

import parsers
from forensics.errors import ForensicsError
from forensics.rules import id_of, modules

KINDS = (("detectors", "Symptoms"), ("causes", "Causes"))
FORMATS = "Formats"


def index() -> str:
    """Every id with its title: symptoms, causes, formats."""
    lines = []
    for kind, heading in KINDS:
        lines.append(f"{heading}:")
        lines += [f"  {id_of(m):<26} {title(m.__doc__)}" for m in modules(kind)]
        lines.append("")
    lines.append(f"{FORMATS}:")
    lines += [f"  {id_of(m):<26} {title(m.__doc__)}" for m in parsers.modules()]
    return "\n".join([*lines, "", "`forensics explain ID` prints one of them."])


def page(topic: str) -> str:
    """The docstring of a detector, a cause or a format. Raises ForensicsError for an id that does not exist."""
    pages = {id_of(m): m for m in [*(m for kind, _ in KINDS for m in modules(kind)), *parsers.modules()]}
    if topic in pages:
        return f"{topic}: {inspect.cleandoc(pages[topic].__doc__ or '')}"
    import difflib

    known = list(pages)
    near = difflib.get_close_matches(topic, known, 3)
    raise ForensicsError(
        f"no detector, cause or format is called {topic}", f"Near: {', '.join(near)}" if near else "`forensics explain` lists all."
    )


def title(doc: str | None) -> str:
    return (doc or "").strip().splitlines()[0] if doc else ""
