"""Secrets that are known by their own shape or issuer: the rules of gitleaks, what shapes.toml adds, secrets inside URLs.

Nearly no text holds one. So each pattern goes with texts that all its matches hold, and is only compiled and
tried where one of those is found.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterable, Iterator
from functools import cache, lru_cache
from pathlib import Path

from parsers.lazy_regex import lazy_re
from parsers.secrets import gitleaks
from parsers.secrets.keys import level
from parsers.secrets.values import Span, is_code, is_harmless, opens

MASK = "***"
SHORTEST = 8  # characters; no shape is shorter
_SHORT = 200  # characters of a text that is worth remembering

# A token begins where no letter or digit stands before it, but for those of an escape: %3D in a URL, \n in JSON, a colour
_BEGIN = r"(?:(?<![A-Za-z0-9])|(?<=%[0-9A-Fa-f]{2})|(?<=\\[bfnrt])|(?<=\x1b\[m)|(?<=\x1b\[\dm)|(?<=\x1b\[\d\dm))"
_END = r"(?![A-Za-z0-9])"
_BEGINS = lazy_re(_BEGIN)

# what a link is signed or opened with; a value of fewer characters names something
_QUERY = lazy_re(
    r"(?i)(?:(?<=[?&;#])|(?<=u0026)|(?<=%26)|(?<=%3f)|(?<![\w\-.])(?=sig))"
    r"(?:x-(?:amz|goog)-(?:signature|credential|security-token)|awsaccesskeyid|(?:shared_?access_?)?sig(?:nature)?|key"
    r"|(?:[\w\-]{1,30}[_\-])?(?:token|api_?key|apikey|secret|password|passwd|pwd|auth))"
    r"(?:=|%3d)([^&\s'\"<>#;,\\]{6,})"
)
# a setting in the name of a run or a tag: token=...,lr=0.1
_SETTING = lazy_re(r"(?<![A-Za-z0-9])([A-Za-z][\w\-.]{1,60})=([^\s&,;:/'\"<>#\\()]{8,200})")
_SETTING_HINTS = ("oken=", "key=", "Key=", "ecret=", "assword=", "asswd=", "pwd=", "TOKEN=", "KEY=", "SECRET=", "PASSWORD=")
_SHORTEST_TOKEN = 15  # characters, of Slack's xoxb-
_QUERY_HINTS = ("://", "?", "&", "%26", "%3F", "%3f", "u0026", "sig=")
_SHORT_HINTS = (*_QUERY_HINTS, "PRIVATE KEY")  # of what may consist of short words


@cache
def _known() -> tuple[tuple[tuple[str, ...], tuple[str, ...], bool], ...]:
    """(hints, patterns, whether the whole match is the secret) of each entry of shapes.toml."""
    data = tomllib.loads(Path(__file__).with_name("shapes.toml").read_text("utf-8"))
    found = []
    for section in ("places", "tokens"):
        for hints, patterns in data[section].items():
            whole, listed = section == "tokens", (patterns,) if isinstance(patterns, str) else tuple(patterns)
            found.append((tuple(hints.split(" ")) if whole else (hints,), listed, whole))
    return tuple(found)


@cache
def hints() -> tuple[str, ...]:
    """One of these, in this very case, or a keyword of gitleaks in any, is in every text with a secret by its shape."""
    return (*(hint for several, _, _ in _known() for hint in several), *_QUERY_HINTS, *_SETTING_HINTS)


@cache
def _in_bytes() -> tuple[tuple[bytes, ...], tuple[bytes, ...]]:
    """(hints, keywords of gitleaks)."""
    return tuple(hint.encode() for hint in hints()), tuple(word.encode() for word in gitleaks.keywords())


@cache
def _compiled(pattern: str, whole: bool) -> re.Pattern[str]:
    return re.compile(f"{_BEGIN}({pattern}){_END}" if whole else pattern)


def patterns() -> Iterator[re.Pattern[str]]:
    """Every pattern, for who wants to see what they cost."""
    yield from (_QUERY, _SETTING)
    for _, listed, whole in _known():
        yield from (_compiled(pattern, whole) for pattern in listed)
    yield from (rule.pattern for rule in gitleaks.rules())


def might_hold(text: str) -> bool:
    """A quick no for most text: no link, no private key, and no word so long as a token."""
    if any(hint in text for hint in _SHORT_HINTS):
        return True
    return max(map(len, text.split()), default=0) >= _SHORTEST_TOKEN


def has_hints(texts: bytes) -> bool:
    """Might a secret be in these UTF-8 bytes, in which texts may follow each other without anything between?"""
    hinting, words = _in_bytes()
    if any(hint in texts for hint in hinting):
        return True
    lower = texts.lower()
    return any(word in lower for word in words)


def has_shapes(texts: bytes | memoryview) -> bool:
    """Is a secret by its shape anywhere in these UTF-8 bytes?"""
    raw = bytes(texts)
    return has_hints(raw) and next(_found(raw.decode("utf-8", "replace")), None) is not None


def spans(text: str) -> list[Span]:
    """Where the secrets of a text begin and end, in order and apart."""
    if len(text) < SHORTEST or not might_hold(text):
        return []
    return list(_short_spans(text)) if len(text) <= _SHORT else apart(_found(text))


@lru_cache(maxsize=4096)  # the runs of a folder have most of their settings in common
def _short_spans(text: str) -> tuple[Span, ...]:
    return tuple(apart(_found(text)))


def apart(found: Iterable[Span]) -> list[Span]:
    """In order, those that overlap as one."""
    merged: list[Span] = []
    for start, end in sorted(found):
        if merged and start < merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged


def _found(text: str) -> Iterator[Span]:
    for hints, listed, whole in _known():
        if any(hint in text for hint in hints):
            for pattern in listed:
                yield from (m.span(1) for m in _compiled(pattern, whole).finditer(text))
    yield from gitleaks.found(text, _BEGINS)
    if any(hint in text for hint in _SETTING_HINTS):
        yield from (m.span(2) for m in _SETTING.finditer(text) if opens(m[1], m[2], level(m[1]), quoted=False) and not is_code(m[1], m[2]))
    if any(hint in text for hint in _QUERY_HINTS):
        yield from (m.span(1) for m in _QUERY.finditer(text) if m[1][0].isdigit() or not is_harmless(m[1]))


def replaced(text: str, found: Iterable[Span], stand_in: Callable[[str], str] = lambda secret: MASK) -> str:
    """The text with something else at these places, which are in order and apart."""
    parts, last = [], 0
    for start, end in found:
        parts += [text[last:start], stand_in(text[start:end])]
        last = end
    return "".join([*parts, text[last:]])


def mask_shapes(text: str) -> str:
    """Texts without a key beside the value: only what is a secret by its own shape."""
    found = spans(text)
    return replaced(text, found) if found else text
