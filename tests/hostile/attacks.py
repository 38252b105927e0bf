"""Strings made to keep a regular expression busy, derived from the expression itself.

A backtracking matcher is slow where a repeat can end in many places and none of them helps. So each attack is what leads
to a repeat, what the repeat takes, many times, and something that fails behind it. Of the characters one stands for all
that the expression treats alike, so that repeats that overlap are pumped with what both of them take.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from re import _constants as codes  # type: ignore[attr-defined]
from re import _parser as parser  # type: ignore[attr-defined]
from typing import Any

REPEATS = (codes.MAX_REPEAT, codes.MIN_REPEAT, codes.POSSESSIVE_REPEAT)
GROUPS = {codes.SUBPATTERN: 3, codes.ATOMIC_GROUP: None, codes.ASSERT: 1}
LOOSE = 16  # a repeat that may run at least this often is pumped
GENERIC = (" ", "0", "a", "A", "=", ":", "-", "/", ".", ",", '"', "'", "\\", "(", "[", "{", "<", "|", "_", "\t", "\n", "\r", "\x1b", "é", "eyJ", "a.", "a=", "a ",
           "a: ", "0.", "- ", "\\\\", '\\"', "[[", "[]", "({", "=0 ", "a/", "0:", "aA0", "\n ", "\r\n", "://")  # fmt: skip
Takers = Callable[[Any, Any], list[str]]  # of an item of an expression: the chosen characters that it takes
ENDS = ("", "\n\x00", " !")


def attacks(pattern: re.Pattern[Any]) -> Iterator[tuple[str, str, str]]:
    """(prefix, pump, end) to be put together as prefix + pump * n + end."""
    text = pattern.pattern if isinstance(pattern.pattern, str) else pattern.pattern.decode("latin-1")
    tree = parser.parse(text, pattern.flags & ~re.UNICODE if isinstance(pattern.pattern, bytes) else pattern.flags)
    fold = bool(tree.state.flags & re.IGNORECASE)
    chosen = _representatives(tree, fold)
    taken = _takers(chosen, fold)
    seen = set()
    for prefix, body in _repeats(tree, taken):
        for pump in dict.fromkeys(_samples(body, chosen, taken)):
            for before, unit in ((prefix, pump), ("", prefix + pump), (prefix, pump * 2 + prefix)):
                seen.add((before, unit))
    whole = dict.fromkeys(_samples(tree, chosen, taken))
    seen |= {("", w) for w in whole} | {("", w[:-1]) for w in whole} | {("", g) for g in (*GENERIC, *chosen)}
    yield from ((before, unit, end) for before, unit in sorted(seen) if unit for end in ENDS)


def _takers(chosen: list[str], fold: bool) -> Takers:
    """Remembers what each item takes: it is asked for thousands of times. The expression's tree outlives the memory."""
    known: dict[tuple[Any, int], list[str]] = {}

    def taken(op: Any, value: Any) -> list[str]:
        key = (op, id(value))
        if key not in known:
            known[key] = [c for c in chosen if _takes(op, value, c, fold)]
        return known[key]

    return taken


def _repeats(items: Any, taken: Takers, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Each repeat that can run long, with a string that leads to it."""
    for i, (op, value) in enumerate(items):
        for part in _parts(op, value):
            yield from _repeats(part, taken, prefix)
        if _is_long(op, value):  # alone, and with what stands between it and the next ones
            yield from ((prefix, items[i:j]) for j in range(i + 1, min(i + 5, len(items)) + 1))
            yield from [(prefix, value[2])] if op in REPEATS else []
        prefix += _sample([(op, value)], "", 0, taken)


def _is_long(op: Any, value: Any) -> bool:
    """Whether an item is, or holds, a repeat that can run long."""
    long = op in REPEATS and value[1] >= LOOSE
    return long or any(_is_long(*item) for part in _parts(op, value) for item in part)


def _parts(op: Any, value: Any) -> list[Any]:
    if op in REPEATS:
        return [value[2]]
    if op in GROUPS:
        return [value if GROUPS[op] is None else value[GROUPS[op]]]
    if op is codes.BRANCH:
        return list(value[1])
    return [p for p in value[1:] if p is not None] if op is codes.GROUPREF_EXISTS else []


def _samples(items: Any, chosen: list[str], taken: Takers) -> Iterator[str]:
    """Strings that the items match: of each character as far as it goes, of each branch."""
    for wanted in ("", *chosen):
        for branch in range(3):
            yield _sample(items, wanted, branch, taken)


def _sample(items: Any, wanted: str, branch: int, taken: Takers) -> str:
    found = []
    for op, value in items:
        if op in REPEATS:
            found.append(_sample(value[2], wanted, branch, taken) * min(max(value[0], 1), 40))
        elif op is codes.BRANCH:
            found.append(_sample(value[1][branch % len(value[1])], wanted, branch, taken))
        elif op in (codes.SUBPATTERN, codes.ATOMIC_GROUP):
            found.append(_sample(_parts(op, value)[0], wanted, branch, taken))
        elif op in (codes.LITERAL, codes.NOT_LITERAL, codes.ANY, codes.IN):
            some = taken(op, value)
            found.append(wanted if wanted in some else some[0] if some else "?")
    return "".join(found)


def _representatives(tree: Any, fold: bool) -> list[str]:
    """One character for all that the expression's sets and literals cannot tell apart."""
    nodes = list(_characters(tree))
    literals = {chr(v) for op, v in nodes if op in (codes.LITERAL, codes.NOT_LITERAL)}
    inside = {
        chr(v) if o is codes.LITERAL else chr(v[0]) for op, s in nodes if op is codes.IN for o, v in s if o in (codes.LITERAL, codes.RANGE)
    }
    alike: dict[tuple[bool, ...], str] = {}
    for c in [*"a0 A_-./:=,;\"'\n\t([{é\x00", *sorted(literals | inside)]:
        alike.setdefault(tuple(_takes(op, value, c, fold) for op, value in nodes), c)
    return [c for signature, c in alike.items() if any(signature)]


def _characters(items: Any) -> Iterator[tuple[Any, Any]]:
    for op, value in items:
        if op in (codes.LITERAL, codes.NOT_LITERAL, codes.ANY, codes.IN):
            yield op, value
        for part in _parts(op, value):
            yield from _characters(part)


def _takes(op: Any, value: Any, c: str, fold: bool) -> bool:
    """Whether one item of an expression takes a character."""
    if op is codes.ANY:
        return c != "\n"
    if op in (codes.LITERAL, codes.NOT_LITERAL):
        return (chr(value) in ({c, c.lower(), c.upper()} if fold else {c})) is (op is codes.LITERAL)
    negated = value[0][0] is codes.NEGATE
    return any(_within(o, v, k) for o, v in value for k in ({c, c.lower(), c.upper()} if fold else {c})) is not negated


def _within(op: Any, value: Any, c: str) -> bool:
    if op is codes.LITERAL:
        return bool(ord(c[0]) == value)
    if op is codes.RANGE:
        return bool(value[0] <= ord(c[0]) <= value[1])
    if op is codes.CATEGORY:
        name = str(value).rsplit("_", 1)[-1].lower()
        held = {"digit": c.isdigit(), "space": c.isspace(), "word": c.isalnum() or c == "_"}[name]
        return held is not ("_NOT_" in str(value))
    return False
