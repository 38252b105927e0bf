"""torch.utils.data: which samples its samplers put into which batch.

Facts, from torch/utils/data/{sampler,distributed,dataloader}.py (1.6 to 2.13):

- ``DistributedSampler`` permutes with a generator of its own, seeded by ``seed + epoch``; ``seed`` is 0 unless given, and ``epoch``
  stays 0 where nobody calls ``set_epoch``: then every epoch has the same order. It pads with the first samples of the
  order, or drops the tail, and gives rank r every world_size-th sample from r on.
- ``RandomSampler`` without a generator draws 64 bits from the global one at the start of an epoch and permutes with a fresh
  generator seeded by them. ``DataLoader`` draws its base seed from the global generator just before that. What else a program
  draws there (initial weights, dropout) comes in between: with nothing known of it, the order of the second epoch is lost.
- With a generator given to DataLoader (or to the sampler), it permutes with that one, and once more at the end of an epoch for
  the no samples that remain; DataLoader takes its base seed from its generator, too.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from forensics.batches import torch_random
from forensics.batches.torch_random import Ids


def distributed(n: int, world: int, rank: int, *, seed: int = 0, epoch: int = 0, drop_last: bool = False) -> Ids:
    """The samples of one rank in the order in which ``DistributedSampler`` yields them in an epoch."""
    return padded(torch_random.seeded_randperm(n, seed + epoch), world, drop_last)[rank::world]


def padded(samples: Ids, world: int, drop_last: bool) -> Ids:
    """As many samples as `world` divides: the first ones again at the end, or the tail dropped."""
    n = len(samples)
    if drop_last and n % world:
        return samples[: math.ceil((n - world) / world) * world]
    return np.resize(samples, math.ceil(n / world) * world)


def batches(samples: Ids, size: int, drop_last: bool = False) -> list[Ids]:
    """``BatchSampler``: consecutive batches, the short last one kept or dropped."""
    end = len(samples) // size * size if drop_last else len(samples)
    return [samples[i : i + size] for i in range(0, end, size)]


def global_epochs(n: int, seed: int) -> Iterator[Ids]:
    """The orders of ``DataLoader(shuffle=True)`` after ``manual_seed(seed)``, where nothing else draws from the global generator."""
    bits = torch_random.stream(seed)
    while True:
        torch_random.draw64(bits)  # DataLoader's base seed
        yield torch_random.seeded_randperm(n, torch_random.draw64(bits))


def generator_epochs(n: int, seed: int, *, loader_has_it: bool = True) -> Iterator[Ids]:
    """The orders of a generator given to DataLoader (`loader_has_it`) or to its RandomSampler only."""
    bits = torch_random.stream(seed)
    while True:
        if loader_has_it:
            torch_random.draw64(bits)
        yield torch_random.randperm(n, bits)
        bits.random_raw(max(n - 1, 0))  # torch permutes once more at the end of each epoch, for nothing
