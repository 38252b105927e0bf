"""Numbered lines beside the state that the same training saved: transformers' ``{'loss': ..., 'epoch': 2.1}`` and its ``trainer_state.json``.

The lines say their epoch and no step, the state says both of each of its entries. Each line stands at the step that the state has for its
epoch; all lines with a loss must have one, in a state of the same training: its last epoch is the last one of the lines; what other lines
say stands at the step above them. Where a run stopped before its next save the lines go on beyond the state: then what both say must be
equal, no epoch go back, and the steps follow from the length of the state's epochs.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from parsers import arrow
from parsers.tables import LINES_COUNTED, Source

NOTE = "at the step that {state} has for the epoch"
STATE = "trainer_state"
_NEARLY_ALL = 0.95  # of the losses, as in parsers.runs.equal_values: a last digit may be rounded otherwise
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
    losses = np.isin(name, [i for i, n in enumerate(names) if n.startswith("loss.")])
    if len(of_line) < _LEAST or not sure or not set(at[mine & losses].tolist()) <= of_line.keys():
        return metrics, {}
    last = max(sure, key=float)
    beyond = {x for x in of_line.values() if float(x) > float(last)}
    onward = [float(of_line[place]) for place in sorted(of_line)]
    if beyond and onward == sorted(onward) and _said_again(metrics, mine, np.isin(source, [i for i, p in enumerate(paths) if p in states])):
        sure |= {x: round(float(x) * sure[last] / float(last)) for x in beyond}
    if not set(of_line.values()) <= sure.keys() or last not in of_line.values():
        return metrics, {}
    lines = np.array(sorted(of_line))
    above = lines[np.maximum(np.searchsorted(lines, at[mine], side="right") - 1, 0)]
    step[mine] = [sure[of_line[place]] for place in above.tolist()]
    column = arrow.numbers(step.astype(np.int64), present)
    place = metrics.schema.get_field_index("step")
    return metrics.set_column(place, metrics.schema.field("step"), column), {counted[0]: NOTE.format(state=min(states, key=len))}


def _said_again(metrics: pa.Table, lines: NDArray[np.bool_], state: NDArray[np.bool_]) -> bool:
    """Whether nearly every loss of the state stands in the lines, as far as these are written out."""
    names = metrics["name"].to_pylist()
    losses = np.array([name is not None and name.startswith("loss.") for name in names])
    value = arrow.values(metrics["value"])
    said, saved = ({_printed(x) for x in value[some & losses].tolist()} for some in (lines, state))
    return len(saved) >= _LEAST and len(saved & said) >= _NEARLY_ALL * len(saved)


def _printed(epoch: float) -> str:
    return f"{epoch:.{_DIGITS}g}"
