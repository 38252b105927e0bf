"""torch's random numbers on the CPU, bit for bit, without torch: MT19937 as numpy has it, and torch's ways to draw from it.

``torch.Generator().manual_seed(s)`` seeds MT19937 by Matsumoto's ``init_genrand(s mod 2**32)``, which is numpy's legacy seeding of
whole numbers. A draw of 64 bits is two of 32, the high half first. Sources: ATen ``MT19937RNGEngine.h``,
``CPUGeneratorImpl.cpp`` and ``TensorFactories.cpp`` (``randperm_cpu``). That one has stayed as it was in torch 0.4 for fewer
than (2**32 - 1) / 20 entries, far more than MOST; from there on, newer versions draw 64 bits an entry and swap the other way round.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

Ids = NDArray[np.int64]

MOST = 20_000_000  # entries of a permutation that are worked out: some seconds and a gigabyte
Stream = np.random.MT19937


class TooLarge(ValueError):
    """An order that is too long to be worked out; the text says so in a sentence."""


def stream(seed: int) -> Stream:
    """A generator as ``manual_seed(seed)`` leaves it; torch takes negative seeds as 2**64 - seed."""
    bits = Stream()
    bits._legacy_seeding(int(seed) % 2**32)
    return bits


def draw64(bits: Stream) -> int:
    """``torch.empty((), dtype=torch.int64).random_().item()``: DataLoader's base seed, RandomSampler's seed."""
    high, low = (int(x) for x in bits.random_raw(2))
    return ((high << 32) | low) % 2**63


def randperm(n: int, bits: Stream) -> Ids:
    """``torch.randperm(n)``; takes n - 1 draws from the stream. Raises TooLarge beyond MOST entries."""
    if n > MOST:
        raise TooLarge(f"the order of {n} samples is too long to be worked out here")
    turns = np.arange(max(n - 1, 0))
    targets = (bits.random_raw(len(turns)) % (n - turns).astype(np.uint64)).astype(np.int64) + turns
    order = list(range(n))
    for i, target in enumerate(targets.tolist()):  # quicker on a list than anything numpy has
        order[i], order[target] = order[target], order[i]
    return np.array(order, np.int64)


@lru_cache(maxsize=64)
def seeded_randperm(n: int, seed: int) -> Ids:
    """The same of ``torch.randperm(n, generator=torch.Generator().manual_seed(seed))``, kept read-only."""
    order = randperm(n, stream(seed))
    order.flags.writeable = False
    return order
