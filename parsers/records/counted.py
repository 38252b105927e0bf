"""Steps for a log that names none: the loss that a loop prints again and again is counted, and what stands on its lines with it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

import numpy as np
import pyarrow as pa

from parsers import arrow
from parsers.name_rules import words
from parsers.tables import Gap, Note, table_of

LEAST = 8  # bound: fewer values make no curve; a closing table may name a loss or two
NOTE = "no line names a step: the values of each metric are counted"


def counted(items: Iterable[pa.RecordBatch | Gap | Note]) -> Iterator[pa.RecordBatch | Gap | Note]:
    """What a parser gives. Metrics wait until one has a step; where none ever has and a loss is logged often, each value's number (from 1, by
    tag) becomes its step."""
    held: list[pa.RecordBatch] = []
    stepped = False
    for item in items:
        if stepped or isinstance(item, (Gap, Note)) or table_of(item) != "metrics":
            yield item
            continue
        held.append(item)
        if stepped := "step" in item.schema.names and item["step"].null_count < item.num_rows:
            yield from held
            held = []
    often = Counter(tag for b in held for tag in b["tag"].to_pylist())
    loss = max((n for tag, n in often.items() if "loss" in words(tag).split()), default=0)
    if loss < LEAST:
        yield from held
        return
    seen: Counter[str] = Counter()
    yield from (_numbered(b, seen, {tag for tag, n in often.items() if n == loss}) for b in held)
    yield Note(NOTE)


def _numbered(batch: pa.RecordBatch, seen: Counter[str], tags: set[str]) -> pa.RecordBatch:
    """The batch with the numbers of these tags as steps."""
    of = batch["tag"].to_pylist()
    step = np.zeros(len(of), np.int64)
    for i, tag in enumerate(of):
        seen[tag] += 1
        step[i] = seen[tag]
    return arrow.with_column(batch, "step", arrow.numbers(step, np.array([tag in tags for tag in of], np.bool_)))
