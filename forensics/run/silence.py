"""Silence at the end: the job outlived its last step."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from forensics.run import endings, proper_end
from forensics.run.metric_columns import arrays
from forensics.run.once import once
from forensics.run.robust import median
from forensics.run.series import Floats, Ints
from parsers.tables import DOUBTED, WIDEST_ZONE, Run

# lines that a job writes while it does no steps
_SIGNS = ("signal", "scheduler", "exit", "hang", "nccl", "warning", "console", "alive", "heartbeat")
SILENCE_SECONDS, SILENCE_TIMES = 120.0, 50.0
BEATS = 5  # bound: rows of one metric at the last step; five of a heartbeat are no evaluation, which gives one of each
BEATING_SECONDS = 30.0  # unit: half a minute, the usual distance of two heartbeats; the fifty usual steps have to be over, too
LONGER = 10.0  # unit: an order of magnitude; measured: of four programs that hung for 9 to 16 s two are so
LEAST = 20  # bound: pauses that hold an evaluation or two
EVEN = 0.8, 1.25  # bound: of the time between two beats; a busy process is late by a part of it
WORK = ("loss.", "lr", "acc.", "samples.seen", "tokens.seen")  # what changes only where something is trained
_BEATS = ("alive", "heartbeat")
NEAREST_ZONE, HALF_HOUR = 3600.0, 1800.0  # seconds from UTC, and between zones but three (tz database)
SOON = 300.0  # in which a job that ends says so
MOST_ROWS = 1_000_000  # at the end of the log that tell how long a step takes
_MACHINE = ("gpu.", "cpu.", "mem.", "disk.", "net.")  # families of names of what a monitor measures
_CLOCKS = ("", "local", "relative")  # Source.clock


@once
def silence(run: Run) -> tuple[float, float, str] | None:
    """(seconds, usual seconds between rows, what broke the silence) between the last step and the last sign of life.

    Signs of life are rows without a step (a monitor that says that the process is alive) and lines of any log whose clock
    can be compared: one without a zone may be hours off. None where the log has no clock.
    """
    columns = arrays(run)
    time = columns["time"]
    kind = {s.path: s.clock for s in run.sources}
    clock = np.array([_CLOCKS.index(kind.get(s, "")) for s in columns["sources"]])[columns["source"]]
    clock[~np.isfinite(time)] = -1
    for mine, other in ((0, 1), (1, 0), (2, 2)):
        stepped = np.flatnonzero((clock == mine) & columns["stepped"])
        if len(stepped) < 10:
            continue
        first, last = float(time[stepped].min()), float(time[stepped].max())
        beats = _beats(columns, stepped)
        one_zone = abs(_begin(run, _CLOCKS[other], time[clock == other]) - first) < NEAREST_ZONE / 2
        own = {columns["sources"][i] for i in np.unique(columns["source"][stepped])}  # a clock without a day is compared with itself alone
        told = [e for e in endings.events(run, *_SIGNS) if e["time"] is not None and (kind.get(e["source"]) == "relative") == (mine == 2)]
        lines = [(e["time"], e["text"], kind.get(e["source"], "")) for e in told if mine < 2 or e["source"] in own]
        signs = [(t, text) for t, text, c in lines if c == _CLOCKS[mine] or one_zone or not _may_be_zone(t - last)]
        alive = time[~columns["stepped"] & _watched(run, columns) & ((clock == mine) | (one_zone & (clock == other)))]
        signs += [(float(alive.max()), "the process was still watched and alive")] if len(alive) else []
        if len(beats):
            signs.append((last, f"the last of {len(beats)} rows of step {columns['step'][beats[0]]}"))
            last = float(time[beats].min())
        until, what = max(signs, default=(last, ""), key=lambda sign: sign[0])
        if until - last <= DOUBTED:
            latest = stepped[-MOST_ROWS:]
            return max(until - last, 0.0), _usual(time[latest], columns["step"][latest], beating=_even(columns, stepped, beats)), what
    return None


def _beats(columns: dict[str, Any], stepped: Ints) -> Ints:
    """The rows of a metric that was logged again and again at the last step: a heartbeat that names it. A loss, a rate or a count of
    samples that differs was computed anew."""
    top: Ints = stepped[columns["step"][stepped] == columns["step"][stepped].max()]
    kinds = columns["tag"][top].astype(np.int64) * len(columns["sources"]) + columns["source"][top]
    found, often = np.unique(kinds, return_counts=True)
    rows = top[kinds == found[often.argmax()]]
    repeated = [top[kinds == kind] for kind in found[often >= BEATS].tolist()]
    anew = any(columns["names"][columns["name"][r[0]]].startswith(WORK) and len(np.unique(columns["value"][r])) > 1 for r in repeated)
    return rows if often.max() >= BEATS and not anew else top[:0]


def _even(columns: dict[str, Any], stepped: Ints, beats: Ints) -> bool:
    """Whether the rows at the last step come as fast as their like did before it, by a clock and not by what is done there, and at no step before as many
    of them: a count may be rounded (``16.3kit``)."""
    if not len(beats):
        return False
    same = (columns["tag"][stepped] == columns["tag"][beats[0]]) & (columns["source"][stepped] == columns["source"][beats[0]])
    others = np.setdiff1d(stepped[same], beats)
    before = np.diff(np.sort(columns["time"][others]))
    usual = median(before) if len(before) >= BEATS else 0.0
    if usual <= 0 or len(beats) < BEATS * np.unique(columns["step"][others], return_counts=True)[1].max():
        return False
    return EVEN[0] <= median(np.diff(np.sort(columns["time"][beats]))) / usual <= EVEN[1]


def _watched(run: Run, columns: dict[str, Any]) -> NDArray[np.bool_]:
    """Rows that a monitor may have written: in a log for people, what is of no machine is a result, of a program that goes on working."""
    monitored = np.array([n.startswith(_MACHINE) for n in columns["names"]] or [False])[columns["name"]]
    console = np.array([s.format == "console" for s in run.sources])
    paths = {s.path: i for i, s in enumerate(run.sources)}
    said = np.array([console[paths[s]] if s in paths else False for s in columns["sources"]])[columns["source"]]
    return np.asarray(monitored | ~said)


def _may_be_zone(seconds: float) -> bool:
    """Could a line that came soon after the last step lie so far from it because its clock is that of another zone?"""
    return NEAREST_ZONE - SOON <= seconds <= WIDEST_ZONE + SOON and (seconds + SOON / 5) % HALF_HOUR <= SOON * 1.2


def _begin(run: Run, clock: str, time: Floats) -> float:
    """The first moment of the files that have such a clock; infinity where none has one."""
    paths = {s.path for s in run.sources if s.clock == clock}
    events = run.tables["events"]
    source, seconds = events["source"].to_pylist(), events["time"].to_pylist()
    said = min((t for t, path in zip(seconds, source, strict=True) if t is not None and path in paths), default=np.inf)
    return float(min(said, time.min(initial=np.inf)))


def _usual(time: Floats, step: Ints, *, beating: bool) -> float:
    """Seconds between two rows as they are logged at the end of the run: those of a step, times the steps between its last rows; of a step alone
    beside a heartbeat, which tells of each that it was made."""
    steps, first = np.unique(step, return_index=True)
    gap, steps = np.diff(time[first]), np.diff(steps)
    if beating and (gap > 0).any():
        return float(np.median(gap[gap > 0] / steps[gap > 0]))
    pauses = np.diff(np.unique(time))
    usual = median(pauses) if len(pauses) else 0.0
    return max(usual, float(np.median(gap[gap > 0] / steps[gap > 0]) * np.median(steps[-5:]))) if (gap > 0).any() else usual


def stalled(run: Run) -> bool:
    """True where the job outlived its last step by at least two minutes, or half a minute of heartbeats (or ten times the longest pause before), and fifty
    usual steps, and no word says that it came to its own end."""
    end = proper_end.finish(run)
    if end is not None and end.how in ("said", "early"):
        return False
    found = silence(run)
    return found is not None and found[0] >= max(_floor(run, found[2]), SILENCE_TIMES * found[1])


def in_words(seconds: float) -> str:
    return f"{seconds / 60:.0f} minutes" if seconds >= SILENCE_SECONDS else f"{seconds:.0f} seconds"


def _floor(run: Run, what: str) -> float:
    """Seconds from which on a silence may be one: fewer where a heartbeat, which is there to tell that, outlasts the last step."""
    told = {str(e["text"]) for e in endings.events(run, *_BEATS)}
    if what not in told and not what.startswith("the last of "):
        return SILENCE_SECONDS
    columns = arrays(run)
    rows = np.flatnonzero(columns["stepped"] & np.isfinite(columns["time"]))
    top = columns["step"][rows] == columns["step"][rows].max()
    time = np.sort(columns["time"][rows])
    before = np.diff(time[time <= columns["time"][rows][top].min()])
    return min(BEATING_SECONDS, LONGER * float(before.max(initial=0))) if len(before) >= LEAST else BEATING_SECONDS
