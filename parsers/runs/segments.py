"""Cuts each file of a run into segments: stretches that one process wrote."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from parsers import arrow
from parsers.runs.boundaries import FEW, boundaries
from parsers.runs.clock import Clock, Evidence, Values
from parsers.runs.equal_values import ENOUGH, Points, equal_share
from parsers.runs.process_lines import BEGINS, ENDS, Line, launch_times, lines, resumes
from parsers.runs.spans import Span
from parsers.tables import DATED

TRAINED = {"loss.train", "lr", "grad.norm"}
_AXES = {"epoch", "loss.train", "time.total"}
_LAUNCHES = {f"other/{n}" for n in ("attempt", "attempt_id", "restart_count", "launch", "incarnation")}  # what counts them


@dataclass
class Segment:
    """A stretch of one file that one process wrote; ``begun``: what shows that it begins another, None at the top of the file."""

    source: str
    first_at: int  # place in the file where it begins; -1: at the top
    row_at: int  # place of its first row
    span: Span
    order: int
    rows: int
    names: frozenset[str]  # of the metrics in its file
    tags: frozenset[str]  # as its writer calls them
    begun: Evidence | None = None
    launch: bool = False  # a line of the file tells of the launch
    losses: Points | None = None
    attempt: int = -1


def segments(tables: dict[str, pa.Table], of_epochs: frozenset[str]) -> list[Segment]:
    """The segments of all files, in file order. ``of_epochs``: the files whose steps are epochs."""
    metrics = tables["metrics"]
    if not metrics.num_rows:
        return []
    said = lines(tables)
    launches = launch_times(said, tables["config"])
    codes, sources = arrow.codes(metrics["source"])
    found: list[Segment] = []
    resumed = resumes(said, metrics)
    stretches = dict(zip(sources, arrow.stretches(codes, len(sources)), strict=True))
    clocks = {s: _clock(metrics.slice(first, last - first), s in of_epochs) for s, (first, last) in stretches.items() if last > first}
    files = {source: clock for source, clock in clocks.items() if clock is not None}
    for source, clock in files.items():
        begun = boundaries(clock, source, said, launches, resumed) or _files_of_launches(source, files)
        found += _cut(source, clock, said, begun, len(found))
    # a summary of one or two rows without a clock tells no attempt of its own, but training does below a line that tells of its launch, or where a longer
    # launch begins anew behind it in the same file
    anew = {s.source: s.order for s in found if s.begun is not None and s.rows >= FEW}
    told = (s for s in found if s.rows < FEW and _trains(s) and ((s.begun and s.launch) or s.order < anew.get(s.source, 0)))
    kept = {s.order for s in told}
    return [s for s in found if s.span.times or s.rows >= FEW or s.order in kept] or found


def _trains(s: Segment) -> bool:
    return s.losses is not None and len(s.losses[0]) > 0


def _clock(rows: pa.Table, of_epochs: bool) -> Clock | None:
    """Of the lowest rank, and of rows that have a step: the tag of the training loss or rate where it is logged often, else the commonest."""
    (tag, tags), (name, names) = arrow.codes(rows["tag"]), arrow.codes(rows["name"])
    keep = np.array([not n.startswith("axis/") for n in names])[name]
    if (stepped := arrow.valid(rows["step"])) is not None:
        keep &= stepped
    if rows["rank"].null_count < len(keep) and keep.any():
        rank = arrow.filled(rows["rank"], 0)
        keep &= rank == rank[keep].min()
    if not keep.any():
        return None
    blocks = [slice(i, i + arrow.BLOCK) for i in range(0, len(tag), arrow.BLOCK)]
    count = np.sum([np.bincount(tag[b][keep[b]], minlength=len(tags)) for b in blocks], axis=0)
    name_of = np.zeros(len(tags), np.int32)
    name_of[tag] = name  # of one file: a tag has one name there
    logged = {int(t): names[name_of[t]] for t in np.flatnonzero(count)}
    often = 0.5 * count.max()
    best = max(logged, key=lambda t: (count[t] >= often and logged[t] in TRAINED, count[t]))
    mine = np.flatnonzero(keep & (tag == best))
    step, at, time = (arrow.picked(rows[c], mine, fill) for c, fill in (("step", 0), ("at", -1), ("time", np.nan)))
    of = {
        name: _values(rows, np.flatnonzero(keep & (tag == t)))
        for t, name in sorted(logged.items(), key=lambda x: count[x[0]])
        if name in _AXES or name.lower() in _LAUNCHES
    }
    launches = next((values for name, values in of.items() if name.lower() in _LAUNCHES), None)
    return Clock(
        step,
        at,
        time,
        frozenset(logged.values()),
        frozenset(tags[t] for t in logged),
        of.get("epoch"),
        of.get("loss.train"),
        of.get("time.total"),
        of_epochs,
        launches,
    )


def _files_of_launches(source: str, files: dict[str, Clock]) -> dict[int, Evidence]:
    """Rows at which a launch begins, in a file that all launches wrote to: where each has a file of its own beside it, with the same losses,
    one behind the other."""
    whole = files[source]
    parts = [(other, c) for other, c in files.items() if len(c.step) < len(whole.step) and _says_the_same(c, whole)]
    parts.sort(key=lambda part: int(part[1].step.min()))
    follow = all(b.step.min() >= a.step.max() for (_, a), (_, b) in pairwise(parts))
    if len(parts) < 2 or not follow or parts[0][1].step.min() > whole.step.min() + whole.interval:
        return {}
    rows = {int(np.searchsorted(whole.step, c.step.min())): (other, c) for other, c in parts[1:]}
    return {row: Evidence(f"{other} begins at step {c.step.min()}", other, int(c.at[0])) for row, (other, c) in rows.items() if row}


def _says_the_same(a: Clock, b: Clock) -> bool:
    """Do two files log the same losses where they have steps in common?"""
    if a.loss is None or b.loss is None or len(np.intersect1d(a.loss.step, b.loss.step)) < FEW:
        return False
    return (equal_share((a.loss.step, a.loss.value), (b.loss.step, b.loss.value)) or 0.0) >= ENOUGH


def _values(rows: pa.Table, mine: NDArray[np.int64]) -> Values:
    at, step, value = (arrow.picked(rows[c], mine, fill) for c, fill in (("at", -1), ("step", 0), ("value", np.nan)))
    return Values(at, step, value)


def _losses(clock: Clock, i: int, j: int) -> Points | None:
    """Those that stand with the rows i to j."""
    if clock.loss is None:
        return None
    here = clock.loss.at >= (clock.at[i] if i else 0)
    if j < len(clock.at):
        here &= clock.loss.at < clock.at[j]
    return clock.loss.step[here], clock.loss.value[here]


def _cut(source: str, clock: Clock, said: list[Line], begun: dict[int, Evidence], order: int) -> list[Segment]:
    starts = [0, *sorted(begun)]
    mine = [x for x in said if x.source == source and x.at is not None]
    found = []
    for n, (i, j) in enumerate(zip(starts, [*starts[1:], len(clock.step)], strict=True)):
        step, time = clock.step[i:j], clock.time[i:j]
        time = time[time >= DATED]
        grown = np.diff(np.sort(step))
        grown = grown[grown > 0]
        times = (float(time.min()), float(time.max())) if len(time) else None
        span = Span(int(step.min()), int(step.max()), times, int(np.median(grown)) if len(grown) else clock.interval)
        previous = int(clock.at[i - 1]) if n else -1
        first_at = _first_line(mine, previous, int(clock.at[i])) if n else -1
        launch = any(x.kind in BEGINS and previous < (x.at or 0) <= clock.at[i] for x in mine)
        found.append(
            Segment(
                source,
                first_at,
                int(clock.at[i]),
                span,
                order + n,
                j - i,
                clock.names,
                clock.tags,
                begun.get(i),
                launch,
                _losses(clock, i, j),
            )
        )
    return found


def _first_line(said: list[Line], previous: int, first: int) -> int:
    """Where a process's part of a file begins: with the lines that announce it, behind those that end the one before."""
    between = [x for x in said if previous < (x.at or 0) < first]
    ended = max((x.at or 0 for x in between if x.kind in ENDS), default=previous)
    return min((x.at or 0 for x in between if (x.kind in BEGINS or _plans(x)) and (x.at or 0) > ended), default=first)


def _plans(x: Line) -> bool:
    """Does a line say how many epochs the training will have that begins below it? Bars of an evaluation say theirs, too, at its end."""
    return x.kind == "plan" and x.text.startswith("epochs: ")
