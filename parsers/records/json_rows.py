"""Rows of JSON objects -> metrics, batches, events, config: what JSON lines and documents share. A helper, no parser.

Which number is the step: the best name of json_values.STEP_KEYS that holds whole numbers, at the top of the row or
one object deep; json_steps has the rules for rows without one. Rows marked ``mode``, ``split``, ``phase``, ... =
val or test share their keys with training rows: their tags get the mark in front (``val/loss``). Nested keys are
joined by "/", short lists of numbers by their index.

Rows are taken apart column by column, all rows of one shape at once: the usual log has one or two shapes.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa

from parsers import rank_names
from parsers.console_format.event_lines import Event
from parsers.console_format.spoken import event_in
from parsers.console_format.tracebacks import TRACEBACK
from parsers.lazy_regex import lazy_re
from parsers.names import meaning
from parsers.records import json_columns
from parsers.records import json_values as v
from parsers.records.cells import as_number
from parsers.records.gather import Gathered
from parsers.records.json_columns import Table
from parsers.records.parts import Floats, Ints, Part
from parsers.records.vocabulary import EPOCH, TIME, last, plain
from parsers.tables import Note

Row = dict[str, Any]
_CALM = {"debug", "info"}  # levels
_OF_MACHINES = lazy_re(r"(?:other|mem|gpu|cpu)\b")  # names of metrics
_MAX_LIST, _MAX_DEPTH, _MAX_TAGS = 16, 20, 500_000
_PARTING, _LONGEST_LIST = lazy_re(r"[/,;\s]+"), 400  # characters


class Log(Gathered):
    """Gathers the rows of one file."""

    def __init__(self, *, fill: bool = True, rank: int | None = None) -> None:
        super().__init__(fill=fill, rank=rank)
        self.has_steps = False
        self.only_events = True  # every row names an event, and none a step
        self._tags: set[str] = set()
        self._settings = ""

    def add(self, rows: Sequence[Row], at: Sequence[int]) -> Iterator[pa.RecordBatch]:
        """Takes rows in, in file order. Many events and much config come out at once, metrics with :meth:`finish`."""
        shapes = list(map(tuple, rows))
        where: dict[tuple[str, ...], list[int]] = {s: [] for s in dict.fromkeys(shapes)}
        if len(where) > 1:
            for i, shape in enumerate(shapes):
                where[shape].append(i)
        for shape, members in where.items():
            picked, places = ([rows[i] for i in members], [at[i] for i in members]) if members else (rows, at)
            for word, some, some_at in _by_mode(shape, picked, places) if shape else ():
                self._group(shape, some, Part(np.array(some_at, np.int64), evaluation=word))
        if self.rows.full():
            yield from self.rows.flush()

    def finish(self) -> Iterator[pa.RecordBatch | Note]:
        """Rows of an agent that watches a training are no steps of it: they name events, and measure nothing of what is trained."""
        if self.only_events and all(_OF_MACHINES.match(meaning(tag).name) for tag in self._tags):
            self.fill = False
        yield from super().finish()

    def _group(self, shape: tuple[str, ...], rows: Sequence[Row], part: Part) -> None:
        values = list(chain.from_iterable(map(dict.values, rows)))
        table: Table = {k: values[i :: len(shape)] for i, k in enumerate(shape)}
        names = {plain(k): k for k in reversed(table)}
        json_columns.find_axes(part, names, table)
        json_columns.find_samples(part, table)
        if self._header(part, names, table):
            return
        for key in [k for k in table if plain(k) in v.CONFIG_KEYS and all(isinstance(x, dict) for x in table[k])]:
            for settings, at in zip(table.pop(key), part.at.tolist(), strict=True):
                self._config_once(settings, at)
        texts = {k for k, c in table.items() if any(isinstance(x, str) for x in c[:100])}
        for tag, column, index in json_columns.long_format(names, table) or [(k, c, None) for k, c in table.items()]:
            self._column(part, tag, column, index)
        if part.samples and all(last(tag) in v.AXES for tag, _, _ in part.columns):
            part.columns = []  # a manifest: its numbers are axes
        message = next((names[n] for n in v.MESSAGE_KEYS if names.get(n) in texts), None)
        closing = self.has_steps and part.steps is None and part.epochs is None  # the summary at a log's end
        if message or (texts and not part.samples and (closing or not part.columns)):
            self._events(part, names, rows, message)
        elif texts and not part.samples:
            placed = part.steps is not None or part.epochs is not None  # measurements: only a field of an error tells more
            spoken = {x for k in texts if not placed or plain(k) in v.ERROR_KEYS for x in table[k] if isinstance(x, str)}
            said = {x for x in spoken if event_in(x) is not None}
            if said:  # values measured beside words that a console would print
                self._events(part, names, rows, None, said)
        self.only_events &= part.steps is None and part.epochs is None and part.times is not None and bool(names.keys() & v.ONLY_EVENTS)
        if part.columns or part.samples:
            self.has_steps |= part.steps is not None
            self.parts.append(part)

    def _header(self, part: Part, names: dict[str, str], table: Table) -> bool:
        """Rows before the first step that are mostly text are settings (MMCV's env_info, {"type": "config", ...})."""
        if part.steps is not None or part.epochs is not None or part.samples or not table:
            return False
        kind = next((str(table[names[n]][0]).lower() for n in v.EVENT_KEYS if n in names and names[n] in table), "")
        kind = v.LAST_PART.split(kind)[-1]  # "fit.start"
        texts = sum(isinstance(c[0], (str, dict)) for c in table.values())
        early = not self.has_steps and len(part.at) == 1 and not names.keys() & set(v.MESSAGE_KEYS) and kind == ""
        if not (kind in v.HEADER_WORDS or (early and texts and (texts * 2 >= len(table) or names.keys() & v.CONFIG_KEYS))):
            return False
        for i, at in enumerate(part.at.tolist()):
            for key, column in table.items():
                for k, x in v.flat("" if isinstance(column[i], dict) and plain(key) in v.CONFIG_KEYS else key, column[i]):
                    self.rows.config(k, x, at=at)
        return True

    def _config_once(self, settings: Row, at: int) -> None:
        """Settings that every row repeats (Ray Tune): once, and again where they change."""
        text = repr(settings)
        if text != self._settings:
            self._settings = text
            for key, value in v.flat("", settings):
                self.rows.config(key, value, at=at)

    def _events(self, part: Part, names: dict[str, str], rows: Sequence[Row], message: str | None, said: set[str] | None = None) -> None:
        """What rows say, each in its own words or in those that a console would print; ``said``: only rows that say one of these."""
        kinds = [names[n] for n in v.EVENT_KEYS if n in names]
        level = next((names[n] for n in v.LEVEL_KEYS if n in names), None)
        reports = part.steps is not None and bool(part.columns)  # what is measured at a step is no event, as in a console
        used = {level, *(names[n] for n in TIME if n in names)}
        for i, (row, at) in enumerate(zip(rows, part.at.tolist(), strict=True)):
            if said is not None and not any(x in said for x in row.values() if isinstance(x, str)):
                continue
            kind = next((row[k] for k in kinds if isinstance(row[k], str) and len(row[k]) < 40), "log")
            rest = [f"{k}={x}" for k, x in row.items() if k not in used and x != kind and isinstance(x, (str, int, float))]
            text = str(row[message]) if message else " ".join([kind, *rest])[:2000]
            grade, step = str(row[level]).lower() if level else "info", part.step_of(i)
            if v.RESUMED.fullmatch(kind) or any(
                (v.RESUMED_FROM.fullmatch(k) and x) or (x is True and v.RESUMED.fullmatch(k)) for k, x in row.items()
            ):
                kind = "resume"
            elif said or not (reports and grade in _CALM):
                event = _reported(row, text)
                if event is not None and (said or kind == "log" or event.level == "error"):
                    kind, grade, text = event.kind, event.level, event.text
                    step = event.step if kind == "resume" else step
            self.rows.event(
                _sound(kind), _sound(text), level=_sound(grade), step=step, time=part.time_of(i), at=at, rank=part.rank_of(i, self.rank)
            )

    def _column(self, part: Part, tag: str, column: Sequence[Any], index: Ints | None, depth: int = 0) -> None:
        """The numbers of a column, wherever they are in it; ``index`` says which rows it belongs to (None: all)."""
        kinds = set(map(type, column))
        if kinds <= {float, int} and (numbers := v.float_column(column)) is not None:
            self._keep(part, tag, index, numbers)
            return
        if kinds <= {bool, type(None)} or (kinds <= {str, type(None)} and v.IDENTIFIER.search(last(tag))):
            return
        column = list(map(_several, column))
        found, values = [], array("d")
        inner: dict[tuple[Any, ...], list[int]] = {}  # keys of objects, places of lists -> rows
        for i, value in enumerate(column):
            number = as_number(value)
            if number is not None:
                found.append(i)
                values.append(number)
            elif isinstance(value, dict) and "_type" not in value:  # W&B's media have one
                inner.setdefault(tuple(value), []).append(i)
            elif isinstance(value, list) and value and isinstance(value[0], (int, float, dict)):
                inner.setdefault(tuple(range(len(value))) if len(value) <= _MAX_LIST else (), []).append(i)
        places = np.arange(len(column)) if index is None else index
        if found:
            self._keep(part, tag, places[found], np.array(values))
        if depth >= _MAX_DEPTH and inner:
            self.note("nested too deep, left out")
            return
        for keys, where in inner.items():
            if not keys and isinstance(column[where[0]], list):
                self.note(f"{tag}: long lists left out", len(where))
            for key in keys:
                self._column(
                    part, rank_names.of_element(tag, key) or f"{tag}/{key}", [column[i][key] for i in where], places[where], depth + 1
                )

    def _keep(self, part: Part, tag: str, index: Ints | None, numbers: Floats) -> None:
        if part.evaluation and not v.EVALUATION.match(tag) and tag not in EPOCH:
            tag = f"{part.evaluation}/{tag}"
        if tag not in self._tags and len(self._tags) >= _MAX_TAGS:
            self.note(f"more than {_MAX_TAGS} different keys: the others were left out", len(numbers))
            return
        self._tags.add(tag)
        part.columns.append((tag, index, numbers))


def _reported(row: Row, text: str) -> Event | None:
    """What a row reports by its text, or by an exception in another of its fields."""
    raised = next((x for x in row.values() if isinstance(x, str) and x is not text and TRACEBACK.search(x)), None)
    return event_in(raised or text)


def _by_mode(shape: tuple[str, ...], rows: Sequence[Row], at: Sequence[int]) -> Iterator[tuple[str, Sequence[Row], Sequence[int]]]:
    """Rows of one shape, those that say they are evaluations apart (with the word by which they say it)."""
    marks = [k for k in shape if plain(k) in v.MODE_KEYS]
    words: dict[str, list[int]] = {}
    for i, row in enumerate(rows if marks else ()):
        word = next((m[1] for k in marks if isinstance(row[k], str) and (m := v.EVALUATION.fullmatch(row[k]))), "")
        words.setdefault(word, []).append(i)
    if len(words) < 2:
        yield next(iter(words), ""), rows, at
    else:
        for word, where in words.items():
            yield word, [rows[i] for i in where], [at[i] for i in where]


def _several(value: Any) -> Any:
    """The numbers of a text that holds nothing but three fractions or more ("0.39/0.34/0.01/0.26"); any other value as it is."""
    if not isinstance(value, str) or "." not in value or len(value) > _LONGEST_LIST:
        return value
    parts = [as_number(x) for x in _PARTING.split(value.strip("[]() "))]
    return parts if len(parts) > 2 and None not in parts else value


def _sound(text: str) -> str:
    return text if text.isascii() else text.encode("utf-8", "replace").decode()
