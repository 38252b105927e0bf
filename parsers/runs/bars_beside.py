"""Numbered lines beside a progress bar that went to another file: transformers' ``{'loss': ...}`` in a job's stdout, its bar in the stderr.

The lines come every so many steps, and the bar says how far the training is: of 26 lines beside a bar at 260 each stands for 10 steps, and
of 30 beside one at 600 of a training that went on from step 300, too. One number of steps a line must fit, or one that people set
(10, 20, 50, 100, ...), and only one bar may stand beside them.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from parsers import arrow
from parsers.records.vocabulary import BAR_AT
from parsers.tables import LINES_COUNTED, Source

NOTE = "every {every} steps a line, by the progress bar in {bar}"
_LEAST = 3  # lines: fewer fit too many numbers of steps
_ROUND = {d * 10**k for d in (1, 2, 5) for k in range(1, 6)}


def placed(metrics: pa.Table, events: pa.Table, sources: Sequence[Source]) -> tuple[pa.Table, dict[str, str]]:
    """The rows of files whose lines were numbered at their steps, and what to note of these files."""
    counted = [s.path for s in sources if LINES_COUNTED in s.note]
    bars = _bars(events) if len(counted) == 1 and metrics.num_rows else {}
    if len(bars) != 1:
        return metrics, {}
    ((bar, at),) = bars.items()
    source, paths = arrow.codes(metrics["source"])
    mine = (source == paths.index(counted[0])) & arrow.present(metrics["step"]) if counted[0] in paths else np.zeros(0, np.bool_)
    step = arrow.filled(metrics["step"], 0)
    lines = int(step[mine].max()) if mine.any() else 0
    since = _resumed(events, counted[0])
    fit = range((at - since) // (lines + 1) + 1, (at - since) // max(lines, 1) + 1)
    every = next(iter(fit if len(fit) == 1 else [n for n in fit if n in _ROUND]), 1)
    if lines < _LEAST or every < 2 or (np.diff(step[mine]) < 0).any():
        return metrics, {}
    step = np.where(mine, since + step * every, step)
    column = arrow.numbers(step.astype(np.int64), arrow.present(metrics["step"]))
    return metrics.set_column(metrics.schema.get_field_index("step"), metrics.schema.field("step"), column), {
        counted[0]: NOTE.format(every=every, bar=bar)
    }


def _resumed(events: pa.Table, log: str) -> int:
    """The step that training went on from, as a line of the log says; 0 where none does."""
    said = zip(*(events[c].to_pylist() for c in ("kind", "source", "step")), strict=True)
    return max((step for kind, source, step in said if kind == "resume" and source == log and step), default=0)


def _bars(events: pa.Table) -> dict[str, int]:
    """File -> where the bar in it stood at last."""
    said = zip(*(events[c].to_pylist() for c in ("kind", "text", "source")), strict=True)
    return {source: int(text.split()[-1]) for kind, text, source in said if kind == "plan" and text.startswith(f"{BAR_AT}: ")}
