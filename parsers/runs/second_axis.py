"""A log whose lines count in two ways (updates of a policy, and steps of its environment) beside a file that goes by the second: both by the second."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from parsers import arrow
from parsers.console_format.plan_lines import TOTAL
from parsers.runs.epoch_files import Places, alike

NOTE = "steps by the second count of its lines, as {file} has them"
_COUNTS = ("step", "samples.seen")
_COUNTERS = (*_COUNTS, "tokens.seen", "epoch")  # go up beside any axis


def placed(metrics: pa.Table) -> tuple[pa.Table, Places, dict[str, str]]:
    """The rows of such logs where the other file's values say so; the step of each count, and what to note of the files."""
    name, known = arrow.codes(metrics["name"])
    source, paths = arrow.codes(metrics["source"])
    counts = [known.index(c) for c in _COUNTS if c in known]
    if not counts or len(paths) < 2:  # the rows of long runs are not touched
        return metrics, {}, {}
    there, step, value = arrow.present(metrics["step"]), arrow.filled(metrics["step"], -1), arrow.values(metrics["value"])
    measured = np.where(np.isin(name, [known.index(c) for c in _COUNTERS if c in known]), -1, name)
    spans = [slice(*span) for span in arrow.stretches(source, len(paths))]  # each file's rows stand together
    moved, notes, at = Places(), dict[str, str](), step.copy()
    for i, own in enumerate(spans):
        for count in counts:
            said = np.flatnonzero((name[own] == count) & there[own])[::-1] + own.start  # of several at a step the last
            steps, rows = np.unique(step[said], return_index=True)
            counted = value[said][rows]
            if not np.isfinite(counted).all() or (counted == steps).all() or not np.isin(step[own][there[own]], steps).all():
                continue
            new = np.where(there[own], counted[np.minimum(np.searchsorted(steps, step[own]), len(steps) - 1)], -1).astype(np.int64)
            others = ((j, [(name[o], (step[o], value[o]))]) for j, o in enumerate(spans) if j != i)
            told = next((j for j, other in others if alike(measured[own], (new, value[own]), other)), None)
            if told is not None:
                at[own], notes[paths[i]] = new, NOTE.format(file=paths[told])
                moved[paths[i]] = dict(zip(steps.tolist(), counted.astype(np.int64).tolist(), strict=True))
                break
    if not moved:
        return metrics, moved, notes
    column = pa.array(at, pa.int64(), mask=~there)
    return metrics.set_column(metrics.schema.get_field_index("step"), metrics.schema.field("step"), column), moved, notes


def config_placed(config: pa.Table, moved: Places) -> pa.Table:
    """The totals that these logs name beside their first count, in the second; beyond what was counted in the proportion of the last one."""
    if not moved or not config.num_rows:
        return config
    rows = zip(*(config[c].to_pylist() for c in ("source", "key", "value")), strict=True)
    value = [
        str(of.get(int(v), round(int(v) * of[max(of)] / max(of)))) if key == TOTAL and of and v.isdecimal() else v
        for source, key, v in rows
        for of in (moved.get(source, {}),)
    ]
    return config.set_column(
        config.schema.get_field_index("value"), config.schema.field("value"), pa.array(value, config.schema.field("value").type)
    )
