"""A detector's, sign's, cause's or format's page in the terminal: its docstring or its file, which is the documentation."""

from __future__ import annotations

import inspect
from collections.abc import Iterable
from types import ModuleType

import parsers
from forensics.causes.files import NOTHING, Cause, causes
from forensics.causes.weigh import NONE, PRIOR, weights
from forensics.errors import ForensicsError
from forensics.published import incidents
from forensics.rules import detectors, further_causes, id_of
from forensics.signs.sign import looks
from parsers import names

METRICS = "metrics"


def index() -> str:
    """Every id with its title: symptoms, causes, signs, formats."""
    kinds = {
        "Symptoms": _titles(detectors()),
        "Causes": [*((c.id, c.title) for c in causes().values() if c.id != NOTHING), *_titles(further_causes())],
        "Signs, which causes reason from": [(name, title(look.__doc__)) for name, look in looks().items()],
        "Formats": _titles(parsers.modules()),
    }
    width = max(len(name) for rows in kinds.values() for name, _ in rows)
    lines = [line for heading, rows in kinds.items() for line in (f"{heading}:", *(f"  {name:<{width}} {text}" for name, text in rows), "")]
    return "\n".join([*lines, "`forensics explain ID` prints one of them, `forensics explain metrics` the canonical names of metrics."])


def page(topic: str) -> str:
    """The page of one id. Raises ForensicsError for an id that does not exist."""
    pages = {
        c.id: "\n\n".join([c.title, *(f"{name}\n    {text}" for name, text in [*sections(c), *_seen_before(c.id)])])
        for c in causes().values()
    }
    pages |= {name: look.__doc__ or "" for name, look in looks().items()}
    pages |= {id_of(m): m.__doc__ or "" for m in (*detectors(), *further_causes(), *parsers.modules())}
    if topic == METRICS:
        return _metrics()
    if topic in pages:
        return f"{topic}: {inspect.cleandoc(pages[topic])}"
    import difflib

    near = difflib.get_close_matches(topic, pages, 3)
    raise ForensicsError(
        f"no detector, sign, cause or format is called {topic}", f"Near: {', '.join(near)}" if near else "`forensics explain` lists all."
    )


def _metrics() -> str:
    """Every canonical name of a metric, with its meaning and unit."""
    named = names.vocabulary()
    width = max(map(len, named))
    return "\n".join(f"{name:<{width}} {what}{f' ({unit})' if unit else ''}" for name, (what, unit) in named.items())


def sections(c: Cause) -> list[tuple[str, str]]:
    """(heading, text) of a cause's page, with its learned weights in decibans where a sign is seen and where it is absent."""
    told = weights()

    def listed(names: tuple[str, ...]) -> str:
        worth = [(n, told.get((c.id, n), NONE)) for n in names]
        shown = [f"{n} ({w.seen:+g}, absent {w.absent:+g})" if w.absent else f"{n} ({w.seen:+g})" for n, w in worth if w != NONE]
        return ", ".join(shown) or "no sign that has shown a weight"

    effects = "; ".join(" with ".join(e.signs) + (f" unless {' or '.join(e.unless)}" if e.unless else "") for e in c.explains)
    start = told.get((c.id, PRIOR), NONE).seen
    parts = [
        ("What it is", c.about),
        ("What it explains", f"{effects}. Without one of them it is not weighed." if effects else ""),
        ("How it is weighed", f"It starts at {start:+g}. For it: {listed(c.for_)}. Against it: {listed(c.against)}."),
        ("What settles it", " Or: ".join(c.settle)),
        ("Folklore", c.folklore),
    ]
    return [(heading, text) for heading, text in parts if text]


def _seen_before(cause: str) -> list[tuple[str, str]]:
    """Recorded incidents that fit a cause, each with its source."""
    told = [f"{i.sentence}\n    {i.source}" for i in incidents.of_cause(cause)]
    return [("Seen before", "\n    ".join(told))] if told else []


def _titles(modules: Iterable[ModuleType]) -> list[tuple[str, str]]:
    return [(id_of(m), title(m.__doc__)) for m in modules]


def title(doc: str | None) -> str:
    return (doc or "").strip().splitlines()[0] if doc else ""
