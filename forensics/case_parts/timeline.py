"""What the timeline of the page shows: the main metrics, thinned so that no extreme is lost, with marks and bands."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from forensics.case import Finding
from forensics.case_parts import summary
from forensics.detectors import divergence, loss_spike
from forensics.run.downsample import m4
from forensics.run.series import Series, names, series
from parsers.tables import Run

FIRST = (
    "loss.train",
    "loss.eval",
    "grad.norm",
    "lr",
    "loss_scale",
    "tput.tokens",
    "tput.tokens_dev",
    "tput.samples",
    "tput.steps",
    "time.step",
    "mem.alloc",
    "mem.reserved",
    "acc.train",
    "acc.eval",
    "rl.reward",
)
MOST, COLUMNS, FEW_COLUMNS = 24, 400, 120  # series in all; columns of the first ones, of the rest
_BOOKKEEPING = re.compile(
    r"(?i)(?:^|[/_. ])(?:id|pid|uuid|index|idx|timestamp|wall_?time|elapsed|eta|accumulated\w*time|\w+_count|count|total_\w+|version)$"
)
SKIPPED = ("axis/", "epoch", "step", "time.total")


def build(run: Run, findings: Sequence[Finding]) -> dict[str, Any]:
    """Series, marks, bands and the clock; evidence.py names the keys."""
    known = [n for n in names(run, least=2) if not n.startswith(SKIPPED)]
    chosen = [n for n in FIRST if n in known]
    chosen += [n for n in known if n not in chosen]
    shown: list[dict[str, Any]] = []
    drawn: list[Series] = []
    for i, name in enumerate(chosen):
        if len(shown) >= MOST:
            break
        s = series(run, name)
        if s is None or len(s) < 2:  # of its points, some had no step or belong to a second tag
            continue
        columns = COLUMNS if i < 6 else FEW_COLUMNS
        attempts = [{"attempt": a, "points": m4(step, value, columns)} for a, step, value in s.attempts()]
        shown.append({"metric": s.name, "tag": s.tag, "unit": s.unit, "scale": s.scale, "lives": attempts, "aside": _aside(s, drawn)})
        drawn.append(s)
    return {"series": shown, "marks": _marks(run, findings), "bands": _bands(findings), "clock": summary.clock(run)}


def _aside(s: Series, drawn: Sequence[Series]) -> str | None:
    """Why a series has nothing to see beside those that are drawn before it; None for one that has."""
    same = next(
        (d for d in drawn if len(d) == len(s) and (d.step == s.step).all() and np.array_equal(d.value, s.value, equal_nan=True)), None
    )
    if same is not None:
        return f"the same as {same.tag}"
    if s.name in FIRST or not s.name.startswith("other/"):
        return None
    if len(np.unique(s.value)) == 1:
        return "constant"
    return "bookkeeping" if _BOOKKEEPING.search(s.tag) else None


def _marks(run: Run, findings: Sequence[Finding]) -> list[dict[str, Any]]:
    marks = [{"step": f.first_step, "label": f.title, "kind": "restart", "finding": f.id} for f in findings if f.kind == "restart"]
    marks += [{"step": f.first_step, "label": f.title, "kind": "nonfinite", "finding": f.id} for f in findings if f.kind == "nonfinite"]
    steps = sorted({s for s in run.tables["checkpoints"]["step"].to_pylist() if s is not None})
    marks += [{"step": s, "label": f"checkpoint {s}", "kind": "checkpoint"} for s in steps[:: max(1, len(steps) // 50)]]
    drawn = {"loss_spike", "restart", "nonfinite", "divergence", "plateau"}
    marks += [
        {"step": f.first_step, "label": f.title, "kind": "event", "finding": f.id}
        for f in findings
        if f.kind not in drawn and f.severity != "info"
    ]
    return [m for m in marks if m["step"] is not None]


def _bands(findings: Sequence[Finding]) -> list[dict[str, Any]]:
    kinds = [(f, f.facts.class_) for f in findings if isinstance(f.facts, loss_spike.Facts)]
    kinds += [(f, "slow" if f.facts.above_first else "non_recovering") for f in findings if isinstance(f.facts, divergence.Facts)]
    return [{"from": f.first_step, "to": f.last_step, "kind": kind, "finding": f.id} for f, kind in kinds]
