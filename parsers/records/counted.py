"""Steps for a log that names none: the loss that a loop prints again and again is counted, and what stands on its lines with it."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from parsers import arrow
from parsers.name_rules import words

LEAST = 8  # bound: fewer values make no curve; a closing table may name a loss or two
NOTE = "no line names a step: the values of each metric are counted"


def counted(batches: list[pa.RecordBatch]) -> list[pa.RecordBatch] | None:
    """The metrics of a file with each value's number as its step (from 1, by tag); None where a step is named, or no loss is logged often."""
    if any(b["step"].null_count < b.num_rows for b in batches if "step" in b.schema.names):
        return None
    of_batch = [b["tag"].to_pylist() for b in batches]
    often: dict[str, int] = {}
    for tag in (t for tags in of_batch for t in tags):
        often[tag] = often.get(tag, 0) + 1
    loss = max((n for tag, n in often.items() if "loss" in words(tag).split()), default=0)
    if loss < LEAST:
        return None
    seen = dict.fromkeys(often, 0)
    found = []
    for b, tags in zip(batches, of_batch, strict=True):
        step = np.zeros(len(tags), np.int64)
        for i, tag in enumerate(tags):
            seen[tag] = step[i] = seen[tag] + 1
        there = np.array([often[tag] == loss for tag in tags], np.bool_)
        found.append(arrow.with_column(b, "step", arrow.numbers(step, there)) if "step" in b.schema.names else b)
    return found
