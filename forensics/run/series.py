"""One metric as numpy arrays, ready for detectors: by step, one value a step."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forensics.run import added_up, axes, copies, empty_windows, order, summed_terms
from forensics.run.metric_columns import arrays, column_at, rows_of
from forensics.run.once import once
from parsers.tables import DATED, Run

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

STATES = (
    "lr", "loss_scale", "epoch", "step", "axis/", "time.total", "tokens.seen", "samples.seen", "batch.size", "batch.accumulation", "skip.count", "nan.count",
)  # fmt: skip
"""What stands at a moment and has no mean: rates, settings, counters."""


@dataclass(frozen=True, eq=False)
class Series:
    """A metric over the whole run, by attempt and step, one value a step; all arrays have the same length.

    The steps of a tag that counts epochs are those of the run at that time. ``attempt`` tells the attempts apart; ``alive`` is False where a later
    attempt logged the same step again (the abandoned branch). ``interval`` is the usual distance of two logged steps.
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
    summed: added_up.Total | None = None  # how the log adds the values up, which are taken apart here
    empty: tuple[int, ...] = ()  # steps at which zero was written for a mean of nothing, left out

    @property
    def seconds(self) -> float:
        """How many seconds the unit of a time is."""
        return {"us": 1e-6, "ms": 1e-3, "min": 60.0, "h": 3600.0}.get(self.unit, 1.0)

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

    def only(self, rows: Ints | NDArray[np.bool_]) -> Series:
        """The series of some of its rows."""
        cut: dict[str, Any] = {f.name: x[rows] for f in fields(self) if isinstance(x := getattr(self, f.name), np.ndarray)}
        return replace(self, **cut)

    def attempts(self, first: int | None = None, last: int | None = None) -> Iterator[tuple[int, Ints, Floats]]:
        """(attempt, step, value) of each attempt, cut to [first, last]."""
        for a, rows in self.rows_between(first, last):
            yield a, self.step[rows], self.value[rows]

    def rows_between(self, first: int | None = None, last: int | None = None) -> Iterator[tuple[int, Ints]]:
        """(attempt, rows) of each attempt with a step from first to last."""
        for a, rows, step, in_order in self._by_attempt:
            if in_order:
                low = 0 if first is None else int(np.searchsorted(step, first))
                high = len(rows) if last is None else int(np.searchsorted(step, last, "right"))
                rows = rows[low:high]
            else:
                rows = rows[(step >= (-np.inf if first is None else first)) & (step <= (np.inf if last is None else last))]
            if len(rows):
                yield a, rows

    def alive_between(self, first: int, last: int) -> Ints:
        """The rows of the branch that survived with a step from first to last, in order."""
        rows: Ints = np.sort(np.concatenate([np.zeros(0, np.int64), *(rows for _, rows in self.rows_between(first, last))]))
        return np.asarray(rows[self.alive[rows]], np.int64)

    @cached_property
    def _by_attempt(self) -> list[tuple[int, Ints, Ints, bool]]:
        """(attempt, its rows, their steps, whether these never fall) of each attempt."""
        every = [(int(a), rows := np.flatnonzero(self.attempt == a), self.step[rows]) for a in np.unique(self.attempt)]
        return [(a, rows, step, bool((np.diff(step) >= 0).all())) for a, rows, step in every]

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
    if found is not None and name in empty_windows.MEANS and empty_windows.may_hold(found.value):
        return _of_episodes(run, found)
    total = added_up.total(found.value) if found is not None and name == "loss.train" and not found.attempt.any() else None
    return found if found is None or total is None else replace(found, value=added_up.taken_apart(found.value, total), summed=total)


def _of_episodes(run: Run, s: Series) -> Series:
    """A mean over episodes without the zeros where none ended."""
    beside = (p for name in names(run, len(s)) for p in parts(run, name) if np.array_equal(p.step, s.step))
    none = empty_windows.empty(s.value, ((p.name, p.tag, p.value) for p in beside))
    return replace(s.only(~none), empty=tuple(s.step[none].tolist())) if none.any() else s


def _sum(run: Run, name: str) -> list[Series]:
    """The terms of a loss added up, where all stand in the same rows; nothing where a loss has no such terms, or no terms at all."""
    logged = {p.tag: p for p in parts(run, "loss.aux")} if name in summed_terms.OF else {}
    own = [logged[tag] for tag in summed_terms.terms(logged, name)]
    if not own or any(not np.array_equal(p.step, own[0].step) or not np.array_equal(p.attempt, own[0].attempt) for p in own):
        return []
    return [replace(own[0], name=name, tag=" + ".join(p.tag for p in own), value=np.sum([p.value for p in own], axis=0))]


@once
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
    ranks = [None] if one else np.unique(columns["rank"][rows_of(columns, name)]).tolist()
    return [s for rank in ranks if (s := _build(run, name, rank=rank)) is not None] or _sum(run, name)


def _build(run: Run, name: str, only_tag: int | None = None, rank: int | None = None) -> Series | None:
    columns = arrays(run)
    rows = rows_of(columns, name)
    if only_tag is not None:
        rows = rows[columns["tag"][rows] == only_tag]
    if rank is not None:
        rows = rows[column_at(columns, "rank", rows) == rank]
    if not len(rows):
        return None
    rows = copies.best(run, columns, rows)
    ranks = column_at(columns, "rank", rows)
    rank = int(ranks.min())
    rows = rows[ranks == rank] if (ranks != rank).any() else rows
    state = name.startswith(STATES)
    attempt, source = column_at(columns, "attempt", rows), column_at(columns, "source", rows)
    found = order.curve(columns["step"][rows], attempt, columns["value"][rows], source, state=state)
    summaries = tuple(zip(*(columns[c][rows[found.summary]].tolist() for c in ("step", "value", "at")), strict=True))
    rows = rows[found.row]
    tag = columns["tags"][int(columns["tag"][rows[0]])]
    step, attempt, source = axes.placed(columns, rows, name), column_at(columns, "attempt", rows), column_at(columns, "source", rows)
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


@once
def parts(run: Run, name: str) -> list[Series]:
    """Every tag that carries a name, each as a series of its own: the layers of ``grad.norm_layer``, the sets of ``loss.part``."""
    columns = arrays(run)
    tags = np.flatnonzero(np.bincount(columns["tag"][rows_of(columns, name)]))
    return [s for tag in tags if (s := _build(run, name, int(tag))) is not None] or _sum(run, name)
