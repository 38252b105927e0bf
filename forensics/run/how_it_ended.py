"""How the process ended: what killed it, in its own words, and where they stand; or that it finished, goes on, or is silent.

What metrics measured plays no part, only how far they go. A fatal line counts only where nothing went on after it in its file:
an exception that was caught, noise of an exit handler and words that only sound like harm are followed by steps or by a
closing line. Of several fatal lines the cause comes before its consequences: ranks that lost their peer, the launcher's
report, the scheduler's exit code.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow.compute as pc
from numpy.typing import NDArray

from forensics.case import utc
from forensics.run import endings, plan, silence
from forensics.run.once import once
from parsers.tables import Run

DISK = re.compile(r"No space left on device|Disk quota exceeded|\bErrno (?:28|122)\b|\bENOSPC\b|\bEDQUOT\b|unexpected pos \d+ vs", re.I)
MEMORY = re.compile(r"out[ _]of[ _](?:memory|me\+)|oom.?kill|can(?:no|')t allocate memory", re.I)
HARDWARE = re.compile(r"\bXid\b|fallen off the bus|uncorrectable|\bECC error|node[ _]fail", re.I)
INTERRUPT = re.compile(r"KeyboardInterrupt|\bSIGINT\b|Ctrl-?C", re.I)
OUTSIDE = re.compile(r"time ?limit|(?-i:\bTIMEOUT\b)|\bDEADLINE\b|preempt|cancelled|requeue", re.I)
CONSEQUENCE = re.compile(r"exit(?:ed with exit)? ?code|step aborted|exitcode\s*: -?\d+ \(pid|: Signal 15 \(SIGTERM\) received", re.I)
LAUNCHER = re.compile(r"\bSignalException\b|got signal: \d+")  # torch.distributed.elastic, which was itself told to stop
CRASHING_SIGNAL = re.compile(
    r"SIG(?:SEGV|BUS|ABRT|ILL|FPE|KILL)|segmentation fault|bus error|abort|killed|core dumped|exitcode: -(?:6|7|8|9|11)\b", re.I
)
EARLY_STOP = re.compile(r"early.?stop(?!ping: (?:disabled|off|none))|signaling trainer to stop", re.I)
TORN = re.compile(r"\b(?:torn|truncated|cut off|incomplete|no whole)\b", re.I)
RANK = re.compile(r"\b(?:local_)?rank\s*[:=]?\s*(\d+)\b", re.I)
ZONES = 86400.0  # seconds by which two clocks without a zone may differ
RUNNING_SECONDS = 900.0  # a run whose own clock is younger than that may go on; longer than most logging intervals and saves
UNNAMED = "traceback without its last line"  # stacks that a watchdog printed, or a text that was cut: no exception is named
FATAL = (
    "out of memory",
    "disk",
    "hardware",
    "interrupt",
    "exception",
    "scheduler",
    "signal",
    "hang",
    "unnamed",
)  # causes before consequences
STATUS = {
    "finished": "finished", "exception": "crashed", "out of memory": "crashed", "disk": "crashed", "hardware": "crashed",
    "interrupt": "stopped", "scheduler": "stopped", "hang": "hung", "cut": "unknown", "running": "running", "unknown": "unknown",
}  # fmt: skip
WORDS = {
    "exception": "an exception ended the run", "out of memory": "out of memory", "disk": "disk full",
    "hardware": "hardware failure", "signal": "a signal ended the run", "hang": "the run hung",
    "interrupt": "stopped by hand", "scheduler": "the scheduler stopped the run", "cut": "the log just stops",
}  # fmt: skip
Event = dict[str, Any]
Progress = dict[str, tuple[NDArray[np.int64], NDArray[np.int64]]]


@dataclass(frozen=True)
class Ending:
    """``kind`` as docs/case.md lists them, with spaces; ``says``: the line that tells it, ``where``: its file and place, ``rank``: whose it was."""

    kind: str
    says: str = ""
    where: str = ""
    rank: int | None = None
    before_first_step: bool = False
    step: int | None = None

    @property
    def died(self) -> bool:
        return self.status in ("crashed", "hung")

    @property
    def status(self) -> str:
        """finished | crashed | stopped | hung | running | unknown"""
        if self.kind == "signal":
            return "crashed" if CRASHING_SIGNAL.search(self.says) else "stopped"
        return STATUS[self.kind]


def ending(run: Run) -> Ending:
    """How the last attempt of a run ended."""
    told = _died(run, len(run.attempts) - 1)
    return _alive(run) if told is None else told


@once
def _died(run: Run, attempt: int) -> Ending | None:
    """What ended an attempt, by its last fatal line; None where no line tells it."""
    step = run.attempts[attempt]["steps"][1] if run.attempts else None
    last, progress = endings.of_attempt(run, attempt), _progress(run)
    closed = {e["source"]: e["at"] or 0 for e in last if e["kind"] in endings.CLOSING}  # file -> place of its last closing line
    fatal = [(kind, e) for e in last if (kind := _kind(e)) and not _survived(e, progress, closed) and not _earlier(e, run)]
    many = len({e["rank"] for e in last if e["rank"] is not None}) > 1
    for kind in FATAL:
        of_kind = [e for k, e in fatal if k == kind]
        if not of_kind or (kind == "exception" and not many and any(k == "scheduler" for k, _ in fatal)):
            continue  # one process that raised cannot be cancelled later: what it raised was caught
        if kind not in ("hardware", "out of memory") and _closed_elsewhere(of_kind, last, closed):
            continue
        hung = kind == "scheduler" and silence.stalled(run)  # the limit only ended the wait
        return _told(run, "hang" if hung else "exception" if kind == "unnamed" else kind, _telling(kind, of_kind), step)
    return None


@once
def _alive(run: Run) -> Ending:
    """How the last attempt ended where no fatal line tells it: finished, failed by a code or a word alone, silent, running, cut."""
    step, last = endings.last_step(run), endings.of_attempt(run, len(run.attempts) - 1)
    if endings.finished(run) or any(EARLY_STOP.search(e["text"]) for e in last if e["kind"] != "start"):
        return Ending("finished", step=step)
    if codes := [e for e in last if e["kind"] == "exit" and e["level"] == "error"]:
        return _told(run, "exception", codes[-1], step)
    for word, kind in (("FAILED", "exception"), ("KILLED", "signal")):  # a tracker's word
        told = [e for e in last if e["kind"] == "status" and word in str(e["text"]).upper()]
        if told:
            return _told(run, kind, told[-1], step)
    if silence.stalled(run):
        return Ending("hang", (silence.silence(run) or (0, 0, ""))[2], step=step)
    clock = run.attempts[-1]["ended"] if run.attempts else None
    if clock is not None and abs(time.time() - clock) < RUNNING_SECONDS:
        return Ending("running", step=step)
    # a log of numbers has no closing line: only a plan that was not reached, or a torn end, says that it was cut
    cut = step is not None and (plan.planned_steps(run) is not None or any(TORN.search(g.what) for g in run.gaps))
    return Ending("cut" if cut else "unknown", step=step, before_first_step=step is None)


def status(run: Run) -> str:
    """finished | crashed | stopped | hung | running | unknown"""
    return ending(run).status


def attempts(run: Run) -> list[dict[str, Any]]:
    """The attempts as the case shows them: steps, clock, and why each ended."""
    found = []
    for i, attempt in enumerate(run.attempts):
        told, following = _died(run, i), run.attempts[i + 1 : i + 2]
        why = f"{WORDS[told.kind]}: {told.says[:160]}" if told is not None else ""
        if following:
            begin, end = following[0]["steps"][0], attempt["steps"][1]
            redone = f", {end - begin + 1} steps are done twice" if begin <= end else ""
            why = f"{why or 'the log does not say why it ended'}; the next attempt begins at step {begin}{redone}"
        elif not why:
            plan = "reached its planned length" if endings.reached_plan(run) else "the log just ends"
            why = "finished" if _alive(run).kind == "finished" and not endings.reached_plan(run) else plan
        found.append(
            {
                "index": i, "steps": attempt["steps"], "started": utc(attempt["started"]), "ended": utc(attempt["ended"]),
                "why": why, "evidence": continues(run, attempt),
            }
        )  # fmt: skip
    return found


def continues(run: Run, attempt: dict[str, Any]) -> str:
    """What shows that an attempt continues the run, and where that stands; nothing for the first one."""
    shown = attempt.get("evidence")
    if shown is None:
        return ""
    return f"{run.where(shown.source, shown.at)}: {shown.text}" if shown.source else str(shown.text)


def shown(run: Run) -> dict[str, Any]:
    """`run.ending` of the case."""
    e = ending(run)
    return {"kind": e.kind.replace(" ", "_"), "says": e.says, "where": e.where, "rank": e.rank, "before_first_step": e.before_first_step}


def _kind(e: Event) -> str | None:
    """The kind of ending of which an event speaks, or None where it tells none."""
    text, kind = str(e["text"]), e["kind"]
    if (e["level"] != "error" and not LAUNCHER.search(text)) or (CONSEQUENCE.search(text) and kind != "oom"):
        return None
    tests: tuple[tuple[str, Callable[[], Any]], ...] = (
        ("out of memory", lambda: kind == "oom" or (kind in ("scheduler", "traceback") and MEMORY.search(text))),
        ("disk", lambda: kind in ("traceback", "warning", "oom") and DISK.search(text)),
        ("hardware", lambda: kind == "hardware" or (kind == "scheduler" and HARDWARE.search(text))),
        ("interrupt", lambda: kind in ("signal", "traceback") and INTERRUPT.search(text)),
        ("exception", lambda: kind in ("traceback", "nonfinite")),
        ("scheduler", lambda: kind == "scheduler" and OUTSIDE.search(text)),
        ("signal", lambda: kind == "signal"),
        ("hang", lambda: kind in ("nccl", "hang")),
    )
    found = next((name for name, holds in tests if holds()), None)
    return "unnamed" if found == "exception" and text.startswith(UNNAMED) else found


@once
def _progress(run: Run) -> Progress:
    """File -> the places of its rows that have a step, and their steps."""
    metrics = run.tables["metrics"]
    stepped = metrics.filter(pc.and_(pc.is_valid(metrics["step"]), pc.is_valid(metrics["at"]))).select(["source", "at", "step"])
    rows = stepped.group_by("source").aggregate([("at", "list"), ("step", "list")]).to_pylist()
    return {str(r["source"]): (np.array(r["at_list"]), np.array(r["step_list"])) for r in rows}


def _survived(e: Event, progress: Progress, closed: dict[str, int]) -> bool:
    """A later step or a closing line follows in the same file; a progress bar that is drawn again is no step."""
    source, place = str(e["source"]), e["at"] or 0
    if closed.get(source, -1) > place:
        return True
    at, step = progress.get(source, (np.zeros(0), np.zeros(0)))
    return bool(step[at > place].max(initial=-1) > step[at <= place].max(initial=-1))


def _earlier(e: Event, run: Run) -> bool:
    """A line of before the run began: the kernel's messages go back to the machine's last start."""
    began = run.attempts[0]["started"] if run.attempts else None
    return began is not None and e["time"] is not None and e["time"] < began - ZONES


def _closed_elsewhere(fatal: list[Event], last: list[Event], closed: dict[str, int]) -> bool:
    """Another file has a closing line, and no exit code speaks against it."""
    elsewhere = closed.keys() - {e["source"] for e in fatal}
    return bool(elsewhere) and not any(o["level"] == "error" and CONSEQUENCE.search(str(o["text"])) for o in last)


def _telling(kind: str, events: list[Event]) -> Event:
    """The event to quote: the last of a chain of exceptions in the file that failed first, else the first of its kind."""
    timed = [e for e in events if e["time"] is not None]
    first = min(timed, key=lambda e: float(e["time"])) if timed and len(timed) == len(events) else events[0]
    if kind == "exception":
        return [e for e in events if e["source"] == first["source"]][-1]
    if kind == "signal":
        return next((e for e in events if CRASHING_SIGNAL.search(str(e["text"]))), first)
    return first


def _told(run: Run, kind: str, e: Event, step: int | None) -> Ending:
    text = str(e["text"])
    named = RANK.search(text)
    rank = e["rank"] if e["rank"] is not None else int(named[1]) if named else None
    says = re.sub(r"  \[[^\[\]]*\]$", "", text.strip())
    return Ending(kind, says.splitlines()[-1][:300] if says else "", run.where(e["source"], e["at"]), rank, step is None, step)
