"""Records of runs that never were, for audits too large to train: those of a few samples, analyzed once and perturbed with a fixed seed.

Runs come in recipes of four seeds, in folders of 500 (the sweeps), on 200 hosts. What is planted is what the comparisons look for: two bad batches
a family, which one run in eight hits, a host that breaks more runs, copies, and restarts in another folder.
"""

from __future__ import annotations

import copy
import hashlib
import random
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from forensics.audits.discover import Place

ROOT = Path(__file__).resolve().parent.parent
SAMPLES = (
    "bad_shard_tensorboard",
    "healthy_tensorboard",
    "bad_batch_jsonl",
    "healthy_noisy_jsonl",
    "fp16_overflow_deepspeed",
    "nan_sample_csv",
)
SEEDS, SWEEP, HOSTS = 4, 500, 200
RATES = (1e-4, 3e-4, 1e-3, 3e-3, 1e-2)


def measured() -> list[dict[str, Any]]:
    """The records of the samples."""
    from forensics import at_path, pipeline
    from forensics.audits import row

    found = []
    with tempfile.TemporaryDirectory() as name:
        for sample in SAMPLES:
            folder = Path(name) / sample
            shutil.copytree(ROOT / "samples" / sample, folder, ignore=shutil.ignore_patterns("expect.toml", "README.md"))
            run = at_path.read(str(folder))
            found.append(row.of(run, pipeline.analyze_run(run, brief=True)))
    return found


def simulated(count: int, families: int, seed: int = 0) -> Iterator[tuple[Place, dict[str, Any]]]:
    """Places that are not on the disk, each with the record of its run."""
    rng = random.Random(seed)
    bases = measured()
    planted = {f: sorted(rng.sample(range(60, 480), 2)) for f in range(families)}
    for i in range(count):
        recipe, family = i // SEEDS, (i // SEEDS) % families
        record = copy.deepcopy(bases[recipe % len(bases)])
        name = f"sweep{i // SWEEP:04d}/run{i:06d}"
        _row(record, name, rng)
        _config(record, recipe, i % SEEDS, rng)
        _spikes(record, planted[family], rng)
        _history(record, i, rng)
        record["family"] = f"framework{family}|train/loss"
        yield Place("/runs", "", name, name, (f"{name}/log.jsonl",), f"stamp{i}"), record


def _row(record: dict[str, Any], name: str, rng: random.Random) -> None:
    host = rng.randrange(HOSTS)
    row = record["row"]
    row |= {"id": name.replace("/", "__"), "path": f"/runs/{name}", "host": f"node-{host:03d}"}
    record["hosts"] = [f"node-{host:03d}"]
    if (host == 7 and rng.random() < 0.5) or rng.random() < 0.05:
        row |= {"verdict": "unhealthy", "top_cause": "hardware_failure", "probability": 0.8, "grave": 1}


def _config(record: dict[str, Any], recipe: int, seed: int, rng: random.Random) -> None:
    own = random.Random(recipe)
    rate = own.choice(RATES)
    record["config"] |= {
        "lr": str(rate),
        "seed": str(seed),
        "batch_size": str(own.choice((8, 16, 32))),
        "width": str(own.choice((64, 128, 256))),
    }
    record["config"] |= {f"model.part{k}": str(own.randrange(4)) for k in range(12)}
    record["settings"] |= {"lr": rate, "width": float(record["config"]["width"])}
    level = 1.0 + rng.gauss(0, 0.02)
    record["levels"] = {"loss.train": [level, 0.01], "loss.eval": [level + 0.05, 0.01]}
    record["row"]["loss"] = level + 0.05


def _spikes(record: dict[str, Any], bad: list[int], rng: random.Random) -> None:
    shift = 0 if rng.random() < 0.7 else 13
    steps = [rng.randrange(20, 520) for _ in range(rng.choice((0, 0, 0, 1, 2)))]
    steps += [b + shift for b in bad if rng.random() < 0.125]
    record["spikes"] = [[s, "fast"] for s in sorted(set(steps))]
    record["batches"], record["resumes"] = {}, []
    record["logged"] = [1, 500 + rng.randrange(200), 1]
    shards = list(record["shards"])
    record["struck"] = [rng.choice(shards) for _ in steps] if shards else []


def _history(record: dict[str, Any], i: int, rng: random.Random) -> None:
    """Other losses than the sample's, but for a copy in a hundred; a restart in twenty; a clock."""
    own = hashlib.sha256(str(i if i % 100 else max(i - SEEDS * len(SAMPLES), 0)).encode()).hexdigest()[:6]
    parts = [p.rsplit(":", 1) for p in record["prefixes"].split()]
    record["prefixes"] = " ".join(f"{head}:{digest[:6]}{own}" for head, digest in parts)
    begun = 1.7e9 + 60 * i
    record["times"] = [begun, begun + 3600]
    if i % 20 == 0:
        record["logged"] = [record["logged"][1] // 2, record["logged"][1], 1]
    record["curve"] = [min(max(v + rng.randrange(-3, 4), 0), 99) for v in record["curve"]]
