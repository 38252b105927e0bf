"""An emulated wall clock, so that a sample made again has the same bytes: fixed start, plausible step times."""

from __future__ import annotations

import random
from datetime import UTC, datetime


class Clock:
    """Starts at ``start`` (ISO, UTC); each step takes ``seconds`` with the jitter of a shared machine."""

    def __init__(self, start: str, seconds: float, seed: int = 0) -> None:
        self.now = datetime.fromisoformat(start).replace(tzinfo=UTC).timestamp()
        self.seconds = seconds
        self.rng = random.Random(seed)

    def tick(self, slower: float = 1.0) -> float:
        """Lets one step pass and returns how long it took, in seconds."""
        took = self.seconds * slower * max(self.rng.gauss(1.0, 0.02), 0.9) + self.rng.expovariate(200 / self.seconds)
        self.now += took
        return took

    def wait(self, seconds: float) -> None:
        self.now += seconds


def stamp(seconds: float, pattern: str = "%Y-%m-%d %H:%M:%S") -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime(pattern)


def millis(seconds: float) -> str:
    """The stamp of Python's logging: ``2026-03-02 08:15:00,123``."""
    return stamp(seconds) + f",{int(seconds % 1 * 1000):03d}"
