"""What the keys and values in rows of JSON mean: steps, times, ids, shards, settings. Helpers, no parser.

The names of steps, times, ranks and epochs are those of every format (:mod:`parsers.records.vocabulary`).
"""

from __future__ import annotations

import ast
import json
import math
from array import array
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import pairwise
from typing import Any

import numpy as np

from parsers.lazy_regex import lazy_re
from parsers.records import cells, vocabulary
from parsers.records.cells import as_number
from parsers.records.parts import MISSING, Floats, Ints, Samples
from parsers.records.vocabulary import SAMPLE_LIST, SAMPLE_ONE, SHARD, SHARD_ALONE, last

STEP_HOLDERS = {"info", "meta", "state", "progress", "counters", "train", "trainer", "data", "payload", "metrics", "metric"}
MODE_KEYS = (
    "mode", "split", "phase", "stage", "subset", "partition", "set", "part", "loop", "what", "event", "evt", "ev", "event_type", "type", "kind",
)  # fmt: skip
EVALUATION = lazy_re(
    rf"(?i)(?:(?:fit|train|training|model|run|epoch|loop)[._/:-])?((?:{'|'.join(vocabulary.EVALUATION)})(?:[_ ]?(?:step|epoch|end|loss))?)(?:[._/:-](?:end|done|epoch|result|results|metrics|finished))?"
)
LAST_PART = lazy_re(r"[._/:-]+")
MESSAGE_KEYS = ("message", "msg", "text", "log_message", "event_message")
EVENT_KEYS = ("event", "evt", "ev", "type", "kind", "event_type", "status")
ONLY_EVENTS = {"event", "evt", "ev", "event_type"}  # of these, those that name nothing else
ERROR_KEYS = {"error", "err", "exception", "exc_info", "exc", "traceback", "stacktrace", "stack_trace", "reason"}
RESUMED_FROM = lazy_re(
    r"(?i)(?:resume[ds]?|restor(?:e|ed)|load(?:ed)?)_?from(?:_?(?:checkpoint|ckpt|path|step))?"
)  # a launch that says so of itself
RESUMED = lazy_re(
    r"(?i)(?:re-?start|resume|restore|reload)(?:d|ed|ing)?(?:[_ -]?(?:run|training|from|checkpoint|ckpt|state)){0,3}"
)  # kinds of events
LEVEL_KEYS = ("level", "levelname", "severity", "lvl", "log_level")
HEADER_WORDS = {"header", "config", "hparams", "hyperparameters", "args", "meta", "metadata", "init", "params", "env", "run_start", "start"}
CONFIG_KEYS = {"config", "args", "hparams", "hyperparameters", "params", "cfg", "training_args", "env_info", "hyper_parameters"}
IDENTIFIER = lazy_re(
    r"(?i)(?:^|[_\-])(?:ids?|uuid|uid|hash|version|name|date|commit|host|hostname|pid|port|ip|path|file|seed|address|elapsed|eta|time)$"
)
_MOST_QUOTED = 10_000  # bound: characters
AXES = {"epoch", "batch_idx", "batch", "batch_id", "batch_size", "num_samples", "micro_batch", "world_size", "count", "size", "position"}


def flat(key: str, value: Any, joint: str = ".", depth: int = 0) -> Iterator[tuple[str, Any]]:
    """Settings with their nested keys joined; lists and empty objects are values, and a dictionary in quotes is one (``str(optimizer.get_config())``)."""
    if isinstance(value, str) and value[:1] == "{" and value[-1:] == "}" and len(value) < _MOST_QUOTED:
        value = literal(value) or value
    if isinstance(value, dict) and value and depth < 50:
        for k, v in value.items():
            yield from flat(f"{key}{joint}{k}" if key else str(k), v, joint, depth + 1)
    elif key:
        yield key, value


def literal(text: str) -> dict[str, Any] | None:
    """A dictionary as JSON or Python writes it; None where the text is none."""
    for read in (json.loads, ast.literal_eval):
        try:
            value = read(text)
        except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
            continue
        return value if isinstance(value, dict) and all(isinstance(k, str) for k in value) else None
    return None


def whole_column(column: Sequence[Any]) -> Ints | None:
    """A column of steps (MISSING where a row has none), None where it holds anything else. "12/300" is step 12."""
    if set(map(type, column)) == {int}:
        with suppress(OverflowError):
            return np.array(column, np.int64)
    found = []
    for value in column:
        if isinstance(value, (bool, list, dict)):
            return None
        step = cells.whole(value.partition("/")[0] if isinstance(value, str) else value)
        if step is None and value is not None and not _beyond(value):
            return None
        found.append(MISSING if step is None else step)
    return None if all(s == MISSING for s in found) else np.array(found, np.int64)


def _beyond(value: Any) -> bool:
    """A number too large for a step: a mistake of one row, and the others' steps are as they are."""
    return isinstance(value, (int, float)) and abs(value) >= 2**63


def float_column(column: Sequence[Any]) -> Floats | None:
    """A column of numbers (NaN where a row has none), None where it holds anything else or nothing."""
    try:
        if set(map(type, column)) <= {float, int}:
            return np.array(array("d", column))
    except OverflowError:  # a whole number beyond all floats
        pass
    found = [math.nan if v is None else as_number(v) for v in column]
    return None if None in found or all(v is None for v in column) else np.array(found, np.float64)


def time_column(column: Sequence[Any]) -> Floats | None:
    """Seconds since 1970 UTC (NaN where a row has none). None where it is no wall time but a duration."""
    first = next((v for v in column if v is not None), None)
    if isinstance(first, str):
        known = {value: cells.seconds(value) for value in {v for v in column if isinstance(v, str)}}
        found = np.array([known[v] if isinstance(v, str) else None for v in column], np.float64)
    else:
        unit, numbers = cells.time_unit(as_number(first)), float_column(column)
        if unit is None or numbers is None:
            return None
        found = numbers * unit
    return None if len(found) and np.isnan(found[:100]).all() else found


def sample_key(table: dict[str, list[Any]]) -> tuple[str | None, str | None]:
    """Which columns name the samples of a batch, and which their shards."""
    names = {k: last(k) for k in table}
    ids = next((k for k, n in names.items() if SAMPLE_LIST.fullmatch(n) and _are_ids(table[k])), None)
    ids = ids or next((k for k, n in names.items() if SAMPLE_ONE.fullmatch(n) and _are_scalars(table[k])), None)
    wanted = SHARD if ids else SHARD_ALONE
    found = [k for k, n in names.items() if n in wanted and (_are_ids(table[k]) or _are_scalars(table[k]))]
    return ids, min(found, key=lambda k: wanted.index(names[k]), default=None)


def holds_ids(value: Any) -> bool:
    """Is it an object with ids in it ({"ids": [...], "shard": ...})?"""
    return isinstance(value, dict) and any(SAMPLE_LIST.fullmatch(last(k)) and _are_ids([v]) for k, v in value.items())


def _are_ids(column: Sequence[Any]) -> bool:
    lists = [v for v in column[:200] if v is not None]
    return bool(lists) and all(isinstance(v, list) and all(_is_id(x) for x in v[:4]) for v in lists)


def _is_id(value: Any) -> bool:
    if isinstance(value, list):
        return all(isinstance(x, (int, str)) for x in value)
    if isinstance(value, dict):
        return any(SAMPLE_ONE.fullmatch(last(k)) or SAMPLE_LIST.fullmatch(last(k)) for k in value)
    return isinstance(value, (int, str)) and not isinstance(value, bool)


def _are_scalars(column: Sequence[Any]) -> bool:
    return all(isinstance(v, (int, str)) and not isinstance(v, bool) for v in column[:200])


def samples_of(ids: Any, shards: Any) -> Samples:
    """One row of a manifest -> its ids and shards as text. A sorted list of different shards is a set, not pairs."""
    items = ids if isinstance(ids, list) else [] if ids is None else [ids]
    items = [x for item in items for x in (item if isinstance(item, list) else [item])]  # a list a rank or micro-batch
    names = shards if isinstance(shards, list) else [] if shards is None else [shards]
    paired = len(names) == 1 < len(items) or (len(names) == len(items) > 0 and not _is_set(names))
    if items and all(isinstance(x, dict) for x in items):
        inner = {last(k): k for k in items[0]}
        name = next((k for n, k in inner.items() if SAMPLE_ONE.fullmatch(n) or SAMPLE_LIST.fullmatch(n)), None)
        shard = next((inner[s] for s in SHARD if s in inner), None)
        names, paired = ([x.get(shard) for x in items], True) if shard else (names, paired)
        items = [x.get(name) for x in items]
    texts = [str(x) for x in names]
    return [str(x) for x in items], texts * len(items) if paired and len(texts) == 1 else texts, paired


def _is_set(names: list[Any]) -> bool:
    keys = [(len(str(x)), str(x)) for x in names]
    return len(keys) > 1 and all(a < b for a, b in pairwise(keys))
