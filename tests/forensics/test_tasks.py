"""A policy that forgets one of several tasks, whatever its returns are called."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from runs import only, read, write

from forensics.detectors import dataset_loss
from forensics.errors import CannotTell
from tests.forensics.test_eval_detectors import every


def learnt(i: int, since: int, until: int = 10**6) -> float:
    """What a policy gets in one of two tasks, of which it is taught one behind the other."""
    return 9 + 491 * (1 - math.exp(-max(min(i, until) - since, 0) / 60)) * math.exp(-max(i - until, 0) / 15)


@pytest.mark.parametrize(
    ("first", "second", "told"),
    [
        ("eval/rig_a", "eval/rig_b", True),
        ("eval/return_base", "eval/return_short_rev", True),
        ("eval/reward_mean", "eval/reward_std", False),  # one measure and its spread
        ("eval/steps_up", "eval/torque", False),  # two measures
        ("eval/torque", "test/torque", False),  # one thing, on two sets
    ],
)
def test_a_task_that_was_known_and_is_gone_whatever_measures_it(first: str, second: str, told: bool, tmp_path: Path) -> None:
    more = {
        first: every(50, lambda i: learnt(i, 0, 600)),
        second: every(50, lambda i: learnt(i, 600)),
        "rollout/ep_rew_mean": lambda i: 20 + i / 100,
    }
    run = read(write(tmp_path / "r", 1200, **more))  # type: ignore[arg-type]
    if not told:
        with pytest.raises(CannotTell):
            list(dataset_loss.detect(run))
        return
    found = only(list(dataset_loss.detect(run)))
    assert (found.facts.tag, found.severity) == (first, "warning")
    assert found.title == f"{first} falls from 500 at step 600 to 9 while the other one improves many times over"
