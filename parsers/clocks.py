"""Which moments a log's clock means, once the whole folder is read: the year or the date that its lines leave out.

A parser gives a clock without a year (glog, syslog) in NO_YEAR, and one without a date on 1970-01-01 (`YEARLESS`, `DATELESS`). `settle` finds
such files and takes the year (the date) from dated clocks: of the same file and its name, else of its folder, else of the others that
are read with it; only where they leave a single choice. Else the times count from the file's first clock (``Source.clock`` is "relative"):
differences within the file hold, nothing else can be told from them, and its events keep no time. The file system's own time
proves nothing: clones, copies and archives set it anew. `zones` then finds what a clock without a zone is ahead of UTC.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from parsers import arrow, zones
from parsers.lazy_regex import lazy_re
from parsers.records import cells
from parsers.runs.assemble import FileRead
from parsers.tables import DATED, NO_YEAR

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

DAY, HOUR = 86400.0, 3600.0
LEAP_DAY = datetime(NO_YEAR, 3, 1, tzinfo=UTC).timestamp()
APART = HOUR / 4  # between neighbouring lines of two clocks of one zone: what a buffer keeps back; zones lie farther apart
AT_ONCE = 300.0  # between the last line of a log and what its scheduler or its shell writes of the end
ELAPSED = 60.0  # a clock that begins in the first minute of a day counts from the launch: it is no time of day
_MOMENT = lazy_re(r"\"?20\d\d-\d\d-\d\d[T_ ]\d\d[:-]\d\d")
_STAMP = lazy_re(r"(?<!\d)(20\d\d)[-_.]?([01]\d)[-_.]?([0-3]\d)(?:[-_T. ]{0,2}([0-2]\d)[-_.:h]?([0-5]\d)(?:[-_.:m]?([0-5]\d))?)?(?!\d)")


class Span(NamedTuple):
    first: float
    last: float


@dataclass(frozen=True)
class Missing:
    """What a clock leaves out: the values it has then, how far a dated clock may lie from it, and how far it must fall to begin anew."""

    low: float
    high: float
    near: float
    beside: float  # the same for a line of its own file, or its name
    fall: float

    def moments(self, time: Floats, turns: Ints, choice: int) -> Floats:
        """Seconds since 1970 of times of this kind, if `choice` is the year (the day) in which the file begins."""
        if self is DATELESS:
            return time + (choice + turns) * DAY
        starts = np.array([_new_year(choice + n) for n in range(int(turns.max(initial=0)) + 1)])
        leaps = np.array([_is_leap(choice + n) for n in range(len(starts))])
        return starts[turns] + (time - self.low) - np.where((time >= LEAP_DAY) & ~leaps[turns], DAY, 0.0)

    def choices(self, near: Span, length: float) -> range:
        """The years (days) worth trying for a file of this many seconds."""
        first, last = near.first - self.near - length, near.last + self.near
        return range(int(first // DAY), int(last // DAY) + 1) if self is DATELESS else range(_year(first), _year(last) + 1)


# A year is taken from a clock within a month, a date from one within six hours: half the period and less, zones included. What lies farther
# apart is another run's, or cannot be told from the next year's (day's). A log only grows: a time of day that falls by more than buffers and
# daylight saving do is the next day's; days that fall back within a year are logs put together in another order.
YEARLESS = Missing(
    datetime(NO_YEAR, 1, 1, tzinfo=UTC).timestamp(),
    datetime(NO_YEAR + 1, 1, 1, tzinfo=UTC).timestamp(),
    near=30 * DAY,
    beside=30 * DAY,
    fall=183 * DAY,
)
DATELESS = Missing(0.0, DAY, near=6 * HOUR, beside=HOUR, fall=2 * HOUR)


@dataclass
class _Clock:
    """The times of a file's metrics and events, in the order of its lines; ``row`` leads back to its batches."""

    at: Ints
    time: Floats
    row: Ints


def settle(files: list[FileRead]) -> None:
    """Gives every file moments or relative times, and notes where they come from."""
    clocks = {i: c for i, f in enumerate(files) if (c := _clock(f)) is not None}
    if clocks:
        dated = {f.source.path: [s for s in (_dated(f),) if s] for f in files}
        for i, clock in clocks.items():
            _settle(files[i], clock, dated)
    zones.align(files)
    for f in files:
        if f.source.clock == "relative" and "events" in f.batches:
            f.batches["events"] = [_without_moments(b) for b in f.batches["events"]]


def _without_moments(b: pa.RecordBatch) -> pa.RecordBatch:
    """Events whose times are no moments; signs of life keep them, for they tell how long their own file was silent."""
    alive = np.array([kind == "alive" for kind in b["kind"].to_pylist()], bool)
    return zones.with_times(b, np.where(alive, arrow.filled(b["time"], np.nan), np.nan))


def _clock(f: FileRead) -> _Clock | None:
    """The clock of a file that has times before 1980; None for most."""
    batches = _timed(f)
    if not any((arrow.filled(b["time"], np.nan) < DATED).any() for b in batches):
        return None
    at, time = (np.concatenate([arrow.filled(b[c], fill) for b in batches]) for c, fill in (("at", -1), ("time", np.nan)))
    row = np.argsort(at, kind="stable")
    return _Clock(at[row], time[row], row)


def _timed(f: FileRead) -> list[pa.RecordBatch]:
    return [b for table in ("metrics", "events") for b in f.batches.get(table, [])]


def _settle(f: FileRead, clock: _Clock, dated: dict[str, list[Span]]) -> None:
    folder = f.source.path.rpartition("/")[0]
    own = [*dated[f.source.path], *_stamps(f.source.path.rpartition("/")[2])]
    beside = [(path, spans) for path, spans in dated.items() if path.rpartition("/")[0] == folder]
    near = [s for path, spans in beside for s in (*spans, *_stamps(path.rpartition("/")[2]))]
    levels = [own, [*near, *_stamps(folder)], [s for spans in dated.values() for s in spans]]
    found, notes = clock.time.copy(), []
    relative = False
    for missing, what in ((YEARLESS, "year"), (DATELESS, "date")):
        mine = np.flatnonzero((clock.time >= missing.low) & (clock.time < missing.high))
        if not len(mine):
            continue
        time = clock.time[mine]
        turns = _turns(time, missing)
        choice = None if missing is DATELESS and time[0] < ELAPSED else _choice(missing, time, turns, levels)
        moments = missing.moments(time, turns, (NO_YEAR if missing is YEARLESS else 0) if choice is None else choice)
        found[mine] = moments if choice is not None else moments - moments.min()
        relative |= choice is None
        told = f"taken from another clock: {datetime.fromtimestamp(moments[0], UTC):%Y-%m-%d}"
        notes.append(f"clock without {what}: " + ("no dated clock tells it, times count from the first one" if choice is None else told))
    if relative:  # lines that no one can put among the dated ones, or the other way round: those that are more stay
        relative = bool((found < DATED).sum() >= (found >= DATED).sum())
        found[(found >= DATED) == relative] = np.nan
    _drop_other_clocks(clock.time, found)
    _replace(f, clock, found)
    note = "; ".join([*([f.source.note] if f.source.note else []), *notes])
    f.source = replace(f.source, note=note, clock="relative" if relative else f.source.clock)


def _turns(time: Floats, missing: Missing) -> Ints:
    """How often the clock began anew before each row: at midnight, at New Year. Lines of several processes may mix there."""
    step, period = np.diff(time, prepend=time[:1]), missing.high - missing.low
    turns = np.cumsum((step < -missing.fall).astype(np.int64) - (step > 0.9 * period))
    return np.asarray(turns - turns.min(), np.int64)


def _drop_other_clocks(logged: Floats, found: Floats) -> None:
    """Of two clocks in one file (a launcher's and that of the machine it watches) the one with more lines counts, if they do not agree."""
    kind = np.digitize(logged, [YEARLESS.low, DATED])
    kind[~np.isfinite(found)] = -1
    counts = np.bincount(kind[kind >= 0], minlength=3)
    main = np.flatnonzero(kind == counts.argmax())
    for other in set(range(3)) - {int(counts.argmax())}:
        rows = np.flatnonzero(kind == other)
        after = np.searchsorted(main, rows)
        low = np.where(after > 0, found[main[after - 1]], -np.inf)
        high = np.where(after < len(main), found[main[np.minimum(after, len(main) - 1)]], np.inf)
        agrees = (found[rows] >= low - APART) & (found[rows] <= high + APART)
        if len(rows) and agrees.mean() < 0.5:
            found[rows] = np.nan


def _choice(missing: Missing, time: Floats, turns: Ints, levels: Iterable[list[Span]]) -> int | None:
    """The only year (day) that puts the file near a dated clock, of the nearest level that tells one."""
    grown = time + turns * (missing.high - missing.low)
    ends = np.array([grown.argmin(), grown.argmax()])
    time, turns, length = time[ends], turns[ends], float(np.ptp(grown))
    for spans, near in zip(levels, (missing.beside, missing.near, missing.near), strict=True):
        apart: dict[int, float] = {}
        for span in spans:
            for choice in missing.choices(span, length):
                first, last = missing.moments(time, turns, choice).tolist()
                apart[choice] = min(apart.get(choice, np.inf), max(span.first - last, first - span.last, 0.0))
        found = [c for c, seconds in apart.items() if seconds <= near]
        found = [c for c in found if apart[c] <= AT_ONCE] or found  # that holds the moment, before one that lies near it
        if found:
            return found[0] if len(found) == 1 else None
    return None


def _dated(f: FileRead) -> Span | None:
    """First and last moment of a file that are sure; in a config, those that its values name."""
    said = [v for b in f.batches.get("config", []) for v in b["value"].to_pylist() if v and _MOMENT.match(v)]
    moments = [t for v in said if (t := cells.seconds(v.strip('"'))) is not None]
    times = np.concatenate([np.array(moments, np.float64), *(arrow.filled(b["time"], np.nan) for b in _timed(f))])
    times = times[times >= DATED]
    return Span(float(times.min()), float(times.max())) if len(times) else None


@cache
def _stamps(name: str) -> list[Span]:
    """Moments in names: ``train_20260401-141837.log``, ``2026-04-01/``. A date alone is a whole day."""
    found = []
    for m in _STAMP.finditer(name):
        try:
            moment = datetime(*(int(part or 0) for part in m.groups()), tzinfo=UTC)  # type: ignore[misc, arg-type]
        except ValueError:
            continue
        found.append(Span(moment.timestamp(), (moment + timedelta(days=m[4] is None)).timestamp()))
    return found


def _replace(f: FileRead, clock: _Clock, found: Floats) -> None:
    """Puts the times back where they came from."""
    times = np.empty(len(found))
    times[clock.row] = found
    first = 0
    for table in ("metrics", "events"):
        batches = []
        for b in f.batches.get(table, []):
            batches.append(zones.with_times(b, times[first : first + b.num_rows]))
            first += b.num_rows
        if batches:
            f.batches[table] = batches


def _year(moment: float) -> int:
    return datetime.fromtimestamp(min(max(moment, 0.0), 4.2e9), UTC).year


def _new_year(year: int) -> float:
    return datetime(year, 1, 1, tzinfo=UTC).timestamp()


def _is_leap(year: int) -> bool:
    return (datetime(year, 3, 1) - datetime(year, 2, 1)).days == 29
