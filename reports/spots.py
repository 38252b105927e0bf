"""Values written where they stand: the peak beside its point, the usual and the last value in the margin on the right."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from reports.labels import pct, tag
from reports.scales import Scale

APART = 14  # unit: pixels between the feet of two lines of 12 pixels
LEFT = 0.6  # of the width: beyond it there is no room for a label on the right of its point


@dataclass(frozen=True)
class Spot:
    """A value with its label; ``kind``: peak (beside the point), usual (a level across the chart), last (in the margin)."""

    step: float
    value: float
    text: str
    kind: str


def drawn(spots: Sequence[Spot], x: Scale, down: Callable[[float], float]) -> Markup:
    """The marks and labels of a panel; labels in the margin keep apart from each other."""
    out, margin = [], sorted((s for s in spots if s.kind != "peak"), key=lambda s: down(s.value))
    free = -float(APART)  # the lowest foot that is taken in the margin
    for s in margin:
        y = down(s.value)
        free = max(y, free + APART)
        mark = (
            '<line class="usual" x1="0" x2="100%" y1="{0}" y2="{0}"/>'
            if s.kind == "usual"
            else '<circle class="last" cx="100%" cy="{0}" r="2.5"/>'
        )
        out.append(tag(mark, f"{y:.1f}"))
        out.append(tag('<text class="sp" x="100%" dx="7" y="{}" dy="4">{}</text>', f"{free:.1f}", s.text))
    for s in (s for s in spots if s.kind == "peak"):
        at, foot, end = pct(x(s.step)), f"{down(s.value):.1f}", x(s.step) > LEFT
        out.append(tag('<circle class="peak" cx="{}" cy="{}" r="3.5"/>', at, foot))
        out.append(
            tag('<text class="lb peaked{}" x="{}" dx="{}" y="{}" dy="4">{}</text>', " end" * end, at, -8 if end else 8, foot, s.text)
        )
    return Markup("").join(out)
