"""What a look at a program comes to, and where that stands."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from forensics.source.program import Site

FAULT, RIGHT, UNKNOWN = "fault", "right", "unknown"


@dataclass(frozen=True)
class Answer:
    """`text`: one sentence that names file and line where there is a place; `line`: that line of the source."""

    state: str
    text: str
    where: str = ""
    line: str = ""


def fault(at: Site, text: str) -> Answer:
    """The thing is wrong there. `text` goes on from the place: 'steps the optimizer, and ...'."""
    return Answer(FAULT, f"{at.where} {text}", at.where, at.module.text(at.node))


def right(at: Site, text: str) -> Answer:
    """The thing is there and done right."""
    return Answer(RIGHT, f"{at.where} {text}", at.where, at.module.text(at.node))


def unknown(text: str) -> Answer:
    """Begins with what is missing."""
    return Answer(UNKNOWN, text)


def one_of(found: list[Answer], otherwise: str) -> Answer:
    """A fault if there is one, else what is done right, else unknown."""
    for state in (FAULT, RIGHT, UNKNOWN):
        for a in found:
            if a.state == state:
                return a
    return unknown(otherwise)


def is_constant(node: ast.AST | None, *values: object) -> bool:
    return isinstance(node, ast.Constant) and any(node.value is v for v in values)


def keyword(call: ast.AST, name: str) -> ast.expr | None:
    """The value of a keyword argument."""
    return next((k.value for k in getattr(call, "keywords", ()) if k.arg == name), None)
