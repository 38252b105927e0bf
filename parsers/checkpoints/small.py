"""The statistics of many small tensors in one go: fifty thousand of a few values each cost calls, not arithmetic.

Tensors of one type, shape and role become the rows of one table, in float64. A row that holds something odd (values that are
not finite, magnitudes whose squares leave float64) is left to ``parsers.checkpoints.units.streamed``, as all others are.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from parsers.checkpoints.contents import SIZES, Tensor, raw_type
from parsers.checkpoints.statistics import values
from parsers.checkpoints.units import COSINE, FLOATS, counts_lines, counts_negatives, parallel_rows, row_width
from parsers.checkpoints.value_stats import Stats

SMALL = 4096  # values; a call of numpy costs about as much as so many
FEW = 4  # tensors of one kind: fewer are quicker one by one
TABLE = 1 << 20  # values of a table
SURE = (1e-140, 1e140)  # magnitudes whose squares are sure in float64

Table = NDArray[np.float64]


def together(tensors: Iterable[Tensor]) -> dict[int, Stats]:
    """Statistics by ``id`` of the tensor, of those that can be done so."""
    kinds: defaultdict[tuple[Any, ...], list[Tensor]] = defaultdict(list)
    for t in tensors:
        whole = len(t.pieces) == 1 and t.pieces[0].shape is None and not (t.inline or t.swapped or t.layout)
        if whole and 0 < t.count <= SMALL and t.dtype in FLOATS:
            kinds[t.dtype, t.shape, t.role, counts_negatives(t)].append(t)
    found: dict[int, Stats] = {}
    for alike in kinds.values():
        most = TABLE // alike[0].count
        for i in range(0, len(alike), most):
            some = alike[i : i + most]
            if len(some) >= FEW:
                found.update(_table(some))
    return found


def _table(tensors: Sequence[Tensor]) -> Iterator[tuple[int, Stats]]:
    first = tensors[0]
    size = first.count * SIZES[first.dtype]
    if not all(f.alive() for f in {t.pieces[0].file for t in tensors}):
        return
    data = b"".join(p.file.bytes[p.offset : p.offset + size] for p in (t.pieces[0] for t in tensors))
    if len(data) != len(tensors) * size:
        return
    raw = np.frombuffer(data, raw_type(first.dtype)).reshape(len(tensors), first.count)
    x = values(raw, first.dtype).astype(np.float64)
    absmax = np.abs(x).max(axis=1)
    sure = (absmax == 0) | ((absmax > SURE[0]) & (absmax < SURE[1]))
    if not sure.all():
        x, raw, absmax = x[sure], raw[sure], absmax[sure]
        tensors = [t for t, ok in zip(tensors, sure.tolist(), strict=True) if ok]
    if not tensors:  # all of them NaN, or beyond what squares can hold
        return
    mean = x.mean(axis=1)
    figures = (
        (x == 0).sum(axis=1), absmax, mean, np.square(x - mean[:, None]).sum(axis=1), np.square(x).sum(axis=1), *_lines(first, x),
        (x < 0).sum(axis=1).tolist() if counts_negatives(first) else [None] * len(x), _parallel(first, x, raw),
    )  # fmt: skip
    columns = (f.tolist() if isinstance(f, np.ndarray) else f for f in figures)
    for t, row in zip(tensors, zip(*columns, strict=True), strict=True):
        yield id(t), Stats(t.count, 0, *row)


def _lines(t: Tensor, x: Table) -> tuple[Any, Any]:
    """Rows and columns of zeros of each."""
    if not counts_lines(t) or len(t.shape) < 2:
        return [None] * len(x), [None] * len(x)
    zero = x.reshape(len(x), t.shape[0], -1) == 0
    return zero.all(axis=2).sum(axis=1), zero.all(axis=1).sum(axis=1)


def _parallel(t: Tensor, x: Table, raw: NDArray[Any]) -> list[bool]:
    """As ``parallel_rows``, which is asked only where the first row points as the last one does."""
    width = row_width(t)
    found = [False] * len(x)
    if width and len(x):
        a, b = x[:, :width], x[:, -width:]
        products = np.abs((a * b).sum(axis=1))
        near = products > COSINE * np.sqrt(np.square(a).sum(axis=1) * np.square(b).sum(axis=1))
        for i in np.flatnonzero(near).tolist():
            found[i] = parallel_rows(raw[i], t.dtype, width)
    return found
