"""Monitors of environments that one training stepped together: `0.monitor.csv` to `7.monitor.csv`, as Stable-Baselines3's `make_vec_env` writes them.

Of several environments one may have a monitor alone: then config says how many there are, and the tables beside it end as many times further.
Each counts the timesteps of its own environment. The training counts those of all, one environment after the other, as its own tables do:
after `t` steps of each of `n` environments it stands at `n * t`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from parsers import arrow
from parsers.lazy_regex import lazy_re
from parsers.records.vocabulary import MONITOR_STEPS
from parsers.tables import Source

_SEVERAL = lazy_re(r"(?i)(?:^|[._])(?:n|num|number_of)_?(?:envs?|environments)$")
_RANK = lazy_re(r"(?i)(?<!\d)(\d+)\.monitor\.csv$")
NOTE = "rows are episodes, steps the timesteps of all {n} environments up to their end"


def placed(metrics: pa.Table, config: pa.Table, sources: Sequence[Source]) -> tuple[pa.Table, dict[str, str]]:
    """The rows of such monitors at the timesteps of all environments, and what to note of these files."""
    numbered: dict[str, dict[int, str]] = {}
    for s in sources:
        if MONITOR_STEPS in s.note and (found := _RANK.search(s.path)):
            numbered.setdefault(s.path[: found.start()], {})[int(found[1])] = s.path
    together = [ranks for ranks in numbered.values() if len(ranks) > 1 and ranks.keys() == set(range(len(ranks)))]
    monitors = [s.path for s in sources if MONITOR_STEPS in s.note]
    several = _several(config) if len(monitors) == 1 else None
    if not (together or several) or not metrics.num_rows:
        return metrics, {}
    source, paths = arrow.codes(metrics["source"])
    step, there = arrow.filled(metrics["step"], 0).copy(), arrow.present(metrics["step"])
    of = {path: (len(ranks), rank) for ranks in together for rank, path in ranks.items()}
    if several and monitors[0] in paths and _ends_further(step, source == paths.index(monitors[0]), several):
        of = {monitors[0]: (several, 0)}
    for path, (n, rank) in of.items():
        mine = source == paths.index(path) if path in paths else np.zeros(len(source), np.bool_)
        step[mine] = n * (step[mine] - 1) + rank + 1
    column = arrow.numbers(step.astype(np.int64), there)
    moved = metrics.set_column(metrics.schema.get_field_index("step"), metrics.schema.field("step"), column)
    return moved, {path: NOTE.format(n=n) for path, (n, _) in of.items()}


def _several(config: pa.Table) -> int | None:
    """How many environments config names, if several."""
    told = {str(v) for k, v in zip(config["key"].to_pylist(), config["value"].to_pylist(), strict=True) if _SEVERAL.search(k)}
    numbers = [int(v) for v in told if v.isdecimal()]
    return numbers[0] if len(told) == len(numbers) == 1 and numbers[0] > 1 else None


def _ends_further(step: NDArray[np.int64], mine: NDArray[np.bool_], n: int) -> bool:
    """Whether the other files go on to n times the last step of the monitor, or less than an episode beyond."""
    own, others = step[mine], step[~mine]
    if len(own) < 2 or not len(others):
        return False
    episode = int(np.diff(np.unique(own)).max(initial=0))
    return bool(0 <= others.max() - n * own.max() <= n * episode)
