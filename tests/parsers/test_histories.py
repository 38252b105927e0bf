"""A file that keeps the history of a run beside a log of its launches: each row is of the launch whose work survived."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

import numpy as np

import parsers
from parsers.runs.equal_values import same_stretch
from tests.parsers.test_launches import attempts, loss, points, write


def printed(steps: Iterable[int]) -> str:
    return "".join(
        f"{{'loss': '{loss(s):.4g}', 'grad_norm': '0.5', 'epoch': '{s / 100:.4g}'}}\n 1%| | {s}/300 [00:01<00:09, 9.99it/s]\n"
        for s in steps
    )


def state(steps: Iterable[int]) -> str:
    history = [{"step": s, "loss": loss(s), "epoch": s / 100} for s in steps]
    return json.dumps({"global_step": history[-1]["step"], "max_steps": 300, "total_flos": 1e9, "log_history": history})


def test_a_restored_history_is_dealt_to_the_launches_of_the_log(tmp_path: Path) -> None:
    text = printed(range(10, 140, 10)) + "Terminated\n" + printed(range(110, 310, 10))
    run = parsers.read(write(tmp_path, run_dot_log=text, trainer_state_dot_json=state(range(10, 310, 10))))
    assert attempts(run) == [[10, 130], [110, 300]]
    table = run.tables["metrics"]
    own = [
        (a, s) for f, a, s in zip(*(table[c].to_pylist() for c in ("source", "attempt", "step")), strict=True) if f == "trainer_state.json"
    ]
    assert {a for a, s in own if s <= 100} == {0} and {a for a, s in own if s > 100} == {1}


def test_a_history_that_goes_on_behind_a_log_of_one_launch_is_one_life(tmp_path: Path) -> None:
    run = parsers.read(write(tmp_path, run_dot_log=printed(range(10, 140, 10)), trainer_state_dot_json=state(range(10, 310, 10))))
    assert attempts(run) == [[10, 300]]


def test_logs_that_begin_at_their_own_intervals_cover_the_same_steps() -> None:
    steps, values = points(loss(s) for s in range(91))
    often, seldom = (steps[2::2], values[2::2]), (steps[10::10], values[10::10])
    assert same_stretch(often, seldom)
    assert not same_stretch(often, (steps[20::10], values[20::10]))  # work that was done again
    assert not same_stretch(often, (seldom[0], np.roll(seldom[1], 1)))
