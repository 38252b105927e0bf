"""Tells the lives of a run apart: restarts, rollbacks and overlaps, from any mix of formats.

A run that was stopped and started again is one run with several *attempts*. In one file the steps go back, or a line
says that training resumes; a second event file begins; a scheduler writes a second log. Each file is cut into
*segments* at such places, and segments of different files that cover the same time (or, without clocks, the same
steps) are the same life. Nothing is dropped: the abandoned branch is the evidence, the surviving one the control.
"""

from __future__ import annotations

import contextlib
import re
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from parsers import arrow
from parsers.tables import SCHEMAS

_MAX_CUTS = 200  # more step-backs than this in one file are disorder, not restarts
_RANK = re.compile(r"(?i)(rank|worker|node|process|gpu)[-_.]?\d+")
_STAMP = re.compile(r"(?<!\d)(20\d{6})[-_T]?(\d{6})(?!\d)")
_DEATHS = {"signal", "scheduler", "hardware"}
_GONE = re.compile(r"(?i)CUDA error|cancelled|preempted|node[_ ]fail|time limit|terminat|killed|segmentation fault|core dumped|aborted")
_PAUSE = 5  # a launch shows in the clock as a pause of this many usual steps
_FEW = 3  # rows
_SAME_STEPS = 0.5  # share of the shorter of two step ranges that two files of one life have in common


@dataclass
class Segment:
    """A stretch of one file in which steps only grow."""

    source: str
    first_at: int  # place in the file where it begins; -1: at the top
    steps: tuple[int, int]
    times: tuple[float, float] | None
    order: int
    rows: int
    names: frozenset[str]
    life: int = -1


def assign(tables: dict[str, pa.Table], formats: dict[str, str]) -> tuple[dict[str, pa.Table], list[dict[str, Any]]]:
    """Fills the column ``attempt`` of every table; returns the tables and the lives, oldest first.

    A life is ``{"index", "steps": [first, last], "started", "ended"}`` with seconds since 1970 or None.
    """
    segments = _segments(tables, formats)
    lives = _lives(segments, formats)
    if not lives:
        return tables, []
    filled = {t: _fill(table, segments, lives, t) for t, table in tables.items()}
    return filled, _with_dealt_rows([_describe(i, life) for i, life in enumerate(lives)], filled["metrics"])


def _with_dealt_rows(lives: list[dict[str, Any]], metrics: pa.Table) -> list[dict[str, Any]]:
    """The lives with the steps of all their rows, those of sparse files included."""
    known = [v for c in ("step", "attempt") if (v := arrow.valid(metrics[c])) is not None]
    counted = [not n.startswith("axis/") for n in arrow.words(metrics["name"])]
    if not all(counted):
        known.append(np.array(counted)[arrow.codes(metrics["name"])[0]])
    if len(lives) == 1 and not known:
        lives[0]["steps"] = [int(x) for x in arrow.ends(metrics["step"])]
        return lives
    step, attempt = arrow.values(metrics["step"]), arrow.values(metrics["attempt"])
    if known:
        rows = np.flatnonzero(np.logical_and.reduce(known))
        step, attempt = step[rows], attempt[rows]
    for life in lives:
        mine = step[attempt == life["index"]]
        if len(mine):
            life["steps"] = [int(mine.min()), int(mine.max())]
    return lives


def _describe(index: int, life: list[Segment]) -> dict[str, Any]:
    times = [t for s in life if s.times for t in s.times]
    return {
        "index": index,
        "steps": [min(s.steps[0] for s in life), max(s.steps[1] for s in life)],
        "started": min(times) if times else None,
        "ended": max(times) if times else None,
    }


def _segments(tables: dict[str, pa.Table], formats: dict[str, str]) -> list[Segment]:
    metrics = tables["metrics"]
    if not metrics.num_rows:
        return []
    (codes, sources), (tags, _), (name_codes, names) = (arrow.codes(metrics[c]) for c in ("source", "tag", "name"))
    counted = np.array([not n.startswith("axis/") for n in names] or [True])
    resumed, ended = _places(tables["events"])
    launches = _launches(tables)
    resume_steps = _resume_steps(tables["events"])
    found: list[Segment] = []
    bounds = np.searchsorted(codes, np.arange(len(sources) + 1)).tolist() if len(sources) > 1 else [0, len(codes)]
    clocks = metrics.select(["step", "at", "time", "rank"])
    for s, first, last in zip(sources, bounds, bounds[1:], strict=False):
        span = slice(first, last)
        rows = clocks.slice(first, last - first) if len(sources) > 1 else clocks
        found += _segments_of(
            s, rows, tags[span], name_codes[span], names, counted, resumed.get(s, []), ended.get(s, []), launches, resume_steps, len(found)
        )
    # a summary of one or two rows without a clock tells no life of its own
    return [s for s in found if s.times or s.rows >= _FEW] or found


def _segments_of(
    source: str,
    table: pa.Table,
    tags: NDArray[np.int32],
    name_codes: NDArray[np.int32],
    names: list[str],
    counted: NDArray[np.bool_],
    resumed: list[int],
    ended: list[int],
    launches: list[float],
    resume_steps: list[int],
    order: int,
) -> list[Segment]:
    """The segments of one file: only the rows of its clock tag are looked at, once that is known."""
    if not len(tags):
        return []
    usable: Any = slice(None)
    has_step, has_at, has_time = (arrow.valid(table[c]) for c in ("step", "at", "time"))
    if has_step is not None or not counted.all():
        usable = np.flatnonzero(counted[name_codes] if has_step is None else has_step & counted[name_codes])
        if not len(usable):
            return []
    if table["rank"].null_count < len(tags):
        ranks = arrow.filled(table["rank"], 0)[usable]
        usable = np.arange(len(tags))[usable][ranks == ranks.min()]
    used, named = tags[usable], name_codes[usable]
    if not len(used):
        return []
    count = np.bincount(used)
    name_of = np.zeros(len(count), np.int32)
    name_of[used] = named
    logged = {tag: names[name_of[tag]] for tag in np.flatnonzero(count).tolist()}
    clock = np.flatnonzero(used == _clock_tag(count.tolist(), logged))
    if not isinstance(usable, slice):
        clock = usable[clock]
    step, at, time = (arrow.picked(table[c], clock) for c in ("step", "at", "time"))
    if has_at is not None:
        at = np.where(has_at[clock], at, -1)
    if has_time is not None:
        time = np.where(has_time[clock], time, np.nan)
    return _cut(source, step, at, time, resumed, ended, launches, resume_steps, order, frozenset(logged.values()))


def _clock_tag(count: list[int], logged: dict[int, str]) -> int:
    """The tag whose steps tell the lives of a file: the training loss or rate where it is logged often, else the commonest."""
    often = 0.5 * max(count)
    return max(logged, key=lambda t: (count[t] >= often and logged[t] in {"loss.train", "lr", "grad.norm"}, count[t]))


def _resume_steps(events: pa.Table) -> list[int]:
    """Steps at which lines of any file say that a life begins."""
    if not events.num_rows:
        return []
    rows = zip(*(events[c].to_pylist() for c in ("kind", "step")), strict=True)
    return sorted({step for kind, step in rows if kind == "resume" and step})


def _places(events: pa.Table) -> tuple[dict[str, list[int]], dict[str, list[int]]]:
    """By file, the places of lines that say a life begins, and of lines that say the process is gone."""
    begun: dict[str, list[int]] = {}
    ended: dict[str, list[int]] = {}
    if events.num_rows:
        columns = ("kind", "level", "text", "source", "at")
        for kind, level, text, source, at in zip(*(events[c].to_pylist() for c in columns), strict=True):
            if kind == "resume" and at is not None:
                begun.setdefault(source, []).append(at)
            elif level == "error" and at is not None and kind in _DEATHS and _GONE.search(text):
                ended.setdefault(source, []).append(at)
    return begun, ended


def _launches(tables: dict[str, pa.Table]) -> list[float]:
    """When a process was started: lines that say so, and configs that carry the moment in their names.

    A line that ends a job (cancelled, preempted) counts, too: rows that come after it, and after a pause, are another life's.
    """
    events = tables["events"]
    said = zip(*(events[c].to_pylist() for c in ("kind", "level", "time") if events.num_rows), strict=True)
    found = {
        t
        for kind, level, t in said
        if t is not None and (kind in ("start", "resume") or (kind in ("scheduler", "signal") and level == "error"))
    }
    for source in arrow.words(tables["config"]["source"]):
        match = _STAMP.search(source)
        if match:
            with contextlib.suppress(ValueError):
                found.add(datetime.strptime("".join(match.groups()), "%Y%m%d%H%M%S").replace(tzinfo=UTC).timestamp())
    return sorted(found)


def _cut(
    source: str,
    step: NDArray[np.int64],
    at: NDArray[np.int64],
    time: NDArray[np.float64],
    resumed: list[int],
    ended: list[int],
    launches: list[float],
    resume_steps: list[int],
    order: int,
    names: frozenset[str],
) -> list[Segment]:
    """A file's rows of one tag into segments."""
    cuts = {0}
    back = np.flatnonzero(np.diff(step) < 0) + 1
    if 0 < len(back) <= _MAX_CUTS:
        before = np.maximum.accumulate(step)
        for i in back.tolist():
            # a single late row (a logger's thread) goes on above the old maximum at once; a restart goes on below it
            blip = i + 1 < len(step) and step[i + 1] > before[i - 1]
            if not blip:
                cuts.add(i)
    for place in resumed:
        row = int(np.searchsorted(at, place))
        if 0 < row < len(step):
            cuts.add(row)
    pauses = np.diff(time) if launches or resume_steps or ended else time[:0]
    known = pauses[np.isfinite(pauses)]
    usual = float(np.median(known)) if len(known) else 0.0
    for place in ended:  # rows that follow are another life's; with a clock, after a pause
        row = int(np.searchsorted(at, place))
        if 0 < row < len(step) and (not usual or pauses[row - 1] > _PAUSE * usual):
            cuts.add(row)
    for launch in launches:
        after = np.flatnonzero(time >= np.floor(launch))  # lines often tell whole seconds, rows their fractions
        for row in after[:2].tolist():
            if row > 0 and pauses[row - 1] > _PAUSE * usual:
                cuts.add(row)
                break
    if len(cuts) == 1 and resume_steps:
        # no step back: where a line of another file says that training resumes at a step, a life begins; a clock must pause there
        begins = [int(i) for i in np.searchsorted(step, resume_steps, side="right") if 0 < i < len(step)]
        cuts |= {i for i in begins if not usual or pauses[i - 1] > _PAUSE * usual}
    starts = sorted(cuts)
    found = []
    for n, (i, j) in enumerate(zip(starts, [*starts[1:], len(step)], strict=True)):
        clocks = time[i:j]
        clocks = clocks[np.isfinite(clocks)]
        times = (float(clocks.min()), float(clocks.max())) if len(clocks) else None
        first_at = -1 if n == 0 else int(at[i])
        found.append(Segment(source, first_at, (int(step[i:j].min()), int(step[i:j].max())), times, order + n, j - i, names))
    return found


def _lives(segments: list[Segment], formats: dict[str, str]) -> list[list[Segment]]:
    """Segments that are the same life, lives in order of their clocks, else of their place in the files."""
    lives: list[list[Segment]] = []
    for s in sorted((s for s in segments if s.times), key=lambda s: (s.times, s.order)):
        match = next((life for life in lives if _overlap(life, s)), None)
        lives.append([s]) if match is None else match.append(s)
    told = len(lives) or max((len(_of(segments, x.source)) for x in segments), default=0)
    for s in (s for s in segments if not s.times):
        if len(_of(segments, s.source)) < told:
            continue  # a sparse file that saw fewer lives than others did: its rows are dealt out one by one
        open_to = [life for life in lives if not any(x.source == s.source or _rivals(x, s, formats) for x in life)]
        match = max(open_to, key=lambda life: _shared_steps(life, s), default=None)
        kin = _of(segments, s.source)
        others = [life for life in lives if all(formats.get(x.source) != formats.get(s.source) for x in life)]
        if match is not None and _shared_steps(match, s) >= _SAME_STEPS:
            match.append(s)
        elif len(others) == len(lives) == len(kin):
            others[kin.index(s)].append(s)  # another axis (epochs beside steps), as many lives
        else:
            lives.append([s])
    if not all(any(s.times for s in life) for life in lives):
        lives.sort(key=lambda life: min(s.order for s in life))
    for i, life in enumerate(lives):
        for s in life:
            s.life = i
    return lives


def _of(segments: list[Segment], source: str) -> list[Segment]:
    return [s for s in segments if s.source == source]


def _overlap(life: list[Segment], s: Segment) -> bool:
    """True where the segment shares more than a tenth of its time with the life, and is not a later part of the same file."""
    if s.times is None or any(x.source == s.source for x in life):
        return False
    times = [x.times for x in life if x.times]
    first, last = min(t[0] for t in times), max(t[1] for t in times)
    shared = min(last, s.times[1]) - max(first, s.times[0])
    shortest = min(last - first, s.times[1] - s.times[0])
    return shared > 0.1 * shortest or (shared >= 0 and shortest == 0)


def _rivals(a: Segment, b: Segment, formats: dict[str, str]) -> bool:
    """Two files of one format with the same metrics, and no ranks of one job, are two lives."""
    if formats.get(a.source) != formats.get(b.source) or not a.names & b.names:
        return False
    return _RANK.sub("#", a.source) != _RANK.sub("#", b.source)


def _shared_steps(life: list[Segment], s: Segment) -> float:
    first, last = min(x.steps[0] for x in life), max(x.steps[1] for x in life)
    shared = min(last, s.steps[1]) - max(first, s.steps[0]) + 1
    return shared / (min(last - first, s.steps[1] - s.steps[0]) + 1)


def _fill(table: pa.Table, segments: list[Segment], lives: list[list[Segment]], name: str) -> pa.Table:
    """The attempt of each row: the segment of its file it stands in, else the last life that covers its step."""
    if not table.num_rows or table.schema.get_field_index("attempt") < 0:
        return table
    by_source: dict[str, list[Segment]] = {}
    for segment in segments:
        by_source.setdefault(segment.source, []).append(segment)
    paths = arrow.words(table["source"])
    if len(lives) == 1 and all(by_source.get(path) and all(p.life == 0 for p in by_source[path]) for path in paths):
        return _with_attempt(table, name, np.zeros(table.num_rows, np.int32))
    codes, _ = arrow.codes(table["source"])
    here = arrow.valid(table["at"])
    at = arrow.values(table["at"]) if here is None else np.where(here, arrow.values(table["at"]), -1)
    attempt = np.full(table.num_rows, -1, np.int32)
    spans = [_describe(i, life)["steps"] for i, life in enumerate(lives)]
    for i, path in enumerate(paths):
        parts = by_source.get(path)
        if not parts:
            continue
        rows = np.flatnonzero(codes == i)
        if any(p.life < 0 for p in parts):
            if "step" in table.column_names:
                attempt[rows] = _deal(table["step"].take(arrow.numbers(rows)).to_pylist(), spans)
            continue
        starts = np.array([p.first_at for p in parts])
        attempt[rows] = np.array([p.life for p in parts], np.int32)[np.searchsorted(starts, at[rows], side="right") - 1]
    unknown = np.flatnonzero(attempt < 0)
    if len(unknown) and name != "config":
        attempt[unknown] = _by_step_or_time(table, unknown, lives)
    return _with_attempt(table, name, attempt)


def _with_attempt(table: pa.Table, name: str, attempt: NDArray[np.int32]) -> pa.Table:
    column = arrow.numbers(attempt, attempt >= 0 if attempt.any() else None)
    return table.set_column(table.schema.get_field_index("attempt"), SCHEMAS[name].field("attempt"), column)


def _deal(steps: list[int | None], spans: list[list[int]]) -> list[int]:
    """Lives of a sparse file's rows: the next life begins where a step is behind the present one, or comes again."""
    found, life, last = [], 0, None
    for step in steps:
        if step is not None:
            back = last is not None and step < last
            while life + 1 < len(spans) and (back or step > max(spans[life][1], spans[life + 1][0] - 1)):
                life, back = life + 1, False
            last = step
        found.append(life)
    return found


def _by_step_or_time(table: pa.Table, rows: NDArray[np.int64], lives: list[list[Segment]]) -> NDArray[np.int32]:
    spans = [_describe(i, life) for i, life in enumerate(lives)]
    found = np.full(len(rows), len(lives) - 1, np.int32)
    times = table["time"].to_pylist() if "time" in table.column_names else [None] * table.num_rows
    steps = table["step"].to_pylist() if "step" in table.column_names else [None] * table.num_rows
    for n, row in enumerate(rows):
        if steps[row] is not None:  # between two lives it is the later one's, before all of them the first one's
            found[n] = next((i for i, span in enumerate(spans) if steps[row] <= span["steps"][1]), len(spans) - 1)
        for i, span in enumerate(spans):
            timed = times[row] is not None and span["started"] is not None
            if (timed and span["started"] <= times[row] and (i + 1 == len(spans) or times[row] < (spans[i + 1]["started"] or 0))) or (
                not timed and steps[row] is not None and span["steps"][0] <= steps[row] <= span["steps"][1]
            ):
                found[n] = i
    return found
