"""A guard while training: it takes one value after another and knows none that comes later.

Standard library only: ``forensics guard --emit`` copies the source of ``Guard`` and of one statistic into the file that it writes.
``replayed`` has the same statistics over whole series; tests/forensics/test_guards.py holds them equal, step for step.
"""

from __future__ import annotations

import math
import statistics
from collections import deque
from collections.abc import Callable


class Guard:
    """Fires where the statistic of the last `patience` values in a row is at least the threshold."""

    def __init__(self, statistic: Callable[[float], float | None], threshold: float, patience: int) -> None:
        self.statistic, self.threshold, self.patience = statistic, threshold, patience
        self.row = 0

    def update(self, value: float) -> bool:
        score = self.statistic(value)
        if score is not None:
            self.row = self.row + 1 if score >= self.threshold else 0
        return score is not None and self.row >= self.patience


class NotFinite:
    """1 where the value is NaN or infinite, after `least` values."""

    def __init__(self, window: int, least: int) -> None:
        self.least, self.seen = least, 0

    def __call__(self, value: float) -> float:
        self.seen += 1
        return float(self.seen > self.least and not math.isfinite(value))


class Above:
    """The value itself."""

    def __init__(self, window: int, least: int) -> None:
        self.least, self.seen = least, 0

    def __call__(self, value: float) -> float | None:
        self.seen += math.isfinite(value)
        return (value if self.seen > self.least else -math.inf) if math.isfinite(value) else None


class Below:
    """The value with its sign turned, once it is below the first: a scale of 1 from the start is a scaler that is off."""

    def __init__(self, window: int, least: int) -> None:
        self.least, self.seen, self.first = least, 0, math.nan

    def __call__(self, value: float) -> float | None:
        if not math.isfinite(value):
            return None
        self.first = self.first if self.seen else value
        self.seen += 1
        return -value if self.seen > self.least and value < self.first else -math.inf


class Deviations:
    """Standard deviations above the mean of the values before; half a percent of the mean is the smallest deviation."""

    def __init__(self, window: int, least: int) -> None:
        self.least, self.past = least, deque[float](maxlen=window)

    def __call__(self, value: float) -> float | None:
        if not math.isfinite(value):
            return None
        score = -math.inf
        if len(self.past) >= self.least:
            mean = sum(self.past) / len(self.past)
            spread = math.sqrt(sum((x - mean) * (x - mean) for x in self.past) / len(self.past))
            score = (value - mean) / max(spread, 0.005 * abs(mean), 1e-12)
        self.past.append(value)
        return score


class RobustDeviations:
    """Distance above the median of the values before, in robust deviations (1.4826 x median) of the earlier distances from theirs;
    half a percent of the median is the smallest deviation."""

    def __init__(self, window: int, least: int) -> None:
        self.least, self.past, self.off = least, deque[float](maxlen=window), deque[float](maxlen=window)

    def __call__(self, value: float) -> float | None:
        if not math.isfinite(value):
            return None
        score = -math.inf
        if self.past:
            middle = statistics.median(self.past)
            if len(self.past) >= self.least:
                score = (value - middle) / max(1.4826 * statistics.median(self.off), 0.005 * abs(middle), 1e-12)
            self.off.append(abs(value - middle))
        self.past.append(value)
        return score


class TimesMedian:
    """The value over the median of the values before."""

    def __init__(self, window: int, least: int) -> None:
        self.least, self.past = least, deque[float](maxlen=window)

    def __call__(self, value: float) -> float | None:
        if not math.isfinite(value):
            return None
        middle = statistics.median(self.past) if len(self.past) >= self.least else 0.0
        self.past.append(value)
        return value / middle if middle > 0 else -math.inf


class TimesLowest:
    """The value over the lowest so far, after `least` values."""

    def __init__(self, window: int, least: int) -> None:
        self.least, self.seen, self.lowest = least, 0, math.inf

    def __call__(self, value: float) -> float | None:
        if not math.isfinite(value):
            return None
        score = value / self.lowest if self.seen >= self.least and 0 < self.lowest < math.inf else -math.inf
        self.seen, self.lowest = self.seen + 1, min(self.lowest, value)
        return score
