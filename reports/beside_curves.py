"""What a curve of the first screen has beside it in one chart: training beside evaluation, with the gap; the parts of a step's time."""

from __future__ import annotations

import math
from bisect import bisect_left
from typing import Any

from reports import text_format, timeline_chart
from reports.chart import Curve
from reports.scales import Point, Scale

Case = dict[str, Any]
Key = tuple[str, str]
PARTS = ("eval", "part")  # classes of the parts of a step: two at most
WHOLE = ("time.step", "time.total")


def of(case: Case, data: Case, drawn: list[Curve], x: Scale) -> tuple[list[Curve], list[Key]]:
    """(all curves of the chart, what each is); nothing where the curve stands alone."""
    metric, unit, cut = str(data.get("metric")), data.get("unit") or "", timeline_chart.abandoned_from(case)
    alike = [s for s in case["timeline"]["series"] if (s.get("unit") or "") == unit]
    if metric == "loss.eval":
        train = next((s for s in alike if s.get("metric") == "loss.train"), None)
        below = within(timeline_chart.curves(train, cut), x) if train else []
        if not below:
            return [], []
        held = [Curve(c.points, "eval" if c.kind == "run" else c.kind) for c in drawn]
        gap = [Curve(g, "gap") for c in held if c.kind == "eval" and (g := _gap(c.points, [p for b in below for p in b.points]))]
        return [*gap, *below, *held], [("k-run", "training"), ("k-eval", "evaluation"), *([("gap", "the gap")] if gap else [])]
    if metric == "time.step":
        parts = [s for s in alike if str(s.get("metric")).startswith("time.") and s.get("metric") not in WHOLE]
        found = [(s, kind, within(timeline_chart.curves(s, cut), x)) for s, kind in zip(parts, PARTS, strict=False)]
        curves = [Curve(c.points, kind) for _, kind, told in found for c in told if c.kind == "run"]
        keys = [(f"k-{kind}", text_format.metric(str(s.get("metric")))) for s, kind, told in found if told]
        return ([*drawn, *curves], [("k-run", text_format.metric(metric)), *keys]) if curves else ([], [])
    return [], []


def within(curves: list[Curve], x: Scale) -> list[Curve]:
    cut = (Curve([p for p in c.points if x.lo <= p[0] <= x.hi], c.kind) for c in curves)
    return [c for c in cut if c.points]


def _gap(held: Any, train: list[Point]) -> list[Point]:
    """The outline of what lies between evaluation and training after the lowest, while it lies above to the end; else empty."""
    alive = [p for p in held if math.isfinite(p[1])]
    known = sorted(p for p in train if math.isfinite(p[1]))
    steps = [p[0] for p in known]
    if not alive or not known:
        return []
    lowest = min(range(len(alive)), key=lambda i: alive[i][1])
    pairs = [(p, known[min(bisect_left(steps, p[0]), len(known) - 1)]) for p in alive[lowest:]]
    under = max((i for i, (above, below) in enumerate(pairs) if above[1] <= below[1]), default=-1)
    apart = pairs[under + 1 :]
    return [above for above, _ in apart] + [(above[0], below[1]) for above, below in reversed(apart)] if len(apart) > 1 else []
