"""Thousands of TensorBoard events at once: scalars, tensor scalars, texts and histograms of the usual shapes.

The walk goes down four levels (Event, Summary, Value, TensorProto or HistogramProto), each level for all records
together. A record is taken as a whole or not at all: anything unusual in it (another kind of value, a field given
twice, an unknown one, a wrong wire type) makes it *odd*, and :mod:`parsers.tensorboard_format.one_event` reads it alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from parsers.protobuf_wire import BYTES, FIXED32, FIXED64, VARINT, Ints, Words, chosen, lockstep, varints
from parsers.tensorboard_format import histograms
from parsers.tensorboard_format import one_event as single
from parsers.tensorboard_format.crc32c import Bytes, unaligned
from parsers.tensorboard_format.tag_names import NO_SCALARS, Names

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]
Columns = dict[str, npt.NDArray[Any]]
_STATISTICS = ("min", "max", "count", "total", "squares")
_TEXT = 100  # the kind of a tensor that holds one string; no field of a Value has this number


@dataclass
class Decoded:
    """Columns of the records that were understood; ``record`` says of which."""

    metrics: Columns
    histograms: Columns
    texts: Columns  # where each lies: ``body_at``, ``body_size``
    counts: dict[str, int]
    odd: Ints  # records that were not


def decode(data: Bytes, start: Ints, length: Ints, names: Names) -> Decoded:
    """Events that lie at these places, as columns."""
    words = unaligned(data, "<u8")
    odd = np.zeros(len(start), np.bool_)
    with np.errstate(invalid="ignore"):  # a signalling NaN is a value too
        wall, step, values = _events(words, start, length, odd)
        tensors = chosen(values["kind"] == single.TENSOR)
        values["number"][tensors] = _tensors(words, values, tensors, odd)
    summary = _histograms(data, words, _pick(values, chosen(values["kind"] == single.HISTOGRAM)), odd)

    values = _even(values, odd)
    values["tag"] = names.tags.codes(data, words, values["tag_at"], values["tag_size"])
    described = _pick(values, chosen(values["plugin_size"] > 0))
    names.learn(described["tag"], names.metadata.codes(data, words, described["plugin_at"], described["plugin_size"]))
    kind, written = values["kind"], values["kind"] == _TEXT
    refused = (kind == single.TENSOR) & names.are(NO_SCALARS)[values["tag"]]
    if written.any():
        refused |= written & ~names.are(("text",))[values["tag"]]
    if refused.any():
        odd[values["record"][refused]] = True
        values = _even(values, odd)
        kind = values["kind"]
    scalars = _pick(values, chosen((kind == single.SIMPLE) | (kind == single.TENSOR)))
    of = scalars["record"]
    metrics = {"record": of, "step": step[of], "tag": scalars["tag"], "value": scalars["number"], "time": wall[of]}
    if len(summary["record"]):
        summary = _even(summary, odd)
        of = summary["record"]
        summary |= {"step": step[of], "tag": values["tag"][kind == single.HISTOGRAM], "time": wall[of]}
    texts = _pick(values, kind == _TEXT)
    of = texts["record"]
    texts = {name: texts[name] for name in ("record", "tag", "body_at", "body_size")} | {"step": step[of], "time": wall[of]}
    counts = {"image": int((kind == single.IMAGE).sum()), "audio clip": int((kind == single.AUDIO).sum())}
    return Decoded(metrics, summary, texts, counts, np.flatnonzero(odd))


def _pick(columns: Columns, rows: Any) -> Columns:
    return {name: column[rows] for name, column in columns.items()}


def _even(columns: Columns, odd: Bools) -> Columns:
    """Without the rows of odd records."""
    return _pick(columns, chosen(~odd[columns["record"]])) if odd.any() else columns


def _events(words: Words, start: Ints, length: Ints, odd: Bools) -> tuple[Floats, Ints, Columns]:
    """-> wall time and step by record; and of all values their record, kind, number, and where their parts lie."""
    wall, step = np.zeros(len(start)), np.zeros(len(start), np.int64)
    nothing = np.zeros(0, np.int64)
    owners, starts, sizes = [nothing], [nothing], [nothing]
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
    owner, at, size = np.concatenate(owners), np.concatenate(starts), np.concatenate(sizes)
    if (owner[1:] < owner[:-1]).any():  # several values in a record: back to file order
        order = np.argsort(owner, kind="stable")
        owner, at, size = owner[order], at[order], size[order]
    return wall, step, _values(words, owner, at, size, odd)


def _values(words: Words, owner: Ints, start: Ints, size: Ints, odd: Bools) -> Columns:
    count = len(owner)
    kind, value = np.zeros(count, np.int8), np.full(count, np.nan)
    tag_at, tag_size, plugin_at, plugin_size, body_at, body_size = (np.zeros(count, np.int64) for _ in range(6))
    for rows, number, wire, at, length in lockstep(words, start, start + size, owner, odd):
        if number == 1 and wire == BYTES:
            tag_at[rows], tag_size[rows] = at, length
        elif number == 9 and wire == BYTES:
            odd[owner[rows[plugin_at[rows] > 0]]] = True  # in two parts
            plugin_at[rows], plugin_size[rows] = at, length
        elif (number == single.SIMPLE and wire == FIXED32) or (number in _BODIES and wire == BYTES):
            odd[owner[rows[kind[rows] != 0]]] = True  # two values: the last one counts, but two parts of one are one
            kind[rows] = number
            if number == single.SIMPLE:
                value[rows] = at.view(np.float32)
            else:
                body_at[rows], body_size[rows] = at, length
        else:
            odd[owner[rows]] = True
    odd[owner[kind == 0]] = True
    return {
        "record": owner,
        "kind": kind,
        "number": value,
        "tag_at": tag_at,
        "tag_size": tag_size,
        "plugin_at": plugin_at,
        "plugin_size": plugin_size,
        "body_at": body_at,
        "body_size": body_size,
    }


_BODIES = (single.IMAGE, single.HISTOGRAM, single.AUDIO, single.TENSOR)


def _tensors(words: Words, values: Columns, tensors: Any, odd: Bools) -> Floats:
    """The number that each of these tensors holds. One that holds a string becomes a _TEXT, its body that string. Where it
    is neither one string nor one number of a type we know, without dimensions, its record is odd."""
    owner, start, size = (values[name][tensors] for name in ("record", "body_at", "body_size"))
    told = _tensor_fields(words, start, start + size, owner, odd)
    dtype, held, width, bits = (told[name] for name in ("dtype", "held", "width", "bits"))
    out, known = np.full(len(owner), np.nan), np.zeros(len(owner), np.bool_)
    for code in np.flatnonzero(np.bincount(dtype)).tolist():
        mine = told["usual"] & (dtype == code)
        if code == single.STRING:
            mine &= held == _STRINGS
            at = np.arange(len(values["kind"]))[tensors][mine]
            values["kind"][at], values["body_at"][at], values["body_size"][at] = _TEXT, bits[mine].view(np.int64), width[mine]
        elif code in single.DTYPES:
            kind, holder = single.DTYPES[code]
            item = np.dtype(kind).itemsize
            mine &= ~told["shaped"] & ((held == holder) | ((held == _CONTENT) & (width == item)))
            out[mine] = _numbers(bits[mine], code, kind, item, held[mine] == _CONTENT)
        else:
            continue
        known |= mine
    odd[owner[~known]] = True
    return out


_CONTENT, _STRINGS = 4, 8
_HOLDERS = {_CONTENT, _STRINGS} | {number for _, number in single.DTYPES.values()}


def _tensor_fields(words: Words, start: Ints, end: Ints, owner: Ints, odd: Bools) -> Columns:
    """Of each tensor its type, which field holds its value, that field's size and bits (of a string: where it begins),
    whether it has dimensions, and whether all that is ``usual``."""
    count = len(owner)
    dtype, held, width = np.zeros(count, np.int64), np.zeros(count, np.int8), np.zeros(count, np.int64)
    bits = np.zeros(count, np.uint64)
    usual, shaped = np.ones(count, np.bool_), np.zeros(count, np.bool_)
    for rows, number, wire, value, length in lockstep(words, start, end, owner, odd):
        if number == 1 and wire == VARINT:
            dtype[rows] = np.minimum(value, np.uint64(255)).view(np.int64)
        elif number == 2 and wire == BYTES:
            shaped[rows[length > 0]] = True
        elif number in _HOLDERS:
            usual[rows[held[rows] != 0]] = False
            held[rows] = number
            bits[rows], width[rows], good = _held(words, number, wire, value, length)
            usual[rows] &= good
        elif number != 3 or wire != VARINT:  # 3: a version
            usual[rows] = False
    return {"dtype": dtype, "held": held, "width": width, "bits": bits, "usual": usual, "shaped": shaped}


def _held(words: Words, number: int, wire: int, value: Any, length: Any) -> tuple[Any, Any, Any]:
    """-> the bits of a tensor's value (of a string: where it begins), the field's size, and whether it is one value."""
    if wire != BYTES:
        return value, 0, wire == {5: FIXED32, 6: FIXED64, _CONTENT: -1, _STRINGS: -1}.get(number, VARINT)
    if number == _STRINGS:
        return value.view(np.uint64), length, True
    if number in (_CONTENT, 5, 6):
        return words[value], length, number == _CONTENT or length == (4 if number == 5 else 8)
    unpacked, used, good = varints(words, value)
    return unpacked, length, length == used if good is None else (length == used) & good


def _numbers(bits: Words, dtype: int, kind: str, item: int, content: Bools) -> Any:
    if kind == "?":
        return np.where(content, bits & np.uint64(0xFF), bits) != 0
    if dtype == single.BFLOAT16:
        return (bits.astype(np.uint16).astype(np.uint32) << np.uint32(16)).view(np.float32)
    return bits.view(kind)[:: 8 // item]


def _histograms(data: Bytes, words: Words, values: Columns, odd: Bools) -> Columns:
    """A summary row for each HistogramProto; rows of odd records are meaningless."""
    owner, start, size = values["record"], values["body_at"], values["body_size"]
    if not len(owner):
        return {"record": owner}
    known = {name: np.zeros(len(owner)) for name in _STATISTICS}
    edges_at, edges_size, weights_at, weights_size = (np.zeros(len(owner), np.int64) for _ in range(4))
    for rows, number, wire, value, length in lockstep(words, start, start + size, owner, odd):
        if number <= len(_STATISTICS) and wire == FIXED64:
            known[_STATISTICS[number - 1]][rows] = value.view(np.float64)
        elif number in (6, 7) and wire == BYTES:  # packed
            at, sizes = (edges_at, edges_size) if number == 6 else (weights_at, weights_size)
            odd[owner[rows[(at[rows] > 0) | (length % 8 != 0)]]] = True
            at[rows], sizes[rows] = value, length
        else:
            odd[owner[rows]] = True
    odd[owner[edges_size != weights_size]] = True

    counts = np.where(odd[owner], 0, weights_size // 8)
    ends = weights_at + 8 * counts
    laid = b"".join([data.data[s:e] for s, e in zip(weights_at.tolist(), ends.tolist(), strict=True)])
    spot = histograms.place(np.frombuffer(laid, "<f8"), counts)
    doubles, first = unaligned(data, "<f8"), edges_at[spot.rows, None]
    upper = doubles[first + 8 * spot.bucket]
    lower = np.where(spot.bucket > 0, doubles[first + 8 * np.maximum(spot.bucket - 1, 0)], -np.inf)
    least, most = known["min"][spot.rows, None], known["max"][spot.rows, None]
    quantiles = np.full((len(owner), len(histograms.QUANTILES)), np.nan)
    quantiles[spot.rows] = histograms.between(lower, upper, spot.fraction, least, most)
    known["mean"], known["std"] = histograms.moments(known["count"], known.pop("total"), known.pop("squares"))
    return {"record": owner} | known | dict(zip(histograms.QUANTILES, quantiles.T, strict=True))
