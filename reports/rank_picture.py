"""Ranks over the steps: who is apart from the others, who stopped first."""

from __future__ import annotations

import math
from typing import Any

from reports import heat_map, text_format, timeline_chart
from reports.scales import Scale, value

Case = dict[str, Any]
SHADES = 4  # on either side of the median
LEAST_EQUAL = 3  # columns
LEAST = 0.02  # in ln: what the darkest shade stands for at least, that noise is not drawn as if it were a finding


def picture(case: Case) -> Case | None:
    told = case["pictures"]["ranks"]
    if told is None or not told["rows"] or not told["starts"]:
        return None
    title = f"Ranks over the steps: {text_format.metric(told['metric'])}"
    shown = {"id": "ranks", "title": title, "says": " ".join(filter(None, [_behind(told), _equal(told), _apart(told)]))}
    steps = [value(s) for s in told["starts"]]
    x = Scale(steps[0], max(steps[-1] + (steps[-1] - steps[-2] if len(steps) > 1 else 1), steps[0] + 1))
    most = _most(told)
    rows = [(f"rank {r['rank']}", [_shade(value(v), v, most) for v in r["cells"]]) for r in told["rows"]]
    percent = f"{100 * math.expm1(most):.0f} %"
    legend = [
        (f"h-over{SHADES}", f"{percent} or more above the median of the ranks"),
        (f"h-under{SHADES}", "as far below it"),
        ("h-usual", "near it"),
    ]
    legend += [("h-odd", "not finite")] if any("h-odd" in cells for _, cells in rows) else []
    svg = heat_map.drawn(rows, steps, x, shown["says"] or title)
    note = f"{text_format.plural(told['left_out'], 'rank')} with nothing to see left out." if told["left_out"] else ""
    return shown | {"svg": svg, "axis": timeline_chart.axis(case, x, clock=False, count=5), "legend": legend, "note": note}


def _most(told: Case) -> float:
    """What the darkest shade stands for, in ln: as far as all but one in a hundred cells go."""
    far = sorted(abs(math.log(v)) for r in told["rows"] for v in map(value, r["cells"]) if math.isfinite(v) and v > 0)
    return max(far[int(0.99 * (len(far) - 1))] if far else 0.0, LEAST)


def _shade(v: float, raw: Any, most: float) -> str:
    if raw is None:
        return ""
    if not math.isfinite(v) or v <= 0:
        return "h-odd"
    level = min(round(SHADES * abs(math.log(v)) / most), SHADES)
    return f"h-{'over' if v > 1 else 'under'}{level}" if level else "h-usual"


def _behind(told: Case) -> str:
    last = {r["rank"]: r["last"] for r in told["rows"]}
    most = max(last.values(), default=0)
    behind = [str(rank) for rank, step in last.items() if step < most]
    if not behind or len(behind) > len(last) // 2:
        return ""
    first = min(last.values())
    return f"Rank {text_format.joined(behind)} stopped first, at step {first}; the others came to step {most}."


def _equal(told: Case) -> str:
    """Where all ranks log one value at first, and then do not."""
    columns = list(zip(*(r["cells"] for r in told["rows"]), strict=False))
    same = next((i for i, c in enumerate(columns) if any(v is not None and v != 1 for v in c)), len(columns))
    if same < LEAST_EQUAL or same == len(columns):
        return ""
    return f"The ranks log the same value until about step {told['starts'][same]}, and differ from there on."


def _apart(told: Case) -> str:
    """The rank that is farthest from the others over the last third."""
    found = []
    for r in told["rows"]:
        late = [v for v in map(value, r["cells"][-max(len(r["cells"]) // 3, 1) :]) if math.isfinite(v) and v > 0]
        if late:
            found.append((abs(math.log(sorted(late)[len(late) // 2])), r["rank"], sorted(late)[len(late) // 2]))
    far, rank, ratio = max(found, default=(0.0, 0, 1.0))
    if far < LEAST:
        return ""
    way = "above" if ratio > 1 else "below"
    return f"In the last third rank {rank} is {100 * abs(ratio - 1):.0f} % {way} the median of the ranks ({text_format.metric(told['metric'])})."
