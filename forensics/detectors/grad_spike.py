"""Gradient-norm spike

What it sees
    The global gradient norm leaves its level upwards.

How it decides
    The same rule as for the loss (``forensics.spikes.excursions``) on the log of the norm, but at least a doubling. Says how the
    largest compares with the usual norm, in which layer it rose most where norms of layers were logged, and whether the loss moved at the same step, before, or after.

Cannot tell
    Where the gradient norm was not logged, or only after clipping (MaxText's learning/grad_norm, Composer's
    l2_norm/grad/global): then the spike is cut off at the clipping threshold.

Folklore
    "The gradient norm is your smoke alarm."
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from forensics import evidence
from forensics.case import BaseFacts, Evidence, Finding
from forensics.run.inputs import needed
from forensics.run.robust import median
from forensics.run.series import parts, series
from forensics.spikes import excursions, plain_rule
from parsers.tables import Run

NEEDS = ["grad.norm"]
FROM_NOTHING = 1e9  # bound: more than float32 tells two numbers of one size apart by; the norm of a skipped update is printed as 0
LEAST_RATIO = 2.0  # unit: a doubling; not critical: for information only, causes weigh it (docs/thresholds.md)
BEFORE, LEAST_BEFORE, SHOWN_LAYERS = 50, 5, 12  # unit: values of a layer that make its usual norm, fewest of them, layers in the table
SHOWN = 20  # unit: findings on a page, the largest ones


@dataclass(frozen=True)
class Facts(BaseFacts):
    """A norm that leaves its level; steps, and norms as logged."""

    start: int
    peak: int
    end: int | None  # None: it does not come back in the log
    ratio: float  # of the top over the level
    level: float
    top: float
    attempt: int
    total: int  # such spikes in the run


def detect(run: Run) -> Iterator[Finding]:
    s = needed(run, "grad.norm")
    found = []
    for attempt in np.unique(s.attempt):
        rows = np.flatnonzero(s.attempt == attempt)
        for e in plain_rule.find(s.value[rows]):
            if e.level > 0 and (e.level + e.height) >= LEAST_RATIO * e.level:
                found.append((e, rows, int(attempt)))
    found.sort(key=lambda f: -f[0].height / f[0].level)
    for e, rows, attempt in sorted(found[:SHOWN], key=lambda f: int(f[1][f[0].peak])):
        start, peak = int(s.step[rows[e.start]]), int(s.step[rows[e.peak]])
        end = int(s.step[rows[e.end]]) if e.end is not None else None
        ratio = (e.level + e.height) / e.level
        times = f"{ratio:.1f} times its level" if ratio < FROM_NOTHING else "from next to nothing"
        title = f"Gradient norm rises to {e.level + e.height:.4g} at step {peak}, {times}"
        facts = Facts(start, peak, end, ratio, e.level, e.level + e.height, attempt, len(found))
        marks = [{"step": peak, "label": times.removesuffix(" its level"), "kind": "event"}]
        where = s.place(run, rows[e.peak])
        shown: tuple[Evidence, ...] = (evidence.window(s, start, end or peak, *marks, title=f"{s.tag} around step {peak}", where=where),)
        layers = _layers(run, start, peak)
        if layers:
            title += f", most of all in {layers[0][0]} ({layers[0][3]:.3g} times)"
            shown = (
                *shown,
                evidence.table("norms by layer at the spike", ["layer", "usual", "at the spike", "times"], layers[:SHOWN_LAYERS]),
            )
        key, clocks = f"{peak}-attempt{attempt}" if attempt else peak, (s.clock(rows[e.start]), s.clock(rows[e.peak]))
        yield evidence.found(facts, title, (start, end or peak), "info", *shown, key=key, times=clocks)


def _layers(run: Run, start: int, peak: int) -> list[list[Any]]:
    """[layer, usual norm, highest in the spike, how many times that], where norms of layers were logged; the largest change first."""
    rows = []
    for s in parts(run, "grad.norm_layer"):
        before, inside = s.value[s.usable & (s.step < start)][-BEFORE:], s.value[s.usable & (s.step >= start) & (s.step <= peak)]
        usual = median(before) if len(before) >= LEAST_BEFORE else 0.0
        if usual > 0 and len(inside):
            rows.append([s.tag, float(f"{usual:.3g}"), float(f"{inside.max():.3g}"), float(f"{inside.max() / usual:.3g}")])
    return sorted(rows, key=lambda r: -r[3]) if len(rows) > 1 else []


def smallest_effect(run: Run) -> str:
    s = series(run, "grad.norm")
    if s is None or (share := excursions.smallest_visible(s.value)) is None:
        return ""
    doubled = excursions.smallest_visible(s.value, 0.0) or 0.0  # what makes up for a value below the level
    return f"{max(1 + share, LEAST_RATIO * (1 + doubled)):.2f} times the usual norm"
