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
Span = tuple[int, int]


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
            if not 0 < number < 1 << 29:
                raise Malformed("field number")
            start = at
            if wire == VARINT:
                start, at = varint(data, at, end)
            elif wire == BYTES:
                size, start = varint(data, at, end)
                at = start + size
            elif wire in (FIXED64, FIXED32):
                at += 8 if wire == FIXED64 else 4
            elif wire == BEGIN:
                groups.append(number)
            elif wire != END or not groups or groups.pop() != number:
                raise Malformed("wire type")
            if at > end:
                raise Malformed("length")
            if wire in (FIXED64, FIXED32):
                start = int.from_bytes(data[start:at], "little")
            if not groups and wire not in (BEGIN, END):
                yield number, wire, start, at
        if groups:
            raise Malformed("group without end")


def signed(value: int, bits: int = 64) -> int:
    """Unsigned bits as two's complement."""
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> (bits - 1) else value


# -------------------------------------------------------------------------------------------- many messages in lockstep


def chosen(mask: npt.NDArray[np.bool_]) -> Any:
    """An index for these rows; for all of them one that copies nothing."""
    return slice(None) if mask.all() else np.flatnonzero(mask)


def lockstep(words: Words, start: Ints, end: Ints, owner: Ints, odd: npt.NDArray[np.bool_]) -> Iterator[tuple[Ints, int, int, Any, Any]]:
    """Advance through all messages at once; -> rows, field number, wire type, values (or starts), lengths (of bytes).

    ``words[i]`` is the little-endian word at byte i. Row r spans ``start[r]`` to ``end[r]``. Where it is malformed or
    holds what is rare (groups, keys of three bytes), ``odd[owner[r]]`` is set and the row is left; fields it gave
    before that are not to be used. Values are the unsigned bits; starts and lengths lie within the row.
    """
    rows = np.arange(len(start))
    at = start
    for turn in count():
        if turn >= _TURNS and len(rows) <= _FEW_ROWS:  # a message of thousands of fields: numpy's turns cost more than Python's
            for row, first_byte, stop in zip(rows.tolist(), at.tolist(), end.tolist(), strict=True):
                yield from _alone(words, row, first_byte, stop, owner, odd)
            return
        live = at < end
        if not live.all():
            over = at > end
            if over.any():
                odd[owner[rows[over]]] = True
            rows, at, end = rows[live], at[live], end[live]
        if not len(rows):
            return
        word = words[at]
        first = int(word[0]) & 0xFF
        if first < 0x80 and (word.astype(np.uint8) == first).all():  # the usual case: one shape, or one so far
            values, lengths, after, good = _value(words, word, at, end, first)
            if good is None:
                yield rows, _number(first), first & 7, values, lengths
                at = after
                continue
            odd[owner[rows[~good]]] = True
            rows, at, end = rows[good], after[good], end[good]
            if len(rows):
                yield rows, _number(first), first & 7, values[good], None if lengths is None else lengths[good]
            continue
        keys = word.astype(np.uint16)
        keys = np.where(keys & 0x80, keys, keys & 0xFF)
        following = np.empty_like(at)
        for key in np.flatnonzero(np.bincount(keys)).tolist():
            same = np.flatnonzero(keys == key)
            values, lengths, after, good = _value(words, word[same], at[same], end[same], key)
            if good is not None:
                odd[owner[rows[same[~good]]]] = True
                after[~good] = end[same[~good]]  # where the row is left
                same, values, lengths = same[good], values[good], None if lengths is None else lengths[good]
                following[np.flatnonzero(keys == key)] = after
            else:
                following[same] = after
            if len(same):
                yield rows[same], _number(key), key & 7, values, lengths
        at = following


def _alone(words: Words, row: int, at: int, end: int, owner: Ints, odd: npt.NDArray[np.bool_]) -> Iterator[tuple[Ints, int, int, Any, Any]]:
    """The rest of one row, as lockstep gives it."""
    rows = np.array([row])
    while at < end:
        word = int(words[at])
        size = 2 if word & 0x80 else 1
        key = word & (0xFFFF if word & 0x80 else 0xFF)
        number, wire = _number(key), key & 7
        at += size
        length, value = None, np.zeros(1, np.uint64)
        good = not (key & 0x8000 or number == 0 or wire in (BEGIN, END) or wire > FIXED32)
        if good and wire in (VARINT, BYTES):
            value, number_of_bytes, sound = varints(words, np.array([at]))
            good = sound is None
            at += int(np.ravel(number_of_bytes)[0])
            if wire == BYTES:
                length = value.view(np.int64)
                good = good and 0 <= int(length[0]) <= end - at
                value = np.array([at])
                at += int(length[0]) if good else 0
        elif good and wire == FIXED64:
            value = words[at : at + 1].copy()
            at += 8
        elif good:
            value = np.array([word >> 8 * size & 0xFFFFFFFF], np.uint32)
            at += 4
        if not good:
            odd[owner[row]] = True
            return
        yield rows, number, wire, value, length
    if at > end:
        odd[owner[row]] = True


def _number(key: int) -> int:
    """The field number in the key's one or two bytes."""
    return (key & 0x7F) >> 3 | (key >> 8 & 0x7F) << 4


def _value(words: Words, word: Words, at: Ints, end: Ints, key: int) -> tuple[Any, Any, Ints, npt.NDArray[np.bool_] | None]:
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


def varints(words: Words, at: Ints) -> tuple[Words, Any, npt.NDArray[np.bool_] | None]:
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
