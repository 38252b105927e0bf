"""Protobuf's wire format without its library: one message at a time, or thousands in lockstep.

A message is a sequence of fields, each a key (``number << 3 | wire type``, a varint) and a value: wire type 0 varint,
1 eight bytes, 2 length and bytes, 5 four bytes, 3 and 4 begin and end of a group
(protobuf.dev/programming-guides/encoding). Fields may come in any order, unknown ones are skipped, of a repeated
scalar the last one counts, and a message that comes in two parts is the parse of both laid end to end.

:func:`fields` walks one message. :func:`lockstep` walks many at once, one field of each a step, with numpy: the
messages of a log have few shapes, so most steps do the same for all of them. What it finds unusual it leaves to
:func:`fields`.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from typing import Any

import numpy as np
import numpy.typing as npt

VARINT, FIXED64, BYTES, BEGIN, END, FIXED32 = range(6)
_TURNS, _FEW_ROWS = 200, 4
_MASK64 = (1 << 64) - 1

Ints = npt.NDArray[np.int64]
Words = npt.NDArray[np.uint64]
Bools = npt.NDArray[np.bool_]
Span = tuple[int, int]
Found = tuple[Ints, int, int, Any, Any]  # rows, field number, wire type, values (or starts), lengths


class Malformed(ValueError):
    """Not a protobuf message."""


# ------------------------------------------------------------------------------------------------ one message at a time


def varint(data: memoryview, at: int, end: int) -> tuple[int, int]:
    """-> value modulo 2**64, position behind it. Malformed where it does not end in time."""
    value = shift = 0
    while at < end and shift < 70:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & _MASK64, at
        shift += 7
    raise Malformed("varint")


def fields(data: memoryview, *spans: Span) -> Iterator[tuple[int, int, int, int]]:
    """-> field number, wire type, value (or where the bytes begin), where they end; of a message in one or more parts.

    Fixed values come as their unsigned bits. Groups are skipped. Malformed is raised where the bytes are no message.
    """
    for at, end in spans:
        groups: list[int] = []
        while at < end:
            key, at = varint(data, at, end)
            number, wire = key >> 3, key & 7
            value, at = _one_value(data, wire, at, end)
            if at > end or not 0 < number < 1 << 29:
                raise Malformed("length or field number")
            if wire == BEGIN:
                groups.append(number)
            elif wire == END:
                if not groups or groups.pop() != number:
                    raise Malformed("group")
            elif not groups:
                yield number, wire, value, at
        if groups:
            raise Malformed("group without end")


def _one_value(data: memoryview, wire: int, at: int, end: int) -> tuple[int, int]:
    """-> the value there (of bytes: where they begin), and where it ends."""
    if wire == VARINT:
        return varint(data, at, end)
    if wire == BYTES:
        size, start = varint(data, at, end)
        return start, start + size
    if wire in (FIXED64, FIXED32):
        stop = at + (8 if wire == FIXED64 else 4)
        return int.from_bytes(data[at:stop], "little"), stop
    if wire > FIXED32:
        raise Malformed("wire type")
    return at, at


def signed(value: int, bits: int = 64) -> int:
    """Unsigned bits as two's complement."""
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> (bits - 1) else value


# -------------------------------------------------------------------------------------------- many messages in lockstep


def chosen(mask: Bools) -> Any:
    """An index for these rows; for all of them one that copies nothing."""
    return slice(None) if mask.all() else np.flatnonzero(mask)


def lockstep(words: Words, start: Ints, end: Ints, owner: Ints, odd: Bools) -> Iterator[Found]:
    """Advance through all messages at once; -> rows, field number, wire type, values (or starts), lengths (of bytes).

    ``words[i]`` is the little-endian word at byte i. Row r spans ``start[r]`` to ``end[r]``. Where it is malformed or
    holds what is rare (groups, keys of three bytes), ``odd[owner[r]]`` is set and the row is left; fields it gave
    before that are not to be used. Values are the unsigned bits; starts and lengths lie within the row.
    """
    rows, at = np.arange(len(start)), start
    for turn in count():
        live = at < end
        if not live.all():
            odd[owner[rows[at > end]]] = True
            rows, at, end = rows[live], at[live], end[live]
        if turn >= _TURNS and len(rows) <= _FEW_ROWS:  # a message of thousands of fields: numpy's turns cost more than Python's
            for row, first, stop in zip(rows.tolist(), at.tolist(), end.tolist(), strict=True):
                yield from _alone(words, row, first, stop, owner, odd)
            return
        if not len(rows):
            return
        word, following = words[at], np.empty_like(at)
        for key, same in _keys(word):
            values, lengths, after, good = _value(words, word[same], at[same], end[same], key)
            mine = rows[same]
            if good is not None:
                odd[owner[mine[~good]]] = True
                after = np.where(good, after, end[same])  # where the row is left
                mine, values, lengths = mine[good], values[good], None if lengths is None else lengths[good]
            following[same] = after
            if len(mine):
                yield mine, _number(key), key & 7, values, lengths
        at = following


def _keys(word: Words) -> list[tuple[int, Any]]:
    """The keys at the front of these words, and which rows have each; mostly it is one."""
    first = int(word[0]) & 0xFF
    if first < 0x80 and (word.astype(np.uint8) == first).all():
        return [(first, slice(None))]
    keys = word.astype(np.uint16)
    keys = np.where(keys & 0x80, keys, keys & 0xFF)
    return [(key, np.flatnonzero(keys == key)) for key in np.flatnonzero(np.bincount(keys)).tolist()]


def _alone(words: Words, row: int, at: int, end: int, owner: Ints, odd: Bools) -> Iterator[Found]:
    """The rest of one row, as lockstep gives it."""
    data = memoryview(words.base).cast("B")  # type: ignore[arg-type]
    try:
        for number, wire, value, stop in fields(data, (at, end)):
            of_bytes = wire == BYTES
            kind = np.int64 if of_bytes else np.uint32 if wire == FIXED32 else np.uint64
            yield np.array([row]), number, wire, np.array([value], kind), np.array([stop - value]) if of_bytes else None
    except Malformed:
        odd[owner[row]] = True


def _number(key: int) -> int:
    """The field number in the key's one or two bytes."""
    return (key & 0x7F) >> 3 | (key >> 8 & 0x7F) << 4


def _value(words: Words, word: Words, at: Ints, end: Ints, key: int) -> tuple[Any, Any, Ints, Bools | None]:
    """-> values, lengths, positions of the next field, which rows are good (None: all); ``word`` is that at ``at``."""
    wire = key & 7
    if wire in (BEGIN, END) or wire > FIXED32 or key & 0x8000 or _number(key) == 0:
        return at, at, at, np.zeros(len(at), np.bool_)
    size: Any = 2 if key & 0x80 else 1
    word = word >> np.uint64(8 * size)
    at = at + size
    if wire == FIXED64:
        return words[at], None, at + 8, None
    if wire == FIXED32:
        return word.astype(np.uint32), None, at + 4, None
    values, size, good = _short_varints(word) or varints(words, at)
    at = at + size
    if wire == VARINT:
        return values, None, at, good
    lengths = values.view(np.int64)
    fits = (lengths >= 0) & (lengths <= end - at)  # also false where the key or the length was cut
    if good is not None:
        fits &= good
    return at, lengths, at + lengths, None if fits.all() else fits


def _short_varints(word: Words) -> tuple[Words, Any, None] | None:
    """Varints of one or two bytes at the front of each word: most lengths and many steps; None where one is longer."""
    if (word.astype(np.uint8) < 0x80).all():
        return word & np.uint64(0x7F), 1, None
    both = word.astype(np.uint16)
    if (both & 0x8080 == 0x8080).any():
        return None
    second = (both & 0x80) >> 7  # 1 where there is a second byte
    value = (both & 0x7F) | (both >> 1 & 0x3F80) * second
    return value.astype(np.uint64), second.astype(np.int64) + 1, None


def varints(words: Words, at: Ints) -> tuple[Words, Any, Bools | None]:
    """-> values modulo 2**64, sizes in bytes, and which are varints at all (None: all of them)."""
    word = words[at]
    if not (word & np.uint64(0x80)).any():
        return word & np.uint64(0x7F), 1, None
    stops = ~word & np.uint64(0x8080808080808080)  # the top bit is clear in a varint's last byte
    used = stops ^ (stops - np.uint64(1))  # all bits up to the first stop
    size = (np.bitwise_count(used) >> 3).astype(np.int64)
    word &= used
    value = word & np.uint64(0x7F)
    for k in range(1, int(size.max())):
        value |= (word >> np.uint64(k)) & np.uint64(0x7F << 7 * k)
    long = np.flatnonzero(stops == 0)
    if not len(long):
        return value, size, None
    rest = words[at[long] + 8]  # two bytes more at most: negative numbers take all ten
    two = (rest & np.uint64(0x80)) != 0
    tail = (rest & np.uint64(0x7F)) | np.where(two, (rest >> np.uint64(1)) & np.uint64(0x3F80), np.uint64(0))
    value[long] |= tail << np.uint64(56)
    size[long] = np.where(two, 10, 9)
    bad = (rest & np.uint64(0x8080)) == 0x8080
    if not bad.any():
        return value, size, None
    good = np.ones(len(at), np.bool_)
    good[long[bad]] = False
    return value, size, good
