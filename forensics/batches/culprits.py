"""The batches that the first cause blames: only where it blames data, and a file or the loader names the batch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from forensics.batches import recorded, step_to_samples
from forensics.case import Finding, Hypothesis
from forensics.run.series import series
from parsers.tables import Run

BLAMES_DATA = ("bad_data_batch", "bad_data_pocket", "nan_from_sample", "labels_all_masked")
MOST = 32  # batches named at most: a longer stretch is named by its ends and steps between
NEAR = 3  # steps by which a stretch may miss the ends of the shard that it is


def culprits(
    run: Run, hypotheses: Sequence[Hypothesis], findings: Sequence[Finding], verdict: str = "unhealthy"
) -> tuple[dict[str, Any], ...]:
    """``{"step", "samples", "shard", "how", "confidence"}``; the confidence is the cause's, times that of the link.

    The cause must be ahead of every other, `unknown` included, and the run unhealthy: a ripple in a sound run accuses nobody.
    """
    best = hypotheses[0] if hypotheses else None
    if verdict != "unhealthy" or best is None or best.id not in BLAMES_DATA or _tied(hypotheses):
        return ()
    cited = {f for c in best.clues for f in c.findings}
    named: list[tuple[int, int]] = []
    for f in findings:
        if f.id in cited:
            named += _stretch(run, f, best.id)
    named = list(dict.fromkeys(named))
    if len(named) > MOST:
        named = [named[i] for i in np.unique(np.linspace(0, len(named) - 1, MOST).astype(int))]
    found = [(b, step_to_samples.batch(run, b[1], b[0])) for b in named]
    return tuple(x | {"confidence": round(best.probability * x["confidence"], 2)} for _, x in found if x is not None)


def _tied(hypotheses: Sequence[Hypothesis]) -> bool:
    """Whether `unknown` is as probable as the first: then nothing is known."""
    unknown = next((h for h in hypotheses if h.id == "unknown"), None)
    return unknown is not None and hypotheses[0].probability < unknown.probability


def _stretch(run: Run, f: Finding, cause: str) -> list[tuple[int, int]]:
    """(attempt, step) of the batches that a finding points at."""
    attempt = int(f.facts.get("attempt") or 0)
    if f.kind == "nonfinite" and f.facts.get("first") is not None and cause == "nan_from_sample":
        return [(attempt, f.facts["first"])]
    if f.kind == "zero_loss" and not f.facts.get("from_start") and cause == "labels_all_masked":
        return [(attempt, s) for s in range(f.first_step or 0, (f.last_step or 0) + 1)]
    if f.kind != "loss_spike" or cause not in ("bad_data_batch", "bad_data_pocket"):
        return []
    start, end = f.facts["start"], f.facts["peak"]
    if cause == "bad_data_pocket":
        end = _last_high(run, f)
        shard = recorded.shard_ends(run, start)
        if shard is not None and abs(shard[1] - start) <= NEAR and abs(shard[2] - end) <= NEAR + (end - start) // 10:
            start, end = shard[1], shard[2]  # the stretch is that shard
    return [(attempt, s) for s in range(start, end + 1)]


def _last_high(run: Run, f: Finding) -> int:
    """The last step of a stretch above half its height: what comes then is the recovery, whose batches are sound."""
    s = series(run, f.facts["metric"])
    last = int(f.facts["end"] - 1 if f.facts["end"] else f.facts["peak"])
    if s is None:
        return last
    rows = np.flatnonzero((s.attempt == f.facts.get("attempt", 0)) & (s.step >= f.facts["start"]) & (s.step <= last))
    above = s.value[rows] - f.facts["level"]
    high = rows[above > 0.5 * np.percentile(above, 80)] if len(rows) else rows
    return int(s.step[high[-1]]) if len(high) else last
