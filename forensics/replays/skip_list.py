"""What to leave out of the next attempt: a list for programs (``skip.json``) and a script with a sampler that does it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

SCRIPT = '''\
"""Leaves out what the replay blames: `keep` where a program makes its batches by step, `Without` where a sampler does."""
SKIP = {skip}  # step, as the log counts: rows of its batch (empty: the whole batch)
SAMPLES = {samples}


def keep(step, batch, select):
    """The batch without the blamed rows, None where nothing is left; `select` takes (batch, indices). Later batches stay as they were."""
    if step not in SKIP:
        return batch
    rows = SKIP[step]
    length = len(next(iter(batch.values())) if isinstance(batch, dict) else batch[0] if isinstance(batch, (tuple, list)) else batch)
    left = [i for i in range(length) if i not in rows] if rows else []
    return select(batch, left) if left else None


class Without:
    """A sampler without the blamed samples, for DataLoader(data, sampler=Without(sampler)); a Trainer returns one from
    _get_train_sampler. Samples behind a left-out one move up by one place."""

    def __init__(self, sampler, out=SAMPLES):
        self.sampler, self.out = sampler, set(out)

    def __iter__(self):
        return (i for i in self.sampler if i not in self.out)

    def __len__(self):
        return len(self.sampler) - len(self.out)


# Megatron-LM: {megatron}
# Again, with these steps only:
# {command}
'''


def listed(culprits: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """``{"schema", "steps", "ranges", "samples", "by_step", "flags"}``: steps as the log counts them, ranges with both ends in them;
    samples are ids, none where the adapter names none (`rows` are places in the batch)."""
    steps = sorted({int(c["step"]) for c in culprits})
    ranges: list[list[int]] = []
    for s in steps:
        if ranges and s == ranges[-1][1] + 1:
            ranges[-1][1] = s
        else:
            ranges.append([s, s])
    samples = list(dict.fromkeys(i for c in culprits if c["named"] for i in c["samples"]))
    by_step = {str(c["step"]): {"samples": c["samples"], "rows": c["rows"]} for c in culprits}
    return {
        "schema": 1,
        "steps": steps,
        "ranges": ranges,
        "samples": samples,
        "by_step": by_step,
        "flags": {"Megatron-LM": megatron(steps)},
    }


def megatron(steps: Sequence[int]) -> str:
    """Its argument for iterations without a step (megatron/training/arguments.py)."""
    return f"--iterations-to-skip {' '.join(map(str, steps))}"


def script(culprits: Sequence[dict[str, Any]], command: str) -> str:
    """The text of a module; empty where nobody is blamed."""
    if not culprits:
        return ""
    found = listed(culprits)
    skip = {c["step"]: c["rows"] for c in culprits}
    return SCRIPT.format(skip=repr(skip), samples=repr(found["samples"]), megatron=megatron(found["steps"]), command=command)
