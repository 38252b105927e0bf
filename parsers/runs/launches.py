"""Which attempts are one run: a continuation needs evidence, and what begins at the beginning without any is another run.

Evidence is a line that says training resumes at a step that the attempt before had reached, a first step above the beginning
that fits the other's, one run id of a tracker, or a launcher that says it restarts its workers. Equal settings, equal seeds,
one folder and clocks that follow each other are none.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from parsers import arrow
from parsers.lazy_regex import lazy_re
from parsers.runs.clock import Evidence
from parsers.runs.homes import TRACKERS, home, run_id
from parsers.runs.spans import BEGINNING, Span, goes_on, joined
from parsers.tables import Run

PATH = lazy_re(r"launch-[1-9]\d*")
"""What a run that shares its files with others is called below their path."""

_RESTARTED = lazy_re(r"(?i)restart(?:ing|ed)? (?:the )?worker|will restart|\brequeu(?:ed|ing)|SLURM_RESTART_COUNT\W+[1-9]")
Attempt = dict[str, Any]


def split(run: Run, formats: dict[str, str], places: dict[str, str]) -> list[Run]:
    """The runs that a group of files holds, oldest first; mostly the one that came in. Each attempt but the first of its
    run gets its ``evidence``. ``formats`` and ``places``: of each source its format and where it lies."""
    chains = _chains(run.attempts, run.tables["events"], formats)
    if len(chains) < 2:
        return [run]
    logs = [set().union(*(run.attempts[i]["files"] for i in chain)) for chain in chains]
    alone = sum(map(len, logs)) == len(set().union(*logs)) == len(logs)  # each run wrote one log of its own
    found = [_part(run, (n, len(chains)), chain) for n, chain in enumerate(chains, 1)]
    ends = tuple(max(a["steps"][1] for a in part.attempts) for part in found)
    for part, log in zip(found, logs, strict=True):
        part.ends = ends
        if alone:
            part.id, part.path, part.launch = run_id(*log), places[next(iter(log))], (1, 1)
    written = [_sources(part.tables) for part in found]
    silent = {s.path for s in run.sources} - set().union(*written)
    for part, files in zip(found, written, strict=True):
        part.sources = [s for s in run.sources if s.path in files | silent]
        part.gaps = [g for g in run.gaps if g.path in files | silent or not g.path]
    return found


def _chains(attempts: list[Attempt], events: pa.Table, formats: dict[str, str]) -> list[list[int]]:
    """Indices of attempts that continue each other; an attempt goes with the latest one that it continues."""
    said = list(zip(*(events[c].to_pylist() for c in ("kind", "text", "step", "attempt", "source", "at")), strict=True))
    chains: list[list[int]] = []
    for i, attempt in enumerate(attempts):
        for chain in sorted(chains, key=lambda c: -c[-1]):
            evidence = _continues([attempts[n] for n in chain], attempt, said, formats)
            if evidence is not None:
                attempt["evidence"] = evidence
                chain.append(i)
                break
        else:
            chains.append([i])
    return chains


def _continues(before: list[Attempt], b: Attempt, said: list[tuple[Any, ...]], formats: dict[str, str]) -> Evidence | None:
    """What shows that b continues the attempts before it, the plainest first; None where nothing does."""
    a, one, two = before[-1], joined(x["span"] for x in before), b["span"]
    fits = goes_on(one, two) or _from_one_checkpoint(a, b)
    for kind, text, step, attempt, source, at in said:
        if kind == "resume" and attempt == b["index"] and _resumes(one, two, step, fits):
            return Evidence(text, source, at)
    if fits:
        seen: Evidence = b["begun"]
        words = f"it begins at step {two.first}, within or right behind the steps {one.first} to {one.last} logged before"
        return replace(seen, text=f"{words}; {seen.text}" if seen.text else words)
    for _, text, _, attempt, source, at in said:
        if attempt in (a["index"], b["index"]) and _RESTARTED.search(text or ""):
            return Evidence(text, source, at)
    tracked = sorted(f for f in a["files"] | b["files"] if formats.get(f) in TRACKERS)
    if len({home(f) for f in tracked}) == 1:  # each id has a home of its own
        return Evidence("the tracker logs both under one run id", tracked[0])
    return None


def _from_one_checkpoint(a: Attempt, b: Attempt) -> bool:
    """Did both begin at the same step above the beginning, one behind the other in the same log?"""
    one, two = a["span"], b["span"]
    return bool(a["files"] & b["files"]) and one.first == two.first > max(1, BEGINNING * max(one.interval, two.interval))


def _resumes(one: Span, two: Span, step: int | None, fits: bool) -> bool:
    """Does a line that training resumes, at a step if it tells one, fit what the two attempts logged?"""
    if step is None or step == 0:
        return fits or two.first > max(one.last, BEGINNING * two.interval)
    every = max(one.interval, two.interval)
    return one.first <= step <= one.last + every and step - every <= two.first <= step + 2 * every


def _sources(tables: dict[str, pa.Table]) -> set[str]:
    """The files that rows of the tables stand in."""
    return {path for table in tables.values() for path in arrow.distinct(table["source"])}


def _part(run: Run, launch: tuple[int, int], chain: list[int]) -> Run:
    """The run of some attempts: their rows, and those of no attempt."""
    tables = {name: _rows(table, chain) for name, table in run.tables.items()}
    name = f"launch-{launch[0]}"
    found = replace(run, id=f"{run.id}__{name}", path=f"{run.path}/{name}", launch=launch, tables=tables, cache={})
    found.attempts = [run.attempts[i] | {"index": n} for n, i in enumerate(chain)]
    return found


def _rows(table: pa.Table, chain: list[int]) -> pa.Table:
    if not table.num_rows or "attempt" not in table.column_names:
        return table
    attempt = arrow.filled(table["attempt"], -1)
    keep = np.isin(attempt, chain) | (attempt < 0)
    kept, attempt = table.filter(arrow.flags(keep)), attempt[keep]
    column = arrow.numbers(np.searchsorted(chain, attempt).astype(np.int32), attempt >= 0)
    return kept.set_column(kept.column_names.index("attempt"), table.schema.field("attempt"), column)
