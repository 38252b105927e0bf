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
from functools import lru_cache

import numpy as np

from forensics.batches import accelerate_loaders
from forensics.batches.accelerate_loaders import USUAL, Sharing
from forensics.batches.loader import Turns


@lru_cache(maxsize=8)
def epoch(n: int, size: int, world: int = 1, *, seed: int | None = 42, epoch: int = 0, rules: Sharing = USUAL) -> Turns:
    """[batch][rank] -> samples of one epoch; `size` is ``per_device_train_batch_size``, `seed` None for the sequential order."""
    order = np.arange(n) if seed is None else accelerate_loaders.seedable_order(n, seed, epoch)
    share = accelerate_loaders.dispatched if rules.dispatch_batches else accelerate_loaders.sharded
    return share(order, size, world, rules)


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
