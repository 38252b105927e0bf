"""Records that come in a rhythm: a loop logs the same things at every step, so that their sizes repeat.

A stretch of records whose sizes repeat lies in the file like a table, a row for each turn of the loop, and a field of it
is a column at a fixed distance: no position has to be looked up record by record.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from parsers.tensorboard_format.crc32c import Ints

LOOK = 384  # records in which a rhythm shows
_TIMES = 3  # that it has to come before it is believed
_STRIDE = 8  # of such looks, at most, from one to the next
TURNS = 16  # fewer are not worth the effort of treating them as a table


@dataclass(frozen=True)
class Stretch:
    """``turns`` times records of these sizes (bytes, frame included), the first one's header at ``at``."""

    at: int
    sizes: Ints  # (p,)
    turns: int

    @cached_property
    def places(self) -> Ints:
        """Where the headers of the first turn lie, (p,)."""
        return self.at + np.cumsum(self.sizes) - self.sizes

    @cached_property
    def size(self) -> int:
        """Bytes in a turn."""
        return int(self.sizes.sum())

    @property
    def end(self) -> int:
        return self.at + self.turns * self.size

    def heads(self) -> Ints:
        """Where every header lies, (turns * p,)."""
        return np.add.outer(np.arange(self.turns) * self.size, self.places).ravel()

    def span(self, heads: Ints) -> tuple[int, int, bool]:
        """Of ascending headers, where those of this stretch begin and end, and whether none is missing."""
        first, end = np.searchsorted(heads, [self.at, self.end]).tolist()
        count = len(self.sizes)
        turns = np.arange(self.turns) * self.size + self.at
        return first, end, end - first == self.turns * count and bool((heads[first:end:count] == turns).all())

    def find(self, heads: Ints) -> tuple[Ints, Ints, Ints]:
        """Of ascending headers, those of this stretch: their indices, and the turn and the place in it of each."""
        first, end, whole = self.span(heads)
        if whole:
            turn, place = np.divmod(np.arange(end - first), len(self.sizes))
        else:
            turn, inside = np.divmod(heads[first:end] - self.at, self.size)
            place = np.searchsorted(self.places - self.at, inside, side="right") - 1  # that of the record around it, in a torn one
        return np.arange(first, end), turn, place


def rhythm(sizes: Ints) -> int:
    """After how many records the last of these sizes come again, all through the last half; 0 where they do not."""
    last = sizes[::-1]
    raw, item = last.tobytes(), last.itemsize  # to compare bytes ends at the first that differs
    for period in (np.flatnonzero(last[1 : len(last) // _TIMES + 1] == last[0]) + 1).tolist():
        shown = max(_TIMES * period, len(last) // 2)
        if raw[period * item : shown * item] == raw[: (shown - period) * item]:
            return int(period)
    return 0


def stretches(heads: Ints, sizes: Ints) -> list[Stretch]:
    """Those of TURNS turns or more, among records that begin at these places and are that large."""
    sizes = sizes.copy()
    last = np.flatnonzero(heads[1:] != heads[:-1] + sizes[:-1])  # before a gap, which is in no rhythm
    sizes[last] = -1 - last
    found: list[Stretch] = []
    first = floor = misses = 0
    while first + LOOK <= len(sizes):
        period = rhythm(sizes[first : first + LOOK])
        if not period:
            misses += 1
            first += LOOK * min(misses, _STRIDE)  # where there is none, it is looked for less and less
            continue
        begin = first + LOOK - max(_TIMES * period, LOOK // 2)
        before = sizes[floor:begin] != sizes[floor + period : begin + period]
        begin -= int(before[::-1].argmax()) if before.any() else len(before)
        turns = _alike(sizes, begin, period) // period + 1
        if turns >= TURNS:
            found.append(Stretch(int(heads[begin]), sizes[begin : begin + period], turns))
        first, misses = begin + turns * period, 0
        floor = first
    return found


def _alike(sizes: Ints, begin: int, period: int) -> int:
    """How many of the sizes from there on come again after a period, without a break."""
    at, last = begin, len(sizes) - period
    while at < last:  # some at a time: a file of many stretches is not compared with all of its rest
        stop = min(at + 16 * LOOK, last)
        other = sizes[at + period : stop + period] != sizes[at:stop]
        if other.any():
            return at + int(other.argmax()) - begin
        at = stop
    return max(last - begin, 0)
