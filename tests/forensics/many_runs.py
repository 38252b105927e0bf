"""Small runs for audits: a loss that falls, with spikes where a test wants them; and audits of them."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import polars as pl

from forensics import audits
from reports import html

COMMAND = [sys.executable, "-c", "import sys; from forensics.cli import main; sys.argv[0] = 'forensics'; main()"]
TEXT = audits.Outputs(html.render, str, str)  # a page that an audit finds again has to be one


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


def six(folder: Path) -> Path:
    for i in range(6):
        put(folder / f"r{i}", i, (150,) if i % 2 else ())
    return folder


def forensics(*args: object, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*COMMAND, *map(str, args)], cwd=cwd, capture_output=True, text=True)


def table(out: Path) -> list[dict[str, Any]]:
    return pl.read_parquet(out / "audit.parquet").to_dicts()
