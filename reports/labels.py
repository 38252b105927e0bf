"""Labels beside their marks: which fit where, and the safe writing of SVG text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from markupsafe import Markup

from reports.text_format import one_line

# Labels are placed in this order: harm before news.
ORDER = ("nonfinite", "non_recovering", "slow", "fast", "restart", "event")


@dataclass(frozen=True)
class Label:
    """A text at a mark; ``kind`` is its class and decides who is placed first."""

    x: float  # 0..1 of the width
    text: str
    kind: str
    row: int = 0
    end: bool = False  # text lies left of x
    wide: bool = False  # only where there is room


def place(labels: Sequence[Label], rows: int = 2, room: int = 900) -> list[Label]:
    """Labels beside their marks, in rows above the curves, none over another and none twice; those without room are left out.

    Room is reckoned for a wide drawing (in px); a label that would collide on a phone (300 px) is marked ``wide``.
    """
    placed: list[Label] = []
    taken: dict[tuple[int, int], list[tuple[float, float]]] = {}

    def span(label: Label, width: int) -> tuple[float, float]:
        size = len(label.text) * 6.9 + 10
        at = label.x * width
        return (at - size, at) if label.end else (at, at + size)

    def free(label: Label, width: int) -> bool:
        a, b = span(label, width)
        inside = a > -20 and b < width + 20
        return inside and all(b < c or d < a for c, d in taken.get((width, label.row), []))

    rank = {kind: i for i, kind in enumerate(ORDER)}
    for label in sorted(dict.fromkeys(labels), key=lambda each: rank.get(each.kind, len(ORDER))):
        ends = (False, True) if label.x < 0.5 else (True, False)
        trials = [Label(label.x, label.text, label.kind, row, end) for row in range(rows) for end in ends]
        fit = [t for t in trials if free(t, room)]
        both = [t for t in fit if free(t, 300)]
        for chosen in (both or fit)[:1]:
            for width in (room, 300) if both else (room,):
                taken.setdefault((width, chosen.row), []).append(span(chosen, width))
            placed.append(replace(chosen, wide=not both))
    return placed


def text(label: Label, y: int) -> Markup:
    kind = label.kind if label.kind in ORDER else ""
    classes = " ".join(filter(None, ("lb", kind, "wide" * label.wide, "end" * label.end)))
    dx = -5 if label.end else 5
    return tag('<text class="{}" x="{}" dx="{}" y="{}">{}</text>', classes, pct(label.x), dx, y, label.text)


def pct(t: float) -> str:
    return f"{100 * t:.2f}%"


def tag(template: str, *args: Any) -> Markup:
    """Markup with every argument escaped and made visible."""
    return Markup(template).format(*(a if isinstance(a, Markup) else one_line(a) for a in args))
