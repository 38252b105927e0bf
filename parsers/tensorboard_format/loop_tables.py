"""What a loop logs turn by turn, as the table it is: only wall time, step and value differ from turn to turn.

Where the sizes of records repeat, one turn is taken apart; all other turns whose remaining bytes are the same say the
same of other numbers. It takes a third of the time of :mod:`parsers.tensorboard_format.vectorized`, to which everything
else is left: other turns, loops that log more than scalars, records between loops.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from parsers.protobuf_wire import BYTES, FIXED32, FIXED64, VARINT, Span, fields
from parsers.tensorboard_format import one_event as single
from parsers.tensorboard_format.crc32c import Bytes, Ints, unaligned
from parsers.tensorboard_format.tag_names import NO_SCALARS, Names
from parsers.tensorboard_format.tfrecord import Records
from parsers.tensorboard_format.tfrecord_chain import HEADER, LOOK, period_of

Columns = dict[str, npt.NDArray[Any]]
_TURNS = 16  # fewer are not worth a table
_LONGEST = 512  # bytes of an event that may be a plain scalar
_MOST_SHAPES = 16  # that are remembered of a length


@dataclass(frozen=True)
class Shape:
    """Where the parts of a scalar's event lie, in bytes from its payload's start."""

    wall: int
    step: int
    step_size: int  # 0: none is written, which means 0
    tag: Span
    metadata: Span  # of a SummaryMetadata, mostly empty
    value: int
    kind: str  # numpy's name of the value's type
    is_tensor: bool
    mask: int  # the bits that are the same in all events of this shape ...
    bits: int  # ... and how they are


@dataclass
class Loop:
    """``turns`` (t,) by their first record; a turn's records have these ``shapes``."""

    first: int  # its first record in the window, ...
    end: int  # ... and the one behind its last
    turns: Ints
    shapes: list[Shape]
    changed: Bytes  # the bits of a turn, its first record's header included, that are not the same in all turns

    def others(self) -> Ints:
        """Records of turns that are not like the first."""
        inside = np.ones(self.end - self.first, np.bool_)
        inside[np.add.outer(self.turns - self.first, np.arange(len(self.shapes)))] = False
        return np.flatnonzero(inside) + self.first


Shapes = dict[int, list[Shape]]  # by the length of the event


def find(records: Records, known: Shapes) -> Loop | None:
    """The loop around the middle of these records; None where there is none that logs plain scalars only."""
    start, length, middle = records.start, records.length, len(records.start) // 2
    period = period_of(length[max(middle - LOOK, 0) : middle]) if middle >= _TURNS else 0
    if not period:
        return None
    size = int(start[middle] - start[middle - period])
    breaks = np.flatnonzero((length[period:] != length[:-period]) | (start[period:] - start[:-period] != size))
    here = int(np.searchsorted(breaks, middle - period))
    first = int(breaks[here - 1]) + 1 if here else 0
    end = int(breaks[here]) + period if here < len(breaks) else len(start)
    turns = (end - first) // period
    payloads = [_payload(records, i) for i in range(first, first + period)]
    if turns < _TURNS or max(map(len, payloads)) > _LONGEST:
        return None
    shapes = []
    for payload in payloads:
        if (shape := _shape_of(payload, known)) is None:
            return None
        shapes.append(shape)
    alike, changed = _alike(records, first, turns, size, shapes)
    if alike.mean() < 0.9:
        return None
    return Loop(first, first + turns * period, first + period * np.flatnonzero(alike), shapes, changed)


def _payload(records: Records, i: int) -> bytes:
    start = int(records.start[i])
    return records.data[start : start + int(records.length[i])].tobytes()


def _alike(records: Records, first: int, turns: int, size: int, shapes: list[Shape]) -> tuple[npt.NDArray[np.bool_], Bytes]:
    """-> which turns say the same of other numbers as the first one, and the bits of a turn that change at all."""
    base = int(records.start[first]) - HEADER
    fixed = np.zeros(size + -size % 8, np.uint8)
    turn = slice(first, first + len(shapes))
    for start, length, shape in zip(records.start[turn].tolist(), records.length[turn].tolist(), shapes, strict=True):
        at = start - base
        fixed[at - HEADER : at] = 0xFF
        fixed[at : at + length] = np.frombuffer(shape.mask.to_bytes(length, "little"), np.uint8)
    rows = np.ndarray((turns, len(fixed) // 8), "<u8", records.data, base, (size, 8))
    other = rows ^ rows[0]
    changed, mask = np.bitwise_or.reduce(other, axis=0), fixed.view(np.uint64)
    if not (changed & mask).any():
        return np.ones(turns, np.bool_), changed.view(np.uint8)
    other &= mask
    return ~other.any(axis=1), changed.view(np.uint8)


def decode(records: Records, loop: Loop, names: Names) -> tuple[Columns, Ints]:
    """-> the metrics of a loop in the order of the file, each with its ``record``; and the records of tensors by which a
    plugin means something else: they are not among the metrics."""
    shapes, data = loop.shapes, records.data
    record = np.add.outer(loop.turns, np.arange(len(shapes)))
    at, words = records.start[record], unaligned(data, "<u8")
    tags = _tags(records, loop, at, names)
    refused = np.array([s.is_tensor for s in shapes]) & names.are(NO_SCALARS)[tags].any(axis=0)
    value = np.empty(at.shape)
    for kind in {s.kind for s in shapes}:
        mine = np.array([s.kind == kind for s in shapes])
        with np.errstate(invalid="ignore"):  # a signalling NaN is a value too
            value[:, mine] = unaligned(data, kind)[(at + np.array([s.value for s in shapes]))[:, mine]]
    time = words[at + np.array([s.wall for s in shapes])].view(np.float64)
    step = _steps(words[at + np.array([s.step for s in shapes])], [s.step_size for s in shapes])
    columns = {"record": record, "step": step, "tag": tags, "value": value, "time": time}
    return {name: column[:, ~refused].ravel() for name, column in columns.items()}, record[:, refused].ravel()


def _tags(records: Records, loop: Loop, at: Ints, names: Names) -> npt.NDArray[np.int32]:
    """Their codes (turns, n), looked at one by one only in places where they are not the same in all turns."""
    data, words = records.data, unaligned(records.data, "<u8")
    tags = np.empty(at.shape, np.int32)
    for k, s in enumerate(loop.shapes):
        start = int(at[0, k])
        here = start - int(at[0, 0]) + HEADER
        if loop.changed[here + s.tag[0] : here + s.tag[1]].any():
            tags[:, k] = names.tags.codes(data, words, at[:, k] + s.tag[0], np.full(len(at), s.tag[1] - s.tag[0]))
        else:
            tags[:, k] = names.tags.code(data[start + s.tag[0] : start + s.tag[1]].tobytes())
        if s.metadata[1]:
            told = names.metadata.code(data[start + s.metadata[0] : start + s.metadata[1]].tobytes())
            names.learn(tags[:, k], np.full(len(at), told))
    return tags


def _steps(raw: npt.NDArray[np.uint64], sizes: list[int]) -> Ints:
    """The varints at the front of these words, (turns, n), of one size in each column."""
    raw = raw & np.array([(1 << 8 * size) - 1 for size in sizes], np.uint64)
    step = raw & np.uint64(0x7F)
    for k in range(1, max(sizes)):
        step |= (raw >> np.uint64(k)) & np.uint64(0x7F << 7 * k)
    return step.view(np.int64)


def _shape_of(payload: bytes, known: Shapes) -> Shape | None:
    bits = int.from_bytes(payload, "little")
    alike = known.setdefault(len(payload), [])
    for one in alike:
        if bits & one.mask == one.bits:
            return one
    shape = _shape(payload)
    if shape is not None and len(alike) < _MOST_SHAPES:
        alike.append(shape)
    return shape


def _shape(payload: bytes) -> Shape | None:
    """The shape of this event; None where it is not one scalar, each part of it given once, in any order."""
    data, nothing = memoryview(payload), (0, 0)
    try:
        event = _parts(data, (0, len(data)), {1: (FIXED64,), 2: (VARINT,), single.SUMMARY: (BYTES,)})
        summary = _parts(data, event[single.SUMMARY], {1: (BYTES,)})
        value = _parts(data, summary[1], {1: (BYTES,), 9: (BYTES,), single.SIMPLE: (FIXED32,), single.TENSOR: (BYTES,)})
        is_tensor = single.TENSOR in value
        number, kind = _number(data, value[single.TENSOR]) if is_tensor else (value[single.SIMPLE], "<f4")
        wall, step, tag, metadata = event[1], event.get(2, nothing), value.get(1, nothing), value.get(9, nothing)
    except (KeyError, ValueError):
        return None
    if step[1] - step[0] > 8 or (is_tensor and single.SIMPLE in value):
        return None
    fixed = bytearray(b"\xff" * len(data))
    for (first, end), bits in ((wall, 0), (tag, 0), (number, 0), (step, 0x80)):
        fixed[first:end] = bytes([bits]) * (end - first)
    mask = int.from_bytes(fixed, "little")
    bits = int.from_bytes(payload, "little") & mask
    return Shape(wall[0], step[0], step[1] - step[0], tag, metadata, number[0], kind, is_tensor, mask, bits)


def _number(data: memoryview, span: Span) -> tuple[Span, str]:
    """-> where the one number of a tensor without dimensions lies, and its type. KeyError or ValueError where there is none."""
    parts = _parts(data, span, {1: (VARINT,), 2: (BYTES,), 3: (VARINT,), 4: (BYTES,), 5: (BYTES, FIXED32), 6: (BYTES, FIXED64)})
    (held,) = parts.keys() & {4, 5, 6}
    kind, holder = {1: ("<f4", 5), 2: ("<f8", 6)}[data[parts[1][0]]]
    shape, (at, stop) = parts.get(2, (0, 0)), parts[held]
    if shape[0] != shape[1] or held not in (4, holder) or stop - at != int(kind[2]):
        raise ValueError
    return (at, stop), kind


def _parts(data: memoryview, span: Span, wanted: dict[int, tuple[int, ...]]) -> dict[int, Span]:
    """Where each field of a message lies. ValueError where one comes twice, or is not of a wanted number and wire type."""
    found: dict[int, Span] = {}
    before = span[0]
    for number, wire, at, stop in fields(data, span):
        if number in found or wire not in wanted.get(number, ()) or (wire == VARINT and data[before] & 0x80):
            raise ValueError
        first = {VARINT: before + 1, FIXED32: stop - 4, FIXED64: stop - 8}.get(wire, at)
        found[number], before = (first, stop), stop
    return found
