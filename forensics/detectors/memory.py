"""Memory

What it sees
    The run ends for want of memory, or its memory grows and grows.

How it decides
    Lines that say so (CUDA out of memory, oom-kill, cannot allocate). Growth: the logged memory rises over the last half of
    the run by 15 % or more, and more than nine of ten neighbouring stretches rise.

Cannot tell
    Where no memory was logged and no line speaks of it.

Folklore
    A retained graph grows a little every step; one long batch or an evaluation needs more at once; fragmentation shows as
    reserved far above allocated.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from forensics import evidence
from forensics.case import Finding
from forensics.lives import events, last_step
from forensics.series import series
from parsers.tables import Run

NEEDS: list[str] = []
GROWTH, RISING = 0.15, 0.9


def detect(run: Run) -> Iterator[Finding]:
    said = [e for e in events(run, "oom") if e["level"] == "error"]
    if said:
        first = said[0]
        step = first["step"] if first["step"] is not None else last_step(run)
        lines = [e["text"][:300] for e in said[:5]]
        shown = evidence.text("what the log says", lines, run.where(first["source"], first["at"]))
        yield Finding(
            f"memory-{step}-said",
            "memory",
            f"Out of memory after step {step}: {first['text'].splitlines()[-1][:140]}",
            step,
            None,
            "critical",
            (shown,),
            {"said": True, "step": step},
            (first["time"], None),
        )
    for name in ("mem.alloc", "mem.reserved"):
        s = series(run, name)
        if s is None or len(s) < 40:
            continue
        rows = np.flatnonzero(s.alive & np.isfinite(s.value))
        half = rows[len(rows) // 2 :]
        parts = [float(np.median(p)) for p in np.array_split(s.value[half], 12)]
        growth = parts[-1] / parts[0] - 1 if parts[0] > 0 else 0.0
        if growth >= GROWTH and float(np.mean(np.diff(parts) > 0)) >= RISING:
            step, last = int(s.step[half[0]]), int(s.step[half[-1]])
            shown = evidence.window(s, int(s.step[rows[0]]), last, title=s.tag, where=s.place(run, half[0]), margin=0)
            yield Finding(
                f"memory-{step}",
                "memory",
                f"Memory grows by {growth:.0%} from step {step} to {last} and is still growing",
                step,
                last,
                "warning",
                (shown,),
                {"said": False, "growth": growth, "step": step},
                (s.clock(half[0]), s.clock(half[-1])),
            )
            return


def smallest_effect(run: Run) -> str:
    return f"a growth of {GROWTH:.0%} over half the run" if series(run, "mem.alloc") else "a line that speaks of it"
