"""One metric that several tags or files carry: which copy of it is judged."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from forensics.run.metric_columns import column_at, place_in
from parsers.tables import LINES_COUNTED, Run

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def best(run: Run, columns: dict[str, Any], rows: Ints) -> Ints:
    """Those of one tag in one format, where several carry a name."""
    tag, source = columns["tag"][rows], column_at(columns, "source", rows)
    if (tag == tag[0]).all() and (source == source[0]).all():
        return rows
    formats = {s.path: s.format for s in run.sources}
    group_of = np.array([place_in(columns["formats"], formats.get(s, s)) for s in columns["sources"]], np.int64)
    groups = tag.astype(np.int64) * len(columns["formats"]) + group_of[source]
    groups -= groups.min()  # one name's tags are few: counting from the first tag of all costs a pass over all tags
    counted = {s.path for s in run.sources if LINES_COUNTED in s.note}
    lines = np.array([s in counted for s in columns["sources"]])[source]
    printed = np.array([formats.get(s) == "console" for s in columns["sources"]])[source]
    chosen = _best_covered(groups, columns["step"][rows], columns["value"][rows], columns["time"][rows], lines, printed)
    return np.asarray(rows[groups == chosen], np.int64)


def _best_covered(groups: Ints, step: Ints, value: Floats, time: Floats, lines: NDArray[np.bool_], printed: NDArray[np.bool_]) -> int:
    """The group with most points, those at numbers of lines worth half; of two copies the one that goes further, then the one with clocks, then the
    one that was not printed for people, which rounds, then the one whose values most have (the rates of parameter groups). Values that follow each
    other at one step are one point, such as a check before the first epoch."""
    clocks = np.bincount(groups, np.isfinite(time))
    reach = np.full(len(clocks), -1, np.int64)
    np.maximum.at(reach, groups, step)
    rows = np.argsort(groups, kind="stable")
    rows = rows[np.append(True, (np.diff(step[rows]) != 0) | (np.diff(groups[rows]) != 0))]
    count = np.bincount(groups[rows], 1 - lines[rows] / 2)
    rounds = np.bincount(groups, printed)
    order_by = (rounds, -clocks, -reach, -count)
    best = int(np.lexsort(order_by)[0])
    tied = np.flatnonzero(np.all([key == key[best] for key in order_by], axis=0))
    told = [value[groups == g].tobytes() for g in tied] if len(tied) > 2 else [b""]
    return int(tied[max(range(len(told)), key=lambda i: (told.count(told[i]), -i))])
