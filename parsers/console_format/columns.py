"""Reads tables that consoles print: a line of names, and rows of numbers below it, with borders, rules or only spaces between.

sklearn's gradient boosting (``Iter  Train Loss  Remaining Time``), skorch, fastai, rich, tabulate, and by hand. What proves a table:

- The names have an axis among them, a step or an epoch, and no number; the line below (behind rules) is a row with as many cells, whose
  axis is a whole number. An axis that is often something else (``episode``, ``batch``) must rise from row to row as well.
  Names of four columns and more wait for it, whatever is printed between (Towards-Realtime-MOT).
- Rows go on, whatever else is printed between them, until another line of names has rows. The axis falls (a restart, a step back) only
  where the names are printed again or the row has the decimals of the one before.
- The first column may have no name, as where pandas prints a table; it must rise then.
- ``-`` and words are no values. Of ``12.3 s``, ``45%`` and ``0.31*`` the number counts; of a clock (``00:12``) nothing.
- A row of fewer cells than names has its cells under the names that they stand below.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

from parsers.console_format.grammars import EVAL, NUM
from parsers.console_format.line_labels import EVAL_WORD, TRAIN_WORD
from parsers.console_format.line_numbers import SKIP
from parsers.console_format.line_prefix import Field, Line, Where, number, whole
from parsers.console_format.phases import Headings
from parsers.lazy_regex import lazy_re
from parsers.records import vocabulary

_MOST_TEXT = 1000  # characters of a line (a bound): wider tables are data, not reports
_WEAK = vocabulary.WEAK_STEP | {*vocabulary.COUNTED}
_MANY, _PATIENCE = 4, 20  # names that no prose has, and lines that may be printed between them and their first row (bounds)
_AXES = {*vocabulary.STEP, *vocabulary.EPOCH, *_WEAK}
_AXIS_WORDS = {re.split(r"[_/]", a)[-1] for a in _AXES}
_WORD = lazy_re(r"[a-z]+")
_NUMBER_ALONE = lazy_re(r"(?<![\w@.:/()-])\d|[=:](?:\s|$)")  # what no line of names has
_NAME = lazy_re(r"[#%]? *[^\W\d_][^=|]{0,40}|[|‖]{1,2}[^\s=|‖]{1,20}[|‖]{1,2}\w{0,3}")  # a norm may be called |g|
_RULE = lazy_re(r"[\s\-=+|:─━═┄│┃║┌┐└┘├┤┬┴┼╔╗╚╝╠╣╦╩╬┏┓┗┛┣┫┳┻╋┡┩╇╪╞╡┠┨┯┷┼]+")
_BARS = lazy_re(r"[|│┃║]")
_WIDE = lazy_re(r"\S+(?: \S+)*")
_UNIT = r"(?:%|[mµun]?s|secs?|mins?|[mhGMkK]|[GMk]i?B|(?:it|tok|samples)/s|s/it)"
_SPACED = lazy_re(rf"{NUM} {_UNIT}(?=\s|$)|(?:[!#] +)?\S+")
_CELL = lazy_re(rf"[\"'(\[]?(?P<value>{NUM})\s?(?:{_UNIT})?[\"')\]]?\s?[*+↓↑✓]?")
_OF = lazy_re(r"(?P<value>\d+)\s?/\s?(?P<total>\d+)")
_SPLITS = {**EVAL, "train": "train", "training": "train"}  # in a cell: whose row it is
_MISSING = lazy_re(r"(?i)|-+|—|n/?a|none|no log|\?|\d+:\d\d(?::\d\d)?(?:\.\d+)?")

Span = tuple[int, int]
Form = tuple[int, ...]


def _between(pattern: re.Pattern[str]) -> Callable[[str, int], list[Span]]:
    """Cells between marks, blanks around them taken off."""

    def spans(text: str, pos: int) -> list[Span]:
        edges, found = [(m.start(), m.end()) for m in pattern.finditer(text, pos)], []
        for a, b in zip([pos, *(e for _, e in edges)], [*(s for s, _ in edges), len(text)], strict=True):
            cell = text[a:b]
            found.append((a + len(cell) - len(cell.lstrip()), b - len(cell) + len(cell.rstrip())))
        if pattern is _BARS:  # borders
            found = found[not text[slice(*found[0])].strip() :]
            found = found[: len(found) - (not text[slice(*found[-1])].strip())] if found else found
        return [(a, max(a, b)) for a, b in found]

    return spans


def _matches(pattern: re.Pattern[str]) -> Callable[[str, int], list[Span]]:
    return lambda text, pos: [m.span() for m in pattern.finditer(text, pos)]


_STYLES = (("\t", _between(lazy_re("\t"))), (";", _between(lazy_re(";"))), (",", _between(lazy_re(","))))


class Header(NamedTuple):
    """A line of names that may be that of a table."""

    names: list[str]
    spans: list[Span]
    cells: Callable[[str, int], list[Span]]
    spaced: bool  # nothing but spaces between the cells: an empty one leaves no trace
    axis: int
    epoch: int | None
    weak: bool  # the axis is one only where it rises


def headers(text: str, pos: int) -> list[Header]:
    """The ways to read a line as names of columns, an axis among them."""
    counts = "#" in text or text.startswith(",", pos) or not _AXIS_WORDS.isdisjoint(_WORD.findall(text.lower(), pos))
    if len(text) > _MOST_TEXT or not counts or _NUMBER_ALONE.search(text, pos):
        return []
    if _BARS.search(text, pos):
        split = _between(_BARS)
        if bordered := _named(text, split(text, pos), split, spaced=False):
            return bordered
    for mark, split in _STYLES:
        if mark in text[pos:].strip():
            return _named(text, split(text, pos), split, spaced=False)
    wide, words = _matches(_WIDE)(text, pos), _matches(re.compile(r"(?:# +)?\S+"))(text, pos)
    rows = _matches(_SPACED)
    return _named(text, wide, rows, spaced=True) + (_named(text, words, rows, spaced=True) if words != wide else [])


def _named(text: str, spans: list[Span], cells: Callable[[str, int], list[Span]], spaced: bool) -> list[Header]:
    names = [text[a:b] for a, b in spans]
    indexed = names[0] == "" and not spaced  # as pandas prints a table: the rows are counted in a column without a name
    if len(names) < 2 or not all(n == "#" or (_NAME.fullmatch(n) and len(n.split()) <= 4) for n in names[indexed:]):
        return []
    keys = [vocabulary.plain(n.lstrip("# ")) or n for n in names]
    keys[:2] = ["epoch", "step"] if keys[:2] == ["e", "#"] else keys[:2]  # spaCy's
    epoch = next((keys.index(e) for e in vocabulary.EPOCH if e in keys), None)
    steps = vocabulary.step_names(keys) + [k for k in keys if k in _WEAK and k not in vocabulary.STEP_ORDER]
    if indexed and not steps and epoch is None:
        return [Header(names, spans, cells, spaced, 0, None, weak=True)]
    sure = [s for s in steps if s not in _WEAK or epoch is not None]
    if not steps and epoch is None:
        return []
    axis = keys.index(sure[0]) if sure else epoch if epoch is not None else keys.index(steps[0])
    return [Header(names, spans, cells, spaced, axis, epoch, weak=not sure and epoch is None)]


class Columns:
    """``names`` takes a line that may head a table, ``row`` one that may be a row: the lines to report, with fields as `read_line` makes them."""

    def __init__(self) -> None:
        self._waiting: list[Header] = []
        self._table: Header | None = None
        self._mode, self._names_at = "", 0  # whose rows they are; where the names stand
        self._last: tuple[int, int] | None = None  # epoch and step of the last row
        self._again = False  # its names were printed again since
        self._form: Form = ()  # how the last row was printed
        self._held: list[tuple[Where, Line]] = []  # the first row under an axis that must yet rise

    def names(self, n: int, line: Line, headings: Headings) -> None:
        """Line n: may it be one of names? ``headings`` say whether what follows is of an evaluation."""
        if found := headers(line.text, line.body):
            again = self._table is not None and found[0].names == self._table.names
            self._mode = headings.phase(n) if not again or headings.line > self._names_at else self._mode
            self._waiting, self._again, self._names_at = [] if again else found, again, n

    def row(self, where: Where, line: Line) -> list[tuple[Where, Line]] | None:
        """The rows that this line proves (none yet where the axis must rise first), None where it is no row of a table."""
        text = line.text
        if not (self._waiting or self._table) or len(text) > _MOST_TEXT:
            return None
        if _RULE.fullmatch(text, line.body):
            return [] if self._waiting else None
        for header in self._waiting:
            if (fields := _fields(header, text, line.body, self._mode)) is not None:
                self._table, self._waiting, self._last, self._held = header, [], None, []
                return self._proved(header, where, line, fields)
        if where.line - self._names_at > (_PATIENCE if any(not h.weak and len(h.names) >= _MANY for h in self._waiting) else 0):
            self._waiting = []
        if self._table is None or (fields := _fields(self._table, text, line.body, self._mode)) is None:
            return None
        return self._proved(self._table, where, line, fields)

    def _proved(self, header: Header, where: Where, line: Line, fields: list[Field]) -> list[tuple[Where, Line]] | None:
        at = {f.role: whole(line.text[f.start : f.end]) or 0 for f in fields}
        place, form = (at.get("epoch", 0), at.get("step", 0)), _form(line.text, fields)
        last, before, self._again = self._last, self._again, False
        if last is not None and not before:
            odd = any(form) < any(self._form)  # whole numbers under fractions
            if odd or (place < last and form != self._form) or (header.weak and place <= last):
                return None
        line.fields += fields
        words = {EVAL.get(f.tag.split()[0].lower(), "") for f in fields if f.role == "metric"}
        line.mode = words.pop() if len(words) == 1 else ""
        self._last, self._form = place, form
        if header.weak and last is None:
            self._held = [(where, line)]
            return []
        held, self._held = self._held, []
        return [*held, (where, line)]


def _fields(header: Header, text: str, pos: int, mode: str) -> list[Field] | None:
    """The numbers of a row by their names; None where the line is no row."""
    spans = header.cells(text, pos)
    if any(("[" in text[a:b]) != ("]" in text[a:b]) for a, b in spans):
        return None  # pieces of a list, which are no columns (DeepXDE)
    under = range(len(spans)) if len(spans) == len(header.names) else _below(header, spans) if header.spaced else None
    if under is None:
        return None
    found: list[Field] = []
    values = missing = 0
    mode = next((word for a, b in spans if (word := _SPLITS.get(text[a:b].strip("!# ").lower()))), mode)
    for (a, b), i in zip(spans, under, strict=True):
        cell, name = text[a:b], header.names[i]
        m = _CELL.fullmatch(cell)
        if i in {header.axis, header.epoch}:
            role = "epoch" if i == header.epoch else "step"
            if of := _OF.fullmatch(cell):
                found.append(Field(role, name, a + of.start("value"), a + of.end("value")))
                found.append(Field("epochs" if role == "epoch" else "total", name, a + of.start("total"), a + of.end("total")))
            elif m is not None and whole(m["value"]) is not None and number(m["value"]) >= 0:
                found.append(Field(role, name, a + m.start("value"), a + m.end("value")))
                continue
            elif i == header.axis:
                return None
            if of is not None:
                continue
        if m is not None:
            values += 1
            tag = f"{mode} {name}" if mode and not EVAL_WORD.search(name) and not TRAIN_WORD.search(name) else name
            found.append(Field("skip" if SKIP.match(name) else "metric", tag, a + m.start("value"), a + m.end("value")))
        else:
            missing += _MISSING.fullmatch(cell) is not None
    known = any(i == header.axis for i in under)
    return found if known and values and 2 * (values + missing) >= len(spans) - 1 else None


def _below(header: Header, spans: list[Span]) -> list[int] | None:
    """The names that the cells of a row with empty places stand below; None where one stands below none, or two below one."""
    found: list[int] = []
    for a, b in spans:
        below = [i for i, (start, end) in enumerate(header.spans) if a < end and start < b]
        if len(below) != 1 or (found and below[0] <= found[-1]):
            return None
        found += below
    return found or None


def _form(text: str, fields: list[Field]) -> Form:
    """How many decimals the measurements of a row have; what is not finite may have any."""
    words = [text[f.start : f.end].lower() for f in fields if f.role == "metric"]
    return tuple(-1 if "n" in w else len(w.partition("e")[0].partition(".")[2]) for w in words)
