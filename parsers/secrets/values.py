"""Is a value beside the key of a secret one, or does it only stand for one, or say that there is none?"""

from __future__ import annotations

import re

from parsers.lazy_regex import lazy_re
from parsers.secrets.keys import MAYBE, YES, is_password, words

Span = tuple[int, int]  # where a secret begins and ends in a text

_STANDS_FOR = lazy_re(
    r"""(?ix)
      <[^<>]{0,200}> | \[[^\[\]]{0,200}\] | \{{1,2}[^{}]{0,200}\}{1,2}   # <your token>, [REDACTED], {{ token }}
    | \$\{[^{}]{0,200}\}? | \$\([^()]{0,200}\)? | %[a-z_][a-z0-9_]{0,80}%  # of a shell
    | [*x.…•#\-_=?!]+ | \*\*\*~?\d*.{0,3}                                # ***, xxxx
    | (?:env|vault|keyring|file|op|arn|ssm):.{0,300} | secrets\.[A-Z_]{1,80}  # env:HF_TOKEN
    | (?:os\.)?(?:environ|getenv)\b.{0,300} | process\.env\..{0,200}
    | (?:is|was|are|has|have|must|should|will|can|cannot|could|may|needs?|not|does)\ .{0,300} # prose
    | (?:your|insert|enter|replace)[_\- ].{0,100}
    """
)
_VARIABLE = lazy_re(r"\$[A-Z_][A-Z0-9_]*")
_NUMBER = lazy_re(r"[+-]?(?:\d+(?:[.,]\d*)?|\.\d+)(?:[eE][+-]?\d+)?%?")
_AMOUNT = lazy_re(r"[+-]?\d[\d.,]{0,30}(?:[nuµm]?s|sec|min|h|%|[KMGT]?i?B|it/s)")
_LONG_NUMBER = 6  # digits of a number that may be a password


def is_harmless(value: str, *, typed: bool = False) -> bool:
    """Nothing that opens anything: empty, a number, a placeholder, a reference to where the secret lies. What is
    ``typed`` by people (a password) may be a number, too."""
    plain = value.strip().strip("'\"").rstrip("?").strip()
    if plain.lower() in words()["harmless"] or not any(c.isalnum() for c in plain) or _AMOUNT.fullmatch(plain):
        return True
    if _NUMBER.fullmatch(plain):
        return not (typed and plain.isdigit() and len(plain) >= _LONG_NUMBER)
    return bool(_STANDS_FOR.fullmatch(plain) or _VARIABLE.fullmatch(plain))


def opens(key: str, value: str, kind: int, *, quoted: bool) -> bool:
    """Is this the secret that a key of this ``kind`` asks for?"""
    if key.lower() == "pwd" and value.startswith(("/", "~")):
        return False  # the current folder
    if kind == YES:
        return not is_harmless(value, typed=quoted and is_password(key))
    return kind == MAYBE and looks_random(value)


def looks_random(value: str) -> bool:
    """Like what a machine or a careful person makes up: no word, no number, no path, no marker such as <mask>."""
    if value.startswith(("https://", "http://")):
        return any(looks_random(piece) for piece in value[:500].split("/")[3:])
    if len(value) < 7 or is_harmless(value) or any(c.isspace() or c in "<>|()[]{}/\\" for c in value[:200]):
        return False
    has_digit = any(c.isdigit() for c in value)
    has_letter = any(c.isalpha() for c in value)
    rises = sum(a.islower() and b.isupper() for a, b in zip(value, value[1:], strict=False))
    has_sign = any(c in "!#$%^&*@~+?" for c in value[:-1])
    # of letters alone: letters drawn at random rise from small to capital at every fourth, monitoredBarrier at every sixteenth
    return ((has_digit or (has_sign and rises > 0)) and has_letter) or (5 * rises >= len(value) >= 16)


_NAME = lazy_re(r"[A-Za-z_][\w.]*")
_CALL = lazy_re(
    r"(?:self|args|cfg|config|os|settings|getpass|userdata|get|read|load|fetch|make|input|str|Optional|Union)[.\w]*+[(\[].*", re.DOTALL
)


def is_code(key: str, value: str) -> bool:
    """Source code that only hands a secret on: ``token=token``, ``password=args.password``, ``key=get_key()``."""
    if _CALL.fullmatch(value):
        return True
    if not _NAME.fullmatch(value):
        return False
    plain, last = key.rsplit(".", 1)[-1].strip("-").lower(), value.rsplit(".", 1)[-1].lower().strip("_")
    return plain == last or ("." in value and (plain.endswith(last) or last.endswith(plain)) and not any(c.isdigit() for c in value))
