"""Small runs for audits: a loss that falls, with spikes where a test wants them."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any


def curve(seed: int, spikes: tuple[int, ...] = (), first: int = 0, steps: int = 300) -> str:
    rng = random.Random(seed)
    lines = []
    for i in range(first, first + steps):
        loss = 1.0 + 2.0 * 0.5 ** (i / 150) + 0.01 * rng.gauss(0, 1) + (3.0 if i in spikes else 0.0)
        lines.append(json.dumps({"step": i, "loss": loss, "time": 1.7e9 + seed * 1e5 + i}) + "\n")
    return "".join(lines)


def put(folder: Path, seed: int, spikes: tuple[int, ...] = (), **config: Any) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "metrics.jsonl").write_text(curve(seed, spikes))
    (folder / "config.json").write_text(json.dumps({"lr": 1e-3, "batch_size": 8, "seed": seed, "warmup_steps": 10, **config}))
    return folder
