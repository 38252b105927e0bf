"""Points to SVG: one panel of curves with bands and marks.

Across, everything is in percent of the width; down, in pixels. Curves lie in an inner drawing that stretches, with
strokes that do not, so that one drawing serves a phone, a screen and paper, and text never shrinks. No style
attributes (the page's policy forbids them): classes only. All text is escaped here.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from reports.labels import Label, pct, place, tag, text
from reports.scales import GRID, Point, Scale, log_ticks, path, scale, thin, ticks, value
from reports.spots import Spot
from reports.spots import drawn as written
from reports.text_format import SPIKES, cut, number, one_line

LABELLED = 44  # pixels that a panel needs for the labels of its grid
STRIP = 6  # unit: pixels at the foot of a panel for its bands, below the curves
GUIDES = ("limit", "noise", "zero", "gap")  # kinds of curves that were not logged
FEW, MANY = 8, 60  # points of a curve that are marked one by one, as between them the line is a guess; evaluations
Mark = dict[str, Any]  # of the case: {"step", "label", "kind"} or {"from", "to", "kind"}


@dataclass(frozen=True)
class Curve:
    """One line of a panel; ``kind`` is its class: run, old (abandoned branch) or eval."""

    points: Sequence[Point]
    kind: str = "run"


@dataclass(frozen=True)
class Look:
    """How a panel is drawn, and what stands in it beside curves.

    ``bands`` are {"from", "to", "kind"}, ``marks`` {"step", "label", "kind"}; a band is named by its kind and step.
    """

    name: str
    height: int
    log: bool
    columns: int = 500
    bands: Sequence[Mark] = ()
    marks: Sequence[Mark] = ()
    rows: int = 1
    room: int = 900
    spots: Sequence[Spot] = ()
    keyed: bool = False  # bands are named in a key beside the chart, not in it


def panel(curves: Sequence[Curve], x: Scale, look: Look) -> Markup:
    """One chart: grid, bands, curves (abandoned ones beneath), NaN marks on the upper edge, labels above the curves."""
    y = scale((v for c in curves for _, v in c.points), look.log)
    odd = nonfinite(curves)
    named = _nan_labels(x, odd)
    others = [m for m in look.marks if not (named and m.get("kind") == "nonfinite")]
    said = {a for a, _, _ in odd}  # "NaN from 412" says more than the spike that it makes
    wanted = [
        *named,
        *_band_labels(x, [b for b in look.bands if not look.keyed and value(b.get("from")) not in said]),
        *_mark_labels(x, others),
    ]
    labels = place(wanted, look.rows, look.room)
    top, bottom = 8 + 14 * (max((label.row for label in labels), default=-1) + 1), look.height - 5 - (STRIP + 2) * bool(look.bands)

    def height(v: float) -> float:
        return top + (1 - y(v)) * (bottom - top)

    def down(v: float) -> str:
        return f"{height(v):.1f}"

    out = [tag('<svg class="plot" width="100%" height="{}" role="img" aria-label="{}">', look.height, look.name)]
    for v in _grid(curves, y, 3 if look.height < 110 else 4) if look.height >= LABELLED else []:
        out.append(tag('<line class="grid" x1="0" x2="100%" y1="{0}" y2="{0}"/>', down(v)))
        out.append(tag('<text class="yl" x="-7" y="{}" dy="4">{}</text>', down(v), number(float(v))))
    out += [_band(x, b, top, bottom) for b in look.bands]
    shown = [m for m in look.marks if inside(x, m.get("step"))]
    line = '<line class="mark {0}" x1="{1}" x2="{1}" y1="{2}" y2="{3}"/>'
    uprights = [m for m in shown if m.get("kind") in ("restart", "checkpoint", "event")]
    out += [tag(line, m["kind"], pct(x(value(m.get("step")))), top - 6, bottom) for m in uprights]
    inner = '<svg y="{0}" width="100%" height="{1}" viewBox="0 0 {2} {2}" preserveAspectRatio="none" class="curves">'
    out.append(tag(inner, top, bottom - top, GRID))
    order = {"gap": -1, "old": 0, "run": 1, "eval": 2}
    for c in sorted(curves, key=lambda c: order.get(c.kind, 1)):
        if d := path(c.points if c.kind == "gap" else thin(c.points, x, look.columns), x, y):
            out.append(tag('<path class="{}" d="{}"/>', c.kind, Markup(d)))
    out.append(Markup("</svg>"))
    out += _points(curves, x, down)
    out += [tag('<line class="nan" x1="{0}" x2="{1}" y1="{2}" y2="{2}"/>', pct(x(a)), pct(x(b)), top - 2) for a, b, _ in odd]
    told = {spot.step for spot in look.spots}
    peaks = [hit for m in shown if m.get("kind") in SPIKES and (hit := _nearest(curves, m)) and hit[0] not in told]
    out += [tag('<circle class="peak" cx="{}" cy="{}" r="3.5"/>', pct(x(s)), down(v)) for s, v in peaks]
    out += [text(label, 11 + 14 * label.row) for label in labels]
    out.append(written(look.spots, x, height))
    return Markup("").join([*out, Markup("</svg>")])


def _points(curves: Sequence[Curve], x: Scale, down: Callable[[float], str]) -> list[Markup]:
    """Evaluations, and the points of a curve of few, one by one; lines that only mark a height have none."""
    out = []
    for c in (c for c in curves if c.kind not in GUIDES):
        kind, radius, most = ("eval", 3.0, MANY) if c.kind == "eval" else ("few", 2.5, FEW)
        shown = [p for p in c.points if math.isfinite(p[1])] if len(c.points) <= most else []
        out += [tag('<circle class="{}" cx="{}" cy="{}" r="{}"/>', kind, pct(x(s)), down(v), radius) for s, v in shown]
    return out


def constant(curves: Sequence[Curve]) -> bool:
    return len({v for c in curves for _, v in c.points if math.isfinite(v)}) == 1


def _grid(curves: Sequence[Curve], y: Scale, n: int) -> list[float]:
    """Where the grid lies: round values, or the only value there is."""
    if constant(curves):
        return [next(v for c in curves for _, v in c.points if math.isfinite(v))]
    if y.log:
        return log_ticks(y.lo, y.hi)
    return next(found for more in range(4) if len(found := ticks(y.lo, y.hi, n + more)) > 2 or more == 3)


def inside(x: Scale, step: Any) -> bool:
    return math.isfinite(value(step)) and x.lo <= value(step) <= x.hi


def nonfinite(curves: Sequence[Curve]) -> list[tuple[float, float, float]]:
    """Stretches (first step, last step, first value) of NaN and infinity, over all curves that count."""
    out: list[tuple[float, float, float]] = []
    for c in curves:
        start: tuple[float, float] | None = None
        for step, v in c.points:
            if math.isfinite(v):
                start = None
            elif start is None:
                start = (step, v)
                out.append((step, step, v))
            else:
                out[-1] = (start[0], step, start[1])
    return out


def _nan_labels(x: Scale, found: list[tuple[float, float, float]]) -> list[Label]:
    if not found:
        return []
    a, b, v = found[0]
    what = "NaN" if math.isnan(v) else "infinite"
    return [Label(x(a), f"{what} {'from ' if b > a or len(found) > 1 else 'at '}{number(int(a))}", "nonfinite")]


def _mark_labels(x: Scale, marks: Sequence[Mark]) -> list[Label]:
    shown = [m for m in marks if inside(x, m.get("step")) and m.get("label") and m.get("kind") != "checkpoint"]
    return [Label(x(value(m.get("step"))), _short(m), str(m.get("kind", ""))) for m in shown[:40]]


def _band_labels(x: Scale, bands: Sequence[Mark]) -> list[Label]:
    shown = [b for b in bands if inside(x, b.get("from")) and b.get("kind") in SPIKES]
    return [Label(x(value(b["from"])), f"{b['from']}: {band_name(b)}", b["kind"]) for b in shown]


def band_keys(bands: Sequence[Mark], x: Scale) -> list[tuple[str, str]]:
    """(kind, what it is called) of the bands that can be seen, for a key: each once."""
    seen = [b for b in bands if math.isfinite(value(b.get("from"))) and not (value(b.get("from")) > x.hi or value(b.get("to")) < x.lo)]
    return list(dict.fromkeys((str(b.get("kind")) if b.get("kind") in SPIKES else "other", band_name(b)) for b in seen))


def band_name(band: Mark) -> str:
    """What a band shows: the class of the spike, or the finding where that is no spike."""
    kind = one_line(band.get("finding") or "").split("-")[0]
    return kind.replace("_", " ") if kind not in ("", "loss_spike") else SPIKES.get(str(band.get("kind")), str(band.get("kind")))


def _short(mark: Mark, limit: int = 28) -> str:
    """A mark's own label where it is short, else its step and what kind of finding it is."""
    line = one_line(mark["label"])
    if len(line) > limit and mark.get("finding"):
        line = f"{mark['step']}: {one_line(mark['finding']).split('-')[0].replace('_', ' ')}"
    return cut(line, limit)


def _band(x: Scale, band: Mark, top: int, bottom: int) -> Markup:
    a, b = value(band.get("from")), value(band.get("to"))
    b = x.hi if math.isnan(b) else b  # not over yet
    if math.isnan(a) or b < x.lo or a > x.hi:
        return Markup("")
    kind = band.get("kind") if band.get("kind") in SPIKES else "other"
    y, height = (top - 6, bottom - top + 6) if band.get("kind") == "shown" else (bottom + 4, STRIP)
    return tag('<rect class="band {}" x="{}" width="{}" y="{}" height="{}"/>', kind, pct(x(a)), pct(max(x(b) - x(a), 0.004)), y, height)


def _nearest(curves: Sequence[Curve], mark: Mark) -> Point | None:
    at = value(mark.get("step"))
    near = [p for c in curves if c.kind == "run" for p in c.points if p[0] == at and math.isfinite(p[1])]
    return max(near, key=lambda p: p[1]) if near else None
