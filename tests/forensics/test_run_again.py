"""Whether a run is worth starting again, where little is known of its end."""

from __future__ import annotations

from typing import Any

import pytest

from forensics.case_parts import run_again

RUN: dict[str, Any] = {"again": {"lasting": False, "saved": False}, "last_healthy_checkpoint": None, "checkpoints": None}


@pytest.mark.parametrize(
    ("status", "kind", "why"),
    [
        ("stopped", "scheduler", "why it ended is open"),
        ("stopped", "interrupt", "stopped by hand: its owner knows why"),
        ("unknown", "cut", "the log just stops: nothing says whether the run went on"),
    ],
)
def test_without_a_cause_nothing_is_said(status: str, kind: str, why: str) -> None:
    told = run_again.ranked_anew("inconclusive", RUN | {"status": status, "ending": {"kind": kind}}, ())
    assert told["says"] is None or told["first"]
    assert told["why"] in (why, "")


def test_no_action_makes_no_sentence() -> None:
    run = RUN | {"status": "stopped", "ending": {"kind": "scheduler"}}
    assert run_again._says("inconclusive", run, (), "") == (None, "why it ended is open")
