"""Restarts that no line tells and no step shows: the learning rate begins anew."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from forensics.run import endings
from forensics.run.robust import median
from forensics.run.series import Series
from parsers.tables import Run

# seconds; usual pauses; values. Not critical: 0.7 and 1.4 of each tell the same runs
SILENCE, SILENCE_TIMES, LEAST_PAUSES, ANEW = 60.0, 50.0, 10, 5
BEGUN = 0.4  # of the peak; a schedule that is through is below it


def with_silent_restarts(run: Run, s: Series) -> Series:
    """The series with another attempt where the rate begins anew after a silence: a restart that no step shows.

    A silence is a minute and fifty usual pauses; the rate begins anew where the values after it are those of step one.
    """
    s = _with_cut_schedules(s, loads=bool(endings.events(run, "resume")))
    pauses = np.diff(s.time)
    known = pauses[np.isfinite(pauses) & (np.diff(s.attempt) == 0)]
    if len(known) < LEAST_PAUSES:
        return s
    silent = np.flatnonzero(pauses > max(SILENCE, SILENCE_TIMES * median(known))) + 1
    attempt = s.attempt.copy()
    for i in silent.tolist():
        n = min(ANEW, len(s) - i, i)
        same_attempt = s.attempt[i] == s.attempt[i - 1] and n >= 2
        if same_attempt and np.allclose(s.value[i : i + n], s.value[:n], rtol=0.02) and abs(s.value[i] / s.value[i - 1] - 1) > 0.1:
            attempt[i:] += 1
    return replace(s, attempt=attempt)


def _with_cut_schedules(s: Series, *, loads: bool) -> Series:
    """The series with another attempt where a rate is cut off on its way down and goes the whole way from the first row again, warmup
    included, unless a line says that a checkpoint was loaded: a schedule restarts from its end, a launch without its scheduler from
    anywhere. Logs without steps show no more."""
    attempt = s.attempt.copy()
    x, first = s.value, s.value[:ANEW]
    if (
        len(x) < 2 * ANEW
        or not np.isfinite(first).all()
        or not (loads or (np.diff(first) > 0).any())
        or np.ptp(first) <= 0.02 * first.max()
    ):
        return s
    before, after = x[:-1], x[1:]
    mid = (s.attempt[1:] == s.attempt[0]) & (before > BEGUN * np.fmax.accumulate(before)) & (np.abs(after - before) > 0.1 * np.abs(before))
    for i in (np.flatnonzero(mid) + 1).tolist():
        if ANEW <= i <= len(x) - ANEW and np.allclose(x[i : i + ANEW], first, rtol=0.01):
            attempt[i:] += 1
    return replace(s, attempt=attempt)
