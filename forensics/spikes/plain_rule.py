"""What a plain rule calls an event of a series: 6 sigma, 1 %, and no crowd (oftener than once in 50 values) unless it reaches 25 sigma."""

from __future__ import annotations

import numpy as np

from forensics.spikes.excursions import CROWD_SIGMA, LEAST, PEAK_SIGMA, Excursion, Floats, candidates, in_units, scaled

CROWD_WINDOW = 50  # values; not critical: 35 and 70 tell the same runs and curves (docs/thresholds.md)


def find(values: Floats) -> list[Excursion]:
    """Events of one attempt's values by the plain rule, in order, in the unit of the values. Only finite values count."""
    place = np.flatnonzero(np.isfinite(values))
    x = values[place]
    y, logs = scaled(x)
    least = float(np.log1p(LEAST)) if logs else LEAST
    events = [e for e in candidates(y) if e.depth == 0 and e.sigmas >= PEAK_SIGMA and e.height >= least]
    return in_units(_without_crowds(events, len(y)), x, place, logs)


def _without_crowds(events: list[Excursion], n: int) -> list[Excursion]:
    """Leaves out excursions of a size that this stretch of the series shows again and again."""
    kept = []
    starts = np.array([e.start for e in events])  # in order
    heights = np.array([e.height for e in events])
    span = 3 * CROWD_WINDOW
    first, last = np.searchsorted(starts, starts - span), np.searchsorted(starts, starts + span, "right")
    for e, a, b in zip(events, first, last, strict=True):
        width = min(e.start + span, n) - max(e.start - span, 0)
        crowd = np.count_nonzero(heights[a:b] >= 0.6 * e.height) > max(width / CROWD_WINDOW, 1) + 1
        if not crowd or e.sigmas >= CROWD_SIGMA:
            kept.append(e)
    return kept
