"""Which columns of JSON rows are axes, samples, metric names: takes them out of a table of columns. Helpers, no parser."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain, repeat
from typing import Any

import numpy as np
from numpy.typing import NDArray

from parsers.records import json_values as v
from parsers.records import vocabulary
from parsers.records.cells import is_zoneless
from parsers.records.parts import Ints, Part
from parsers.records.vocabulary import last, plain

Table = dict[str, list[Any]]
Reader = Callable[[Sequence[Any]], NDArray[Any] | None]


def find_axes(part: Part, names: dict[str, str], table: Table) -> None:
    """Steps, times, ranks and epochs of the rows; takes their columns out of the table, but for the epoch, which is a metric, too."""
    _find_epochs(part, names, table)
    _find_step(part, names, table)
    dates = {names[n]: next((x for x in table[names[n]] if x is not None), None) for n in vocabulary.TIME if n in names}
    part.times = _taken(vocabulary.TIME, names, table, v.time_column)
    part.zoneless = any(is_zoneless(date) for key, date in dates.items() if key not in table)
    part.ranks = _taken(vocabulary.RANK, names, table, v.whole_column)


def _find_epochs(part: Part, names: dict[str, str], table: Table) -> None:
    found = (v.float_column(table[names[n]]) for n in vocabulary.EPOCH if n in names)
    part.epochs = next((e for e in found if e is not None), None)


def _find_step(part: Part, names: dict[str, str], table: Table) -> None:
    for name in vocabulary.step_names(names):
        steps = _steps(name, table[names[name]], part)
        if steps is not None:
            part.step_key, part.steps, part.also_iter = name, steps, name == "step" and "iter" in names
            if name != "time/total_timesteps":  # also the samples seen
                del table[names[name]]
            return
    for holder in [k for k in table if plain(k) in v.STEP_HOLDERS and all(isinstance(x, dict) for x in table[k])]:
        inner = {plain(k): k for x in table[holder][:100] for k in x}
        for name in vocabulary.step_names(inner):
            steps = _steps(name, [x.get(inner[name]) for x in table[holder]], part)
            if steps is not None:
                part.step_key, part.steps = name, steps
                table[holder] = [{k: y for k, y in x.items() if k != inner[name]} for x in table[holder]]
                return


def _steps(name: str, column: Sequence[Any], part: Part) -> Ints | None:
    """A column as steps: one that goes up and down is none (of an episode it is how long that was); where the name is often something else, only if
    it behaves like a step."""
    steps = v.whole_column(column)
    if steps is None or len(steps) == 1:
        return steps
    weak, total = name in vocabulary.WEAK_STEP, name in vocabulary.TOTAL_STEP
    if (weak or total) and np.ptp(steps) == 0:
        return None
    moves = np.diff(steps)
    turns = int((moves < 0).sum())
    if not weak:  # a file may begin with the newest row
        turns = min(turns, int((moves > 0).sum())) if len(steps) >= vocabulary.SEVERAL else 0
    return None if turns * 4 > len(steps) and not total and part.epochs is None else steps


def _taken(wanted: Sequence[str], names: dict[str, str], table: Table, read: Reader) -> NDArray[Any] | None:
    """The best of the wanted columns that can be read so; it leaves the table."""
    for name in wanted:
        if name in names and names[name] in table:
            found = read(table[names[name]])
            if found is not None:
                del table[names[name]]
                return found
    return None


def find_samples(part: Part, table: Table) -> None:
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
        position = next((k for k in table if last(k) in vocabulary.POSITION), None)
        if position and not isinstance(id_column[0], list) and (found := v.whole_column(table[position])) is not None:
            part.positions = found
        part.samples = [v.samples_of(i, s) for i, s in zip(id_column, shard_column, strict=False)]


def long_format(names: dict[str, str], table: Table) -> list[tuple[str, list[Any], Ints | None]]:
    """Rows of one metric each: {"name": "loss", "value": 0.5}."""
    tag = next((names[n] for n in vocabulary.TAG if names.get(n) in table), None)
    value = next((names[n] for n in vocabulary.VALUE if names.get(n) in table), None)
    if tag is None or value is None or tag == value or not all(isinstance(x, str) for x in table[tag]):
        return []
    values = table[value]
    by_tag: dict[str, list[int]] = {}
    for i, t in enumerate(table[tag]):
        by_tag.setdefault(t, []).append(i)
    return [(t, [values[i] for i in where], np.array(where)) for t, where in by_tag.items()]
