"""The symptoms of a case in step order: which stand open, which share a fold, and their evidence as charts."""

from __future__ import annotations

import math
from typing import Any

from reports import chart, first_screen, scales, text_format, timeline_chart

OPEN_FINDINGS = 6  # shown in full; the rest is one line each, folded
OPEN_OF_A_KIND = 2
MANY = 8  # folded findings in a row that share one fold
DETAILED_CHARTS = 60


def symptoms(case: dict[str, Any], anchors: dict[str, str]) -> list[list[dict[str, Any]]]:
    """Findings in step order, in groups: one that is shown alone, or many that share a fold."""
    ordered = sorted(case["findings"], key=lambda f: first_screen.first_step(f.get("steps")))
    cited = {i for h in case["hypotheses"][:3] for c in h["clues"] for i in c.get("findings") or []}
    serious = [f for f in ordered if f.get("severity") in ("critical", "warning")]
    serious.sort(key=lambda f: (f.get("id") not in cited, f.get("severity") != "critical"))
    of_a_kind: dict[Any, list[int]] = {}
    for f in serious:
        of_a_kind.setdefault(f.get("kind"), []).append(id(f))
    few = {i for alike in of_a_kind.values() for i in alike[:OPEN_OF_A_KIND]}
    shown = {id(f) for f in [f for f in serious if id(f) in few][:OPEN_FINDINGS]}
    detailed = {id(f) for f in (serious + ordered)[:DETAILED_CHARTS]}
    groups: list[list[dict[str, Any]]] = []
    run: list[dict[str, Any]] = []
    for f in ordered:
        item = {"f": f, "clock": _clock(case, f), "open": id(f) in shown, "anchor": anchors[str(f.get("id"))],
                "evidence": [_evidence(case, e, id(f) in detailed) for e in f["evidence"]]}  # fmt: skip
        if item["open"]:
            groups += [*_folded(run), [item]]
            run = []
        else:
            run.append(item)
    return groups + _folded(run)


def _clock(case: dict[str, Any], f: dict[str, Any]) -> str:
    pair = f.get("steps") or [None, None]
    known = [first_screen.times(case, s)[-1:] for s in pair]
    return text_format.period(f.get("times")) or text_format.period([t[0][1] if t else None for t in known])


def _folded(items: list[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    return [items] if len(items) > MANY else [[item] for item in items]


def kinds(case: dict[str, Any]) -> list[dict[str, Any]]:
    """How often each symptom was found and where: the overview when there are many."""
    out: dict[str, dict[str, Any]] = {}
    for f in sorted(case["findings"], key=lambda f: first_screen.first_step(f.get("steps"))):
        row = out.setdefault(str(f.get("kind")), {"n": 0, "first": f, "worst": "info"})
        row["n"] += 1
        row["last"] = f
        row["worst"] = min(row["worst"], f.get("severity"), key=lambda s: {"critical": 0, "warning": 1}.get(s, 2))
    return [{"kind": k, **row} for k, row in out.items()]


def _evidence(case: dict[str, Any], e: dict[str, Any], detailed: bool) -> dict[str, Any]:
    data = e["data"] if isinstance(e.get("data"), dict) else {}
    shown: dict[str, Any] = {"kind": e.get("kind"), "title": e.get("title"), "where": e.get("where"), "data": data}
    if e.get("kind") != "series":
        return shown
    drawn = timeline_chart.curves(data, timeline_chart.abandoned_from(case))
    if not drawn:
        return shown
    name = timeline_chart.describe(str(data.get("metric")), drawn)
    if not any(math.isfinite(v) for c in drawn for _, v in c.points):
        return shown | {"kind": "text", "data": {"lines": [name]}}
    at = [scales.value(v) for v in data.get("window") or []] + [p[0] for c in drawn for p in (c.points[0], c.points[-1])]
    at = [v for v in at if math.isfinite(v)]
    seen = [p[0] for c in drawn for p in c.points]
    x = scales.Scale(max(min(at), min(seen)), max(min(max(at), max(seen)), min(seen) + 1))
    bands, marks = ([v for v in data.get(k) or [] if isinstance(v, dict)] for k in ("bands", "marks"))
    log = timeline_chart.logarithmic(data, drawn)
    look = chart.Look(name, 150, log, 200 if detailed else 60, bands, marks, rows=2, room=480, keyed=True)
    return shown | {
        "key": chart.band_keys(bands, x),
        "log": log,
        "svg": chart.panel(drawn, x, look),
        "axis": timeline_chart.axis(case, x, clock=False, count=5),
    }
