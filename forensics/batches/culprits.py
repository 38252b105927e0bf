"""The batches that the first cause blames: only where it blames data, and a file or the loader names the batch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from forensics import rules
from forensics.batches import step_to_samples
from forensics.case import Finding, Hypothesis
from parsers.tables import Run

MOST = 32  # batches named at most: a longer stretch is named by its ends and steps between


def culprits(
    run: Run, hypotheses: Sequence[Hypothesis], findings: Sequence[Finding], verdict: str = "unhealthy"
) -> tuple[dict[str, Any], ...]:
    """``{"step", "samples", "shard", "how", "confidence"}``; the confidence is the cause's, times that of the link.

    The cause must be ahead of every other, `unknown` included, and the run unhealthy: a ripple in a sound run accuses nobody.
    """
    best = hypotheses[0] if hypotheses else None
    if verdict != "unhealthy" or best is None or best.id not in rules.said("blamed") or _tied(hypotheses):
        return ()
    cited = {f for c in best.clues for f in c.findings}
    named: list[tuple[int, int]] = []
    for f in findings:
        if f.id in cited:
            named += rules.said("blamed")[best.id](run, f)
    named = list(dict.fromkeys(named))
    if len(named) > MOST:
        named = [named[i] for i in np.unique(np.linspace(0, len(named) - 1, MOST).astype(int))]
    found = [(b, step_to_samples.batch(run, b[1], b[0])) for b in named]
    return tuple(x | {"confidence": round(best.probability * x["confidence"], 2)} for _, x in found if x is not None)


def _tied(hypotheses: Sequence[Hypothesis]) -> bool:
    """Whether `unknown` is as probable as the first: then nothing is known."""
    unknown = next((h for h in hypotheses if h.id == "unknown"), None)
    return unknown is not None and hypotheses[0].probability < unknown.probability
