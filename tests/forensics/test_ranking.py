"""Causes of a run that needs no action stand at or below what the contract allows, all of them together."""

from __future__ import annotations

import pytest

from forensics.case import Clue, Hypothesis
from forensics.ranking import EVEN, HALF, ranked
from forensics.signs.sign import cannot_tell, looks

SILENT = {name: cannot_tell("nothing was logged.") for name in looks()}


def causes_at(**scores: float) -> list[Hypothesis]:
    return [Hypothesis(name, name, (Clue("So much was seen.", score),)) for name, score in scores.items()]


@pytest.mark.parametrize(
    ("scores", "first"),
    [
        ({"batch_size_changed": 13.0, "config_changed": 14.0}, EVEN),
        ({"batch_size_changed": 3.0, "config_changed": 14.0}, EVEN),
        ({"batch_size_changed": 30.0, "config_changed": 30.0, "overfitting": 29.0}, 0.36),
        ({"batch_size_changed": -9.0, "config_changed": -9.0}, 0.4),
    ],
)
def test_no_cause_of_a_healthy_run_wins_what_another_loses(scores: dict[str, float], first: float) -> None:
    found = {h.id: h.probability for h in ranked(causes_at(**scores), SILENT, "healthy")}
    named = [p for name, p in found.items() if name != "unknown"]
    assert max(named) <= min(first, HALF) + 1e-9
    assert sum(found.values()) == pytest.approx(1.0)
    if first == EVEN:
        assert max(named) == pytest.approx(EVEN, abs=1e-4)
