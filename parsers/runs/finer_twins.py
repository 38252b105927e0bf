"""A metric that one file logs now and then under a name that everybody knows, and another file more often under a name of its own."""

from __future__ import annotations

from collections.abc import Iterator

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
    found: Meanings = {}
    for name in NAMES:
        known = [at for at, m in meanings.items() if m.name == name]
        if len(known) != 1:
            continue
        twins = [at for at in unknown if at[0] != known[0][0]]
        one, *others = _points(metrics, [known[0], *twins])
        same = [at for at, points in zip(twins, others, strict=True) if _says_more(one, points)]
        if len(same) == 1:
            found[same[0]] = meanings[known[0]]
    return found


def _points(metrics: pa.Table, wanted: list[tuple[str, str]]) -> Iterator[Points]:
    (source, paths), (tag, tags) = arrow.codes(metrics["source"]), arrow.codes(metrics["tag"])
    step, value, there = arrow.filled(metrics["step"], -1), arrow.values(metrics["value"]), arrow.present(metrics["step"])
    for path, t in wanted:
        rows = np.flatnonzero(there & (source == paths.index(path)) & (tag == tags.index(t)))
        yield step[rows], value[rows]


def _says_more(one: Points, other: Points) -> bool:
    if len(other[0]) < _OFTENER * len(one[0]):
        return False
    steps, i, j = np.intersect1d(one[0], other[0], return_indices=True)
    if len(steps) < max(_LEAST, _ALL * len(np.unique(one[0]))) or min(len(np.unique(one[1][i])), len(np.unique(other[1][j]))) < _DISTINCT:
        return False
    return (equal_share(one, other) or 0.0) >= _ALL
