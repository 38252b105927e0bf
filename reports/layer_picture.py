"""Gradient norms of the layers over the steps."""

from __future__ import annotations

import math
from typing import Any

from reports import heat_map, text_format, timeline_chart
from reports.scales import Scale, value

Case = dict[str, Any]
SHADES = 8


def picture(case: Case) -> Case | None:
    told = case["pictures"]["layers"]
    if told is None or not told["rows"] or not told["starts"]:
        return None
    cells = {r["layer"]: [value(v) for v in r["cells"]] for r in told["rows"]}
    finite = [v for row in cells.values() for v in row if math.isfinite(v) and v > 0]
    if not finite:
        return None
    color = Scale(min(finite), max(finite), log=True)
    steps = [value(s) for s in told["starts"]]
    x = Scale(steps[0], max(steps[-1] + (steps[-1] - steps[-2] if len(steps) > 1 else 1), steps[0] + 1))
    parts = list(zip(*(layer.split("/")[:-1] for layer in cells), strict=False))
    common = next((i for i, at in enumerate(parts) if len(set(at)) > 1), len(parts))
    rows = [("/".join(r["layer"].split("/")[common:]), [_shade(v, color) for v in r["cells"]]) for r in told["rows"]]
    used = {kind for _, row in rows for kind in row}
    legend = [
        ("h-low1", f"{text_format.number(color.lo)}, the smallest"),
        (f"h-low{SHADES}", f"{text_format.number(color.hi)}, the largest; log scale"),
    ]
    legend += [(kind, said) for kind, said in (("h-zero", "exactly zero"), ("h-odd", "NaN or infinite")) if kind in used]
    says = _says(dict(zip([name for name, _ in rows], cells.values(), strict=True)), steps)
    note = f"{text_format.plural(told['left_out'], 'layer')} with nothing to see left out." if told["left_out"] else ""
    return {"id": "layers", "title": "Gradient norm by layer", "says": says, "svg": heat_map.drawn(rows, steps, x, says), "named": True,
            "axis": timeline_chart.axis(case, x, clock=False, count=5), "legend": legend, "note": note}  # fmt: skip


def _shade(raw: Any, color: Scale) -> str:
    v = value(raw)
    if raw is None:
        return ""
    if not math.isfinite(v):
        return "h-odd"
    return f"h-low{1 + min(int(color(v) * SHADES), SHADES - 1)}" if v > 0 else "h-zero"


def _says(cells: dict[str, list[float]], steps: list[float]) -> str:
    """Which layer is not finite first, else which never move, else how far the layers lie apart."""
    odd = [
        (next(s for s, v in zip(steps, row, strict=False) if math.isinf(v)), name)
        for name, row in cells.items()
        if any(map(math.isinf, row))
    ]
    if odd:
        first = min(odd)[0]
        return f"Not finite first at about step {int(first)}: {text_format.joined([name for s, name in odd if s == first])}."
    usual = {name: sorted(v for v in row if math.isfinite(v)) for name, row in cells.items()}
    middle = {name: row[len(row) // 2] for name, row in usual.items() if row}
    still = [name for name, v in middle.items() if v == 0]
    if still:
        return f"No gradient reaches {text_format.joined(still)}."
    low, high = min(middle, key=lambda n: middle[n]), max(middle, key=lambda n: middle[n])
    return f"Usually largest in {high} ({text_format.number(middle[high])}), smallest in {low} ({text_format.number(middle[low])})."
