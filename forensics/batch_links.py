"""From steps to batches, under one name for the rest of the house; the work is done in ``forensics/batches``.

``batch`` is what a file of the run lists; ``answer`` and ``forensics.batches.links.batch`` also work it out from the loader.
"""

from forensics.batches.culprits import culprits
from forensics.batches.links import answer
from forensics.batches.recorded import batch, shard_ends, shares

__all__ = ["answer", "batch", "culprits", "shard_ends", "shares"]
