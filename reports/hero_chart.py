"""The chart of the first screen: what proves the leading cause. The metric of its first finding, around its steps, and what that did beneath."""

from __future__ import annotations

import math
from typing import Any

from markupsafe import Markup

from reports import beside_curves, curve_pictures, first_screen, hang_picture, layer_picture, rank_picture, text_format, timeline_chart
from reports.chart import Curve, Look, band_keys, panel
from reports.scales import Scale, value
from reports.spots import Spot

Case = dict[str, Any]
HEIGHT, UPPER, LOWER, OVERVIEW = 216, 116, 130, 40  # pixels: alone, of two, of the whole run
COLUMNS, ROOM = 260, 480
STANDS_OUT = 5  # times the median distance from the middle: what scatter alone reaches hardly ever (5 x 0.67 sigma)
NEAR = 0.05  # of the width: a peak so near to the steps of the finding is its own
AT_END = 0.02  # of the run
EDGE = 0.97  # of the width: a value that ends before it has no place in the margin
WIDE = 0.8  # of the run: a window as wide as this shows it all
FAMILIES = {"memory": ("gpu.mem", "mem.")}  # metrics that a kind of finding is about, where it names none
USUAL = ("usual", "level", "before")  # facts that say what a metric was before
PICTURES = {  # kinds of findings that a picture shows better than a curve
    "layer_gradients": layer_picture.picture, "frozen_weights": layer_picture.picture, "memory": curve_pictures.memory,
    "rank_disagreement": rank_picture.picture, "stall": hang_picture.picture,
}  # fmt: skip


def of(case: Case, whole: Scale) -> dict[str, Any] | None:
    """Either ``picture`` (picture_list), or ``upper`` and perhaps ``lower``, two panels over one ``axis``, and ``overview``, the whole
    run; None where nothing can be drawn. A panel: ``title``, ``unit``, ``log``, ``tag``, ``svg``, ``keys``."""
    series = [s for s in case["timeline"]["series"] if timeline_chart.curves(s, {})]
    proof = first_screen.proof(case)
    for f in proof:
        picture = PICTURES.get(str(f.get("kind")), lambda _: None)(case)
        if picture is not None and picture.get("svg"):
            return {"picture": picture}
        if window := _window(f):
            return _around(case, f, window, _effect(window, proof), series, whole)
        if about := next((s for s in series if _is_about(f, s)), None):
            return _whole(case, about, whole)
    loss = next((s for s in series if str(s.get("metric")).startswith("loss.")), None)
    return _whole(case, loss, whole) if loss is not None else None


def _window(finding: Case) -> Case:
    """The first curve that a finding has around its steps; empty where it has none."""
    found = (e.get("data") for e in finding.get("evidence") or [] if e.get("kind") == "series")
    return next((data for data in found if isinstance(data, dict) and timeline_chart.curves(data, {})), {})


def _effect(window: Case, proof: list[Case]) -> Case:
    """What came of it: the training loss of another finding, where the first is not about the loss itself."""
    if str(window.get("metric")).startswith("loss"):
        return {}
    return next((w for f in proof if (w := _window(f)) and w.get("metric") == "loss.train"), {})


def _around(case: Case, finding: Case, window: Case, effect: Case, series: list[Case], whole: Scale) -> Case:
    by_name: Case = {}
    for s in series:
        by_name.setdefault(str(s.get("metric")), s)
    behind = by_name.get(str(window.get("metric")), {})
    both = [{**w, **{k: by_name[str(w.get("metric"))][k] for k in ("lives", "tag") if effect and str(w.get("metric")) in by_name}}
            for w in (window, effect) if w]  # fmt: skip
    x = _span(window, *([effect] if effect else []))
    upper = _panel(case, {"tag": behind.get("tag"), **both[0]}, x, UPPER if effect else HEIGHT, finding)
    lower = _panel(case, both[1], x, LOWER, {}) if effect else None
    overview = _overview(case, behind, whole, x) if behind and x.hi - x.lo < WIDE * (whole.hi - whole.lo) else ""
    return {"upper": upper, "lower": lower, "axis": timeline_chart.axis(case, x, clock=False, count=4), "overview": overview}


def _whole(case: Case, series: Case, whole: Scale) -> Case:
    marks = [m for m in case["timeline"]["marks"] if m.get("kind") in ("restart", "nonfinite")]
    upper = _panel(case, {**series, "bands": case["timeline"]["bands"], "marks": marks}, whole, HEIGHT, {})
    return {"upper": upper, "lower": None, "axis": timeline_chart.axis(case, whole, clock=False, count=4), "overview": ""}


def _span(*windows: Case) -> Scale:
    steps = [p[0] for w in windows for c in timeline_chart.curves(w, {}) for p in c.points]
    return Scale(min(steps), max(*steps, min(steps) + 1))


def _panel(case: Case, data: Case, x: Scale, height: int, finding: Case) -> dict[str, Any]:
    """The curves of a series or of a finding's window, with what belongs beside them, its bands and marks."""
    drawn = beside_curves.within(timeline_chart.curves(data, timeline_chart.abandoned_from(case)), x)
    metric, log = str(data.get("metric")), timeline_chart.logarithmic(data, drawn)
    bands, marks = ([d for d in data.get(k) or [] if isinstance(d, dict)] for k in ("bands", "marks"))
    spots = _spots(drawn, finding, x, {value(m.get("step")) for m in marks}, _run_end(case))
    marks = [m for m in marks if value(m.get("step")) not in {s.step for s in spots if s.kind == "peak"}]
    more, keys = beside_curves.of(case, data, drawn, x)
    look = Look(timeline_chart.describe(metric, drawn), height, log, COLUMNS, bands, marks, 2, ROOM, spots, keyed=True)
    title = text_format.metric(metric)
    return {"title": title[:1].upper() + title[1:], "unit": data.get("unit"), "log": log, "tag": data.get("tag"),
            "svg": panel(more or drawn, x, look), "keys": [*keys, *band_keys(bands, x)]}  # fmt: skip


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


def _run_end(case: Case) -> float:
    """From which step on a value is one of the run's last."""
    first, last = map(value, text_format.axis(case["run"]))
    return last - AT_END * (last - first)


def _spots(drawn: list[Curve], finding: Case, x: Scale, marked: set[float], end: float) -> list[Spot]:
    """The usual value, the one farthest from it, and the last, with its step where the run goes on: what the eye would have to read off the axis."""
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
    begins, ends = (value(s) for s in (finding.get("steps") or [None, None]))
    near = NEAR * (x.hi - x.lo)
    event = event and begins - near <= far[0] <= (ends if math.isfinite(ends) else begins) + near and far not in (alive[0], last)
    event = event and len(alive) == len(told)  # beside a NaN no finite value is the event
    spots = [Spot(far[0], far[1], f"{text_format.number(far[1])} at {text_format.number(int(far[0]))}", "peak")] if event else []
    spots += [Spot(last[0], usual, f"usual {text_format.number(usual)}", "usual")] if low[1] <= usual <= high[1] else []
    shown = text_format.number(last[1])
    label = f"{shown} at {text_format.number(int(last[0]))}" if last[0] < end else f"last {shown}"
    return [*spots, *([Spot(last[0], last[1], label, "last")] if x(last[0]) > EDGE else [])]


def _overview(case: Case, series: Case, whole: Scale, part: Scale) -> Markup:
    """The whole run, thin, with the part that is shown above as a band."""
    drawn = timeline_chart.curves(series, timeline_chart.abandoned_from(case))
    band = {"from": part.lo, "to": part.hi, "kind": "shown"}
    name = f"the whole run; shown above: steps {text_format.number(int(part.lo))} to {text_format.number(int(part.hi))}"
    return panel(drawn, whole, Look(name, OVERVIEW, timeline_chart.logarithmic(series, drawn), COLUMNS, [band], [], 0))
