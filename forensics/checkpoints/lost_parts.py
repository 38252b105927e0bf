"""What one save of a run had and the next has not: optimizer, schedule or scaler, the tie of two weights, the type of a few."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from forensics.checkpoints.describe import Checkpoint, place, plain_name
from forensics.checkpoints.layers import young
from forensics.checkpoints.looks import TABLES, Found, Measured, finding, is_matrix, measured, such, weights_of
from parsers.lazy_regex import lazy_re

_PARTS = {
    "optimizer": lazy_re(r"(?i)(^|[.:/])optim\w*"),
    "schedule": lazy_re(r"(?i)(^|[.:/])(lr_)?sched\w*|last_epoch$"),
    "loss scaler": lazy_re(r"(?i)(^|[.:/])\w*scaler\w*"),
}
_HEADS = lazy_re(r"(?i)(^|[._])(head|output|decoder|out|proj|generator)\.weight$")
FEW = 0.1  # of the matrices; more is a change of precision for all


def parts(c: Checkpoint) -> set[str]:
    """What of the training's state it holds, by the names of values, tensors and files; an empty dict or None is nothing."""
    names = [k for k, v in c.contents.values.items() if v is not None and v != "{}"]
    names += [t.name for t in c.contents.tensors] + ([f.name for f in c.contents.files] if c.path.is_dir() else [])
    return {part for part, rule in _PARTS.items() if any(rule.search(n) for n in names)}


def parts_gone(a: Checkpoint, b: Checkpoint) -> Iterator[Found]:
    """Parts that the later save lacks, where it holds others of the training's state: weights alone are meant so."""
    after = parts(b)
    gone = sorted(parts(a) - after)
    if not gone or (a.step is not None and b.step is not None and b.step < a.step):
        return
    whole = gone != ["loss scaler"]  # bfloat16 needs none
    whole &= bool(after) or any(re.search(r"rng|random_state", k) for k in (*b.contents.values, *(t.name for t in b.contents.tensors)))
    title = f"The {' and the '.join(gone)} of the first save {'is' if len(gone) == 1 else 'are'} no longer in the second: a resume from it begins without"
    yield finding("part_gone", "warning" if whole else "info", title)


def weights_gone(a: Checkpoint, b: Checkpoint) -> Iterator[Found]:
    x, y = weights_of(a), weights_of(b)
    gone = [n for n in x if n not in y]
    if gone and y and all(n in x for n in y) and len(gone) < 0.5 * len(x) and a.contents.format == b.contents.format:
        yield finding("weights_gone", "warning", f"{len(gone)} of {len(x)} weights are no longer there, {gone[0]} first", gone)


def untied(a: Checkpoint, b: Checkpoint) -> Iterator[Found]:
    """Weights that were one in the first (the same bytes, or an embedding equal to a head) and are two in the second."""
    groups: defaultdict[Any, list[str]] = defaultdict(list)
    for t, s in measured(a, "weight"):
        if is_matrix(t) and s.std > 1e-6 * s.absmax:
            table = not young(a) and (TABLES.search(t.name) or _HEADS.search(t.name))
            groups[(t.shape, t.dtype, s.fingerprint) if table else (place(t), t.shape)].append(plain_name(t.name))
    new = {plain_name(t.name): (t, s) for t, s in measured(b, "weight")}
    for first, *others in groups.values():
        for name in others:
            if first in new and name in new and _differ(new[first], new[name]):
                yield finding(
                    "untied", "warning", f"{name} was tied to {first} and is no longer: their values differ in the second", [first, name]
                )
                return


def _differ(a: Measured, b: Measured) -> bool:
    (x, s), (y, u) = a, b
    return place(x) != place(y) and (x.shape != y.shape or s.fingerprint != u.fingerprint)


def types_changed(a: Checkpoint, b: Checkpoint) -> Iterator[Found]:
    """A few matrices saved in another type than before, while the others kept theirs."""
    old = {n: t.dtype for n, t in weights_of(a).items() if is_matrix(t)}
    both = [(t, old[n]) for n, t in weights_of(b).items() if n in old]
    odd = [(t, was) for t, was in both if t.dtype != was]
    if odd and len(odd) <= max(1, FEW * len(both)) and len(both) >= 3:
        t, was = odd[0]
        title = f"{t.name} was {was} and is {t.dtype}, while the other matrices kept their type{such(odd)}"
        yield finding("mixed_types", "warning", title, [x.name for x, _ in odd])
