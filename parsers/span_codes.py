"""Byte strings that lie in a buffer (tags, keys) as numbers, thousands at a time: each distinct one is looked at once."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import numpy.typing as npt

from parsers.protobuf_wire import Ints, Words

LONGEST = 256  # bytes: longer strings are taken one by one
_KEEP = np.array([(1 << 8 * count) - 1 for count in range(9)], np.uint64)  # keeps the first bytes of a word


class Spans:
    """Numbers byte strings in order of appearance. A string is hashed to 64 bits under a random key, and read once."""

    def __init__(self) -> None:
        self.values: list[bytes] = []
        self._codes: dict[bytes, int] = {}
        self._by_hash: dict[int, int] = {}
        self._factors = np.frombuffer(os.urandom(LONGEST + 16), np.uint64) | np.uint64(1)
        self._slots = np.zeros(1 << 14, np.int32)  # top bits of a hash -> code: right for all but a few
        self._hashes = np.zeros(1, np.uint64)  # of the string a code was last given for

    def code(self, value: bytes) -> int:
        if value not in self._codes:
            self._codes[value] = len(self.values)
            self.values.append(value)
        return self._codes[value]

    def codes(self, data: Any, words: Words, at: Ints, size: Ints) -> npt.NDArray[np.int32]:
        """Codes (n,) of the strings at these places of ``data``, of which ``words`` are the words."""
        long = size > LONGEST
        if long.any():
            codes = np.empty(len(size), np.int32)
            codes[~long] = self.codes(data, words, at[~long], size[~long])
            spans = zip(at[long].tolist(), size[long].tolist(), strict=True)
            codes[long] = [self.code(bytes(data[start : start + length])) for start, length in spans]
            return codes
        hashes = self._hash(words, at, size)
        slots = (hashes >> np.uint64(50)).astype(np.int64)
        codes = self._slots[slots]
        unknown = np.flatnonzero(self._hashes[codes] != hashes)
        if len(unknown):
            distinct, first, inverse = np.unique(hashes[unknown], return_index=True, return_inverse=True)
            found = np.zeros(len(distinct), np.int32)
            for i in np.argsort(first).tolist():  # in order of appearance
                row = int(unknown[first[i]])
                key = int(distinct[i])
                if key not in self._by_hash:
                    start = int(at[row])
                    self._by_hash[key] = self.code(bytes(data[start : start + int(size[row])]))
                    if len(self.values) > len(self._hashes):  # doubled: to grow by one copies all of them each time
                        self._hashes = np.append(self._hashes, np.zeros(len(self.values), np.uint64))
                    self._hashes[self._by_hash[key]] = distinct[i]
                    self._slots[slots[row]] = self._by_hash[key]
                found[i] = self._by_hash[key]
            codes[unknown] = found[inverse]
        return codes

    def _hash(self, words: Words, at: Ints, size: Ints) -> Words:
        hashes: Words = ((size + 1).astype(np.uint64) ^ words[at] & _KEEP.take(np.minimum(size, 8))) * self._factors[0]
        last = np.maximum(size - 8, 0)  # the last word overlaps the one before; in shorter strings it comes again
        for k in range(1, -(-int(size.max(initial=0)) // 8)):
            hashes = (hashes ^ hashes >> np.uint64(29) ^ words[at + np.minimum(8 * k, last)]) * self._factors[k]
        return hashes
