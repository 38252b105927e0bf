"""Matrices that are another one: a copy of another layer, and between two saves drawn anew, negated, transposed or exchanged.

Statistics pick the few candidates; only their values are read, within a budget.
"""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from statistics import median
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forensics.checkpoints.describe import Checkpoint, difference, place, plain_name
from forensics.checkpoints.layers import young
from forensics.checkpoints.looks import Found, Measured, Moved, finding, is_matrix, kin, measured, moved_matrices, such
from parsers.checkpoints.contents import Tensor, chunks
from parsers.checkpoints.statistics import values
from parsers.checkpoints.unreadable import Unreadable

READ = 256 << 20  # bytes of values looked at
TIMES = 3.0  # times the median move: layers of one network move within about three of each other
NEARER = 0.75  # of the distance to what it was: so near to something else, it comes from there; steps of its own lead to no other layer
SAME = 0.9  # cosine of a matrix with what it was: layers of one network keep above it from save to save, or lose it together
CHANCE = 4.0  # standard errors, 1/sqrt(n), that the cosine of independent draws stays within
LEAST = 64  # values; of fewer, chance gives any cosine
SIZE = (1 / 3, 3.0)  # norm after over before: what grew out of a small start has forgotten it, and is no accident
BLOCK = 3  # matrices of one layer that are all copies: layers repeated on purpose (depth expansion, merges)


def copies(c: Checkpoint) -> Iterator[Found]:
    """Layers of one kind that are bit for bit the same while others of the kind are not."""
    if young(c):
        return
    kinds: defaultdict[str, list[Measured]] = defaultdict(list)
    for t, s in measured(c, "weight"):
        if is_matrix(t) and t.count >= LEAST and s.std > 1e-6 * s.absmax and not s.nonfinite:
            kinds[kin(plain_name(t.name))].append((t, s))
    twins = [twin for members in kinds.values() for twin in _twins(members)]
    if twins:
        blocks = Counter((_numbers(x), _numbers(y)) for x, y in twins)
        meant = all(n >= BLOCK for n in blocks.values())
        more = f"{such(twins)} pairs" if len(twins) > 1 else ""
        title = f"{twins[0][1]} is bit for bit {twins[0][0]}, while other layers of the kind differ{more}"
        yield finding("copied_weight", "info" if meant else "warning", title, dict.fromkeys(n for pair in twins for n in pair))


def _numbers(name: str) -> str:
    return ".".join(re.findall(r"\d+", name))


def _twins(members: list[Measured]) -> list[tuple[str, str]]:
    alike: defaultdict[Any, list[Tensor]] = defaultdict(list)
    for t, s in members:
        alike[t.shape, t.dtype, s.fingerprint].append(t)
    if len(alike) < 2:  # all of one kind are one: shared on purpose, or cloned and not trained yet
        return []
    pairs = ((first, t) for first, *others in alike.values() for t in others)
    return [(a.name, b.name) for a, b in pairs if place(a) != place(b) and difference(a, b, None)["equal"]]


def exchanged(a: Checkpoint, b: Checkpoint, changed: Sequence[Found]) -> Iterator[Found]:
    """Matrices that are no longer what they were, while most of the others nearly are."""
    rows = [m for m in moved_matrices(a, b, changed) if math.isfinite(m.cosine)]
    if len(rows) < 3 or (usual := median(m.cosine for m in rows)) < SAME:
        return
    step, left = median(m.relative for m in rows), READ
    told: dict[str, tuple[str, str]] = {}
    for m in sorted(rows, key=lambda m: -m.relative):  # the budget goes to what moved most
        t, sudden = m.before[0], m.relative > TIMES * step
        if t.count < LEAST or not SIZE[0] < m.grown < SIZE[1]:
            continue
        # layers cloned at the start differ little, and an exchange adds little to their moves: their kin are looked at always
        olds = [x.before[0] for x in rows if x.before[0].shape == t.shape and x is not m and (sudden or kin(x.name) == kin(m.name))]
        left -= 8 * t.count * (2 + len(olds))
        what, other = _source(m, olds) if left >= 0 and (sudden or olds) else ("", "")
        if what or (sudden and abs(m.cosine) < min(CHANCE / math.sqrt(t.count), 0.3)):
            told[m.name] = what or "was reinitialized, or taken from another training", other
    # one way between modules of other names it may be meant: target networks, teachers
    told = {n: (what, of) for n, (what, of) in told.items() if not of or kin(n) == kin(of) or told.get(of, ("", ""))[1] == n}
    if told and len(told) <= 0.5 * len(rows):
        name, (what, _) = next(iter(told.items()))
        title = f"{name} {what}, while the others kept their direction (cosine {usual:.2f}){such(told)}"
        yield finding("exchanged", "warning", title, dict.fromkeys(n for name, (_, other) in told.items() for n in (name, other) if n))


def _source(m: Moved, others: list[Tensor]) -> tuple[str, str]:
    """(what the values are, the other layer where they are its), empty where that is not seen."""
    if m.cosine < -SAME:
        return "is the negative of what it was", ""
    try:
        after, before = _whole(m.after[0]), _whole(m.before[0])
        shape, own = m.before[0].shape, float(np.linalg.norm(after - before))
        if len(shape) == 2 and shape[0] == shape[1] and np.linalg.norm(after - before.reshape(shape).T.reshape(-1)) < NEARER * own:
            return "is the transpose of what it was", ""
        near, name = min(((float(np.linalg.norm(after - _whole(t))), t.name) for t in others), default=(math.inf, ""))
    except (Unreadable, ValueError, OSError):
        return "", ""
    return (f"holds what {name} held", name) if near < NEARER * own else ("", "")


def _whole(t: Tensor) -> NDArray[np.float64]:
    if t.layout:
        raise ValueError("not in the order of rows")
    return np.concatenate([values(block, t.dtype).astype(np.float64) for block in chunks(t)])
