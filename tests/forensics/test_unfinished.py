"""Runs that nothing closes: stopped by somebody, silent, hung or cut, and plans that are nearly reached."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from runs import case, console, jsonl, read, write

from forensics.run import how_it_ended
from forensics.run.plan import planned_steps


def test_a_log_that_just_stops_says_so_in_every_verdict(tmp_path: Path) -> None:
    sound = case(console(tmp_path / "a", "Generating samples\n"))
    assert (
        'The log stops after step 96; neither a closing line nor a planned length was logged. Its last line: "Generating samples".'
        in (sound["answer"])
    )
    assert sound["run"]["attempts"][-1]["why"] == "the log just ends and no reason is logged: Generating samples"
    cut = case(write(tmp_path / "b", 97, config={"max_steps": 9000}))
    assert "The log just stops after step 97 of 9000 planned" in cut["answer"]
    bad = case(write(tmp_path / "c", 97, config={"max_steps": 9000}, grad_norm=lambda i: float("nan") if i > 60 else 1.0))
    assert bad["verdict"] == "unhealthy" and "The log just stops after step 97 of 9000 planned" in bad["answer"]


def test_a_last_planned_epoch_as_long_as_the_others_is_the_end(tmp_path: Path) -> None:
    lines = [f"(epoch: {e}, iters: {i}, time: 0.1) loss: {3 / (e + i / 100):.4f}\n" for e in range(1, 6) for i in (100, 200, 300)]
    folder = console(tmp_path / "r")
    (folder / "config.yaml").write_text("n_epochs: 5\n")
    (folder / "train.log").write_text("".join(lines))
    ended = how_it_ended.ending(read(folder))
    assert (ended.kind, ended.how, ended.says) == ("finished", "plan", "epoch 5 of 5 planned, as long as those before it")
    (folder / "train.log").write_text("".join(lines[:-1]))
    assert how_it_ended.ending(read(folder)).kind != "finished"


@pytest.mark.parametrize(
    ("until", "kind", "front"), [(150, "cut", ""), (190, "unknown", ""), (200, "unknown", ""), (200, "unknown", "[11/30 22:11:05 swin]: ")]
)
def test_a_log_that_ends_within_an_epoch_is_cut(tmp_path: Path, until: int, kind: str, front: str) -> None:
    every = 1 if front else 10  # a day is further from the end of its month than a line from the next
    place = ((e, i) for e in range(3) for i in range(every, 201, every) if (e, i) <= (2, until))
    folder = console(tmp_path / "r")
    (folder / "train.log").write_text(
        "".join(f"{front}Epoch: [{e}][{i}/200] Time 3.0s Loss {3 / (e + 1 + i / 200):.4f}\n" for e, i in place)
    )
    assert how_it_ended.ending(read(folder)).kind == kind


def test_a_stop_from_outside_is_named_and_judges_nothing(tmp_path: Path) -> None:
    got = case(console(tmp_path / "r", "slurmstepd: error: *** JOB 12 ON n1 CANCELLED AT 2026-03-04T05:06:07 DUE TO TIME LIMIT ***\n"))
    assert got["verdict"] == "inconclusive" and "DUE TO TIME LIMIT" in got["answer"]
    assert got["hypotheses"][0]["id"] == "stopped_from_outside"
    assert {f["severity"] for f in got["findings"] if f["kind"] == "ending"} == {"info"}


def test_a_job_that_is_cancelled_may_write_on_until_it_is_killed(tmp_path: Path) -> None:
    told = "slurmstepd: error: *** JOB 7 ON n1 CANCELLED AT 2026-06-06T11:58:22 ***\n"
    for more, kind in ((2, "scheduler"), (30, "unknown")):
        folder = console(tmp_path / f"r{more}", told + "".join(f"step {97 + i}: loss 1.5 lr 1.0e-3\n" for i in range(more)))
        assert how_it_ended.ending(read(folder)).kind == kind


def test_who_stopped_a_run_is_the_cause_where_nothing_else_can_be_told(tmp_path: Path) -> None:
    """The log names it, so that nothing holds it down; on a healthy run it stands at half."""
    line = "slurmstepd: error: *** JOB 12 ON n1 CANCELLED AT 2026-03-04T05:06:07 DUE TO TIME LIMIT ***\n"
    got = case(console(tmp_path / "r", line, steps=2))
    assert got["verdict"] == "inconclusive"
    assert got["hypotheses"][0]["id"] == "stopped_from_outside" and got["hypotheses"][0]["probability"] > 0.5


@pytest.mark.parametrize(("rewarded", "rounds", "kind"), [(True, 489, "finished"), (True, 470, "unknown"), (False, 489, "unknown")])
def test_rollouts_go_past_the_round_step_that_was_planned(tmp_path: Path, rewarded: bool, rounds: int, kind: str) -> None:
    name = "rollout/ep_rew_mean" if rewarded else "val_acc"
    rows = [{"step": 2048 * i, "train/loss": 2 - i / 300, name: i / 500} for i in range(1, rounds + 1)]
    assert how_it_ended.ending(read(jsonl(tmp_path / "r", rows))).kind == kind


def test_a_process_that_looks_at_a_finished_log_a_day_later_is_no_hang(tmp_path: Path) -> None:
    lines = [f"2026-03-04 05:{i // 6:02}:{i % 6}0,000 INFO: Epoch {i}: Train Loss: {2 - i / 100:.4f}\n" for i in range(1, 41)]
    for saved, kind in (("2026-03-04 05:06:45,000 INFO: Model saved: out_final.pth\n", "finished"), ("", "hang")):
        folder = tmp_path / ((saved and "a") or "b")
        folder.mkdir()
        (folder / "train.log").write_text(
            "".join(lines) + saved + "2026-03-05 05:06:45,000 INFO: Loaded with missing keys: [], unexpected keys: []\n"
        )
        assert how_it_ended.ending(read(folder)).kind == kind


@pytest.mark.parametrize(("tag", "planned"), [("episode_reward", 9000), ("train/loss", None)])
def test_timesteps_plan_a_run_that_logs_rewards_and_no_diffusion(tmp_path: Path, tag: str, planned: int | None) -> None:
    folder = jsonl(tmp_path, [{"step": i * 100, tag: 2 - i / 100} for i in range(1, 60)])
    (folder / "config.json").write_text(json.dumps({"timesteps": 9000}))
    assert planned_steps(read(folder)) == planned


@pytest.mark.parametrize(("tag", "kind"), [("episode_reward", "finished"), ("train/loss", "cut")])
def test_a_log_by_episodes_may_stop_within_its_last_distances_of_the_plan(tmp_path: Path, tag: str, kind: str) -> None:
    steps = [100 * i for i in range(1, 60)] + [6200, 7500, 8600, 9800]  # a line for so many episodes, which grow longer
    folder = jsonl(tmp_path, [{"step": n, tag: 2 + n / 1e4} for n in steps])
    (folder / "config.json").write_text(json.dumps({"max_steps": 10900}))
    assert how_it_ended.ending(read(folder)).kind == kind


@pytest.mark.parametrize(
    ("waits", "behind", "status"),
    [
        (range(60, 1300, 120), "", "hung"),
        (range(10, 60, 20), "", "unknown"),
        (range(60, 1300, 120), "[08:40:00] step 31 loss 1.2\n", "unknown"),
    ],
)
def test_a_wait_that_goes_on_by_a_clock_without_a_day(waits: range, behind: str, status: str, tmp_path: Path) -> None:
    def line(seconds: int, text: str) -> str:
        return f"[08:{seconds // 60:02d}:{seconds % 60:02d}] {text}\n"

    steps = "".join(line(6 * i, f"step {i} loss {3 / i + 1:.3f}") for i in range(1, 31))
    lines = "".join(line(180 + s, "round 30: waiting, 7 of 8 updates received") for s in waits)
    (tmp_path / "server.log").write_text(steps + lines + behind)
    assert how_it_ended.ending(read(tmp_path)).status == status
