"""Runs of a tracker that one log tells one behind the other: `for seed in 1 2 3; do python train.py; done > nohup.out`.

The tracker gives each of them an id, the log holds all of them. They are read together, so that each part of the log goes with the run that it
tells of; `launches` tells them apart again, by their ids.
"""

from __future__ import annotations

from itertools import combinations

import numpy as np

from parsers.runs.equal_values import ENOUGH, Points, equal_share
from parsers.runs.homes import TRACKERS, inside
from parsers.runs.run_folders import Unit, points, shared
from parsers.runs.spans import at_once

_MOST = 200  # step-backs: more are disorder


def joined_runs(runs: list[list[Unit]]) -> list[list[Unit]]:
    """The runs, with those as one that a log tells of in parts. Runs at the same time are not: no line of a common log says whose it is."""
    for log in [u for r in runs for u in r if u.format not in TRACKERS and len(u.files) == 1]:
        below = [r for r in runs if any(u.format in TRACKERS and inside(u.home, log.home) for u in r)]
        if len(below) < 2 or not (pieces := _pieces(log)):
            continue
        told = [r for r in below if log in r or any(_tells(pieces, log, u) for u in r if u.format in TRACKERS)]
        if len(told) < 2 or any(at_once(a.span, b.span) for one, two in combinations(told, 2) for a in one for b in two):
            continue
        runs = [r for r in runs if r not in told and log not in r]
        runs.append([log, *(u for r in told for u in r if u is not log)])
    return runs


def _pieces(log: Unit) -> list[dict[str, Points]]:
    """What stands between the places where its steps fall back; none where they never do, or without end."""
    found: dict[int, dict[str, Points]] = {}
    for key, (step, value) in points(log).items():
        falls = np.flatnonzero(np.diff(step) < 0) + 1
        if len(falls) > _MOST:
            continue
        for n, (steps, values) in enumerate(zip(np.split(step, falls), np.split(value, falls), strict=True)):
            found.setdefault(n, {})[key] = steps, values
    return list(found.values()) if len(found) > 1 else []


def _tells(pieces: list[dict[str, Points]], log: Unit, run: Unit) -> bool:
    """Does a part of the log say what the run logged, at the same steps?"""
    both, own = shared(log, run), points(run)
    for piece in pieces:
        equal = [e for k in both & piece.keys() if (e := equal_share(piece[k], own[k])) is not None]
        if equal and np.median(equal) >= ENOUGH:
            return True
    return False
