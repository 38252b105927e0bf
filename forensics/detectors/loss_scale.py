"""Loss scale

What it sees
    The scaler of half-precision training at work: overflows, skipped steps, a scale that falls and does not recover.

How it decides
    Now and then a skipped step and a halving is routine. It fires when the scale falls by 2^6 or more from its highest value
    and ends there, when it reaches 1 or less, or when more than 5 % of the steps were skipped after the first tenth of
    the run (the search for the first scale skips steps in any healthy run); the last is for information up to a fifth.

Cannot tell
    Where neither scale nor overflows were logged.

Folklore
    BLOOM's team moved from fp16 to bf16 after the 104B runs; a collapsing scale announces the death of a run.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from forensics import evidence
from forensics.case import BaseFacts, Finding
from forensics.run import reach
from forensics.run.endings import events
from forensics.run.inputs import needed
from forensics.run.plan import unit
from forensics.run.series import Floats, series
from parsers.lazy_regex import lazy_re
from parsers.tables import Run

NEEDS = ["loss_scale"]
# unit: six halvings; PyTorch's scaler halves once an overflow and doubles every 2000 steps; not critical (docs/thresholds.md)
FALL = 2.0**6
FLOOR, SKIPPED = 1.0, 0.05  # bound: no scaling is left to take away; a 20th of the steps, 100 times what doubling costs. Not critical
COSTLY = 0.2  # unit: a fifth of the work; blind readers call runs that skip 9 and 12 % healthy
_BASE_2 = lazy_re(r"(?i)(^|[/_.])(lg|log_?2)[/_.]")
SMALLEST_EFFECT = f"a fall by {FALL:g}, or {SKIPPED:.0%} of the steps skipped"


@dataclass(frozen=True)
class Facts(BaseFacts):
    """The scale after the first tenth of the run."""

    top: float
    low: float
    final: float
    skipped: int  # steps
    share: float  # of the steps that were skipped
    collapsed: bool
    first: int  # step from which on it falls
    floor: bool  # it reached 1 or less


def detect(run: Run) -> Iterator[Finding]:
    s = needed(run, "loss_scale")
    keep = np.flatnonzero(s.alive & np.isfinite(s.value) & (s.value > 0))
    if len(keep) < 3:
        return
    x, step = _linear(s.tag, s.value[keep]), s.step[keep]
    settled = step >= step[0] + 0.1 * (step[-1] - step[0])
    if not settled.any():
        return
    top, low, final = float(x[settled].max()), float(x[settled].min()), float(x[-1])
    falls = np.flatnonzero(np.diff(x) < 0) + 1
    late = falls[settled[falls]]
    span = max((reach.last(run) or int(step[-1])) - int(step[0]), 1)
    overflows = [e for e in events(run, "overflow") if e["step"] is None or e["step"] >= step[0] + 0.1 * span]
    skipped = max(len(late), len(overflows), _counted(run, int(step[settled][0])))
    share = skipped / (0.9 * span) if unit(run) != "epoch" else 0.0  # of how many steps is not known
    collapsed = low <= FLOOR < top or final <= top / FALL
    if not collapsed and share < SKIPPED:
        return
    first = int(step[late[0]]) if len(late) else int(step[0])
    again = "falls again and again" if len(late) else "does not give way"
    what = f"falls from {top:g} to {low:g}" if collapsed else f"{again}: {skipped} overflows"
    title = f"Loss scale {what} from step {first} on"
    row = keep[late[0]] if len(late) else keep[0]
    facts = Facts(top, low, final, skipped, share, collapsed, first, low <= FLOOR)
    shown = evidence.window(s, first, int(step[-1]), title=s.tag, where=s.place(run, row), margin=0.3)
    severity = "critical" if collapsed else "warning" if share >= COSTLY else "info"
    times = s.clock(row), s.clock(keep[-1])
    yield evidence.found(facts, title, (first, int(step[-1])), severity, shown, times=times)


def _linear(tag: str, scale: Floats) -> Floats:
    """The scale itself where its logarithm to base 2 was logged, as OpenAI's diffusion trainers do (``lg_loss_scale``)."""
    return np.exp2(np.minimum(scale, 1000.0)) if _BASE_2.search(tag) else scale  # 2^1024 is no double any more


def _counted(run: Run, since: int) -> int:
    """How many updates the program itself says were skipped from a step on, where it counts them up."""
    s = series(run, "skip.count")
    x = s.value[s.usable] if s is not None else np.zeros(0)
    if s is None or len(x) < 3 or (np.diff(x) < 0).any() or (x != np.floor(x)).any():
        return 0
    before = x[s.step[s.usable] < since]
    return int(x[-1] - (before[-1] if len(before) else x[0]))
