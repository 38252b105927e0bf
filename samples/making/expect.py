"""The truth beside each run, measured in the numbers it logged where it is a number.

The terms of a spike: baseline = median of the 15 logged values before the event, noise s = 1.4826 times the median
distance from a running median of 9 over the 80 values before it; it starts at the first value above baseline + 3 s on
the way to the peak, and ends where the median of three values is back within 2 s. It is fast when that takes at most
20 steps (or 3 log intervals, or 0.4 % of the run), slow when it takes longer, non-recovering when it never happens.
"""

from __future__ import annotations

import json
import math
import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

from making.training import Row


@dataclass
class Expect:
    """What a tool should say of a sample; ``findings`` must fire, ``clear`` must not."""

    verdict: str = "unhealthy"
    top: str = ""
    acceptable: list[str] = field(default_factory=list)
    findings: list[str] = field(default_factory=list)
    clear: list[str] = field(default_factory=list)
    attempts: int = 1
    status: str = "finished"
    first_bad_step: int | None = None
    spikes: list[dict[str, Any]] = field(default_factory=list)
    culprits: list[int] = field(default_factory=list)
    culprit_samples: list[int] = field(default_factory=list)
    emulated: str = "the clock"


INTRODUCTION = """# Samples

Small training runs, each with the files that a run leaves behind and an `expect.toml` with the truth. Every loss,
gradient norm, weight and evaluation in them was really computed: a perceptron on generated clusters, or a character
model (GRU, transformer) on a generated text, or a GAN, a VAE, a mixture of experts, a policy in a maze, trained with
torch on a CPU for some hundred steps. Clocks are emulated everywhere, so that a sample made again has the same bytes;
what else is emulated stands in the sample's `README.md`.

    python samples/make.py            # all of them, some minutes; needs torch, PyYAML and wandb
    python samples/make.py NAME...    # some of them

A recipe is a function in `making/recipes/`; its docstring becomes the sample's `README.md`. Spikes in `expect.toml` are
measured in the logged values by the definition at the top of `making/expect.py`. The names tell people what went
wrong; a tool must not look at them, nor at `expect.toml` and `README.md`, which are no part of the run.

| keys of `expect.toml` | |
|---|---|
| `verdict`, `top`, `acceptable` | healthy or unhealthy; the cause that should be first; others that may be |
| `findings`, `clear` | kinds of findings that must be there; kinds that must not |
| `attempts`, `status`, `first_bad_step` | attempts of the run; how it ended; where the fault begins, in the run's own labels |
| `spikes`, `culprits`, `culprit_samples` | measured spikes; the steps of the batches to blame; their sample ids |
| `emulated` | what was not really computed |

| sample | cause | what happened |
|---|---|---|
"""

HEALTHY = [
    "loss_spike",
    "divergence",
    "level_shift",
    "nonfinite",
    "plateau",
    "oscillation",
    "grad_spike",
    "lr_schedule",
    "loss_scale",
    "initial_loss",
    "zero_loss",
    "train_eval_gap",
    "throughput",
    "memory",
    "stall",
    "restart",
    "resume_break",
    "repeated_data",
    "rank_disagreement",
    "config_change",
    "logger_artefact",
    "checkpoint_damage",
    "frozen_weights",
    "seed_spread",
]


def healthy(emulated: str = "the clock") -> Expect:
    return Expect("healthy", clear=HEALTHY, emulated=emulated)


def spike(rows: list[Row], near: int, key: str = "loss", metric: str = "loss.train") -> dict[str, Any]:
    """Measures the spike that begins at or after step ``near`` in the logged rows."""
    steps, values = [r["step"] for r in rows], [float(r[key]) for r in rows]
    onset = next(i for i, step in enumerate(steps) if step >= near)
    before = values[max(0, onset - 80) : onset]
    smooth = [median(before[max(0, i - 4) : i + 5]) for i in range(len(before))]
    noise = 1.4826 * median(abs(a - b) for a, b in zip(before, smooth, strict=True))
    base = median(before[-15:])
    peak = max(range(onset, len(values)), key=lambda i: math.inf if math.isnan(values[i]) else values[i])
    start = next(i for i in range(onset, peak + 1) if values[i] > base + 3 * noise)
    back = (i for i in range(peak + 1, len(values) - 1) if median(values[i - 1 : i + 2]) <= base + 2 * noise)
    end = next(back, None)
    found = {"metric": metric, "start": steps[start], "peak": steps[peak]}
    if end is None:
        return found | {"class": "non_recovering"}
    limit = max(0.004 * steps[-1], 3 * (steps[-1] - steps[-2]), 20)
    return found | {"end": steps[end], "class": "fast" if steps[end] - steps[start] <= limit else "slow"}


def write(folder: Path, expect: Expect, what: str) -> None:
    """``expect.toml`` for tests and ``README.md`` for people; ``what`` is the recipe's docstring."""
    values = {"what": " ".join(what.split()), **vars(expect)}
    text = "".join(f"{key} = {_toml(value)}\n" for key, value in values.items() if value is not None)
    (folder / "expect.toml").write_text(text)
    title = folder.name.replace("_", " ").capitalize()
    (folder / "README.md").write_text(f"# {title}\n\n{what}\n\nEmulated: {expect.emulated or 'nothing'}.\n")


def index(folder: Path) -> None:
    """``README.md`` of all samples below ``folder``, from their ``expect.toml``."""
    rows = []
    for path in sorted(folder.glob("*/expect.toml")):
        truth = tomllib.loads(path.read_text())
        what = truth["what"].split(". ")[0].rstrip(".")
        rows.append(f"| [`{path.parent.name}`]({path.parent.name}/) | {truth['top'] or truth['verdict']} | {what} |")
    (folder / "README.md").write_text(INTRODUCTION + "\n".join(rows) + "\n")


def _toml(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{k} = {_toml(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list) and value and isinstance(value[0], dict):
        return "[\n" + "".join(f"  {_toml(v)},\n" for v in value) + "]"
    return json.dumps(value, ensure_ascii=False)
