"""Memory

What it sees
    The run ends for want of memory, or its memory grows and grows; and which kind of want it was.

How it decides
    Lines that say so (CUDA out of memory, oom-kill, cannot allocate). Growth: the logged memory rises over the last half of
    the run by 15 % or more, and more than nine of ten neighbouring stretches rise. The kind, in this order: the host's
    memory (the kernel's or the scheduler's words), a device that others fill, an evaluation or a save (the stack, a line
    that begins it, the cadence of evaluations), a leak (growth), fragmentation (the request would fit into what is
    reserved but unallocated), one long batch (the last length or memory is the highest by 15 %), the first three steps,
    one request for a quarter of the device. Where nothing of this is seen, the kind is open. A process that was killed
    (exit code 137, SIGKILL) without a word of the scheduler is told for information: memory of the host is one of three reasons.

Cannot tell
    Where no memory was logged and no line speaks of it.

Folklore
    A retained graph grows a little every step; one long batch or an evaluation needs more at once; fragmentation shows as
    reserved far above allocated (PyTorch, notes on CUDA memory management).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from forensics import evidence
from forensics.case import BaseFacts, Finding
from forensics.detectors.ending import quoted
from forensics.run import memory_kinds, reach
from forensics.run.endings import events
from forensics.run.how_it_ended import status
from forensics.run.inputs import surviving
from forensics.run.series import series
from parsers import arrow
from parsers.lazy_regex import lazy_re
from parsers.tables import Run

NEEDS: list[str] = []
_KILLED = lazy_re(
    r"(?i)\b(?:exit(?:ed)?|code|status)\b[\w :=]{0,20}\b137\b|exitcode\s*+(?::\s*+)?-9\b|SIGKILL|signal 9\b|killed by signal: Killed|^\s*Killed\b|line \d+:\s+\d+ Killed\b|task \d+: Killed"
)


@dataclass(frozen=True)
class Facts(BaseFacts):
    """Want of memory: what the log says, or how it grew."""

    said: bool  # a line says so, and no training went on behind it
    kind: str  # of memory_kinds
    step: int | None
    killed: bool | None = None  # a process was killed, and nothing says why
    words: str | None = None  # of the kind, as the rest of a title
    why: str | None = None  # the sentence that shows it
    do: list[str] | None = None
    growth: float | None = None  # over the last half of the run, as a share
    per_step: float | None = None  # in the unit of the metric


def detect(run: Run) -> Iterator[Finding]:
    said = [e for e in events(run, "oom") if e["level"] == "error"]
    if said:
        yield _said(run, said)
    elif (killed := _killed(run)) is not None:
        yield killed
    for name in ("mem.alloc", "mem.reserved"):
        s = series(run, name)
        if s is None or len(s) < 2 * memory_kinds.HALF_ROWS or (grown := memory_kinds.growth(s)) is None:
            continue
        rows = surviving(s)
        half = rows[len(rows) // 2 :]
        step, last = int(s.step[half[0]]), int(s.step[half[-1]])
        shown = evidence.window(s, int(s.step[rows[0]]), last, title=s.tag, where=s.place(run, half[0]), margin=0)
        facts = Facts(False, "leak", step, growth=grown[0], per_step=grown[1])
        title = f"Memory grows by {grown[0]:.0%} from step {step} to {last} and is still growing"
        yield evidence.on_rows(s, (half[0], half[-1]), facts, title, "warning", shown)
        return


def _said(run: Run, said: list[dict[str, Any]]) -> Finding:
    first, over = said[0], all(_before_training(run, e) for e in said)
    step = _step(run, first) if not over else None
    kind = memory_kinds.of_run(run, said, step)
    shown = evidence.text("what the log says", [e["text"][:500] for e in said[:5]], run.where(first["source"], first["at"]))
    words = ", in a launch that another one followed" if over else f", {kind.words}" if kind.words else ""
    when = f"after step {step}" if step is not None else "before the first step"
    facts = Facts(not over, kind.id, step, None, kind.words, kind.why, list(kind.do), kind.growth, kind.per_step)
    title = f"Out of memory {when}{words}: {quoted(first['text'].splitlines()[-1])}"
    severity = "info" if over else "critical"
    return evidence.found(facts, title, (step, None), severity, shown, key=f"{step}-said", times=(first["time"], None))


def _before_training(run: Run, event: dict[str, Any]) -> bool:
    """Whether what was measured stands behind the line: it ended a launch that had not begun, and another one trained."""
    if event["step"] is not None:
        return False
    metrics = run.tables["metrics"]
    code, sources = arrow.codes(metrics["source"])
    at = arrow.filled(metrics["at"], 0)[np.isin(code, [i for i, source in enumerate(sources) if source == event["source"]])]
    return len(at) > 0 and int(at.min()) > event["at"]


def _killed(run: Run) -> Finding | None:
    """SIGKILL comes from the kernel's out-of-memory killer, a scheduler or a person; a word of the scheduler settles it."""
    killed = [e for e in events(run, "signal", "scheduler", "warning", "traceback", "exit") if _KILLED.search(str(e["text"]))]
    told = [e for e in events(run, "scheduler") if re.search(r"(?i)due to|cancelled|preempt|requeue|time limit|evicted", str(e["text"]))]
    if not killed or told or status(run) == "finished":
        return None
    first = killed[0]
    step = _step(run, first)
    shown = evidence.text("what the log says", [e["text"][:300] for e in killed[:5]], run.where(first["source"], first["at"]))
    facts = Facts(False, "host", step, killed=True)
    title = f"A process was killed after step {step} (SIGKILL), and no line says by whom: the kernel for want of memory, a scheduler or a person"
    return evidence.found(facts, title, (step, None), "info", shown, key=f"{step}-killed", times=(first["time"], None))


def _step(run: Run, event: dict[str, Any]) -> int | None:
    """The last step done: an error that ended the run comes after all that was logged, whatever the console printed last."""
    done = reach.last(run)
    if event["step"] is None:
        return done
    ended = event["attempt"] in (None, len(run.attempts) - 1) and status(run) == "crashed"
    return max(event["step"], done) if ended and done is not None else int(event["step"])


def smallest_effect(run: Run) -> str:
    logged = series(run, "mem.alloc") is not None
    return f"a steady growth of {memory_kinds.GROWTH:.0%} over the last half of the run" if logged else "a line that speaks of it"
