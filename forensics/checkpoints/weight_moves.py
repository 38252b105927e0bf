"""Weights that stood still, were replaced or ran away from one checkpoint to the next, and parts that did not come along."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Sequence
from statistics import median

from forensics.checkpoints.age import counters
from forensics.checkpoints.buffers import SETTLED
from forensics.checkpoints.describe import Checkpoint, plain_name
from forensics.checkpoints.layers import gain, is_matrix, kin, rms
from forensics.checkpoints.sick_values import Found, finding, is_state, measured
from forensics.checkpoints.weights import parameter_names
from parsers.checkpoints.contents import Tensor
from parsers.checkpoints.value_stats import Stats

STILL = 1e-5  # of its norm: where others moved no more, bit-equality is rounding
WHOLE_PART = 0.3  # of the matrices: so many are frozen on purpose (a backbone, all but adapters)
REPLACED = 1.0  # of its norm: what an independent draw differs by is 1.4
TIMES = 5.0  # times the median of the other matrices' moves: layers of one network move within about three of each other
UNRELATED = 0.3  # cosine of before and after; a trained layer keeps above 0.5 while the others move a fifth as far
RAN_AWAY = 3.0  # times the largest gain that any other matrix has: growth from zeros ends within theirs


def moves(a: Checkpoint, b: Checkpoint, changed: Sequence[Found]) -> list[Found]:
    return [*frozen(a, b, changed), *sudden(a, b, changed), *left_behind(a, b, changed)]


def _went_on(a: Checkpoint, b: Checkpoint) -> bool:
    return a.step is not None and b.step is not None and b.step > a.step


def frozen(a: Checkpoint, b: Checkpoint, changed: Sequence[Found]) -> list[Found]:
    """All bit-equal: the training did nothing. Single matrices bit-equal inside blocks that moved: warned of, unless kept from the optimizer."""
    weights = [r for r in changed if r["role"] == "weight" and r["equal"] is not None]
    still = [r["name"] for r in weights if r["equal"]]
    if not still:
        return []
    if len(still) == len(weights):
        steps = f" after {(b.step or 0) - (a.step or 0)} steps: the training did not move them" if _went_on(a, b) else ""
        return [finding("same_weights", "warning" if steps else "info", f"All weights are bit for bit the same{steps}")]
    title = f"{len(still)} of {len(weights)} weights are bit for bit the same while others moved"
    return [finding("frozen", "warning" if _by_mistake(b, weights, set(still)) else "info", title, still)]


def _by_mistake(b: Checkpoint, weights: list[Found], still: set[str]) -> bool:
    shapes = {plain_name(t.name): t for t in b.contents.tensors}
    matrices = [r for r in weights if (t := shapes.get(plain_name(r["name"]))) is not None and is_matrix(t)]
    moved = [r for r in matrices if r["name"] not in still]
    stuck = [r for r in matrices if r["name"] in still]
    n = counters(b)
    parameters = {
        tuple((id(p.file), p.offset) for p in t.pieces) or id(t) for t in b.contents.tensors if t.role == "weight"
    }  # tied ones once
    kept_out = 0 < n.params <= len(parameters) - len(still)  # the optimizer was not given them
    if (
        not stuck
        or not moved
        or kept_out
        or any("lora" in r["name"].lower() for r in weights)
        or median(r["relative"] or 0.0 for r in moved) < STILL
    ):
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
    single = [r for r in stuck if _block(r["name"]) in blocks and (kin(r["name"]) in kinds or "." not in _block(r["name"]))]
    return bool(single)


def _block(name: str) -> str:
    """Up to the first number: a layer with all its parts."""
    m = re.match(r"(.*?\.\d+)\.", plain_name(name))
    return m[1] if m else ""


def sudden(a: Checkpoint, b: Checkpoint, changed: Sequence[Found]) -> list[Found]:
    """A few matrices that moved far more than the others: made anew, exchanged, or exploded. Growth from (nearly) zero is none of these."""
    old = {t.name: (t, s) for t, s in measured(a, "weight")}
    new = {plain_name(t.name): (t, s) for t, s in measured(b, "weight")}
    rows = []
    for r in changed:
        x, y = old.get(r["name"]), new.get(plain_name(r["name"]))
        if r["relative"] is not None and x is not None and y is not None and is_matrix(x[0]) and math.isfinite(r["relative"]):
            rows.append((r, x, y))
    if len(rows) < 4:
        return []
    usual = median(r["relative"] for r, _, _ in rows)
    kinds: defaultdict[str, list[float]] = defaultdict(list)
    for r, _, _ in rows:
        kinds[kin(r["name"])].append(r["relative"])
    others = sorted(gain(*y) for r, _, y in rows if r["relative"] <= max(TIMES * usual, STILL))
    replaced, ran = [], []
    for r, x, y in rows:
        if r["relative"] < REPLACED * 0.8 or r["relative"] < TIMES * usual:
            continue
        like = kinds[kin(r["name"])]
        beyond = gain(*y) > RAN_AWAY * others[-1] if others else False
        beyond |= len(like) >= 3 and r["relative"] > TIMES * median(like)  # its kin began as it did, and did not grow so
        if beyond and rms(y[1]) > 2 * rms(x[1]):
            ran.append((r["relative"], r["name"]))
        elif 0.3 < rms(y[1]) / max(rms(x[1]), 1e-300) < 3 and _cosine(r["update_norm"], x[1], y[1]) < UNRELATED:
            replaced.append((r["relative"], r["name"]))
    found = []
    for kind, few, what in (("exploded", ran, "ran away: it moved"), ("replaced", replaced, "was reinitialized or swapped: it moved")):
        if few and len(few) <= 0.25 * len(rows):
            times, name = max(few)
            found.append(
                finding(
                    kind,
                    "warning",
                    f"{name} {what} {times:.3g} times its norm, the others {usual:.2g}" + (f"; {len(few)} such" if few[1:] else ""),
                    [n for _, n in sorted(few, reverse=True)],
                )
            )
    return found


def _cosine(update: float, x: Stats, y: Stats) -> float:
    return (x.squares + y.squares - update * update) / (2 * x.norm * y.norm) if x.norm and y.norm else 1.0


def left_behind(a: Checkpoint, b: Checkpoint, changed: Sequence[Found]) -> list[Found]:
    """The weights went on; the optimizer, the averages or the schedule did not. Weights that are no longer there."""
    equal: defaultdict[str, list[bool]] = defaultdict(list)
    sizes = {t.name: t.count for t in a.contents.tensors}
    for r in changed:
        if r["equal"] is not None and sizes.get(r["name"], 0) > 1:  # single numbers (ASGD's mu) need not move
            equal["exp_avg" if is_state(r["name"]) else r["role"]].append(r["equal"])
    found = []
    if equal["weight"] and not all(equal["weight"]) and _went_on(a, b):
        for role, what in (("exp_avg", "The optimizer's moments are"), ("ema", "The averages of the weights (EMA) are")):
            if len(equal[role]) > 1 and all(equal[role]):
                found.append(
                    finding("left_behind", "warning", f"{what} bit for bit the same at step {a.step} and {b.step}, while the weights moved")
                )
        x, y = counters(a), counters(b)
        if x.scheduler and y.scheduler is not None and y.scheduler < x.scheduler and x.scheduler >= SETTLED:
            found.append(
                finding(
                    "schedule_behind",
                    "warning",
                    f"The schedule went back from {x.scheduler} to {y.scheduler} between step {a.step} and {b.step}: it was reset",
                )
            )
        if x.optimizer and y.optimizer is not None and y.optimizer < x.optimizer:
            found.append(
                finding(
                    "optimizer_behind",
                    "warning",
                    f"The optimizer's count went back from {x.optimizer} to {y.optimizer} between step {a.step} and {b.step}: its state was reset",
                )
            )
    return [*found, *_gone(a, b)]


def _gone(a: Checkpoint, b: Checkpoint) -> list[Found]:
    def names(c: Checkpoint) -> dict[str, Tensor]:
        return {plain_name(t.name): t for t in c.contents.tensors if t.role == "weight"}

    x, y = names(a), names(b)
    gone = [n for n in x if n not in y]
    if gone and y and all(n in x for n in y) and len(gone) < 0.5 * len(x) and a.contents.format == b.contents.format:
        return [finding("weights_gone", "warning", f"{len(gone)} of {len(x)} weights are no longer there, {gone[0]} first", gone)]
    return []
