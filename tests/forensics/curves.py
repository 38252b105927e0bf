"""Curves and runs for the tests of detectors, made in memory."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from forensics.run.series import Series
from forensics.spikes.excursions import Floats
from parsers.runs.spans import Span
from parsers.tables import SCHEMAS, Run, empty


def noisy(n: int, sigma: float, seed: int = 0) -> Floats:
    """A loss of two with multiplicative Gaussian noise, hardly falling."""
    t = np.arange(n)
    noise = np.random.default_rng(seed).standard_normal(n)
    return np.asarray(2 * np.exp(-t / (50 * n) + sigma * noise))


def log_of(x: Floats, interval: int = 1, smoothing: str = "none") -> Series:
    n = len(x)
    code = np.zeros(n, np.int32)
    return Series(
        "loss.train", "loss", np.arange(n) * interval, x, np.full(n, np.nan), code, np.ones(n, bool), ["log.jsonl"],
        code, np.arange(n), interval=interval, smoothing=smoothing,
    )  # fmt: skip


def run_of(
    metrics: Mapping[str, Floats],
    *,
    interval: int = 1,
    config: Mapping[str, Any] | None = None,
    events: Sequence[Mapping[str, Any]] = (),
    attempts: Sequence[int] | None = None,
    steps: Sequence[int] | None = None,
    framework: str | None = None,
) -> Run:
    """A run whose metrics were all logged at the same steps (0, interval, ...)."""
    rows: dict[str, list[Any]] = {c: [] for c in SCHEMAS["metrics"].names}
    for name, values in metrics.items():
        n = len(values)
        rows["step"] += list(steps) if steps is not None else [i * interval for i in range(n)]
        rows["tag"] += [name.removeprefix("other/")] * n
        rows["name"] += [name] * n
        rows["value"] += [float(v) for v in values]
        rows["time"] += [None] * n
        rows["rank"] += [None] * n
        rows["attempt"] += list(attempts) if attempts is not None else [0] * n
        rows["source"] += ["log.jsonl"] * n
        rows["at"] += list(range(1, n + 1))
    tables = {name: empty(name) for name in SCHEMAS}
    tables["metrics"] = _table("metrics", rows)
    if config:
        tables["config"] = _table(
            "config",
            {
                "attempt": [None] * len(config),
                "key": list(config),
                "value": [json.dumps(v) for v in config.values()],
                "source": ["config.json"] * len(config),
                "at": [None] * len(config),
            },
        )
    if events:
        columns: dict[str, list[Any]] = {c: [e.get(c) for e in events] for c in SCHEMAS["events"].names}
        tables["events"] = _table("events", columns)
    told = [{"index": i, "steps": [0, 0], "started": None, "ended": None, "span": Span(0, 0)} for i in sorted(set(attempts or [0]))]
    return Run("test", "test", tables, [], [], attempts=told, framework=framework)


def _table(name: str, columns: Mapping[str, list[Any]]) -> pa.Table:
    schema = SCHEMAS[name]
    arrays = []
    for f in schema:
        if pa.types.is_dictionary(f.type):
            arrays.append(pa.array(columns[f.name], pa.string()).dictionary_encode())
        else:
            arrays.append(pa.array(columns[f.name], f.type))
    return pa.Table.from_arrays(arrays, schema=schema)
