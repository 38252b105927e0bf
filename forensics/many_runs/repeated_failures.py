"""Failures that repeat: runs that ended with the same line, whatever numbers, paths and addresses stood in it."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

from parsers.lazy_regex import lazy_re

COLUMNS = ("id", "path", "error_line", "ending", "host", "owner")  # what is asked of a row
LEAST, MOST, NAMED = 2, 200, 6  # runs of a group; groups; names of a kind in a group
_URL = lazy_re(r"\b[a-z][a-z0-9+]*://[^\s'\"]+")
_PATH = lazy_re(r"(?<![\w/.@+=-])(?:[A-Za-z]:\\|~?/|\.{1,2}/)?(?:[\w.@+=-]{1,100}+[/\\]){1,40}+[\w.@+=-]*+")
_NUMBER = lazy_re(r"\b0x[0-9a-fA-F]+\b|(?<![A-Za-z_])[-+]?\d+(?:[.,:]\d+)*(?:e[-+]?\d+)?")


def find(rows: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """``{"line", "example", "runs", "ids", "endings", "hosts", "owners", "folders"}``, most runs first; `line` has ``#`` for what varies. Runs that
    somebody stopped by hand are no failures."""
    groups: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for row in rows:
        if row["error_line"] and row["ending"] != "interrupt":
            groups[pattern(row["error_line"])].append(row)
    repeated = [(line, members) for line, members in groups.items() if len(members) >= LEAST]
    return [_told(line, members) for line, members in sorted(repeated, key=lambda g: (-len(g[1]), g[0]))[:MOST]]


def pattern(line: str) -> str:
    """The line without what differs from run to run."""
    bare = _NUMBER.sub("#", _PATH.sub("#", _URL.sub("#", line)))
    return " ".join(bare.split())


def _told(line: str, members: Sequence[dict[str, Any]]) -> dict[str, Any]:
    return {
        "line": line,
        "example": members[0]["error_line"],
        "runs": len(members),
        "ids": [m["id"] for m in members],
        "endings": _named(m["ending"] for m in members),
        "hosts": _named(name for m in members for name in str(m["host"] or "").split(", ")),
        "owners": _named(m["owner"] for m in members),
        "folders": _named(str(m["path"]).rstrip("/").rpartition("/")[0] for m in members),
    }


def _named(values: Iterable[str | None]) -> list[str]:
    return [v for v, _ in Counter(v for v in values if v).most_common(NAMED)]
