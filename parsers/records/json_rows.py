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
from itertools import chain, repeat
from typing import Any

import pyarrow as pa

from parsers.records import column_roles, json_steps
from parsers.records import json_values as v
from parsers.records.emit import BatchRows, MetricRows, Part
from parsers.records.json_values import MISSING, last, plain
from parsers.tables import FLUSH_ROWS, Note, Rows

Row = dict[str, Any]
_MAX_LIST, _MAX_DEPTH, _MAX_TAGS = 16, 20, 500_000


class Log:
    """Gathers the rows of one file.

    ``fill``: epochs or row numbers stand for steps in a file that has none. ``rank``: of rows that name none.
    ``notes`` says what was left out.
    """

    def __init__(self, *, fill: bool = True, rank: int | None = None) -> None:
        self.fill, self.rank = fill, rank
        self.rows = Rows()
        self.parts: list[Part] = []
        self.notes: dict[str, int] = {}
        self.has_steps = False
        self._tags: set[str] = set()
        self._settings = ""

    # ---- taking rows in

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
                self._group(shape, some, Part(some_at, evaluation=word))
        if self.rows.full():
            yield from self.rows.flush()

    def _group(self, shape: tuple[str, ...], rows: Sequence[Row], part: Part) -> None:
        values = list(chain.from_iterable(map(dict.values, rows)))
        table: dict[str, list[Any]] = {k: values[i :: len(shape)] for i, k in enumerate(shape)}
        _lift_comet(table)
        names = {plain(k): k for k in reversed(table)}
        _find_step(part, names, table)
        part.times = next(
            (t for n in v.TIME_KEYS if n in names and (t := v.time_column(table.get(names[n], []))) and table.pop(names[n])), None
        )
        part.ranks = next(
            (r for n in v.RANK_KEYS if n in names and (r := v.whole_column(table.get(names[n], []))) and table.pop(names[n])), None
        )
        part.epochs = next((e for n in v.EPOCH_KEYS if n in names and (e := v.float_column(table.get(names[n], [])))), None)
        _find_samples(part, table)
        if self._header(part, names, table):
            return
        for key in [k for k in table if plain(k) in v.CONFIG_KEYS and all(isinstance(x, dict) for x in table[k])]:
            for settings, at in zip(table.pop(key), part.at, strict=True):
                self._config_once(settings, at)
        texts = {k for k, c in table.items() if any(isinstance(x, str) for x in c[:100])}
        for tag, column, index in _long_format(names, table) or [(k, c, None) for k, c in table.items()]:
            self._column(part, tag, column, index)
        if part.samples and all(last(tag) in v.AXES for tag, _, _ in part.columns):
            part.columns = []  # a manifest: its numbers are axes
        message = next((names[n] for n in v.MESSAGE_KEYS if names.get(n) in texts), None)
        closing = self.has_steps and part.steps is None and part.epochs is None  # the summary at a log's end
        if message or (texts and not part.samples and (closing or not part.columns)):
            self._events(part, names, rows, message)
        if part.columns or part.samples:
            self.has_steps |= part.steps is not None
            self.parts.append(part)

    def _header(self, part: Part, names: dict[str, str], table: dict[str, list[Any]]) -> bool:
        """Rows before the first step that are mostly text are settings (MMCV's env_info, {"type": "config", ...})."""
        if part.steps is not None or part.epochs is not None or part.samples or not table:
            return False
        kind = next((str(table[names[n]][0]).lower() for n in v.EVENT_KEYS if n in names and names[n] in table), "")
        texts = sum(isinstance(c[0], (str, dict)) for c in table.values())
        early = not self.has_steps and len(part.at) == 1 and not names.keys() & set(v.MESSAGE_KEYS) and kind == ""
        if not (kind in v.HEADER_WORDS or (early and texts and (texts * 2 >= len(table) or names.keys() & v.CONFIG_KEYS))):
            return False
        for i, at in enumerate(part.at):
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

    def _events(self, part: Part, names: dict[str, str], rows: Sequence[Row], message: str | None) -> None:
        kinds = [names[n] for n in v.EVENT_KEYS if n in names]
        level = next((names[n] for n in v.LEVEL_KEYS if n in names), None)
        used = {level, *(names[n] for n in v.TIME_KEYS if n in names)}
        for i, (row, at) in enumerate(zip(rows, part.at, strict=True)):
            kind = next((row[k] for k in kinds if isinstance(row[k], str) and len(row[k]) < 40), "log")
            rest = [f"{k}={x}" for k, x in row.items() if k not in used and x != kind and isinstance(x, (str, int, float))]
            text = str(row[message]) if message else " ".join([kind, *rest])[:2000]
            said = str(row[level]).lower() if level else "info"
            self.rows.event(
                _sound(kind),
                _sound(text),
                level=_sound(said),
                step=part.step_of(i),
                time=part.time_of(i),
                at=at,
                rank=part.rank_of(i, self.rank),
            )

    def _column(self, part: Part, tag: str, column: Sequence[Any], index: Sequence[int] | None, depth: int = 0) -> None:
        """The numbers of a column, wherever they are in it; ``index`` says which rows it belongs to (None: all)."""
        kinds = set(map(type, column))
        if kinds <= {float, int} and (numbers := _numbers(column)) is not None:
            self._keep(part, tag, index, numbers)
            return
        if kinds <= {bool, type(None)} or (kinds <= {str, type(None)} and v.IDENTIFIER.search(last(tag))):
            return
        found, numbers = [], array("d")
        nested: dict[tuple[str, ...], list[int]] = {}
        lists: dict[int, list[int]] = {}
        for i, value in enumerate(column):
            number = v.as_number(value)
            if number is not None:
                found.append(i)
                numbers.append(number)
            elif isinstance(value, dict) and "_type" not in value:  # W&B's media have one
                nested.setdefault(tuple(value), []).append(i)
            elif isinstance(value, list) and value and isinstance(value[0], (int, float, dict)):
                lists.setdefault(len(value), []).append(i)
        places = range(len(column)) if index is None else index
        if found:
            self._keep(part, tag, [places[i] for i in found], numbers)
        if depth >= _MAX_DEPTH and (nested or lists):
            self.note("nested too deep, left out")
            return
        for shape, where in nested.items():
            for key in shape:
                self._column(part, f"{tag}/{key}", [column[i][key] for i in where], [places[i] for i in where], depth + 1)
        for length, where in lists.items():
            if length > _MAX_LIST:
                self.note(f"{tag}: long lists left out", len(where))
                continue
            for k in range(length):
                self._column(part, f"{tag}/{k}", [column[i][k] for i in where], [places[i] for i in where], depth + 1)

    def _keep(self, part: Part, tag: str, index: Sequence[int] | None, numbers: array[float]) -> None:
        if part.evaluation and not v.EVALUATION.match(tag) and tag not in v.EPOCH_KEYS:
            tag = f"{part.evaluation}/{tag}"
        if tag not in self._tags and len(self._tags) >= _MAX_TAGS:
            self.note(f"more than {_MAX_TAGS} different keys: the others were left out", len(numbers))
            return
        self._tags.add(tag)
        part.columns.append((tag, index, numbers))

    def note(self, text: str, count: int = 1) -> None:
        if text in self.notes or len(self.notes) < 20:
            self.notes[text] = self.notes.get(text, 0) + count

    # ---- steps, then rows

    def finish(self) -> Iterator[pa.RecordBatch | Note]:
        """The rows that were taken in, with their steps."""
        for text in json_steps.place(self.parts, self.fill):
            self.note(text)
        metrics, batches = MetricRows(self.rank), BatchRows(self.rank)
        for part in self.parts:
            metrics.add(part)
            batches.add(part)
            part.columns, part.samples = [], None
            if metrics.length >= FLUSH_ROWS:
                yield metrics.batch()
            if len(batches.steps) >= FLUSH_ROWS:
                yield batches.batch()
        if metrics.length:
            yield metrics.batch()
        if batches.steps:
            yield batches.batch()
        yield from self.rows.flush()
        for text, count in self.notes.items():
            yield Note(text if count == 1 else f"{text} ({count} times)")


def _numbers(column: Sequence[Any]) -> array[float] | None:
    try:
        return array("d", column)
    except OverflowError:  # a whole number beyond all floats
        return v.float_column(column)


def _by_mode(shape: tuple[str, ...], rows: Sequence[Row], at: Sequence[int]) -> Iterator[tuple[str, Sequence[Row], Sequence[int]]]:
    """Rows of one shape, those that say they are evaluations apart (with the word by which they say it)."""
    marks = [k for k in shape if plain(k) in v.MODE_KEYS]
    words: dict[str, list[int]] = {}
    for i, row in enumerate(rows if marks else ()):
        word = next((row[k] for k in marks if isinstance(row[k], str) and v.EVALUATION.fullmatch(row[k])), "")
        words.setdefault(word, []).append(i)
    if len(words) < 2:
        yield next(iter(words), ""), rows, at
    else:
        for word, where in words.items():
            yield word, [rows[i] for i in where], [at[i] for i in where]


def _lift_comet(table: dict[str, list[Any]]) -> None:
    """Comet's rows hold the metric two objects deep: {"payload": {"metric": {"metricName": ..., "step": ...}}}."""
    column = table.get("payload", [])
    inner = [x.get("metric") if isinstance(x, dict) else None for x in column]
    if inner and all(isinstance(x, dict) and "metricName" in x for x in inner):
        del table["payload"]
        for key in dict.fromkeys(chain.from_iterable(x or () for x in inner)):
            table[key] = [(x or {}).get(key) for x in inner]


def _find_step(part: Part, names: dict[str, str], table: dict[str, list[Any]]) -> None:
    for name in sorted(names.keys() & v.STEP_RANK.keys(), key=v.STEP_RANK.__getitem__):
        steps = v.whole_column(table[names[name]])
        if steps is not None:
            part.step_key, part.steps, part.also_iter = name, steps, name == "step" and "iter" in names
            if name != "time/total_timesteps":  # also the samples seen
                del table[names[name]]
            return
    for holder in [k for k in table if plain(k) in v.STEP_HOLDERS and all(isinstance(x, dict) for x in table[k])]:
        inner = {plain(k): k for x in table[holder][:100] for k in x}
        for name in sorted(inner.keys() & v.STEP_RANK.keys(), key=v.STEP_RANK.__getitem__):
            steps = v.whole_column([x.get(inner[name]) for x in table[holder]])
            if steps is not None:
                part.step_key, part.steps = name, steps
                table[holder] = [{k: y for k, y in x.items() if k != inner[name]} for x in table[holder]]
                return


def _find_samples(part: Part, table: dict[str, list[Any]]) -> None:
    """Which samples were in the batch: takes the columns of ids and shards out of the table."""
    for holder in [k for k, c in table.items() if all(v.holds_ids(x) for x in c)]:
        inner = table.pop(holder)
        for k in dict.fromkeys(chain.from_iterable(inner)):
            table[f"{holder}/{k}"] = [x.get(k) for x in inner]
    if part.steps is None and part.epochs is not None:
        return  # the order of a whole epoch is no batch
    ids, shards = v.sample_key(table)
    if shards and not ids and part.steps is None:
        return
    if ids or shards:
        id_column = table.pop(ids) if ids else [None] * len(part.at)
        shard_column = table.pop(shards) if shards else repeat(None)
        position = next((k for k in table if last(k) in column_roles.POSITION_NAMES), None)
        if position and not isinstance(id_column[0], list) and (found := v.whole_column(table[position])):
            part.positions = found if MISSING not in found else None
        part.samples = [v.samples_of(i, s) for i, s in zip(id_column, shard_column, strict=False)]


def _long_format(names: dict[str, str], table: dict[str, list[Any]]) -> list[tuple[str, list[Any], list[int] | None]]:
    """Rows of one metric each: {"name": "loss", "value": 0.5}; ClearML: metric and variant, Comet: metricName."""
    tag = next((names[n] for n in (*column_roles.TAG_NAMES, "metricname") if n in names and names[n] in table), None)
    value = next((names[n] for n in (*column_roles.VALUE_NAMES, "scalar_value", "metricvalue") if n in names and names[n] in table), None)
    if tag is None or value is None or tag == value or not all(isinstance(x, str) for x in table[tag]):
        return []
    variants = table.get("variant", table[tag])
    tags = [t if w in (t, None) else f"{t}/{w}" for t, w in zip(table[tag], variants, strict=True)]
    values = table[value]
    by_tag: dict[str, list[int]] = {}
    for i, t in enumerate(tags):
        by_tag.setdefault(t, []).append(i)
    return [(t, [values[i] for i in where], where) for t, where in by_tag.items()]


def _sound(text: str) -> str:
    return text if text.isascii() else text.encode("utf-8", "replace").decode()
