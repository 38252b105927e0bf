"""Weeks as small bars: the share of runs that died or were stopped, GPU-hours, and the hours lost."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from markupsafe import Markup, escape

from reports import text_format

SHOWN = 26  # weeks: half a year
WIDE, GAP, HIGH = 9, 3, 44  # pixels of a bar
Week = dict[str, Any]


def bars(weeks: Sequence[Week]) -> list[tuple[str, str, Markup]]:
    """(what, its last value, the bars) for each of the three; a week without a known value has no bar."""
    last = weeks[-SHOWN:]
    dead = [100 * w["died"] / w["runs"] if w["runs"] else None for w in last]
    used, lost = ([w[key] if w["costed"] else None for w in last] for key in ("gpu_hours", "lost_gpu_hours"))
    found = []
    for what, values, unit in (("Runs that died or were stopped", dead, " %"), ("GPU-hours", used, ""), ("GPU-hours lost", lost, "")):
        told = next(
            (
                f"{text_format.number(round(v, 2))}{unit} in {w['week']}"
                for w, v in zip(reversed(last), reversed(values), strict=True)
                if v is not None
            ),
            "not known",
        )
        found.append((what, told, _bars(what, last, values, unit)))
    return found


def _bars(what: str, weeks: Sequence[Week], values: Sequence[float | None], unit: str) -> Markup:
    top = max((v for v in values if v is not None), default=0.0) or 1.0
    width = len(weeks) * (WIDE + GAP)
    out = [
        f'<svg class="weeks" viewBox="0 0 {width} {HIGH + 1}" width="{width}" height="{HIGH + 1}" role="img" aria-label="{escape(what)} by week">'
    ]
    for i, (w, v) in enumerate(zip(weeks, values, strict=True)):
        if v is not None:
            high = max(round(HIGH * v / top, 1), 1)
            title = f"{w['week']}, from {w['from']}: {text_format.number(round(v, 2))}{unit}, {text_format.plural(w['runs'], 'run')}"
            out.append(
                f'<rect x="{i * (WIDE + GAP)}" y="{HIGH + 1 - high}" width="{WIDE}" height="{high}"><title>{escape(title)}</title></rect>'
            )
    return Markup("".join(out) + "</svg>")
