"""What the lines of a run's logs say of its processes: that one starts, resumes from a step, or ends."""

from __future__ import annotations

import contextlib
import math
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

import numpy as np
import pyarrow as pa

from parsers import arrow
from parsers.lazy_regex import lazy_re

LAUNCH = {"start", "resume"}  # kinds of events
BEGINS = LAUNCH | {"config"}
DEATHS = {"signal", "scheduler", "hardware"}
ENDS = DEATHS | {"finished", "train_end", "traceback", "oom", "exit", "status", "nccl", "hang"}
_ENOUGH, _MOST = 5, 0.8  # bound: as few settings, or a smaller share of them, may be those of a part of the training
_LATEST = 20  # bound: blocks; a launch prints a few, and is held against the one before
BLOCK = 2  # lines between two settings of one block: an empty one, a heading
_STAMP = lazy_re(r"(?<!\d)(20\d{6})[-_T]?(\d{6})(?!\d)")


@dataclass(frozen=True)
class Line:
    """A line of the log or of a config that tells of a process; ``at`` None: of a file that logs elsewhere."""

    kind: str
    level: str
    text: str
    source: str
    at: int | None
    step: int | None
    time: float | None
    again: str = ""  # of printed settings: "" where they are the first of their kind in the file, else "the same" or "other values"


def lines(tables: dict[str, pa.Table]) -> list[Line]:
    """What the events say, and the first setting of each block that a log prints, as a line of the kind "config"."""
    events, config = tables["events"], tables["config"]
    columns = (events[c].to_pylist() for c in ("kind", "level", "text", "source", "at", "step", "time"))
    found = [Line(*row) for row in zip(*columns, strict=True)]
    logs = set(arrow.words(tables["metrics"]["source"]))
    before: dict[str, deque[dict[str, str]]] = {}  # the latest blocks of each file, the last one first
    for source, at, settings in _blocks(config, logs):
        earlier = before.setdefault(source, deque(maxlen=_LATEST))
        again = next(filter(None, (_stated_again(block, settings) for block in earlier)), "")
        earlier.appendleft(settings)
        found.append(Line("config", "info", f"settings are printed{again and f' again, {again}'}", source, at, None, None, again))
    return found


def _blocks(config: pa.Table, logs: set[str]) -> Iterator[tuple[str, int, dict[str, str]]]:
    """The blocks of settings that logs print: file, place and what is set."""
    source, first, last, settings = "", 0, 0, dict[str, str]()
    for name, at, key, value in zip(*(config[c].to_pylist() for c in ("source", "at", "key", "value")), strict=True):
        if name not in logs or at is None:
            continue
        if name != source or not 0 <= at - last <= BLOCK:
            if settings:
                yield source, first, settings
            source, first, settings = name, at, {}
        last = at
        settings[key] = value
    if settings:
        yield source, first, settings


def _stated_again(before: dict[str, str], now: dict[str, str]) -> str:
    """Does a block set what an earlier one has set, and to other values?"""
    shared = before.keys() & now.keys()
    if len(shared) < _ENOUGH or len(shared) < _MOST * max(len(before), len(now)):
        return ""
    return "the same" if all(before[k] == now[k] for k in shared) else "other values"


def launch_times(said: list[Line], config: pa.Table) -> list[float]:
    """When a process was started: lines that say so, and configs that carry the moment in their names.

    A line that ends a job (cancelled, preempted) counts, too: rows that come after it, and after a pause, are another attempt's.
    """
    ending = {"scheduler", "signal"}
    found = {x.time for x in said if x.time is not None and (x.kind in LAUNCH or (x.kind in ending and x.level == "error"))}
    for source in arrow.words(config["source"]):
        if match := _STAMP.search(source):
            with contextlib.suppress(ValueError):
                found.add(datetime.strptime("".join(match.groups()), "%Y%m%d%H%M%S").replace(tzinfo=UTC).timestamp())
    return sorted(found)


def resumes(said: list[Line], metrics: pa.Table) -> list[tuple[Line, bool]]:
    """The lines that training resumes at a step, and whether their file begins with them: what went before may be no part of it. Settings
    that a launch prints, and the steps of its loading, are lines of the same launch where rows follow in that file."""
    found = [x for x in said if x.kind == "resume" and x.step]
    if not found:
        return []
    code, names = arrow.codes(metrics["source"])
    first = np.full(len(names), math.inf)
    np.minimum.at(first, code, np.where(arrow.present(metrics["at"]), arrow.values(metrics["at"]), math.inf))
    top: dict[str, float] = dict(zip(names, first.tolist(), strict=True))
    logged = set(top)
    for x in said:
        if x.source not in logged or x.kind not in BEGINS:
            top[x.source] = min(top.get(x.source, math.inf), x.at or 0)
    return [(x, (x.at or 0) <= top[x.source]) for x in found]
