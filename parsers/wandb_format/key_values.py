"""W&B's key-value items (history, summary, config, stats): many at once from their bytes, and what a value means.

An item is ``key`` (1) or ``nested_key`` (2, repeated) and ``value_json`` (16); from wandb 0.31 on it may hold a typed
value (3 none, 4 boolean, 5 integer as sint64, 6 number, 7 text, 8 json) instead. Source: ``wandb_internal.proto``.

Values as W&B logs them: numbers, also as the JSON words NaN and Infinity or as the strings "NaN", "Infinity"; dicts,
whose keys are joined by dots as W&B's pages show them; dicts with a ``_type`` (histograms, images, tables); lists;
text.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from parsers import protobuf_wire
from parsers.protobuf_wire import BYTES, FIXED64, VARINT, Ints, Words
from parsers.records import tolerant_json
from parsers.records.number_texts import floats
from parsers.span_codes import Spans
from parsers.tables import Rows
from parsers.tensorboard_format import histograms

Message = dict[int, list[Any]]  # field number -> its values: ints, or bytes

_U = np.uint64
_WORDS = {"NaN": float("nan"), "Infinity": float("inf"), "-Infinity": float("-inf")}
_LONGEST_NUMBER = 64  # bytes; a longer JSON value is read by json
_MAX_DEPTH = 20


class Tags:
    """Numbers the names of items: equal names get equal codes, and each distinct key is decoded once."""

    def __init__(self, prefix: str = "") -> None:
        self.names: list[str] = []
        self._prefix = prefix
        self._code: dict[str, int] = {}
        self._keys = Spans()
        self._of_key = np.zeros(0, np.int32)

    def codes(self, data: bytes, at: Words, start: Ints, length: Ints) -> NDArray[np.int32]:
        """The code of each item, whose key fields are the bytes ``start : start + length``."""
        keys = self._keys.codes(data, at, start, length)
        if new := self._keys.values[len(self._of_key) :]:
            self._of_key = np.append(self._of_key, np.array([self._add(key) for key in new], np.int32))
        return self._of_key[keys]

    def _add(self, key: bytes) -> int:
        name = self._prefix + name_of(message(key))
        if name not in self._code:
            self._code[name] = len(self.names)
            self.names.append(name)
        return self._code[name]


@dataclass
class Items:
    """Decoded items, in the order of their bytes."""

    code: NDArray[np.int32]  # of the name, in the Tags they were decoded with
    value: NDArray[np.float64]
    numeric: NDArray[np.bool_]  # False: value means nothing, see `other`
    other: list[tuple[int, Any]]  # (item, its value) where that is a dict, a list or short text
    texts: int  # long texts, left out
    broken: int  # items that are no items


def decode(data: bytes, at: Words, start: Ints, stop: Ints, tags: Tags) -> Items:
    """Items i = the bytes ``start[i] : stop[i]`` of ``data``, of which ``at`` are the words."""
    n = len(start)
    key_end, json_at, json_length = start.copy(), np.zeros(n, np.int64), np.zeros(n, np.int64)
    value, numeric = np.full(n, np.nan), np.zeros(n, np.bool_)
    other: list[tuple[int, Any]] = []
    broken = np.zeros(n, np.bool_)
    for rows, number, wire, v, length in protobuf_wire.lockstep(at, start, stop, np.arange(n), broken):
        if number in (1, 2) and wire == BYTES:
            key_end[rows] = v + length
        elif number in (16, 8) and wire == BYTES:
            json_at[rows], json_length[rows] = v, length
        elif number == 7 and wire == BYTES:
            found = zip(rows.tolist(), v.tolist(), length.tolist(), strict=True)
            other += [(i, data[a : a + size].decode("utf-8", "replace")) for i, a, size in found]
        elif (typed := _typed(number, wire, v)) is not None:
            value[rows], numeric[rows] = typed, True
    code = tags.codes(data, at, start, key_end - start)
    first = (at[json_at] & _U(0xFF)).astype(np.uint8)
    digits = (first == ord("-")) | ((first >= ord("0")) & (first <= ord("9")))
    plain = np.flatnonzero((json_length > 0) & (json_length <= _LONGEST_NUMBER) & digits)
    value[plain], numeric[plain] = floats(data, at, json_at[plain], json_length[plain])
    rest = np.flatnonzero((json_length > 0) & ~numeric)
    long_text = (first[rest] == ord('"')) & (json_length[rest] > 40)
    other += [(i, _json(data[json_at[i] : json_at[i] + json_length[i]])) for i in rest[~long_text].tolist()]
    kept: list[tuple[int, Any]] = []
    for i, x in other:
        x = as_number(x)
        if isinstance(x, float):
            value[i], numeric[i] = x, True
        elif x is not None:
            kept.append((i, x))
    return Items(code, value, numeric & ~broken, kept, int(long_text.sum()), int(broken.sum()))


def _typed(number: int, wire: int, bits: Any) -> Any:
    """The numbers that fields of wandb 0.31 hold; None where it is none of these fields."""
    if number == 6 and wire == FIXED64:
        return bits.view(np.float64)
    if number == 5 and wire == VARINT:  # sint64
        return ((bits >> _U(1)) ^ (_U(0) - (bits & _U(1)))).view(np.int64)
    return bits != 0 if number == 4 and wire == VARINT else None


def message(data: bytes) -> Message:
    """One message; what follows a damaged field is left out."""
    found: Message = {}
    try:
        for number, wire, value, end in protobuf_wire.fields(memoryview(data), (0, len(data))):
            found.setdefault(number, []).append(data[value:end] if wire == BYTES else value)
    except protobuf_wire.Malformed:
        pass
    return found


def name_of(item: Message) -> str:
    """The name of an item."""
    parts = item.get(2) or item.get(1) or [b""]
    return ".".join(p.decode("utf-8", "replace") for p in parts if isinstance(p, bytes))


def value_of(item: Message) -> Any:
    """Its JSON value, None where there is none."""
    raw = next((item[k][-1] for k in (16, 8) if k in item), None)
    return _json(raw) if isinstance(raw, bytes) else None


def _json(raw: bytes) -> Any:
    try:
        return tolerant_json.loads(raw)
    except (ValueError, RecursionError):
        return raw.decode("utf-8", "replace")


def as_number(value: Any) -> Any:
    """Numbers and what stands for one ("NaN", true) as float, everything else as it is."""
    if isinstance(value, (bool, int, float)):
        try:
            return float(value)
        except OverflowError:
            return float("inf") if value > 0 else float("-inf")
    return _WORDS.get(value, value) if isinstance(value, str) else value


def add(rows: Rows, tag: str, value: Any, seen: Counter[str], *, step: int | None = None, time: float | None = None,
        at: int | None = None) -> None:  # fmt: skip
    """One logged value into rows: numbers into metrics, histograms into theirs; the rest is counted in ``seen``."""
    if isinstance(value, dict) and value.get("_type") == "histogram":
        summary = histogram(value)
        if summary is None:
            seen["histogram without bins"] += 1
        else:
            rows.add("histograms", tag=tag, **summary, step=step, time=time, at=at)
        return
    for name, number in leaves(tag, value, seen):
        rows.metric(step, name, number, time=time, at=at)


def leaves(tag: str, value: Any, seen: Counter[str], depth: int = 0) -> Iterator[tuple[str, float]]:
    """The numbers in a value, dicts opened: ("samples.height", 24.0)."""
    value = as_number(value)
    if isinstance(value, float):
        yield tag, value
    elif isinstance(value, dict) and depth < _MAX_DEPTH:
        if isinstance(kind := value.get("_type"), str):
            seen[kind] += 1
        for key, inner in value.items():
            if key != "_type":
                yield from leaves(f"{tag}.{key}" if tag else str(key), inner, seen, depth + 1)
    elif value is not None:
        seen["list" if isinstance(value, list) else "text"] += depth == 0


def histogram(value: dict[str, Any]) -> dict[str, Any] | None:
    """W&B's histogram (counts in ``values``, edges in ``bins`` or packed as min, size, count) as a row's columns."""
    edges, packed = value.get("bins"), value.get("packedBins")
    try:
        counts = np.array(value.get("values"), np.float64)
        if isinstance(packed, dict):
            edges = float(packed["min"]) + float(packed["size"]) * np.arange(len(counts) + 1)
        x = np.array(edges, np.float64)
    except (TypeError, ValueError, KeyError):
        return None
    if counts.ndim != 1 or not len(counts) or x.shape != (len(counts) + 1,):
        return None
    return histograms.one(x[:-1], x[1:], counts)
