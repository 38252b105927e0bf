"""Thousands of TensorBoard events at once: scalars, tensor scalars and histograms of the usual shapes.

The walk goes down four levels (Event, Summary, Value, TensorProto or HistogramProto), each level for all records
together. A record is taken as a whole or not at all: anything unusual in it (another kind of value, a field given
twice, an unknown one, a wrong wire type) makes it *odd*, and :mod:`parsers.tensorboard_event` reads it alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from parsers import histograms
from parsers import tensorboard_event as single
from parsers.crc32c import Bytes, unaligned
from parsers.protowalk import BYTES, FIXED32, FIXED64, VARINT, Ints, Words, lockstep, varints
from parsers.tensorboard_names import LONGEST, Names

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]
Columns = dict[str, npt.NDArray[Any]]



@dataclass
class Decoded:
    """Columns of the records that were understood; ``record`` says of which."""

    metrics: Columns
    histograms: Columns
    counts: dict[str, int]
    odd: Ints  # records that were not


def decode(data: Bytes, start: Ints, length: Ints, names: Names) -> Decoded:
    """Events that lie at these places, as columns."""
    words = unaligned(data, "<u8")
    odd = np.zeros(len(start), np.bool_)
    with np.errstate(invalid="ignore"):  # a signalling NaN is a value too
        wall, step, values = _events(words, start, length, odd)
        owner, kind, tag, metadata, number, body = values
        tensors = np.flatnonzero(kind == single.TENSOR)
        if len(tensors):
            number[tensors], scalar = _tensors(words, body[:, tensors], owner[tensors], odd)
            odd[owner[tensors[~scalar]]] = True
    spread = np.flatnonzero(kind == single.HISTOGRAM)
    summary_owner = owner[spread]
    summary = _histograms(data, words, body[:, spread], summary_owner, odd) if len(spread) else {}
    if odd.any():
        good = ~odd[owner]
        spread = (np.cumsum(good) - 1)[spread[good[spread]]]
        summary = {name: column[~odd[summary_owner]] for name, column in summary.items()}
        kept = np.flatnonzero(good)
        owner, kind, number = owner[kept], kind[kept], number[kept]
        tag, metadata = tag[:, kept], metadata[:, kept]
    codes = names.tags.codes(data, words, *tag)
    described = np.flatnonzero(metadata[1])
    if len(described):
        names.learn(codes[described], names.metadata.codes(data, words, *metadata[:, described]))

    metric = (kind == single.SIMPLE) | (kind == single.TENSOR)
    if len(tensors) and (no_scalar := names.no_scalar()).any():
        refused = (kind == single.TENSOR) & no_scalar[codes]
        odd[owner[refused]] = True
    good = ~odd[owner] if odd.any() else np.ones(len(owner), np.bool_)
    metric &= good
    metric = slice(None) if metric.all() else np.flatnonzero(metric)
    of = owner[metric]
    metrics = {"record": of, "step": step[of], "tag": codes[metric], "value": number[metric], "time": wall[of]}
    if len(spread):
        kept = good[spread]
        spread, summary = spread[kept], {name: column[kept] for name, column in summary.items()}
        of = owner[spread]
        summary |= {"record": of, "step": step[of], "tag": codes[spread], "time": wall[of]}
    else:
        summary = {}
    nouns = {single.IMAGE: "image", single.AUDIO: "audio clip"}
    counts = {noun: int((good & (kind == number_)).sum()) for number_, noun in nouns.items()}
    return Decoded(metrics, summary, counts, np.flatnonzero(odd))


def _events(words: Words, start: Ints, length: Ints, odd: Bools) -> tuple[Floats, Ints, Any]:
    """-> wall time and step by record; and of each value: record, kind, place of tag and metadata, number, body."""
    wall, step = np.zeros(len(start)), np.zeros(len(start), np.int64)
    owners, starts, sizes = [], [], []
    for rows, number, wire, value, size in lockstep(words, start, start + length, np.arange(len(start)), odd):
        if number == 1 and wire == FIXED64:
            wall[rows] = value.view(np.float64)
        elif number == 2 and wire == VARINT:
            step[rows] = value.view(np.int64)
        elif number == single.SUMMARY and wire == BYTES:
            for inner, inner_number, inner_wire, at, inner_size in lockstep(words, value, value + size, rows, odd):
                if inner_number == 1 and inner_wire == BYTES:
                    owners.append(rows[inner])
                    starts.append(at)
                    sizes.append(inner_size)
                else:
                    odd[rows[inner]] = True
        else:
            odd[rows] = True
    nothing = np.zeros(0, np.int64)
    owner, at, size = (np.concatenate([nothing, *column]) for column in (owners, starts, sizes))
    if (owner[1:] < owner[:-1]).any():  # several values in a record: back to file order
        order = np.argsort(owner, kind="stable")
        owner, at, size = owner[order], at[order], size[order]
    return wall, step, (owner, *_values(words, owner, at, size, odd))


def _values(words: Words, owner: Ints, start: Ints, size: Ints, odd: Bools) -> tuple[Any, ...]:
    count = len(owner)
    kind, number = np.zeros(count, np.int8), np.full(count, np.nan)
    tag, metadata, body = (np.zeros((2, count), np.int64) for _ in range(3))
    for rows, field_, wire, at, length in lockstep(words, start, start + size, owner, odd):
        if field_ == 1 and wire == BYTES:
            tag[0, rows], tag[1, rows] = at, length
        elif field_ == 9 and wire == BYTES:
            odd[owner[rows[metadata[0, rows] > 0]]] = True  # in two parts
            metadata[0, rows], metadata[1, rows] = at, length
        elif (field_ == single.SIMPLE and wire == FIXED32) or (field_ in _BODIES and wire == BYTES):
            again = kind[rows] != 0
            if again.any():
                odd[owner[rows[again]]] = True
            kind[rows] = field_
            if field_ == single.SIMPLE:
                number[rows] = at.view(np.float32)
            else:
                body[0, rows], body[1, rows] = at, length
        else:
            odd[owner[rows]] = True
    unusual = (kind == 0) | (tag[1] > LONGEST) | (metadata[1] > LONGEST)
    if unusual.any():
        odd[owner[unusual]] = True
    return kind, tag, metadata, number, body


_BODIES = (single.IMAGE, single.HISTOGRAM, single.AUDIO, single.TENSOR)


def _tensors(words: Words, body: Ints, owner: Ints, odd: Bools) -> tuple[Floats, Bools]:
    """-> the number each tensor holds, and whether it is one of a type we know and no dimension."""
    (start, size), count = body, len(owner)
    dtype, held, width = np.zeros(count, np.int64), np.zeros(count, np.int8), np.zeros(count, np.int64)
    bits = np.zeros(count, np.uint64)
    usual = np.ones(count, np.bool_)
    for rows, number, wire, value, length in lockstep(words, start, start + size, owner, odd):
        if number == 1 and wire == VARINT:
            dtype[rows] = np.minimum(value, np.uint64(255)).view(np.int64)
        elif number == 2 and wire == BYTES:
            usual[rows[length > 0]] = False
        elif number == 3 and wire == VARINT:
            pass  # version
        elif number in _HOLDERS:
            usual[rows[held[rows] != 0]] = False
            held[rows] = number
            if number == 4 and wire == BYTES:
                bits[rows], width[rows] = words[value], length
            elif wire == BYTES and number in (5, 6):  # packed
                bits[rows] = words[value]
                usual[rows[length != (4 if number == 5 else 8)]] = False
            elif wire == BYTES:
                unpacked, used, good = varints(words, value)
                bits[rows] = unpacked
                usual[rows[(length != used) if good is None else (length != used) | ~good]] = False
            elif wire == {5: FIXED32, 6: FIXED64}.get(number, VARINT):
                bits[rows] = value
            else:
                usual[rows] = False
        else:
            usual[rows] = False
    out, known = np.full(count, np.nan), np.zeros(count, np.bool_)
    for code in np.flatnonzero(np.bincount(dtype)).tolist():
        if code not in single.DTYPES:
            continue
        kind, holder = single.DTYPES[code]
        item = np.dtype(kind).itemsize
        mine = np.flatnonzero(usual & (dtype == code) & ((held == holder) | ((held == 4) & (width == item))))
        out[mine] = _numbers(bits[mine], code, kind, item, held[mine] == 4)
        known[mine] = True
    return out, known


_HOLDERS = {4} | {number for _, number in single.DTYPES.values()}


def _numbers(bits: Words, dtype: int, kind: str, item: int, content: Bools) -> Any:
    if kind == "?":
        return np.where(content, bits & np.uint64(0xFF), bits) != 0
    if dtype == single.BFLOAT16:
        return (bits.astype(np.uint16).astype(np.uint32) << np.uint32(16)).view(np.float32)
    return bits.view(kind)[:: 8 // item]


def _histograms(data: Bytes, words: Words, body: Ints, owner: Ints, odd: Bools) -> Columns:
    """A summary row for each HistogramProto; rows of odd records are meaningless."""
    (start, size), count = body, len(owner)
    known = np.zeros((5, count))  # min, max, num, sum, sum_squares
    edges, weights = np.zeros((2, count), np.int64), np.zeros((2, count), np.int64)
    for rows, number, wire, value, length in lockstep(words, start, start + size, owner, odd):
        if number <= 5 and wire == FIXED64:
            known[number - 1, rows] = value.view(np.float64)
        elif number in (6, 7) and wire == BYTES:
            place = edges if number == 6 else weights
            odd[owner[rows[(place[0, rows] > 0) | (length % 8 != 0)]]] = True
            place[0, rows], place[1, rows] = value, length
        else:
            odd[owner[rows]] = True
    odd[owner[edges[1] != weights[1]]] = True
    sizes = np.where(odd[owner], 0, weights[1] // 8)
    view = data.data
    ends = weights[0] + 8 * sizes
    laid = b"".join([view[s:e] for s, e in zip(weights[0].tolist(), ends.tolist(), strict=True)])
    spot = histograms.place(np.frombuffer(laid, "<f8"), sizes)
    least, most = known[0][spot.rows, None], known[1][spot.rows, None]
    doubles, first = unaligned(data, "<f8"), edges[0][spot.rows, None]
    upper = doubles[first + 8 * spot.bucket]
    lower = np.where(spot.bucket > 0, doubles[first + 8 * np.maximum(spot.bucket - 1, 0)], -np.inf)
    quantiles = np.full((count, len(histograms.QUANTILES)), np.nan)
    quantiles[spot.rows] = histograms.between(lower, upper, spot.fraction, least, most)
    mean, std = histograms.moments(known[2], known[3], known[4])
    columns = {"count": known[2], "min": known[0], "max": known[1], "mean": mean, "std": std}
    return columns | dict(zip(histograms.QUANTILES, quantiles.T, strict=True))
