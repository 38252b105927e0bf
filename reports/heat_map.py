"""Rows of cells by columns of steps, drawn as one stretched picture: one path for each shade."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup

from reports.labels import tag
from reports.scales import GRID, Scale
from reports.text_format import cut

ROOMY, TIGHT = 16, 7  # pixels a row: with a label each, and where only some have one
LABELLED = 24  # rows that all have a label
SPELLED = 22  # characters of a label


def drawn(rows: Sequence[tuple[str, Sequence[str]]], starts: Sequence[float], x: Scale, says: str) -> Markup:
    """`rows`: (label, the class of each cell, "" where there is nothing); `starts`: the first step of each column."""
    room = ROOMY if len(rows) <= LABELLED else TIGHT
    height = room * len(rows)
    edges = [*(round(x(s) * GRID) for s in starts), GRID]
    shapes: dict[str, list[str]] = {}
    for y, (_, cells) in enumerate(rows):
        for kind, first, last in _runs(cells):
            a, b = edges[first], edges[last]
            shapes.setdefault(kind, []).append(f"M{a} {y}h{b - a}v1h{a - b}z")
    out = [tag('<svg class="plot heat" width="100%" height="{}" role="img" aria-label="{}">', height + 2, says)]
    inner = '<svg y="1" width="100%" height="{0}" viewBox="0 0 {1} {2}" preserveAspectRatio="none">'
    out.append(tag(inner, height, GRID, max(len(rows), 1)))
    out += [tag('<path class="{}" d="{}"/>', kind, Markup("".join(shapes[kind]))) for kind in sorted(shapes)]
    out.append(Markup("</svg>"))
    every = 1 if room == ROOMY else 2
    for y, (label, _) in list(enumerate(rows))[::every]:
        out.append(tag('<text class="yl" x="-7" y="{}">{}</text>', room * y + room // 2 + 5, cut(label, SPELLED, left=True)))
    out += [tag('<line class="edge" x1="0" x2="100%" y1="{0}" y2="{0}"/>', 1 + room * y) for y in range(1, len(rows)) if room == ROOMY]
    return Markup("").join([*out, Markup("</svg>")])


def _runs(cells: Sequence[str]) -> list[tuple[str, int, int]]:
    """Neighbouring cells of one class as one: (class, first column, column after the last)."""
    out: list[tuple[str, int, int]] = []
    for i, kind in enumerate(cells):
        if out and out[-1][0] == kind and out[-1][2] == i:
            out[-1] = (kind, out[-1][1], i + 1)
        elif kind:
            out.append((kind, i, i + 1))
    return out
