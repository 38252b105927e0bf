"""Resume break

What it sees
    The loss after a restart does not go on where it stood: a bump, or a level that is too low.

How it decides
    Compares the first values of the new life with those of the old one at the same steps; where no step was logged twice,
    with the last values before (downwards: with the line through them). A difference of more than five standard errors of the local noise and 1 % is a break:
    upwards, with the steps it takes to decay, downwards (data seen before), or none.

Cannot tell
    With fewer than ten values on either side of the restart.

Folklore
    "Training resumes with increased loss despite checkpoint loading" (transformers#33336): moments lost. "Loss is lower
    upon resumption because it repeats samples" (llm-foundry#1277).
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from forensics import evidence
from forensics.case import Finding
from forensics.errors import CannotTell
from forensics.run.series import Series, series
from forensics.spikes import excursions
from parsers.tables import Run

NEEDS = ["loss.train"]
LEAST, AHEAD, ERRORS, SHARE = 10, 20, 5.0, 0.01


def detect(run: Run) -> Iterator[Finding]:
    s = series(run, "loss.train")
    assert s is not None
    judged = False
    for before, after in zip(run.attempts, run.attempts[1:], strict=False):
        old = np.flatnonzero((s.attempt == before["index"]) & np.isfinite(s.value))
        new = np.flatnonzero((s.attempt == after["index"]) & np.isfinite(s.value))
        if len(old) >= LEAST and len(new) >= LEAST:
            judged = True
            yield from _break(run, s, old, new, after["index"])
    if len(run.attempts) > 1 and not judged:
        raise CannotTell(f"fewer than {LEAST} values on one side of the restart")


def _break(run: Run, s: Series, old: np.ndarray, new: np.ndarray, attempt: int) -> Iterator[Finding]:
    begin = int(s.step[new[0]])
    y = np.log(s.value) if (s.value[np.r_[old, new]] > 0).all() else s.value / max(float(np.median(np.abs(s.value[old]))), 1e-12)
    twice, i, j = np.intersect1d(s.step[old], s.step[new], return_indices=True)
    identical = len(twice) >= 5 and bool(np.isclose(s.value[old][i], s.value[new][j], rtol=1e-5).mean() > 0.9)
    noise = float(np.median(excursions.local_noise(y[old])))
    kept = old[s.step[old] < begin][-AHEAD:]
    if len(twice) >= LEAST:
        gap = y[new][j][:AHEAD] - y[old][i][:AHEAD]
    elif len(kept) >= LEAST:
        gap = y[new][:AHEAD] - np.median(y[kept])
    else:
        return
    few = max(len(gap) // 4, 3)
    height = float(np.median(gap[:few]))
    if height < 0 and len(twice) < LEAST:
        # a loss that was falling goes on falling: only what lies below its own trend is a break
        trend = np.polyfit(s.step[kept], y[kept], 1)
        height = min(max(height, float(np.median(y[new][:few] - np.polyval(trend, s.step[new][:few])))), 0.0)
    error = noise * 1.25 / np.sqrt(max(len(gap) // 4, 3))
    if identical or abs(height) < ERRORS * error or abs(height) < SHARE:
        return
    level = float(np.median(y[kept])) if len(kept) else float(y[old][i][0])
    back = np.flatnonzero(excursions.rolling_median(y[new], 5) <= level + 2 * noise)
    length = int(s.step[new[int(back[0])]] - begin) if len(back) else None
    way = "above" if height > 0 else "below"
    lasts = f" and is back after {length} steps" if length and height > 0 else ""
    title = f"After the restart at step {begin} the loss is {abs(np.expm1(height)):.1%} {way} where it was{lasts}"
    facts = {
        "step": begin,
        "height": float(np.expm1(height)),
        "sigmas": abs(height) / noise if noise else None,
        "length": length,
        "up": height > 0,
        "compared": "steps logged twice" if len(twice) >= LEAST else "values before",
        "attempt": attempt,
    }
    shown = evidence.window(
        s,
        begin,
        begin + (length or AHEAD * s.interval),
        title="loss across the restart",
        where=s.place(run, new[0]),
        marks=[{"step": begin, "label": "restart", "kind": "restart"}],
    )
    yield Finding(
        f"resume_break-{begin}",
        "resume_break",
        title,
        begin,
        begin + (length or 0),
        "warning" if height > 0 else "info",  # lower is no harm; where samples come again, repeated_data says so
        (shown,),
        facts,
        (s.clock(old[-1]), s.clock(new[0])),
    )


def smallest_effect(run: Run) -> str:
    return "a change of 1 % and five standard errors" if len(run.attempts) > 1 else "no restart to judge"
