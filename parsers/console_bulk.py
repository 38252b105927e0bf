"""Lines of one shape by the thousand, for logs that say the same thing a million times. A helper of `console`.

A shape (`console_shapes`) is words with holes for numbers. All lines of a block walk through it together, a word or a
hole at a time; a line that differs anywhere falls out, and is read alone by the shape's regex or by its words. What
stays is what that regex would take: holes are filled up to the first byte of the next word, and hold a number.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from parsers.console_prefix import seconds

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from parsers.console_shapes import Shape

    Ints = npt.NDArray[np.int64]
    Words = npt.NDArray[np.uint64]

_LONGEST_LINE, _LONGEST_NUMBER = 2000, 24  # bytes
_PAD = bytes(4096)  # no line that falls out walks further than this behind the last one
_IN_NUMBERS = frozenset("-+.0123456789eEnaifNIAFtyKMBT,")


@dataclass
class Rows:
    """Lines that were read: which, and for each its step, its measurements, its clock and its rank (None: none has one)."""

    line: Ints  # index in the block
    step: Ints
    values: npt.NDArray[np.float64]  # a column for each measurement
    time: npt.NDArray[np.float64] | None
    rank: Ints | None
    _breaks: Ints | None = None  # rows before which lines of another shape stand, and the end

    def run(self, line: int) -> tuple[int, int]:
        """Where the rows of this line and of those right behind it begin, and how many there are."""
        import numpy as np

        first = int(np.searchsorted(self.line, line))
        if first == len(self.line) or self.line[first] != line:
            return first, 0
        if self._breaks is None:
            self._breaks = np.append(np.flatnonzero(np.diff(self.line) != 1) + 1, len(self.line))
        return first, int(self._breaks[np.searchsorted(self._breaks, first, side="right")]) - first

    def __getitem__(self, part: slice) -> Rows:
        time, rank = (None if c is None else c[part] for c in (self.time, self.rank))
        return Rows(self.line[part], self.step[part], self.values[part], time, rank)


@dataclass(frozen=True)
class _Hole:
    word: bytes  # what stands before it, without the spaces at its end
    padded: bool  # any number of spaces may follow the word
    width: int  # of a clock; 0: a number


class Block:
    """The lines of a text, and where each begins."""

    def __init__(self, text: str) -> None:
        import numpy as np

        from parsers import number_texts

        self.data = b"".join((text.encode("utf-8", "replace"), _PAD))
        self.words = number_texts.words(self.data)
        end = len(self.data) - len(_PAD)
        self.ends = np.flatnonzero(np.frombuffer(self.data, np.uint8, end) == 10)
        self.starts = np.concatenate([np.zeros(1, np.int64), self.ends + 1])[:-1]

    def read(self, shape: Shape, measured: list[int], year: int) -> Rows | None:
        """The lines that are of the shape; None where it is none for this reader. ``measured``: the holes that are."""
        import numpy as np

        from parsers import number_texts

        holes = _holes(shape)
        if holes is None or shape.step_at < 0:
            return None
        lines, at = np.arange(len(self.starts)), self.starts
        begins, ends = [], []
        for i, hole in enumerate(holes[0]):
            here = self._past(at, hole.word)
            if here is not None:
                lines, at = lines[here], at[here]
                begins, ends = [b[here] for b in begins], [e[here] for e in ends]
            at = at + len(hole.word)
            if hole.padded:
                at = self._past_spaces(at)
            begins.append(at)
            if i + 1 < len(holes[0]):
                after = holes[0][i + 1].word
                at = at + hole.width if hole.width else self._up_to(at, after[0] if after else holes[1])
                ends.append(at)
        begin, end = np.stack(begins[:-1]), np.stack(ends)
        good = self._past_spaces(at) == self.ends[lines]
        is_number = [i for i, hole in enumerate(holes[0][:-1]) if not hole.width]
        size = end[is_number] - begin[is_number]
        value, known = number_texts.floats(self.data, self.words, begin[is_number].ravel(), np.maximum(size, 0).ravel())
        value, known = value.reshape(size.shape), known.reshape(size.shape)
        good &= known.all(axis=0)
        time = None
        kept = holes[2]  # hole of each field
        number = {hole: n for n, hole in enumerate(is_number)}
        for f, hole in zip(shape.fields, kept, strict=True):
            if f.role == "time":
                time, sound = self._clock(begin[hole], holes[0][hole].width, shape.line.clock, year)
                good &= sound
        whole = [number[hole] for f, hole in zip(shape.fields, kept, strict=True) if f.role in _WHOLE]
        with np.errstate(invalid="ignore"):
            good &= ((value[whole] >= 0) & (value[whole] < 2.0**53) & (value[whole] % 1 == 0)).all(axis=0)
        rows = np.flatnonzero(good)
        of = {f.role: number[hole] for f, hole in zip(shape.fields, kept, strict=True) if f.role != "time"}
        rank = value[of["rank"]][rows].astype(np.int64) if "rank" in of else None
        step = value[number[kept[shape.step_at]]][rows].astype(np.int64)
        values = value[[number[kept[i]] for i in measured]].T[rows]
        return Rows(lines[rows], step, values, None if time is None else time[rows], rank)

    def _past(self, at: Ints, word: bytes) -> Ints | None:
        """Which of the lines have the word here; None: all."""
        import numpy as np

        here: Any = None
        for k in range(0, len(word), 8):
            piece = word[k : k + 8]
            mask = np.uint64((1 << 8 * len(piece)) - 1)
            same = self.words[at + k] & mask == np.uint64(int.from_bytes(piece, "little"))
            here = same if here is None else here & same
        return None if here is None or here.all() else np.flatnonzero(here)

    def _past_spaces(self, at: Ints) -> Ints:
        import numpy as np

        count = _lowest(self.words[at] ^ np.uint64(0x2020202020202020))
        at = at + count
        more = np.flatnonzero(count == 8)
        while len(more):
            count = _lowest(self.words[at[more]] ^ np.uint64(0x2020202020202020))
            at[more] += count
            more = more[(count == 8) & (at[more] < len(self.data) - len(_PAD))]
        return at

    def _up_to(self, at: Ints, byte: int) -> Ints:
        """The next place of a byte, or _LONGEST_NUMBER further on."""
        import numpy as np

        ones = np.uint64(0x0101010101010101)
        every, top = np.uint64(byte) * ones, np.uint64(0x8080808080808080)

        def found(at: Ints) -> Ints:
            word = self.words[at] ^ every
            return _lowest((word - ones) & ~word & top)

        count = found(at)
        at = at + count
        more = np.flatnonzero(count == 8)
        for _ in range(8, _LONGEST_NUMBER, 8):
            if not len(more):
                break
            count = found(at[more])
            at[more] += count
            more = more[count == 8]
        return at

    def _clock(self, at: Ints, width: int, kind: str, year: int) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.bool_]]:
        """ISO clocks: each minute is worked out once, the seconds come digit by digit."""
        import numpy as np

        first, second = self.words[at], self.words[at + 8]
        changes = np.concatenate([[True], (first[1:] != first[:-1]) | (second[1:] != second[:-1])]) if len(at) else np.zeros(0, np.bool_)
        turns = np.flatnonzero(changes)
        minutes = [_minute(self.data[place : place + 16].decode("ascii", "replace"), kind, year) for place in at[turns].tolist()]
        known = np.array([np.nan if m is None else m for m in minutes], np.float64)
        octets = np.frombuffer(self.data, np.uint8)
        digits, sound, places = np.zeros(len(at), np.int64), np.ones(len(at), np.bool_), 0
        for k in range(17, width):
            byte = octets[at + k]
            if k == 19:
                sound &= (byte == ord(".")) | (byte == ord(","))
                continue
            sound &= (byte >= ord("0")) & (byte <= ord("9"))
            digits, places = digits * 10 + (byte - ord("0")), places + (k > 19)
        time = known[np.cumsum(changes) - 1] + digits / 10**places
        sound &= octets[at + 16] == ord(":")
        return time, sound & ~np.isnan(time)


_WHOLE = {"step", "it", "total", "epoch", "rank"}


@lru_cache(maxsize=4096)
def _minute(text: str, kind: str, year: int) -> float | None:
    return seconds(text, kind, year)


def _lowest(word: Words) -> Ints:
    """Index of the lowest byte that is not zero; 8: all are."""
    import numpy as np

    below = (word & (~word + np.uint64(1))) - np.uint64(1)
    return (np.bitwise_count(below) >> 3).astype(np.int64)


def _holes(shape: Shape) -> tuple[list[_Hole], int, list[int]] | None:
    """The shape's words, each with the hole behind it (none behind the last), what ends the last hole, and the hole of each field."""
    line, text = shape.line, shape.line.text
    if not shape.simple or line.scaled or len(text) > _LONGEST_LINE:
        return None
    holes, kept, position = [], [], 0
    for f in line.fields:
        literal, word = text[position : f.start], text[f.start : f.end]
        width = len(word) if f.role == "time" else 0
        if "%|" in literal or f.tag == "clock" or ("," in word and not width) or (width and not _ISO.fullmatch(word)):
            return None
        bare = literal.rstrip(" ")
        if holes and not holes[-1].width and (not bare or bare[0] in _IN_NUMBERS or ord(bare[0]) > 127):
            return None
        holes.append(_Hole(bare.encode(), bare != literal, width))
        if f.role not in {"skip", "epochs"}:
            kept.append(len(holes) - 1)
        position = f.end
    rest = text[position:].rstrip()
    if not holes or (rest and not holes[-1].width and (rest[0] in _IN_NUMBERS or ord(rest[0]) > 127)):
        return None
    ends = ord(rest[0]) if rest else 10
    return [*holes, _Hole(rest.encode(), False, 0)], ends, kept


_ISO = re.compile(r"\d{4}.\d\d.\d\d.\d\d:\d\d:\d\d([.,]\d{1,9})?")
