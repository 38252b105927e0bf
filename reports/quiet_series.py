"""Series that a reader need not look at: constant ones, copies, and counters that follow the step."""

from __future__ import annotations

import math
from typing import Any

from reports import text_format
from reports.scales import points

Case = dict[str, Any]
STRAIGHT = 0.01  # of its range: a counter lies closer to a straight line than this
LEAST = 4  # points that show a line


def quiet(case: Case, order: list[int]) -> dict[int, str]:
    """Index of each such series -> what it is, in words; ``order``: the series, the telling ones first. What a finding shows is none."""
    told = {e["data"]["metric"] for f in case["findings"] for e in f["evidence"] if e["kind"] == "series"}
    everything = case["timeline"]["series"]
    seen: dict[tuple[tuple[float, float], ...], str] = {}
    out: dict[int, str] = {}
    for i in order:
        s = everything[i]
        name = text_format.metric(s["metric"]) or s["tag"]
        drawn = [p for attempt in s["lives"] for p in points(attempt["points"])]
        key = tuple(drawn)
        if not drawn or s["metric"] in told:
            continue
        values = {v for _, v in drawn}
        if len(values) == 1 and math.isfinite(drawn[0][1]):
            out[i] = f"{name} {text_format.number(drawn[0][1])} throughout"
        elif key in seen:
            out[i] = f"{name}, the same as {seen[key]}"
        elif (s["metric"].startswith("other/") or s["metric"].endswith(".seen")) and _counts(drawn):
            out[i] = f"{name}, which follows the step"
        seen.setdefault(key, name)
    return out


def _counts(drawn: list[tuple[float, float]]) -> bool:
    """Whether values rise all the way, on a straight line."""
    (s0, first), (s1, last) = drawn[0], drawn[-1]
    rising = all(math.isfinite(v) for _, v in drawn) and all(b[1] >= a[1] and b[0] > a[0] for a, b in zip(drawn, drawn[1:], strict=False))
    if len(drawn) < LEAST or not rising or last == first:
        return False
    return all(abs(v - first - (last - first) * (s - s0) / (s1 - s0)) <= STRAIGHT * (last - first) for s, v in drawn)
