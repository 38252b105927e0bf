"""Tells the attempts in a group of files apart: restarts, rollbacks and overlaps, from any mix of formats.

Each file is cut into *segments* where another process begins to write it, and segments of different files that cover the
same time (or, without clocks, the same steps) are the same attempt. Which attempts continue each other, and so are one run,
`launches` decides. Nothing is dropped: the abandoned branch is the evidence, the surviving one the control.
"""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from parsers import arrow, rank_names
from parsers.lazy_regex import lazy_re
from parsers.runs.boundaries import FEW
from parsers.runs.clock import Evidence
from parsers.runs.equal_values import same_stretch
from parsers.runs.homes import launch, series_name
from parsers.runs.rows_of_attempts import by_ids, dealt, fill
from parsers.runs.segments import TRAINED, Segment, segments
from parsers.runs.spans import SAME_STEPS, Span, at_once, goes_on, joined, shared_steps
from parsers.tables import ZONES_APART

Attempt = list[Segment]
_DIGITS = lazy_re(r"\d+")
_PLACEHOLDER = "hp_metric"  # what Lightning writes beside its hyperparameters, at step 0: no step of a training
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
    by_id = by_ids(cut, formats)
    restored = frozenset(source for source, kind in formats.items() if kind == RESTORED)
    codes, sources = arrow.codes(tables["metrics"]["source"])
    places = arrow.filled(tables["metrics"]["at"], -1)
    measured = {s: int(places[a:b].max()) for s, (a, b) in zip(sources, arrow.stretches(codes, len(sources)), strict=True) if b > a}
    filled = {name: fill(name, table, by_source, by_id, spans, restored, measured) for name, table in tables.items()}
    return filled, _described(found, spans, filled["metrics"], dealt(by_source, filled["metrics"]))


def _described(attempts: list[Attempt], spans: list[Span], metrics: pa.Table, dealt_out: dict[str, frozenset[int]]) -> list[dict[str, Any]]:
    """The steps of an attempt are those of all its rows, in sparse files, too. A launch that goes on from a step may log something at 0
    all the same, as Lightning does with hyperparameters: no step of its training."""
    least = [int(i > 0 and span.first > 0) for i, span in enumerate(spans)]
    for i, (before, now) in enumerate(pairwise(attempts), 1):
        least[i] = max(least[i], _goes_on_at(before, now))
    reached = _reached(metrics, least)
    found = []
    for i, (parts, span) in enumerate(zip(attempts, spans, strict=True)):
        steps = reached.get(i) or [span.first, span.last]
        started, ended = span.times or (None, None)
        richest = max(parts, key=lambda s: s.rows)
        begun = next((s.begun for s in parts if s.begun), None) or Evidence("", richest.source, richest.row_at)
        files = {s.source for s in parts} | {source for source, of in dealt_out.items() if i in of}
        found.append({"index": i, "steps": steps, "started": started, "ended": ended, "begun": begun, "span": span, "files": files})
    return found


def _goes_on_at(before: Attempt, now: Attempt) -> int:
    """The step from which on an attempt goes on, where each of its files does so behind the one of the attempt before that logs the same: below it lie
    rows of another axis, epochs beside steps or rows that are counted for want of steps. 0 where one goes back."""
    old, new = ([s for s in attempt if s.span.times] for attempt in (before, now))
    alike = [max((len(b.tags & n.tags) / len(b.tags | n.tags), b.span.last, b.order, b) for b in old)[-1] for n in new] if old else []
    if not alike or any(n.span.first <= b.span.last for b, n in zip(alike, new, strict=True)):
        return 0
    return max(new, key=lambda s: s.rows).span.first


def _reached(metrics: pa.Table, least: list[int]) -> dict[int, list[int]]:
    """The first and last step of each attempt that has rows with one of `least` or more, block by block."""
    found: dict[int, list[int]] = {}
    for rows in metrics.select(["name", "step", "attempt"]).to_batches(max_chunksize=arrow.BLOCK):
        code, names = arrow.codes(rows["name"])
        keep = np.array([not n.startswith("axis/") and not n.endswith(_PLACEHOLDER) for n in names])[code] & arrow.present(rows["step"])
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
    through = {source for source in {s.source for s in cut} if _through_several(source, cut)}
    for s in sorted((s for s in cut if s.span.times and s.source not in through), key=lambda s: (_sparse(s), s.span.times, s.order)):
        free = [a for a in found if not _of(a, s.source)]
        match = next((a for same in (_one_launch, _one_life, _complement) for a in free if same(a, s)), None)
        if match is None and found and _sparse(s):  # a row or two beside the log: a summary, a first evaluation
            match = min(found, key=lambda a: _apart(joined(x.span for x in a), s.span))
        found.append([s]) if match is None else match.append(s)
    told = len(found) or max(Counter(s.source for s in cut).values())
    for s in (s for s in cut if not s.span.times and s.source not in through):
        kin = _of(cut, s.source)
        if len(kin) < told:
            continue  # a sparse file that saw fewer attempts than others did: its rows are dealt out one by one
        match = _by_steps(found, s, formats)
        others = [a for a in found if all(formats.get(x.source) != formats.get(s.source) for x in a)]
        if match is None and len(others) == len(found) == len(kin):
            match = others[kin.index(s)]  # another axis (epochs beside steps), as many attempts
        found.append([s]) if match is None else match.append(s)
    if not all(any(s.span.times for s in attempt) for attempt in found):
        found = _in_turn(sorted(found, key=lambda attempt: min(s.order for s in attempt)))
    else:
        found.sort(key=lambda attempt: min(s.span.times[0] for s in attempt if s.span.times))
    for i, attempt in enumerate(found):
        for s in attempt:
            s.attempt = i
    return found


def _in_turn(found: list[Attempt]) -> list[Attempt]:
    """Attempts of which not all have a clock: as they stand in their files, but what another file of the same folder goes on from stands before
    that (folders are numbered)."""
    turn: list[Attempt] = []
    for attempt in found:
        spans = [joined(s.span for s in a) for a in turn]
        later = [i for i, a in enumerate(turn) if _beside(a, attempt) and goes_on(joined(s.span for s in attempt), spans[i])]
        first = [i for i in later if not any(goes_on(before, spans[i]) for before in spans[:i])]
        turn.insert(min(first, default=len(turn)), attempt)
    return turn


def _beside(a: Attempt, b: Attempt) -> bool:
    """Other files of the same folder."""
    one, two = ({s.source for s in attempt} for attempt in (a, b))
    return not one & two and len({source.rpartition("/")[0] for source in one | two}) == 1


def _through_several(source: str, cut: list[Segment]) -> bool:
    """Does a file in one piece go on through several launches that another one tells, by the clocks of both, or by its steps where the
    other has no clock; or that two others tell of other metrics, none of the three with a clock? Its rows are dealt out."""
    mine = _of(cut, source)
    if len(mine) > 1:
        return False
    whole = mine[0].span
    if not whole.times:
        # thousands of files, few spans
        beside = {s.span for s in cut if s.source != source and not s.span.times and not s.tags & mine[0].tags}
        told = [span for span in beside if shared_steps(span, whole) > SAME_STEPS]
        return any(goes_on(a, b) and shared_steps(a, b) <= 0 for a in told for b in told)
    if max(Counter(s.source for s in cut if at_once(s.span, whole)).values()) > 1:
        return True
    others = [[s.span for s in _of(cut, other)] for other in {s.source for s in cut if not s.span.times}]
    within = (spans for spans in others if len(spans) > 1 and all(shared_steps(s, whole) > SAME_STEPS for s in spans))
    return any(all(goes_on(a, b) for a, b in pairwise(spans)) for spans in within)


def _one_launch(attempt: Attempt, s: Segment) -> bool:
    """In the folder that a tracker made for one launch."""
    folder = launch(s.source)
    return folder != "" and any(launch(x.source) == folder for x in attempt)


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
    """The attempt with which a segment without a clock shares the launch of a tracker, or its steps."""
    free = [a for a in found if not _of(a, s.source)]
    if (own := next((a for a in free if _one_launch(a, s)), None)) is not None:
        return own
    open_to = [a for a in free if not any(_rivals(x, s, formats) for x in a)]
    shares = [shared_steps(joined(x.span for x in a), s.span) for a in open_to]
    return open_to[int(np.argmax(shares))] if shares and max(shares) >= SAME_STEPS else None


def _rivals(a: Segment, b: Segment, formats: dict[str, str]) -> bool:
    """Two files of one format with metrics under the same tags, and no ranks of one job, are two attempts. Other tags are those of another
    writer, as of an environment's monitor beside the table of a trainer; so are some of them in a file of another name in the same folder
    (``episodes.csv`` and ``eval.csv``)."""
    if formats.get(a.source) != formats.get(b.source) or not (a.names & b.names and a.tags & b.tags):
        return False
    beside = a.source.rpartition("/")[0] == b.source.rpartition("/")[0] and a.tags != b.tags
    return not (beside and _plain(a.source) != _plain(b.source)) and not rank_names.of_one_job(a.source, b.source)


def _plain(source: str) -> str:
    """A name without its numbers, which tell launches apart."""
    return _DIGITS.sub("", source)
