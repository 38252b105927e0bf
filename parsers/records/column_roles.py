"""What the columns of a log in table form mean, whoever wrote the table (CSV, Parquet): helpers, no parser.

A column is known by its name first and by the look of its cells second: a step must be whole numbers, a time must
lie between 1980 and 2100, and names that are often something else (``batch``, ``t``, ``index``) must also behave like
a step.

The names come from what the writers write: Lightning and Keras CSVLogger, Ultralytics ``results.csv``,
Stable-Baselines3 ``progress.csv``, Ray Tune, AlgoPerf ``measurements.csv``, DVCLive, MLflow and W&B exports, and batch
manifests.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import pairwise

Cell = float | int | str | None  # None: not logged

STEP_NAMES = [  # best first; these are believed as they stand
    "global_step", "trainer/global_step", "train/global_step", "step", "_step", "steps",
    "global step", "training_step",
    "train_step", "train/step", "optimizer_step", "global_iter", "global_iteration", "iteration", "iterations", "iter",
    "iters", "total_timesteps", "time/total_timesteps", "timesteps_total", "num_timesteps", "total_env_steps",
    "env_steps", "num_env_steps_sampled", "timesteps", "num_updates", "training_iteration",
]  # fmt: skip
WEAK_STEP_NAMES = ["n_iter", "it", "update", "updates", "n_updates", "batch", "batch_idx", "batch_index", "batch_nb",
                   "minibatch", "mini_batch", "timestep"]  # fmt: skip
EPOCH_NAMES = ["epoch", "epochs", "train/epoch", "_epoch", "epoch_num", "current_epoch"]
LAST_RESORT = ["episode", "episodes", "round", "generation", "t", "x", "i", "n", "index", "idx", "", "unnamed: 0"]
TIME_NAMES = ["_timestamp", "timestamp", "wall_time", "wall time", "time", "ts", "unix_time", "epoch_time",
              "timestamp_ms", "time_stamp", "created_at", "datetime", "date"]  # fmt: skip
RANK_NAMES = ["rank", "global_rank", "process_rank", "dp_rank", "process_index", "rank_id"]
TAG_NAMES = ["metric", "tag", "metric_name", "name", "key", "variable", "scalar", "metric name"]
VALUE_NAMES = ["value", "val", "metric_value", "metric value", "values"]
RUN_NAMES = ["run", "run_name", "dir_name", "run_id", "run_uuid"]
POSITION_NAMES = ["position", "pos", "slot", "index_in_batch", "pos_in_batch", "row_in_batch"]
SHARD_NAMES = ["shard", "shards", "shard_id", "shard_ids", "shard_name", "source", "sources", "file", "files",
               "filename", "dataset", "tar", "url", "urls", "data_source"]  # fmt: skip
BATCH_NAMES = ["batch_id", "batch_uid", "batch_hash"]
DATA_NAMES = {"label", "labels", "target", "class", "y_true", "y_pred", "prediction", "predictions", "text",
              "prompt", "response", "completion", "image", "image_id", "question", "answer", "id", "caption",
              "sentence", "messages"}  # fmt: skip
_SAMPLE = re.compile(
    r"(?:batch_?)?(?:samples?|examples?|data|dataset|docs?|documents?|records?|items?|rows?|seq|sequences?|images?"
    r"|batch)[_ ]"
    r"(?:uids?|ids?|idxs?|idx|index|indexes|indices|keys?|hash(?:es)?)"
)
_SAMPLE_LIST = re.compile(r"samples?|examples?|ids?|idxs?|idx|index|indices|indexes|uids?|keys?|__key__")  # if the cells look like it
_IDENTIFIER = re.compile(r".*[_ ](?:ids?|uuid|uid|hash)|ids?|uuid|uid|pid|hostname|node_ip")
_PLAIN = re.compile(r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?", re.ASCII)
_INTEGER = re.compile(r"\s*[+-]?\d{1,19}\s*", re.ASCII)
_THOUSANDS = re.compile(r"[+-]?\d{1,3}(?:,\d{3})+(?:\.\d+)?", re.ASCII)
_WRAPPED = re.compile(r"(?:tensor|array|np\.float\d+)\(\[?\s*([^,\])]+)")
_NULLS = {"", "na", "n/a", "#n/a", "none", "null", "<na>", "-", "--", "nil"}
_WORDS = {"nan": "nan", "inf": "inf", "infinity": "inf", "1.#inf": "inf", "1.#ind": "nan", "1.#qnan": "nan",
          "1.#snan": "nan", "nan(ind)": "nan", "nan(snan)": "nan", "∞": "inf"}  # fmt: skip
_WIDEST = 512  # without a step, a wider table is a data set, not a log


@dataclass(frozen=True)
class Roles:
    """The columns by what they are, as positions in the row. ``refusal`` says why a table is no log, if it is none."""

    step: int | None = None
    steps_are: str = "row numbers"  # or "steps", "epochs", "column 'index'" where a name says too little
    epoch: int | None = None
    time: int | None = None
    time_scale: float = 1.0  # seconds in a unit of the time column; 0: dates as text
    rank: int | None = None
    tag: int | None = None  # long format: the column that holds the metric's name ...
    value: int | None = None  # ... and the one that holds its value
    run: int | None = None
    sample: int | None = None
    shard: int | None = None
    position: int | None = None
    metrics: tuple[int, ...] = ()
    text: tuple[int, ...] = ()
    identifiers: tuple[int, ...] = ()
    refusal: str = ""


def number(text: str, decimal: str = ".") -> float | None:
    """A cell as a number, None where it is none. NaN and infinity are numbers; "%" and ``tensor()`` are peeled off."""
    text = text.strip()
    if decimal == "," and "," in text:
        text = text.replace(".", "").replace(",", ".")
    if _PLAIN.fullmatch(text):
        return float(text)
    word = _WORDS.get(text.lstrip("+-").lower())
    if word is not None:
        return float(("-" if text.startswith("-") else "") + word)
    if text.endswith("%") and _PLAIN.fullmatch(text[:-1]):
        return float(text[:-1])
    if _THOUSANDS.fullmatch(text):
        return float(text.replace(",", ""))
    wrapped = _WRAPPED.match(text)
    return number(wrapped[1]) if wrapped and not _WRAPPED.match(wrapped[1]) else None


def cell(text: str, decimal: str = ".") -> Cell:
    """A cell of text as a number, None for 'not logged' (empty, NA, None, null), else the text itself."""
    if decimal == "." and "_" not in text and text.isascii():  # what float() reads too widely
        try:
            return float(text)
        except ValueError:
            pass
    text = text.strip()
    if text.lower() in _NULLS:
        return None
    value = number(text, decimal)
    return text if value is None else value


def whole(value: Cell | bool) -> int | None:
    """A step: exact for integers of any size that int64 holds; None for fractions, text, NaN and what does not fit."""
    if isinstance(value, str):
        value = int(value) if _INTEGER.fullmatch(value) else number(value)
    if value is None or (isinstance(value, float) and not value.is_integer()):
        return None
    result = int(value)
    return result if -(2**63) <= result < 2**63 else None


def seconds(value: Cell, scale: float) -> float | None:
    """Seconds since 1970 of a cell of the time column; dates without a zone are taken as UTC."""
    if isinstance(value, str):
        try:
            date = datetime.fromisoformat(value.strip())
            return (date if date.tzinfo else date.replace(tzinfo=UTC)).timestamp()
        except (ValueError, OverflowError):
            return None
    return None if value is None or not scale else value * scale


def split_ids(value: object) -> list[str]:
    """The ids in a cell: a list, or text such as '[1, 2]', '1 2 3', 'a;b' (brackets and quotes dropped)."""
    if isinstance(value, (list, tuple)):
        return [x for item in value for x in split_ids(item)] if len(value) else []
    if value is None or value != value:
        return []
    text = str(int(value) if isinstance(value, float) and value.is_integer() else value).strip()
    inner = text.strip("[](){} ")
    separator = next((s for s in (";", "|", ",") if s in inner), None)
    parts = inner.split(separator) if separator else inner.split()
    return [p for p in (part.strip("[](){}'\" ") for part in parts) if p and p != "..."]


def assign(names: Sequence[str], columns: Sequence[Sequence[Cell]], named: bool = True) -> Roles:
    """What each column is, from its name and a sample of its cells (``cell`` made them; lists count as text).

    ``named`` is False for a table without a header: a first column of growing whole numbers is its step (and a metric).
    """
    keys = [name.strip().lower() for name in names]
    looks = [_Look(c) for c in columns]
    rows = max((len(c) for c in columns), default=0)

    def first(wanted: Sequence[str], good: Callable[[_Look], bool] = lambda look: True) -> int | None:
        return next((i for w in wanted for i, k in enumerate(keys) if k == w and good(looks[i])), None)

    epoch = first(EPOCH_NAMES, lambda look: look.numbers > 0)
    step = first(STEP_NAMES, lambda look: look.half_whole and look.filled * 2 >= rows)
    kind = "steps"
    if step is None:
        step = first(WEAK_STEP_NAMES, lambda look: look.whole and look.filled * 2 >= rows and (look.grows or epoch is not None))
        if step is not None and len(set(columns[step])) == 1 < rows:
            step = None  # a batch size
    if step is None and epoch is not None and looks[epoch].whole:
        step, kind = epoch, "epochs"
    if step is None:
        step = first(LAST_RESORT, lambda look: look.whole and look.grows)
        kind = f"column {names[step]!r}" if step is not None else kind
    if not named and looks and looks[0].whole and looks[0].grows and looks[0].filled == rows > 1:
        step = 0
    if step is None:
        kind = "row numbers"
    time, scale = None, 1.0
    for i in (i for name in TIME_NAMES for i, key in enumerate(keys) if key == name):
        look_scale = looks[i].time_scale
        if look_scale is not None:
            time, scale = i, look_scale
            break
    rank = first(RANK_NAMES, lambda look: look.whole)
    tag = first(TAG_NAMES, lambda look: look.texts > look.numbers)
    value = first(VALUE_NAMES, lambda look: look.numbers > 0 or look.filled == 0)
    if tag is None or value is None:
        tag = value = None
    sample = shard = position = None
    if kind in ("steps", "epochs"):
        sample = _sample(keys, looks) if tag is None else None
        shard = first(SHARD_NAMES if sample is not None else [n for n in SHARD_NAMES if n.startswith("shard")])
        if sample is None and shard is not None and looks[shard].numbers and not looks[shard].texts and keys[shard] != "shard":
            shard = None
        if sample is None:
            sample = first(BATCH_NAMES)  # nothing finer than the batch is known: its id stands for its samples
        position = first(POSITION_NAMES, lambda look: look.whole) if sample is not None else None
    taken = {time, rank, tag, value, sample, shard, position} | ({step} if named and step != epoch else set())
    free = [i for i in range(len(keys)) if i not in taken]
    run = first(RUN_NAMES, lambda look: look.texts > 0) if tag is not None else None
    identifiers = [i for i in free if _IDENTIFIER.fullmatch(keys[i])]
    text = [i for i in free if i not in identifiers and (looks[i].texts > looks[i].numbers or keys[i].startswith("config/"))]
    metrics = [i for i in free if i not in identifiers and i not in text] if tag is None else []
    if sample is not None and all(i == epoch for i in metrics):
        metrics = []  # a manifest proper: its epoch column is an axis
    refusal = ""
    if not metrics and tag is None and sample is None and shard is None:
        refusal = "a table without numbers"
    elif step is None or kind.startswith("column"):
        no_axis = step is None and time is None
        if tag is None and (set(keys) & DATA_NAMES or (no_axis and (len(text) > len(metrics) or len(metrics) > _WIDEST))):
            refusal = "a table without steps that looks like data or results, not like a log of training"
    axes = Roles(step, kind, epoch, time, scale, rank, tag, value, run, sample, shard, position)
    return replace(axes, metrics=tuple(metrics), text=tuple(text), identifiers=tuple(identifiers), refusal=refusal)


class _Look:
    """What the cells of a column look like."""

    def __init__(self, cells: Sequence[Cell]) -> None:
        values = [c for c in cells if c is not None]
        numbers = [c for c in values if isinstance(c, (int, float))]
        self.filled, self.numbers, self.texts = len(values), len(numbers), len(values) - len(numbers)
        steps = [n for n in numbers if whole(n) is not None]
        self.half_whole = bool(steps) and len(steps) * 2 >= self.filled  # some may be damaged
        self.whole = bool(steps) and len(steps) * 4 >= 3 * self.filled
        self.grows = self.whole and sum(a > b for a, b in pairwise(numbers)) * 4 <= len(steps)
        self.counts = self.whole and all(b - a == 1 for a, b in pairwise(numbers))
        strings = [c for c in values if not isinstance(c, (int, float))]
        self.lists = any(len(split_ids(s)) > 1 for s in strings[:20])
        self.time_scale = _time_scale(numbers, strings)


def _time_scale(numbers: Sequence[float], strings: Sequence[Cell]) -> float | None:
    if numbers:
        sizes = sorted(abs(n) for n in numbers if n == n)
        middle = sizes[len(sizes) // 2] if sizes else 0.0
        return next((s for s in (1.0, 1e-3, 1e-6, 1e-9) if 3.1e8 <= middle * s <= 4.2e9), None)
    return 0.0 if strings and seconds(strings[0], 0.0) is not None else None


def _sample(keys: Sequence[str], looks: Sequence[_Look]) -> int | None:
    for i, key in enumerate(keys):
        if _SAMPLE.fullmatch(key) and key not in WEAK_STEP_NAMES and key not in BATCH_NAMES and looks[i].filled:
            return i
    for i, key in enumerate(keys):
        counter = looks[i].counts or key in ("samples", "examples", "index")  # how many, or the number of the row
        if _SAMPLE_LIST.fullmatch(key) and (looks[i].lists or (looks[i].filled and not counter)):
            return i
    return None
