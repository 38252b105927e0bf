"""Stall

What it sees
    Silence: the clock goes on while no step is logged; or lines that say that processes wait for each other.

How it decides
    The time between logged rows, inside one life, against its median: a silence of at least two minutes and fifty times
    the usual is a stall. Time-outs of collectives and watchdogs in the log are one, too, and so is silence at the very
    end where the log says that the job was killed only later.

Cannot tell
    Where the log has no clock and no such line.

Folklore
    The first rank to fail is the root, the time-outs of the others are the cascade (NVRx).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from forensics import evidence, lives
from forensics.case import Finding
from forensics.errors import CannotTell
from forensics.lives import SILENCE_SECONDS, SILENCE_TIMES, events
from forensics.series import series
from parsers.tables import Run

NEEDS = ["loss.train|lr|grad.norm"]


def detect(run: Run) -> Iterator[Finding]:
    s = series(run, "loss.train") or series(run, "lr") or series(run, "grad.norm")
    assert s is not None
    said = events(run, "nccl", "hang")
    if said:
        yield _said(run, said)
    clocked = np.flatnonzero(np.isfinite(s.time))
    if len(clocked) < 10 and not said:
        raise CannotTell("the log has no clock")
    if len(clocked) < 10:
        return
    gaps = np.diff(s.time[clocked])
    inside = np.diff(s.attempt[clocked]) == 0
    usual = float(np.median(gaps[inside & (gaps > 0)])) if (inside & (gaps > 0)).any() else 0.0
    for i in np.flatnonzero(inside & (gaps >= SILENCE_SECONDS) & (gaps >= SILENCE_TIMES * usual))[:10]:
        row, after = clocked[i], clocked[i + 1]
        title = f"Silence of {gaps[i] / 60:.0f} minutes after step {s.step[row]}; usual is {usual:.2g} seconds"
        facts = {"step": int(s.step[row]), "seconds": float(gaps[i]), "usual": usual, "at_end": False}
        shown = evidence.text(
            "clock", [f"step {s.step[row]} and step {s.step[after]} lie {gaps[i]:.0f} s apart"], s.place(run, row)
        )
        yield Finding(
            f"stall-{s.step[row]}",
            "stall",
            title,
            int(s.step[row]),
            int(s.step[after]),
            "warning",
            (shown,),
            facts,
            (s.clock(row), s.clock(after)),
        )
    if lives.stalled(run) and not said:
        wait, usual, what = lives.silence(run) or (0.0, 0.0, "")
        last = clocked[-1]
        title = f"Silence of {wait / 60:.0f} minutes after the last step {s.step[last]}, until: {what[:100]}"
        facts = {"step": int(s.step[last]), "seconds": wait, "usual": usual, "at_end": True}
        shown = evidence.text("the last sign of life", [what], s.place(run, last))
        yield Finding(
            f"stall-{s.step[last]}-end",
            "stall",
            title,
            int(s.step[last]),
            None,
            "critical",
            (shown,),
            facts,
            (s.clock(last), None),
        )


def _said(run: Run, said: list[dict[str, Any]]) -> Finding:
    first = said[0]
    step = first["step"] if isinstance(first["step"], int) else _step_before(run)
    shown = evidence.text(
        "what the log says", [str(e["text"]) for e in said[:6]], run.where(str(first["source"]), first["at"])
    )
    facts = {"step": step, "lines": len(said), "at_end": True, "said": True}
    title = f"Processes wait for each other: {str(first['text'])[:140]}"
    time = first["time"] if isinstance(first["time"], float) else None
    return Finding(
        f"stall-{step}-said",
        "stall",
        title,
        step,
        None,
        "info" if lives.status(run) == "finished" else "critical",
        (shown,),
        facts,
        (time, None),
    )


def _step_before(run: Run) -> int | None:
    return max((a["steps"][1] for a in run.attempts), default=None)


def smallest_effect(run: Run) -> str:
    return f"{SILENCE_SECONDS / 60:.0f} minutes of silence"
