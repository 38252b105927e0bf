"""Lines that come again and again with other numbers, in a log of which no line is understood by its words: ``k=10  TD 4.1 + α·CQL 9.0 = 13.1 | Qdata 0.27``.

What a loop prints has the same names each time, fractions that change, and a count that rises. Each number is called by the words before it. Nothing of this
is used where any line of the log measures by its words: what surrounds a loop, of files, shapes and timings, is alike as well.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from parsers.console_format.line_prefix import Field, Line, Where, number, whole
from parsers.console_format.measured import Measured
from parsers.lazy_regex import lazy_re

NOTE = "no line measures by its words: lines that come again with other numbers were read, each number called by the words before it"
_TIMES, _UNCOUNTED = 5, 10  # bounds: lines alike that show a loop, with a count that rises and without one
_MOST_KINDS, _MOST_LINES, _LONGEST = 300, 50_000, 400  # bounds
_PARTS = lazy_re(r"[|,;:(){}\[\]=→>»·•∙◦]|\s{2,}|\s[-—–+/*≫♪]\s|//")
_NAMELESS = "value"
_EDGES = " \t.+*~#\"'-—–_/\\"
_NUMBERED = lazy_re(r"^(?:\d\S{0,20} )+")  # "140tok rollout": a number with a unit that is not known
_LETTER = lazy_re(r"[^\W\d_]|∇")
_BEHIND = lazy_re(r"\s?([^\W\d_][\w²³]{0,15}(?: [^\W\d_]\w{0,15})?)\s*(?:[,;|)]|$)")
_MARKED = {"time", "rank"}


class _Row(NamedTuple):
    where: Where
    values: list[float]
    whole: list[bool]


class LinesAlike:
    """``feed`` takes lines, ``finish`` gives what those of one kind measure to the log's measurements."""

    def __init__(self) -> None:
        self._kinds: dict[tuple[str, ...], list[_Row]] = {}
        self._lines = 0

    def feed(self, measured: Measured, where: Where, line: Line) -> None:
        """Takes a line that measured nothing, in a log in which nothing was measured yet."""
        if self._lines > _MOST_LINES or len(line.text) > _LONGEST or not measured.empty():
            return
        self._lines += 1
        fields = [f for f in line.fields if f.role not in _MARKED and f.tag != "clock"]
        numbers = [line.text[f.start : f.end] for f in fields]
        names = _names(line, fields)
        kind = tuple(f"{name} {names[: i + 1].count(name)}" if name in names[:i] else name for i, name in enumerate(names))
        known = kind in self._kinds or len(self._kinds) < _MOST_KINDS
        if known and any(name != _NAMELESS for name in names):  # rows of bare numbers are no lines of a loop
            row = _Row(where, [number(x) for x in numbers], [whole(x) is not None and "." not in x for x in numbers])
            self._kinds.setdefault(kind, []).append(row)

    def finish(self, measured: Measured) -> None:
        """The log is over: what its lines alike say, where nothing was measured."""
        if not measured.empty():
            return
        for where, step, metrics in self._rows():
            measured.put(where, step, metrics)
            measured.now.step, measured.started, measured.notes[NOTE] = step, True, None

    def _rows(self) -> Iterator[tuple[Where, int | None, list[tuple[str, float]]]]:
        """Place, step, and what was measured; a line without a count of its own is at the step of the one above."""
        found: list[tuple[Where, int | None, list[tuple[str, float]]]] = []
        for names, rows in self._kinds.items():
            count = _count(rows) if len(rows) >= _TIMES else None
            if len(rows) < (_TIMES if count is not None else _UNCOUNTED) or not any(_measured(rows, i) for i in range(len(names))):
                continue
            for row in rows:
                step = int(row.values[count]) if count is not None else None
                found.append((row.where, step, [(names[i], v) for i, v in enumerate(row.values) if i != count]))
        last: int | None = None
        for where, step, metrics in sorted(found, key=lambda x: x[0].place):
            last = step if step is not None else last
            yield where, last, metrics


def _names(line: Line, fields: list[Field]) -> list[str]:
    """What each number is called: by the words before it, else by the word behind it, and by the split that the line begins with (``Val: l1 0.4 kl 4.1``)."""
    begins = bool(line.mode) and line.text[line.body :].lstrip(_EDGES + "[(|").lower().startswith(line.mode[:3])
    names, end = list[str](), line.body
    for f in fields:
        name = _called(line.text[end : f.start]) or _behind(line.text[f.end :]) or _NAMELESS
        names.append(f"{line.mode} {name}" if begins and line.mode not in name else name)
        end = f.end
    return names


def _called(gap: str) -> str:
    """The words before a number, back to what parts it from others; nothing where there is none."""
    name = _NUMBERED.sub("", _PARTS.split(gap.rstrip(" \t=:([{<≈\"'→"))[-1].strip(_EDGES))
    return name if _LETTER.search(name) and len(name) <= 60 else ""


def _behind(text: str) -> str:
    m = _BEHIND.match(text)
    return "" if m is None else m[1]


def _count(rows: list[_Row]) -> int | None:
    """The first of the numbers of lines alike that is whole in each of them, never falls, and rises at least every second time."""
    for i in range(len(rows[0].values)):
        x = [r.values[i] for r in rows]
        moves = [b - a for a, b in zip(x, x[1:], strict=False)]
        if all(r.whole[i] for r in rows) and min(moves) >= 0 and 2 * sum(m > 0 for m in moves) >= len(moves) and x[0] >= 0:
            return i
    return None


def _measured(rows: list[_Row], i: int) -> bool:
    """Whether a number is a fraction most times, and changes."""
    return 2 * sum(not r.whole[i] for r in rows) > len(rows) and len({r.values[i] for r in rows}) > len(rows) // 2
