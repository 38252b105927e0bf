"""Tells the attempts in a group of files apart: restarts, rollbacks and overlaps, from any mix of formats.

Each file is cut into *segments* where another process begins to write it, and segments of different files that cover the
same time (or, without clocks, the same steps) are the same attempt. Which attempts continue each other, and so are one run,
`launches` decides. Nothing is dropped: the abandoned branch is the evidence, the surviving one the control.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from parsers import arrow, rank_names
from parsers.runs.boundaries import FEW
from parsers.runs.clock import Evidence
from parsers.runs.equal_values import same_stretch
from parsers.runs.homes import series_name
from parsers.runs.segments import TRAINED, Segment, segments
from parsers.runs.spans import SAME_STEPS, Span, at_once, joined, shared_steps
from parsers.tables import SCHEMAS, ZONES_APART

Attempt = list[Segment]
RESTORED = "trainer_state"  # the format whose files keep the history that a launch took over from its checkpoint


def assign(
    tables: dict[str, pa.Table], formats: dict[str, str], of_epochs: frozenset[str] = frozenset()
) -> tuple[dict[str, pa.Table], list[dict[str, Any]]]:
    """Fills the column ``attempt`` of every table; returns the tables and the attempts, oldest first. ``of_epochs``: the files whose
    steps are epochs.

    An attempt is ``{"index", "steps": [first, last], "started", "ended", "begun", "span", "files"}``: seconds since 1970 or
    None, what shows that another process began (`boundaries.Evidence`; of a new file the place of its first row, without
    words), what it covers, and the files it wrote.
    """
    cut = segments(tables, of_epochs)
    if not cut:
        return tables, []
    found = _attempts(cut, {source: f"{kind} of epochs" if source in of_epochs else kind for source, kind in formats.items()})
    spans = [joined(s.span for s in attempt) for attempt in found]
    by_source = {s.source: _of(cut, s.source) for s in cut}
    restored = frozenset(source for source, kind in formats.items() if kind == RESTORED)
    filled = {name: _fill(name, table, by_source, spans, restored) for name, table in tables.items()}
    return filled, _described(found, spans, filled["metrics"])


def _described(attempts: list[Attempt], spans: list[Span], metrics: pa.Table) -> list[dict[str, Any]]:
    """The steps of an attempt are those of all its rows, in sparse files, too. A launch that goes on from a step may log something at 0
    all the same, as Lightning does with hyperparameters: no step of its training."""
    reached = _reached(metrics, [int(i > 0 and span.first > 0) for i, span in enumerate(spans)])
    found = []
    for i, (parts, span) in enumerate(zip(attempts, spans, strict=True)):
        steps = reached.get(i) or [span.first, span.last]
        started, ended = span.times or (None, None)
        richest = max(parts, key=lambda s: s.rows)
        begun = next((s.begun for s in parts if s.begun), None) or Evidence("", richest.source, richest.row_at)
        files = {s.source for s in parts}
        found.append({"index": i, "steps": steps, "started": started, "ended": ended, "begun": begun, "span": span, "files": files})
    return found


def _reached(metrics: pa.Table, least: list[int]) -> dict[int, list[int]]:
    """The first and last step of each attempt that has rows with one of `least` or more, block by block."""
    found: dict[int, list[int]] = {}
    for rows in metrics.select(["name", "step", "attempt"]).to_batches(max_chunksize=arrow.BLOCK):
        code, names = arrow.codes(rows["name"])
        keep = np.array([not n.startswith("axis/") for n in names])[code] & arrow.present(rows["step"])
        step, attempt = arrow.values(rows["step"]), arrow.filled(rows["attempt"], -1)
        for i, first in enumerate(least):
            mine = step[keep & (attempt == i) & (step >= first)]
            if len(mine):
                steps = [int(mine.min()), int(mine.max()), *found.get(i, [])]
                found[i] = [min(steps), max(steps)]
    return found


def _of(cut: list[Segment], source: str) -> list[Segment]:
    return [s for s in cut if s.source == source]


def _attempts(cut: list[Segment], formats: dict[str, str]) -> list[Attempt]:
    """Segments that are the same attempt, attempts in order of their clocks, else of their place in the files."""
    found: list[Attempt] = []
    one_each = [s for s in cut if s.span.first == s.span.last and series_name(s.source, s.span.first)]
    if len({s.span.first for s in one_each}) == len(one_each) > 1:  # a file for each epoch
        found.append(one_each)
        taken = set(map(id, one_each))
        cut = [s for s in cut if id(s) not in taken]
    for s in sorted((s for s in cut if s.span.times), key=lambda s: (_sparse(s), s.span.times, s.order)):
        free = [a for a in found if not _of(a, s.source)]
        match = next((a for a in free if _one_life(a, s)), None) or next((a for a in free if _complement(a, s)), None)
        if match is None and found and _sparse(s):  # a row or two beside the log: a summary, a first evaluation
            match = min(found, key=lambda a: _apart(joined(x.span for x in a), s.span))
        found.append([s]) if match is None else match.append(s)
    told = len(found) or max(Counter(s.source for s in cut).values())
    for s in (s for s in cut if not s.span.times):
        kin = _of(cut, s.source)
        if len(kin) < told:
            continue  # a sparse file that saw fewer attempts than others did: its rows are dealt out one by one
        match = _by_steps(found, s, formats)
        others = [a for a in found if all(formats.get(x.source) != formats.get(s.source) for x in a)]
        if match is None and len(others) == len(found) == len(kin):
            match = others[kin.index(s)]  # another axis (epochs beside steps), as many attempts
        found.append([s]) if match is None else match.append(s)
    if not all(any(s.span.times for s in attempt) for attempt in found):
        found.sort(key=lambda attempt: min(s.order for s in attempt))
    else:
        found.sort(key=lambda attempt: min(s.span.times[0] for s in attempt if s.span.times))
    for i, attempt in enumerate(found):
        for s in attempt:
            s.attempt = i
    return found


def _one_life(attempt: Attempt, s: Segment) -> bool:
    """Written at the same time; or the same values over the same steps, whatever the clocks say."""
    if at_once(joined(x.span for x in attempt), s.span):
        return True
    return s.losses is not None and any(x.losses is not None and same_stretch(x.losses, s.losses) for x in attempt)


def _complement(attempt: Attempt, s: Segment) -> bool:
    """Other metrics over the same steps, by clocks that lie no further apart than two time zones may."""
    span = joined(x.span for x in attempt)
    others = not any(x.names & s.names for x in attempt) and all(x.begun is None for x in (*attempt, s))
    return others and shared_steps(span, s.span) >= SAME_STEPS and _apart(span, s.span) < ZONES_APART


def _sparse(s: Segment) -> bool:
    """Too few rows to tell an attempt of their own, and no line that tells of a launch, but that of a closing test: its writer is
    opened after the training, with the same settings at its top."""
    tests = any(n.endswith(".eval") for n in s.names) and not s.names & TRAINED
    return s.rows < FEW and s.begun is None and (tests or not s.launch)


def _apart(a: Span, b: Span) -> float:
    """Seconds between two stretches; 0 where they meet or a clock is missing."""
    return max(b.times[0] - a.times[1], a.times[0] - b.times[1], 0.0) if a.times and b.times else 0.0


def _by_steps(found: list[Attempt], s: Segment, formats: dict[str, str]) -> Attempt | None:
    """The attempt with which a segment without a clock shares its steps."""
    open_to = [a for a in found if not any(x.source == s.source or _rivals(x, s, formats) for x in a)]
    shares = [shared_steps(joined(x.span for x in a), s.span) for a in open_to]
    return open_to[int(np.argmax(shares))] if shares and max(shares) >= SAME_STEPS else None


def _rivals(a: Segment, b: Segment, formats: dict[str, str]) -> bool:
    """Two files of one format with metrics under the same tags, and no ranks of one job, are two attempts. Other tags are those of another
    writer, as of an environment's monitor beside the table of a trainer."""
    if formats.get(a.source) != formats.get(b.source) or not (a.names & b.names and a.tags & b.tags):
        return False
    return not rank_names.of_one_job(a.source, b.source)


def _fill(name: str, table: pa.Table, by_source: dict[str, list[Segment]], spans: list[Span], restored: frozenset[str]) -> pa.Table:
    """The attempt of each row: the segment of its file it stands in, else the last attempt that covers its step."""
    if not table.num_rows or table.schema.get_field_index("attempt") < 0:
        return table
    codes, paths = arrow.codes(table["source"])
    attempt = np.zeros(table.num_rows, np.int32)
    place = table.schema.get_field_index("attempt"), SCHEMAS[name].field("attempt")
    if all({p.attempt for p in by_source.get(path, [])} == {0} for path in paths):
        return table.set_column(*place, arrow.numbers(attempt))  # its pages are never touched, so they take no memory
    for path, (first, last) in zip(paths, arrow.stretches(codes, len(paths)), strict=True):
        parts = by_source.get(path, [])
        if parts and all(p.attempt >= 0 for p in parts):
            starts = np.array([p.first_at for p in parts])
            of_row = np.searchsorted(starts, arrow.filled(table["at"].slice(first, last - first), -1), side="right") - 1
            attempt[first:last] = np.array([p.attempt for p in parts], np.int32)[of_row]
        elif parts and "step" in table.column_names:
            steps, places = (table[c].slice(first, last - first).to_pylist() for c in ("step", "at"))
            attempt[first:last] = _deal(steps, places, spans, path in restored)
        elif name == "config" and not parts:
            attempt[first:last] = _told_by_each(table["key"].slice(first, last - first).to_pylist(), len(spans))
        else:
            attempt[first:last] = -1
    unknown = np.flatnonzero(attempt < 0)
    if len(unknown) and name != "config":
        attempt[unknown] = _by_step_or_time(table, unknown, spans)
    return table.set_column(*place, arrow.numbers(attempt, attempt >= 0))


def _told_by_each(keys: list[str], launches: int) -> NDArray[np.int32]:
    """Attempts of the settings of a file without measurements: where it tells each of them once for each launch, in turn; else -1."""
    told = len(keys) // launches
    if launches < 2 or len(set(keys)) != told or keys != keys[:told] * launches:
        return np.full(len(keys), -1, np.int32)
    return np.repeat(np.arange(launches, dtype=np.int32), told)


def _deal(steps: list[int | None], places: list[int | None], spans: list[Span], survived: bool) -> list[int]:
    """Attempts of the rows of a file that saw fewer attempts than others did: the next one begins where a step is behind the present one, or
    comes again. A restored history keeps what survived: there an attempt ends where the next one begins. What stands at no place, as the
    total of a document, is of the last one."""
    found, attempt, last = [], 0, None
    for step, at in zip(steps, places, strict=True):
        if at is None:
            found.append(len(spans) - 1)
            continue
        if step is not None:
            back = last is not None and step < last
            while attempt + 1 < len(spans) and (back or step > _end(spans, attempt, survived)):
                attempt, back = attempt + 1, False
            last = step
        found.append(attempt)
    return found


def _end(spans: list[Span], attempt: int, survived: bool) -> int:
    """The last step of an attempt that a file can still have rows of."""
    following = spans[attempt + 1].first - 1
    return following if survived else max(spans[attempt].last, following)


def _by_step_or_time(table: pa.Table, rows: NDArray[np.int64], spans: list[Span]) -> NDArray[np.int32]:
    if len(spans) == 1:
        return np.zeros(len(rows), np.int32)
    columns = [table[c].to_pylist() if c in table.column_names else [None] * table.num_rows for c in ("step", "time")]
    return np.array([_at(columns[0][row], columns[1][row], spans) for row in rows], np.int32)


def _at(step: int | None, time: float | None, spans: list[Span]) -> int:
    """The attempt of a row that stands in no segment; between two it is the later one's, before all of them the first one's."""
    found = len(spans) - 1
    if step is not None:
        found = next((i for i, span in enumerate(spans) if step <= span.last), found)
    for i, span in enumerate(spans):
        if time is not None and span.times:
            later = spans[i + 1].times if i + 1 < len(spans) else None
            if span.times[0] <= time and (i + 1 == len(spans) or time < (later[0] if later else 0)):
                found = i
        elif step is not None and span.first <= step <= span.last:
            found = i
    return found
