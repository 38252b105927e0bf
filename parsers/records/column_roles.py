"""What the columns of a table are, whoever wrote it (CSV, Parquet): helpers, no parser.

A column is known by its name first (:mod:`parsers.records.vocabulary`) and by the look of its cells second: a step must be whole numbers,
a time must lie between 1980 and 2100, and names that are often something else must also behave like a step.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from parsers.lazy_regex import lazy_re
from parsers.records import bare_tables, vocabulary
from parsers.records.cells import Cell, seconds, split_ids, time_unit, whole

_DATA = {"label", "labels", "target", "class", "y_true", "y_pred", "prediction", "predictions", "text",
         "prompt", "response", "completion", "image", "image_id", "question", "answer", "id", "caption",
         "sentence", "messages"}  # fmt: skip
_SAMPLE = lazy_re(
    r"(?:batch_?)?(?:samples?|examples?|data|dataset|docs?|documents?|records?|items?|rows?|seq|sequences?|images?"
    r"|batch)_(?:uids?|ids?|idxs?|idx|index|indexes|indices|keys?|hash(?:es)?)"
)
_SAMPLE_LIST = lazy_re(r"samples?|examples?|ids?|idxs?|idx|index|indices|indexes|uids?|keys?|__key__")  # if the cells look like it
_IDENTIFIER = lazy_re(r".*_(?:ids?|uuid|uid|hash)|ids?|uuid|uid|pid|hostname|node_ip")
_ROW_NAMES = lazy_re(
    r"(?:.*_)?(?:image|img|picture|scene|video|clip|audio|utterance|subject|patient|case|slide|sample)(?:_?(?:name|path|file))?"
)
_WIDEST = 512  # without a step, a wider table is a data set, not a log


_EVEN = 3  # bound: rises of a column that counts, whatever its name


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
    refusal: str = ""

    @property
    def stepped(self) -> bool:
        """Does a column say the step, or the epoch, by its name?"""
        return self.steps_are in ("steps", "epochs")


class _Look:
    """What the cells of a column look like."""

    def __init__(self, cells: Sequence[Cell]) -> None:
        values = [c for c in cells if c is not None]
        numbers = [c for c in values if isinstance(c, (int, float))]
        strings = [c for c in values if not isinstance(c, (int, float))]
        self.filled, self.numbers, self.texts = len(values), len(numbers), len(strings)
        steps = [n for n in numbers if whole(n) is not None]
        self.half_whole = bool(steps) and len(steps) * 2 >= self.filled  # some may be damaged
        self.whole = bool(steps) and len(steps) * 4 >= 3 * self.filled
        falls, rises = sum(a > b for a, b in pairwise(numbers)), sum(a < b for a, b in pairwise(numbers))
        self.grows = self.whole and falls * 4 <= len(steps)
        turns = min(falls, rises)  # the newest row may stand first
        self.wanders = self.whole and self.filled >= vocabulary.SEVERAL and turns * 4 > len(steps)
        self.counts = self.whole and all(b - a == 1 for a, b in pairwise(numbers))
        moves = [b - a for a, b in pairwise(numbers)]
        self.even = self.whole and len(moves) >= _EVEN and min(moves) > 0 and 4 * moves.count(moves[0]) >= 3 * len(moves)
        self.constant = len(set(cells)) == 1 < len(cells)
        self.distinct = 3 < self.texts == len(cells) == len(set(cells))
        self.lists = any(len(split_ids(s)) > 1 for s in strings[:20])
        sizes = sorted(abs(n) for n in numbers if n == n)
        self.time_scale = time_unit(sizes[len(sizes) // 2] if sizes else None)
        self.is_clock = self.grows and bool(self.time_scale) and time_unit(sizes[0]) == time_unit(sizes[-1]) == self.time_scale
        if not numbers and strings and seconds(strings[0]) is not None:
            self.time_scale = 0.0


def _anything(look: _Look) -> bool:
    return True


@dataclass
class _Columns:
    """The names of a table as the vocabulary spells them, and the looks of its columns."""

    keys: list[str]
    looks: list[_Look]
    rows: int
    counters: int | None = None  # where they have no names: how many of the first ones count

    def first(self, wanted: Sequence[str], good: Callable[[_Look], bool] = _anything) -> int | None:
        """The column with the best of the wanted names, among those that look right."""
        return next((i for w in wanted for i, k in enumerate(self.keys) if k == w and good(self.looks[i])), None)


def assign(names: Sequence[str], columns: Sequence[Sequence[Cell]], named: bool = True) -> Roles:
    """What each column is, from its name and a sample of its cells (``cell`` made them; lists count as text).

    ``named`` is False for a table without a header: a first column of growing whole numbers is its step (and a metric), or the last of
    several that go on by the same amount; a column of a clock's seconds is its time.
    """
    table = _Columns([vocabulary.plain(n) for n in names], [_Look(c) for c in columns], max((len(c) for c in columns), default=0))
    table.counters = None if named else bare_tables.counters(columns)
    step, kind, epoch = _step(table)
    if kind == "column":
        assert step is not None
        kind = f"column {names[step]!r}"
    time = table.first(vocabulary.TIME, lambda look: look.time_scale is not None)
    if table.counters is not None:
        time = next((i for i, look in enumerate(table.looks) if look.is_clock and i != step), None)
    scale = table.looks[time].time_scale if time is not None else None
    roles = Roles(step, kind, epoch, time, 1.0 if scale is None else scale, table.first(vocabulary.RANK, lambda look: look.whole))
    tag = table.first(vocabulary.TAG, lambda look: look.texts > look.numbers)
    value = table.first(vocabulary.VALUE, lambda look: look.numbers > 0 or look.filled == 0)
    if tag is not None and value is not None:
        roles = replace(roles, tag=tag, value=value, run=table.first(vocabulary.RUN, lambda look: look.texts > 0))
    if roles.stepped:
        roles = _with_samples(roles, table)
    return _with_rest(roles, table)


def _step(table: _Columns) -> tuple[int | None, str, int | None]:
    """The column of the step, what its numbers are, and the column of the epoch."""
    epoch = table.first(vocabulary.EPOCH, lambda look: look.numbers > 0)
    half = table.rows / 2
    if table.counters is not None and table.looks and table.looks[0].grows and table.looks[0].filled == table.rows > 1:
        return max(table.counters - 1, 0), "steps", epoch
    for name in vocabulary.step_names(table.keys):
        step = table.first([name], lambda look: look.filled >= half)
        if step is None:
            continue
        look = table.looks[step]
        if look.constant and name in vocabulary.TOTAL_STEP:
            continue
        if name in vocabulary.WEAK_STEP:
            counts = look.whole and not look.constant and (look.grows or epoch is not None)
        else:
            counts = look.half_whole and (not look.wanders or epoch is not None or name in vocabulary.TOTAL_STEP)
        if counts:
            return step, "steps", epoch
    if epoch is not None and table.looks[epoch].whole:
        return epoch, "epochs", epoch
    step = table.first(vocabulary.LAST_RESORT, lambda look: look.grows)
    if step is None and table.looks and table.looks[0].even and table.looks[0].filled == table.rows and vocabulary.may_count(table.keys[0]):
        step = 0  # whatever it is called: a table begins with what counts its rows
    return step, "row numbers" if step is None else "column", epoch


def _with_samples(roles: Roles, table: _Columns) -> Roles:
    """Which columns name the samples of a batch, the files that they came from, and their places in it."""
    sample = _sample(table.keys, table.looks) if roles.tag is None else None
    shard = table.first(vocabulary.SHARD if sample is not None else vocabulary.SHARD_ALONE)
    if sample is None and shard is not None:
        look = table.looks[shard]
        if look.numbers and not look.texts and table.keys[shard] != "shard":
            shard = None
    if sample is None:
        sample = table.first([n for n in vocabulary.BATCH_NAME if roles.step is None or n != table.keys[roles.step]])
    position = table.first(vocabulary.POSITION, lambda look: look.whole) if sample is not None else None
    return replace(roles, sample=sample, shard=shard, position=position)


def _sample(keys: Sequence[str], looks: Sequence[_Look]) -> int | None:
    for i, key in enumerate(keys):
        if _SAMPLE.fullmatch(key) and key not in vocabulary.WEAK_STEP and key not in vocabulary.BATCH_NAME and looks[i].filled:
            return i
    for i, key in enumerate(keys):
        counter = looks[i].counts or key in ("samples", "examples", "index")  # how many, or the number of the row
        if _SAMPLE_LIST.fullmatch(key) and (looks[i].lists or (looks[i].filled and not counter)):
            return i
    return None


def _with_rest(roles: Roles, table: _Columns) -> Roles:
    """What the columns are that are no axis: metrics, text, identifiers. And whether all this is a log."""
    keys, looks = table.keys, table.looks
    taken = {roles.time, roles.rank, roles.tag, roles.value, roles.sample, roles.shard, roles.position}
    if table.counters is None and roles.step != roles.epoch:
        taken.add(roles.step)
    free = [i for i in range(len(keys)) if i not in taken]
    free = [i for i in free if not _IDENTIFIER.fullmatch(keys[i])]
    text = [i for i in free if looks[i].texts > looks[i].numbers or keys[i].startswith("config/")]
    metrics = [i for i in free if i not in text] if roles.tag is None else []
    if roles.sample is not None and all(i == roles.epoch for i in metrics):
        metrics = []  # a manifest proper: its epoch column is an axis
    refusal = ""
    if not metrics and roles.tag is None and roles.sample is None and roles.shard is None:
        refusal = "a table without numbers"
    elif not roles.stepped and roles.tag is None:
        no_axis = roles.step is None and roles.time is None
        # each row is of a sample: an evaluation of them one by one
        named = any(looks[i].distinct and _ROW_NAMES.fullmatch(keys[i]) for i in text)
        if set(keys) & _DATA or (no_axis and (named or len(text) > len(metrics) or len(metrics) > _WIDEST)):
            refusal = "a table without steps that looks like data or results, not like a log of training"
    return replace(roles, metrics=tuple(metrics), text=tuple(text), refusal=refusal)
