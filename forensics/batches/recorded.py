"""What files of the run say of its batches (how: recorded), and which shard a sample lies in."""

from __future__ import annotations

import bisect
from typing import Any

from forensics.run.once import once
from forensics.run.settings import named
from parsers.tables import Run

_SHARD_KEYS = ("name path file basename shard", "first start offset begin", "count num_samples samples size n")
Recorded = dict[tuple[int, int], tuple[list[Any], list[str]]]  # (attempt, step) -> (samples in order, distinct shards)


@once
def recorded(run: Run) -> Recorded:
    """Made once from the table of batches."""
    found: Recorded = {}
    table = run.tables["batches"]
    columns = (table[c].to_pylist() for c in ("attempt", "step", "sample", "shard"))
    for attempt, step, sample, shard in zip(*columns, strict=True):
        if step is None:
            continue
        samples, shards = found.setdefault((attempt or 0, step), ([], []))
        if sample is not None:
            samples.append(int(sample) if sample.lstrip("-").isdigit() and len(sample) < 18 else sample)
        if shard is not None and shard not in shards:
            shards.append(shard)
    return found


def batch(run: Run, step: int, attempt: int = 0) -> dict[str, Any] | None:
    """``{"step", "samples", "shard", "how", "confidence"}`` of a step in an attempt of the run, None where no file says it.

    A manifest without clocks cannot say which attempt wrote a line: then the line of another attempt speaks for this one.
    """
    known = recorded(run)
    attempts = [a for a in range(len(run.attempts) or 1) if (a, step) in known]
    if not attempts:
        return None
    samples, shards = known[attempt if attempt in attempts else attempts[0], step]
    shards = shards or shards_of(run, samples)
    shard = shards[0] if len(shards) == 1 else ", ".join(shards[:8]) or None
    return {"step": step, "samples": samples, "shard": shard, "how": "recorded", "confidence": 1.0}


def attempts_with(run: Run, step: int) -> list[int]:
    """The attempts of the run in which a file lists the batch of a step."""
    return sorted({attempt for attempt, s in recorded(run) if s == step})


def shard_ends(run: Run, step: int) -> tuple[str, int, int] | None:
    """(shard, first step, last step) of a shard that is read at a step, in one stretch and nowhere else; None where none is."""
    inside = [(shard, a, b) for shard, (a, b) in _stretches(run).items() if a <= step <= b]
    return min(inside, key=lambda x: x[2] - x[1], default=None)


@once
def _stretches(run: Run) -> dict[str, tuple[int, int]]:
    """First and last step of the shards that are read in one stretch."""
    steps: dict[str, set[int]] = {}
    for (_, s), (_, shards) in recorded(run).items():
        for shard in shards:
            steps.setdefault(shard, set()).add(s)
    return {k: (min(v), max(v)) for k, v in steps.items() if len(v) >= 0.9 * (max(v) - min(v) + 1)}


def shares(run: Run) -> dict[str, float]:
    """shard -> share of the recorded steps that read from it."""
    known = recorded(run)
    count: dict[str, int] = {}
    for _, shards in known.values():
        for shard in shards:
            count[shard] = count.get(shard, 0) + 1
    return {shard: n / len(known) for shard, n in count.items()}


def shards_of(run: Run, samples: list[Any]) -> list[str]:
    """The shards of sample numbers, where a config lists shards with first sample and count; [] where none does."""
    starts, counts, names = _index(run)
    found: list[str] = []
    for sample in samples:
        at = bisect.bisect_right(starts, sample) - 1 if isinstance(sample, int) else -1
        if at >= 0 and sample < starts[at] + counts[at] and names[at] not in found:
            found.append(names[at])
    return found


@once
def _index(run: Run) -> tuple[list[int], list[int], list[str]]:
    """(first sample, count, name) of each shard, from a list such as [{"name": "a", "first": 0, "count": 128}, ...]."""
    rows: list[tuple[int, int, str]] = []
    for found in named(run, "shards shard_index data_shards"):
        listed = found.value if isinstance(found.value, list) else []
        for item in listed:
            if not isinstance(item, dict):
                continue
            name, first, count = (next((item[k] for k in keys.split() if k in item), None) for keys in _SHARD_KEYS)
            if isinstance(name, str) and isinstance(first, int) and isinstance(count, int):
                rows.append((first, count, name))
    rows.sort()
    return [r[0] for r in rows], [r[1] for r in rows], [r[2] for r in rows]
