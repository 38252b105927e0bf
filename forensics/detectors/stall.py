"""Stall

What it sees
    Silence: the clock goes on while no step is logged; or lines that say that processes wait for each other.

How it decides
    The time between logged rows, inside one attempt, against what as many steps usually take: a silence of at least two minutes and fifty times that
    is a stall; at the end half a minute is one where only a heartbeat goes on. One that ended by itself is for information:
    a machine slept, or a queue let others go first (measured: of eleven real logs with one, blind readers called eight sound or left them open, and named
    other trouble in three). A pause in which an evaluation or a save is known to lie is none,
    unless it is five times as long as the others of its kind; a pause of more than a month is a wrong clock or another run.
    Time-outs of collectives, of the data loader and of watchdogs in the log are one, too, and so is silence at the very end where the log says that
    the job was killed only later, if it did not finish. Its kind: collectives that differ by rank (torch's fingerprints; the operation and sequence
    number in which each rank timed out), a rank that died before the others gave up, a rank that is missing or behind, ranks with different last
    steps (uneven data), the loader's workers, storage, a checkpoint or an evaluation that was due, and what the GPUs did meanwhile (100 % busy: a
    collective that waits; idle: the host). Where nothing of this is seen, the kind is open.

Cannot tell
    Where the log has no clock and no such line.

Folklore
    The first rank to fail is the root, the time-outs of the others are the cascade (NVRx). BLOOM-176B hung at evaluations
    with its GPUs at 100 %: a deadlock of the loader's workers (BigScience chronicles).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from forensics import evidence
from forensics.case import BaseFacts, Finding
from forensics.detectors.ending import quoted
from forensics.errors import CannotTell
from forensics.run import endings, hang_kinds, hang_ranks, how_it_ended, pace, reach, silence
from forensics.run.kinds import Kind
from forensics.run.pace import Pauses
from forensics.run.robust import median
from forensics.run.series import Series, series
from forensics.run.silence import SILENCE_SECONDS, SILENCE_TIMES
from parsers.lazy_regex import lazy_re
from parsers.runs.process_lines import LAUNCH
from parsers.tables import Run

_FRONT = lazy_re(r"^\s*\[[EWIF] ?[^\]]*\] ?")  # the logger's own clock, file and line
NEEDS = ["loss.train|lr|grad.norm"]
INPUTS = ["wall clock"]
# an evaluation or a save that takes so many times as long as the others do waits for something; not critical (docs/thresholds.md)
STOP_TIMES = 5.0


@dataclass(frozen=True)
class Facts(BaseFacts):
    """A silence, or lines that speak of processes that wait."""

    step: int | None  # the last before it
    at_end: bool  # no step comes after it
    seconds: float | None = None
    usual: float | None = None  # seconds between two rows
    lines: int | None = None  # of the log that say so
    said: bool | None = None
    echo: bool | None = None  # left behind by a crash
    kind: str | None = None  # of hang_kinds
    words: str | None = None  # of the kind, as the rest of a title
    why: str | None = None  # the sentence that shows it
    do: list[str] | None = None
    ranks: str | None = None  # that are missing or died


def detect(run: Run) -> Iterator[Finding]:
    s = series(run, "loss.train") or series(run, "lr") or series(run, "grad.norm")
    assert s is not None
    said = hang_ranks.said(run)
    if said:
        yield _said(run, said)
    paused = pace.pauses(s)
    if len(paused.row) < 10 and not said:
        raise CannotTell("the log has no clock")
    if len(paused.row) < 10:
        return
    yield from _silences(run, s, paused)
    if silence.stalled(run) and not said and how_it_ended.status(run) != "finished":
        wait, usual, what = silence.silence(run) or (0.0, 0.0, "")
        last, step = paused.row[-1], int(s.step[paused.row[-1]])
        kind = hang_kinds.of_run(run, step)
        title = f"Silence of {silence.in_words(wait)} after the last step {step}{_words(kind)}, until: {quoted(what)}"
        facts = Facts(step, True, wait, usual, **_told_of(kind))
        shown = evidence.text("the last sign of life", [what], s.place(run, last))
        yield evidence.found(facts, title, (step, None), "critical", shown, key=f"{step}-end", times=(s.clock(last), None))


def _silences(run: Run, s: Series, paused: Pauses) -> Iterator[Finding]:
    """Pauses far longer than their steps take, and than the evaluations and saves that other pauses hold."""
    a_step, wait = paused.a_step, paused.seconds
    if not np.isfinite(a_step[a_step > 0]).any():
        return
    usual = median(a_step[a_step > 0]) * np.maximum(paused.steps, 1)
    held = pace.stopped(run, s, paused) & np.isfinite(wait)
    longer = np.sort(wait[held])[held.sum() // 2 :]  # of the two pauses beside an evaluation's step one holds it
    known = held & (wait <= STOP_TIMES * median(longer)) if held.any() else held
    long = (wait >= SILENCE_SECONDS) & (wait >= SILENCE_TIMES * usual)
    for i in np.flatnonzero(long & ~known)[:10]:
        row, after = paused.row[i], paused.row[i + 1]
        between = _another_launch(run, s, row, after)
        title = f"Silence of {wait[i] / 60:.0f} minutes after step {s.step[row]}{between or f'; usual is {usual[i]:.2g} seconds'}"
        shown = evidence.text("clock", [f"step {s.step[row]} and step {s.step[after]} lie {wait[i]:.0f} s apart"], s.place(run, row))
        facts = Facts(int(s.step[row]), False, float(wait[i]), float(usual[i]))
        yield evidence.on_rows(s, (row, after), facts, title, "info", shown)


def _another_launch(run: Run, s: Series, row: np.intp, after: np.intp) -> str:
    """The line by which a launch begins between both, so that nobody trained meanwhile; nothing otherwise."""
    source = s.source[int(s.source_code[row])]
    told = [e for e in endings.events(run, *LAUNCH) if e["source"] == source and int(s.at[row]) < int(e["at"] or 0) < int(s.at[after])]
    return f", until another launch goes on: {quoted(str(told[-1]['text']))}" if told and s.source_code[row] == s.source_code[after] else ""


def _said(run: Run, said: list[dict[str, Any]]) -> Finding:
    first = said[0]
    step = first["step"] if isinstance(first["step"], int) else reach.last(run)
    kind = hang_kinds.of_run(run, step)
    echo = all(e["level"] == "warning" for e in said) and how_it_ended.status(run) == "crashed"  # what a crash leaves behind
    shown = evidence.text("what the log says", [_told(e) for e in _one_a_rank(said)[:8]], run.where(str(first["source"]), first["at"]))
    facts = Facts(step, True, lines=len(said), said=True, echo=echo, **_told_of(kind))
    line = _FRONT.sub("", str(first["text"]).splitlines()[-1])
    title = f"Processes wait for each other{_words(kind)}: {quoted(line)}"
    time = first["time"] if isinstance(first["time"], float) else None
    severity = "info" if echo or how_it_ended.status(run) == "finished" else "critical"
    return evidence.found(facts, title, (step, None), severity, shown, key=f"{step}-said", times=(time, None))


def _one_a_rank(said: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The first line of each rank, then the rest."""
    seen: set[int | None] = set()
    first: list[dict[str, Any]] = []
    rest: list[dict[str, Any]] = []
    for e in said:
        rank = hang_ranks.rank_of(e)
        (rest if rank in seen else first).append(e)
        seen.add(rank)
    return first + rest


def _told(e: dict[str, Any]) -> str:
    rank = hang_ranks.rank_of(e)
    return (f"rank {rank}: " if rank is not None else "") + str(e["text"])[:400]


def _words(kind: Kind) -> str:
    return f" ({kind.words})" if kind.words else ""


def _told_of(kind: Kind) -> dict[str, Any]:
    return {"kind": kind.id, "words": kind.words, "why": kind.why, "do": list(kind.do), "ranks": kind.ranks}


def smallest_effect(run: Run) -> str:
    s = series(run, "loss.train") or series(run, "lr") or series(run, "grad.norm")
    a_step = pace.pauses(s).a_step if s is not None else np.array([])
    usual = median(a_step[a_step > 0]) * (s.interval if s is not None else 1) if (a_step > 0).any() else 0.0
    return f"{max(SILENCE_SECONDS, SILENCE_TIMES * usual) / 60:.1f} minutes of silence between two rows"
