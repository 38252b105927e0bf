"""The chart of the first screen: the metric of the finding that leads, around its steps, and the whole run beneath."""

from __future__ import annotations

import math
from typing import Any

from markupsafe import Markup

from reports import first_screen, text_format, timeline_chart
from reports.chart import Curve, Look, panel
from reports.scales import Scale, value
from reports.spots import Spot

Case = dict[str, Any]
HEIGHT, OVERVIEW = 216, 40  # pixels
COLUMNS, ROOM = 260, 480
STANDS_OUT = 5  # times the median distance from the middle: what scatter alone reaches hardly ever (5 x 0.67 sigma)
EDGE = 0.97  # of the width: a value that ends before it has no place in the margin
WIDE = 0.8  # of the run: a window as wide as this shows it all
FAMILIES = {"memory": ("gpu.mem", "mem.")}  # metrics that a kind of finding is about, where it names none
USUAL = ("usual", "level", "before")  # facts that say what a metric was before


def of(case: Case, whole: Scale) -> dict[str, Any] | None:
    """``title``, ``unit``, ``log``, ``tag``, ``svg``, ``axis`` and ``overview``; None where nothing can be drawn."""
    finding, window = _leading(case)
    series = [s for s in case["timeline"]["series"] if timeline_chart.curves(s, {})]
    if window:
        behind: Case = next((s for s in series if s.get("metric") == window.get("metric")), {})
        steps = [p[0] for c in timeline_chart.curves(window, {}) for p in c.points]
        x = Scale(min(steps), max(*steps, min(steps) + 1))
        overview = _overview(case, behind, whole, x) if behind and x.hi - x.lo < WIDE * (whole.hi - whole.lo) else ""
        return _drawn(case, {**window, "tag": behind.get("tag")}, x, finding) | {"overview": overview}
    about = [s for f in first_screen.leading(case) for s in series if _is_about(f, s)]
    shown = next(iter([*about, *(s for s in series if str(s.get("metric")).startswith("loss."))]), None)
    if shown is None:
        return None
    marks = [m for m in case["timeline"]["marks"] if m.get("kind") in ("restart", "nonfinite")]
    return _drawn(case, {**shown, "bands": case["timeline"]["bands"], "marks": marks}, whole, {}) | {"overview": ""}


def _leading(case: Case) -> tuple[Case, Case]:
    """The first finding that has a curve around its steps, and that; empty where none has."""
    for f in first_screen.leading(case):
        for e in f.get("evidence") or []:
            data = e.get("data")
            if e.get("kind") == "series" and isinstance(data, dict) and timeline_chart.curves(data, {}):
                return f, data
    return {}, {}


def _drawn(case: Case, data: Case, x: Scale, finding: Case) -> dict[str, Any]:
    """The curves of a series or of a finding's window, with its bands and marks."""
    drawn = timeline_chart.curves(data, timeline_chart.abandoned_from(case))
    metric, log = str(data.get("metric")), timeline_chart.logarithmic(data, drawn)
    bands, marks = ([d for d in data.get(k) or [] if isinstance(d, dict)] for k in ("bands", "marks"))
    spots = _spots(drawn, finding, x, {value(m.get("step")) for m in marks})
    marks = [m for m in marks if value(m.get("step")) not in {s.step for s in spots if s.kind == "peak"}]
    look = Look(timeline_chart.describe(metric, drawn), HEIGHT, log, COLUMNS, bands, marks, 2, ROOM, spots)
    return {"title": text_format.metric(metric), "unit": data.get("unit"), "log": log, "tag": data.get("tag"),
            "svg": panel(drawn, x, look), "axis": timeline_chart.axis(case, x, clock=False, count=4)}  # fmt: skip


def _is_about(finding: Case, series: Case) -> bool:
    facts = finding.get("facts") or {}
    named = [str(facts.get(k)) for k in ("metric", "tag")]
    metric, tag = str(series.get("metric")), str(series.get("tag") or "")
    return (
        metric in named
        or tag in named
        or (len(tag) > 2 and str(finding.get("title")).startswith(f"{tag} "))
        or metric.startswith(FAMILIES.get(str(finding.get("kind")), ("-",)))
    )


def _spots(drawn: list[Curve], finding: Case, x: Scale, marked: set[float]) -> list[Spot]:
    """The usual value, the one farthest from it, and the last: what the eye would have to read off the axis."""
    told = [p for c in drawn if c.kind != "old" for p in c.points]
    alive = [p for p in told if math.isfinite(p[1])]
    if not alive:
        return []
    facts, last = finding.get("facts") or {}, alive[-1]
    usual = next((value(facts[k]) for k in USUAL if math.isfinite(value(facts.get(k)))), math.nan)
    low, high = min(alive, key=lambda p: p[1]), max(alive, key=lambda p: p[1])
    middle = usual if math.isfinite(usual) else sorted(v for _, v in alive)[len(alive) // 2]
    far = high if abs(high[1] - middle) >= abs(low[1] - middle) else low
    apart = sorted(abs(v - middle) for _, v in alive)
    event = abs(far[1] - middle) > STANDS_OUT * apart[len(apart) // 2] or far[0] in marked
    event = event and far not in (alive[0], last) and len(alive) == len(told)  # beside a NaN no finite value is the event
    spots = [Spot(far[0], far[1], f"{text_format.number(far[1])} at {text_format.number(int(far[0]))}", "peak")] if event else []
    spots += [Spot(last[0], usual, f"usual {text_format.number(usual)}", "usual")] if low[1] <= usual <= high[1] else []
    return [*spots, *([Spot(last[0], last[1], f"last {text_format.number(last[1])}", "last")] if x(last[0]) > EDGE else [])]


def _overview(case: Case, series: Case, whole: Scale, part: Scale) -> Markup:
    """The whole run, thin, with the part that is shown above as a band."""
    drawn = timeline_chart.curves(series, timeline_chart.abandoned_from(case))
    band = {"from": part.lo, "to": part.hi, "kind": "shown"}
    name = f"the whole run; shown above: steps {text_format.number(int(part.lo))} to {text_format.number(int(part.hi))}"
    return panel(drawn, whole, Look(name, OVERVIEW, timeline_chart.logarithmic(series, drawn), COLUMNS, [band], [], 0))
