"""The rules of gitleaks: tokens of some two hundred issuers, by a prefix of their own or beside the issuer's name.

Its list is as its makers keep it (vendor/gitleaks). A rule is parsed, translated and compiled only once one of its
keywords is in a text. gitleaks reads source code; in the logs of a training run a name like facebook stands beside
models, data sets and checksums as well, so what follows a bare name is looked at more closely here.
"""

from __future__ import annotations

import math
import re
import tomllib
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from parsers.lazy_regex import lazy_re
from parsers.secrets.keys import split, words
from parsers.secrets.values import Span, is_harmless

_HERE = Path(__file__).parent
_KEYWORDS = lazy_re(r"(?m)^keywords = \[([^\]]*)\]")
_ID = lazy_re(r'(?m)^id = "([^"]*)"')
# how the list writes what stands around the value of a named issuer
_BEFORE_NAME = r"[\w.-]{0,50}?"
_BETWEEN = r"[ \t\w.-]{0,20}"
_AFTER = (r"""(?:[\x60'"\s;]|\\[nr]|$)""", r"""(?:[\x60'"\s;]|\\[nr]|$|\b)""", r"(?:[^\w-]|\z)", r"(?:[^a-zA-Z0-9+/]|\z)")
_PIECES = lazy_re(r"[^A-Za-z0-9]+")
_LONGEST_WORD = 5  # characters; letters and digits mixed in a longer piece are no word such as 125m or v2
_HEX = lazy_re(r"(?i)[0-9a-f]{14,}|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")  # checksums and ids, too
_NAME_GOES_ON = lazy_re(r"[ \t\-_.]([A-Za-z]{3,})")  # facebook-opt
_NAME_BEFORE = lazy_re(r"[^\n]{0,40}\Z")


class Rule(NamedTuple):
    id: str
    pattern: re.Pattern[str]
    group: int  # of the secret; 0: the first that took part, or all
    entropy: float  # bits a character, at least
    named: bool  # known by the issuer's name beside it, not by its own shape


@cache
def _ours() -> dict[str, dict[str, Any]]:
    """What is done differently here (gitleaks.toml), by the rule's name."""
    return tomllib.loads((_HERE / "gitleaks.toml").read_text("utf-8"))


@cache
def _sections() -> tuple[tuple[str, str], ...]:
    """Name and text of each rule that is used."""
    text = (_HERE / "vendor" / "gitleaks" / "gitleaks.toml").read_text("utf-8")
    found = (_ID.search(section) for section in text.split("[[rules]]")[1:])
    return tuple((m[1], m.string) for m in found if m is not None and m[1] not in _ours()["left_out"])


@cache
def keywords() -> dict[str, tuple[int, ...]]:
    """Each keyword, in small letters, and the numbers of its rules."""
    found: dict[str, list[int]] = {}
    for number, (name, section) in enumerate(_sections()):
        m = _KEYWORDS.search(section)
        its = re.findall(r'"([^"]+)"', m[1]) if m else ()
        for word in _ours()["keywords"].get(name, its):
            found.setdefault(word, []).append(number)
    return {word: tuple(numbers) for word, numbers in found.items()}


@cache
def _rule(number: int) -> Rule:
    data = tomllib.loads("[[rules]]" + _sections()[number][1])["rules"][0]
    text = data["regex"]
    return Rule(data["id"], re.compile(translated(text), re.ASCII), data.get("secretGroup", 0), data.get("entropy", 0.0), _BETWEEN in text)


def rules() -> Iterator[Rule]:
    """Every rule, for who wants to see what it costs."""
    yield from (_rule(number) for number in range(len(_sections())))


def translated(regex: str) -> str:
    """An expression of RE2 as one of Python, for text of any kind and for a search that starts at the name.

    Where a value ends is looked at and not taken; ``_begins`` looks at where it starts.
    """
    text = regex.replace(_BEFORE_NAME, "").replace(_BETWEEN, r"(?!\d)" + _BETWEEN)  # flickr30k, kraken2
    whole_word = r"(?![\w\-/+=]|\.\w)" if _BETWEEN in text else r"(?![A-Za-z0-9])"
    for end in _AFTER:
        text = text.replace(end, whole_word)
    text = re.sub(r"^(\(\?i\))?(?:\\b)+", r"\1", text)
    text = re.sub(r"\\b$", whole_word.replace("\\", r"\\"), text)
    text = text.replace(r"\z", r"\Z").replace("[[:alnum:]]", "[A-Za-z0-9]")
    return _flags_in_groups(text)


def _flags_in_groups(regex: str) -> str:
    """``(?i)`` holds to the end of its group, past each ``|``; Python wants a group of its own for it."""
    parts: list[str] = []
    open_groups = [False]  # whether a flag was switched on in this group
    for m in re.finditer(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|\(\?i\)|\((?:\?(?:P<\w+>|[a-z\-]*:|[=!]|<[=!]))?|[)|]|[^\\\[()|]+", regex, re.S):
        piece = m[0]
        if piece == "(?i)":
            parts.append("" if open_groups[-1] else "(?i:")
            open_groups[-1] = True
        elif piece[0] == "(":
            open_groups.append(False)
            parts.append(piece)
        elif piece == ")":
            parts.append("))" if open_groups.pop() else ")")
        else:
            parts.append(")|(?i:" if piece == "|" and open_groups[-1] else piece)
    return "".join(parts) + ")" * open_groups[0]


def found(text: str, begins: re.Pattern[str]) -> Iterator[Span]:
    """Where secrets are. ``begins`` matches where a token may begin."""
    lower = text.lower()
    numbers = {n for word, its in keywords().items() if word in lower for n in its}
    for rule in map(_rule, sorted(numbers)):
        for m in rule.pattern.finditer(text):
            span = m.span(rule.group or next((g for g in range(1, rule.pattern.groups + 1) if m[g]), 0))
            value = text[slice(*span)].strip("\"'")
            if _entropy(value) <= rule.entropy or is_harmless(value):
                continue
            if _is_named(text, m.start(), span, value) if rule.named else begins.match(text, m.start()):
                yield span


def _entropy(value: str) -> float:
    """Shannon's, in bits a character."""
    return -sum(n / len(value) * math.log2(n / len(value)) for n in Counter(value).values())


def _is_named(text: str, start: int, span: Span, value: str) -> bool:
    """Does the name of an issuer say that this is its secret? Not of words, nor of what is told to be a checksum."""
    if not any(len(p) > _LONGEST_WORD and not p.isalpha() and not p.isdigit() for p in _PIECES.split(value)):
        return False
    before = _NAME_BEFORE.search(text, max(0, start - 40), start)
    around = (before[0] if before else "") + text[start : span[0]]
    if words()["hash"] & set(split(around)):
        return False
    if not _HEX.fullmatch(value):
        return True
    if text[start - 1 : start] == "/":  # a path
        return False
    return all(word.lower() in words()["credential"] for word in _NAME_GOES_ON.findall(text[start : span[0]]))
