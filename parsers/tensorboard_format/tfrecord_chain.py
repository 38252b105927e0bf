"""The headers of a window of a TFRecord file, and how they follow one another.

Where nothing is damaged a window is one chain. Of a loop, whose sizes repeat, the next headers are foretold and only
compared. Other small records: headers are looked for near some thousand places, and the
chains from each are walked all at once, until each meets the next. Large records: header by header. Only where the chain
breaks is every position tested; those that pass are the sound headers to go on from.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from functools import cached_property

import google_crc32c
import numpy as np

from parsers.tensorboard_format.crc32c import LONGEST_LENGTH as LONGEST
from parsers.tensorboard_format.crc32c import Bytes, Ints, length_crc, mask, unaligned, unmasked

HEADER, FOOTER = 12, 4
FRAME = HEADER + FOOTER
_BLOCK, _LARGEST_BLOCK = 1 << 9, 1 << 17  # bytes tested for headers at a time: a few at first, the next is mostly near
_SPACING = 2048  # bytes from one walker to the next
_SPARSE = 256  # bytes: where records are longer than that, they are walked one by one
LOOK, _TIMES = 384, 3  # records in which a period shows, and how often it has to come before it is believed
_SHORT = 1 << 16  # bytes: in less than that, walking one by one is as quick
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

    @cached_property
    def mean(self) -> float:
        """Bytes of the records that seem to be here, on average."""
        sizes = [int(self._lengths[at]) + FRAME for at in self.heads(0)]
        return sum(sizes) / len(sizes) if sizes else 0.0

    def inside(self, head: int, end: int) -> list[int]:
        """Headers of records inside this one that lead exactly to its end: it was torn and another writer went on."""
        astray: set[int] = set()  # chains that meet one that missed the end miss it, too
        for first in self.heads(head + 1, end):
            chain, at = [], first
            while at < end and at not in astray and (length := self.header(at)) is not None:
                chain.append(at)
                at += length + FRAME
            if at == end and any(self.holds(h) for h in chain):
                return chain
            astray.update(chain)
        return []

    def run(self, at: int) -> Ints:
        """From here on the records that follow one another without a break and lie in the window."""
        few = self._walk_alone(at, LOOK)
        if len(few) < LOOK:
            return few
        end = int(self.end(few[-1:])[0])
        sparse = end - at > LOOK * _SPARSE
        ahead = self._foretold(few, end)
        end = int(self.end(ahead[-1:])[0]) if len(ahead) else end
        alone = sparse or self.n - end < _SHORT
        return np.concatenate([few, ahead, self._walk_alone(end) if alone else self._walk_together(self._scattered(end))])

    def _foretold(self, few: Ints, end: int) -> Ints:
        """What a loop goes on with: records from here on whose headers are those of its last turn, byte by byte."""
        period = period_of(np.diff(few, append=end))
        turn = few[-period:] if period else few[:0]
        size = end - int(turn[0]) if period else self.n
        heads = np.add.outer(np.arange(1, (self.n - end) // size + 1) * size, turn)
        same = (self._words[heads] == self._words[turn]) & (self._halves[heads + 8] == self._halves[turn + 8])
        count = len(same.ravel()) if same.all() else int(same.ravel().argmin())
        return heads.ravel()[:count]

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

    def _scattered(self, first: int) -> Ints:
        """Headers spread over the window from the first one on, that one included."""
        count = max((self.n - first - _SPARSE) // _SPACING, 1)
        starts = np.full(count, -1, np.int64)
        starts[0] = first
        for offset in range(first, first + _SPARSE, 32):
            missing = np.flatnonzero(starts < 0)
            near = np.ndarray((count, 32), "<u8", self.data, offset, (_SPACING, 1))[missing]
            row, column = np.nonzero(near - np.uint64(1) < np.uint64(LONGEST))
            at = missing[row] * _SPACING + (column + offset)
            sound = np.flatnonzero(length_crc(near[row, column].view(np.int64)) == unmasked(self._halves[at + 8]))[::-1]
            starts[missing[row[sound]]] = at[sound]  # backwards: the first of several stays
        return starts[starts >= 0]

    def _walk_alone(self, at: int, most: int = 1 << 62) -> Ints:
        """The chain from here, header by header, up to so many."""
        unpack, view, last = _header.unpack_from, self._view, self.n - FRAME
        heads: list[int] = []
        known: dict[int, int] = {}  # lengths and their checksums: most come again
        for _ in range(most):
            if at > last:
                break
            length, crc = unpack(view, at)
            if known.get(length) != crc:
                if self.header(at) is None:
                    break
                known[length] = crc
            if at + length > last:
                break
            heads.append(at)
            at += length + FRAME
        return np.array(heads, np.int64)

    def heads(self, first: int, stop: int | None = None) -> Iterator[int]:
        """Every position from first to stop with a sound header of a length from 1 to LONGEST, in order."""
        stop = min(self.n - HEADER + 1, self.n if stop is None else stop)
        block = _BLOCK
        while first < stop:
            last = min(first + block, stop)
            # unsigned: length 0 wraps around and is left out, so that a hole of zeros costs nothing
            at = np.flatnonzero(self._words[first:last] - np.uint64(1) < np.uint64(LONGEST)) + first
            if len(at):
                yield from at[length_crc(self._lengths[at]) == unmasked(self._halves[at + 8])].tolist()
            first, block = last, min(2 * block, _LARGEST_BLOCK)


def period_of(sizes: Ints) -> int:
    """After how many records the last of these sizes come again, all through the last half; 0 where they do not."""
    last = sizes[::-1]
    raw, item = last.tobytes(), last.itemsize  # to compare bytes ends at the first that differs
    for period in (np.flatnonzero(last[1 : len(last) // _TIMES + 1] == last[0]) + 1).tolist():
        shown = max(_TIMES * period, len(last) // 2)
        if raw[period * item : shown * item] == raw[: (shown - period) * item]:
            return int(period)
    return 0
