"""Whether an excursion is one of many of its kind that come and go all through a run: the tail of its noise, not an event.

Losses of single batches, of few samples, of points drawn anew or of an adversary have such tails. What sets an event apart is
that the run shows nothing as high and as wide elsewhere, or only in one part of it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from forensics.spikes.excursions import Excursion, Floats, candidates

ALIKE = 0.5  # unit: half as high, and half as wide; a tail that falls off by any usual law has more of these than of the height itself
PARTS, IN = 4, 3  # quarters of the run, and how many of them have to show one
MANY = 8  # statistical: eight that may fall anywhere all lie in two quarters once in 43


def like_each(y: Floats, events: Sequence[Excursion]) -> list[int]:
    """How many other excursions of a scaled series that come back are at least half as high and half as wide as each event; 0 where they
    are few, or missing in half of the series."""
    if not events:
        return []
    others = _shapes(y)
    return [_like_it(y, e, others) for e in events]


def _like_it(y: Floats, e: Excursion, others: Floats) -> int:
    until, wide = e.end if e.end is not None else len(y), ALIKE * _width(y, e)
    start, end, peak, height, width = others.T
    at = peak[((end <= e.start) | (start >= until)) & (height >= ALIKE * e.height) & (width >= wide)]
    parts = len(np.unique(at.astype(np.int64) * PARTS // len(y)))
    return len(at) if len(at) >= MANY and parts >= IN else 0


def _shapes(y: Floats) -> Floats:
    """Start, end, peak, height and width of each excursion that comes back, one a row."""
    known = [(o.start, o.end, o.peak, o.height, _width(y, o)) for o in candidates(y) if o.end is not None]
    return np.array(known, np.float64).reshape(-1, 5)


def _width(y: Floats, e: Excursion) -> int:
    """Values in the upper half of an excursion."""
    if e.end == e.start + 1:
        return 1
    return int((y[e.start : e.end] >= e.level + 0.5 * e.height).sum())
