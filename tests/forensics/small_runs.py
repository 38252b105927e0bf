"""Runs of a few rows that a test writes out itself, and what is made of them."""

from __future__ import annotations

import json
import math
import random
from pathlib import Path
from typing import Any

import forensics
from forensics.case import Case

Rows = list[dict[str, Any]]


def curve(n: int, *, low: float = 1.0, high: float = 4.0, tau: float = 60.0, noise: float = 0.01, seed: int = 0) -> list[float]:
    rng = random.Random(seed)
    return [(low + (high - low) * math.exp(-i / tau)) * (1 + noise * rng.gauss(0, 1)) for i in range(n)]


def analyzed(folder: Path, rows: Rows, config: dict[str, Any] | None = None, log: str = "") -> Case:
    folder.mkdir(parents=True)
    (folder / "metrics.jsonl").write_text("".join(json.dumps(r) + "\n" for r in rows))
    (folder / "config.json").write_text(json.dumps(config or {}))
    if log:
        (folder / "slurm.out").write_text(log)
    return forensics.analyze(str(folder))


def kinds(case: Case) -> set[str]:
    return {f.kind for f in case.findings if f.severity != "info"}


def probability(case: Case, cause: str) -> float:
    return next((h.probability for h in case.hypotheses if h.id == cause), 0.0)


def lead(case: Case) -> str:
    """The first cause by name: principles are about neighbours, and how far the first leads what is not on the list is measured, not argued."""
    return next(h.id for h in case.hypotheses if h.id != "unknown")


def cosine(i: int, period: int, peak: float = 1e-3) -> float:
    return peak * (0.05 + 0.95 * 0.5 * (1 + math.cos(math.pi * (i % period) / period)))
