"""Loss spike

What it sees
    The training loss leaves its level upwards and comes back fast, slowly, or not at all.

How it decides
    ``forensics.excursions`` finds upward departures of at least 6 local sigmas and 1 % on the log scale. A spike is *fast*
    when the median of three values is back within 2 sigma after at most the largest of 0.4 % of the planned steps (of the
    steps covered, where no plan is known), 3 logging intervals and 20 steps; *slow* when later; *non_recovering* when the
    log ends first. One that a restart or the end of the log cuts off soon after it began is *censored*: its class is open.

Cannot tell
    Without a training loss, or with fewer than ten values of it. A spike shorter than the logging interval is averaged
    away or fell between two points: the check says the smallest one this log could have shown.

Folklore
    "Fast recovering, slow recovering, not fully recovering": S. Bekman, Machine Learning Engineering Open Book,
    training-loss-patterns. The cut at 0.4 % separates the cases whose lengths the book's logbooks record.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from forensics import evidence, excursions
from forensics.case import Finding
from forensics.errors import CannotTell
from forensics.lives import planned_steps
from forensics.series import Series, series
from parsers.tables import Run

NEEDS = ["loss.train|loss.eval"]
FAST_SHARE, FAST_INTERVALS, FAST_STEPS = 0.004, 3, 20


def detect(run: Run) -> Iterator[Finding]:
    s = loss_of(run)
    if len(s) < excursions.WARMUP + 2:
        raise CannotTell(f"only {len(s)} values of {s.tag} were logged")
    limit = fast_limit(run, s)
    for attempt in np.unique(s.attempt):
        rows = np.flatnonzero(s.attempt == attempt)
        for e in excursions.find(s.value[rows]):
            yield _finding(run, s, rows, e, limit, int(attempt))


def smallest_effect(run: Run) -> str:
    s = loss_of(run)
    share = excursions.smallest_visible(s.value[s.alive])
    if share is None:
        return ""
    if s.interval > 1 and s.smoothing not in ("", "none"):
        return f"+{share:.1%} in one logged value ({s.smoothing} over {s.interval} steps: +{share * s.interval:.0%} in one step)"
    seen = f", if it falls on a logged step (every {s.interval})" if s.interval > 1 else ""
    return f"+{share:.1%} in one value{seen}"


def loss_of(run: Run) -> Series:
    """The loss to look at: the training loss, else what is there."""
    s = series(run, "loss.train") or series(run, "loss.eval")
    if s is None:
        raise CannotTell("no loss was logged with a step")
    return s


def fast_limit(run: Run, s: Series) -> float:
    """Steps within which a recovery counts as fast."""
    planned = planned_steps(run) or int(s.step.max() - s.step.min())
    return max(FAST_SHARE * planned, FAST_INTERVALS * s.interval, FAST_STEPS)


def _finding(run: Run, s: Series, rows: Any, e: excursions.Excursion, limit: float, attempt: int) -> Finding:
    start, peak = int(s.step[rows[e.start]]), int(s.step[rows[e.peak]])
    end = int(s.step[rows[e.end]]) if e.end is not None else None
    last = int(s.step[rows[-1]])
    kind, odds, censored = classify(start, end, last, limit, ended_early=attempt < int(s.attempt.max()))
    top = float(s.value[rows[e.peak]])
    back = f", back after {end - start} steps" if end is not None else ", and does not come back in this log"
    title = f"Loss jumps from {e.level:.4g} to {top:.4g} at step {peak}{back}"
    facts = {
        "metric": s.name, "start": start, "peak": peak, "end": end, "class": kind, "class_probability": odds, "censored": censored,
        "height": top - e.level, "level": e.level, "top": top, "noise_sigmas": e.sigmas, "attempt": attempt, "cost_steps": _cost(s, rows, e),
        "alive": bool(s.alive[rows[e.peak]]), "values": int((e.end or len(rows)) - e.start),
    }  # fmt: skip
    shown = evidence.window(
        s, start, end if end is not None else last, title=f"{s.tag} around step {peak}", where=s.place(run, rows[e.peak]),
        marks=[{"step": peak, "label": f"step {peak}: {top:.4g}", "kind": kind}],
        bands=[{"from": start, "to": end if end is not None else last, "kind": kind}],
    )  # fmt: skip
    severity = "warning" if kind == "fast" else "critical" if kind == "non_recovering" else "warning"
    times = (s.clock(rows[e.start]), s.clock(rows[e.end] if e.end is not None else rows[-1]))
    return Finding(f"loss_spike-{peak}" + (f"-attempt{attempt}" if attempt else ""), "loss_spike", title, start,
                   end if end is not None else last, severity, (shown,), facts, times)  # fmt: skip


def classify(start: int, end: int | None, last: int, limit: float, *, ended_early: bool) -> tuple[str, dict[str, float], bool]:
    """(class, probability of each class, censored). Near the limit between fast and slow both are likely."""
    if end is None:
        censored = last - start <= 2 * limit
        share = 0.5 if censored else 0.9
        return "non_recovering", {"fast": (1 - share) / 2, "slow": (1 - share) / 2, "non_recovering": share}, censored or ended_early
    fast = 1 / (1 + ((end - start) / limit) ** 6)
    return ("fast" if end - start <= limit else "slow"), {"fast": fast, "slow": 1 - fast, "non_recovering": 0.0}, False


def _cost(s: Series, rows: Any, e: excursions.Excursion) -> int:
    """Steps until the loss has regained its level from before the spike."""
    after = s.value[rows[e.start :]]
    regained = np.flatnonzero(excursions.rolling_median(after, 3) <= e.level)
    regained = regained[regained > e.peak - e.start]
    stop = e.start + int(regained[0]) if len(regained) else len(rows) - 1
    return int(s.step[rows[stop]] - s.step[rows[e.start]])
