"""Shares of answers above one: they were counted wrong, or divided by another number than that of the answers."""

from __future__ import annotations

import numpy as np

from forensics.run.robust import median
from forensics.run.series import Series, names, parts
from parsers import objectives
from parsers.tables import Run

LEAST, LOOKED = 3, 400  # bound: values that show that one is logged as a share; tags of classes are many
EXACT, MOST = 1e-3, 1.5  # unit: what rounding makes of one; bound: what is larger is in per cent, or another metric


def above_one(run: Run) -> tuple[Series, int] | None:
    """The first metric of shares with a value above one, and the row of that; None where there is none."""
    logged = [name for name in names(run, LEAST) if name in ("acc.train", "acc.eval") or name.startswith(("other/", "score."))][:LOOKED]
    for s in (p for name in logged for p in parts(run, name)):
        x = s.value[s.usable]
        if len(x) < LEAST or not EXACT < x.max() - 1 <= MOST - 1 or x.min() < 0 or median(x) > 1:
            continue
        if s.name.startswith("acc.") or objectives.is_among(s.tag, "shares"):
            return s, int(np.flatnonzero(s.usable)[np.argmax(x > 1 + EXACT)])
    return None
