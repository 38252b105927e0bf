"""The batches that the first cause blames: only where it blames data, and a file or the loader names the batch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from forensics.batches import step_to_samples
from forensics.batches.recorded import shard_ends
from forensics.case import Finding, Hypothesis
from forensics.causes.files import causes
from forensics.detectors import loss_spike, nonfinite, zero_loss
from forensics.run.series import series
from parsers.tables import Run

NEAR = 3  # steps by which a stretch may miss the ends of the shard that it is: losses are logged every few steps
MOST = 32  # batches named at most: a longer stretch is named by its ends and steps between


def culprits(
    run: Run, hypotheses: Sequence[Hypothesis], findings: Sequence[Finding], verdict: str = "unhealthy"
) -> tuple[dict[str, Any], ...]:
    """``{"step", "samples", "shard", "how", "confidence"}``; the confidence is the cause's, times that of the link.

    The cause must be ahead of every other, `unknown` included, and the run unhealthy: a ripple in a sound run accuses nobody.
    """
    best = hypotheses[0] if hypotheses else None
    if verdict != "unhealthy" or best is None or not (how := causes()[best.id].blames if best.id in causes() else "") or _tied(hypotheses):
        return ()
    cited = {f for c in best.clues for f in c.findings}
    named: list[tuple[int, int]] = []
    for f in findings:
        if f.id in cited:
            named += _blamed(run, f, how)
    named = list(dict.fromkeys(named))
    if len(named) > MOST:
        named = [named[i] for i in np.unique(np.linspace(0, len(named) - 1, MOST).astype(int))]
    found = [(b, step_to_samples.batch(run, b[1], b[0])) for b in named]
    return tuple(x | {"confidence": round(best.probability * x["confidence"], 2)} for _, x in found if x is not None)


def _blamed(run: Run, f: Finding, how: str) -> list[tuple[int, int]]:
    """(attempt, step) of the batches that a finding points at."""
    facts = f.facts
    if isinstance(facts, loss_spike.Facts) and how == "peak":
        return [(facts.attempt, s) for s in range(facts.start, facts.peak + 1)]
    if isinstance(facts, loss_spike.Facts) and how == "stretch":
        start, end = _stretch(run, facts)
        return [(facts.attempt, s) for s in range(start, end + 1)]
    if isinstance(facts, nonfinite.Facts) and how == "first" and facts.first is not None:
        return [(facts.attempt or 0, facts.first)]
    if isinstance(facts, zero_loss.Facts) and how == "stretch" and not facts.from_start:
        return [(0, s) for s in range(f.first_step or 0, (f.last_step or 0) + 1)]
    return []


def _stretch(run: Run, f: loss_spike.Facts) -> tuple[int, int]:
    """First and last step of a stretch above half its height: what comes then is the recovery, whose batches are sound."""
    s = series(run, f.metric)
    end = f.end - 1 if f.end else f.peak
    if s is not None:
        rows = np.flatnonzero((s.attempt == f.attempt) & (s.step >= f.start) & (s.step <= end))
        above = s.value[rows] - f.level
        high = rows[above > 0.5 * np.percentile(above, 80)] if len(rows) else rows
        end = int(s.step[high[-1]]) if len(high) else end
    shard = shard_ends(run, f.start)
    if shard is not None and abs(shard[1] - f.start) <= NEAR and abs(shard[2] - end) <= NEAR + (end - f.start) // 10:
        return shard[1], shard[2]  # the stretch is that shard
    return f.start, end


def _tied(hypotheses: Sequence[Hypothesis]) -> bool:
    """Whether `unknown` is as probable as the first: then nothing is known."""
    unknown = next((h for h in hypotheses if h.id == "unknown"), None)
    return unknown is not None and hypotheses[0].probability < unknown.probability
