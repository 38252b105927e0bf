"""Values of the case to places on a drawing: numbers, scales, ticks, paths."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

LEAST, MOST = 1e-300, 1e300  # what a logarithm is drawn of; beyond lie denormal numbers, of which neither ratios nor powers of ten exist
GRID = 2000  # units across and down inside the stretched drawing: integers keep the paths short
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


def value(v: Any) -> float:
    """A number of the case, where NaN and infinities are strings; NaN for anything else."""
    if type(v) in (float, int):  # a page has some ten thousand
        return float(v) if abs(v) < 1e308 else math.nan
    return {"Infinity": math.inf, "-Infinity": -math.inf}.get(v, math.nan) if isinstance(v, str) else math.nan


def whole(v: Any) -> int:
    """An index of the case; 0 where it holds none."""
    return int(value(v)) if math.isfinite(value(v)) else 0


def points(raw: Any) -> list[Point]:
    """[[step, value], ...] of the case; what is no pair with a step is left out."""
    pairs = [p for p in raw or [] if isinstance(p, (list, tuple)) and len(p) == 2]
    return [(step, value(v)) for s, v in pairs if math.isfinite(step := value(s))]


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
