"""Frozen weights

What it sees
    Weights that are bit for bit the same in two checkpoints of a run while others moved, all weights in more than two, and adapters
    (LoRA) that are as they were made.

How it decides
    The first and the last checkpoint that hold the same weights are compared tensor by tensor. Tensors that a checkpoint
    format stores twice count twice. It is a warning where a fifth of all tensors stood still; adapters (LoRA) are frozen on
    purpose and only noted. Where all weights are equal it is a warning if they are so in every checkpoint and there are three or more,
    or the evaluation gave one loss three times: of two, one may be a copy of the other, as where the best weights were put back. The second matrix of an adapter is made as zeros
    and leaves them with the first step.

Cannot tell
    Where fewer than two checkpoints with weights lie in the folder.

Folklore
    "Verify that the optimizer actually has the parameters": a requires_grad left off after a probe, a list where a ModuleList
    should be, a detach on the way.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from forensics import evidence
from forensics.case import BaseFacts, Finding
from forensics.checkpoints import run_saves
from forensics.checkpoints.buffers import adapters
from forensics.checkpoints.describe import Checkpoint, compare, plain_name
from forensics.errors import CannotTell
from forensics.run.series import series
from parsers.lazy_regex import lazy_re
from parsers.tables import Run

NEEDS: list[str] = []
INPUTS = ["checkpoints"]
SHARE = 0.2  # of the tensors; not critical: no run of docs/thresholds.md has between 14 and 28 % of them still without intent
ALIKE = 3  # bound: evaluations with one loss, of which a third lies between two checkpoints or beyond
_ADAPTER = lazy_re(r"(?i)lora_|adapter|prompt_encoder|ia3_")
SMALLEST_EFFECT = "one tensor in which no bit moved"


@dataclass(frozen=True)
class Facts(BaseFacts):
    """Weights that stood still between two checkpoints."""

    still: int
    of: int
    share: float
    adapter: bool  # the names say that a frozen base is meant
    tensors: list[str]  # the first fifty


def detect(run: Run) -> Iterator[Finding]:
    both = pair(run_saves.tensors(run))
    if both is None:
        raise CannotTell("no two checkpoints with the same weights lie in the folder")
    a, b = both
    changed = [r for r in compare(a, b) if r["role"] == "weight" and r["equal"] is not None]
    still = [r for r in changed if r["equal"]]
    yield from _adapters(b, run)
    if not still:
        return
    if len(still) == len(changed):
        yield from _all_still(run, a, b, changed)
        return
    share = len(still) / len(changed)
    meant = any(_ADAPTER.search(r["name"]) for r in changed)
    names = ", ".join(plain_name(r["name"]) for r in still[:3]) + (f" and {len(still) - 3} more" if len(still) > 3 else "")
    title = f"{len(still)} of {len(changed)} weights are bit for bit the same at step {a.step} and at step {b.step}, while others moved: {names}"
    rows = [[r["name"], "no" if r["equal"] else "yes", None if r["relative"] is None else float(f"{r['relative']:.4g}")] for r in changed]
    moved = sorted(rows, key=lambda r: r[1] == "yes")[:40]
    facts = Facts(len(still), len(changed), share, meant, [r["name"] for r in still[:50]])
    table = evidence.table("what moved", ["tensor", "moved", "norm of the move / norm"], moved, run_saves.name(b, run))
    severity = "warning" if share >= SHARE and not meant else "info"
    yield evidence.found(facts, title, (a.step, b.step), severity, table, key=b.step)


def _adapters(last: Checkpoint, run: Run) -> Iterator[Finding]:
    for told in adapters(last):
        rows = [[name] for name in told["tensors"][:40]]
        facts = Facts(len(told["tensors"]), len(told["tensors"]), 1.0, True, told["tensors"][:50])
        table = evidence.table("all zeros", ["tensor"], rows, run_saves.name(last, run))
        yield evidence.found(facts, told["title"], (last.step or 0, last.step or 0), "warning", table, key=f"adapters-{last.step}")


def _all_still(run: Run, a: Checkpoint, b: Checkpoint, rows: list[dict[str, Any]]) -> Iterator[Finding]:
    """Every weight is the same in `a` and `b`: a finding where no other checkpoint of the run differs either."""
    if any(s.nonfinite for t in rows if (s := b.stats.get(t["name"]))):
        return  # what is NaN stays so
    others = [c for c in run_saves.tensors(run) if c is not a and c is not b and c.stats and c.step is not None]
    if any(not r["equal"] for c in others for r in compare(a, c) if r["role"] == "weight" and r["equal"] is not None):
        return
    names = [r["name"] for r in rows]
    title = f"All {len(rows)} weights are bit for bit the same at step {a.step} and at step {b.step}"
    table = evidence.table("what moved", ["tensor", "moved"], [[n, "no"] for n in names[:40]], run_saves.name(b, run))
    severity = "warning" if others or _evaluates_alike(run) else "info"
    yield evidence.found(Facts(len(rows), len(rows), 1.0, False, names[:50]), title, (a.step, b.step), severity, table, key=b.step)


def _evaluates_alike(run: Run) -> bool:
    """Whether every evaluation gave the same loss to its last digit: two checkpoints alone may be one that was saved twice."""
    s = series(run, "loss.eval")
    return s is not None and s.usable.sum() >= ALIKE and bool(np.ptp(s.value[s.usable]) == 0)


def pair(found: list[Checkpoint]) -> tuple[Checkpoint, Checkpoint] | None:
    """The first and the last that were read and hold weights of the same names."""
    read = [(c, {plain_name(t.name) for t in c.contents.tensors if t.role == "weight" and not t.why}) for c in found if c.stats]
    read = [(c, names) for c, names in read if names and c.step is not None]
    for i, (a, names) in enumerate(read):
        for b, others in reversed(read[i + 1 :]):
            if len(names & others) > 1 and a.step != b.step:
                return a, b
    return None
