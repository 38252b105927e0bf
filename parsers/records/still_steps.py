"""Steps that never move: ``add_scalar`` without its step, a counter that nobody raised, updates that were all skipped. Rows are counted in their place."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
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
    before: Counter[tuple[str, int]] = Counter()
    found = []
    for b in batches:
        code, tags = arrow.codes(b["tag"])
        rank, there = arrow.filled(b["rank"], -1).astype(np.int64), arrow.present(b["step"])
        place = np.zeros(len(code), np.int64)
        for i, r in {*zip(code.tolist(), rank.tolist(), strict=True)}:
            rows = np.flatnonzero((code == i) & (rank == r) & there)
            place[rows] = before[tags[i], r] + np.arange(len(rows))
            before[tags[i], r] += len(rows)
        found.append(arrow.with_column(b, "step", pa.array(place, mask=~there)))
    return found if any(n >= _LEAST and not _HELD_OUT.search(tag) for (tag, _), n in before.items()) else None
