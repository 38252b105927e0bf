"""Interruptions, lost steps, goodput and the cadence of checkpoints."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
from runs import START, case, loss, read, top, write

from forensics.run import goodput
from reports import costs


def interrupted(folder: Path, save_seconds: float = 0.0) -> Path:
    """Saves every 50 steps, stops after 180, comes back 600 s later from step 150, and so does steps 151 to 180 twice."""
    folder.mkdir()
    now, rows, log = START, [], []
    for attempt, steps in enumerate((range(1, 181), range(151, 401))):
        now += 600 * attempt
        for s in steps:
            now += 1.0 + 0.001 * ((s * 7919) % 13)
            rows.append({"step": s, "loss": loss(s), "time": now})
            if s % 50 == 0:
                now += save_seconds
                log.append(f"saved checkpoints/step_{s}.pt")
    (folder / "metrics.jsonl").write_text("".join(json.dumps(r) + "\n" for r in rows))
    (folder / "train.log").write_text("\n".join(log) + "\n")
    (folder / "config.json").write_text(json.dumps({"max_steps": 400}))
    return folder


def test_lost_steps_and_shares(tmp_path: Path) -> None:
    found = goodput.measure(read(interrupted(tmp_path / "r")))
    assert (found["interruptions"], found["steps_done"], found["steps_lost"]) == (1, 430, 30)
    assert found["share_steps"] == pytest.approx(400 / 430, abs=1e-4)
    assert found["seconds_down"] == pytest.approx(601, abs=1)
    assert found["share_time"] == pytest.approx(400 / (430 + 600), abs=0.01)
    assert found["checkpoint_every_steps"] == 50
    assert found["save_seconds"] is None


def test_the_best_interval_is_that_of_young(tmp_path: Path) -> None:
    found = goodput.measure(read(interrupted(tmp_path / "r", save_seconds=4.0)))
    assert found["save_seconds"] == pytest.approx(4, abs=0.2)
    assert found["best_every_seconds"] == pytest.approx(math.sqrt(2 * found["save_seconds"] * found["seconds_between"]))
    assert found["best_every_steps"] == round(found["best_every_seconds"] / (found["seconds_running"] / 430))


def test_case_page_and_advice_say_it(tmp_path: Path) -> None:
    got = case(interrupted(tmp_path / "r", save_seconds=4.0))
    assert top(got)["id"] == "crash_and_restart"
    assert any("Young" in text for text in top(got)["interventions"])
    assert got["run"]["goodput"]["steps_lost"] == 30
    line = costs.goodput(got)
    assert line.startswith("93 % of the steps useful; 1 interruption, down for 10 minutes")
    assert "saved every 50 steps" in line


def test_a_run_without_interruption_has_no_line(tmp_path: Path) -> None:
    got = case(write(tmp_path / "r", config={"max_steps": 300}))
    assert got["run"]["goodput"]["interruptions"] == 0
    assert got["run"]["goodput"]["share_steps"] == 1
    assert costs.goodput(got) == ""


@pytest.mark.parametrize("damaged", [None, "x", {"interruptions": "many"}, {"interruptions": 2, "share_steps": None}])
def test_the_line_stands_a_damaged_case(damaged: Any) -> None:
    assert isinstance(costs.goodput({"run": {"goodput": damaged}}), str)


def test_how_many_processes_trained_is_told_or_left_open(tmp_path: Path) -> None:
    folder = interrupted(tmp_path / "r")
    assert goodput.measure(read(folder))["processes"] is None
    (folder / "config.json").write_text(json.dumps({"max_steps": 400, "world_size": 16}))
    found = goodput.measure(read(folder))
    assert found["processes"] == 16


@pytest.mark.parametrize(("epoch", "lost"), [(6, 0), (1, 157)])
def test_steps_of_a_later_epoch_are_done_once(tmp_path: Path, epoch: int, lost: int) -> None:
    """A loop that works out its step from the batches of an epoch (30, then 4 of larger ones) repeats nothing where its epoch goes on."""
    rows = [{"step": s, "epoch": (s - 1) // 30, "loss": 2 - s / 200, "time": START + s} for s in range(1, 181)]
    rows += [{"step": s, "epoch": epoch + s // 4 - 6, "loss": 1 - s / 200, "time": START + 300 + s} for s in range(24, 49)]
    (tmp_path / "log.jsonl").write_text("".join(json.dumps(r) + "\n" for r in rows))
    run = read(tmp_path)
    assert [a["steps"] for a in run.attempts] == [[1, 180], [24, 48]]
    assert goodput.measure(run)["steps_lost"] == lost


def test_an_epoch_that_is_logged_now_and_then_does_not_tell(tmp_path: Path) -> None:
    """The first epoch of the new attempt stands at a step that the old one never reached."""
    rows = [{"step": s, "loss": 2 - s / 900, "time": START + s} for s in range(1, 455)]
    rows += [{"step": s, "loss": 2 - s / 900, "time": START + 900 + s} for s in range(401, 701)]
    told = [r | ({"epoch": r["step"] / 570} if r["step"] % 200 == 0 else {}) for r in rows]
    (tmp_path / "log.jsonl").write_text("".join(json.dumps(r) + "\n" for r in told))
    assert goodput.measure(read(tmp_path))["steps_lost"] == 54
