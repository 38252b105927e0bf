"""Whether values climb, by the order of their pairs alone."""

from __future__ import annotations

import numpy as np

from forensics.run.series import Floats

TAU = 0.7  # of Kendall's tau: 85 of 100 pairs rise; measured: docs/thresholds.md. For few values CHANCE asks for more
# statistical: sigma of tau without a trend; five in order or eight with a tau of 0.7: once in 120, in 24 if the first is lowest
CHANCE = 2.4
PAIRED = 64  # bound: 2016 pairs, each looked at


def climbs(x: Floats) -> bool:
    """Whether nearly all later values are higher than earlier ones, more than chance would have it."""
    if len(x) > PAIRED:  # every pair is looked at
        x = np.array([np.median(part) for part in np.array_split(x, PAIRED)])
    n = len(x)
    i, j = np.triu_indices(n, 1)
    spread = np.sqrt(2 * (2 * n + 5) / (9 * n * (n - 1)))  # of tau where order is chance: Kendall, Biometrika 30 (1938)
    return bool(np.sign(x[j] - x[i]).mean() >= max(TAU, CHANCE * spread))
