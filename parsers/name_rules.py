"""The rules of ``names.toml``, and how a pattern of theirs is looked for."""

from __future__ import annotations

import re
import tomllib
from functools import cache
from pathlib import Path
from typing import Any

LONGEST = 300  # characters of a name that are looked at; names are shorter, damage and prose are not


@cache
def data() -> dict[str, Any]:
    """``names.toml``: "rule", "vocabulary", "framework", "context", "loss"."""
    with Path(__file__).with_name("names.toml").open("rb") as file:
        known = tomllib.load(file)
    for rule in known["rule"]:
        if isinstance(rule["when"], list):
            rule["when"] = "|".join(rule["when"])
    return known


_TOKEN = re.compile(r"\\.|\[\^?\]?[^\]]*\]|\{[^}]*\}|[()|?*+^$.]|[^\\\[{()|?*+^$.]+")


def found(pattern: str, text: str, flags: int = 0) -> bool:
    """Whether ``pattern`` matches somewhere. There are hundreds, most match nothing in a run, and compiling one takes a
    millisecond: so first whether the plain text that an alternative of it needs is there at all."""
    return any(
        all(piece in text for piece in pieces) and regex(alternative, flags).search(text) is not None
        for alternative, pieces in alternatives(pattern)
    )


@cache
def alternatives(pattern: str) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """The alternatives at the top of ``pattern``, each with the pieces of plain text that every match of it holds."""
    parts: list[tuple[str, list[str]]] = [("", [])]
    depth, ended = 0, True
    for token in _TOKEN.findall(pattern):
        plain = token[1] if token[0] == "\\" and not token[1].isalnum() else token
        if token == "|" and not depth:
            parts.append(("", []))
            ended = True
            continue
        text, pieces = parts[-1]
        parts[-1] = (text + token, pieces)
        depth += (token == "(") - (token == ")")
        if depth or token == ")" or token[0] in "^$.+[" or (token[0] == "\\" and plain == token):
            ended = True
        elif token[0] in "?*{":  # what stands before may be absent
            if not ended:
                pieces[-1] = pieces[-1][:-1]
            ended = True
        else:
            pieces[len(pieces) - (not ended) :] = [plain if ended else pieces[-1] + plain]
            ended = False
    return tuple((text, tuple(filter(None, pieces))) for text, pieces in parts)


@cache
def regex(pattern: str, flags: int = 0) -> re.Pattern[str]:
    """The compiled pattern."""
    return re.compile(pattern, flags)
