"""Series cut into columns of steps: what a heat map is drawn from."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from forensics.run.series import Floats, Ints, Series

COLUMNS, ROWS = 60, 64  # unit: of a heat map; more than a page can show


def starts(all_of_them: Sequence[Series]) -> Ints:
    """The first step of each column, of equal width, over the steps of all series; one column a step where these are few."""
    steps = np.unique(np.concatenate([s.step[s.alive] for s in all_of_them]))
    if len(steps) <= COLUMNS:
        return np.asarray(steps, np.int64)
    return np.unique(np.linspace(steps[0], steps[-1] + 1, COLUMNS + 1)[:-1].astype(np.int64))


def cells(s: Series, first: Ints, of: Callable[[Floats], Any]) -> Floats:
    """One value a column: `of` its values where they are all finite, infinity where one is not, NaN where the series has none."""
    step, value = s.step[s.alive], s.value[s.alive]
    column = np.searchsorted(first, step, side="right") - 1
    found = np.full(len(first), np.nan)
    for c in np.unique(column[column >= 0]):
        here = value[column == c]
        found[c] = float(of(here)) if np.isfinite(here).all() else np.inf
    return found


def plain(row: Floats) -> list[float | None]:
    """A row as the case holds it: None where nothing was logged, infinity where a value was not finite."""
    return [None if np.isnan(v) else float(f"{v:.4g}") for v in row]


def spread_out(order: Sequence[int], telling: int) -> list[int]:
    """At most `ROWS` of the rows, in their own order: the `telling` first of `order`, and others at even distances."""
    if len(order) <= ROWS:
        return sorted(order)
    chosen = list(order[:telling])
    rest = sorted(order[telling:])
    picked = np.linspace(0, len(rest) - 1, ROWS - telling).astype(int)
    return sorted([*chosen, *(rest[i] for i in picked)])
