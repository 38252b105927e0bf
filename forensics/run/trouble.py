"""Where the trouble of a run begins: its divergence, its grave spikes, and its first value that is not finite and stays so."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from forensics.case import Finding
from forensics.detectors import divergence, loss_spike, nonfinite

NONE = "there is no trouble to set it against: the loss neither diverged, nor jumped, nor stayed NaN"


def trouble(findings: Sequence[Finding[Any]]) -> list[Finding[Any]]:
    """In step order; what only looks like a spike is left out."""
    found = [f for f in findings if f.first_step is not None and _is_trouble(f)]
    return sorted(found, key=lambda f: f.first_step or 0)


def _is_trouble(f: Finding[Any]) -> bool:
    if isinstance(f.facts, loss_spike.Facts):
        return f.severity in ("warning", "critical") and f.facts.class_ != "not_a_spike"
    return isinstance(f.facts, divergence.Facts) or (isinstance(f.facts, nonfinite.Facts) and f.severity == "critical")
