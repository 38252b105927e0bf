"""Copies and forks: runs whose loss is the same, number by number, from the beginning.

Runs with another seed or another machine differ in the last digits from the first steps on; twelve equal values in a row
are one computation, or one file twice. Where two runs agree and then part, something was changed there, or the machine
computed something else: the settings that differ are listed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from forensics.many_runs.brief import Brief, differences

LEAST = 12  # equal values
MOST = 500
FEW = 12  # settings that are listed


def find(runs: Sequence[Brief]) -> list[dict[str, Any]]:
    """``{"kind": "copy" | "shorter copy" | "fork", "runs", "until", "parts_by", "differs"}``: the steps up to which they agree, and
    by which they have parted (None for copies)."""
    begun = Counter(_start(r) for r in runs if r.prefixes)
    told = sorted((r for r in runs if begun[_start(r)] > 1), key=lambda r: (_hashes(r), r.id))
    found: list[dict[str, Any]] = []
    same: list[Brief] = []
    for r in told:
        if same and _hashes(same[0]) == _hashes(r):
            same.append(r)
            continue
        _copies(same, found)
        if same:
            _pair(same[0], r, found)
        same = [r]
    _copies(same, found)
    return found[:MOST]


def _start(r: Brief) -> str:
    return r.prefixes.partition(" ")[0]


def _prefixes(r: Brief) -> list[tuple[int, int, str]]:
    """(points, step, hash), growing."""
    parts = (p.split(":") for p in r.prefixes.split())
    return [(int(n), int(step), h) for n, step, h in parts]


def _hashes(r: Brief) -> list[tuple[int, str]]:
    return [(n, h) for n, _, h in _prefixes(r)]


def _copies(same: list[Brief], found: list[dict[str, Any]]) -> None:
    if len(same) > 1 and _prefixes(same[0])[-1][0] >= LEAST:
        until = _prefixes(same[0])[-1][1]
        names = [r.id for r in same]
        found.append({"kind": "copy", "runs": names, "until": until, "parts_by": None, "differs": differences(same[0], same[1])[:FEW]})


def _pair(a: Brief, b: Brief, found: list[dict[str, Any]]) -> None:
    """Neighbours in the order of their hashes share the longest beginning."""
    one, two = _prefixes(a), _prefixes(b)
    common = 0
    for x, y in zip(one, two, strict=False):
        if (x[0], x[2]) != (y[0], y[2]):
            break
        common += 1
    if not common or one[common - 1][0] < LEAST:
        return
    short, long = sorted((one, two), key=len)
    ends = common == len(short) - 1 and len(long) > common and short[-1][0] < long[common][0]  # between two points of the grid
    whole = len(short) == common or ends
    later = [p[common][1] for p in (one, two) if len(p) > common]
    found.append(
        {
            "kind": "shorter copy" if whole else "fork",
            "runs": [a.id, b.id],
            "until": one[common - 1][1],
            "parts_by": None if whole else min(later),
            "differs": differences(a, b)[:FEW],
        }
    )
