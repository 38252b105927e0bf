"""Norm, mean, standard deviation, largest magnitude, non-finite values and zeros of a tensor, by one streaming pass.

The pass is made of few numpy calls on blocks of two megabytes. Magnitudes are compared as integers: of IEEE numbers the
largest signed integer is the largest positive value, the largest unsigned one the largest negative. A bfloat16 is the
upper half of a float32, so two lie in each 32-bit word: masked and shifted, they are floats without a conversion.
Sums are float32 within a block (BLAS) and float64 between blocks, merged as in Chan, Golub, LeVeque (1983). A block with a
non-finite value, with magnitudes whose squares leave float32, or with a spread tiny beside its mean is done in float64.

float8 values are counted by their 256 patterns. Sums are good to about 1e-6.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from functools import cache, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from parsers.checkpoints import float8
from parsers.checkpoints.value_stats import Stats

Block = NDArray[Any]
Watch = Callable[[int, Block, int], None]
_SMALLEST, _LARGEST = 1e-14, 1e14  # magnitudes whose squares are sure in float32
_ROW = 4096
_LARGE = 1 << 17  # values of a block
_UPPER, _SIXTEEN = np.uint32(0xFFFF0000), np.uint32(16)
_INFINITY = {"bfloat16": 0x7F80, "float16": 0x7C00, "float32": 0x7F800000, "float64": 0x7FF0000000000000}


def statistics(blocks: Iterable[Block], dtype: str, watch: Watch | None = None) -> Stats:
    """The whole set. ``dtype`` as in parsers.checkpoints.contents.SIZES; blocks hold its raw type.

    ``watch`` is called after each block with its place, itself, and the number of its zeros.
    """
    stats = Stats()
    parts = Stats(), Stats()  # of complex numbers
    scratch = np.empty(0, np.float32)
    for block in blocks:
        if not len(block):
            continue
        place, zeros = stats.count, stats.zeros
        if dtype in ("bfloat16", "float32", "float16"):
            if len(scratch) < len(block) + 1:
                scratch = np.empty(len(block) + 2 * _ROW, np.float32)
            _float(stats, block, dtype, scratch)
        elif dtype == "float64":
            _exact(stats, block)
        elif dtype.startswith("float8"):
            _float8(stats, block, dtype)
        elif block.dtype.kind == "c":
            _complex(stats, parts, block)
        else:
            _exact(stats, block.astype(np.float64))
        if watch is not None:
            watch(place, block, stats.zeros - zeros)
    return stats


def _complex(stats: Stats, parts: tuple[Stats, Stats], block: Block) -> None:
    """As numpy: the deviation is that of distances in the plane; of the mean, the real part is given."""
    _exact(stats, np.abs(block).astype(np.float64))
    finite = block[np.isfinite(block)]
    for part, x in zip(parts, (finite.real, finite.imag), strict=True):
        _exact(part, x.astype(np.float64))
    stats.mean, stats.m2 = parts[0].mean, parts[0].m2 + parts[1].m2


def values(block: Block, dtype: str) -> NDArray[Any]:
    """A block of raw values as floats (float64 and integers stay what they are)."""
    if dtype == "bfloat16":
        return (block.astype(np.uint32) << np.uint32(16)).view(np.float32)
    if dtype.startswith("float8"):
        return float8.table(dtype)[block]
    return block.astype(np.float32) if dtype == "float16" else block


def _largest(block: Block) -> int:
    """The bits of the largest magnitude."""
    width = block.dtype.itemsize
    unsigned = int(np.maximum.reduce(block.view(f"u{width}")))
    positive = int(np.maximum.reduce(block.view(f"i{width}")))
    sign = 1 << (8 * width - 1)
    return max(positive, unsigned - sign if unsigned >= sign else unsigned)


@lru_cache(4096)
def _value(bits: int, dtype: str) -> float:
    if dtype == "bfloat16":
        return float(np.array(bits << 16, np.uint32).view(np.float32))
    kind = np.dtype(dtype)
    return float(np.array(bits, f"u{kind.itemsize}").view(kind))


def _zeros(block: Block) -> int:
    """Zeros of either sign, counted only where there is one. In a large block the search is for positive ones alone: one
    pass less, and where training leaves negative zeros (underflow, masks) there are positive ones beside them."""
    width = block.dtype.itemsize
    plus, minus = block.view(f"u{width}"), block.view(f"i{width}")
    negative_zero = -(1 << (8 * width - 1))
    positive = not np.minimum.reduce(plus)
    if not positive and (len(block) > _LARGE or np.minimum.reduce(minus) != negative_zero):
        return 0
    return len(block) - int(np.count_nonzero(plus)) + int(np.count_nonzero(minus == negative_zero))


def _float(stats: Stats, block: Block, dtype: str, scratch: NDArray[np.float32]) -> None:
    bits = _largest(block)
    if not bits:  # zeros alone, of either sign: holes of a sparse file, moments that never moved
        stats.merge(len(block), 0.0, 0.0, 0.0)
        stats.count, stats.zeros = stats.count + len(block), stats.zeros + len(block)
        return
    absmax = _value(bits, dtype) if bits < _INFINITY[dtype] else math.inf
    if not (_SMALLEST < absmax < _LARGEST):
        for i in range(0, len(block), 65536):
            _exact(stats, values(block[i : i + 65536], dtype).astype(np.float64))
        return
    zeros = _zeros(block)
    n = len(block)
    if dtype == "bfloat16":
        total, squares = _pairs(block, scratch)
    else:
        x = _widened(block, dtype, scratch)
        total, squares = _sum(x), _squares(x)
    mean = total / n
    m2 = squares - n * mean * mean
    if m2 < 0.1 * squares:
        centred = np.subtract(_widened(block, dtype, scratch), np.float32(mean), out=scratch[:n])
        rest = _sum(centred)
        m2 = max(_squares(centred) - rest * rest / n, 0.0)
    stats.merge(n, total, squares, m2)
    stats.count, stats.zeros, stats.absmax = stats.count + n, stats.zeros + zeros, max(stats.absmax, absmax)


def _widened(block: Block, dtype: str, scratch: NDArray[np.float32]) -> NDArray[np.float32]:
    if dtype == "float32":
        return block
    out = scratch[: len(block)]
    if dtype == "float16":
        np.copyto(out, block)
    else:
        np.left_shift(block, np.uint32(16), out=out.view(np.uint32), dtype=np.uint32)
    return out


def _pairs(block: Block, scratch: NDArray[np.float32]) -> tuple[float, float]:
    """(sum, sum of squares) of bfloat16: those in odd places first, then the others, in the same part of the scratch.

    Rows as in ``_sum``, the last one filled up with zeros.
    """
    half, rows = len(block) // 2, -(-(len(block) // 2) // _ROW)
    words, x = block[: 2 * half].view(np.uint32), scratch[: rows * _ROW]
    bits, table = x[:half].view(np.uint32), x.reshape(rows, _ROW)
    x[half:] = 0
    found = np.empty((4, rows), np.float32)
    np.bitwise_and(words, _UPPER, out=bits)
    np.vecdot(table, _ones(), out=found[0])
    np.vecdot(table, table, out=found[1])
    np.left_shift(words, _SIXTEEN, out=bits)
    np.vecdot(table, _ones(), out=found[2])
    np.vecdot(table, table, out=found[3])
    odd, odd_squares, even, even_squares = np.add.reduce(found, axis=1, dtype=np.float64).tolist()
    last = float(values(block[2 * half :], "bfloat16").sum())  # of an odd number, one is left
    return odd + even + last, odd_squares + even_squares + last * last


def _sum(x: NDArray[np.float32]) -> float:
    """By rows with BLAS, then in float64: quicker than ndarray.sum, and more exact.

    Rows are short on purpose: BLAS would share longer ones out to threads, which wait for each other at full load.
    """
    rows = len(x) // _ROW
    total = float(np.add.reduce(np.vecdot(x[: rows * _ROW].reshape(rows, _ROW), _ones()), dtype=np.float64))
    return total if rows * _ROW == len(x) else total + float(x[rows * _ROW :].sum(dtype=np.float64))


def _squares(x: NDArray[np.float32]) -> float:
    """The sum of squares, likewise: the longer a float32 sum, the more of it is rounding."""
    rows = len(x) // _ROW
    head, tail = x[: rows * _ROW].reshape(rows, _ROW), x[rows * _ROW :]
    total = float(np.add.reduce(np.vecdot(head, head), dtype=np.float64))
    return total + float(np.dot(tail, tail)) if len(tail) else total


@cache
def _ones() -> NDArray[np.float32]:
    return np.ones(_ROW, np.float32)


def _exact(stats: Stats, x: NDArray[np.float64]) -> None:
    good = np.isfinite(x)
    n = len(x)
    finite = x if good.all() else x[good]
    if len(finite):
        absmax = float(np.abs(finite).max())
        scale = 1.0 if 1e-140 < absmax < 1e140 else absmax or 1.0
        scaled = finite if scale == 1.0 else finite / scale
        total, squares = float(scaled.sum()), float(np.dot(scaled, scaled))
        m2 = float(np.square(scaled - total / len(finite)).sum())
        with np.errstate(over="ignore"):
            stats.merge(len(finite), total * scale, _times(squares, scale), _times(m2, scale))
        stats.absmax = max(stats.absmax, absmax)
        stats.zeros += len(finite) - int(np.count_nonzero(finite))
    stats.count += n
    stats.nonfinite += n - len(finite)


def _times(squares: float, scale: float) -> float:
    return squares * scale * scale  # infinity where the norm itself leaves float64


def _float8(stats: Stats, block: Block, dtype: str) -> None:
    counts = np.bincount(block, minlength=256)
    table = float8.table(dtype).astype(np.float64)
    good = np.isfinite(table)
    c, t = counts[good].astype(np.float64), table[good]
    n = int(c.sum())
    if n:
        total, squares = float(c @ t), float(c @ (t * t))
        stats.merge(n, total, squares, float(c @ np.square(t - total / n)))
        stats.absmax = max(stats.absmax, float(np.abs(t[c > 0]).max()))
        stats.zeros += int(c[t == 0].sum())
    stats.count += len(block)
    stats.nonfinite += len(block) - n
