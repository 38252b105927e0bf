"""Whether an excursion is more than what this run shows anywhere: its height against the highest values of other windows of the log."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from forensics.case import Finding
from forensics.replays.targets import SHARP, Logged, Trouble
from forensics.run.robust import median, robust_sigma

BEFORE = 40  # logged values whose median and scatter a value is measured by
FEWEST = 20  # windows, of which one is less than one in twenty
USUAL = 0.05  # share of other windows that reach as high, above which there is nothing to explain
NOISE = 4  # times the scatter below which no value stands out, whatever the other windows show


def nothing_special(log: Logged, t: Trouble, findings: Sequence[Finding], steps: tuple[int, int] | None) -> str:
    """Why the excursion is none, "" where it is one. `steps`: the window that was named: its highest value was picked from all of it."""
    if not math.isfinite(t.top) or not math.isfinite(t.level):
        return ""
    if t.top - t.level < NOISE * t.sigma:
        return f"The highest logged loss in these steps is {t.top:.4g}, within the noise around {t.level:.4g} (single values scatter by {t.sigma:.2g})."
    first, last = steps or (t.onset, t.until)
    mine, others = _heights(log, t, first, last, findings)
    as_high = sum(h >= mine for h in others)
    if len(others) < FEWEST or (as_high + 1) / (len(others) + 1) <= USUAL:
        return ""
    return (
        f"The highest logged loss in these steps is {t.top:.4g}, {mine:.1f} times the scatter above what came before. {as_high} of {len(others)} "
        "other windows of this run that are as long, and in which nothing was found, reach as high."
    )


def _heights(log: Logged, t: Trouble, first: int, last: int, findings: Sequence[Finding]) -> tuple[float, list[float]]:
    """(height of this window, heights of the others), each in units of the scatter before the value; windows with findings left out."""
    labels = [s for s in sorted(log.loss) if math.isfinite(log.loss[s])]
    values = np.array([log.loss[s] for s in labels])
    taken = [
        (f.first_step, f.last_step if f.last_step is not None else f.first_step)
        for f in findings
        if f.first_step is not None and (f.kind in SHARP or f in t.findings)
    ]
    height: dict[int, float] = {}
    for i in range(BEFORE // 2, len(labels)):
        before = values[max(i - BEFORE, 0) : i]
        level = median(before)
        height[labels[i]] = float(values[i] - level) / max(robust_sigma(before, level), 1e-12)
    inside = [s for s in labels if first <= s <= last]
    mine = max((height.get(s, -math.inf) for s in inside), default=-math.inf)
    size, others = max(len(inside), 1), []
    for i in range(BEFORE // 2, len(labels) - size + 1, size):
        window = labels[i : i + size]
        apart = window[-1] < min(first, t.onset) or window[0] > max(last, t.until)
        if apart and not any(a <= window[-1] and window[0] <= b for a, b in taken):
            others.append(max(height[s] for s in window))
    return mine, others
