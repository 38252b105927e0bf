"""Runs written to a folder for tests of a whole analysis: metrics as JSON lines, a console log, a config."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import forensics
from forensics.case import Finding
from parsers.tables import Run

START = 1_780_000_000.0


def loss(i: int) -> float:
    return 1.5 + 2.5 * math.exp(-i / 80) + 0.01 * ((i * 7919) % 13 - 6)


def every(n: int, value: object) -> object:
    """A value that is logged at each n-th step."""
    return lambda i: value(i) if i % n == 0 else None  # type: ignore[operator]


def make(folder: Path, rows: Sequence[Mapping[str, Any]], config: Mapping[str, Any] | None = None, log: str = "") -> Path:
    """A folder with these rows, a config and a console log where they are given."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "metrics.jsonl").write_text("".join(json.dumps(r) + "\n" for r in rows))
    if config:
        (folder / "config.json").write_text(json.dumps(config))
    if log:
        (folder / "train.log").write_text(log)
    return folder


def write(
    folder: Path,
    steps: int = 300,
    *,
    log: str = "",
    config: Mapping[str, Any] | None = None,
    seconds: float = 0.5,
    **more: Callable[[int], float | None],
) -> Path:
    """`more` maps names of metrics to their value at a step (None: not logged there)."""
    rows = [
        {"step": i, "loss": loss(i), "time": START + i * seconds} | {k: v for k, f in more.items() if (v := f(i)) is not None}
        for i in range(1, steps + 1)
    ]
    return make(folder, rows, config, log)


def read(folder: Path) -> Run:
    return forensics.read(str(folder))


def case(folder: Path) -> dict[str, Any]:
    return forensics.analyze(str(folder)).to_json()


def only(found: list[Finding]) -> Finding:
    assert len(found) == 1, [f.title for f in found]
    return found[0]


def top(document: dict[str, Any]) -> dict[str, Any]:
    best = document["hypotheses"][0]
    assert isinstance(best, dict)
    return best


def console(folder: Path, last: str = "", steps: int = 97) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "train.log").write_text("".join(f"step {i}: loss {2 - i / 200:.4f} lr 1.0e-3\n" for i in range(steps)) + last)
    return folder


def jsonl(folder: Path, rows: list[dict[str, Any]]) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "metrics.jsonl").write_text("".join(json.dumps(r) + "\n" for r in rows))
    return folder
