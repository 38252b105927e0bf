"""Secrets in running text that are known by the key before them: ``DB_PASSWORD=...``, ``'token': '...'``, ``--api-key ...``.

Each word is asked whether it is a secret's key, whatever the word before it was (``ValueError: DB_PASSWORD=...``), and only
then its value is looked for: in quotes of any depth, in brackets, or bare.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from parsers.secrets.keys import MAYBE, NO, YES, is_password, level
from parsers.secrets.values import is_code, is_harmless, looks_random

Span = tuple[int, int]

HINTS = ("key", "token", "secret", "pass", "pw", "psw", "cred", "auth", "bearer", "cookie", "jwt", "netrc")

_KEY = re.compile(
    r"""(?x) (?<![\w.\-]) (?P<key> -{0,2} [A-Za-z_][\w.\-]*+ ) (?P<close> \\{0,8}['"] \]? )?
    (?P<sep> [ \t]{0,20} (?: => | :=? | ==? | > ) [ \t]{0,20} | [ \t]{0,20},\s{0,20} | [ \t]{1,20} )"""
)
_QUOTE = re.compile(r"(?P<prefix>[bBrRuUfF]{0,2})(?P<deep>\\{0,8})(?P<quote>\"\"\"|'''|[\"'`])")
_INSIDE = {q: re.compile(rf"(?:[^{q}\\]|\\.)*+", re.DOTALL) for q in "\"'`"}
_BARE = re.compile(r"[^\s'\",;&<>)}\]]+")
_BARE_ENV = re.compile(r"[^\s'\"]+")
_LINE = re.compile(r"[^\r\n]*")
_HEADER_VALUE = re.compile(r"[^'\"\r\n]*")
_SCHEME = re.compile(r"(?i)(?:bearer|basic|token|apikey|api-key|key|digest|negotiate|ssws|bot|aws4-hmac-sha256)\s{1,4}(?=\S)")
_HEADERS = ("authorization", "cookie")
_PIECE = re.compile(r"\"(?:[^\"\\]|\\.)*+(?:\"|$)|'(?:[^'\\]|\\.)*+(?:'|$)|[^\s\[\](){},:='\"\\]+|[\[\](){}]", re.DOTALL)
_NAMES = ("name", "key", "variable")  # {"name": "HF_TOKEN", "value": ...}, as Kubernetes has it
_NEAR = 200  # characters between the two, and between `machine` and `password` in a .netrc


def assigned(text: str) -> Iterator[Span]:
    """Where the values of secret keys are in a text."""
    position, named = 0, -1
    while m := _KEY.search(text, position):
        key = _key_of(text, m)
        kind = level(key.strip("-"))
        position = m.end()
        if key == "value" and m.start() <= named:
            kind = YES
        if kind == NO:
            if key.lower() in _NAMES:
                named = _names_a_secret(text, m, key, named)
            continue
        for start, end in _values(text, m, key, kind):
            yield start, end
            position = max(position, end)


def _key_of(text: str, m: re.Match[str]) -> str:
    key = m["key"]
    escaped = m.start() > 0 and text[m.start() - 1] == "\\" and key[0] in "nrt"  # \nPASSWORD: the n is no part of it
    return key[1:] if escaped else key


def _names_a_secret(text: str, m: re.Match[str], key: str, named: int) -> int:
    """How far behind `"name": "HF_TOKEN"` its `"value"` may stand."""
    start, end, _ = _extent(text, m, key, MAYBE)
    return end + _NEAR if level(text[start:end].strip()) == YES else named


def _values(text: str, m: re.Match[str], key: str, kind: int) -> Iterator[Span]:
    sep = m["sep"].strip()
    if not _follows(text, m, key, sep):
        return
    at = m.end()
    if at < len(text) and text[at] in "{[(" and sep:
        yield from _nested(text, at, key, kind)
        return
    start, end, quoted = _extent(text, m, key, kind)
    value = text[start:end]
    if sep in ("", ",") and value.startswith("-"):
        return  # the next flag
    if not quoted and (is_code(key, value) or _is_prose(text, m, value, end)):
        return
    sure = kind == YES and (sep != "" or key.startswith("-") or _in_netrc(text, m.start()))
    if _is_secret(value, key, YES if sure else MAYBE):
        yield start, end


def _is_secret(value: str, key: str, kind: int) -> bool:
    if kind == YES:
        return not is_harmless(value, typed=is_password(key))
    return looks_random(value)


def _follows(text: str, m: re.Match[str], key: str, sep: str) -> bool:
    """Does what stands behind this key belong to it? A blank and a comma mostly only end a word."""
    if sep == "":
        return not m["close"]
    if sep == ">":
        return text[m.start() - 1 : m.start()] == "<"  # <password>...</password>
    if sep != ",":
        return True
    if not m["close"] or not _QUOTE.match(text, m.end()):
        return False
    return key.startswith("-") or key.isupper() or text[: m.start()].rstrip("'\"\\")[-1:] == "("


def _in_netrc(text: str, at: int) -> bool:
    before = text[max(0, at - _NEAR) : at]
    return "machine " in before or "login " in before


def _extent(text: str, m: re.Match[str], key: str, kind: int) -> tuple[int, int, bool]:
    """Where the value begins and ends, and whether it stands in quotes."""
    at = m.end()
    quote = _QUOTE.match(text, at)
    if quote is not None:
        return quote.end(), _closing(text, quote), True
    scheme = _SCHEME.match(text, at)
    at = scheme.end() if scheme else at
    plain = key.lower().strip("-")
    if plain.endswith(_HEADERS) and ":" in m["sep"]:
        end = _match_end(_HEADER_VALUE, text, at)
    elif kind == YES and not m["close"] and m["sep"].rstrip(" \t") == ":" and m["sep"] != ":" and _begins_line(text, m.start()):
        end = _match_end(_LINE, text, at)  # password: three words
    elif key.isupper() and "=" in m["sep"]:
        end = _match_end(_BARE_ENV, text, at)
        end = at + len(text[at:end].rstrip(",;)]}"))
    else:
        end = _match_end(_BARE, text, at)
    return at, at + len(text[at:end].rstrip("\\ \t")), False


def _match_end(pattern: re.Pattern[str], text: str, at: int) -> int:
    m = pattern.match(text, at)
    return m.end() if m else at


def _closing(text: str, quote: re.Match[str]) -> int:
    """Where the value in quotes ends; without an end it is the rest of the line."""
    deep, mark = quote["deep"], quote["quote"]
    if not deep and len(mark) == 1:
        end = _match_end(_INSIDE[mark], text, quote.end())
        if text[end : end + 1] == mark:
            return end
    else:
        end = text.find(deep + mark, quote.end())
        while end > 0 and deep and text[end - 1] == "\\":  # deeper quotes inside
            end = text.find(deep + mark, end + len(deep) + 1)
        if end >= 0:
            return end
    return _match_end(_LINE, text, quote.end())


def _begins_line(text: str, at: int) -> bool:
    line = text.rfind("\n", max(0, at - _NEAR), at) + 1 or (0 if at <= _NEAR else at)
    return text[line:at].strip(" \t-") == ""


def _is_prose(text: str, m: re.Match[str], value: str, end: int) -> bool:
    """`wrong password: access denied` goes on in words."""
    if m["sep"].strip() != ":" or m["close"] or "_" in m["key"] or _begins_line(text, m.start()):
        return False
    return value.isalpha() and value.islower() and re.match(r"[ \t][A-Za-z]", text[end : end + 2]) is not None


def _nested(text: str, at: int, key: str, kind: int) -> Iterator[Span]:
    """The values inside brackets under a secret key; keys stay."""
    depth = 0
    for piece in _PIECE.finditer(text, at):
        found = piece[0]
        if found in "[({":
            depth += 1
        elif found in "])}":
            depth -= 1
            if depth <= 0:
                return
        else:
            start, end = piece.span()
            if found[0] in "'\"":
                start, end = start + 1, end - (1 if len(found) > 1 and found[-1] == found[0] else 0)
            after = text[piece.end() : piece.end() + 4].lstrip("\\'\" \t")[:1]
            if after not in (":", "=") and _is_secret(text[start:end], key, kind):
                yield start, end
