"""Does the value of a key have to be a secret? Judged by the key's whole words.

``HF_TOKEN``, ``api_key`` and ``X_PASS`` open something; ``stop_token``, ``sort_key``, ``forward_pass``, ``password_file``
and ``tokens_per_second`` do not. Where only the value can tell (``token``, ``foo_token``), the answer is in between.
"""

from __future__ import annotations

import tomllib
from functools import cache, lru_cache
from pathlib import Path

from parsers.lazy_regex import lazy_re

NO, MAYBE, YES = 0, 1, 2

_WORD = lazy_re(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_ENDS = (("token", "opens_token"), ("pass", "opens_pass"))
LONGEST = 120  # characters of a key that are looked at, the last ones


@cache
def words() -> dict[str, frozenset[str]]:
    """The lists of words.toml."""
    data = tomllib.loads(Path(__file__).with_name("words.toml").read_text("utf-8"))
    return {name: frozenset(words.split()) for name, words in data.items()}


def is_secret_key(key: str) -> bool:
    """True for keys whose value is a secret, judged by whole words in snake_case, kebab-case or camelCase."""
    return level(key) == YES or split(key) == ["token"]


@lru_cache(maxsize=4096)  # the keys of a run come again and again
def level(key: str) -> int:
    """YES: the value is a secret. MAYBE: it is one where it looks like one. NO."""
    parts = split(key)
    if not parts:
        return NO
    known = words()
    if key == "PWD":
        return MAYBE  # the current folder, as the shell has it
    if _opens(parts, known):
        return NO if parts[-1] in known["about"] and len(parts) > 1 else YES
    if parts[-1] == "tokens" and len(parts) > 1 and parts[-2] in known["opens_token"]:
        return MAYBE
    if "token" in parts:
        return _token(parts, known)
    if "webhook" in parts and parts[-1] in ("webhook", "url", "uri"):
        return MAYBE
    if parts[-1] == "pat" and (key.isupper() or known["opens_token"] & set(parts[:-1])):  # GH_PAT, github.pat
        return MAYBE
    if parts[-1] == "key" and len(parts) > 1:  # of what we do not know, as in an environment: KAGGLE_KEY
        return MAYBE if key.isupper() and parts[-2] not in known["names_key"] else NO
    if parts[-1] == "pass":
        return _password(key, parts, known)
    return NO


def is_password(key: str) -> bool:
    """Is it typed by people, so that it may consist of digits?"""
    return bool({"password", "passwd", "passphrase", "passcode", "pwd", "pgpassword"} & set(split(key)[-1:]))


def split(key: str) -> list[str]:
    return [w.lower() for w in _WORD.findall(key[-LONGEST:].rsplit("/", 1)[-1])]


def _opens(parts: list[str], known: dict[str, frozenset[str]]) -> bool:
    if known["secret"] & set(parts) or parts[-1] in known["secret_at_the_end"]:
        return True
    if parts[-1].endswith(("password", "passwd", "apikey", "secretkey")) or _joined(parts[-1], known):
        return True
    if parts[0] == "o" and parts[1:2] == ["auth"]:  # oAuth
        return False
    joined = ["", *map("".join, zip(parts, parts[1:], strict=False))]  # OpenAIKey: open, ai
    pairs = zip(parts, joined, parts[1:], strict=False)
    return any(after in ("key", "keys") and known["opens_key"] & {before, two} for before, two, after in pairs)


def _joined(word: str, known: dict[str, frozenset[str]]) -> bool:
    """hftoken, dbpass: two words as one."""
    return any(word.endswith(end) and word.removesuffix(end) in known[before] for end, before in _ENDS)


def _token(parts: list[str], known: dict[str, frozenset[str]]) -> int:
    at = parts.index("token")
    before, after = parts[:at], parts[at + 1 :]
    if after and (after[-1] in known["about"] or known["counts_or_names_token"] & set(after)):
        return NO
    if before and before[-1] in known["opens_token"] and not (known["counts_or_names_token"] - {"id", "user"}) & set(before):
        return YES
    if known["counts_or_names_token"] & set(before):
        return NO
    return MAYBE


def _password(key: str, parts: list[str], known: dict[str, frozenset[str]]) -> int:
    if len(parts) == 1 or parts[-2] in known["opens_pass"]:
        return YES
    return YES if key.isupper() and parts[-2] not in known["passes"] else NO
