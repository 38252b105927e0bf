"""Steps for a log that names none: the loss that a loop prints again and again is counted, else its score; what comes less often stands at the last count."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

import numpy as np
import pyarrow as pa

from parsers import arrow
from parsers.name_rules import words
from parsers.names import meaning
from parsers.tables import Gap, Note, table_of

LEAST = 8  # bound: fewer values make no curve; a closing table may name a loss or two
_AGAIN = 3  # bound: what comes once or twice is a summary
_SCORES = ("acc.", "ppl.", "bpb.", "score.", "rl.reward")
NOTE = "no line names a step: the values of each metric are counted"


def counted(items: Iterable[pa.RecordBatch | Gap | Note]) -> Iterator[pa.RecordBatch | Gap | Note]:
    """What a parser gives. Metrics wait until one has a step; where none ever has and a loss (else a score) is logged often, the number of its value
    (from 1) becomes the step, and that of its last value the step of what is logged less often."""
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
    losses, scores = {t for t in often if "loss" in words(t).split()}, {t for t in often if meaning(t).name.startswith(_SCORES)}
    counts = _most(losses, often) or _most(scores, often)
    if not counts:
        yield from held
        return
    seen: Counter[str] = Counter()
    rare = {tag for tag, n in often.items() if n >= _AGAIN and tag not in counts}
    yield from (_numbered(b, seen, counts, rare) for b in held)
    yield Note(NOTE)


def _most(tags: set[str], often: Counter[str]) -> set[str]:
    """All tags that come as often as the one of ``tags`` that comes most often; none where that is too seldom."""
    most = max((often[t] for t in tags), default=0)
    return {t for t, n in often.items() if n == most} if most >= LEAST else set()


def _numbered(batch: pa.RecordBatch, seen: Counter[str], counts: set[str], rare: set[str]) -> pa.RecordBatch:
    """The batch with steps for the tags that are counted and for those that are logged between them."""
    of = batch["tag"].to_pylist()
    step = np.zeros(len(of), np.int64)
    for i, tag in enumerate(of):
        seen[tag] += 1
        step[i] = seen[tag] if tag in counts else max(seen[t] for t in counts)
    return arrow.with_column(batch, "step", arrow.numbers(step, np.array([tag in counts or tag in rare for tag in of], np.bool_)))
