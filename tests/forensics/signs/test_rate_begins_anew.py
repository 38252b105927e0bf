"""A rate that begins anew after a restart, and a launch that goes on from weights alone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import forensics
from forensics.detectors import checkpoint_state, lr_schedule
from forensics.pipeline import judge
from forensics.run.series import Floats
from forensics.signs.rate_begins_anew import rate_repeats_after_restart
from forensics.signs.schedule_pace import schedule_runs_slow
from forensics.signs.sign import Symptoms
from tests.forensics.curves import run_of

N = 20
WHOLE = 1e-3 * np.cos(np.pi * np.arange(2 * N) / (5 * N))
AGAIN = np.r_[WHOLE[:N], WHOLE[:N]]


@pytest.mark.parametrize(
    ("rate", "config", "state"),
    [
        (AGAIN, {}, "seen"),
        (WHOLE, {}, "absent"),
        (np.full(2 * N, 1e-3), {}, "absent"),
        (np.r_[WHOLE[:N], 0.1 * WHOLE[:N]], {}, "absent"),  # another stage
        (AGAIN, {"lr_scheduler": "cosine_with_restarts"}, "cannot tell"),
    ],
    ids=["anew", "goes on", "constant", "a tenth", "cycles"],
)
def test_the_first_values_come_again(rate: Floats, config: dict[str, Any], state: str) -> None:
    run = run_of({"lr": rate, "loss.train": np.linspace(3, 2, 2 * N)}, attempts=[0] * N + [1] * N, config=config)
    assert rate_repeats_after_restart(Symptoms(run, ())).state == state


WARMED_UP = np.r_[1.8e-3, np.linspace(3e-3, 0.1e-3, 2 * N - 1)]
LOADED = {"kind": "resume", "text": "resuming from out/checkpoint-20", "level": "info", "attempt": 0, "source": "log.jsonl", "at": 1}


@pytest.mark.parametrize("events", [[LOADED], []])
def test_a_rate_that_warms_up_again_within_one_log_is_reset_though_no_value_of_it_jumps(events: list[Any]) -> None:
    """The launch goes on at the very step of its checkpoint, so that no step tells the restart, and from half of the peak the rate goes to where the
    warmup stands at its first row."""
    run = run_of({"lr": np.r_[WARMED_UP[:N], WARMED_UP[:N]], "loss.train": np.linspace(3, 2, 2 * N)}, events=events)
    (found,) = lr_schedule.detect(run)
    assert (found.facts.at_resume, found.first_step) == (True, N)
    assert "begins anew within the run" in schedule_runs_slow(Symptoms(run, ())).text
    assert not list(lr_schedule.detect(run_of({"lr": WARMED_UP})))


def test_three_jumps_are_no_cycle_by_their_number() -> None:
    """Restarts every 100 steps, and a rate that somebody multiplied by forty in between."""
    cycle = 1e-3 * (1 + np.cos(np.pi * np.arange(100) / 100)) / 2 + 1e-5
    rate = np.r_[cycle, cycle, cycle]
    assert not list(lr_schedule.detect(run_of({"lr": rate})))
    rate[170:] *= 40
    assert 170 in [f.first_step for f in lr_schedule.detect(run_of({"lr": rate}))]


@pytest.mark.parametrize("steps", [[*range(N), *range(N)], None])
def test_a_second_run_from_the_first_step_on_is_no_restart(steps: list[int] | None) -> None:
    run = run_of({"lr": AGAIN}, attempts=[0] * N + [1] * N, steps=steps)
    assert rate_repeats_after_restart(Symptoms(run, ())).state == ("seen" if steps is None else "cannot tell")


@pytest.mark.parametrize("kept", ["", "scheduler.pt", "rng_state.pth", "optimizer.pt"])
def test_a_launch_that_goes_on_from_weights_alone(tmp_path: Path, kept: str) -> None:
    """Where the schedule or the random numbers are there, somebody took the optimizer away for its size."""
    torch, safetensors = pytest.importorskip("torch"), pytest.importorskip("safetensors.torch")
    for begin, name in ((0, "a"), (60, "b")):
        rows = [{"step": begin + k + 1, "loss": 3 - 0.01 * (begin + k), "lr": 1e-3} for k in range(60)]
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(r) + "\n" for r in rows))
    home = tmp_path / "checkpoint-60"
    home.mkdir()
    safetensors.save_file({"model.layer.weight": torch.randn(8, 8)}, str(home / "model.safetensors"))
    (home / "trainer_state.json").write_text(json.dumps({"global_step": 60, "log_history": []}))
    if kept:
        torch.save({"last_epoch": 60}, home / kept)
    run = forensics.read(str(tmp_path))
    found = [f for f in checkpoint_state.detect(run) if f.facts.what == "optimizer_missing"]
    assert len(run.attempts) == 2 and [f.facts.resumed for f in found] == ([] if kept else [[60]])
    assert ("optimizer_state_lost" in {h.id for h in judge(run).hypotheses}) == (not kept)


@pytest.mark.parametrize(("cut", "first", "resumed"), [(False, 61, [[60]]), (True, 61, [[60]]), (True, 65, [[60]]), (True, 75, [[]])])
def test_a_save_without_what_the_others_hold(tmp_path: Path, cut: bool, first: int, resumed: list[list[int]]) -> None:
    """Its weights may be unreadable; and the first logged step of a launch is up to an interval behind its save."""
    torch, safetensors = pytest.importorskip("torch"), pytest.importorskip("safetensors.torch")
    for begin, name in ((5, "a"), (first, "b")):
        rows = [{"step": begin + 5 * k, "loss": 3 - 0.001 * (begin + k)} for k in range(12)]
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(r) + "\n" for r in rows))
    layer = torch.nn.Linear(8, 8)
    adam = torch.optim.Adam(layer.parameters())
    layer(torch.randn(4, 8)).sum().backward()
    adam.step()
    for step in (60, 120):
        home = tmp_path / f"checkpoint-{step}"
        home.mkdir()
        safetensors.save_file({"model.layer.weight": torch.randn(8, 8)}, str(home / "model.safetensors"))
        (home / "trainer_state.json").write_text(json.dumps({"global_step": step, "log_history": []}))
        torch.save({"last_epoch": step, "rng": torch.randn(4)}, home / "rng_state.pth")
    torch.save(adam.state_dict(), tmp_path / "checkpoint-120" / "optimizer.pt")
    if cut:
        (tmp_path / "checkpoint-60" / "model.safetensors").write_bytes(b"")
    run = forensics.read(str(tmp_path))
    found = [f for f in checkpoint_state.detect(run) if f.facts.what == "optimizer_missing"]
    assert [f.facts.resumed for f in found] == resumed


@pytest.mark.parametrize("line", ["ckpt_60.pt", "warmup.pt", None])
@pytest.mark.parametrize("whole", [False, True])
def test_a_line_that_names_the_file_of_weights_alone(tmp_path: Path, line: str | None, whole: bool) -> None:
    torch = pytest.importorskip("torch")
    rows: list[dict[str, Any]] = [{"step": k + 1, "loss": 3 - 0.01 * k, "lr": 1e-3} for k in range(120)]
    if line:
        rows.insert(60, {"event": "restart", "from": line, "step": 61})
    (tmp_path / "log.jsonl").write_text("".join(json.dumps(r) + "\n" for r in rows))
    weights = torch.nn.Linear(8, 8)
    adam = torch.optim.Adam(weights.parameters())
    weights(torch.randn(4, 8)).sum().backward()
    adam.step()
    torch.save({"model": weights.state_dict(), "step": 60} | ({"optimizer": adam.state_dict()} if whole else {}), tmp_path / "ckpt_60.pt")
    found = [f for f in checkpoint_state.detect(forensics.read(str(tmp_path))) if f.facts.what == "optimizer_missing"]
    assert [f.facts.resumed for f in found] == ([[60]] if line == "ckpt_60.pt" and not whole else [])


@pytest.mark.parametrize(("line", "told"), [
    ("could not find arguments in the checkpoint for optimizer, continuing ...", True),
    ("WARNING: optimizer state not found, starting with fresh moments", True),
    ("optimizer state restored", False),
    ("could not find a free port", False),
])  # fmt: skip
def test_a_log_that_says_that_the_optimizer_was_not_loaded(tmp_path: Path, line: str, told: bool) -> None:
    noise = np.random.default_rng(5).normal(0, 0.03, 121)
    steps = [f"step {i} | loss {3 - 0.01 * i + noise[i]:.4f} | lr 1.0e-03" for i in range(1, 121)]
    (tmp_path / "train.log").write_text("\n".join([*steps[:60], "Resuming training from step 60", line, *steps[60:]]) + "\n")
    run = forensics.read(str(tmp_path))
    assert len(run.attempts) == 2
    judged = judge(run)
    assert (judged.verdict == "unhealthy") == told
    assert not told or next(h for h in judged.hypotheses if h.id != "unknown").id == "optimizer_state_lost"
