"""Weights that stood still, were replaced or ran away from one checkpoint to the next, and parts that did not come along."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from statistics import median

from forensics.checkpoints.age import counters
from forensics.checkpoints.buffers import SETTLED
from forensics.checkpoints.describe import Checkpoint, plain_name
from forensics.checkpoints.looks import Found, finding, gain, is_matrix, is_state, kin, moved_matrices, parameters, rms, such, worst_first
from forensics.checkpoints.weights import parameter_names

STILL = 1e-5  # of its norm: where others moved no more, bit-equality is rounding
WHOLE_PART = 0.3  # of the matrices: so many are frozen on purpose (a backbone, all but adapters)
REPLACED = 1.0  # of its norm: what an independent draw differs by is 1.4
TIMES = 5.0  # times the median of the other matrices' moves: layers of one network move within about three of each other
UNRELATED = 0.3  # cosine of before and after; a trained layer keeps above 0.5 while the others move a fifth as far
RAN_AWAY = 3.0  # times the largest gain that any other matrix has: growth from zeros ends within theirs


def _went_on(a: Checkpoint, b: Checkpoint) -> bool:
    return a.step is not None and b.step is not None and b.step > a.step


def frozen(a: Checkpoint, b: Checkpoint, changed: Sequence[Found]) -> Iterator[Found]:
    """All bit-equal: the training did nothing. Single matrices bit-equal inside blocks that moved: warned of, unless kept from the optimizer."""
    weights = [r for r in changed if r["role"] == "weight" and r["equal"] is not None]
    still = [r["name"] for r in weights if r["equal"]]
    if still and len(still) == len(weights):
        steps = f" after {(b.step or 0) - (a.step or 0)} steps: the training did not move them" if _went_on(a, b) else ""
        yield finding("same_weights", "warning" if steps else "info", f"All weights are bit for bit the same{steps}")
    elif still:
        title = f"{len(still)} of {len(weights)} weights are bit for bit the same while others moved"
        yield finding("frozen", "warning" if _by_mistake(b, weights, set(still)) else "info", title, still)


def _by_mistake(b: Checkpoint, weights: list[Found], still: set[str]) -> bool:
    shapes = {plain_name(t.name): t for t in b.contents.tensors}
    matrices = [r for r in weights if (t := shapes.get(plain_name(r["name"]))) is not None and is_matrix(t)]
    moved = [r for r in matrices if r["name"] not in still]
    stuck = [r for r in matrices if r["name"] in still]
    kept_out = 0 < counters(b).params <= len(parameters(b)) - len(still)  # the optimizer was not given them
    adapters = any("lora" in r["name"].lower() for r in weights)
    if not stuck or not moved or kept_out or adapters or median(r["relative"] or 0.0 for r in moved) < STILL:
        return False
    stepped = {plain_name(x) for x in parameter_names(b).values()}
    if any(plain_name(r["name"]) in stepped for r in stuck):  # the optimizer has moments for it, and has not moved it
        return True
    modules = {r["name"].rpartition(".")[0] for r in weights if not r["equal"]}
    half = [r for r in stuck if r["name"].rpartition(".")[0] in modules]  # its bias moved; to freeze a layer is to freeze both
    if half and len(half) <= len(moved):  # else only biases are trained (BitFit)
        return True
    if len(stuck) > WHOLE_PART * len(matrices):
        return False
    blocks, kinds = {_block(r["name"]) for r in moved}, {kin(r["name"]) for r in moved}
    return any(_block(r["name"]) in blocks and (kin(r["name"]) in kinds or "." not in _block(r["name"])) for r in stuck)


def _block(name: str) -> str:
    """Up to the first number: a layer with all its parts."""
    m = re.match(r"(.*?\.\d+)\.", plain_name(name))
    return m[1] if m else ""


def sudden(a: Checkpoint, b: Checkpoint, changed: Sequence[Found]) -> Iterator[Found]:
    """A few matrices that moved far more than the others: made anew, exchanged, or exploded. Growth from (nearly) zero is none of these."""
    rows = moved_matrices(a, b, changed)
    if len(rows) < 4:
        return
    usual = median(m.relative for m in rows)
    kinds: defaultdict[str, list[float]] = defaultdict(list)
    for m in rows:
        kinds[kin(m.name)].append(m.relative)
    largest = max((gain(*m.after) for m in rows if m.relative <= max(TIMES * usual, STILL)), default=None)
    replaced, ran = [], []
    for m in rows:
        if m.relative < REPLACED * 0.8 or m.relative < TIMES * usual:
            continue
        like = kinds[kin(m.name)]
        beyond = largest is not None and gain(*m.after) > RAN_AWAY * largest
        beyond |= len(like) >= 3 and m.relative > TIMES * median(like)  # its kin began as it did, and did not grow so
        if beyond and rms(m.after[1]) > 2 * rms(m.before[1]):
            ran.append((m.relative, m.name))
        elif 0.3 < m.grown < 3 and m.cosine < UNRELATED:
            replaced.append((m.relative, m.name))
    for kind, few, what in (("exploded", ran, "ran away: it moved"), ("replaced", replaced, "was reinitialized or swapped: it moved")):
        if few and len(few) <= 0.25 * len(rows):
            times, name = max(few)
            title = f"{name} {what} {times:.3g} times its norm, the others {usual:.2g}{such(few)}"
            yield finding(kind, "warning", title, worst_first(few))


def left_behind(a: Checkpoint, b: Checkpoint, changed: Sequence[Found]) -> Iterator[Found]:
    """The weights went on; the optimizer, the averages or the schedule did not."""
    equal: defaultdict[str, list[bool]] = defaultdict(list)
    sizes = {t.name: t.count for t in a.contents.tensors}
    for r in changed:
        if r["equal"] is not None and sizes.get(r["name"], 0) > 1:  # single numbers (ASGD's mu) need not move
            equal["exp_avg" if is_state(r["name"]) else r["role"]].append(r["equal"])
    if not equal["weight"] or all(equal["weight"]) or not _went_on(a, b):
        return
    for role, what in (("exp_avg", "The optimizer's moments are"), ("ema", "The averages of the weights (EMA) are")):
        if len(equal[role]) > 1 and all(equal[role]):
            title = f"{what} bit for bit the same at step {a.step} and {b.step}, while the weights moved"
            yield finding("left_behind", "warning", title)
    x, y = counters(a), counters(b)
    for kind, old, new, what, end in (
        ("schedule_behind", x.scheduler if (x.scheduler or 0) >= SETTLED else None, y.scheduler, "The schedule", "it"),
        ("optimizer_behind", x.optimizer, y.optimizer, "The optimizer's count", "its state"),
    ):
        if old and new is not None and new < old:
            yield finding(kind, "warning", f"{what} went back from {old} to {new} between step {a.step} and {b.step}: {end} began anew")
