"""Numbered lines beside the state that the same training saved: transformers' ``{'loss': ..., 'epoch': 2.1}`` and its ``trainer_state.json``.

The lines say their epoch and no step, the state says both of each of its entries. Each line stands at the step that the state has for its epoch;
all lines of measurements must have one, in a state of the same training: its last epoch is the last one of the lines.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from parsers import arrow
from parsers.tables import LINES_COUNTED, Source

NOTE = "at the step that {state} has for the epoch"
STATE = "trainer_state"
_LEAST = 3  # lines: fewer tell no training from another
_DIGITS = 4  # significant ones, with which the Trainer prints what it saves in full


def placed(metrics: pa.Table, sources: Sequence[Source]) -> tuple[pa.Table, dict[str, str]]:
    """The rows of a file whose lines were numbered at the steps of their epochs, and what to note of the file."""
    counted = [s.path for s in sources if LINES_COUNTED in s.note]
    states = {s.path for s in sources if s.format == STATE}
    if len(counted) != 1 or not states or not metrics.num_rows:
        return metrics, {}
    source, paths = arrow.codes(metrics["source"])
    name, names = arrow.codes(metrics["name"])
    present = arrow.present(metrics["step"])
    if counted[0] not in paths or "epoch" not in names:
        return metrics, {}
    mine = (source == paths.index(counted[0])) & present
    epochs = (name == names.index("epoch")) & present
    step, value, at = arrow.filled(metrics["step"], -1), arrow.values(metrics["value"]), arrow.filled(metrics["at"], -1)
    of_state = epochs & np.isin(source, [i for i, p in enumerate(paths) if p in states])
    told: dict[str, set[int]] = {}
    for x, n in zip(value[of_state].tolist(), step[of_state].tolist(), strict=True):
        told.setdefault(_printed(x), set()).add(n)
    of_line = {place: _printed(x) for place, x in zip(at[mine & epochs].tolist(), value[mine & epochs].tolist(), strict=True)}
    sure = {x: min(n) for x, n in told.items() if len(n) == 1}
    fits = len(of_line) >= _LEAST and set(of_line.values()) <= sure.keys() and set(at[mine].tolist()) <= of_line.keys()
    if not fits or max(map(float, of_line.values())) != max(map(float, sure)):
        return metrics, {}
    step[mine] = [sure[of_line[place]] for place in at[mine].tolist()]
    column = arrow.numbers(step.astype(np.int64), present)
    place = metrics.schema.get_field_index("step")
    return metrics.set_column(place, metrics.schema.field("step"), column), {counted[0]: NOTE.format(state=min(states, key=len))}


def _printed(epoch: float) -> str:
    return f"{epoch:.{_DIGITS}g}"
