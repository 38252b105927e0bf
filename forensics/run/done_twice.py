"""The steps that two attempts of a run both did."""

from __future__ import annotations

from typing import Any

import numpy as np

from forensics.run.series import Floats
from parsers import arrow
from parsers.tables import Run


def steps(run: Run, before: dict[str, Any], after: dict[str, Any]) -> int:
    """How many of the steps of the attempt `before` the attempt `after` does again: none where its logged epoch is a later one. A loop that
    works out its step from the number of batches of an epoch counts otherwise once a batch holds more samples."""
    again = max(before["steps"][1] - after["steps"][0] + 1, 0)
    if not again:
        return 0
    ended, begun = _epochs(run, before["index"]), _epochs(run, after["index"])
    later = len(ended) > 0 and len(begun) > 0 and begun.min() > ended.max()
    return 0 if later else again


def _epochs(run: Run, attempt: int) -> Floats:
    table = run.tables["metrics"]
    code, names = arrow.codes(table["name"])
    of_epoch = np.array([n == "epoch" for n in names], bool)[code] if names else np.zeros(0, bool)
    rows = np.flatnonzero(of_epoch & (arrow.filled(table["attempt"], -1) == attempt))
    found: Floats = arrow.values(table["value"].take(rows))
    return found[np.isfinite(found)]
