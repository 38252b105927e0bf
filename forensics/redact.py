"""`--redact`: hides who and where in a case or comparison before it is passed around (an audit: audit/hidden.py). Secrets never
reach a case; this is about people.

Replaces mail addresses, absolute paths (their last part stays), host names and user names that the run's own config or
event-file names reveal, and IP addresses.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

_MAIL = re.compile(r"[\w.+\-]+@[\w\-]+(?:\.[\w\-]+)+")
_PATH = re.compile(r"(?<![\w/.])(?<!<path>)(?:file://)?(?:[A-Za-z]:[\\/]|/|~/|\\\\)(?:[\w.@+\-~ ]+[\\/])+([\w.@+\-~]*)")
_IP = re.compile(r"\b(?:\d{1,3}\.){3}\d{1,3}\b")
_WORD = re.compile(r"[^\W_]+")
_EVENT_HOST = re.compile(r"(tfevents\.\d+\.)(.+?)((?:\.\d+)*(?:\.v2)?)$")
_HOST_KEYS = re.compile(r"(?i)(host(name)?|node(name|list)?|user(name)?|email|machine|master_addr)$")


def redacted(document: dict[str, Any], stand_ins: Mapping[str, str] | None = None) -> dict[str, Any]:
    """A copy of a case document without hosts, users, mail addresses and absolute paths. ``stand_ins`` says what stands in
    for a name; other names become `<host>`."""
    clean = cleaned(document, dict.fromkeys(names_in(document), "<host>") | dict(stand_ins or {}))
    assert isinstance(clean, dict)
    return clean


def names_in(document: Any) -> set[str]:
    """Host and user names, as event-file names and the keys of settings give them away; and parts of home folders."""
    found: set[str] = set()

    def look(x: Any, key: str = "") -> None:
        if isinstance(x, dict):
            setting = str(x.get("key", ""))  # {"key": "hostname", "a": "node-1", "b": "node-2"}
            for k, v in x.items():
                look(v, setting if k in ("a", "b", "value") and _HOST_KEYS.search(setting) else str(k))
        elif isinstance(x, list):
            if len(x) > 1 and isinstance(x[0], str) and _HOST_KEYS.search(x[0]):
                key = x[0]  # a row of a table: the setting's name, then its value
            for v in x[1:] if key and x and key == x[0] else x:
                look(v, key)
        elif isinstance(x, str):
            if _HOST_KEYS.search(key):
                found.add(x.strip('"'))
            for part in x.split("/"):
                match = _EVENT_HOST.search(part)
                if match:
                    found.add(match[2])
            found.update(re.findall(r"/(?:home|Users)/([\w.\-]+)", x))

    look(document)
    return {n for n in found if len(n) > 2}


def cleaned(x: Any, stand_ins: Mapping[str, str]) -> Any:
    """Any JSON value with its texts cleaned; the longest names first, since one may hold another."""
    by_words: dict[tuple[str, ...], list[str]] = {}  # an audit knows thousands of names, and a text holds few
    for name in stand_ins:
        by_words.setdefault(tuple(_WORD.findall(name)), []).append(name)
    by_words.pop((), None)
    lengths = sorted({len(words) for words in by_words})

    def walk(x: Any) -> Any:
        if isinstance(x, dict):
            return {k: walk(v) for k, v in x.items()}
        if isinstance(x, list):
            return [walk(v) for v in x]
        return text(x) if isinstance(x, str) else x

    def text(x: str) -> str:
        x = _MAIL.sub("<mail>", x)
        x = _PATH.sub(lambda m: f"<path>/{m[1]}", x)
        x = _IP.sub("<ip>", x)
        words = _WORD.findall(x)
        parts = {tuple(words[i : i + n]) for n in lengths for i in range(len(words) - n + 1)} & by_words.keys()
        for name in sorted((name for part in parts for name in by_words[part]), key=lambda name: (-len(name), name)):
            x = re.sub(rf"(?<![^\W_]){re.escape(name)}(?![^\W_])", stand_ins[name], x)
        return x

    return walk(x)
