"""How long epochs took, where a log has a column of its own for it beside what it measured after each."""

from __future__ import annotations

import numpy as np

from forensics.run.inputs import surviving
from forensics.run.series import Ints, Series, names, series
from parsers.lazy_regex import lazy_re
from parsers.tables import Run

LEAST = 10  # values; as for a split into two sides of five (forensics.detectors.throughput)
_OF_EPOCH = lazy_re(
    r"(?i)(^|[/_. ])(epoch[/_. ]?(time|sec|secs|seconds|duration|s)|(time|secs?|seconds|duration)[/_. ](per|an|of)[/_. ]epoch)([/_. ]s)?$"
)
_SECONDS = lazy_re(
    r"(?i)^(train[/_. ])?(sec|secs|seconds|duration|took|wall_?time)([/_. ]s)?$"
)  # of an epoch or a stretch, or since the start


def by_epoch(run: Run) -> Series | None:
    """Seconds of each epoch, or of each stretch from row to row; None where no column tells them. A column that is only called seconds falls now
    and then, which the time since the start does not, and its rows stand at even distances."""
    for name in names(run, LEAST):
        tag = name.removeprefix("other/")
        if not name.startswith("other/") or not (_OF_EPOCH.search(tag) or _SECONDS.search(tag)):
            continue
        s = series(run, name)
        rows = surviving(s) if s is not None else np.zeros(0, np.int64)
        if s is None or len(rows) < LEAST or not (s.value[rows] > 0).all():
            continue
        if _OF_EPOCH.search(tag) or ((np.diff(s.value[rows]) < 0).any() and _evenly(s.step[rows])):
            return s
    return None


def _evenly(step: Ints) -> bool:
    return bool(np.ptp(np.diff(step)) == 0)
