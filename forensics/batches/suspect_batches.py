"""The batches behind the spikes and the first NaN: those that the logged value can speak of, the gravest first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from forensics.batches import recurrence
from forensics.case import Finding
from forensics.detectors import loss_spike, nonfinite
from forensics.findings import findings_of
from forensics.run.series import series
from parsers.tables import Run

SPIKES = 8  # that are looked behind
LONGEST = 64  # batches that one logged value may leave open


@dataclass(frozen=True)
class Suspect:
    attempt: int
    step: int
    finding: str  # id of the finding that points at it


def behind(run: Run, findings: Sequence[Finding]) -> list[Suspect]:
    """Each batch once, of the gravest spike first; the first NaN comes last."""
    s = series(run, "loss.train")
    spikes = sorted(findings_of(findings, loss_spike.Facts), key=lambda f: (f.severity == "info", -min(f.facts.noise_sigmas, 1e9)))
    at = [(f.facts.attempt, f.facts.start, f.id) for f in spikes[:SPIKES]]
    nan = [f for f in findings_of(findings, nonfinite.Facts) if f.facts.first is not None]
    at += [(f.facts.attempt or 0, f.facts.first or 0, f.id) for f in nan[:1]]
    found: dict[tuple[int, int], Suspect] = {}
    for attempt, step, finding in at:
        first, last = recurrence.window(s, step) if s is not None else (step, step)
        for b in range(max(first, last - LONGEST + 1), last + 1):
            found.setdefault((attempt, b), Suspect(attempt, b, finding))
    return list(found.values())
