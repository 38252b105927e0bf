"""Which samples were in the batch of a step, as far as a file says so (how: recorded)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from forensics.case import Finding, Hypothesis
from parsers.tables import Run

BLAMES_DATA = ("bad_data_batch", "bad_data_pocket", "nan_from_sample")
SURE = 0.5  # a batch is blamed only by a cause at least this probable
MOST = 64  # batches named at most: a pocket is named by its ends


def batch(run: Run, step: int, attempt: int = 0) -> dict[str, Any] | None:
    """``{"step", "samples", "shard", "how", "confidence"}`` of a step, None where no file says it."""
    found = _recorded(run).get((attempt, step)) or _recorded(run).get((0, step))
    if found is None:
        return None
    samples, shards = found
    shard = shards[0] if len(shards) == 1 else ", ".join(shards[:8]) or None
    return {"step": step, "samples": samples, "shard": shard, "how": "recorded", "confidence": 1.0}


def answer(run: Run, step: int) -> dict[str, Any]:
    """The batch of a step in its surviving life, with `why`; `how` is "unknown" where no file says it."""
    lives = sorted({attempt for attempt, s in _recorded(run) if s == step})
    if lives:
        found = batch(run, step, lives[-1])
        assert found is not None
        twice = f", in {len(lives)} lives; this is the last one's" if len(lives) > 1 else ""
        return found | {"why": f"a file of the run lists it{twice}"}
    known = sorted(s for _, s in _recorded(run))
    why = f"the files of the run list batches of steps {known[0]} to {known[-1]} only" if known else "no file of the run maps steps to samples"
    return {"step": step, "samples": [], "shard": None, "how": "unknown", "confidence": 0.0, "why": why}


def shard_ends(run: Run, step: int) -> tuple[str, int, int] | None:
    """(shard, first step, last step) of a shard that is read at a step, in one stretch and nowhere else; None where none is."""
    if "shard_ends" not in run.cache:
        steps: dict[str, set[int]] = {}
        for (_, s), (_, shards) in _recorded(run).items():
            for shard in shards:
                steps.setdefault(shard, set()).add(s)
        run.cache["shard_ends"] = {
            k: (min(v), max(v)) for k, v in steps.items() if len(v) >= 0.9 * (max(v) - min(v) + 1)
        }
    ends: dict[str, tuple[int, int]] = run.cache["shard_ends"]
    inside = [(shard, a, b) for shard, (a, b) in ends.items() if a <= step <= b]
    return min(inside, key=lambda x: x[2] - x[1], default=None)


def culprits(run: Run, hypotheses: Sequence[Hypothesis], findings: Sequence[Finding]) -> tuple[dict[str, Any], ...]:
    """The batches that the first cause blames: only where it blames data, is probable enough, and a file names the batch."""
    best = hypotheses[0] if hypotheses else None
    if best is None or best.id not in BLAMES_DATA or best.probability < SURE:
        return ()
    cited = {f for c in best.clues for f in c.findings}
    steps: list[tuple[int, int]] = []
    for f in findings:
        if f.id in cited and f.kind == "loss_spike":
            last = f.facts["end"] - 1 if best.id == "bad_data_pocket" and f.facts["end"] else f.facts["peak"]
            steps += [(f.facts["attempt"], s) for s in range(f.facts["start"], last + 1)]
        elif f.id in cited and f.kind == "nonfinite" and f.facts.get("first") is not None:
            steps.append((f.facts.get("attempt", 0), f.facts["first"]))
    if len(steps) > MOST:
        steps = [steps[0], steps[-1]]
    found = [b for attempt, step in dict.fromkeys(steps) if (b := batch(run, step, attempt)) is not None]
    return tuple(b | {"confidence": round(best.probability, 2)} for b in found)


def _recorded(run: Run) -> dict[tuple[int, int], tuple[list[Any], list[str]]]:
    """(attempt, step) -> (samples in order, distinct shards), made once."""
    if "recorded" not in run.cache:
        found: dict[tuple[int, int], tuple[list[Any], list[str]]] = {}
        table = run.tables["batches"]
        for attempt, step, sample, shard in zip(
            *(table[c].to_pylist() for c in ("attempt", "step", "sample", "shard")), strict=True
        ):
            if step is None:
                continue
            samples, shards = found.setdefault((attempt or 0, step), ([], []))
            if sample is not None:
                samples.append(int(sample) if sample.lstrip("-").isdigit() and len(sample) < 18 else sample)
            if shard is not None and shard not in shards:
                shards.append(shard)
        run.cache["recorded"] = found
    recorded: dict[tuple[int, int], tuple[list[Any], list[str]]] = run.cache["recorded"]
    return recorded
