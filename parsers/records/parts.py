"""Rows of one shape, as columns: what the readers of tables and of JSON gather. Helpers, no parser."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Samples = tuple[list[str], list[str], bool]  # ids of a batch, its shards, is there one for each id

MISSING = -(2**63)  # stands for "no step", "no rank" and "no position" in the columns


@dataclass
class Part:
    """Rows of one shape. A column without places has a value in every row."""

    at: Ints
    step_key: str = ""  # the name of the step, as the vocabulary spells it
    steps: Ints | None = None
    also_iter: bool = False  # the rows have an ``iter`` beside their ``step``
    epochs: Floats | None = None
    times: Floats | None = None
    zoneless: bool = False  # the times name no time zone
    ranks: Ints | None = None
    evaluation: str = ""  # the word by which the rows say that they are no training rows
    columns: list[tuple[str, Ints | None, Floats]] = field(default_factory=list)  # tag, its rows, its values
    samples: list[Samples] | None = None
    positions: Ints | None = None  # of the first sample of each row

    def step_of(self, row: int) -> int | None:
        return None if self.steps is None or self.steps[row] == MISSING else int(self.steps[row])

    def rank_of(self, row: int, default: int | None) -> int | None:
        return default if self.ranks is None or self.ranks[row] == MISSING else int(self.ranks[row])

    def time_of(self, row: int) -> float | None:
        return None if self.times is None or np.isnan(self.times[row]) else float(self.times[row])
