"""The headers of a window of a TFRecord file, and how they follow one another.

Where nothing is damaged a window is one chain. Small records: headers are looked for near some thousand places, and
the chains from each are walked all at once, until each meets the next. Large records: header by header. Only where the
chain breaks is every position tested; those that pass are the sound headers to go on from.
"""

from __future__ import annotations

import struct

import google_crc32c
import numpy as np

from parsers.crc32c import LONGEST_LENGTH as LONGEST
from parsers.crc32c import Bytes, Ints, length_crc, mask, short_lengths, unaligned, unmasked

HEADER, FOOTER = 12, 4
FRAME = HEADER + FOOTER
_BLOCK = 1 << 18  # bytes tested for headers at a time: fits the second-level cache
_SPACING = 1024  # bytes from one walker to the next
_SPARSE = 256  # bytes: where records are longer than that, they are walked one by one
_header = struct.Struct("<QI")


def sound_header(head: bytes) -> bool:
    """True where the first 12 bytes are a length and its checksum."""
    return len(head) >= HEADER and mask(google_crc32c.value(head[:8])) == _header.unpack_from(head)[1]


class Chain:
    """The sound headers of a window and how they follow one another."""

    def __init__(self, data: Bytes, n: int, left: int) -> None:
        self.data, self.n, self.left = data, n, left  # left: bytes of the file from data[0] on
        self._view = data.data
        self._words, self._lengths, self._halves = (unaligned(data, kind) for kind in ("<u8", "<i8", "<u4"))
        self._heads: Ints | None = None
        self._breaks: Ints | None = None
        self._walked = self._walk()

    def header(self, at: int) -> int | None:
        """Length of the record at this position, where its checksum holds."""
        if at + HEADER > self.n:
            return None
        length, crc = _header.unpack_from(self._view, at)
        return length if mask(google_crc32c.value(self._view[at : at + 8].tobytes())) == crc else None

    def holds(self, at: int, length: int | None = None) -> bool:
        """True where the record is whole and its payload checksum holds (of that length, whatever its header says)."""
        length = self.header(at) if length is None else length
        if length is None or length < 0 or at + length + FRAME > self.n:
            return False
        start = at + HEADER
        crc = google_crc32c.value(self._view[start : start + length].tobytes())
        return mask(crc) == int(self._halves[start + length])

    def follows(self, at: int) -> bool:
        """True where a record may begin: a sound header, the end of the file, or a cut of it too short to tell."""
        return at == self.left or self.n < at + HEADER <= self.left or self.header(at) is not None

    def lengths(self, heads: Ints) -> Ints:
        return self._lengths[heads]

    def end(self, heads: Ints) -> Ints:
        return heads + self.lengths(heads) + FRAME

    def mean(self) -> float:
        heads = self.heads()
        return float(self.lengths(heads).mean()) + FRAME if len(heads) else 0.0

    def run(self, at: int) -> Ints:
        """From this record on those that follow one another without a break and lie in the window."""
        if at == 0:
            return self._walked
        heads = self.heads()
        first = int(np.searchsorted(heads, at))
        if first == len(heads) or heads[first] != at:  # an empty record, which heads() leaves out
            return np.array([at], np.int64)
        if self._breaks is None:
            ends = self.end(heads)
            self._breaks = np.append(np.flatnonzero(ends[:-1] != heads[1:]), len(heads) - 1)
        stop = int(self._breaks[np.searchsorted(self._breaks, first)]) + 1
        run = heads[first:stop]
        return run if int(self.end(run[-1:])[0]) <= self.n else run[:-1]

    def inside(self, head: int, end: int) -> list[int]:
        """Headers of records inside this one that lead exactly to its end: it was torn and another writer went on."""
        heads = self.heads()
        astray: set[int] = set()  # chains that meet one that missed the end miss it, too
        for first in heads[np.searchsorted(heads, head + 1) : np.searchsorted(heads, end)].tolist():
            chain, at = [], first
            while at < end and at not in astray and (length := self.header(at)) is not None:
                chain.append(at)
                at += length + FRAME
            if at == end and any(self.holds(h) for h in chain):
                return chain
            astray.update(chain)
        return []

    def _walk(self) -> Ints:
        """The chain from the window's start as far as it goes."""
        few = self._walk_alone(64)
        if len(few) < 64 or few[-1] > 64 * _SPARSE:
            return self._walk_alone()
        return self._walk_together(self._scattered())

    def _walk_together(self, starts: Ints) -> Ints:
        """The same, from these headers all at once."""
        steps, at, stop = [], starts, np.append(starts[1:], self.n)
        while len(at):
            steps.append(at)
            # checksums are tested afterwards, all at once; a wrong length leads at most to the next walker's start
            at = np.minimum(at + (self._lengths[at] & (LONGEST - 1)) + FRAME, stop)
            walking = at < stop
            if not walking.all():
                at, stop = at[walking], stop[walking]
        heads = np.sort(np.concatenate(steps))
        lengths = np.diff(heads, append=0) - FRAME  # as the next header says
        last = int(self._words[heads[-1]])
        lengths[-1] = last if last < self.n - int(heads[-1]) - FRAME + 1 else -1
        sound = (self._lengths[heads] == lengths) & (lengths >= 0) & (lengths < LONGEST)
        sound &= length_crc(lengths & (LONGEST - 1)) == unmasked(self._halves[heads + 8])
        wrong = np.flatnonzero(~sound)
        return heads[: int(wrong[0])] if len(wrong) else heads

    def _scattered(self) -> Ints:
        """Headers spread over the window, the first one included."""
        count = max((self.n - _SPARSE) // _SPACING, 1)
        starts = np.full(count, -1, np.int64)
        starts[0] = 0
        for offset in range(0, _SPARSE, 32):
            missing = np.flatnonzero(starts < 0)
            near = np.ndarray((count, 32), "<u8", self.data, offset, (_SPACING, 1))[missing]
            row, column = np.nonzero(near - np.uint64(1) < np.uint64(LONGEST))
            at = missing[row] * _SPACING + (column + offset)
            sound = np.flatnonzero(length_crc(near[row, column].view(np.int64)) == unmasked(self._halves[at + 8]))[::-1]
            starts[missing[row[sound]]] = at[sound]  # backwards: the first of several stays
        return starts[starts >= 0]

    def _walk_alone(self, most: int = 1 << 62) -> Ints:
        """The chain from the window's start, header by header, up to so many."""
        unpack, view, short, last = _header.unpack_from, self._view, short_lengths(), self.n - FRAME
        heads: list[int] = []
        at = 0
        while at <= last and len(heads) < most:
            length, crc = unpack(view, at)
            if (short[length] != crc if length < 65536 else self.header(at) is None) or at + length > last:
                break
            heads.append(at)
            at += length + FRAME
        return np.array(heads, np.int64)

    def heads(self) -> Ints:
        """Every position with a sound header of a length from 1 to LONGEST, in order."""
        if self._heads is None:
            found = [np.zeros(0, np.int64)]
            for block in range(0, self.n - HEADER + 1, _BLOCK):
                stop = min(block + _BLOCK, self.n - HEADER + 1)
                for shift in range(min(8, stop - block)):
                    words = np.frombuffer(self.data, "<u8", (stop - block - shift + 7) // 8, block + shift)
                    # unsigned: length 0 wraps around and is left out, so that a hole of zeros costs nothing
                    near = np.flatnonzero(words - np.uint64(1) < np.uint64(LONGEST))
                    if len(near):
                        at = near * 8 + (block + shift)
                        found.append(at[length_crc(words[near].view(np.int64)) == unmasked(self._halves[at + 8])])
            self._heads = np.sort(np.concatenate(found))
        return self._heads
