"""What an agent looks up in a run beside its case: the runs of a folder, some points of a series, some lines of a log."""

from __future__ import annotations

import difflib
import os
import re
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from forensics.audits import discover, one_place
from forensics.errors import ForensicsError
from forensics.run.downsample import m4
from forensics.run.series import Series, names, series
from parsers import secrets
from parsers.tables import Run
from parsers.walk import is_regular

MOST_POINTS, MOST_LINES = 60, 40  # of an answer
NEIGHBOURS = 25  # logged values to either side of a step
KEY = 400  # lines; a private key in a log is no longer, and its lines are known by the first
LONGEST = 1 << 16  # bytes of a line that are read


@dataclass(frozen=True)
class Points:
    """Some points of a metric: at most 4 a column with its extremes (M4), and what they were chosen from."""

    metric: str
    tag: str
    unit: str
    points: list[list[Any]]
    logged: int  # values in the window
    steps: tuple[int, int]  # of the window
    lowest: tuple[int, float, str] | None  # (step, value, place in a file) of the finite values
    highest: tuple[int, float, str] | None
    nonfinite: int


@dataclass(frozen=True)
class Lines:
    """Lines of a log with their numbers, secrets masked."""

    file: str
    asked: int
    lines: list[tuple[int, str]]


def places(folder: str) -> list[dict[str, Any]]:
    """Where runs lie below a folder, the last written first: ``{"path", "files", "written"}`` (seconds since 1970)."""
    found = []
    for place in discover.find([folder], os.devnull):
        times = [info.st_mtime for f in place.files if (info := _stat(Path(folder) / f)) is not None]
        path = os.path.normpath(one_place.where(place))
        found.append({"path": path, "files": len(place.files), "written": max(times, default=0.0)})
    return sorted(found, key=lambda p: -p["written"])


def _stat(path: Path) -> os.stat_result | None:
    try:
        return path.stat()
    except OSError:
        return None


def metric_named(run: Run, name: str) -> Series:
    """The series of a canonical name, or of a tag as it was logged. Raises ForensicsError where there is none."""
    known = names(run)
    for each in (name, f"other/{name}"):
        if (s := series(run, each)) is not None:
            return s
    tagged = [s for n in known if (s := series(run, n)) is not None and s.tag == name]
    if tagged:
        return tagged[0]
    near = difflib.get_close_matches(name, known, 4, 0.4) or known[:8]
    raise ForensicsError(f"{name} was not logged", f"Logged: {', '.join(near)}" if near else "No metric was logged.")


def around(run: Run, metric: str, step: int | None = None, points: int = 40) -> Points:
    """At most about ``points`` points of a metric that keep its extremes: around a step, or of the whole run."""
    s = metric_named(run, metric)
    alive = np.flatnonzero(s.alive)
    if step is not None:
        alive = alive[np.abs(s.step[alive] - step) <= NEIGHBOURS * s.interval]
        if not len(alive):
            raise ForensicsError(f"{s.name} has no value around step {step}", f"It was logged from step {s.step.min()} to {s.step.max()}.")
    at, value = s.step[alive], -s.value[alive] if s.rises else s.value[alive]  # as the log has them
    few = min(max(points, 4), MOST_POINTS)
    chosen = m4(at, value, few // 4 if len(at) > few else len(at))
    known = np.flatnonzero(np.isfinite(value))
    ends = [known[np.argmin(value[known])], known[np.argmax(value[known])]] if len(known) else []
    told = [(int(at[i]), float(value[i]), s.place(run, alive[i])) for i in ends]
    lowest, highest = told or (None, None)
    return Points(s.name, s.tag, s.unit, chosen, len(at), (int(at.min()), int(at.max())), lowest, highest, len(at) - len(known))


def lines(run: Run, place: str, context: int = 5) -> Lines:
    """The lines of a log around a place as the case writes it ("train.log line 812"). Raises ForensicsError where that is no
    file of the run, or one whose places are no lines."""
    m = re.fullmatch(r"(.+)(?: line |:)(\d+)", place.strip())
    if m is None:
        raise ForensicsError(f"{place} is no line of a file", 'Give a place such as "train.log line 812", as findings have them.')
    name, asked = m[1], int(m[2])
    source = next((s for s in run.sources if s.path == name), None)
    if source is None:
        known = [s.path for s in run.sources if s.claimed and s.unit == "line"]
        raise ForensicsError(f"{name} is no file of this run", f"Files with lines: {', '.join(known[:8]) or 'none'}.")
    file, root = run.file(name), Path(run.root)
    if source.unit != "line" or not is_regular(file, below=root if root.is_dir() else root.parent):
        raise ForensicsError(f"{name} has no lines to show: its places are {source.unit}s", "`series` shows its values.")
    context = min(max(context, 0), MOST_LINES // 2)
    first = max(asked - context, 1)
    begin = max(first - KEY, 1)
    with file.open("rb") as f:
        raw = list(islice(_split(f), begin - 1, asked + context))
    shown = secrets.mask_texts([line.decode("utf-8", "replace") for line in raw])[first - begin :]
    if not shown:
        raise ForensicsError(f"{name} has no line {asked}", "The file may have changed since the run was read.")
    return Lines(name, asked, list(enumerate(shown, first)))


def _split(f: Any) -> Any:
    """The lines of a binary file, of each no more than its beginning."""
    while line := f.readline(LONGEST):
        rest = line
        while not rest.endswith(b"\n") and (rest := f.readline(LONGEST)):
            pass
        yield line.rstrip(b"\r\n")
