"""Rows and columns of a matrix that hold nothing but zeros: units, channels and tokens that are not there.

``Lines`` looks on while parsers.checkpoints.statistics streams a tensor. A block with few zeros costs it nothing,
one with many about two passes more; memory is a byte for each row and each column.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from parsers.checkpoints.contents import Tensor, chunks
from parsers.checkpoints.statistics import statistics, values
from parsers.checkpoints.value_stats import Stats

MOST = 1 << 23  # rows and columns
FLOATS = ("float64", "float32", "float16", "bfloat16")


@dataclass
class Lines:
    """Of a tensor seen as a matrix: its first axis against all others."""

    rows: int
    width: int
    dead: int = 0  # rows of zeros among those that lie whole in one block
    parts: dict[int, int] = field(default_factory=dict)  # of rows that blocks cut: zeros seen so far
    alive: NDArray[np.bool_] = field(default_factory=lambda: np.zeros(0, bool))  # columns in which something was seen

    def see(self, start: int, block: NDArray[Any], zeros: int) -> None:
        """The values from place `start` on, in the order of rows, with the number of zeros among them."""
        if not zeros:
            self._all_alive(start, len(block))
            return
        row, column = divmod(start, self.width)
        head = min((-column) % self.width, len(block))
        if head:
            self._part(row, column, _zeros(block[:head]))
            row += 1
        whole = (len(block) - head) // self.width
        end = head + whole * self.width
        if whole and zeros < min(self.width, whole):  # too few for a row or a column
            self.alive[:] = True
        elif whole:
            table = _zeros(block[head:end]).reshape(whole, self.width)
            self.dead += int(np.count_nonzero(np.logical_and.reduce(table, axis=1)))
            self.alive |= ~np.logical_and.reduce(table, axis=0)
        if end < len(block):
            self._part(row + whole, 0, _zeros(block[end:]))

    def _part(self, row: int, column: int, zero: NDArray[np.bool_]) -> None:
        self.parts[row] = self.parts.get(row, 0) + int(np.count_nonzero(zero))
        self.alive[column : column + len(zero)] |= ~zero

    def _all_alive(self, start: int, n: int) -> None:
        first = start % self.width
        self.alive[first : first + n] = True
        if first + n > self.width:
            self.alive[: first + n - self.width] = True

    def counts(self) -> tuple[int, int]:
        """(rows of zeros, columns of zeros)."""
        cut = sum(n == self.width for n in self.parts.values())
        return self.dead + cut, self.width - int(np.count_nonzero(self.alive))


def _zeros(block: NDArray[Any]) -> NDArray[np.bool_]:
    """Of either sign."""
    found: NDArray[np.bool_] = np.left_shift(block.view(f"u{block.itemsize}"), 1) == 0
    return found


def counts_lines(t: Tensor) -> bool:
    """True for what findings ask of."""
    return t.role in ("weight", "exp_avg_sq")


# of torch.optim, optax, Keras
_SQUARES = {"running_var", "sum", "square_avg", "acc_delta", "exp_inf", "accumulator", "max_exp_avg_sq", "vhat"}


def counts_negatives(t: Tensor) -> bool:
    """True for what is a square or a variance."""
    return t.role == "exp_avg_sq" or t.name.rpartition(".")[2] in _SQUARES


def row_width(t: Tensor) -> int:
    """Values of a row where rows may be compared, else 0."""
    return t.count // t.shape[0] if t.role in ("weight", "master") and len(t.shape) > 1 and t.shape[0] and not t.layout else 0


def lines_of(tensor: Tensor) -> Lines | None:
    """None where rows mean nothing (vectors, other orders of values) or would cost too much."""
    rows, count = (tensor.shape or (0,))[0], tensor.count
    if len(tensor.shape) < 2 or tensor.dtype not in FLOATS or tensor.layout or not count or rows + count // rows > MOST:
        return None
    return Lines(rows, count // rows, alive=np.zeros(count // rows, bool))


def streamed(t: Tensor) -> Stats:
    """The statistics of one pass, with what only some roles are asked for: lines of zeros, values below zero, rows that are alike."""
    lines, counts, width = lines_of(t) if counts_lines(t) else None, counts_negatives(t), row_width(t)
    below, parallel = 0, False

    def watch(place: int, block: NDArray[Any], zeros: int) -> None:
        nonlocal below, parallel
        if lines is not None:
            lines.see(place, block, zeros)
        if counts:
            below += negatives(block, t.dtype)
        if width and not place:
            parallel = parallel_rows(block, t.dtype, width)

    stats = statistics(chunks(t), t.dtype, watch)
    if lines is not None:
        stats.zero_rows, stats.zero_columns = lines.counts()
    stats.negative, stats.parallel = below if counts else None, parallel
    return stats


def negatives(block: NDArray[Any], dtype: str) -> int:
    """Values below zero; zeros with a sign and NaN are none."""
    if dtype not in FLOATS:
        return int(np.count_nonzero(block < 0)) if block.dtype.kind in "if" else 0
    signed = block.view(f"i{block.itemsize}")
    if np.minimum.reduce(signed) >= 0:
        return 0
    return int(np.count_nonzero(values(block, dtype) < 0))


ROWS = 16  # looked at
COSINE = 0.99  # of the first and the last row: below it, the rows between need no look
PARALLEL = 0.9999  # cosine: bfloat16's rounding of parallel rows leaves 0.99999, trained rows of a layer stay below 0.99


def parallel_rows(block: NDArray[Any], dtype: str, width: int) -> bool:
    """Whether rows spread over a tensor's first block are multiples of one another: a constant matrix, copies of one row, an outer product."""
    rows = len(block) // width
    if rows < 8 or width < 8 or block.dtype.kind == "c":  # too few to be more than chance
        return False
    ends = [values(block[i * width : (i + 1) * width], dtype).astype(np.float64) for i in (0, rows - 1)]
    with np.errstate(all="ignore"):
        if not abs(ends[0] @ ends[1]) > COSINE * math.sqrt((ends[0] @ ends[0]) * (ends[1] @ ends[1])):  # most tensors end here
            return False
    picked = np.linspace(0, rows - 1, min(rows, ROWS)).astype(int)
    table = np.stack([values(block[i * width : (i + 1) * width], dtype).astype(np.float64) for i in picked])
    if not np.isfinite(table).all() or (np.count_nonzero(table, axis=1) < 8).any():
        return False
    table /= np.abs(table).max(axis=1, keepdims=True)  # squares of tiny values would vanish
    table /= np.sqrt(np.square(table).sum(axis=1, keepdims=True))
    return bool(np.abs(table @ table[0]).min() > PARALLEL)
