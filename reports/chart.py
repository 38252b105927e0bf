"""Points to SVG: scales, ticks, paths, and one panel of curves with bands and marks.

Across, everything is in percent of the width; down, in pixels. Curves lie in an inner drawing that stretches, with
strokes that do not, so that one drawing serves a phone, a screen and paper, and text never shrinks. No style
attributes (the page's policy forbids them): classes only. All text is escaped here.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from reports.labels import Label, pct, place, tag, text
from reports.text_format import SPIKES, number, one_line

LEAST, MOST = 1e-300, 1e300  # what a logarithm is drawn of; beyond lie denormal numbers, of which neither ratios nor powers of ten exist
GRID = 2000  # units across and down inside the stretched drawing: integers keep the paths short
Mark = dict[str, Any]  # of the case: {"step", "label", "kind"} or {"from", "to", "kind"}
Point = tuple[float, float]  # step, value; the value may be NaN or infinite


@dataclass(frozen=True)
class Scale:
    """Values to 0..1, linear or logarithmic; what lies outside is put on the edge."""

    lo: float
    hi: float
    log: bool = False

    def __call__(self, v: float) -> float:
        return self.all((v,))[0]

    def all(self, values: Iterable[float]) -> list[float]:
        """Many at once: a page has some ten thousand."""
        lo, hi = (math.log(max(x, LEAST)) if self.log else x for x in (self.lo, self.hi))
        if self.log:
            values = [math.log(max(v, LEAST)) for v in values]
        span = hi - lo  # inf where the ends lie 1e308 apart: halve all three then
        if span == 0:  # steps near 2**63, of which a float tells only one in a thousand apart
            return [0.5 for _ in values]
        if not math.isfinite(span):
            values, lo, span = [v / 2 for v in values], lo / 2, hi / 2 - lo / 2
        return [min(max((v - lo) / span, 0.0), 1.0) for v in values]


@dataclass(frozen=True)
class Curve:
    """One line of a panel; ``kind`` is its class: run, old (abandoned branch) or eval."""

    points: Sequence[Point]
    kind: str = "run"


def value(v: Any) -> float:
    """A number of the case, where NaN and infinities are strings; NaN for anything else."""
    if isinstance(v, str):
        return {"Infinity": math.inf, "-Infinity": -math.inf}.get(v, math.nan)
    return float(v) if isinstance(v, (int, float)) and not isinstance(v, bool) and abs(v) < 1e308 else math.nan


def whole(v: Any) -> int:
    """An index of the case; 0 where it holds none."""
    return int(value(v)) if math.isfinite(value(v)) else 0


def points(raw: Any) -> list[Point]:
    """[[step, value], ...] of the case; what is no pair with a step is left out."""
    pairs = [p for p in raw or [] if isinstance(p, (list, tuple)) and len(p) == 2]
    if all(
        type(s) is int and -1e300 < s < 1e300 and type(v) is float and -1e308 < v < 1e308 for s, v in pairs
    ):  # nearly always, and there are many
        return [(float(s), v) for s, v in pairs]
    return [(value(s), value(v)) for s, v in pairs if math.isfinite(value(s))]


def scale(values: Iterable[float], log: bool) -> Scale:
    """A scale around the finite values, with a little air; linear where a logarithm has nothing to show."""
    finite = [v for v in values if math.isfinite(v)]
    positive = [v for v in finite if v > 0]
    if log and positive:
        lo, hi = (min(max(v, LEAST), MOST) for v in (min(positive), max(positive)))
        air = max(math.exp(0.05 * (math.log(hi) - math.log(lo))), 1.02)
        return Scale(max(lo / air, LEAST), hi * air if hi * air < math.inf else hi, True)
    lo, hi = (min(finite), max(finite)) if finite else (0.0, 1.0)
    air = (hi - lo) * 0.05 or abs(hi) * 0.05 or 0.5
    return Scale(0.0 if 0 <= lo < air else lo - air, hi + air)


def ticks(lo: float, hi: float, n: int = 5) -> list[float]:
    """About n round numbers (1, 2 or 5 times a power of ten) within [lo, hi]."""
    span = hi - lo
    if not (math.isfinite(span) and span > 0):
        return [lo]
    raw = span / max(n, 1)
    if raw < LEAST:  # there is no round number in between
        return [lo]
    power = 10.0 ** math.floor(math.log10(raw))
    step = next((m * power for m in (1, 2, 5) if m * power >= raw * 0.999), 10 * power)
    first, last = math.ceil(lo / step - 1e-9), math.floor(hi / step + 1e-9)
    return [float(f"{i * step:.12g}") for i in range(first, min(last, first + 50) + 1)]


def log_ticks(lo: float, hi: float, n: int = 4) -> list[float]:
    """Powers of ten, thinned; within a decade or two 1, 2 and 5 times them; on narrower ranges round numbers."""
    bottom, top = math.floor(math.log10(lo)), math.ceil(math.log10(hi))
    every = max(1, math.ceil((top - bottom) / (n + 1)))
    for factors, stride in (((1,), every), ((1, 3), 1), ((1, 2, 5), 1)):
        found = [f * 10.0**e for e in range(bottom, top + 1, stride) for f in factors if lo <= f * 10.0**e <= hi]
        if n - 1 <= len(found) <= n + 2:
            return [float(f"{v:.6g}") for v in found]
    few = ticks(lo, hi, n)
    return few if hi / lo < 30 else [10.0**e for e in range(bottom, top + 1, every) if lo <= 10.0**e <= hi]


def path(pts: Sequence[Point], x: Scale, y: Scale) -> str:
    """The 'd' of a path through the finite points, in grid units, relative and integer; a gap at each NaN."""
    out: list[str] = []
    before_x = before_y = -1  # no point before
    finite = [p for p in pts if math.isfinite(p[1])]
    places = iter(zip(x.all(p[0] for p in finite), y.all(p[1] for p in finite), strict=True))
    for _, v in pts:
        if not math.isfinite(v):
            before_x = -1
            continue
        across, up = next(places)
        at_x, at_y = round(across * GRID), round((1 - up) * GRID)
        if before_x < 0:
            out.append(f"M{at_x} {at_y}l0 0")  # the empty line shows a point that stands alone (round caps)
        elif at_x != before_x or at_y != before_y:
            dx, dy = at_x - before_x, at_y - before_y
            out.append(f"{'' if dx < 0 else ' '}{dx}{'' if dy < 0 else ' '}{dy}")
        before_x, before_y = at_x, at_y
    return "".join(out)


def thin(pts: Sequence[Point], x: Scale, columns: int) -> list[Point]:
    """First, lowest, highest and last point of each column, so that no extreme is lost; every NaN that opens a gap."""
    if len(pts) <= 4 * columns:
        return list(pts)
    cells: dict[int, list[int]] = {}
    keep: set[int] = set()
    across = x.all(step for step, _ in pts)
    for i, (_, v) in enumerate(pts):
        if math.isfinite(v):
            cells.setdefault(int(across[i] * columns), []).append(i)
        elif i == 0 or math.isfinite(pts[i - 1][1]):
            keep.add(i)
    for cell in cells.values():
        keep.update((cell[0], cell[-1], min(cell, key=lambda i: pts[i][1]), max(cell, key=lambda i: pts[i][1])))
    return [pts[i] for i in sorted(keep)]


def panel(
    curves: Sequence[Curve],
    x: Scale,
    *,
    log: bool,
    height: int,
    name: str,
    columns: int = 500,
    bands: Sequence[Mark] = (),
    marks: Sequence[Mark] = (),
    rows: int = 1,
    room: int = 900,
) -> Markup:
    """One chart: grid, bands, curves (abandoned ones beneath), NaN marks on the upper edge, labels above the curves.

    ``bands`` are {"from", "to", "kind"}, ``marks`` {"step", "label", "kind"}; a band is named by its kind and step.
    """
    y = scale((v for c in curves for _, v in c.points), log)
    named = _nan_labels(x, curves)
    others = [m for m in marks if not (named and m.get("kind") == "nonfinite")]
    said = {a for a, _, _ in nonfinite(curves)}  # "NaN from 412" says more than the spike that it makes
    wanted = [*named, *_band_labels(x, [b for b in bands if value(b.get("from")) not in said]), *_mark_labels(x, others)]
    labels = place(wanted, rows, room)
    top = 8 + 14 * (max((label.row for label in labels), default=-1) + 1)
    bottom = height - 5

    def down(v: float) -> str:
        return f"{top + (1 - y(v)) * (bottom - top):.1f}"

    out = [tag('<svg class="plot" width="100%" height="{}" role="img" aria-label="{}">', height, name)]
    for v in _grid(curves, y, 3 if height < 110 else 4):
        out.append(tag('<line class="grid" x1="0" x2="100%" y1="{0}" y2="{0}"/>', down(v)))
        out.append(tag('<text class="yl" x="-7" y="{}" dy="4">{}</text>', down(v), number(float(v))))
    out += [_band(x, b, top, bottom) for b in bands]
    for m in marks:
        if inside(x, m.get("step")) and m.get("kind") in ("restart", "checkpoint", "event"):
            at = pct(x(value(m.get("step"))))
            line = '<line class="mark {0}" x1="{1}" x2="{1}" y1="{2}" y2="{3}"/>'
            out.append(tag(line, m["kind"], at, top - 6, bottom))
    inner = '<svg y="{0}" width="100%" height="{1}" viewBox="0 0 {2} {2}" preserveAspectRatio="none" class="curves">'
    out.append(tag(inner, top, bottom - top, GRID))
    order = {"old": 0, "run": 1, "eval": 2}
    for c in sorted(curves, key=lambda c: order.get(c.kind, 1)):
        if d := path(thin(c.points, x, columns), x, y):
            out.append(tag('<path class="{}" d="{}"/>', c.kind, Markup(d)))
    out.append(Markup("</svg>"))
    for c in curves:
        if c.kind == "eval" and len(c.points) <= 60:
            out += [tag('<circle class="eval" cx="{}" cy="{}" r="3"/>', pct(x(s)), down(v)) for s, v in c.points
                    if math.isfinite(v)]  # fmt: skip
    for a, b, _ in nonfinite(curves):
        out.append(tag('<line class="nan" x1="{0}" x2="{1}" y1="{2}" y2="{2}"/>', pct(x(a)), pct(x(b)), top - 2))
    for m in marks:
        hit = _nearest(curves, m) if m.get("kind") in SPIKES else None
        if hit and inside(x, m.get("step")):
            out.append(tag('<circle class="peak" cx="{}" cy="{}" r="3.5"/>', pct(x(hit[0])), down(hit[1])))
    out += [text(label, 11 + 14 * label.row) for label in labels]
    out.append(Markup("</svg>"))
    return Markup("").join(out)


def constant(curves: Sequence[Curve]) -> bool:
    return len({v for c in curves for _, v in c.points if math.isfinite(v)}) == 1


def _grid(curves: Sequence[Curve], y: Scale, n: int) -> list[float]:
    """Where the grid lies: round values, or the only value there is."""
    if constant(curves):
        return [next(v for c in curves for _, v in c.points if math.isfinite(v))]
    return log_ticks(y.lo, y.hi) if y.log else ticks(y.lo, y.hi, n)


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


def _nan_labels(x: Scale, curves: Sequence[Curve]) -> list[Label]:
    found = nonfinite(curves)
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


def band_name(band: Mark) -> str:
    """What a band shows: the class of the spike, or the finding where that is no spike."""
    kind = one_line(band.get("finding") or "").split("-")[0]
    return kind.replace("_", " ") if kind not in ("", "loss_spike") else SPIKES.get(str(band.get("kind")), str(band.get("kind")))


def _short(mark: Mark, limit: int = 28) -> str:
    """A mark's own label where it is short, else its step and what kind of finding it is."""
    line = one_line(mark["label"])
    if len(line) > limit and mark.get("finding"):
        line = f"{mark['step']}: {one_line(mark['finding']).split('-')[0].replace('_', ' ')}"
    return line if len(line) <= limit else line[: limit - 1] + "\u2026"


def _band(x: Scale, band: Mark, top: int, bottom: int) -> Markup:
    a, b = value(band.get("from")), value(band.get("to"))
    b = x.hi if math.isnan(b) else b  # not over yet
    if math.isnan(a) or b < x.lo or a > x.hi:
        return Markup("")
    kind = band.get("kind") if band.get("kind") in SPIKES else "other"
    return tag('<rect class="band {}" x="{}" width="{}" y="{}" height="{}"/>', kind, pct(x(a)),
               pct(max(x(b) - x(a), 0.0015)), top - 6, bottom - top + 6)  # fmt: skip


def _nearest(curves: Sequence[Curve], mark: Mark) -> Point | None:
    at = value(mark.get("step"))
    near = [p for c in curves if c.kind == "run" for p in c.points if p[0] == at and math.isfinite(p[1])]
    return max(near, key=lambda p: p[1]) if near else None
