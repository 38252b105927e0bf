"""What lies below the roots and is in no row of the audit, each with the reason: nothing vanishes in silence.

Where all of a folder is left out for one reason it is one entry, so that a data set of a million images is a line.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from forensics.audits import storage
from forensics.audits.listing import REFUSED, SKIPPED, UNREADABLE, Found
from parsers import secrets
from parsers.lazy_regex import lazy_re

FOLDED = 10  # paths of a folder that are one entry from here on
NO_RUN = "read, and no run in it: no steps, events or checkpoints"
CROWDED = "one of too many unknown files beside the run"
_ARCHIVE = lazy_re(r"(?i)\.(zip|tar|tgz|tbz2?|txz|7z|rar|gz|bz2|xz|zst|lz4)$")


@dataclass(frozen=True, slots=True)
class Skipped:
    """A path below a root, and why no row holds it."""

    root: str
    path: str
    why: str


def left_out(root: str, everything: Iterable[Found], taken: set[str], homes: set[str], ours: set[str]) -> Iterator[Skipped]:
    """What is below a root and in no place: ``taken`` holds the files of places, ``homes`` their folders. Not what is refused, which has a row,
    nor ``ours``, what forensics wrote."""
    for f in everything:
        if f.path in taken or f.path in ours or f.kind == REFUSED or f.path.rpartition("/")[2] == storage.STATE:
            continue
        beside = f.kind == "other" and f.size and any(h in homes for h in ["", *_folders(f.path)])
        yield Skipped(root, f.path, CROWDED if beside else _reason(f))


def _reason(f: Found) -> str:
    if f.kind in (SKIPPED, UNREADABLE):
        return f.why or "cannot be opened"
    if not f.size:
        return "empty"
    if f.kind == "config":
        return "settings, and no run beside or below them"
    if f.kind == "checkpoint":
        return "checkpoint that belongs to several runs or none"
    return "archive, not opened" if _ARCHIVE.search(f.path) else "no log that can be read, and no run beside it"


def listed(skipped: Iterable[Skipped], taken: Iterable[tuple[str, str]]) -> list[dict[str, Any]]:
    """``{"path", "reason", "files"}`` by path; a folder ends in a slash and counts what is below it. ``taken``: (root, path) of what is in a row."""
    left = {(s.root, s.path): s.why for s in skipped}
    all_below: Counter[tuple[str, str]] = Counter()
    below: Counter[tuple[str, str, str]] = Counter()
    for root, path in taken:
        all_below.update((root, folder) for folder in _folders(path))
        left.pop((root, path), None)
    for (root, path), why in left.items():
        all_below.update((root, folder) for folder in _folders(path))
        below.update((root, folder, why) for folder in _folders(path))
    told: Counter[tuple[str, str, str]] = Counter()
    for (root, path), why in left.items():
        whole = (f for f in _folders(path) if FOLDED <= below[root, f, why] == all_below[root, f])
        folder = next(whole, None)
        told[root, path if folder is None else f"{folder}/", why] += 1
    return [
        {"path": secrets.mask_shapes(f"{root.rstrip('/')}/{path}"), "reason": why, "files": n}
        for (root, path, why), n in sorted(told.items())
    ]


def _folders(path: str) -> list[str]:
    """The folders that a path lies in, the outermost first."""
    parts = path.split("/")
    return ["/".join(parts[:n]) for n in range(1, len(parts))]
