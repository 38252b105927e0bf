"""Which attempt each row is of: the segment of its file it stands in, else what its step and its clock say."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from parsers import arrow
from parsers.runs.homes import TRACKERS, home
from parsers.runs.segments import Segment
from parsers.runs.spans import Span
from parsers.tables import SCHEMAS


def by_ids(cut: list[Segment], formats: dict[str, str]) -> dict[str, int]:
    """Folder -> attempt of the runs of a tracker, where the files are of several ids: settings and lines in a folder are of its run."""
    found: dict[str, set[int]] = {}
    for s in cut:
        if formats.get(s.source) in TRACKERS:
            found.setdefault(home(s.source), set()).add(s.attempt)
    return {where: min(of) for where, of in found.items() if len(of) == 1} if len(found) > 1 else {}


def fill(
    name: str,
    table: pa.Table,
    by_source: dict[str, list[Segment]],
    by_id: dict[str, int],
    spans: list[Span],
    restored: frozenset[str],
    measured: dict[str, int],
) -> pa.Table:
    """The attempt of each row: the segment of its file it stands in, else the last attempt that covers its step. ``measured``: the place of the
    last measurement of each file."""
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
        elif parts and parts[0].span.times and "time" in table.column_names and all(span.times for span in spans):
            attempt[first:last] = _by_clock(arrow.filled(table["time"].slice(first, last - first), np.nan), spans)
        elif parts and "step" in table.column_names:
            steps, places = (table[c].slice(first, last - first).to_pylist() for c in ("step", "at"))
            attempt[first:last] = _deal(steps, places, spans, path in restored)
        elif not parts and home(path) in by_id:
            attempt[first:last] = by_id[home(path)]
        elif name == "config" and not parts:
            attempt[first:last] = _told_by_each(table["key"].slice(first, last - first).to_pylist(), len(spans))
        else:
            attempt[first:last] = -1
        if parts and name == "events":
            further = len(spans) - 1 - int(attempt[first:last].max(initial=0))
            attempt[first:last] += _resumed_behind(table.slice(first, last - first), measured[path], further)
    unknown = np.flatnonzero(attempt < 0)
    if len(unknown) and name != "config":
        attempt[unknown] = _by_step_or_time(table, unknown, spans)
    return table.set_column(*place, arrow.numbers(attempt, attempt >= 0))


def _resumed_behind(events: pa.Table, measured: int, further: int) -> NDArray[np.int32]:
    """By how many attempts the events of a file are of later ones: where it measures nothing more, and other files saw so many ``further`` attempts,
    each line that resumes begins the next."""
    if not further:
        return np.zeros(len(events), np.int32)
    resumes = np.array([kind == "resume" for kind in events["kind"].to_pylist()]) & (arrow.filled(events["at"], -1) > measured)
    return np.minimum(np.cumsum(resumes), further).astype(np.int32)


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


def _by_clock(time: NDArray[np.float64], spans: list[Span]) -> NDArray[np.int32]:
    """The attempt that was under way; of rows without a clock nobody knows by it."""
    starts = np.array([span.times[0] for span in spans if span.times])
    found = np.maximum(np.searchsorted(starts, time, side="right") - 1, 0).astype(np.int32)
    found[np.isnan(time)] = -1
    return found


def dealt(by_source: dict[str, list[Segment]], metrics: pa.Table) -> dict[str, frozenset[int]]:
    """File -> the attempts that its rows were dealt out to, of those that saw fewer attempts than others did."""
    found: dict[str, frozenset[int]] = {}
    if all(s.attempt >= 0 for parts in by_source.values() for s in parts):
        return found
    codes, paths = arrow.codes(metrics["source"])
    for path, (first, last) in zip(paths, arrow.stretches(codes, len(paths)), strict=True):
        if any(s.attempt < 0 for s in by_source.get(path, [])):
            found[path] = frozenset(np.unique(arrow.values(metrics["attempt"].slice(first, last - first))).tolist())
    return found


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
