"""Numbers and words of a line that are no values: ``number of nan iterations``, ``|w|1 1318.96``, ``accuracy (IoU=0.7): 0.31``."""

from __future__ import annotations

import re

from parsers.console_format.grammars import NORM, STRONG, VOCABULARY, key_of
from parsers.lazy_regex import lazy_re

_AFTER_NAME = {" ", ":", "="}
# "rmse(train, last 30)=1.17", "accuracy (IoU=0.7): 0.31", "test loss of 63 batches: 4.4": 30, 0.7 and 63 are of the name
_CALL, _GIVES = lazy_re(r"\w ?\([A-Za-z][^()]{0,60}$"), lazy_re(r"\)[=:]")
_OVER, _PARTS = (
    lazy_re(r"[A-Za-z] (?:of|over|on|in) $"),
    lazy_re(r" (?:batch|sample|example|image|episode|sentence|sequence|token)(?:e?s)? ?[=:]"),
)


def is_word(m: re.Match[str], gap: str) -> bool:
    """ "number of nan iterations", "NaN/Inf detected": a word, not a value; or the order of a norm."""
    if _is_order(m, gap):
        return True
    if not m["num"] or m["num"][-1] not in "nNfFyY" or gap.rstrip(" '\"[(").endswith((":", "=")):
        return False
    if "/" in (m.string[m.end() : m.end() + 1], m.string[m.start() - 1]):
        return True
    key = key_of(gap)[0]
    return not (VOCABULARY.search(key) or STRONG.search(key)) and not _in_place_of_number(m, gap)


def _is_order(m: re.Match[str], gap: str) -> bool:
    """``|w|1 1318.96``: which norm it is, behind its bars."""
    return (
        m[0] in {"1", "2"} and gap.endswith(("|", "‖")) and m.string[m.end() : m.end() + 1] in _AFTER_NAME and NORM.search(gap) is not None
    )


# One name in front, and behind it others with their numbers, as in "ep 0 ctc nan CER 95.5%"; or a bar on both sides
_ALONE = lazy_re(r" {1,8}[A-Za-z]\w{0,30} {1,8}")
_BAR_ALONE = lazy_re(r".{0,40}\| {0,8}[A-Za-z]\w{0,30} {1,8}")
_NEXT_NAMED = lazy_re(r"(?: {1,8}[A-Za-z]\w{0,30} {1,8}(?:-?\d[\d.e+-]{0,24}%?|-?(?i:nan|inf))){1,20}\s{0,20}(?:$|[|,;])")
_BAR_NEXT = lazy_re(r" {0,8}(?:\||$)")


def _in_place_of_number(m: re.Match[str], gap: str) -> bool:
    """Does it stand where the line has the numbers of its other names?"""
    if _BAR_ALONE.fullmatch(gap):
        return _BAR_NEXT.match(m.string, m.end()) is not None
    before = m.string[: m.start() - len(gap)]
    return (before[-1:].isdigit() or before[-3:].lower() in {"nan", "inf"}) and bool(
        _ALONE.fullmatch(gap) and _NEXT_NAMED.match(m.string, m.end())
    )


def is_of_name(m: re.Match[str], gap: str) -> bool:
    """Is a number part of the name of another one (``accuracy (IoU=0.7): 0.31``, ``test loss of 63 batches: 4.4``)?"""
    text, end = m.string, m.end()
    if text[end : end + 1] == ")":
        return _CALL.search(gap) is not None and _GIVES.match(text, end) is not None
    return text[end : end + 1] == " " and _OVER.search(gap) is not None and _PARTS.match(text, end) is not None
