"""Whether a run is worth starting again, where little is known of its end."""

from __future__ import annotations

from typing import Any

import pytest

from forensics.case_parts import run_again

RUN: dict[str, Any] = {"again": {"lasting": False, "saved": False}, "last_healthy_checkpoint": None, "checkpoints": None}


@pytest.mark.parametrize(
    ("verdict", "status", "kind", "told"),
    [
        ("inconclusive", "stopped", "scheduler", (None, "why it ended is open")),  # nothing is known that could be done first
        ("inconclusive", "stopped", "interrupt", (None, "stopped by hand: its owner knows why")),
        ("inconclusive", "unknown", "cut", (None, run_again.NOT_OURS["cut"])),
        ("healthy", "finished", "finished", ("no: finished and healthy", "")),
        ("unhealthy", "crashed", "exception", (None, "its cause is open")),
    ],
)
def test_without_a_cause_or_an_action(verdict: str, status: str, kind: str, told: tuple[str | None, str]) -> None:
    assert run_again._says(verdict, RUN | {"status": status, "ending": {"kind": kind}}, (), "") == told
