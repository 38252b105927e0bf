"""Logs of 200 steps that a test draws from functions of the step."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

from runs import make, read

from parsers.tables import Run

N = 200


def run(folder: Path, config: dict[str, Any] | None = None, **columns: Callable[[int], float]) -> Run:
    return read(make(folder, rows(columns), config))


def rows(columns: dict[str, Callable[[int], float]]) -> list[dict[str, Any]]:
    return [{"step": i} | {name.replace("__", "/"): f(i) for name, f in columns.items()} for i in range(1, N + 1)]


def noise(seed: int, size: float) -> Callable[[int], float]:
    drawn = random.Random(seed)
    values = [drawn.gauss(0, size) for _ in range(N + 1)]
    return lambda i: values[i]


def learns(high: float, low: float, seed: int = 1) -> Callable[[int], float]:
    n = noise(seed, 0.01 * abs(high - low))
    return lambda i: low + (high - low) * math.exp(-i / 30) + n(i)
