"""OLMo: one order for the whole epoch, shuffled by numpy, cut into global batches.

Facts, from olmo/data/iterable_dataset.py, olmo/data/__init__.py and scripts/inspect_train_data.py:

- ``np.random.Generator(np.random.PCG64(seed + epoch)).shuffle(arange(n, dtype=uint32))``, where the seed is ``data.seed``, else ``seed``
  (6198 unless set); padded with the first samples, or its tail dropped, until the world size divides it.
- Step s (from 1) takes entries (s - 1) * global batch on; rank r takes every world_size-th of them. A resumed run goes on where the
  checkpoint had come to.
- ``global_indices.npy`` holds that order as bare uint32 (no npy header).
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from forensics.batches.torch_loaders import padded
from forensics.batches.torch_random import Ids


@lru_cache(maxsize=4)
def global_indices(n: int, seed: int, epoch: int = 0, world: int = 1, *, drop_last: bool = False) -> Ids:
    """The order of an epoch over all ranks."""
    indices = np.arange(n, dtype=np.uint32)
    np.random.Generator(np.random.PCG64(seed + epoch)).shuffle(indices)
    return padded(indices.astype(np.int64), world, drop_last)


def step(order: Ids, size: int, done: int) -> Ids:
    """The samples of the step after `done` steps of this epoch; `size` is the global batch."""
    return order[done * size : (done + 1) * size]
