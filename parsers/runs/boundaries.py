"""Where the rows of one file begin to be another process's, and what shows it.

A step that falls back shows it alone where it lands above the beginning, as from a checkpoint. Where it lands at the
beginning the file must show a launch as well: a line, a pause in the clock, or a loss that begins again; a counter that is
set back each epoch shows none. Where steps only grow, a line must say that the process ended or resumed, a launch that is
known from elsewhere must fall into a pause, or the settings must be stated again beside something that tells of a launch.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from parsers.lazy_regex import lazy_re
from parsers.runs.clock import Clock, Evidence, Values
from parsers.runs.equal_values import ENOUGH
from parsers.runs.process_lines import BEGINS, DEATHS, ENDS, Line
from parsers.runs.spans import BEGINNING

FEW = 3  # rows: fewer tell no attempt of their own
MAX_CUTS = 200  # more step-backs than this in one file are disorder, not restarts
_LEVEL = 5  # values whose median is a level of the loss
_CLEAR = 3.0  # usual changes from value to value; a difference of levels beyond that is none of noise
_LONG = 20  # bound: rows of a lap; episodes of games, whose lengths differ, are logged in fewer
_OFTEN = 3  # falls, or settings with other values, that nothing else shows
_SET_BACK = 0.25  # statistical: of the moves of a time since the launch, where by chance half go back
_PAUSE = 5  # a launch shows in the clock as a pause of this many usual steps
_GONE = lazy_re(r"(?i)CUDA error|cancelled|preempted|node[_ ]fail|time limit|terminat|killed|segmentation fault|core dumped|aborted")
_PROCESS = BEGINS | ENDS


def boundaries(clock: Clock, source: str, said: list[Line], launches: list[float], resumed: list[tuple[Line, bool]]) -> dict[int, Evidence]:
    """Rows (above 0) at which another process begins, with what shows it. ``said``: `lines`; ``launches``: `launch_times`;
    ``resumed``: `resumes`."""
    pauses = np.diff(clock.time)
    known = pauses[np.isfinite(pauses)]
    whole = bool((clock.time == np.floor(clock.time)).all())  # a log of whole seconds shows pauses of one where there are none
    usual = max(float(np.median(known)), float(whole)) if len(known) else None
    mine = sorted((x for x in said if x.source == source and x.at is not None), key=lambda x: x.at or 0)
    file = _File(clock, source, mine, pauses, usual)
    found = dict(_back(file)) | dict(_told(file)) | dict(_stated(file)) | dict(_launched(file, launches)) | dict(_counted(file))
    if found and max(np.diff([0, *sorted(found), len(clock.step)])) < FEW and clock.step.min() > clock.interval:
        return {}  # a row or two each, far above the beginning: summaries
    return found or dict(_resumed_elsewhere(file, [(x, top) for x, top in resumed if x.source != source]))


@dataclass(frozen=True)
class _File:
    clock: Clock
    source: str
    said: list[Line]  # in the file, in its order
    pauses: NDArray[np.float64]  # seconds from each row to the next
    usual: float | None  # the median of them, a second at least where the clock tells no less; None without a clock

    def paused(self, row: int) -> bool:
        return self.usual is not None and bool(self.pauses[row - 1] > _PAUSE * self.usual)

    def between(self, row: int) -> list[Line]:
        """The lines between a row and the one before."""
        before, at = self.clock.at[row - 1], self.clock.at[row]
        return [x for x in self.said if before < (x.at or 0) <= at]

    def row(self, place: int) -> int:
        """The first row behind a place in the file; 0 where none is, or hardly any before: a row that was printed on the way up."""
        row = int(np.searchsorted(self.clock.at, place))
        return row if FEW <= row < len(self.clock.at) else 0


def _back(file: _File) -> Iterator[tuple[int, Evidence]]:
    """Rows at which steps fall back; not a single late row (a logger's thread) that goes on above the old maximum at once."""
    step = file.clock.step
    falls = np.flatnonzero(np.diff(step) < 0) + 1
    newest_first = len(falls) > (np.diff(step) > 0).sum()
    if newest_first or not 0 < len(falls) <= MAX_CUTS:
        return
    before = np.maximum.accumulate(step)
    every = file.clock.interval
    bare: list[tuple[int, Evidence]] = []  # that nothing but the steps shows
    begun = 0  # where the launch before begins
    for row in falls.tolist():
        if row + 1 < len(step) and step[row + 1] > before[row - 1] and not any(x.kind == "train_end" for x in file.between(row)):
            continue
        where = Evidence(f"steps fall back from {step[row - 1]} to {step[row]}", file.source, int(file.clock.at[row]))
        if step[row] <= step[0] + BEGINNING * every:
            if _begins_again(file, begun, row):
                begun = row
                yield row, where
        elif file.paused(row) or any(x.kind in _PROCESS for x in file.between(row)):
            yield row, where
        elif step[row - 1] - step[row] > every:  # one row that is logged again is no restart
            bare.append((row, where))
    if len(bare) < _OFTEN or not _says_again(file.clock, [row for row, _ in bare]):
        yield from bare


def _says_again(clock: Clock, falls: list[int]) -> bool:
    """Are the rows behind the falls the same once more? A logger with several handlers says each line several times."""
    loss = clock.loss
    if loss is None:
        return False
    again = 0
    for row in falls:
        i = int(np.searchsorted(loss.at, clock.at[row]))
        before = np.flatnonzero(loss.step[:i] == loss.step[i]) if i < len(loss.at) else np.zeros(0, np.int64)
        again += bool(len(before)) and bool(loss.value[before[-1]] == loss.value[i])
    return again >= ENOUGH * len(falls)


def _begins_again(file: _File, begun: int, row: int) -> bool:
    """A new training or only a counter? By the time since the launch and the epoch, then by lines, then by the loss; a pause counts
    where none of them tells, for an evaluation comes after each epoch."""
    if file.clock.of_epochs:
        return True  # nothing sets a count of epochs back but a training that begins
    between = file.between(row)
    for values, grows in ((file.clock.elapsed, False), (file.clock.epoch, True)):
        before, now = _beside(values, file, row)
        if values is not None and now and (_grown(values.value) if grows else _goes_by(values.value)):
            again = values.value[now] < values.value[before] or (grows and values.value[now] == values.value[before])
            return bool(again) or any(x.kind in DEATHS or x.kind == "resume" for x in between)
    if any(x.kind in _PROCESS for x in between):
        return True
    _, now = _beside(file.clock.loss, file, row)
    again = _loss_begins_again(file, file.clock.loss, begun, row) if file.clock.loss is not None and now else None
    return file.paused(row) or (file.usual is None and _laps_differ(file.clock)) if again is None else again


def _laps_differ(clock: Clock) -> bool:
    """A counter that is set back each epoch comes as far each time, but for the last; launches come as far as they come."""
    falls = np.flatnonzero(np.diff(clock.step) < 0)
    ends = clock.step[falls]
    rows = np.diff([0, *(falls + 1), len(clock.step)])
    return len(ends) >= _OFTEN and bool(np.ptp(ends) > clock.interval) and bool(np.median(rows) >= _LONG)


def _grown(x: NDArray[np.float64]) -> bool:
    return bool(np.nanmax(x) > np.nanmin(x))


def _goes_by(x: NDArray[np.float64]) -> bool:
    """Is it time that goes by? What each iteration took goes up and down by chance."""
    moves = np.diff(x[np.isfinite(x)])
    return bool((moves > 0).any()) and bool((moves < 0).sum() <= _SET_BACK * (moves != 0).sum())


def _beside(values: Values | None, file: _File, row: int) -> tuple[int, int]:
    """The last value that stands with the row before or ahead of it, and the first with the row or behind it; 0, 0 where one is missing."""
    if values is None:
        return 0, 0
    before = int(np.searchsorted(values.at, file.clock.at[row - 1], side="right")) - 1
    now = int(np.searchsorted(values.at, file.clock.at[row]))
    return (before, now) if before >= 0 and now < len(values.value) else (0, 0)


def _loss_begins_again(file: _File, values: Values, begun: int, row: int) -> bool | None:
    """A NaN does not become a number by itself. Else the level must stand nearer to the one that the launch before began at than to the
    one just before, and behind a pause in a file that announces launches; None where it has hardly moved since that beginning."""
    loss, i = values.value, int(np.searchsorted(values.at, file.clock.at[row]))
    top = int(np.searchsorted(values.at, file.clock.at[begun])) if begun else 0
    if i <= top:
        return None
    if not np.isfinite(loss[i - 1]):
        return bool(np.isfinite(loss[i]))
    if any(x.kind in BEGINS for x in file.said) and not file.paused(row):
        return False
    parts = (loss[top : min(top + _LEVEL, i)], loss[max(i - _LEVEL, top) : i], loss[i : i + _LEVEL])
    first, last, now = (float(np.median(part)) for part in parts)
    noise = float(np.median(np.abs(np.diff(loss[max(i - 10 * _LEVEL, top) : i])))) if i > top + 1 else 0.0
    return abs(now - first) < abs(now - last) if abs(first - last) > _CLEAR * noise else None


def _told(file: _File) -> Iterator[tuple[int, Evidence]]:
    """Rows behind a line that says that training resumes, or that the process ended."""
    for x in file.said:
        row = file.row(x.at or 0)
        if row and (_resumes(file, row, x) if x.kind == "resume" else _gone(file, row, x)):
            yield row, Evidence(x.text, x.source, x.at)


def _stated(file: _File) -> Iterator[tuple[int, Evidence]]:
    """Rows behind settings that are printed once more, as at the top of the launch before, where a pause, another line of a launch, or one of them that
    differs shows that a program did not merely print them twice. One that prints them again and again, as with each epoch, shows nothing by a value."""
    bare: list[tuple[int, Evidence]] = []
    for x in file.said:
        row = file.row(x.at or 0) if x.again else 0
        found = row, Evidence(x.text, x.source, x.at)
        if row and (file.paused(row) or any(o is not x and o.kind in _PROCESS for o in file.between(row))):
            yield found
        elif row and x.again != "the same":
            bare.append(found)
    if len(bare) < _OFTEN:
        yield from bare


def _resumes(file: _File, row: int, x: Line) -> bool:
    """A checkpoint that is loaded to evaluate it comes without a step that fits, a pause, or anything else of a launch."""
    if x.step:
        before, now = _beside(file.clock.epoch, file, row)
        epochs = file.clock.epoch.value if file.clock.epoch is not None else ()
        of_epochs = now > 0 and epochs[before] <= x.step <= epochs[now]  # "resumed (epoch 8)"
        return bool(file.clock.step[row - 1] - file.clock.interval <= x.step <= file.clock.step[row]) or bool(of_epochs)
    return file.paused(row) or any(other.kind != "resume" and other.kind in _PROCESS for other in file.between(row))


def _gone(file: _File, row: int, x: Line) -> bool:
    """With a clock, the end of a process needs a pause behind it; without one, more steps than it makes while it dies."""
    shown = file.paused(row) if file.usual else len(np.unique(file.clock.step[row:])) >= FEW
    return x.kind in DEATHS and x.level == "error" and bool(_GONE.search(x.text)) and shown


def _launched(file: _File, launches: list[float]) -> Iterator[tuple[int, Evidence]]:
    """Rows in whose pause a launch falls; those up to the first row's second are the launch of that row."""
    time = file.clock.time
    for launch in launches:
        if not np.floor(launch) > np.floor(time[0]):
            continue
        after = np.flatnonzero(time >= np.floor(launch))[:2]
        if len(after) and time[after[0]] >= np.floor(launch) + 1:
            after = after[:1]  # lines often tell whole seconds, rows their fractions: only a row of that second may be of before
        for row in [row for row in after.tolist() if row >= FEW and file.paused(row)][:1]:
            yield row, Evidence(f"a launch falls into the pause before step {file.clock.step[row]}", file.source, int(file.clock.at[row]))


def _counted(file: _File) -> Iterator[tuple[int, Evidence]]:
    """Rows at which the launch that rows name goes up, in whole numbers."""
    told = file.clock.launches
    if told is None or not (told.value == np.floor(told.value)).all():
        return
    for i in np.flatnonzero(np.diff(told.value) > 0).tolist():
        if row := file.row(int(told.at[i + 1])):
            said = f"rows count launch {told.value[i + 1]:.0f} after {told.value[i]:.0f}"
            yield row, Evidence(said, file.source, int(told.at[i + 1]))


def _resumed_elsewhere(file: _File, resumed: list[tuple[Line, bool]]) -> Iterator[tuple[int, Evidence]]:
    """Without a step back: where another file says that training resumes at a step; a clock must pause there."""
    for x, top in resumed:
        row = int(np.searchsorted(file.clock.step, x.step or 0, side="right"))
        if 0 < row < len(file.clock.step) and (file.paused(row) if file.usual else not top):
            yield row, Evidence(x.text, x.source, x.at)
