"""The chart of the first screen: the metric of the finding that leads, around its steps, and the whole run beneath."""

from __future__ import annotations

import math
from typing import Any

from markupsafe import Markup

from reports import first_screen, text_format, timeline_chart
from reports.chart import Curve, Look, panel
from reports.scales import Scale, value

Case = dict[str, Any]
HEIGHT, OVERVIEW = 216, 40  # pixels
COLUMNS, ROOM = 260, 480
FAMILIES = {"memory": ("gpu.mem", "mem.")}  # metrics that a kind of finding is about, where it names none
USUAL = ("usual", "level", "before")  # facts that say what a metric was before


def of(case: Case, whole: Scale) -> dict[str, Any] | None:
    """``title``, ``unit``, ``log``, ``tag``, ``said`` (a sentence of numbers), ``svg``, ``axis`` and ``overview``; None where nothing can be drawn."""
    finding, shown = _leading(case)
    return _around(case, whole, finding, shown) if shown else _everything(case, whole)


def _leading(case: Case) -> tuple[dict[str, Any], dict[str, Any]]:
    """The finding that speaks loudest for the leading cause and its curve; empty where no finding has one."""
    for f in first_screen.leading(case):
        for e in f.get("evidence") or []:
            data = e.get("data")
            if e.get("kind") == "series" and isinstance(data, dict) and any(c.points for c in timeline_chart.curves(data, {})):
                return f, data
    return {}, {}


def _around(case: Case, whole: Scale, finding: Case, data: Case) -> dict[str, Any]:
    drawn = timeline_chart.curves(data, timeline_chart.abandoned_from(case))
    steps = [p[0] for c in drawn for p in c.points]
    x = Scale(min(steps), max(*steps, min(steps) + 1))
    metric, log = str(data.get("metric")), data.get("scale") == "log"
    look = Look(timeline_chart.describe(metric, drawn), HEIGHT, log, COLUMNS, data.get("bands") or [], data.get("marks") or [], 2, ROOM)
    behind = next((s for s in case["timeline"]["series"] if s.get("metric") == metric), None)
    wider = x.hi - x.lo < 0.8 * (whole.hi - whole.lo)
    return {
        "title": text_format.metric(metric), "unit": data.get("unit"), "log": log, "tag": behind.get("tag") if behind else "",
        "said": _values(drawn, finding, metric), "svg": panel(drawn, x, look), "axis": timeline_chart.axis(case, x, clock=False, count=4),
        "overview": _overview(case, behind, whole, x) if behind and wider else "",
    }  # fmt: skip


def _everything(case: Case, whole: Scale) -> dict[str, Any] | None:
    """The whole run in the metric that the leading finding is about, else in its loss, with the spikes named."""
    everything = [s for s in case["timeline"]["series"] if timeline_chart.curves(s, {})]
    about = [s for f in first_screen.leading(case) for s in everything if _is_about(f, s)]
    train = next((s for s in [*about, *everything] if s in about or str(s.get("metric")).startswith("loss.")), None)
    drawn = timeline_chart.curves(train, timeline_chart.abandoned_from(case)) if train else []
    if train is None or not drawn:
        return None
    metric, log = str(train.get("metric")), train.get("scale") == "log"
    marks = [m for m in case["timeline"]["marks"] if m.get("kind") in ("restart", "nonfinite")]
    look = Look(timeline_chart.describe(metric, drawn), HEIGHT, log, COLUMNS, case["timeline"]["bands"], marks, 2, ROOM)
    return {
        "title": text_format.metric(metric), "unit": train.get("unit"), "log": log, "tag": train.get("tag"), "said": _values(drawn, {}, metric),
        "svg": panel(drawn, whole, look), "axis": timeline_chart.axis(case, whole, clock=False, count=4), "overview": "",
    }  # fmt: skip


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


def _values(drawn: list[Curve], finding: Case, metric: str) -> str:
    """'usual 0.08, highest 20.25 at step 60, last 0.03': what the eye would have to read off the axis."""
    alive = [p for c in drawn if c.kind != "old" for p in c.points if math.isfinite(p[1])]
    if len(alive) < 3:
        return ""
    facts = finding.get("facts") or {}
    usual = next((value(facts[k]) for k in USUAL if math.isfinite(value(facts.get(k)))), math.nan)
    low, high = min(alive, key=lambda p: p[1]), max(alive, key=lambda p: p[1])
    middle = usual if math.isfinite(usual) else sorted(v for _, v in alive)[len(alive) // 2]
    name, far = ("highest", high) if abs(high[1] - middle) >= abs(low[1] - middle) else ("lowest", low)
    told = [f"usual {text_format.number(usual)}"] if math.isfinite(usual) else []
    told += [f"{name} {text_format.number(far[1])} at step {text_format.number(int(far[0]))}"] if high[1] > low[1] else []
    return ", ".join([*told, f"last {text_format.number(alive[-1][1])}"])


def _overview(case: Case, series: Case, whole: Scale, part: Scale) -> Markup:
    """The whole run, thin, with the part that is shown above as a band."""
    drawn = timeline_chart.curves(series, timeline_chart.abandoned_from(case))
    band = {"from": part.lo, "to": part.hi, "kind": "shown"}
    name = f"the whole run; shown above: steps {text_format.number(int(part.lo))} to {text_format.number(int(part.hi))}"
    return panel(drawn, whole, Look(name, OVERVIEW, series.get("scale") == "log", COLUMNS, [band], [], 0))
