"""Attempts on the wall clock: work that stands, work that was done again, and time in which nothing ran."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import datetime
from itertools import pairwise
from typing import Any

from markupsafe import Markup

from reports import clock_ticks, text_format, timeline_chart
from reports.labels import Label, pct, place, tag, text
from reports.scales import Scale, value, whole

Case = dict[str, Any]
Span = tuple[str, float, float]  # kind, first and last second
KINDS = {"down": "down", "silent": "silent: no step was logged", "again": "work that a later attempt repeated", "kept": "work kept"}
WORDS = {"down": "down", "silent": "silent", "again": "work repeated", "kept": "work kept"}
MOST = 200  # attempts
HIGH = 26


def picture(case: Case) -> Case | None:
    """None for a run that has no clock, or nothing but work."""
    spans = _spans(case)
    if not any(kind != "kept" for kind, _, _ in spans):
        return None
    x = Scale(min(a for _, a, _ in spans), max(b for _, _, b in spans))
    total = {kind: sum(b - a for k, a, b in spans if k == kind) for kind in KINDS}
    every = sum(total.values())
    parts = [f"{WORDS[kind]} {text_format.duration(t)} ({text_format.percent(t / every)})" for kind, t in total.items() if t > 0]
    says = f"Of {text_format.duration(every)} on the clock: {text_format.joined(parts)}."
    return {"id": "on-the-clock", "title": "Attempts on the wall clock", "says": says, "svg": _drawn(case, spans, x, says),
            "legend": [(f"a-{kind}", said) for kind, said in KINDS.items() if total[kind] > 0]}  # fmt: skip


def _spans(case: Case) -> list[Span]:
    """The stretches in the order of the clock; none where the log's clock is missing or in doubt."""
    if not value((case["run"].get("goodput") or {}).get("seconds_running")) > 0 or len(case["run"]["attempts"]) > MOST:
        return []
    cut, clocks = timeline_chart.abandoned_from(case), {whole(c.get("attempt")): c["points"] for c in case["timeline"]["clock"]}
    told = [(whole(a.get("index")), _seconds(a.get("started")), _seconds(a.get("ended"))) for a in case["run"]["attempts"]]
    if not told or not all(math.isfinite(a) and math.isfinite(b) and b >= a for _, a, b in told):
        return []
    out: list[Span] = []
    for index, start, end in told:
        if out and start > out[-1][2]:
            out.append(("down", out[-1][2], start))
        again = _when(clocks.get(index, []), cut.get(index, math.inf), end)
        again = min(max(again, start), end)
        out += [("kept", start, again)] + ([("again", again, end)] if end > again else [])
    return _with_silences(case, out)


def _when(clock: Sequence[Sequence[float]], step: float, end: float) -> float:
    """The moment at which an attempt came to a step, between the moments that are known; its end where it never did."""
    for (a, since), (b, until) in pairwise(clock):
        if a <= step <= b:
            return since + (until - since) * (step - a) / max(b - a, 1)
    return float(clock[0][1]) if clock and step < clock[0][0] else end


def _with_silences(case: Case, spans: list[Span]) -> list[Span]:
    """Work in which the log says nothing for long is no work."""
    for f in case["findings"]:
        begun, seconds = _seconds((f.get("times") or [None])[0]), value((f.get("facts") or {}).get("seconds"))
        if f.get("kind") != "stall" or not math.isfinite(begun) or not seconds > 0:
            continue
        quiet, out = (begun, begun + seconds), list[Span]()
        for kind, a, b in spans:
            before, after = (kind, a, min(b, quiet[0])), (kind, max(a, quiet[1]), b)
            out += [part for part in (before, after) if part[2] > part[1]] if kind == "kept" else [(kind, a, b)]
        spans = sorted([*out, ("silent", *quiet)], key=lambda s: s[1])
    return spans


def _seconds(stamp: Any) -> float:
    return datetime.fromisoformat(stamp).timestamp() if text_format.is_time(stamp) else math.nan


def _drawn(case: Case, spans: list[Span], x: Scale, says: str) -> Markup:
    starts = [_seconds(a.get("started")) for a in case["run"]["attempts"]]
    named = [Label(x(at), f"attempt {a.get('index')}", "") for a, at in zip(case["run"]["attempts"], starts, strict=True)]
    top = 18 if len(named) > 1 else 4
    out = [tag('<svg class="plot" width="100%" height="{}" role="img" aria-label="{}">', top + HIGH + 38, says)]
    for kind, a, b in spans:
        shape = '<rect class="a-{}" x="{}" width="{}" y="{}" height="{}"/>'
        out.append(tag(shape, kind, pct(x(a)), pct(max(x(b) - x(a), 0.002)), top + 8 * (kind == "down"), HIGH - 16 * (kind == "down")))
    out += [tag('<line class="stop" x1="{0}" x2="{0}" y1="{1}" y2="{2}"/>', pct(x(at)), top - 4, top + HIGH) for at in starts]
    out += [text(label, top - 5) for label in place(named, 1, 520) if len(named) > 1]
    out.append(tag('<text class="yl" x="-7" y="{}">UTC</text>', top + HIGH + 16))
    return Markup("").join([*out, *clock_ticks.drawn(x, top + HIGH + 16), Markup("</svg>")])
