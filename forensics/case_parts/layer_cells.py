"""The gradient norm of each layer over the steps."""

from __future__ import annotations

from typing import Any

import numpy as np

from forensics.case_parts import heat_columns
from forensics.run.series import parts
from parsers.tables import Run

LEAST = 3  # unit: layers; two are two curves
TELLING = 32  # unit: layers kept for what they show; the others are at even distances


def layers(run: Run) -> dict[str, Any] | None:
    """The keys of `pictures.layers`: the largest norm of each layer by columns of steps; None where norms by layer were not logged."""
    each = [s for s in parts(run, "grad.norm_layer") if s.alive.any()]
    if len(each) < LEAST:
        return None
    first = heat_columns.starts(each)
    table = np.array([heat_columns.cells(s, first, np.max) for s in each])
    positive = np.where(np.isfinite(table) & (table > 0), table, np.nan)
    if not np.isfinite(positive).any():
        return None
    middle = np.log(np.nanmedian(positive))
    with np.errstate(all="ignore"):
        far = np.nanmax(np.where(np.isfinite(positive), np.abs(np.log(positive) - middle), 0.0), axis=1)
    order = sorted(range(len(each)), key=lambda i: (not np.isinf(table[i]).any(), -far[i]))
    kept = heat_columns.spread_out(order, TELLING)
    rows = [{"layer": each[i].tag, "cells": heat_columns.plain(table[i])} for i in kept]
    return {"starts": first.tolist(), "rows": rows, "left_out": len(each) - len(kept)}
