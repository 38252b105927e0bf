"""Lines of one shape by the thousand, for logs that say the same thing a million times. A helper of `console`.

A shape (`console_shapes`) is words with holes for numbers. All lines of a block walk through it together, a word or a
hole at a time; a line that differs anywhere falls out, and is read alone by the shape's regex or by its words. What
stays is what that regex would take: holes are filled up to the first byte of the next word, and hold a number.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from parsers.console_format.line_prefix import seconds

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from parsers.console_format.line_shapes import Shape

    Ints = npt.NDArray[np.int64]
    Floats = npt.NDArray[np.float64]
    Bools = npt.NDArray[np.bool_]
    Words = npt.NDArray[np.uint64]

_LONGEST_LINE, _LONGEST_NUMBER = 2000, 24  # bytes
_PAD = bytes(4096)  # no line that falls out walks further than this behind the last one
_IN_NUMBERS = frozenset("-+.0123456789eEnaifNIAFty")  # as in console_shapes


@dataclass
class Rows:
    """Lines that were read: which, and for each its step, its measurements, its clock and its rank (None: none has one)."""

    line: Ints  # index in the block
    step: Ints
    values: Floats  # a column for each measurement
    time: Floats | None
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
        time = None if self.time is None else self.time[part]
        rank = None if self.rank is None else self.rank[part]
        return Rows(self.line[part], self.step[part], self.values[part], time, rank)


@dataclass(frozen=True)
class _Hole:
    before: bytes  # the words before it, without the spaces at their end
    padded: bool  # any number of spaces may follow them
    width: int  # of a clock; 0: a number
    stop: int  # the byte that ends a number


@dataclass(frozen=True)
class _Template:
    holes: list[_Hole]
    tail: bytes  # behind the last hole
    of_field: list[int]  # the hole of each field of the shape


class Block:
    """The lines of a text, and where each begins."""

    def __init__(self, text: str) -> None:
        import numpy as np

        from parsers.records import number_texts

        self.data = b"".join((text.encode("utf-8", "replace"), _PAD))
        self.words = number_texts.words(self.data)
        end = len(self.data) - len(_PAD)
        self.ends = np.flatnonzero(np.frombuffer(self.data, np.uint8, end) == 10)
        self.starts = np.concatenate([np.zeros(1, np.int64), self.ends + 1])[:-1]

    def read(self, shape: Shape, measured: list[int], year: int) -> Rows | None:
        """The lines that are of the shape; None where it is none for this reader. ``measured``: the fields that are."""
        import numpy as np

        from parsers.records import number_texts

        template = _template(shape)
        if template is None or shape.step_at < 0:
            return None
        lines, begin, end, at = self._walk(template)
        good = self._past_spaces(at) == self.ends[lines]
        numbers = [i for i, hole in enumerate(template.holes) if not hole.width]
        size = end[numbers] - begin[numbers]
        value, known = number_texts.floats(self.data, self.words, begin[numbers].ravel(), size.ravel())
        value, known = value.reshape(size.shape), known.reshape(size.shape)
        good &= known.all(axis=0)
        row = {hole: n for n, hole in enumerate(numbers)}  # of value
        time, rank = None, None
        for f, hole in zip(shape.fields, template.of_field, strict=True):
            if f.role == "time":
                time, sound = self._clock(begin[hole], template.holes[hole].width, shape.line.clock, year)
                good &= sound
            elif f.role in _WHOLE:
                number = value[row[hole]]
                with np.errstate(invalid="ignore"):
                    good &= (number >= 0) & (number < 2.0**31 if f.role == "rank" else number < 2.0**53) & (number % 1 == 0)
                rank = number if f.role == "rank" else rank
        rows = np.flatnonzero(good)
        step = value[row[template.of_field[shape.step_at]]][rows].astype(np.int64)
        values = value[[row[template.of_field[i]] for i in measured]].T[rows]
        return Rows(lines[rows], step, values, None if time is None else time[rows],
                    None if rank is None else rank[rows].astype(np.int64))  # fmt: skip

    def _walk(self, template: _Template) -> tuple[Ints, Ints, Ints, Ints]:
        """-> the lines that have all the words, where each of their holes begins and ends, and where they are then."""
        import numpy as np

        lines, at = np.arange(len(self.starts)), self.starts
        begins: list[Ints] = []
        ends: list[Ints] = []
        for hole in template.holes:
            at, here = self._past(at, hole.before)
            if here is not None:
                lines, begins, ends = lines[here], [b[here] for b in begins], [e[here] for e in ends]
            begins.append(self._past_spaces(at) if hole.padded else at)
            at = begins[-1] + hole.width if hole.width else self._up_to(begins[-1], hole.stop)
            ends.append(at)
        at, here = self._past(at, template.tail)
        if here is not None:
            lines, begins, ends = lines[here], [b[here] for b in begins], [e[here] for e in ends]
        return lines, np.stack(begins), np.stack(ends), at

    def _past(self, at: Ints, word: bytes) -> tuple[Ints, Ints | None]:
        """-> the places behind the word, of the lines that have it here, and which these are (None: all)."""
        import numpy as np

        same = np.ones(len(at), np.bool_)
        for k in range(0, len(word), 8):
            piece = word[k : k + 8]
            mask = np.uint64((1 << 8 * len(piece)) - 1)
            same &= self.words[at + k] & mask == np.uint64(int.from_bytes(piece, "little"))
        if same.all():
            return at + len(word), None
        here = np.flatnonzero(same)
        return at[here] + len(word), here

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

    def _clock(self, at: Ints, width: int, kind: str, year: int) -> tuple[Floats, Bools]:
        """ISO clocks, and which are sound: each minute is worked out once, the seconds come digit by digit."""
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


def _template(shape: Shape) -> _Template | None:
    """The shape's words and holes, where each hole's end can be told from the byte behind it."""
    line, text = shape.line, shape.line.text
    if not shape.simple or line.scaled or len(text) > _LONGEST_LINE:
        return None
    holes: list[_Hole] = []
    of_field: list[int] = []
    position = 0
    for f, after in zip(line.fields, [*(g.start for g in line.fields[1:]), len(text)], strict=True):
        before, word, behind = text[position : f.start], text[f.start : f.end], text[f.end : after].rstrip(" ")
        width = len(word) if f.role == "time" else 0
        if "%|" in before or f.tag == "clock" or (width and not _ISO.fullmatch(word)) or ("," in word and not width):
            return None
        stop = behind[:1] or ("\n" if after == len(text) else "")
        if not width and (not stop or stop in _IN_NUMBERS or not stop.isascii()):
            return None
        bare = before.rstrip(" ")
        holes.append(_Hole(bare.encode("utf-8", "replace"), bare != before, width, ord(stop) if stop else 0))
        if f.role not in {"skip", "epochs"}:
            of_field.append(len(holes) - 1)
        position = f.end
    return _Template(holes, text[position:].rstrip().encode("utf-8", "replace"), of_field) if holes else None


_ISO = re.compile(r"\d{4}.\d\d.\d\d.\d\d:\d\d:\d\d([.,]\d{1,9})?")
