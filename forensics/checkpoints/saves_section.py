"""The section of the case on checkpoints: one row for each, and what was found in them. Statistics are those already read.

Two things read values again, and only of small runs: findings of the first and last checkpoint (spikes need both moments
together), and how far the weights moved from one to the next.
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

from forensics.checkpoints import run_saves
from forensics.checkpoints.age import counters
from forensics.checkpoints.between_saves import EMBEDDING, HEAD, QK, growth
from forensics.checkpoints.describe import Checkpoint, compare, plain_name
from forensics.checkpoints.looks import Found, measured
from forensics.checkpoints.sick_document import findings, gravest
from forensics.checkpoints.sick_values import damaged
from parsers.tables import Run

AGAIN = 256 << 20  # bytes read a second time
SHOWN = 40  # rows


def section(run: Run) -> dict[str, Any] | None:
    """{"rows": [...], "findings": [...]} as docs/case.md has it; None where no checkpoint could be opened."""
    if not run.tables["checkpoints"].num_rows:
        return None
    found = run_saves.tensors(run)
    if not found:
        return None
    moved = _moved(found)
    shown = found if len(found) <= SHOWN else [*found[:1], *found[1 - SHOWN :]]
    rows = [_row(run, c) | {"moved": moved.get(i)} for i, c in enumerate(found) if any(c is x for x in shown)]
    return {"rows": rows, "findings": _findings(run, found)}


def _row(run: Run, c: Checkpoint) -> dict[str, Any]:
    n = counters(c)
    return {
        "path": run_saves.name(c, run), "step": c.step, "kind": c.kind, "format": c.contents.format, "bytes": c.contents.bytes,
        "complete": c.contents.complete, "healthy": _healthy(c), "optimizer_steps": n.optimizer, "schedule_steps": n.scheduler,
        "lr": n.lr, "norms": _norms(c),
    }  # fmt: skip


def _healthy(c: Checkpoint) -> bool | None:
    """None where it holds no weights, or their values were not all read."""
    if c.contents.complete is False:
        return False
    if c.kind not in ("weights", "full") or not c.stats:
        return None
    return False if damaged(c) else True if run_saves.is_whole(c) else None


def _norms(c: Checkpoint) -> dict[str, float | None]:
    """Of all weights, of queries and keys, of embeddings and of heads: together, as one long vector. None where there are none."""
    kinds = {"weights": None, "query_key": QK, "embedding": EMBEDDING, "head": HEAD}
    weights = measured(c, "weight")
    found: dict[str, float | None] = {}
    for kind, pattern in kinds.items():
        squares = [s.squares for t, s in weights if pattern is None or pattern.search(t.name)]
        found[kind] = float(f"{math.sqrt(sum(squares)):.6g}") if squares else None
    return found


def _moved(found: list[Checkpoint]) -> dict[int, dict[str, Any]]:
    """By the later of two: how far the weights went, over their norm, and a value's mean move a step over the rate."""
    left, moved = AGAIN, {}
    held = [(i, c) for i, c in enumerate(found) if c.stats and c.step is not None and measured(c, "weight")]
    for (_, a), (i, b) in reversed(list(pairwise(held))):
        cost = a.contents.bytes + b.contents.bytes
        if a.step is None or b.step is None or b.step <= a.step or cost > left:
            continue
        left -= cost
        names = {plain_name(t.name): s for t, s in measured(a, "weight")}
        rows = [r for r in compare(a, b) if r["role"] == "weight" and r["update_norm"] is not None]
        sizes = [s for r in rows if (s := names.get(plain_name(r["name"]))) is not None]
        count, norm = sum(s.count for s in sizes), math.sqrt(sum(s.squares for s in sizes))
        far = math.sqrt(sum(r["update_norm"] ** 2 for r in rows))
        if not count or not norm or not math.isfinite(far):
            continue
        rate = max((n.lr for c in (a, b) if (n := counters(c)).lr), default=None)
        a_step = far / math.sqrt(count) / (b.step - a.step)
        figures = {"norm": float(f"{far:.6g}"), "relative": float(f"{far / norm:.6g}")}
        moved[i] = {"since": a.step, **figures, "step_over_rate": float(f"{a_step / rate:.4g}") if rate else None}
    return moved


def _findings(run: Run, found: list[Checkpoint]) -> list[dict[str, Any]]:
    """What `forensics checkpoint` says of the first, the first sick and the last one, and of the norms between; the gravest first."""
    told = []
    sick = [c for c in found if _healthy(c) is False][:1]
    for c in {id(c): c for c in (*found[:1], *sick, found[-1])}.values():
        if c.contents.bytes <= AGAIN:
            told += [_told(run, c, f) for f in findings(c) if f["id"] not in ("init_recipe", "no_rng_state")]
    held = [c for c in found if c.stats and measured(c, "weight")]
    if len(held) > 1:
        told += [_told(run, held[-1], f) for f in growth(held[0], held[-1])]
    once = {(f["id"], f["title"]): f for f in reversed(told)}  # what both say stands with the earlier
    return gravest(once.values())[:20]


def _told(run: Run, c: Checkpoint, f: Found) -> Found:
    return {"path": run_saves.name(c, run), "step": c.step, **{k: f[k] for k in ("id", "severity", "title")}}
