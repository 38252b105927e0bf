"""Loaders that people write by hand: in file order, or one permutation an epoch from a seed.

Orders: "sequential"; "torch" (``torch.randperm`` under ``manual_seed``); "numpy" (``np.random.seed`` or ``RandomState``); "numpy
generator" (``np.random.default_rng``). The seed of an epoch is the seed itself, seed + epoch, or one generator goes on through
all epochs ("continued"). Offsets drawn at random for every batch (nanoGPT's ``get_batch``) come from a global generator that the
model's first weights were drawn from, too: they cannot be rebuilt from a config.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from forensics.batches import torch_random
from forensics.batches.torch_random import Ids

KINDS = ("torch", "numpy", "numpy generator")
SEEDS = ("seed + epoch", "seed", "continued")


@lru_cache(maxsize=64)
def order(n: int, kind: str, seed: int = 0, epoch: int = 0, seeded: str = "seed + epoch") -> Ids:
    """The order of the samples in an epoch."""
    if kind == "sequential":
        return np.arange(n, dtype=np.int64)
    if n > torch_random.MOST:
        raise torch_random.TooLarge(f"the order of {n} samples is too long to be worked out here")
    first = seed + epoch if seeded == "seed + epoch" else seed
    again = epoch if seeded == "continued" else 0  # orders drawn before this one
    if kind == "torch":
        bits = torch_random.stream(first)
        bits.random_raw(again * max(n - 1, 0))
        return torch_random.randperm(n, bits)
    random = np.random.RandomState(first % 2**32) if kind == "numpy" else np.random.default_rng(abs(first))
    for _ in range(again):
        random.permutation(n)
    return np.asarray(random.permutation(n), np.int64)


def batch(samples: Ids, size: int, within: int) -> Ids:
    """Batch number `within` of an epoch."""
    return samples[within * size : (within + 1) * size]
