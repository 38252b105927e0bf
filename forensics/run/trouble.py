"""Where the trouble of a run begins: its divergence, its grave spikes, and its first value that is not finite and stays so."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from forensics.case import Finding
from forensics.detectors import divergence, loss_spike, nonfinite
from forensics.findings import GRAVE, findings_of

NONE = "there is no trouble to set it against: the loss neither diverged, nor jumped, nor stayed NaN"


def trouble(findings: Sequence[Finding[Any]]) -> list[Finding[Any]]:
    """In step order; what only looks like a spike is left out."""
    found: list[Finding[Any]] = [
        *findings_of(findings, divergence.Facts),
        *findings_of(findings, loss_spike.Facts, severity=GRAVE),
        *findings_of(findings, nonfinite.Facts, severity=["critical"]),
    ]
    return sorted((f for f in found if f.first_step is not None), key=lambda f: f.first_step or 0)
