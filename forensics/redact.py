"""`--redact`: hides who and where in a case before it is passed around. Secrets never reach a case; this is about people.

Replaces mail addresses, absolute paths (their last part stays), host names and user names that the run's own config or
event-file names reveal, and IP addresses.
"""

from __future__ import annotations

import re
from typing import Any

_MAIL = re.compile(r"[\w.+\-]+@[\w\-]+(?:\.[\w\-]+)+")
_PATH = re.compile(r"(?<![\w/.])(?:file://)?(?:[A-Za-z]:[\\/]|/|~/|\\\\)(?:[\w.@+\-~ ]+[\\/])+([\w.@+\-~]*)")
_IP = re.compile(r"\b(?:\d{1,3}\.){3}\d{1,3}\b")
_EVENT_HOST = re.compile(r"(tfevents\.\d+\.)(.+?)((?:\.\d+)*(?:\.v2)?)$")
_HOST_KEYS = re.compile(r"(?i)(host(name)?|node(name|list)?|user(name)?|email|machine|master_addr)$")


def redacted(document: dict[str, Any]) -> dict[str, Any]:
    """A copy of a case document without hosts, users, mail addresses and absolute paths."""
    names = sorted(_names(document), key=len, reverse=True)
    clean = _walk(document, names)
    assert isinstance(clean, dict)
    return clean


def _names(document: Any) -> set[str]:
    """Host and user names, as event-file names and the keys of tables give them away; and parts of home folders."""
    found: set[str] = set()

    def look(x: Any, key: str = "") -> None:
        if isinstance(x, dict):
            for k, v in x.items():
                look(v, str(k))
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


def _walk(x: Any, names: list[str]) -> Any:
    if isinstance(x, dict):
        return {k: _walk(v, names) for k, v in x.items()}
    if isinstance(x, list):
        return [_walk(v, names) for v in x]
    if not isinstance(x, str):
        return x
    x = _MAIL.sub("<mail>", x)
    x = _PATH.sub(lambda m: f"<path>/{m[1]}", x)
    x = _IP.sub("<ip>", x)
    for name in names:
        x = re.sub(rf"(?<![\w\-]){re.escape(name)}(?![\w\-])", "<host>", x)
    return x
