"""Scalars of a stretch of events whose sizes repeat (:mod:`parsers.tensorboard_format.tfrecord_rhythm`): one look at a turn reads them all.

What a loop logs at every step differs only in its numbers. Each event of one turn is taken apart; the bytes of its wall
time, step, tag and value are free, and all others must come again in every turn. Where they do, protobuf would read every
turn as it reads that one. Turns and events of which that is not true, and whatever is no plain scalar, are left to
:mod:`parsers.tensorboard_format.vectorized`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from parsers.protowalk import BYTES, FIXED32, FIXED64, VARINT, Words, chosen, fields
from parsers.tensorboard_format import one_event as single
from parsers.tensorboard_format.crc32c import Bytes, Ints, unaligned
from parsers.tensorboard_format.tag_names import LONGEST, NO_SCALARS, Names
from parsers.tensorboard_format.tfrecord_chain import FOOTER, HEADER
from parsers.tensorboard_format.tfrecord_rhythm import Stretch

Bools = npt.NDArray[np.bool_]
Columns = dict[str, npt.NDArray[Any]]
_LONGEST = 512  # bytes of an event that may be a plain scalar
_MOST_SHAPES, _MOST_MASKS, _MOST_TURNS = 4096, 32, 256  # that are remembered: of a file, of a length, of a file
_FEW = 0.1  # share of turns that may be unlike the others before one asks which events make them so


@dataclass(frozen=True)
class Shape:
    """Where the parts of a scalar's event lie, in bytes from its payload's start."""

    wall: int
    step: int
    step_size: int  # 0: none is written, which means 0
    tag: int
    tag_size: int
    metadata: bytes  # a SummaryMetadata, mostly empty
    value: int
    width: int  # bytes of the value: a float or a double
    is_tensor: bool
    fixed: Bytes  # 0xFF where a byte must be as it is, 0 in a number or text, 0x80 in a varint


@dataclass(frozen=True)
class Turn:
    """The shapes of the events of a turn, an entry for each, (p,); zeros where there is none."""

    shapes: list[Shape | None]
    starts: Ints  # of their frames, from the turn's start
    known: Bools
    fixed: Bytes  # (bytes of a turn, filled up to whole words,): bits that must be as they are
    tags: Bytes  # the same: bits of tags
    wall: Ints
    step: Ints
    step_bits: Words  # those of the varint that are number
    tag: Ints
    tag_size: Ints
    value: Ints
    width: Ints
    is_tensor: Bools

    def widest_step(self) -> int:
        return max(s.step_size for s in self.shapes if s)


@dataclass
class Shapes:
    """Shapes by the bytes that an event must have to be of that shape."""

    known: dict[tuple[int, int], Shape] = field(default_factory=dict)  # (length, fixed bytes as a number)
    masks: dict[int, list[int]] = field(default_factory=dict)  # by length
    turns: dict[tuple[Any, ...], Turn] = field(default_factory=dict)  # by sizes and shapes

    def turn(self, data: Bytes, at: int, sizes: Ints) -> Turn:
        """The shapes of the events that lie there, one behind the other."""
        ends = (at + np.cumsum(sizes)).tolist()
        spans = zip(ends, sizes.tolist(), strict=True)
        found = [self._of(bytes(data.data[end - size + HEADER : end - FOOTER])) if size <= _LONGEST else None for end, size in spans]
        key = (sizes.tobytes(), *map(id, found))
        if key not in self.turns:
            if len(self.turns) >= _MOST_TURNS:
                self.turns.clear()
            self.turns[key] = _turn(found, sizes)
        return self.turns[key]

    def _of(self, payload: bytes) -> Shape | None:
        """The shape of this event; None where it is no plain scalar."""
        size, bits = len(payload), int.from_bytes(payload, "little")
        for mask in self.masks.get(size, ()):
            if (found := self.known.get((size, bits & mask))) is not None:
                return found
        try:
            shape = _shape(memoryview(payload))
        except ValueError:
            return None
        if shape is not None and len(self.known) < _MOST_SHAPES:
            mask = int.from_bytes(shape.fixed.tobytes(), "little")
            masks = self.masks.setdefault(size, [])
            if mask not in masks and len(masks) < _MOST_MASKS:
                masks.append(mask)
            self.known[size, bits & mask] = shape
        return shape


def _turn(shapes: list[Shape | None], sizes: Ints) -> Turn:
    starts = np.cumsum(sizes) - sizes
    fixed, tags = np.zeros((2, int(sizes.sum() + -sizes.sum() % 8)), np.uint8)
    for start, s in zip((starts + HEADER).tolist(), shapes, strict=True):
        if s is not None:
            fixed[start : start + len(s.fixed)] = s.fixed
            tags[start + s.tag : start + s.tag + s.tag_size] = 0xFF

    def each(name: str) -> npt.NDArray[Any]:
        return np.array([getattr(s, name) if s else 0 for s in shapes])

    bits = np.array([(1 << 8 * s.step_size) - 1 & 0x7F7F7F7F7F7F7F7F if s else 0 for s in shapes], np.uint64)
    return Turn(shapes, starts, np.array([s is not None for s in shapes]), fixed, tags, each("wall"), each("step"), bits,
                each("tag"), each("tag_size"), each("value"), each("width"), each("is_tensor").astype(np.bool_))  # fmt: skip


def _shape(data: memoryview) -> Shape | None:
    """Of an event with one scalar in it, each part given once, in any order."""
    free: dict[tuple[int, int], int] = {}  # (first byte, end) -> the bits of each that are fixed
    wall, step, step_end, summary, before = -1, 0, 0, None, 0
    for number, wire, at, stop in fields(data, (0, len(data))):
        if number == 1 and wire == FIXED64 and wall < 0:
            wall = stop - 8
            free[wall, stop] = 0
        elif number == 2 and wire == VARINT and not step_end and data[before] < 0x80 and stop - before <= 9:
            step, step_end = before + 1, stop
            free[step, stop] = 0x80
        elif number == single.SUMMARY and wire == BYTES and summary is None:
            summary = (at, stop)
        else:
            return None
        before = stop
    values = list(fields(data, summary)) if summary else []
    if len(values) != 1 or values[0][:2] != (1, BYTES) or wall < 0:
        return None
    tag: tuple[int, int] | None = None
    metadata: tuple[int, int] | None = None
    value: tuple[int, int] | None = None
    tensor = False
    for number, wire, at, stop in fields(data, values[0][2:]):
        if number == 1 and wire == BYTES and tag is None:
            tag = (at, stop)
        elif number == 9 and wire == BYTES and metadata is None:
            metadata = (at, stop)
        elif number == single.SIMPLE and wire == FIXED32 and value is None:
            value = (stop - 4, stop)
        elif number == single.TENSOR and wire == BYTES and value is None and (held := _tensor(data, at, stop)):
            value, tensor = held, True
        else:
            return None
    if value is None:
        return None
    tag = tag or (0, 0)
    free |= {tag: 0, value: 0}
    fixed = bytearray(b"\xff" * len(data))
    for (first, end), bits in free.items():
        fixed[first:end] = bytes([bits]) * (end - first)
    told = bytes(data[slice(*metadata)]) if metadata else b""
    size, width = tag[1] - tag[0], value[1] - value[0]
    if size > LONGEST:
        return None
    return Shape(wall, step, step_end - step, tag[0], size, told, value[0], width, tensor, np.frombuffer(fixed, np.uint8))


def _tensor(data: memoryview, start: int, end: int) -> tuple[int, int] | None:
    """Where the one float or double of a tensor without dimensions lies."""
    dtype, held, value = 0, 0, (0, 0)
    for number, wire, at, stop in fields(data, (start, end)):
        if number == 1 and wire == VARINT and not dtype:
            dtype = at
        elif (number == 2 and wire == BYTES and at == stop) or (number == 3 and wire == VARINT):
            pass  # no dimensions; a version
        elif number in (4, 5, 6) and wire == BYTES and not held:
            held, value = number, (at, stop)
        elif (number, wire) in ((5, FIXED32), (6, FIXED64)) and not held:
            held, value = number, (stop - (4 if number == 5 else 8), stop)
        else:
            return None
    width = {1: 4, 2: 8}.get(dtype, 0)
    return value if held in (4, 4 + dtype) and value[1] - value[0] == width else None


@dataclass(frozen=True)
class Table:
    """What of a stretch can be read as columns: turns (turns,) that are ``alike``, and ``plain`` places (k,) in them."""

    stretch: Stretch
    turn: Turn
    alike: Bools
    plain: Ints
    changed: Bytes  # (bytes of a turn, filled up,): bits that are not the same in all these turns

    def is_whole(self) -> bool:
        """Is every record of the stretch in it?"""
        return len(self.plain) == len(self.stretch.sizes) and bool(self.alike.all())


def look(data: Bytes, stretch: Stretch, bad: Ints, shapes: Shapes) -> Table:
    """Which scalars are there. ``bad`` are the places of records whose checksum does not hold: their turns are left out."""
    alike = np.ones(stretch.turns, np.bool_)
    alike[(bad[(bad >= stretch.at) & (bad < stretch.end)] - stretch.at) // stretch.size] = False
    first = int(alike.argmax())
    turn = shapes.turn(data, stretch.at + first * stretch.size, stretch.sizes)
    changed = _changed(data, stretch, alike, first, turn)
    steady = np.bitwise_or.reduceat(changed & turn.fixed, turn.starts) == 0
    return Table(stretch, turn, alike, np.flatnonzero(turn.known & steady & alike.any()), changed)


def together(tables: list[Table]) -> list[list[Table]]:
    """Those that can be decoded at once; without those that hold nothing."""
    found: dict[tuple[int, bytes], list[Table]] = {}
    for t in tables:
        if len(t.plain):
            found.setdefault((id(t.turn), t.plain.tobytes()), []).append(t)
    return list(found.values())


def decode(data: Bytes, tables: list[Table], names: Names) -> tuple[Columns, Ints]:
    """Tables of one turn and with the same plain places -> metrics, each with ``at``, the place of its record in ``data``;
    and those places (k,) whose tensors belong to a plugin that means something else by them: they are not among them."""
    turn, plain = tables[0].turn, tables[0].plain
    starts = [t.stretch.at + np.flatnonzero(t.alike) * t.stretch.size for t in tables]
    heads = np.add.outer(np.concatenate(starts), turn.starts[plain])
    payloads = heads + HEADER
    words = unaligned(data, "<u8")
    tags = _tags(data, words, payloads, np.array([len(s) for s in starts]), tables, names)
    value = np.empty(heads.shape)
    with np.errstate(invalid="ignore"):  # a signalling NaN is a value too
        for width, kind in ((4, "<f4"), (8, "<f8")):
            columns = chosen(turn.width[plain] == width)
            value[:, columns] = unaligned(data, kind)[(payloads + turn.value[plain])[:, columns]]
    metrics = {"at": heads, "step": _steps(words, payloads, plain, turn), "tag": tags, "value": value,
               "time": words[payloads + turn.wall[plain]].view(np.float64)}  # fmt: skip
    refused = turn.is_tensor[plain] & names.are(NO_SCALARS)[tags].any(axis=0)
    kept = chosen(~refused)
    return {name: column[:, kept].ravel() for name, column in metrics.items()}, plain[refused]


def _changed(data: Bytes, stretch: Stretch, alike: Bools, first: int, turn: Turn) -> Bytes:
    """The bits (bytes of a turn, filled up,) that are not in all turns as they are in the first. A few turns in which
    such a bit should be fixed are no longer ``alike`` instead."""
    rows = np.ndarray((stretch.turns, len(turn.fixed) // 8), "<u8", data, stretch.at, (stretch.size, 8))
    other = rows ^ rows[first]
    if not alike.all():
        other[~alike] = 0
    together: Words = np.bitwise_or.reduce(other, axis=0)
    if (together.view(np.uint8) & turn.fixed).any():
        unlike = np.flatnonzero((other & turn.fixed.view(np.uint64)).any(axis=1))
        if len(unlike) <= _FEW * stretch.turns:
            alike[unlike] = False
            other[unlike] = 0
            together = np.bitwise_or.reduce(other, axis=0)
    return together.view(np.uint8)


def _tags(data: Bytes, words: Words, payloads: Ints, turns: Ints, tables: list[Table], names: Names) -> npt.NDArray[np.int32]:
    """Their codes (turns, k), one by one only where they change from turn to turn. What metadata say of them is learnt."""
    turn, plain = tables[0].turn, tables[0].plain
    at, sizes = payloads + turn.tag[plain], turn.tag_size[plain]

    def codes_at(places: Ints, of: Ints) -> npt.NDArray[np.int32]:
        return names.tags.codes(data, words, places.ravel(), np.broadcast_to(of, places.shape).ravel()).reshape(places.shape)

    codes = np.repeat(codes_at(at[np.cumsum(turns) - turns], sizes), turns, axis=0)
    changed: Bytes = np.bitwise_or.reduce([t.changed for t in tables], axis=0)
    columns = np.flatnonzero(np.bitwise_or.reduceat(changed & turn.tags, turn.starts)[plain])
    if len(columns):
        codes[:, columns] = codes_at(at[:, columns], sizes[columns])
    told = [(i, s.metadata) for i, k in enumerate(plain.tolist()) if (s := turn.shapes[k]) and s.metadata]
    if told:
        what = np.array([names.metadata.code(metadata) for _, metadata in told])
        names.learn(codes[:, [i for i, _ in told]].ravel(), np.broadcast_to(what, (len(codes), len(told))).ravel())
    return codes


def _steps(words: Words, payloads: Ints, plain: Ints, turn: Turn) -> Ints:
    """The varints, of one size in each column."""
    raw = words[payloads + turn.step[plain]] & turn.step_bits[plain]
    step: Words = raw & np.uint64(0x7F)
    for k in range(1, turn.widest_step()):
        step |= (raw >> np.uint64(k)) & np.uint64(0x7F << 7 * k)
    return step.view(np.int64)
