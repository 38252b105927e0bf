"""What is known of the values of a tensor once they were read."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass
class Stats:
    """Of the finite values; `norm` is the Euclidean one. `count` includes the non-finite."""

    count: int = 0
    nonfinite: int = 0
    zeros: int = 0
    absmax: float = 0.0
    mean: float = 0.0
    m2: float = 0.0  # sum of squared distances from the mean
    squares: float = 0.0
    zero_rows: int | None = None  # of a matrix: rows and columns of zeros; None where they were not counted
    zero_columns: int | None = None
    negative: int | None = None  # values below zero, where they were counted
    parallel: bool = False  # rows that were looked at are multiples of one another

    @property
    def finite(self) -> int:
        return self.count - self.nonfinite

    @property
    def norm(self) -> float:
        return math.sqrt(self.squares)

    @property
    def std(self) -> float:
        return math.sqrt(max(self.m2, 0.0) / self.finite) if self.finite else 0.0

    @property
    def fingerprint(self) -> tuple[float, ...]:
        """Equal for equal values, and for others by the rarest chance."""
        return self.squares, self.mean, self.m2, self.absmax, self.zeros, self.nonfinite

    def merge(self, n: int, total: float, squares: float, m2: float) -> None:
        """Adds n finite values with this sum, sum of squares, and sum of squares about their own mean. Before `count` grows."""
        if not n:
            return
        mean, before = total / n, self.finite
        delta = mean - self.mean
        self.m2 += m2 + delta * delta * before * n / (before + n)
        self.mean += delta * n / (before + n)
        self.squares += squares
