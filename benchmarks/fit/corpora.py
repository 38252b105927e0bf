"""The runs with known causes, each with its family: what the weights are learned from and measured on.

A corpus is a folder in one of four forms: ``runs/`` with ``truth/<id>.json`` or ``truth.json`` (planted faults), ``truth.jsonl`` (real runs that
were read blind) and samples with an ``expect.toml`` each. A family is what shares model, framework, task and logger; in the corpora
that do not say, task and form of the log, or the run itself.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from forensics.causes.files import NOTHING, UNKNOWN, causes

# What truths say in plain words ("other:..."), by the cause that says the same
IN_WORDS = {
    "code_error": r"exception|error in|not found|missing|init failed|mismatch|compil|depend",
    "stopped_from_outside": r"interrupt|time limit|preempt|cancel",
    "disk_full": r"disk full",
    "nan_from_layer": r"log\(0\)",
    "optimizer_second_moment": r"epsilon",
    "rank_divergence": r"one rank's",
    "eval_changed": r"evaluation inputs",
    "tokenizer_mismatch": r"vocabular|token ids",
    "weight_decay_too_strong": r"weight decay",
    "loss_scaled_wrong": r"reduced by sum|divided twice",
    "gradients_not_cleared": r"never zeroed",
    "class_collapse": r"majority",
    "gan_imbalance": r"\bgan\b",
    "posterior_collapse": r"posterior",
    "rl_entropy_collapse": r"entropy",
    "rl_kl_runaway": r"runs away from the reference|\bkl\b",
    "rl_reward_scale": r"reward (scale|sign)",
    "rl_value_explosion": r"value (loss )?explo",
}
# Of the training table, before the signs (benchmarks/fit/collect.py says what they are)
COLUMNS = ("corpus", "family", "run", "copy", "cause", "near", "identifiable", "verdict", "unexplained")


@dataclass(frozen=True)
class Truth:
    corpus: str
    id: str
    path: Path
    family: str
    faulty: bool
    right: tuple[str, ...]  # causes, best first; empty where the run is healthy or its cause is none of ours
    near: frozenset[str]  # what a careful reader would let pass as well
    identifiable: bool
    last: int | None = None  # of the steps that the truth names

    @property
    def accepted(self) -> frozenset[str]:
        return frozenset(self.right) | self.near

    @property
    def target(self) -> str:
        """The class that a model should answer."""
        return (self.right or (UNKNOWN,))[0] if self.faulty else NOTHING


def read(folder: Path, corpus: str = "") -> Iterator[Truth]:
    """The runs of a corpus that are on this machine."""
    corpus = corpus or folder.name
    runs = folder / "runs" if (folder / "runs").is_dir() else folder
    for file in sorted(folder.glob("truth/*.json")):
        t = json.loads(file.read_text("utf-8"))
        yield _planted(
            corpus,
            runs,
            t
            | {
                "kind": "healthy" if t["verdict"] == "healthy" else "faulty",
                "accept": [*t["causes"], *t["acceptable"]],
                "family": _kind(t),
            },
        )
    if (folder / "truth.json").exists():
        yield from (_planted(corpus, runs, t) for t in json.loads((folder / "truth.json").read_text("utf-8")))
    for file in sorted([*folder.glob("truth.jsonl"), *folder.glob("real_truth/truth.jsonl")]):
        for number, line in enumerate(file.read_text("utf-8").splitlines()):
            t = json.loads(line)
            where = runs / t["id"]
            if where.exists() and t.get("runs") in (1, None):
                said = _ours(t["causes_ok"])
                healthy = t["verdict"] == ["healthy"]
                to_name = bool(said) and "healthy" not in t["verdict"]  # else a reader who names none is right as well
                yield Truth(corpus, t["id"], where, f"{corpus}/{number}", not healthy, said[:1], frozenset(said), to_name)
    for file in sorted(folder.glob("*/expect.toml")):
        e = tomllib.loads(file.read_text("utf-8"))
        right = _ours([e["top"]] if e["top"] else [])
        family = f"{corpus}/{file.parent.name}"
        yield Truth(
            corpus,
            file.parent.name,
            file.parent,
            family,
            e["verdict"] != "healthy",
            right,
            frozenset(_ours(e.get("acceptable", []))),
            True,
            _last(e),
        )


def _planted(corpus: str, runs: Path, t: dict[str, Any]) -> Truth:
    right = _ours([t.get("cause") or ""])
    identifiable = t.get("identifiable", True) not in (False, "no")
    return Truth(
        corpus,
        t["id"],
        runs / t["id"],
        f"{corpus}/{t['family'].replace('/', ' or ')}",
        t["kind"] != "healthy",
        right,
        frozenset(_ours(t.get("accept") or [])),
        identifiable,
        _last(t),
    )


def _last(t: dict[str, Any]) -> int | None:
    """The last of the steps that a truth names, whatever its form."""
    found = [s.get("end") for s in t.get("spikes") or ()]
    for key in ("first_bad_step", "first_fault_step", "fault_steps", "fault_stretch", "resume_steps", "onset"):
        value = t.get(key)
        found += value if isinstance(value, list) else [value]
    return max((s for s in found if isinstance(s, int) and s > 0), default=None)


def _ours(said: list[str]) -> tuple[str, ...]:
    """The ids of our causes, and ``unknown``, among what a truth says, in its order."""
    found = []
    for text in said:
        found += (
            [text]
            if text in (*causes(), UNKNOWN)
            else [c for c, words in IN_WORDS.items() if text.startswith("other:") and re.search(words, text, re.I)]
        )
    return tuple(dict.fromkeys(found))


def _kind(t: dict[str, Any]) -> str:
    """The family of a run whose generator names none: its task and the form of its log."""
    return f"{t.get('task') or t.get('framework') or ''}-{t.get('log_profile') or ''}"
