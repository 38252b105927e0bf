"""DeepSpeed: its axis of samples, and the loader that ``initialize(training_data=...)`` makes.

Facts, from deepspeed/runtime/{engine,dataloader}.py:

- ``Train/Samples/...`` is logged over ``global_samples``, the samples done with the step included: a label is what had been
  consumed after the step, and the distance of two labels is the global batch (times the logging interval).
- The loader is a DataLoader over torch's ``DistributedSampler`` with its seed 0. Nobody calls ``set_epoch`` where it is wrapped in
  a ``RepeatingLoader``: all epochs have one order.
"""

from __future__ import annotations

import math

import numpy as np

from forensics.batches.torch_loaders import distributed
from forensics.batches.torch_random import Ids


def taken(labels: list[int], label: int, size: int | None = None) -> tuple[int, int] | None:
    """[first, last) place in the order of samples of the step that is logged at `label`.

    `labels` are the axis as logged; `size` is the global batch, by default the smallest distance of two labels.
    """
    distances = [b - a for a, b in zip(labels, labels[1:], strict=False) if b > a]
    size = size or min(distances, default=None)
    if size is None or label < size or label % size:
        return None
    return label - size, label


def step(n: int, micro: int, world: int, accumulation: int, done: int, *, epoch_set: bool = False) -> list[Ids]:
    """The samples of each rank in the optimizer step after `done` steps, with the last short batches kept."""
    per_epoch = math.ceil(math.ceil(n / world) / micro)  # batches of a rank in an epoch
    parts: list[list[Ids]] = [[] for _ in range(world)]
    for batch in range(done * accumulation, (done + 1) * accumulation):
        epoch, within = divmod(batch, per_epoch)
        for rank in range(world):
            mine = distributed(n, world, rank, epoch=epoch if epoch_set else 0)
            parts[rank].append(mine[within * micro : (within + 1) * micro])
    return [np.concatenate(p) for p in parts]
