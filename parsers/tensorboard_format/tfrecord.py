"""TFRecord files: where each record lies, both checksums verified, and what damage cost.

A record is ``length u64 | masked crc32c of those 8 bytes | payload | masked crc32c of the payload``, little endian
(TensorFlow's ``core/lib/io/record_writer.cc``; the mask is ``rotate right 15, + 0xA282EAD8``). Nothing else is in the
file: no magic, no index. The file is read in windows, so memory does not follow its size; :mod:`parsers.tensorboard_format.tfrecord_chain`
finds the records of a window, :mod:`parsers.tensorboard_format.crc32c` checks their payloads.

After damage, reading goes on at the next header whose length checksum holds and whose payload checksum holds or which
leads to another sound header. A record whose payload checksum fails is dropped; where it turns out to be torn, with
another writer's records inside the length it claims, these are kept.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from parsers.tables import Gap
from parsers.tensorboard_format.crc32c import LONGEST_LENGTH as LONGEST
from parsers.tensorboard_format.crc32c import Bytes, Ints, failing
from parsers.tensorboard_format.tfrecord_chain import FRAME, HEADER, Chain

WINDOW = 1 << 21  # bytes
_FEW, _WIDEST = 8192, 1 << 23  # records in a window below which it is doubled, and how far
_MOST_TESTED = 1 << 34  # bytes: some seconds
PADDING = 64  # zero bytes behind a window, so that 8-byte loads may run past its end


@dataclass
class Records:
    """Sound records of one window; ``data`` is overwritten when the next window is asked for."""

    data: Bytes
    base: int  # position of data[0] in the file
    start: Ints  # of each payload, in data
    length: Ints

    def at(self) -> Ints:
        """Where each record begins in the file, in bytes."""
        return self.start + (self.base - HEADER)


def read(path: Path, window: int = WINDOW) -> Iterator[Records | Gap]:
    """The file's records, window by window, and a Gap for each damage. OSError where the file cannot be read."""
    with path.open("rb", buffering=0) as file:
        size = file.seek(0, 2)
        file.seek(0)
        reader = _Reader(size)
        data = np.empty(min(size, window) + PADDING, np.uint8)
        base = kept = 0  # data[:kept] came with the last window
        while base < size:
            wanted = min(len(data) - PADDING, size - base)
            filled = kept
            while filled < wanted and (got := file.readinto(memoryview(data)[filled:wanted])):  # type: ignore[arg-type]
                filled += got
            if filled < wanted:  # the file was cut while we read it
                size = reader.size = base + filled
            data[filled : filled + PADDING] = 0
            used, records = reader.window(data, base, filled)
            yield from reader.gaps
            reader.gaps.clear()
            if len(records.start):
                yield records
            if used > filled:  # jumped over a record that is too long
                base, kept = base + used, 0
                file.seek(base)
                continue
            kept = filled - used
            if len(records.start) < _FEW and WINDOW <= window < _WIDEST:  # large records: fewer, larger windows
                window *= 2
            room = max(window, reader.needs) + PADDING
            if room > len(data) or (used == 0 and filled == len(data) - PADDING):
                grown = np.zeros(max(room, kept + window + PADDING), np.uint8)
                grown[:kept] = data[used:filled]
                data = grown
            else:
                data[:kept] = data[used:filled].copy() if used < kept else data[used:filled]
            base += used
        reader.finish()
        yield from reader.gaps


@dataclass
class _Reader:
    """What is known between windows: the file's size, an open gap, and how long records are on average."""

    size: int
    gaps: list[Gap] = field(default_factory=list)
    needs: int = 0  # bytes the next window has to hold
    _torn: int | None = None  # where the open gap begins in the file
    _claimed: int | None = None  # bytes of the record that begins there, where its header is sound
    _filled: int = 0  # behind the last byte of the open gap that is not zero; where the gap begins, if there is none
    _tested: int = 0  # bytes whose checksum was only a test of where to go on
    _records: int = 0
    _bytes: int = 0

    def window(self, data: Bytes, base: int, n: int) -> tuple[int, Records]:
        """-> bytes dealt with, and the sound records in them; fills ``gaps`` and ``needs``."""
        chain = Chain(data, n, self.size - base)
        self.needs = 0
        pieces: list[Ints] = []  # record starts (headers), in file order
        at = 0
        if self._torn is not None:
            at = self._resume(chain, base, 0)
        while at < n and self._torn is None:
            if at + HEADER > n and base + n < self.size:
                break  # half a header: read on
            length = chain.header(at)
            if length is None or at + length + FRAME > chain.left:
                at = self._tear(chain, base, at)
                continue
            if length >= LONGEST:
                what = f"record of {length} bytes, longer than this reader takes; skipped"
                self.gaps.append(Gap(f"byte {base + at}", what, 1))
                at += length + FRAME
                continue
            if at + length + FRAME > n:
                self.needs = length + FRAME
                break
            run = chain.run(at)
            last, end = int(run[-1]), int(chain.end(run[-1:])[0])
            if not chain.follows(end) and not chain.holds(last):  # torn: its length says nothing of what comes next
                pieces.append(run[:-1])
                at = self._tear(chain, base, last)
            else:
                pieces.append(run)
                at = end
        heads = np.concatenate(pieces) if pieces else np.zeros(0, np.int64)
        return at, self._verified(chain, base, heads)

    def _tear(self, chain: Chain, base: int, at: int) -> int:
        length = chain.header(at)
        self._torn = self._filled = base + at
        self._claimed = None if length is None else length + FRAME
        return self._resume(chain, base, at)

    def _resume(self, chain: Chain, base: int, after: int) -> int:
        """From inside a gap to the next sound record, closing the gap; else to the window's end, leaving it open."""
        assert self._torn is not None
        here = max(after, self._torn + 1 - base)
        for head in chain.heads(here):  # seldom more than the first few
            length = chain.header(head)
            assert length is not None
            if head + length + FRAME > chain.left:
                continue
            if head + length + FRAME > chain.n:
                self.needs = length + FRAME
                self._look(chain, base, after, head)
                return head  # its payload decides, once it is here
            if chain.follows(head + length + FRAME) or self._holds(chain, head, length):
                self._look(chain, base, after, head)
                self._close(chain, base, base + head)
                return head
        stop: int = chain.n if chain.left == chain.n else max(chain.n - HEADER + 1, after)
        self._look(chain, base, after, stop)
        if stop == chain.left:
            self._close(chain, base, base + stop)
        return stop

    def _holds(self, chain: Chain, head: int, length: int) -> bool:
        """Does the payload checksum hold? Headers by the thousand that each claim megabytes are noise or malice."""
        self._tested += length
        return self._tested < _MOST_TESTED and chain.holds(head, length)

    def _look(self, chain: Chain, base: int, first: int, stop: int) -> None:
        """Where in this stretch of the open gap zeros begin that reach its end."""
        set_bytes = np.flatnonzero(chain.data[first:stop])
        if len(set_bytes):
            self._filled = base + first + int(set_bytes[-1]) + 1

    def finish(self) -> None:
        """Closes a gap that is open when the file turns out shorter than it was."""
        if self._torn is not None:
            self.gaps.append(Gap(f"byte {self._torn}", "the file was cut while it was read", None))

    def _close(self, chain: Chain, base: int, end: int) -> None:
        """Notes what the open gap cost, as well as it can be known."""
        start = self._torn
        assert start is not None
        self._torn = None
        length, at_end = end - start, end == self.size
        torn = self._filled - start  # without zeros to its end
        lost: int | None = 1
        if at_end and not torn:
            what, lost = f"{length} zero bytes after the last record", 0
        elif at_end and self._claimed and torn <= self._claimed < length:
            what = f"last record torn: {torn} bytes of it are here, then {length - torn} zero bytes"
        elif at_end and (length <= (self._claimed or 0) or length < HEADER):
            what = f"last record torn: {length} bytes of it are here"
        elif length <= (self._claimed or 0):
            what = f"torn record: {length} bytes of it are here"
        elif start >= base and chain.holds(start - base, length - FRAME):
            what = f"header of a record damaged ({length} bytes)"
        else:
            mean = self._bytes / self._records if self._records else chain.mean
            begun = 1 if self._claimed else 0
            lost = max(1, begun + round((length - (self._claimed or 0)) / mean)) if mean else None
            what = f"{length} damaged bytes"
        self.gaps.append(Gap(f"byte {start}", what, lost))

    def _verified(self, chain: Chain, base: int, heads: Ints) -> Records:
        """Those records whose payload checksum holds; a Gap for each stretch of others."""
        start, length = heads + HEADER, chain.lengths(heads)
        bad = failing(chain.data, start, length)
        self._records += len(heads)
        self._bytes += int(length.sum()) + FRAME * len(heads)
        if len(bad):
            rescued = self._failed(chain, base, heads[bad])
            heads = np.sort(np.concatenate([np.delete(heads, bad), rescued]))
            start, length = heads + HEADER, chain.lengths(heads)
        return Records(chain.data, base, start, length)

    def _failed(self, chain: Chain, base: int, heads: Ints) -> Ints:
        """Notes the loss; -> records that lie inside a failed one, where it was torn and another writer went on."""
        rescued: list[int] = []
        first = lost = previous = -1
        for head, end in zip(heads.tolist(), chain.end(heads).tolist(), strict=True):
            inner = chain.inside(head, end)
            if head != previous or inner:
                if lost > 0:
                    self.gaps.append(_unsound(base + first, lost))
                first, lost = head, 0
            lost, previous = lost + 1, end
            if inner:
                self.gaps.append(Gap(f"byte {base + head}", f"torn record: {inner[0] - head} bytes of it are here", 1))
                rescued += [at for at in inner if chain.holds(at)]
                lost = sum(not chain.holds(at) for at in inner)
        if lost > 0:
            self.gaps.append(_unsound(base + first, lost))
        return np.array(rescued, np.int64)


def _unsound(at: int, lost: int) -> Gap:
    many = f" in {lost} records in a row" if lost > 1 else ""
    return Gap(f"byte {at}", f"payload checksum does not hold{many}", lost)
