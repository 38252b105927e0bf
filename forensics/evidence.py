"""The three ways a claim can be shown. Reports draw these and nothing else.

series  ``{"metric", "unit", "scale": "log"|"linear", "lives": [{"attempt", "points": [[step, value], ...]}],
        "window": [first, last], "marks": [{"step", "label", "kind"}], "bands": [{"from", "to", "kind"}]}``;
        ``kind`` of a mark or band: fast, slow, non_recovering, not_a_spike, restart, checkpoint, event, nonfinite
table   ``{"columns": [...], "rows": [[...], ...]}``
text    ``{"lines": [...]}``: lines of a log, verbatim
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from forensics.case import Evidence
from forensics.run.series import Series, m4

WINDOW_COLUMNS = 300


def window(
    s: Series, first: int, last: int, *, title: str, where: str = "", marks: Sequence[dict[str, Any]] = (), margin: float = 1.0
) -> Evidence:
    """A series around [first, last], with `margin` times that length (at least 20 points) on either side; ``marks`` with
    "from" are bands."""
    pad = max(int((last - first) * margin), 20 * s.interval, 1)
    lo, hi = first - pad, last + pad
    attempts = [{"attempt": a, "points": m4(step, value, WINDOW_COLUMNS)} for a, step, value in s.attempts(lo, hi)]
    data = {
        "metric": s.name,
        "unit": s.unit,
        "scale": s.scale,
        "lives": attempts,
        "window": [lo, hi],
        "marks": [m for m in marks if "from" not in m],
        "bands": [m for m in marks if "from" in m],
    }
    return Evidence("series", title, data, where)


def table(title: str, columns: Sequence[str], rows: Iterable[Sequence[Any]], where: str = "") -> Evidence:
    return Evidence("table", title, {"columns": list(columns), "rows": [list(r) for r in rows]}, where)


def text(title: str, lines: Iterable[str], where: str = "") -> Evidence:
    return Evidence("text", title, {"lines": list(lines)}, where)
