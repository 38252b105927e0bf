"""Which schedule ran, by the path of the logged rate: the word for it, whatever the config calls it.

A rate that rises for long, from above a line through zero, and falls far below where it began is OneCycle (Smith and Topin,
arXiv 1708.07120: from a 25th of the peak, to a ten-thousandth of that). A warmup, a fifth of the run at the peak and a fall is WSD
(warmup, stable, decay; arXiv 2410.05192). Else the fall decides: cosine, linear, exponential, inverse root.
"""

from __future__ import annotations

import numpy as np

from forensics.run.inputs import surviving
from forensics.run.rate_cycles import restarts
from forensics.run.series import Floats, Ints, series
from parsers.tables import Run

LEAST = 12  # bound: a shape of fewer values is anybody's
AT_PEAK = 0.99  # of the peak; as lr_schedule has it
ROUNDED = 1e-6  # unit: float32 has seven digits
STABLE, LONG_RISE = 0.2, 0.15  # of the run; unit: a fifth is a phase of its own; half of OneCycle's usual 0.3
FALLEN = 0.9  # of the peak: what ends above it has hardly decayed
FITS = 0.02  # of the peak, root mean square: cosine and line are 0.06 apart
LINE = 1.5  # times a line through zero: a linear warmup lies on it
LEVELS = 8  # bound: schedules in steps have a few of them


def named(run: Run) -> tuple[str, int] | None:
    """(the schedule in words, the row of the peak); None where the rate was not logged often enough."""
    s = series(run, "lr")
    if s is None:
        return None
    rows = surviving(s)
    step, x = s.step[rows], s.value[rows]
    if len(x) < LEAST or x.max() <= 0 or step[-1] == step[0]:
        return None
    top = int(np.flatnonzero(x >= (1 - ROUNDED) * x.max())[0])
    if cycles := restarts(s):
        return f"{len(cycles) + 1} cycles (warm restarts)", int(rows[top])
    return _words(step, x / x.max(), top), int(rows[top])


def _words(step: Ints, x: Floats, top: int) -> str:
    if x.min() >= AT_PEAK:
        return "constant"
    rises = x[0] < FALLEN
    t = (step - step[0]) / (step[-1] - step[0])
    line = step[0] / step[top] if step[top] > 0 else 0.0
    if rises and t[top] >= LONG_RISE and x[0] > LINE * line and x[-1] < x[0] / 10 and top > 1:
        return f"OneCycle: up until step {step[top]}, then down far below the start"
    begin = f"warmup of {step[top] - step[0] if step[0] > 1 else step[top]} steps, then " if rises else ""
    last = int(np.flatnonzero(x >= AT_PEAK)[-1])
    if x[-1] >= FALLEN:
        return f"{begin}constant" if x[top:].min() >= FALLEN else f"{begin}no shape that has a name"
    levels = np.unique(x[top:].round(4))
    if len(levels) <= LEVELS and np.count_nonzero(np.diff(x[top:])) <= len(x) / 4:
        return f"{begin}steps ({len(levels) - 1} drop{'s' * (len(levels) > 2)})"
    if t[last] - t[top] >= STABLE:
        name = "warmup, stable, decay (WSD)" if rises else "stable, then decay (WSD without a warmup)"
        return f"{name}: at its peak until step {step[last]}"
    error, fall = min(_fall(step[row:], x[row:]) for row in (top, last))  # a short stay at the peak, or a cosine's flat top
    return begin + (fall if error <= FITS else "a fall of no shape that has a name")


def _fall(step: Ints, x: Floats) -> tuple[float, str]:
    """(error, shape) of the shape that comes nearest to the way from the peak to the end."""
    if len(x) < LEAST // 2 or (np.diff(x) > 0.01).any():
        return float("inf"), ""
    u, end = (step - step[0]) / (step[-1] - step[0]), float(x[-1])
    shapes = {
        "cosine": end + (x[0] - end) * (1 + np.cos(np.pi * u)) / 2,
        "linear": x[0] - (x[0] - end) * u,
        "exponential": x[0] * (max(end, 1e-12) / x[0]) ** u,
        "inverse root": x[0] * np.sqrt(max(step[0], 1) / np.maximum(step, 1)),
    }
    return min((float(np.sqrt(np.mean((y - x) ** 2))), name) for name, y in shapes.items())
