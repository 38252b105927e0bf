"""A log whose lines count in two ways, beside an event file that goes by the second."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import parsers
from tests.parsers.test_speed_paths import events

UPDATES, EACH = range(1, 31), 768
CALLED = ["iter {u}/30 step {s}", "iter {u} env_steps {s}", "update={u} timesteps={s}"]


def reward(update: int) -> float:
    return 50 - 40 / update + update % 3


def read(folder: Path, called: str, *, factor: float = 1.0) -> list[Any]:
    lines = [f"{called.format(u=u, s=u * EACH)} ep_ret {reward(u):.2f} kl 0.01{u % 7}" for u in UPDATES]
    (folder / "train.log").write_text("\n".join(lines) + "\n")
    (folder / "tb").mkdir()
    events(folder / "tb" / "events.out.tfevents.1.host", [(u * EACH, "rollout/ep_ret", factor * reward(u)) for u in UPDATES])
    return parsers.read_all(folder)


@pytest.mark.parametrize("called", CALLED)
def test_they_are_one_run_on_the_axis_of_the_second(called: str, tmp_path: Path) -> None:
    (run,) = read(tmp_path, called)
    told = {r["step"] for r in run.tables["metrics"].to_pylist() if r["name"] == "rl.reward"}
    assert told == {u * EACH for u in UPDATES}
    assert len(run.attempts) == 1
    assert [r["value"] for r in run.tables["config"].to_pylist() if r["key"] == "total_steps"] == (
        [str(30 * EACH)] if "/30" in called else []
    )
    assert next(s.note for s in run.sources if s.path == "train.log").startswith("steps by the second count")


def test_a_file_with_other_values_moves_nothing(tmp_path: Path) -> None:
    steps = [
        r["step"] for run in read(tmp_path, CALLED[0], factor=3.0) for r in run.tables["metrics"].to_pylist() if r["source"] == "train.log"
    ]
    assert set(steps) == set(UPDATES)


def test_epochs_that_go_up_beside_any_axis_move_nothing(tmp_path: Path) -> None:
    """The samples of a JSON log meet the steps of a console at few places, where the epoch is nearly the same."""
    rows = [{"step": s, "epoch": s * 12 // 4000, "loss": 3 / s, "samples": 12 * s} for s in range(5, 905, 5)]
    (tmp_path / "train.jsonl").write_text("".join(json.dumps(r) + "\n" for r in rows))
    lines = [f"step {s} epoch {s * 12 // 4000} loss {3 / s:.4f}" for s in range(50, 950, 50)]
    (tmp_path / "train.log").write_text("\n".join(lines) + "\n")
    (run,) = parsers.read_all(tmp_path)
    assert not any("second count" in s.note for s in run.sources)
    assert {r["step"] for r in run.tables["metrics"].to_pylist()} <= {*range(5, 905, 5)}


def test_a_log_alone_goes_by_the_first(tmp_path: Path) -> None:
    (tmp_path / "train.log").write_text("".join(f"iter {u}/30 step {u * EACH} ep_ret {reward(u):.2f}\n" for u in UPDATES))
    (run,) = parsers.read_all(tmp_path)
    assert {(r["tag"], r["step"]) for r in run.tables["metrics"].to_pylist()} >= {("step", u) for u in UPDATES}
