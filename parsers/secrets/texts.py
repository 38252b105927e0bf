"""Running text (console lines, summaries, errors) with every secret in it replaced."""

from __future__ import annotations

import re

from parsers.secrets import assignments, commands, shapes
from parsers.secrets.shapes import MASK

_KEY_BEGINS = re.compile(r"-----BEGIN (?:[A-Z0-9]+ ){0,4}PRIVATE KEY(?: BLOCK)?-----")
_KEY_GOES_ON = re.compile(r"(?:.{0,120}[\s\]:|>])?(?=[A-Za-z]{0,80}[\d+/=]|[A-Za-z]{20})[A-Za-z0-9+/=]{4,}\s*")
_KEY_LINES = 400  # lines; a private key in text has no more


def might_hold_secret(text: str) -> bool:
    """A quick no for nearly all text; a regex of these words takes a hundred times longer."""
    return _has_keys(text) or _has_commands(text) or shapes.might_hold(text)


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
    """Each as :func:`mask_text` gives it; one look tells of many that none holds anything. A private key may go on from
    one text to the next, as a console log hands over its lines."""
    joined = "\n".join(texts)
    if not might_hold_secret(joined):
        return texts
    masked = [mask_text(t) for t in texts]
    return masked if "PRIVATE KEY" not in joined else _without_bodies(texts, masked)


def _without_bodies(texts: list[str], masked: list[str]) -> list[str]:
    left = 0
    for i, text in enumerate(texts):
        begun = _KEY_BEGINS.search(text)
        if left and not begun and (("-----END" in text) or _KEY_GOES_ON.fullmatch(text)):
            masked[i] = MASK
        left = 0 if "-----END" in text else _KEY_LINES if begun else max(left - 1, 0)
    return masked
