"""Matrices that are another one: a copy of another layer, and between two saves drawn anew, negated, transposed or exchanged.

Statistics pick the few candidates; only their values are read, within a budget.
"""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from statistics import median
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forensics.checkpoints.describe import Checkpoint, difference, plain_name
from forensics.checkpoints.layers import is_matrix, kin, rms, young
from forensics.checkpoints.sick_values import Found, finding, measured
from parsers.checkpoints.contents import Tensor, chunks
from parsers.checkpoints.statistics import values
from parsers.checkpoints.unreadable import Unreadable
from parsers.checkpoints.value_stats import Stats

READ = 256 << 20  # bytes of values looked at
TIMES = 3.0  # times the median move: layers of one network move within about three of each other
NEARER = 0.75  # of the distance to what it was: so near to something else, it comes from there; steps of its own lead to no other layer
SAME = 0.9  # cosine of a matrix with what it was: layers of one network keep above it from save to save, or lose it together
CHANCE = 4.0  # standard errors, 1/sqrt(n), that the cosine of independent draws stays within
LEAST = 64  # values; of fewer, chance gives any cosine
SIZE = (1 / 3, 3.0)  # norm after over before: what grew out of a small start has forgotten it, and is no accident
BLOCK = 3  # matrices of one layer that are all copies: layers repeated on purpose (depth expansion, merges)

Measured = tuple[Tensor, Stats]


def place(t: Tensor) -> Any:
    """Equal for tensors that share their bytes: tied weights."""
    return tuple((id(p.file), p.offset) for p in t.pieces) or id(t)


def copies(c: Checkpoint) -> list[Found]:
    """Layers of one kind that are bit for bit the same while others of the kind are not."""
    if young(c):
        return []
    kinds: defaultdict[str, list[Measured]] = defaultdict(list)
    for t, s in measured(c, "weight"):
        if is_matrix(t) and t.count >= LEAST and s.std > 1e-6 * s.absmax and not s.nonfinite:
            kinds[kin(plain_name(t.name))].append((t, s))
    twins = [twin for members in kinds.values() for twin in _twins(members)]
    if not twins:
        return []
    a, b = twins[0]
    blocks = Counter((_numbers(x), _numbers(y)) for x, y in twins)
    meant = all(n >= BLOCK for n in blocks.values())
    title = f"{b} is bit for bit {a}, while other layers of the kind differ" + (f"; {len(twins)} such pairs" if twins[1:] else "")
    return [finding("copied_weight", "info" if meant else "warning", title, dict.fromkeys(n for pair in twins for n in pair))]


def _numbers(name: str) -> str:
    return ".".join(re.findall(r"\d+", name))


def _twins(members: list[Measured]) -> list[tuple[str, str]]:
    alike: defaultdict[Any, list[Tensor]] = defaultdict(list)
    for t, s in members:
        alike[t.shape, t.dtype, s.squares, s.mean, s.absmax].append(t)
    if len(alike) < 2:  # all of one kind are one: shared on purpose, or cloned and not trained yet
        return []
    return [
        (first.name, t.name)
        for first, *others in alike.values()
        for t in others
        if place(t) != place(first) and difference(first, t, None)["equal"]
    ]


def exchanged(a: Checkpoint, b: Checkpoint, changed: Sequence[Found]) -> list[Found]:
    """Matrices that are no longer what they were, while most of the others nearly are."""
    rows = _pairs(a, b, changed)
    if len(rows) < 3 or (usual := median(r[0] for r in rows)) < SAME:
        return []
    step = median(move for _, move, _, _ in rows)
    left = READ
    told: dict[str, tuple[str, str]] = {}
    for cosine, move, x, y in sorted(rows, key=lambda r: -r[1]):  # the budget goes to what moved most
        name, grown, sudden = x[0].name, rms(y[1]) / max(rms(x[1]), 1e-300), move > TIMES * step
        if x[0].count < LEAST or not SIZE[0] < grown < SIZE[1]:
            continue
        # layers cloned at the start differ little, and an exchange adds little to their moves: their kin are looked at always
        others = [z for _, _, z, _ in rows if z[0].shape == x[0].shape and z[0] is not x[0] and (sudden or kin(z[0].name) == kin(name))]
        left -= 8 * x[0].count * (2 + len(others))
        what, other = _source(cosine, x, y, others) if left >= 0 and (sudden or others) else ("", "")
        if what or (sudden and abs(cosine) < min(CHANCE / math.sqrt(x[0].count), 0.3)):
            told[name] = what or "was reinitialized, or taken from another training", other
    # one way between modules of other names it may be meant: target networks, teachers
    told = {n: (what, of) for n, (what, of) in told.items() if not of or kin(n) == kin(of) or told.get(of, ("", ""))[1] == n}
    if not told or len(told) > 0.5 * len(rows):
        return []
    name, (what, _) = next(iter(told.items()))
    title = f"{name} {what}, while the others kept their direction (cosine {usual:.2f})"
    names = [n for n, (_, other) in told.items() for n in (n, other) if n]
    return [finding("exchanged", "warning", title + (f"; {len(told)} such" if len(told) > 1 else ""), dict.fromkeys(names))]


def _pairs(a: Checkpoint, b: Checkpoint, changed: Sequence[Found]) -> list[tuple[float, float, Measured, Measured]]:
    """(cosine, move, before, after) of each matrix of both; the move in parts of its norm."""
    old = {t.name: (t, s) for t, s in measured(a, "weight")}
    new = {plain_name(t.name): (t, s) for t, s in measured(b, "weight")}
    rows = []
    for r in changed:
        x, y = old.get(r["name"]), new.get(plain_name(r["name"]))
        if x is not None and y is not None and is_matrix(x[0]) and r["update_norm"] is not None:
            cosine = _cosine(r["update_norm"], x[1], y[1])
            if math.isfinite(cosine):
                rows.append((cosine, r["update_norm"] / x[1].norm, x, y))
    return rows


def _cosine(update: float, x: Stats, y: Stats) -> float:
    return (x.squares + y.squares - update * update) / (2 * x.norm * y.norm) if x.norm and y.norm else math.nan


def _source(cosine: float, x: Measured, y: Measured, others: list[Measured]) -> tuple[str, str]:
    """(what the values are, the other layer where they are its), empty where that is not seen."""
    if cosine < -SAME:
        return "is the negative of what it was", ""
    try:
        after, before = _whole(y[0]), _whole(x[0])
        shape, own = x[0].shape, float(np.linalg.norm(after - before))
        if len(shape) == 2 and shape[0] == shape[1] and np.linalg.norm(after - before.reshape(shape).T.reshape(-1)) < NEARER * own:
            return "is the transpose of what it was", ""
        near = [(float(np.linalg.norm(after - _whole(other))), other.name) for other, _ in others]
        if near and min(near)[0] < NEARER * own:
            return f"holds what {min(near)[1]} held", min(near)[1]
    except (Unreadable, ValueError, OSError):
        return "", ""
    return "", ""


def _whole(t: Tensor) -> NDArray[np.float64]:
    if t.layout:
        raise ValueError("not in the order of rows")
    return np.concatenate([values(block, t.dtype).astype(np.float64) for block in chunks(t)])
