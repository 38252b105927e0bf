"""Steps that never move: ``add_scalar`` without its step, a counter that nobody raised, updates that were all skipped. Rows are counted in their place."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from parsers import arrow
from parsers.lazy_regex import lazy_re
from parsers.records import vocabulary

_LEAST = 10  # rows of one metric of training: a summary or a table of classes has fewer, and evaluations may be many at one step
_HELD_OUT = lazy_re(rf"(?i)(?:^|[\W_])(?:{'|'.join(sorted(vocabulary.EVALUATION))})(?:[\W_]|$)")
NOTE = "the step never moves, so that rows are counted instead"


def counted(batches: Sequence[pa.RecordBatch]) -> list[pa.RecordBatch] | None:
    """The metric rows of a file with each metric's rows (of each rank) counted from 0, where all have one step; else None."""
    named = [arrow.values(b["step"])[arrow.present(b["step"])] for b in batches]
    if len({int(x) for s in named if len(s) for x in (s.min(), s.max())}) != 1:
        return None
    groups: dict[tuple[str, int], int] = {}  # tag and rank -> number
    of = [np.where(arrow.present(b["step"]), _numbered(b, groups), -1) for b in batches]
    together = np.concatenate(of)
    size = np.bincount(together[together >= 0], minlength=len(groups))
    if not any(size[i] >= _LEAST and not _HELD_OUT.search(tag) for (tag, _), i in groups.items()):
        return None
    place = np.split(arrow.nth_of_group(together), np.cumsum([len(x) for x in of])[:-1])
    return [arrow.with_column(b, "step", arrow.numbers(n, x >= 0)) for b, n, x in zip(batches, place, of, strict=True)]


def _numbered(batch: pa.RecordBatch, groups: dict[tuple[str, int], int]) -> npt.NDArray[np.int64]:
    """Of each row the number of its tag and rank, new ones at the end of ``groups``."""
    code, tags = arrow.codes(batch["tag"])
    ranks, rank = np.unique(arrow.filled(batch["rank"], -1).astype(np.int64), return_inverse=True)
    pairs, pair = np.unique(code.astype(np.int64) * len(ranks) + rank, return_inverse=True)
    known = [(tags[p // len(ranks)], int(ranks[p % len(ranks)])) for p in pairs.tolist()]
    return np.array([groups.setdefault(k, len(groups)) for k in known], np.int64)[pair]
