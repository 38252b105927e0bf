"""A metric that one file logs now and then under a name that everybody knows, and another file more often under a name of its own."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from parsers import arrow, names
from parsers.runs.equal_values import Points, equal_share

NAMES = ("loss.train", "grad.norm", "lr")  # what is read step by step
_LEAST, _DISTINCT = 8, 5  # values at common steps, and of them so many that differ: fewer that are rounded may agree by chance
_OFTENER = 2  # times as many rows: of two that are equally often logged, either will do
_ALL = 0.99  # share of the common steps with equal values, and of the steps of the one that the other has, too
_MOST_ROWS, _MOST_TAGS = 4_000_000, 200  # bound

Meanings = dict[tuple[str, str], names.Meaning]  # by file and tag


def told(metrics: pa.Table, meanings: Meanings) -> Meanings:
    """The meanings of tags without a known name that say, in another file, what a known one says, and more often."""
    unknown = [at for at, m in meanings.items() if m.name.startswith("other/")]
    if len({path for path, _ in meanings}) < 2 or not unknown or len(unknown) > _MOST_TAGS or metrics.num_rows > _MOST_ROWS:
        return {}
    (source, paths), (tag, tags) = arrow.codes(metrics["source"]), arrow.codes(metrics["tag"])
    spans = dict(zip(paths, arrow.stretches(source, len(paths)), strict=True))  # each file's rows stand together
    codes = {t: i for i, t in enumerate(tags)}
    step, value, there = arrow.filled(metrics["step"], -1), arrow.values(metrics["value"]), arrow.present(metrics["step"])
    found: Meanings = {}
    for name in NAMES:
        known = [at for at, m in meanings.items() if m.name == name]
        if len(known) != 1:
            continue
        path, t = known[0]
        first, last = spans[path]
        rows = first + np.flatnonzero(there[first:last] & (tag[first:last] == codes[t]))
        one, same = (step[rows], value[rows]), []
        for other in sorted({p for p, _ in unknown} - {path}):
            first, last = spans[other]
            often = np.bincount(tag[first:last][there[first:last]], minlength=len(tags))
            common = first + np.flatnonzero(there[first:last] & np.isin(step[first:last], one[0]))
            for at in (at for at in unknown if at[0] == other and often[codes[at[1]]] >= _OFTENER * len(one[0])):
                rows = common[tag[common] == codes[at[1]]]
                same += [at] if _equal(one, (step[rows], value[rows])) else []
        if len(same) == 1:
            found[same[0]] = meanings[known[0]]
    return found


def _equal(one: Points, other: Points) -> bool:
    steps, i, j = np.intersect1d(one[0], other[0], return_indices=True)
    if len(steps) < max(_LEAST, _ALL * len(np.unique(one[0]))) or min(len(np.unique(one[1][i])), len(np.unique(other[1][j]))) < _DISTINCT:
        return False
    return (equal_share(one, other) or 0.0) >= _ALL
