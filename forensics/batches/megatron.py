"""Megatron-LM (and GPT-NeoX, Megatron-DeepSpeed, NeMo): from a step to sample numbers, and from those to documents.

Facts, from megatron/core/datasets/gpt_dataset.py, data_samplers.py and num_microbatches_calculator.py:

- The sampler "single" takes samples in order: a step takes as many as the global batch, from ``consumed_samples`` on. Sample number i is
  entry ``shuffle_index[i]`` of the sample index, which says where in the document index it begins and ends.
- The sampler "cyclic" permutes with torch, seeded by the epoch number alone; with data sharding each rank permutes a bucket of
  its own.
- ``rampup_batch_size start increment samples``: the batch grows by increments, at even distances of consumed samples. Where
  a batch is no multiple of what a micro-step takes, newer versions round it down (``decrease_batch_size_if_needed``).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from forensics.batches.torch_random import Ids, seeded_randperm


def batch_size(consumed: int, size: int, rampup: tuple[int, int, int] | None) -> int:
    """The global batch size after `consumed` samples; `rampup`: (start, increment, samples over which it grows)."""
    if rampup is None:
        return size
    start, increment, over = rampup
    rises = (size - start) // increment
    if consumed > over or rises <= 0:
        return size
    return min(start + int(consumed / (over / rises)) * increment, size)


def consumed(steps: int, size: int, rampup: tuple[int, int, int] | None = None) -> int:
    """How many samples the first `steps` steps took."""
    total = 0
    for done in range(steps):
        now = batch_size(total, size, rampup)
        if now == size and (rampup is None or total > rampup[2]):
            return total + (steps - done) * size
        total += now
    return total


def cyclic(total: int, taken: int, count: int, micro: int, world: int, *, sharding: bool = True) -> list[Ids]:
    """The samples of each rank in a batch of `count` after `taken` samples, by ``MegatronPretrainingRandomSampler``."""
    turn = micro * world
    active = total - total % turn
    parts: list[list[Ids]] = [[] for _ in range(world)]
    for at in range(taken, taken + count, turn):
        epoch, offset = divmod(at, active)
        for rank in range(world):
            if sharding:
                bucket = total // turn * micro
                order = rank * bucket + seeded_randperm(bucket, epoch)
                parts[rank].append(order[offset // world :][:micro])
            else:
                order = seeded_randperm(total // micro * micro, epoch)
                parts[rank].append(order[offset:][rank::world][:micro])
    return [np.concatenate(p) for p in parts]


def documents_of(sample: int, documents: NDArray[np.int32], index: Ids, shuffle: Ids) -> list[int]:
    """The documents that the sample of a number is cut from."""
    entry = int(shuffle[sample])
    (first, _), (last, _) = index[entry], index[entry + 1]
    return [int(d) for d in documents[int(first) : int(last) + 1]]
