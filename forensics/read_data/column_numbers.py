"""The numbers of each column in a suspect batch beside those of the ordinary batches: smallest, median, largest, not finite."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from forensics.batches.sample_stats import LABELS, MASKS, NAMES, TOKENS
from forensics.read_data.sample_parts import CELLS, numbers, tokens_name
from forensics.run.robust import median

Numbers = dict[str, list[np.ndarray[Any, Any]]]
BEYOND = 0.5  # of the ordinary range, by which a value leaves it: as for samples (inspect_samples), few rows have a range of their own
NOTHING: list[Any] = [None, None, None, 0]
VALUES = 1 << 16  # of one field of a row that are looked at: bound


def gathered(rows: Sequence[Mapping[str, Any]]) -> Numbers:
    """The numbers of the rows by column, without ids, tokens and their targets: of these size means nothing."""
    found: Numbers = {}
    for row in rows:
        tokens = tokens_name(row)
        for key, value in row.items():
            array = None if key == tokens or NAMES.match(str(key)) or TOKENS.match(str(key)) else numbers(value)
            if array is not None and array.size > 1 and (LABELS.match(str(key)) or MASKS.match(str(key))):
                continue
            if array is not None and array.size and (key in found or len(found) < CELLS):
                found.setdefault(key, []).append(array.ravel()[:VALUES].astype(np.float64))
    return found


def beside(suspect: Numbers, ordinary: Numbers) -> list[dict[str, Any]]:
    """``[{"name", "suspect": [low, median, high, not finite], "ordinary": [...], "outside"}]``; `outside`: where the suspect leaves the range."""
    rows = []
    for name, values in suspect.items():
        here, there = _range(values), _range(ordinary[name]) if name in ordinary else NOTHING
        outside = here[3] > there[3]
        if here[0] is not None and there[0] is not None:
            margin = BEYOND * (there[2] - there[0])
            outside |= here[0] < there[0] - margin or here[2] > there[2] + margin
        rows.append({"name": str(name)[:80], "suspect": here, "ordinary": there, "outside": bool(outside)})
    return rows


def _range(values: Sequence[np.ndarray[Any, Any]]) -> list[Any]:
    every = np.concatenate(values)
    finite = every[np.isfinite(every)]
    inside = [float(finite.min()), median(finite), float(finite.max())] if finite.size else [None, None, None]
    return [*inside, int(every.size - finite.size)]
