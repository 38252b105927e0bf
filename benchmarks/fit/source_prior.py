"""What a sign of source weighs while no run with a known cause tells it: a prior, from how often public scripts have the slip.

Nothing says how often the slip is there where its cause is at work, so that is a half: the median of Jeffreys' posterior without a
count. How often it is there otherwise is counted by repository (benchmarks/source_looks.csv), and taken at the upper end of its 95 %
interval: a run that went wrong has more slips than a published script. A look that few scripts tell so weighs next to nothing, and none
weighs more than MOST, for source is a hint, and what the run measured is the proof.
"""

from __future__ import annotations

import csv
from functools import cache
from pathlib import Path

import numpy as np
from scipy.stats import beta

from fit.model import DECIBANS

COUNTS = Path(__file__).resolve().parents[1] / "source_looks.csv"
PREFIX = "source_"  # a sign is the look of this name
HALF = 0.5
MOST = 8.0  # decibans: what the steady growth of the gradient, measured in runs, weighs for the cause that a missing zero_grad speaks for (8.1)
UPPER = 0.975  # the upper end of a 95 % interval


@cache
def of(sign: str) -> str:
    """'seen,absent' in decibans, as in weights.csv; "" for a sign that is none of source, or that no script tells."""
    with COUNTS.open(newline="", encoding="utf-8") as f:
        rows = [r for r in csv.DictReader(f) if PREFIX + r["look"] == sign]
    told, slips = (sum(float(r[c]) for r in rows) for c in ("repositories_told", "repositories_fault"))
    if not told:
        return ""
    high, middle = (float(beta.ppf(q, slips + 0.5, told - slips + 0.5)) for q in (UPPER, HALF))
    seen, absent = DECIBANS * np.log(HALF / high), DECIBANS * np.log(HALF / (1 - middle))
    return f"{min(max(seen, 0.0), MOST):.1f},{min(absent, 0.0):.1f}"
