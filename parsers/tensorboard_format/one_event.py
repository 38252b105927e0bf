"""One TensorBoard event at a time: the readable way, for whatever the lockstep path leaves.

Field numbers are those of TensorFlow's ``event.proto``, ``summary.proto``, ``tensor.proto`` and ``types.proto``.
"""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from parsers.protobuf_wire import BYTES, FIXED32, FIXED64, VARINT, Malformed, Span, fields, signed, varint

FILE_VERSION, GRAPH, SUMMARY, LOG, SESSION, RUN_METADATA, META_GRAPH = 3, 4, 5, 6, 7, 8, 9  # Event.what
SIMPLE, OLD_HISTOGRAM, IMAGE, HISTOGRAM, AUDIO, TENSOR = 2, 3, 4, 5, 6, 8  # Summary.Value.value
STRING, BFLOAT16 = 7, 14
# DataType -> numpy type, and the field of TensorProto that holds such values one by one
DTYPES = {
    1: ("<f4", 5),
    2: ("<f8", 6),
    3: ("<i4", 7),
    4: ("u1", 7),
    5: ("<i2", 7),
    6: ("i1", 7),
    9: ("<i8", 10),
    10: ("?", 11),
    BFLOAT16: ("<u2", 13),
    17: ("<u2", 7),
    19: ("<f2", 13),
    22: ("<u4", 16),
    23: ("<u8", 17),
}
Floats = npt.NDArray[np.float64]
_FLOATS = {5: "<f4", 6: "<f8"}


@dataclass
class Value:
    """A ``Summary.Value``; ``kind`` is the number of the field that holds the value, 0 where there is none."""

    tag: bytes = b""
    kind: int = 0
    number: float = math.nan  # of SIMPLE
    parts: list[Span] = field(default_factory=list)  # of the others
    plugin: str | None = None
    content: list[Span] = field(default_factory=list)  # the plugin's own data


@dataclass
class Event:
    wall: float = 0.0
    step: int = 0
    what: int = 0  # number of the field that is there
    parts: list[Span] = field(default_factory=list)
    values: list[Value] = field(default_factory=list)


def event(data: memoryview, start: int, end: int) -> Event:
    """The event that lies there. Malformed where it is none."""
    out = Event()
    for number, wire, value, stop in fields(data, (start, end)):
        if number == 1 and wire == FIXED64:
            out.wall = double(value)
        elif number == 2 and wire == VARINT:
            out.step = signed(value)
        elif FILE_VERSION <= number <= META_GRAPH and wire == BYTES:
            if out.what != number:
                out.what, out.parts = number, []
            out.parts.append((value, stop))
    if out.what == SUMMARY:
        spans = fields(data, *out.parts)
        out.values = [_value(data, at, stop) for number, wire, at, stop in spans if number == 1 and wire == BYTES]
    return out


def _value(data: memoryview, start: int, end: int) -> Value:
    out, metadata = Value(), []
    for number, wire, at, stop in fields(data, (start, end)):
        if number == 1 and wire == BYTES:
            out.tag = bytes(data[at:stop])
        elif number == 9 and wire == BYTES:
            metadata.append((at, stop))
        elif number == SIMPLE and wire == FIXED32:
            out.kind, out.parts, out.number = SIMPLE, [], struct.unpack("<f", at.to_bytes(4, "little"))[0]
        elif number in (OLD_HISTOGRAM, IMAGE, HISTOGRAM, AUDIO, TENSOR) and wire == BYTES:
            if out.kind != number:
                out.kind, out.parts = number, []
            out.parts.append((at, stop))
    if metadata:
        out.plugin, out.content = plugin(data, *metadata)
    return out


def plugin(data: memoryview, *metadata: Span) -> tuple[str | None, list[Span]]:
    """-> name of the plugin in a ``SummaryMetadata`` (None: it names none), and where its own data lie."""
    own = [(at, stop) for number, wire, at, stop in fields(data, *metadata) if number == 1 and wire == BYTES]
    name, content = None, []
    for number, wire, at, stop in fields(data, *own):
        if number == 1 and wire == BYTES:
            name = text(data[at:stop])
        elif number == 2 and wire == BYTES:
            content = [(at, stop)]
    return name or None, content


# ----------------------------------------------------------------------------------------------------------- tensors


@dataclass
class Tensor:
    dtype: int
    shape: tuple[int, ...]
    numbers: npt.NDArray[Any] | None  # None: not of a type we know
    strings: list[str]

    def scalar(self) -> float | None:
        """Its only element, where it is one number."""
        if self.numbers is None or len(self.numbers) != 1 or any(size != 1 for size in self.shape):
            return None
        return float(self.numbers[0])


def tensor(data: memoryview, parts: list[Span]) -> Tensor:
    """A ``TensorProto``. Malformed where it is none."""
    dtype, shape, content = 0, [], b""
    loose: dict[int, list[int]] = {}
    strings: list[str] = []
    for number, wire, value, stop in fields(data, *parts):
        if number == 1 and wire == VARINT:
            dtype = value
        elif number == 2 and wire == BYTES:
            shape += [_size(data, at, end) for n, w, at, end in fields(data, (value, stop)) if n == 2 and w == BYTES]
        elif number == 4 and wire == BYTES:
            content = bytes(data[value:stop])
        elif number == 8 and wire == BYTES:
            strings.append(text(data[value:stop]))
        elif wire == BYTES:
            loose.setdefault(number, []).extend(_packed(data, number, value, stop))
        else:
            loose.setdefault(number, []).append(value)
    return Tensor(dtype, tuple(shape), _numbers(dtype, content, loose), strings)


def _size(data: memoryview, start: int, end: int) -> int:
    sizes = [signed(value) for number, wire, value, _ in fields(data, (start, end)) if number == 1 and wire == VARINT]
    return sizes[-1] if sizes else 0


def _packed(data: memoryview, number: int, at: int, end: int) -> list[int]:
    """Values of a packed field as unsigned bits."""
    if number in _FLOATS:
        kind = "<u4" if number == 5 else "<u8"
        if (end - at) % np.dtype(kind).itemsize:
            raise Malformed("packed field")
        return np.frombuffer(data[at:end], kind).tolist()  # type: ignore[no-any-return]
    out = []
    if number in {10, 11, 7, 13, 16, 17}:
        while at < end:
            value, at = varint(data, at, end)
            out.append(value)
    return out


def _numbers(dtype: int, content: bytes, loose: dict[int, list[int]]) -> npt.NDArray[Any] | None:
    if dtype not in DTYPES:
        return None
    out: npt.NDArray[Any]
    kind, number = DTYPES[dtype]
    if content:
        if len(content) % np.dtype(kind).itemsize:
            return None
        out = np.frombuffer(content, "u1" if kind == "?" else kind)
    else:
        out = np.array(loose.get(number, []), np.uint64)
        if kind != "?":  # the low bytes are the number
            low = out.view(np.uint8).reshape(-1, 8)[:, : np.dtype(kind).itemsize]
            out = low.copy().view(kind).reshape(-1)
    if kind == "?":
        out = np.not_equal(out, 0)
    if dtype == BFLOAT16:
        out = (out.astype(np.uint32) << 16).view(np.float32)
    return np.asarray(out)


# --------------------------------------------------------------------------------------------------------- histograms


def histogram(data: memoryview, parts: list[Span]) -> tuple[list[float], Floats, Floats]:
    """A ``HistogramProto`` -> [min, max, count, sum, sum of squares], upper edges, weights."""
    known = [0.0] * 5
    lists: dict[int, list[float]] = {6: [], 7: []}
    for number, wire, value, stop in fields(data, *parts):
        if number <= 5 and wire == FIXED64:
            known[number - 1] = double(value)
        elif number in lists and wire == FIXED64:
            lists[number].append(double(value))
        elif number in lists and wire == BYTES:
            if (stop - value) % 8:
                raise Malformed("packed field")
            lists[number].extend(np.frombuffer(data[value:stop], "<f8").tolist())
    return known, np.array(lists[6]), np.array(lists[7])


# --------------------------------------------------------------------------------------------------- sessions and logs


def session(data: memoryview, parts: list[Span]) -> str:
    """A ``SessionLog`` in words."""
    words = {0: "session log", 1: "session start", 2: "session stop", 3: "checkpoint saved"}
    said, more = words[0], []
    for number, wire, value, stop in fields(data, *parts):
        if number == 1 and wire == VARINT:
            said = words.get(value, words[0])
        elif number in (2, 3) and wire == BYTES and stop > value:
            more.append(text(data[value:stop]))
    return ": ".join([said, *more])


def log(data: memoryview, parts: list[Span]) -> tuple[str, str]:
    """A ``LogMessage`` -> level, text."""
    levels = {10: "debug", 20: "info", 30: "warning", 40: "error", 50: "critical"}
    level, message = "info", ""
    for number, wire, value, stop in fields(data, *parts):
        if number == 1 and wire == VARINT:
            level = levels.get(value, "info")
        elif number == 2 and wire == BYTES:
            message = text(data[value:stop])
    return level, message


def text(data: bytes | memoryview) -> str:
    return bytes(data).decode("utf-8", "backslashreplace")


def double(bits: int) -> float:
    return float(struct.unpack("<d", bits.to_bytes(8, "little"))[0])
