"""Hugging Face Trainer: the samples of an optimizer step.

Facts, from transformers/trainer.py and trainer_pt_utils.py (4.38 to 5.23):

- The train sampler is a RandomSampler, which accelerate replaces by its seedable one: epoch e is permuted by seed + e, where the seed is
  ``data_seed``, else ``seed`` (``set_seed(args.seed)`` is what torch was last seeded with). ``train_sampling_strategy`` may say
  "sequential", or "group_by_length" (``group_by_length`` before 5.0).
- Epochs count batches of one process; an optimizer step takes ``gradient_accumulation_steps`` of them, the last one of an epoch
  what is left.
- A resumed run skips the batches it had done in that epoch; with ``ignore_data_skip`` it begins the epoch again.
- Grouping by length begins with a permutation from the global generator: no config tells it, and it is not rebuilt.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from forensics.batches import accelerate_loaders
from forensics.batches.torch_random import Ids


@lru_cache(maxsize=8)
def epoch(
    n: int,
    size: int,
    world: int = 1,
    *,
    seed: int | None = 42,
    epoch: int = 0,
    drop_last: bool = False,
    split_batches: bool = False,
    even_batches: bool = True,
    dispatch_batches: bool = False,
) -> tuple[tuple[Ids, ...], ...]:
    """[batch][rank] -> samples of one epoch; `size` is ``per_device_train_batch_size``, `seed` None for the sequential order."""
    order = np.arange(n) if seed is None else accelerate_loaders.seedable_order(n, seed, epoch)
    if dispatch_batches:
        turns = accelerate_loaders.dispatched(order, size, world, drop_last=drop_last, split_batches=split_batches)
    else:
        turns = accelerate_loaders.sharded(order, size, world, drop_last=drop_last, split_batches=split_batches, even_batches=even_batches)
    return tuple(tuple(t) for t in turns)


def steps_per_epoch(
    n: int, size: int, world: int = 1, *, accumulation: int = 1, drop_last: bool = False, split_batches: bool = False
) -> int:
    """Optimizer steps in an epoch, at least 1."""
    whole = size if split_batches else size * world
    if drop_last:
        batches = n // whole if split_batches else n // size // world
    else:
        batches = math.ceil(n / whole)
    return max(math.ceil(batches / accumulation), 1)


def step(turns: Sequence[Sequence[Ids]], accumulation: int, within: int) -> list[Ids] | None:
    """The samples of each rank in optimizer step `within` of an epoch (from 0), None beyond its end."""
    picked = turns[within * accumulation : (within + 1) * accumulation]
    return [np.concatenate([t[r] for t in picked]) for r in range(len(picked[0]))] if picked else None
