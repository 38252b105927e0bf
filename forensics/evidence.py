"""The three ways a claim can be shown. Reports draw these and nothing else.

series  ``{"metric", "unit", "scale": "log"|"linear", "lives": [{"attempt", "points": [[step, value], ...]}],
        "window": [first, last], "marks": [{"step", "label", "kind"}], "bands": [{"from", "to", "kind"}]}``;
        ``kind`` of a mark or band: fast, slow, non_recovering, not_a_spike, restart, checkpoint, event, nonfinite
table   ``{"columns": [...], "rows": [[...], ...]}``
text    ``{"lines": [...]}``: lines of a log, verbatim
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, TypeVar

import numpy as np

from forensics.case import BaseFacts, Evidence, Finding
from forensics.run.downsample import m4
from forensics.run.series import Series

WINDOW_COLUMNS = 300
F = TypeVar("F", bound=BaseFacts)
Row = int | np.integer[Any]


def window(s: Series, first: int, last: int, *drawn: dict[str, Any], title: str, where: str = "", margin: float = 1.0) -> Evidence:
    """A series around [first, last], with `margin` times that length (at least 20 points) on either side.

    `drawn`: marks (they have a ``step``) and bands (they have a ``from``).
    """
    pad = max(int((last - first) * margin), 20 * s.interval, 1)
    lo, hi = first - pad, last + pad
    attempts = [{"attempt": a, "points": m4(step, -value if s.rises else value, WINDOW_COLUMNS)} for a, step, value in s.attempts(lo, hi)]
    marks, bands = [d for d in drawn if "step" in d], [d for d in drawn if "from" in d]
    data = {"metric": s.name, "unit": s.unit, "scale": s.scale, "lives": attempts, "window": [lo, hi], "marks": marks, "bands": bands}
    return Evidence("series", title, data, where)


def found(
    facts: F,
    title: str,
    steps: tuple[int | None, int | None],
    severity: str,
    *shown: Evidence,
    key: object = None,
    times: tuple[float | None, float | None] = (None, None),
) -> Finding[F]:
    """A symptom of the detector that has these facts; its id is the detector's, with `key` or else the first step."""
    kind = facts.detector()
    return Finding(f"{kind}-{steps[0] if key is None else key}", kind, title, *steps, severity, shown, facts, times)


def on_rows(s: Series, rows: tuple[Row, Row], facts: F, title: str, severity: str, *shown: Evidence, key: object = None) -> Finding[F]:
    """A symptom that goes from one row of a series to another, with their steps and times."""
    first, last = rows
    times = (s.clock(first), s.clock(last))
    return found(facts, title, (int(s.step[first]), int(s.step[last])), severity, *shown, key=key, times=times)


def table(title: str, columns: Sequence[str], rows: Iterable[Sequence[Any]], where: str = "") -> Evidence:
    return Evidence("table", title, {"columns": list(columns), "rows": [list(r) for r in rows]}, where)


def text(title: str, lines: Iterable[str], where: str = "") -> Evidence:
    return Evidence("text", title, {"lines": list(lines)}, where)
