"""Where each live guard would have fired, against the harm."""

from __future__ import annotations

import math
from typing import Any

from markupsafe import Markup

from reports import text_format, timeline_chart
from reports.labels import Label, pct, place, tag, text
from reports.scales import Scale, value

Case = dict[str, Any]
SHOWN, ROOM = 8, 24  # guards; pixels of a row


def picture(case: Case) -> Case | None:
    """None where no guard catches the harm, or each does at its first step: a sentence says all there is."""
    guards = case["guards"] or {"rows": []}
    rows = [r for r in guards["rows"] if math.isfinite(value(r["fired"])) and r["lead"] is not None][:SHOWN]
    if not any(r["lead"] for r in rows):
        return None
    harm = [value(r["fired"]) + value(r["lead"]) for r in rows]
    fired = [value(r["fired"]) for r in rows]
    margin = max(0.15 * (max(fired + harm) - min(fired + harm)), 4)
    x = Scale(min(fired + harm) - margin, max(fired + harm) + margin)
    unit = text_format.axis_unit(case["run"])
    caught = text_format.plural(len(rows), "guard")
    says = f"{caught} of {len(guards['rows'])} would have caught it; the earliest, {rows[fired.index(min(fired))]['guard']}, at {unit} {int(min(fired))}."
    height = ROOM * len(rows) + 4
    out = [tag('<svg class="plot guards" width="100%" height="{}" role="img" aria-label="{}">', height, says)]
    for at in sorted(set(harm)):
        out.append(tag('<line class="harm" x1="{0}" x2="{0}" y1="0" y2="{1}"/>', pct(x(at)), height))
    for i, (row, begun) in enumerate(zip(rows, harm, strict=True)):
        y, at = ROOM * i + ROOM // 2 + 2, value(row["fired"])
        out.append(tag('<line class="lead" x1="{0}" x2="{1}" y1="{2}" y2="{2}"/>', *map(pct, sorted((x(at), x(begun)))), y))
        out.append(tag('<circle class="fires" cx="{}" cy="{}" r="4.5"/>', pct(x(at)), y))
        out.append(tag('<text class="yl" x="-7" y="{}">{}</text>', y + 4, text_format.cut(str(row["guard"]), 22)))
        alarms = f", {text_format.plural(row['false_alarms'], 'false alarm')}" if row["false_alarms"] else ""
        out += [text(label, y - 7) for label in place([Label(x(at), f"{int(at)}{alarms}", "")], 1, 480)]
    svg = Markup("").join([*out, Markup("</svg>")])
    return {"id": "guards", "title": "Where live guards would have fired", "says": says, "svg": svg, "named": True,
            "axis": timeline_chart.axis(case, x, clock=False, count=4),
            "legend": [("fires", f"fires, with its {unit}"), ("harm", "the harm begins")]}  # fmt: skip
