"""Running text (console lines, summaries, errors) with every secret in it replaced."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache

from parsers import arrow
from parsers.lazy_regex import lazy_re
from parsers.secrets import assignments, command_lines, gitleaks, shapes
from parsers.secrets.shapes import MASK

_KEY_BEGINS = lazy_re(r"-----BEGIN[ A-Z0-9_\-]{0,100}PRIVATE KEY(?: BLOCK)?-----")
_KEY_GOES_ON = lazy_re(r"(?:.{0,120}[\s\]:|>])?(?=[A-Za-z]{0,80}[\d+/=]|[A-Za-z]{20})[A-Za-z0-9+/=]{4,}\s*")
_MANY = 64  # texts, from which on it pays to hand the expression with all hints to RE2, which takes a millisecond to read it
_KEY_LINES = 400  # lines; a private key in text has no more


def mask_text(text: str) -> str:
    """Running text with every secret in it replaced by ``***``."""
    lower = text.lower()
    return _masked(text, (True, any(h in lower for h in assignments.HINTS), any(h in text for h in command_lines.HINTS)))


def _masked(text: str, looks: tuple[bool, ...]) -> str:
    """``looks``: whether to look for shapes, for keys with values and for commands."""
    found = shapes.spans(text) if looks[0] else []
    if looks[1]:
        found += assignments.assigned(text)
    if looks[2]:
        found += command_lines.given(text)
    return shapes.replaced(text, shapes.apart(found)) if found else text


def mask_texts(texts: list[str]) -> list[str]:
    """Each as :func:`mask_text` gives it; one look tells of many which might hold what. A private key may go on from
    one text to the next, as a console log hands over its lines."""
    if len(texts) < _MANY:
        masked = [mask_text(text) for text in texts]
    else:
        masked = [_masked(text, looks) if any(looks) else text for text, looks in zip(texts, _looks(texts), strict=True)]
    return _without_bodies(texts, masked) if any("PRIVATE KEY" in text for text in texts) else masked


@cache
def _hints() -> tuple[str, ...]:
    """Expressions of RE2 for every hint there is: of shapes, of keys, of commands."""
    shaped = "|".join(map(re.escape, (*shapes.hints(), "PRIVATE KEY")))
    names = "|".join(map(re.escape, gitleaks.keywords()))
    keys, given = ("|".join(map(re.escape, each)) for each in (assignments.HINTS, command_lines.HINTS))
    return f"{shaped}|(?i:{names})", f"(?i:{keys})", given


def _looks(texts: list[str]) -> Iterator[tuple[bool, ...]]:
    """What each text might hold; RE2 looks for all hints at once, fifty times as fast as Python for one after the other."""
    import pyarrow.compute as pc  # takes longer to import than a small log to read

    raw = arrow.blobs([t.encode("utf-8", "replace") for t in texts])
    return zip(*(pc.match_substring_regex(raw, hints).to_pylist() for hints in _hints()), strict=True)


def _without_bodies(texts: list[str], masked: list[str]) -> list[str]:
    left = 0
    for i, text in enumerate(texts):
        begun = _KEY_BEGINS.search(text)
        if left and not begun and (("-----END" in text) or _KEY_GOES_ON.fullmatch(text)):
            masked[i] = MASK
        left = 0 if "-----END" in text else _KEY_LINES if begun else max(left - 1, 0)
    return masked
