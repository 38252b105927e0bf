"""crc32c by the thousand, for TFRecords: masked checksums, those of lengths, and payloads in groups.

A crc is linear over XOR apart from a constant that depends on the length alone. Three things follow. The crc of a
length's 8 bytes is the XOR of two table entries. Zeros in front of a text do not change the linear part. And the
linear part of two texts laid end to end follows from that of each ("crc combine"), so that many texts are summed by
one C call and compared with what their stored checksums combine to. That is a true crc of all their bytes: damage
that follows a pattern does not cancel out, as it would in an XOR of texts.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import google_crc32c
import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Bytes = npt.NDArray[np.uint8]
Crcs = npt.NDArray[np.uint32]

LONGEST_LENGTH = 1 << 28
_TOGETHER = 64  # texts that are summed by one call, a power of two
_PART_BYTES, _LONGEST_GROUPED = 1 << 18, 512
_ONES = 0xFFFFFFFF
_FRONT = np.array([(1 << 64) - (1 << 8 * pad) for pad in range(8)], np.uint64)  # clears the first bytes of a word


def unaligned(data: Bytes, dtype: str) -> npt.NDArray[Any]:
    """The buffer as numbers that begin at every byte: ``unaligned(data, "<u8")[i]`` is the word at byte i."""
    kind = np.dtype(dtype)
    return np.ndarray((len(data) - kind.itemsize + 1,), kind, data, 0, (1,))


def mask(crc: int) -> int:
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def unmasked(stored: Crcs) -> Crcs:
    rotated = stored - np.uint32(0xA282EAD8)
    return rotated >> np.uint32(17) | rotated << np.uint32(15)


@lru_cache(maxsize=1)
def _length_tables() -> tuple[Crcs, Crcs]:
    """crc32c of a length's 8 bytes, as the XOR of an entry for its low 16 bits and one for the bits above."""
    zero = google_crc32c.value(bytes(8))
    single = np.array([google_crc32c.value((1 << bit).to_bytes(8, "little")) ^ zero for bit in range(29)], np.uint32)
    tables = []
    for bits in (single[:16], single[16:]):
        table = np.zeros(1, np.uint32)
        for bit in bits:
            table = np.concatenate([table, table ^ bit])
        tables.append(table)
    return tables[0] ^ np.uint32(zero), tables[1]


def length_crc(lengths: Ints) -> Crcs:
    """crc32c of the 8 bytes of each length; lengths are from 0 to LONGEST_LENGTH."""
    low, high = _length_tables()
    return low.take(lengths & 0xFFFF) ^ high.take(lengths >> 16)


@lru_cache(maxsize=2048)
def _zeros_table(count: int) -> Crcs:
    """How ``count`` zero bytes change a crc32c, as four tables of 256, one for each of its bytes."""
    if count == 1:
        feed = np.array([google_crc32c.extend(byte, b"\0") for byte in range(256)], np.uint32)
        feed ^= feed[0]  # the change alone, without the complements that begin and end a crc
        table = np.empty((4, 256), np.uint32)
        table[0] = feed
        for k in range(1, 4):  # the other bytes only move down
            table[k] = np.arange(256, dtype=np.uint32) << np.uint32(8 * (k - 1))
        return table
    half = _zeros_table(count // 2)
    table = _shift(half.reshape(-1), half)
    if count % 2:
        table = _shift(table, _zeros_table(1))
    return table.reshape(4, 256)


def _shift(crcs: Crcs, table: Crcs) -> Crcs:
    octets = np.ascontiguousarray(crcs).view(np.uint8).reshape(-1, 4)
    shifted: Crcs = table[0].take(octets[:, 0])
    for k in range(1, 4):
        shifted ^= table[k].take(octets[:, k])
    return shifted


def _combined(crcs: Crcs, length: int) -> Crcs:
    """Linear part of the crc32c of _TOGETHER pieces of one length laid end to end, from that of each, for many such rows
    of pieces: AB = shift(A, |B|) ^ B."""
    for _ in range(_TOGETHER.bit_length() - 1):
        crcs = _shift(crcs[0::2], _zeros_table(length)) ^ crcs[1::2]
        length *= 2
    return crcs


@lru_cache(maxsize=1)
def _zeros_crc() -> Crcs:
    """crc32c of so many zero bytes: what tells a crc from its linear part, where zeros in front change nothing."""
    return np.array([google_crc32c.value(bytes(count)) for count in range(_LONGEST_GROUPED + 1)], np.uint32)


def failing(data: Bytes, start: Ints, length: Ints) -> Ints:
    """Indices, ascending, of the records whose payload does not match its checksum."""
    stored = unmasked(unaligned(data, "<u4")[start + length])
    size = (length + 7) >> 3  # in words
    size[length > _LONGEST_GROUPED] = 0
    order = np.argsort(size.astype(np.uint16), kind="stable")  # 16 bits: numpy sorts them by radix
    cuts = np.flatnonzero(np.diff(size[order])) + 1
    single = [np.zeros(0, np.int64)]
    extend = google_crc32c.extend
    for group in np.split(order, cuts) if len(order) else []:
        words = int(size[group[0]])
        if words == 0 or len(group) < _TOGETHER:
            single.append(group)
            continue
        rows = unaligned(data, f"V{8 * words}")
        count = max(_PART_BYTES // (8 * words * _TOGETHER), 1) * _TOGETHER
        for part in (group[first : first + count] for first in range(0, len(group), count)):
            empty = -len(part) % _TOGETHER  # rows of zeros, which change nothing in front
            laid = np.zeros((empty + len(part), words), np.uint64)
            pad = 8 * words - length[part]
            laid[empty:] = rows[start[part] - pad].view(np.uint64).reshape(-1, words)
            laid[empty:, 0] &= _FRONT.take(pad)
            crcs = np.zeros(empty + len(part), np.uint32)
            crcs[empty:] = stored[part] ^ _zeros_crc()[length[part]]
            expected = _combined(crcs, 8 * words).tolist()
            for k, (texts, crc) in enumerate(zip(laid.reshape(-1, words * _TOGETHER), expected, strict=True)):
                if extend(_ONES, texts) ^ _ONES != crc:
                    single.append(part[max(k * _TOGETHER - empty, 0) : (k + 1) * _TOGETHER - empty])
    suspects = np.sort(np.concatenate(single))
    crc32c = google_crc32c.value  # takes arrays as they are
    spans = zip(*(column[suspects].tolist() for column in (np.arange(len(start)), start, length, stored)), strict=True)
    return np.array([i for i, s, count, crc in spans if crc32c(data[s : s + count]) != crc], np.int64)
