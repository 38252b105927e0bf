"""Cuts each file of a run where a new attempt begins: where steps go back, where a line says so, where the clock pauses at a launch."""

from __future__ import annotations

import contextlib
import re
from dataclasses import dataclass
from datetime import UTC, datetime

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from parsers import arrow
from parsers.runs.spans import Span
from parsers.tables import DATED

_MAX_CUTS = 200  # more step-backs than this in one file are disorder, not restarts
_PAUSE = 5  # a launch shows in the clock as a pause of this many usual steps
_FEW = 3  # rows
_STAMP = re.compile(r"(?<!\d)(20\d{6})[-_T]?(\d{6})(?!\d)")
_DEATHS = {"signal", "scheduler", "hardware"}
_GONE = re.compile(r"(?i)CUDA error|cancelled|preempted|node[_ ]fail|time limit|terminat|killed|segmentation fault|core dumped|aborted")
_CLOCKS = {"loss.train", "lr", "grad.norm"}


@dataclass
class Segment:
    """A stretch of one file in which steps only grow."""

    source: str
    first_at: int  # place in the file where it begins; -1: at the top
    span: Span
    order: int
    rows: int
    names: frozenset[str]  # of the metrics in its file
    attempt: int = -1


@dataclass(frozen=True)
class _Told:
    """What lines and configs say of launches and deaths, for one file: places in it, moments, and steps of any file."""

    begun: list[int]
    ended: list[int]
    launches: list[float]
    resumed_at: list[int]


@dataclass(frozen=True)
class _Clock:
    """The rows of the tag whose steps tell a file's attempts best."""

    step: NDArray[np.int64]
    at: NDArray[np.int64]
    time: NDArray[np.float64]
    names: frozenset[str]


def segments(tables: dict[str, pa.Table]) -> list[Segment]:
    """The segments of all files, in file order."""
    metrics, events = tables["metrics"], tables["events"]
    if not metrics.num_rows:
        return []
    said = list(zip(*(events[c].to_pylist() for c in ("kind", "level", "text", "source", "at", "step", "time")), strict=True))
    launches = _launches(tables["config"], [(kind, level, time) for kind, level, _, _, _, _, time in said])
    resumed_at = sorted({step for kind, _, _, _, _, step, _ in said if kind == "resume" and step})
    codes, sources = arrow.codes(metrics["source"])
    bounds = np.searchsorted(codes, np.arange(len(sources) + 1)).tolist()
    found: list[Segment] = []
    for source, first, last in zip(sources, bounds, bounds[1:], strict=False):
        clock = _clock(metrics.slice(first, last - first)) if last > first else None
        if clock is not None:
            mine = [(kind, level, text, at) for kind, level, text, s, at, _, _ in said if s == source and at is not None]
            begun = [at for kind, _, _, at in mine if kind == "resume"]
            ended = [at for kind, level, text, at in mine if kind in _DEATHS and level == "error" and _GONE.search(text)]
            found += _cut(source, clock, _Told(begun, ended, launches, resumed_at), len(found))
    # a summary of one or two rows without a clock tells no attempt of its own
    return [s for s in found if s.span.times or s.rows >= _FEW] or found


def _launches(config: pa.Table, events: list[tuple[str, str, float | None]]) -> list[float]:
    """When a process was started: lines that say so, and configs that carry the moment in their names.

    A line that ends a job (cancelled, preempted) counts, too: rows that come after it, and after a pause, are another attempt's.
    """
    found = {
        time
        for kind, level, time in events
        if time is not None and (kind in ("start", "resume") or (kind in ("scheduler", "signal") and level == "error"))
    }
    for source in arrow.words(config["source"]):
        if match := _STAMP.search(source):
            with contextlib.suppress(ValueError):
                found.add(datetime.strptime("".join(match.groups()), "%Y%m%d%H%M%S").replace(tzinfo=UTC).timestamp())
    return sorted(found)


def _clock(rows: pa.Table) -> _Clock | None:
    """Of the lowest rank, and of rows that have a step: the tag of the training loss or rate where it is logged often, else the commonest."""
    (tag, _), (name, names) = arrow.codes(rows["tag"]), arrow.codes(rows["name"])
    keep = np.array([not n.startswith("axis/") for n in names])[name]
    if (stepped := arrow.valid(rows["step"])) is not None:
        keep &= stepped
    if rows["rank"].null_count < len(keep) and keep.any():
        rank = arrow.filled(rows["rank"], 0)
        keep &= rank == rank[keep].min()
    usable = np.flatnonzero(keep)
    if not len(usable):
        return None
    used = tag[usable]
    count = np.bincount(used)
    name_of = np.zeros(len(count), np.int32)
    name_of[used] = name[usable]
    logged = {int(t): names[name_of[t]] for t in np.flatnonzero(count)}
    often = 0.5 * count.max()
    best = max(logged, key=lambda t: (count[t] >= often and logged[t] in _CLOCKS, count[t]))
    mine = usable[used == best]
    step, at, time = (arrow.filled(rows[c], fill)[mine] for c, fill in (("step", 0), ("at", -1), ("time", np.nan)))
    return _Clock(step, at, time, frozenset(logged.values()))


def _cut(source: str, clock: _Clock, told: _Told, order: int) -> list[Segment]:
    starts = _starts(clock, told)
    found = []
    for n, (i, j) in enumerate(zip(starts, [*starts[1:], len(clock.step)], strict=True)):
        step, time = clock.step[i:j], clock.time[i:j]
        time = time[time >= DATED]
        span = Span(int(step.min()), int(step.max()), (float(time.min()), float(time.max())) if len(time) else None)
        found.append(Segment(source, int(clock.at[i]) if n else -1, span, order + n, j - i, clock.names))
    return found


def _starts(clock: _Clock, told: _Told) -> list[int]:
    """The rows at which segments begin."""
    pauses = np.diff(clock.time)
    known = pauses[np.isfinite(pauses)]
    usual = float(np.median(known)) if len(known) else 0.0

    def inside(rows: NDArray[np.int64]) -> list[int]:
        return [row for row in rows.tolist() if 0 < row < len(clock.step)]

    def paused(row: int) -> bool:
        return bool(pauses[row - 1] > _PAUSE * usual)

    starts = {0, *_steps_back(clock.step), *inside(np.searchsorted(clock.at, told.begun))}
    # rows after the end of a process are another attempt's; with a clock, after a pause
    starts |= {row for row in inside(np.searchsorted(clock.at, told.ended)) if not usual or paused(row)}
    for launch in told.launches:
        after = np.flatnonzero(clock.time >= np.floor(launch))[:2]
        if len(after) and clock.time[after[0]] >= np.floor(launch) + 1:
            after = after[:1]  # lines often tell whole seconds, rows their fractions: only a row of that second may be of before
        starts |= set([row for row in inside(after) if paused(row)][:1])
    if len(starts) == 1:  # no step back: where a line of another file says that training resumes at a step; a clock must pause there
        resumed = inside(np.searchsorted(clock.step, told.resumed_at, side="right"))
        starts |= {row for row in resumed if not usual or paused(row)}
    return sorted(starts)


def _steps_back(step: NDArray[np.int64]) -> list[int]:
    """Rows at which a restart begins; not where a single late row (a logger's thread) goes on above the old maximum at once."""
    back = np.flatnonzero(np.diff(step) < 0) + 1
    if len(back) > (np.diff(step) > 0).sum():  # written newest first
        return []
    if not 0 < len(back) <= _MAX_CUTS:
        return []
    before = np.maximum.accumulate(step)
    return [i for i in back.tolist() if i + 1 >= len(step) or step[i + 1] <= before[i - 1]]
