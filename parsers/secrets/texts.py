"""Running text (console lines, summaries, errors) with every secret in it replaced."""

from __future__ import annotations

import re
from functools import cache

import pyarrow as pa
import pyarrow.compute as pc

from parsers.secrets import assignments, commands, gitleaks, shapes
from parsers.secrets.shapes import MASK

_KEY_BEGINS = re.compile(r"-----BEGIN[ A-Z0-9_\-]{0,100}PRIVATE KEY(?: BLOCK)?-----")
_KEY_GOES_ON = re.compile(r"(?:.{0,120}[\s\]:|>])?(?=[A-Za-z]{0,80}[\d+/=]|[A-Za-z]{20})[A-Za-z0-9+/=]{4,}\s*")
_MANY = 64  # texts, from which on it pays to hand the expression with all hints to RE2, which takes a millisecond to read it
_KEY_LINES = 400  # lines; a private key in text has no more


def _has_keys(text: str) -> bool:
    lower = text.lower()
    return any(hint in lower for hint in assignments.HINTS)


def _has_commands(text: str) -> bool:
    return any(hint in text for hint in commands.HINTS)


def mask_text(text: str) -> str:
    """Running text with every secret in it replaced by ``***``."""
    found = shapes.spans(text)
    if _has_keys(text):
        found += assignments.assigned(text)
    if _has_commands(text):
        found += commands.given(text)
    return shapes.replaced(text, shapes.apart(found)) if found else text


def mask_texts(texts: list[str]) -> list[str]:
    """Each as :func:`mask_text` gives it; one look tells of many which might hold anything. A private key may go on from
    one text to the next, as a console log hands over its lines."""
    suspects = _suspects(texts) if len(texts) >= _MANY else range(len(texts))
    masked = list(texts)
    for i in suspects:
        masked[i] = mask_text(texts[i])
    return _without_bodies(texts, masked) if any("PRIVATE KEY" in texts[i] for i in suspects) else masked


@cache
def _hint() -> str:
    """An expression of RE2 for every hint there is."""
    any_case = "|".join(map(re.escape, (*assignments.HINTS, *gitleaks.keywords())))
    as_it_is = "|".join(map(re.escape, (*commands.HINTS, *shapes.hints(), "PRIVATE KEY")))
    return f"(?i:{any_case})|{as_it_is}"


def _suspects(texts: list[str]) -> list[int]:
    """Which texts have a hint; RE2 looks for all at once, fifty times as fast as Python for one after the other."""
    raw = pa.array([t.encode("utf-8", "replace") for t in texts], pa.large_binary())
    found: list[int] = pc.indices_nonzero(pc.match_substring_regex(raw, _hint())).to_pylist()
    return found


def _without_bodies(texts: list[str], masked: list[str]) -> list[str]:
    left = 0
    for i, text in enumerate(texts):
        begun = _KEY_BEGINS.search(text)
        if left and not begun and (("-----END" in text) or _KEY_GOES_ON.fullmatch(text)):
            masked[i] = MASK
        left = 0 if "-----END" in text else _KEY_LINES if begun else max(left - 1, 0)
    return masked
