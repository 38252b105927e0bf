"""The steps that two attempts of a run both did."""

from __future__ import annotations

from typing import Any

import numpy as np

from forensics.run.once import once
from parsers import arrow
from parsers.tables import Run


def steps(run: Run, before: dict[str, Any], after: dict[str, Any]) -> int:
    """How many of the steps of the attempt `before` the attempt `after` does again: none where its logged epoch is a later one. A loop that
    works out its step from the number of batches of an epoch counts otherwise once a batch holds more samples."""
    again = max(before["steps"][1] - after["steps"][0] + 1, 0)
    if not again:
        return 0
    epochs = _epochs(run)
    ended, begun = epochs.get(before["index"]), epochs.get(after["index"])
    return 0 if ended and begun and begun[0] > ended[1] else again


@once
def _epochs(run: Run) -> dict[int, tuple[float, float]]:
    """Attempt -> the first and last epoch that it logged, of all its rows: a series lacks those that a later attempt does again."""
    table = run.tables["metrics"]
    code, names = arrow.codes(table["name"])
    rows = np.flatnonzero(np.array([n == "epoch" for n in names], bool)[code]) if names else np.zeros(0, np.int64)
    value, attempt = arrow.values(table["value"].take(rows)), arrow.filled(table["attempt"].take(rows), -1)
    told = {int(i): value[(attempt == i) & np.isfinite(value)] for i in np.unique(attempt)}
    return {i: (float(x.min()), float(x.max())) for i, x in told.items() if len(x)}
