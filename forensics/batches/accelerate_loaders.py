"""accelerate: how ``prepare()`` shares a DataLoader's batches out to the processes.

Facts, from accelerate/data_loader.py (0.24 to 1.14):

- ``SeedableRandomSampler`` permutes with a generator that it seeds anew at each epoch with ``data_seed + epoch``, where
  ``data_seed`` is, unless given, the seed that ``torch.manual_seed`` (``set_seed``) was last called with. It takes the place of any
  RandomSampler where ``use_seedable_sampler`` is on.
- ``BatchSamplerShard``: batch i goes to process i mod W. With ``split_batches`` each batch is cut into W pieces instead. At the end
  of an epoch it goes round to the first samples until every process has a full batch (``even_batches``), or stops
  (``drop_last``), or leaves some processes with less.
- ``DataLoaderDispatcher`` reads on process 0 and cuts: W batches laid end to end (or one, with ``split_batches``) into W
  equal pieces; a last batch that W does not divide gets the first samples of the first one.
- ``skip_first_batches`` leaves batches out at the start of one epoch; the order of the epoch stays as it was.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from forensics.batches.torch_loaders import batches
from forensics.batches.torch_random import Ids, seeded_randperm


def seedable_order(n: int, seed: int, epoch: int) -> Ids:
    """The order of an epoch of ``SeedableRandomSampler``."""
    return seeded_randperm(n, seed + epoch)


@dataclass(frozen=True)
class Sharing:
    """Options of ``prepare()`` and of the DataLoader."""

    drop_last: bool = False
    split_batches: bool = False
    even_batches: bool = True
    dispatch_batches: bool = False


USUAL = Sharing()


def sharded(samples: Ids, size: int, world: int, rules: Sharing = USUAL) -> list[list[Ids]]:
    """[batch][rank] -> samples, for one epoch of ``BatchSamplerShard``; a rank without a share has an empty array.

    `size` is the DataLoader's batch size: of one process, of all together with `split_batches`.
    """
    if world == 1:
        return [[b] for b in batches(samples, size, rules.drop_last)]
    whole = size if rules.split_batches else size * world  # samples of all processes a turn
    share = whole // world
    end = len(samples) // whole * whole
    rest = samples[end:]
    if rules.drop_last or not len(rest):
        rest = rest[:0]
    elif rules.even_batches:  # the first turn again, doubled until it suffices
        first = samples[: min(len(samples), whole)]
        rest = np.concatenate([rest, np.resize(first, whole - len(rest))])
    turns = [samples[i : i + whole] for i in range(0, end, whole)] + ([rest] if len(rest) else [])
    return [[t[r * share : (r + 1) * share] for r in range(world)] for t in turns]


def dispatched(samples: Ids, size: int, world: int, rules: Sharing = USUAL) -> list[list[Ids]]:
    """[batch][rank] -> samples, for one epoch of ``DataLoaderDispatcher``."""
    read = batches(samples, size, rules.drop_last)
    together = 1 if rules.split_batches else world
    turns = [np.concatenate(read[i : i + together]) for i in range(0, len(read), together)]
    if rules.drop_last and len(read) % together:
        turns = turns[:-1]
    shares = [len(t) // world for t in turns]
    if turns and not rules.drop_last and len(turns[-1]) % world:
        shares[-1] += 1
        turns[-1] = np.concatenate([turns[-1], turns[0][:world]])
    return [[t[r * share : (r + 1) * share] for r in range(world)] for t, share in zip(turns, shares, strict=True)]
