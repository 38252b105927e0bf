"""One metric as numpy arrays, ready for detectors: by step, one value a step."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forensics.run import added_up, axes, order, summed_terms
from forensics.run.once import once
from parsers import arrow
from parsers.tables import DATED, LINES_COUNTED, Run

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

STATES = (
    "lr", "loss_scale", "epoch", "step", "axis/", "time.total", "tokens.seen", "samples.seen", "batch.size", "skip.count", "nan.count",
)  # fmt: skip
"""What stands at a moment and has no mean: rates, settings, counters."""


@dataclass(frozen=True, eq=False)
class Series:
    """A metric over the whole run, by attempt and step, one value a step; all arrays have the same length.

    The steps of a tag that counts epochs are those of the run at that time. ``attempt`` tells the attempts apart; ``alive`` is False where a later attempt logged the same step again (the abandoned
    branch). ``interval`` is the usual distance of two logged steps.
    """

    name: str
    tag: str
    step: Ints
    value: Floats
    time: Floats  # seconds since 1970, NaN where unknown; since the file's first clock where no one can date it
    attempt: NDArray[np.int32]
    alive: NDArray[np.bool_]
    source: list[str]  # distinct sources
    source_code: NDArray[np.int32]  # index into source
    at: Ints  # -1 where unknown
    unit: str = ""
    smoothing: str = "none"
    interval: int = 1
    count: Ints | None = None  # how many logged values each one is the mean of; None: one
    rank: int = 0  # the process that logged it
    rises: bool = False  # the values are negated, for training raises them: an objective that is judged as a loss
    summaries: tuple[tuple[int, float, int], ...] = ()  # (step, value, at) of means over the run, left out
    summed: int | None = None  # the row from which on the log adds the values up, which are taken apart here

    @cached_property
    def scale(self) -> str:
        """'log' for positive quantities that span decades or are multiplicative by nature, else 'linear'."""
        finite = self.value[np.isfinite(self.value)]
        positive = bool(len(finite)) and bool((finite > 0).all())
        return "log" if positive and self.name.startswith(("loss", "grad", "ppl", "loss_scale")) else "linear"

    def logged(self, value: float) -> float:
        """A value as the log has it."""
        return -value if self.rises else value

    @cached_property
    def usable(self) -> NDArray[np.bool_]:
        """The rows to judge by: finite, and on the branch that survived."""
        return self.alive & np.isfinite(self.value)

    def __len__(self) -> int:
        return len(self.step)

    def attempts(self, first: int | None = None, last: int | None = None) -> Iterator[tuple[int, Ints, Floats]]:
        """(attempt, step, value) of each attempt, cut to [first, last]."""
        low, high = -np.inf if first is None else first, np.inf if last is None else last
        rows = np.flatnonzero((self.step >= low) & (self.step <= high))
        of = self.attempt[rows]
        for a in np.unique(of):
            mine = rows[of == a]
            yield int(a), self.step[mine], self.value[mine]

    def clock(self, row: int | np.integer[Any]) -> float | None:
        """Wall clock of a row in seconds since 1970, None where it was not logged or has no date."""
        t = float(self.time[row])
        return t if t >= DATED else None

    def place(self, run: Run, row: int | np.integer[Any]) -> str:
        """File and line (or byte) of a row: 'log.jsonl line 1501'."""
        at = int(self.at[row])
        return run.where(self.source[int(self.source_code[row])], at if at >= 0 else None)


@once
def series(run: Run, name: str) -> Series | None:
    """The metric under its canonical name, or None where nothing of that name was logged.

    Where several tags or files carry it, the best-covered one is taken: most points in one (tag, format), so that the
    attempts of a run stay one series and a rounded copy in the console log does not mix with the exact one. A loss of which
    only the weighted terms were logged is their sum.
    """
    if (found := _build(run, name)) is None:
        found = next(iter(_sum(run, name)), None)
    first = added_up.begins(found.value) if found is not None and name == "loss.train" and not found.attempt.any() else None
    return found if found is None or first is None else replace(found, value=added_up.taken_apart(found.value, first), summed=first)


def _sum(run: Run, name: str) -> list[Series]:
    """The terms of a loss added up, where all stand in the same rows; nothing where a loss has no such terms, or no terms at all."""
    logged = {p.tag: p for p in parts(run, "loss.aux")} if name in summed_terms.OF else {}
    own = [logged[tag] for tag in summed_terms.terms(logged, name)]
    if not own or any(not np.array_equal(p.step, own[0].step) or not np.array_equal(p.attempt, own[0].attempt) for p in own):
        return []
    return [replace(own[0], name=name, tag=" + ".join(p.tag for p in own), value=np.sum([p.value for p in own], axis=0))]


def names(run: Run, least: int = 1) -> list[str]:
    """Every canonical name that was logged, in alphabetical order, a loss of which only the terms were logged among them; of hundreds of thousands
    most have few points."""
    columns = arrays(run)
    logged = np.flatnonzero(np.diff(columns["ends"]) >= least).tolist()
    sums = [name for name in summed_terms.OF if name not in columns["code_of"] and (s := series(run, name)) is not None and len(s) >= least]
    return sorted([*sums, *(columns["names"][code] for code in logged if columns["names"][code])])


@once
def by_rank(run: Run, name: str) -> list[Series]:
    """The metric as each rank logged it, in the order of the ranks; one series where ranks are not told apart."""
    columns = arrays(run)
    one = "rank" in columns["constant"]
    ranks = [None] if one else np.unique(columns["rank"][_rows(columns, name)]).tolist()
    return [s for rank in ranks if (s := _build(run, name, rank=rank)) is not None] or _sum(run, name)


def _build(run: Run, name: str, only_tag: int | None = None, rank: int | None = None) -> Series | None:
    columns = arrays(run)
    rows = _rows(columns, name)
    if only_tag is not None:
        rows = rows[columns["tag"][rows] == only_tag]
    if rank is not None:
        rows = rows[_of(columns, "rank", rows) == rank]
    if not len(rows):
        return None
    tag, source = columns["tag"][rows], _of(columns, "source", rows)
    if (tag != tag[0]).any() or (source != source[0]).any():
        formats = {s.path: s.format for s in run.sources}
        group_of = np.array([hash_index(columns["formats"], formats.get(s, s)) for s in columns["sources"]], np.int64)
        groups = tag.astype(np.int64) * len(columns["formats"]) + group_of[source]
        groups -= groups.min()  # one name's tags are few: counting from the first tag of all costs a pass over all tags
        counted = {s.path for s in run.sources if LINES_COUNTED in s.note}
        lines = np.array([s in counted for s in columns["sources"]])[source]
        rows = rows[groups == _best_covered(groups, columns["step"][rows], columns["time"][rows], lines)]
    ranks = _of(columns, "rank", rows)
    rank = int(ranks.min())
    rows = rows[ranks == rank] if (ranks != rank).any() else rows
    state = name.startswith(STATES)
    attempt, source = _of(columns, "attempt", rows), _of(columns, "source", rows)
    found = order.curve(columns["step"][rows], attempt, columns["value"][rows], source, state=state)
    summaries = tuple(zip(*(columns[c][rows[found.summary]].tolist() for c in ("step", "value", "at")), strict=True))
    rows = rows[found.row]
    tag = columns["tags"][int(columns["tag"][rows[0]])]
    step, attempt, source = axes.placed(columns, rows, name), _of(columns, "attempt", rows), _of(columns, "source", rows)
    is_used = np.bincount(source) > 0
    used, code = np.flatnonzero(is_used), (np.cumsum(is_used) - 1)[source]
    first = columns["sources"][int(used[0])]
    meaning = run.meanings.get((first, tag))
    return Series(
        name=name,
        tag=tag,
        step=step,
        value=found.value,
        time=columns["time"][rows],
        attempt=attempt,
        alive=order.alive_rows(step, attempt),
        source=[columns["sources"][int(u)] for u in used],
        source_code=code.astype(np.int32),
        at=columns["at"][rows],
        unit=meaning.unit if meaning else "",
        smoothing=meaning.smoothing if meaning else "none",
        interval=order.interval(step, attempt),
        count=found.of if (found.of > 1).any() else None,
        rank=rank,
        summaries=summaries,
    )


def _best_covered(groups: Ints, step: Ints, time: Floats, lines: NDArray[np.bool_]) -> int:
    """The group with most points, those at numbers of lines worth half; of two copies the one that goes further, then the one with clocks."""
    count, clocks = np.bincount(groups), np.bincount(groups, np.isfinite(time))
    reach = np.full(len(count), -1, np.int64)
    np.maximum.at(reach, groups, step)
    return int(np.lexsort((-clocks, -reach, -count + np.bincount(groups, lines) / 2))[0])


def hash_index(seen: list[str], value: str) -> int:
    """The position of value in seen, appended when new."""
    if value not in seen:
        seen.append(value)
    return seen.index(value)


def _rows(columns: dict[str, Any], name: str) -> Ints:
    """The rows that have the name and a step, in file order."""
    code = columns["code_of"].get(name)
    if code is None:
        return np.zeros(0, np.int64)
    rows = columns["by_name"][columns["ends"][code] : columns["ends"][code + 1]]
    return np.asarray(rows[columns["stepped"][rows]], np.int64)


def _of(columns: dict[str, Any], name: str, rows: Ints) -> NDArray[np.int32]:
    """A column at these rows; one that is the same everywhere is not looked up."""
    column: NDArray[np.int32] = columns[name]
    return np.full(len(rows), column[0], column.dtype) if name in columns["constant"] else column[rows]


@once
def arrays(run: Run) -> dict[str, Any]:
    """The metrics table as numpy columns, made once: texts as codes ("tag") and what they stand for ("tags"); "stepped"
    is where a row has a step; "constant" names columns that hold one value; "by_name" are the rows sorted by name, those
    of name i between "ends" i and i + 1.
    """
    t = run.tables["metrics"]
    coded = {c: t[c].combine_chunks() for c in ("tag", "name", "source")}
    out: dict[str, Any] = {c: arrow.filled(a.indices, -1) for c, a in coded.items()}
    out |= {c + "s": a.dictionary.to_pylist() for c, a in coded.items()}
    out["code_of"] = {n: i for i, n in enumerate(out["names"])}
    fills = {"step": 0, "rank": 0, "attempt": 0, "at": -1, "value": math.nan, "time": math.nan}
    out |= {c: arrow.filled(t[c], fill) for c, fill in fills.items()}
    out["constant"] = {c for c in ("source", "rank", "attempt") if len(t) and (out[c] == out[c][0]).all()}
    stepped = arrow.valid(t["step"])
    out |= {"stepped": np.ones(len(t), bool) if stepped is None else stepped, "formats": []}
    few = len(out["names"]) < 1 << 15  # numpy sorts 16 bits in one pass
    out["by_name"] = np.argsort(out["name"].astype(np.int16) if few else out["name"], kind="stable")
    out["ends"] = np.cumsum([np.sum(out["name"] < 0), *np.bincount(out["name"][out["name"] >= 0], minlength=len(out["names"]))])
    return out


@once
def parts(run: Run, name: str) -> list[Series]:
    """Every tag that carries a name, each as a series of its own: the layers of ``grad.norm_layer``, the sets of ``loss.part``."""
    columns = arrays(run)
    tags = np.flatnonzero(np.bincount(columns["tag"][_rows(columns, name)]))
    return [s for tag in tags if (s := _build(run, name, int(tag))) is not None] or _sum(run, name)
