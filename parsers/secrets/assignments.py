"""Secrets in running text that are known by the key before them: ``DB_PASSWORD=...``, ``'token': '...'``, ``--api-key ...``.

Each word is asked whether it is a secret's key, whatever the word before it was (``ValueError: DB_PASSWORD=...``), and only
then its value is looked for: in quotes of any depth, in brackets, or bare.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from parsers.lazy_regex import lazy_re
from parsers.secrets.keys import MAYBE, NO, YES, level, words
from parsers.secrets.values import Span, is_code, opens

HINTS = ("key", "token", "secret", "pass", "pw", "psw", "cred", "auth", "bearer", "cookie", "jwt", "netrc", "webhook")

_KEY = lazy_re(
    r"""(?x) (?: (?<![\w.\-]) | (?<=%22) ) (?P<key> -{0,2} [A-Za-z_][\w.\-]*+ ) (?P<close> \\{0,8}['"`] \]? | %22 | \*{1,3} | </\w{1,10}> )?
    (?P<sep> [ \t]{0,20} (?: => | -> | [:：]=? | [=＝]=? | > | %3[AaDd] ) (?: (?<=:)[ \t]{0,20}\r?\n[ \t]{1,40}(?=[^\s:]{1,300}[ \t]{0,9}(?:[\r\n]|\Z)) | [ \t]{0,20} )
      (?: (?:Optional\[)?(?:str|bytes|Secret\w{0,9})\]?(?:[ \t]?\|[ \t]?None)?[ \t]{0,4}=[ \t]{0,4} )?
    | [ \t]{1,4}(?:is|was|provided|given|IS|WAS):?[ \t]{1,4} | [ \t]{1,4}-{1,2}[ \t]{1,4} | [ \t]{0,80}[|│┃║][ \t]{0,80}
    | [ \t]{0,20},\s{0,20} | [ \t]{1,20} )"""
)
_QUOTE = lazy_re(r"(?P<prefix>[bBrRuUfF]{0,2}|(?:Secret\w{0,20}|str|bytes)\()(?P<deep>\\{0,8})(?P<quote>\"\"\"|'''|[\"'`])")
_INSIDE = {q: lazy_re(rf"(?:[^{q}\\]|\\.)*+", re.DOTALL) for q in "\"'`"}
_BARE = lazy_re(r"[^\s'\",;&<>)}\]]+")
_ENCODED = lazy_re(r"(?:[^\s&%'\"<>]|%(?!2[26Cc]|7[Dd]))+")  # in a URL
_CELL = lazy_re(r"[^|│┃║\r\n]+")
_LAST_CELL = lazy_re(r"[|│┃║]?[ \t]*(?:[\r\n]|\Z)")
_BLOCK = lazy_re(r"[|>][+\-\d]{0,2}[ \t]*\r?\n[ \t]+(\S[^\n]*(?:\n[ \t]+[^\n]*)*)")  # of YAML
_BARE_ENV = lazy_re(r"[^\s'\"]+")
_LINE = lazy_re(r"[^\r\n]*")
_HEADER_VALUE = lazy_re(r"[^'\"\r\n]*")
_SCHEME = lazy_re(r"(?i)(?:bearer|basic|token|apikey|api-key|key|digest|negotiate|ssws|bot|aws4-hmac-sha256)\s{1,4}(?=\S)")
_DIGEST = lazy_re(r"[^'\r\n]*")  # its parts stand in double quotes
_FIRST_OF_TWO = lazy_re(r"\([bBuUrR]?['\"\\]{0,9}\Z")
_BARS = ("|", "│", "┃", "║")
_HEADERS = ("authorization", "cookie")
_AND_COLON = lazy_re(r"\\{0,8}['\"]\s{0,8}:")
_PIECE = lazy_re(r"\"(?:[^\"\\]|\\.|\\\Z)*+(?:\"|\Z)|'(?:[^'\\]|\\.|\\\Z)*+(?:'|\Z)|[^\s\[\](){},:='\"\\]+|[\[\](){}]", re.DOTALL)
_USER = lazy_re(r"['\"]username\\{0,8}['\"]")  # {"username": ..., "key": ...}, as Kaggle has it
_NAMES = ("name", "key", "variable")  # {"name": "HF_TOKEN", "value": ...}, as Kubernetes has it
_TWO_WORDS = lazy_re(r"(?i)(?<![A-Za-z])(api|secret|access|private)[ +]\Z")  # API key: ...
_WORD_BEFORE = lazy_re(r"(?<![A-Za-z])([A-Za-z]{1,20}) \Z")
_PLACEHOLDER = lazy_re(r"<[^<>\n]{0,200}>|\{\{[^{}\n]{0,200}\}\}|\$\{[^{}\n]{0,200}\}")
_NAME = lazy_re(r"[\\'\"]{0,9}([\w.\-]{1,120})")
_LONGEST_NEST = 20_000  # characters in brackets
_NEAR = 200  # characters between the two, and between `machine` and `password` in a .netrc


def assigned(text: str) -> Iterator[Span]:
    """Where the values of secret keys are in a text."""
    position, named = 0, -1
    while m := _KEY.search(text, position):
        key = _key_of(text, m)
        kind = level(key.strip("-"))
        position = m.end()
        if (key == "value" and m.start() <= named) or (key == "key" and m["close"] and _beside_a_user(text, m)):
            kind = YES
        if kind == NO:
            value = _NAME.match(text, m.end()) if key.lower() in _NAMES else None
            if value and level(value[1]) == YES:  # "name": "HF_TOKEN", and not far behind it its "value"
                named = m.end() + _NEAR
            continue
        if kind == YES and _opens(text, m):
            found, position = _nested(text, m.end(), key)
            yield from found
        elif (span := _value(text, m, key, kind)) is not None:
            yield span
            position = span[1]


def _key_of(text: str, m: re.Match[str]) -> str:
    key = m["key"]
    escaped = m.start() > 0 and text[m.start() - 1] == "\\" and key[0] in "nrt"  # \nPASSWORD: the n is no part of it
    if key.lower() in ("key", "keys", "token") and (before := _TWO_WORDS.search(text, max(0, m.start() - 9), m.start())):
        return f"{before[1]}_{key}"
    if key == "pass" and (before := _WORD_BEFORE.search(text, max(0, m.start() - 22), m.start())):
        return f"{before[1]}_{key}" if before[1].lower() in words()["passes"] else key  # a forward pass
    return key[1:] if escaped else key


def _beside_a_user(text: str, m: re.Match[str]) -> bool:
    return _USER.search(text, max(0, m.start() - _NEAR), m.end() + _NEAR) is not None


def _opens(text: str, m: re.Match[str]) -> bool:
    """Do brackets with values follow? Words in round ones are a remark."""
    following = text[m.end() : m.end() + 2]
    return m["sep"].strip() not in ("", ",", ">") and (following[:1] in ("{", "[") or following in ("('", '("'))


def _value(text: str, m: re.Match[str], key: str, kind: int) -> Span | None:
    sep = m["sep"].strip()
    if not _follows(text, m, key, sep):
        return None
    start, end, quoted = _extent(text, m, key, kind)
    value = text[start:end]
    if sep in ("", ",") and (value.startswith("-") or _AND_COLON.match(text, end)):
        return None  # the next flag, the next key
    if not quoted and (value.endswith("(") or is_code(key, value) or _is_prose(text, m, value, end)):
        return None
    told = sep.startswith((":", "=", "-", ">", "%", ",", "：", "＝")) and sep not in ("-", "--")
    told = told or (sep in _BARS and _LAST_CELL.match(text, end) is not None)  # two columns, no row of titles
    sure = kind == YES and (told or key.startswith("-") or _in_netrc(text, m.start()))
    return (start, end) if opens(key, value, YES if sure else MAYBE, quoted=quoted) else None


def _follows(text: str, m: re.Match[str], key: str, sep: str) -> bool:
    """Does what stands behind this key belong to it? A blank and a comma mostly only end a word."""
    if sep in ("", "-", "--"):
        return not m["close"]
    if sep == ">":
        return text[m.start() - 1 : m.start()] == "<"  # <password>...</password>
    if sep != ",":
        return True
    if not m["close"] or not _QUOTE.match(text, m.end()):
        return False
    return key.startswith("-") or key.isupper() or _FIRST_OF_TWO.search(text, 0, m.start()) is not None


def _in_netrc(text: str, at: int) -> bool:
    before = text[max(0, at - _NEAR) : at]
    return "machine " in before or "login " in before


def _extent(text: str, m: re.Match[str], key: str, kind: int) -> tuple[int, int, bool]:
    """Where the value begins and ends, and whether it stands in quotes."""
    at = m.end()
    quote = _QUOTE.match(text, at)
    if quote is not None:
        return quote.end(), _closing(text, quote), True
    if ":" in m["sep"] and (block := _BLOCK.match(text, at)):
        return *block.span(1), True
    if m["sep"].strip() in _BARS or "%" in m["sep"]:
        at += 3 * text.startswith("%22", at)
        end = _match_end(_ENCODED if "%" in m["sep"] else _CELL, text, at)
        return at, at + len(text[at:end].rstrip()), False
    if placeholder := _PLACEHOLDER.match(text, at):
        return *placeholder.span(), False
    scheme = _SCHEME.match(text, at)
    at = scheme.end() if scheme else at
    plain = key.lower().strip("-")
    if plain.endswith(_HEADERS) and ":" in m["sep"]:
        digest = scheme and scheme[0].lower().startswith("digest")
        end = _match_end(_DIGEST if digest else _HEADER_VALUE, text, at)
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
    if not (value.isalpha() and value.islower()):
        return False
    return m["key"].lower() == "pass" or re.match(r"[ \t][A-Za-z]", text[end : end + 2]) is not None


def _nested(text: str, at: int, key: str) -> tuple[list[Span], int]:
    """The values inside brackets under a secret key (keys stay), and where the brackets end."""
    depth, found, end = 0, [], at
    for piece in _PIECE.finditer(text, at, at + _LONGEST_NEST):
        end = piece.end()
        if piece[0] in "[({":
            depth += 1
        elif piece[0] in "])}":
            depth -= 1
        else:
            span = _unquoted(piece)
            is_key = text[end : end + 4].lstrip("\\'\" \t")[:1] in (":", "=")
            if not is_key and opens(key, text[slice(*span)], YES, quoted=span != piece.span()):
                found.append(span)
        if depth <= 0:
            break
    return found, end


def _unquoted(piece: re.Match[str]) -> Span:
    start, end = piece.span()
    if piece[0][0] not in "'\"":
        return start, end
    return start + 1, end - (len(piece[0]) > 1 and piece[0][-1] == piece[0][0])
