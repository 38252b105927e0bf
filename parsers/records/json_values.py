"""What the keys and values in rows of JSON mean: steps, times, ids, shards, settings. Helpers, no parser.

The vocabulary is that of the writers: Hugging Face, LLaMA-Factory, ms-swift, MMCV and MMEngine, Detectron2,
fairseq, nanoGPT, Stable-Baselines3, Ray Tune, MLflow, ClearML, Comet, and the batch manifests people write by hand.
"""

from __future__ import annotations

import math
import re
from array import array
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import pairwise
from typing import Any

from parsers.records import column_roles

STEP_KEYS = [  # best first, lower case, spaces and dashes as underscores
    "trainer/global_step", "global_step", "train/global_step", "global_step/max_steps", "global_steps", "step",
    "_step", "train/step", "steps", "current_steps", "current_step", "train_step", "training_step",
    "optimizer_step", "opt_step", "global_iter", "global_iteration", "iteration", "iterations", "iter", "iters",
    "iter_num", "train_iter", "it", "num_updates", "n_updates", "updates", "update", "training_iteration",
    "total_timesteps", "time/total_timesteps", "timesteps_total", "num_timesteps", "timesteps", "timestep",
    "env_step", "env_steps", "batch", "batch_idx", "batch_index", "batch_nb", "batch_num", "minibatch",
    "batch_id",
]  # fmt: skip
STEP_RANK = {k: i for i, k in enumerate(STEP_KEYS)}
STEP_HOLDERS = {"info", "meta", "state", "progress", "counters", "train", "trainer", "data", "payload", "metrics", "metric"}
GLOBAL_KEYS = {"trainer/global_step", "global_step", "train/global_step", "global_step/max_steps", "global_steps", "num_updates", "_step"}
EPOCH_KEYS = ("epoch", "current_epoch", "train/epoch", "epochs", "epoch_num")
TIME_KEYS = ["@timestamp", "local_timestamp", "asctime", *column_roles.TIME_NAMES]
RANK_KEYS = [*column_roles.RANK_NAMES, "world_rank", "local_rank"]
MODE_KEYS = ("mode", "split", "phase", "stage", "subset", "partition", "event", "type", "kind")
EVALUATION = re.compile(r"(?i)(?:val|valid|validation|eval|evaluate|evaluation|test|dev)(?:[_ ]?(?:step|epoch|end|loss))?")
MESSAGE_KEYS = ("message", "msg", "text", "log_message", "event_message")
EVENT_KEYS = ("event", "type", "kind", "event_type", "status")
LEVEL_KEYS = ("level", "levelname", "severity", "lvl", "log_level")
HEADER_WORDS = {"header", "config", "hparams", "hyperparameters", "args", "meta", "metadata", "init", "params", "env", "run_start", "start"}
CONFIG_KEYS = {"config", "args", "hparams", "hyperparameters", "params", "cfg", "training_args", "env_info", "hyper_parameters"}
IDENTIFIER = re.compile(
    r"(?i)(?:^|[_\-])(?:ids?|uuid|uid|hash|version|name|date|commit|host|hostname|pid|port|ip|path|file|seed|address|elapsed|eta|time)$"
)
AXES = {"epoch", "batch_idx", "batch", "batch_id", "batch_size", "num_samples", "micro_batch", "world_size", "count", "size", "position"}
_IDS = re.compile(
    r"(?:(?:global|sample|example|data|dataset|row|batch|instance|doc|document|item|record|train|image|seq|sequence)s?[_\-]?)*"
    r"(?:ids?|idxs?|indices|indexes|index|samples|examples|uids?|uuids?|guids?)|batch"
)  # of lists
_ID = re.compile(r"(?:sample|example|doc|document|instance|record|item|row|image)(?:_?(?:id|idx|index|uid|key))?")  # of single ids
_SHARDS = (
    "shards", "shard", "shard_ids", "shard_id", "shard_name", "files", "data_files", "file", "data_file",
    "sources", "source", "filename", "dataset", "urls", "url",
)  # fmt: skip
_SHARDS_ALONE = 7  # so many of these make a manifest without ids beside them
MISSING = -(2**63)  # stands for "no step" and "no rank" in the columns
_DATE = re.compile(r"(\d{4}-\d\d-\d\d)[_T ](\d\d)[:\-](\d\d)[:\-](\d\d)(?:[.,](\d{1,6})\d*)?(Z|[+\-]\d\d:?\d\d)?")

Samples = tuple[list[str], list[str], bool]  # ids of a batch, its shards, is there one for each id


def last(key: str) -> str:
    """The last component of a key, in lower case: ``data/sample_ids`` -> ``sample_ids``."""
    return key[max(key.rfind("/"), key.rfind(".")) + 1 :].lower()


def plain(key: str) -> str:
    """A key as the lists above spell it."""
    return key.strip().lower().replace(" ", "_").replace("-", "_")


def flat(key: str, value: Any, depth: int = 0) -> Iterator[tuple[str, Any]]:
    """Settings with their nested keys joined by dots; lists and empty objects are values."""
    if isinstance(value, dict) and value and depth < 20:
        for k, v in value.items():
            yield from flat(f"{key}.{k}" if key else str(k), v, depth + 1)
    elif key:
        yield key, value


def as_number(value: Any) -> float | None:
    """A value as a number; strings that are numbers ("1e-4", "nan") count, true and false do not."""
    if isinstance(value, float):
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        try:
            return float(value)
        except OverflowError:
            return math.inf if value > 0 else -math.inf
    return column_roles.number(value) if isinstance(value, str) and len(value) < 64 else None


def whole_column(column: Sequence[Any]) -> array[int] | None:
    """A column of steps (MISSING where a row has none), None where it holds anything else. "12/300" is step 12."""
    if set(map(type, column)) == {int}:
        with suppress(OverflowError):
            return array("q", column)
    found = array("q")
    for value in column:
        if isinstance(value, (bool, list, dict)):
            return None
        step = column_roles.whole(value.partition("/")[0] if isinstance(value, str) else value)
        if step is None and value is not None and not _beyond(value):
            return None
        found.append(MISSING if step is None else step)
    return None if all(s == MISSING for s in found) else found


def _beyond(value: Any) -> bool:
    """A number too large for a step: a mistake of one row, and the others' steps are as they are."""
    return isinstance(value, (int, float)) and abs(value) >= 2**63


def float_column(column: Sequence[Any]) -> array[float] | None:
    """A column of numbers (NaN where a row has none), None where it holds anything else or nothing."""
    try:
        if bool not in map(type, column):
            return array("d", column)
    except (OverflowError, TypeError):
        pass
    found = [math.nan if v is None else as_number(v) for v in column]
    if None in found or all(v is None for v in column):
        return None
    return array("d", [v for v in found if v is not None])


def time_column(column: Sequence[Any]) -> array[float] | None:
    """Seconds since 1970 UTC (NaN where a row has none). None where it is no wall time but a duration."""
    first = next((v for v in column if v is not None), None)
    if isinstance(first, str):
        known: dict[Any, float] = {}
        for value in column:
            if value not in known:
                known[value] = seconds(value)
        found = array("d", [known[v] for v in column])
    else:
        number = as_number(first)
        scale = next((s for s in (1.0, 1e-3, 1e-6, 1e-9) if number is not None and 3.1e8 <= number * s <= 4.2e9), None)
        numbers = float_column(column)
        if scale is None or numbers is None:
            return None
        found = numbers if scale == 1.0 else array("d", [v * scale for v in numbers])
    return None if found and all(v != v for v in found[:100]) else found


def seconds(value: Any) -> float:
    """A date as seconds since 1970, NaN where it is none; dates without a zone are taken as UTC."""
    if not isinstance(value, str):
        return math.nan
    number = as_number(value)
    if number is not None:
        return number if 3.1e8 <= number <= 4.2e9 else math.nan
    found = column_roles.seconds(value, 0.0)
    m = _DATE.match(value) if found is None else None  # Ray's 2024-01-31_10-00-00, logging's comma
    if m:
        found = column_roles.seconds(f"{m[1]}T{m[2]}:{m[3]}:{m[4]}.{(m[5] or '0').ljust(6, '0')}{m[6] or ''}", 0.0)
    return math.nan if found is None else found


def sample_key(table: dict[str, list[Any]]) -> tuple[str | None, str | None]:
    """Which columns name the samples of a batch, and which their shards."""
    names = {k: last(k) for k in table}
    ids = next((k for k, n in names.items() if _IDS.fullmatch(n) and _are_ids(table[k])), None)
    ids = ids or next((k for k, n in names.items() if _ID.fullmatch(n) and _are_scalars(table[k])), None)
    wanted = _SHARDS if ids else _SHARDS[:_SHARDS_ALONE]
    found = [k for k, n in names.items() if n in wanted and (_are_ids(table[k]) or _are_scalars(table[k]))]
    return ids, min(found, key=lambda k: wanted.index(names[k]), default=None)


def holds_ids(value: Any) -> bool:
    """Is it an object with ids in it ({"ids": [...], "shard": ...})?"""
    return isinstance(value, dict) and any(_IDS.fullmatch(last(k)) and _are_ids([v]) for k, v in value.items())


def _are_ids(column: Sequence[Any]) -> bool:
    lists = [v for v in column[:200] if v is not None]
    return bool(lists) and all(isinstance(v, list) and all(_is_id(x) for x in v[:4]) for v in lists)


def _is_id(value: Any) -> bool:
    if isinstance(value, list):
        return all(isinstance(x, (int, str)) for x in value)
    if isinstance(value, dict):
        return any(_ID.fullmatch(last(k)) or _IDS.fullmatch(last(k)) for k in value)
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
        name = next((k for n, k in inner.items() if _ID.fullmatch(n) or _IDS.fullmatch(n)), None)
        shard = next((inner[s] for s in _SHARDS if s in inner), None)
        names, paired = ([x.get(shard) for x in items], True) if shard else (names, paired)
        items = [x.get(name) for x in items]
    texts = [str(x) for x in names]
    return [str(x) for x in items], texts * len(items) if paired and len(texts) == 1 else texts, paired


def _is_set(names: list[Any]) -> bool:
    keys = [(len(str(x)), str(x)) for x in names]
    return len(keys) > 1 and all(a < b for a, b in pairwise(keys))
