"""Monitors of environments that one training stepped together: `0.monitor.csv` to `7.monitor.csv`, as Stable-Baselines3's `make_vec_env` writes them.

Each counts the timesteps of its own environment. The training counts those of all, one environment after the other, as its own tables do:
after `t` steps of each of `n` environments it stands at `n * t`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from parsers import arrow
from parsers.lazy_regex import lazy_re
from parsers.records.vocabulary import MONITOR_STEPS
from parsers.tables import Source

_RANK = lazy_re(r"(?i)(?<!\d)(\d+)\.monitor\.csv$")
NOTE = "rows are episodes, steps the timesteps of all {n} environments up to their end"


def placed(metrics: pa.Table, sources: Sequence[Source]) -> tuple[pa.Table, dict[str, str]]:
    """The rows of such monitors at the timesteps of all environments, and what to note of these files."""
    numbered: dict[str, dict[int, str]] = {}
    for s in sources:
        if MONITOR_STEPS in s.note and (found := _RANK.search(s.path)):
            numbered.setdefault(s.path[: found.start()], {})[int(found[1])] = s.path
    together = [ranks for ranks in numbered.values() if len(ranks) > 1 and ranks.keys() == set(range(len(ranks)))]
    if not together or not metrics.num_rows:
        return metrics, {}
    source, paths = arrow.codes(metrics["source"])
    step, there = arrow.filled(metrics["step"], 0).copy(), arrow.present(metrics["step"])
    for ranks in together:
        for rank, path in ranks.items():
            mine = source == paths.index(path) if path in paths else np.zeros(len(source), np.bool_)
            step[mine] = len(ranks) * (step[mine] - 1) + rank + 1
    column = arrow.numbers(step.astype(np.int64), there)
    moved = metrics.set_column(metrics.schema.get_field_index("step"), metrics.schema.field("step"), column)
    return moved, {path: NOTE.format(n=len(ranks)) for ranks in together for path in ranks.values()}
