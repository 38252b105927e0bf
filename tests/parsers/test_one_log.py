"""Files that go on through several launches or runs: each of their rows is of the one and the other."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest

import parsers
from parsers.tables import Run

START = 1_795_808_200.0


def loss(step: int, seed: int = 0) -> float:
    return round(float(2.0 * np.exp(-step / 40) + 0.05 * np.random.default_rng((seed, step)).standard_normal() + 1), 4)


def attempts(run: Run) -> list[list[int]]:
    return [a["steps"] for a in run.attempts]


def stamped(steps: range, start: float) -> str:
    return "".join(f"{datetime.fromtimestamp(start + s, UTC):%Y-%m-%d %H:%M:%S} INFO step {s}: loss = {loss(s)}\n" for s in steps)


@pytest.mark.parametrize(("resumed", "told"), [(True, [[10, 240], [250, 450]]), (False, [[10, 450]])])
def test_evaluations_in_one_file_are_of_the_launch_that_made_them(tmp_path: Path, resumed: bool, told: list[list[int]]) -> None:
    line = (
        f"{datetime.fromtimestamp(START + 245, UTC):%Y-%m-%d %H:%M:%S} INFO Resumed from checkpoint: state, step 245\n" if resumed else ""
    )
    (tmp_path / "train.log").write_text(stamped(range(10, 250, 10), START) + line + stamped(range(250, 460, 10), START))
    evals = [{"step": s, "dev_loss": loss(s, 1), "time": START + s + 0.4} for s in range(50, 500, 50)]
    (tmp_path / "eval.jsonl").write_text("".join(json.dumps(e) + "\n" for e in evals))
    (run,) = parsers.read_all(tmp_path)
    assert attempts(run) == told
    found = run.tables["metrics"].to_pylist()
    assert {r["attempt"] for r in found if r["source"] == "eval.jsonl" and r["step"] >= 250} == {len(told) - 1}
    assert {r["attempt"] for r in found if r["source"] == "eval.jsonl" and r["step"] < 250} == {0}


def job(first: int, last: int, *, loaded: int | None, end: str = "") -> str:
    top = "--- arguments ---\n  lr ...... 0.002\n  seed ...... 1234\n--- end of arguments ---\n"
    said = f" loading checkpoint at iteration {loaded}\n  successfully loaded checkpoint at iteration {loaded}\n" if loaded else ""
    rows = (
        f" iteration {i:8}/ 900 | elapsed time per iteration (ms): {20 + loss(i, first):.1f} | lm loss: {loss(i):.6E} |\n"
        for i in range(first, last + 1, 10)
    )
    return top + said + "".join(rows) + end


def test_a_launch_whose_work_was_done_again_the_same_stays(tmp_path: Path) -> None:
    """The next one repeats its losses, from a checkpoint: what it says of a resume is of its own rows."""
    (tmp_path / "slurm-1.out").write_text(job(10, 300, loaded=None))
    (tmp_path / "slurm-2.out").write_text(
        job(310, 560, loaded=300, end="Traceback (most recent call last):\nFileNotFoundError: corpus.bin\n")
    )
    (tmp_path / "slurm-3.out").write_text(job(460, 900, loaded=450, end="[after training is done]\n"))
    (run,) = parsers.read_all(tmp_path)
    assert attempts(run) == [[10, 300], [310, 560], [460, 900]]
    died = [e for e in run.tables["events"].to_pylist() if e["kind"] == "traceback"]
    assert [e["attempt"] for e in died] == [1]


def test_a_resume_in_a_log_without_rows_still_parts_the_rows_elsewhere(tmp_path: Path) -> None:
    lines = "Starting training\nlr: 0.1\nseed: 3\nResuming training from step 60\n"
    (tmp_path / "launcher.log").write_text(lines)
    (tmp_path / "log.jsonl").write_text("".join(json.dumps({"step": s, "loss": loss(s)}) + "\n" for s in range(120)))
    (run,) = parsers.read_all(tmp_path)
    assert attempts(run) == [[0, 60], [61, 119]]


@pytest.mark.parametrize(("killed", "told"), [(True, [[32, 192], [224, 256]]), (False, [[32, 256]])])
def test_a_launch_of_two_rows_that_lines_announce(tmp_path: Path, killed: bool, told: list[list[int]]) -> None:
    words = "Epoch 7/8\nscript: line 14: 31877 Killed                  python train.py\nfound backup/, resuming\n" if killed else ""
    text = "".join(
        (words if epoch == 7 else "") + f"Epoch {epoch}/8\n32/32 - 1s - 29ms/step - dice: {epoch / 10} - loss: {loss(epoch)}\n"
        for epoch in range(1, 9)
    )
    (tmp_path / "job.out").write_text(text)
    (run,) = parsers.read_all(tmp_path)
    assert attempts(run) == told


def test_a_closing_test_of_an_earlier_checkpoint_is_no_launch(tmp_path: Path) -> None:
    rows = "".join(f"step {s} | loss {loss(s)} | val_loss {loss(s, 1)}\n" for s in range(10, 210, 10))
    (tmp_path / "train.log").write_text(rows + "Resuming from best checkpoint: step_150.pt\nstep 150 | val_loss 1.0312\n")
    (run,) = parsers.read_all(tmp_path)
    assert attempts(run) == [[10, 200]]


def tracked(folder: Path, n: int, run_id: str, steps: range, seed: int, start: float) -> None:
    files = folder / "wandb" / f"run-2026112{n}_00000{n}-{run_id}" / "files"
    files.mkdir(parents=True)
    rows = [{"_step": s, "_timestamp": start + s, "val/rmse": loss(s, seed), "train/loss": loss(s, seed + 9)} for s in steps]
    (files / "wandb-history.jsonl").write_text("".join(json.dumps(r) + "\n" for r in rows))
    (files / "config.yaml").write_text(f"seed:\n  value: {seed}\n")


def printed(steps: range, seed: int) -> str:
    return "37780 parameters\n" + "".join(f"epoch {s // 20:2} step {s} val_rmse {loss(s, seed):.3f}\n" for s in steps)


@pytest.mark.parametrize(("first", "lost"), [(500, 0), (400, 10)])
def test_a_log_without_clocks_tells_the_launches_of_a_file_that_goes_on(tmp_path: Path, first: int, lost: int) -> None:
    """A clean resume whose measurements go on in one file is no work done twice; work that the log shows twice is."""
    rows = [{"iter": s, "loss": loss(s), "time": START + s} for s in range(0, 1000, 10)]
    (tmp_path / "metrics.jsonl").write_text("".join(json.dumps(r) + "\n" for r in rows))
    printed = ["".join(f"iter {s}: loss {loss(s)}, time 20.1ms\n" for s in steps) for steps in (range(0, 500, 10), range(first, 1000, 10))]
    (tmp_path / "train.log").write_text(f"Resuming training from ckpt.pt (iter {first}, best val loss 2.14)\n".join(printed))
    (run,) = parsers.read_all(tmp_path)
    (a, b), found = attempts(run), run.tables["metrics"].to_pylist()
    assert (max(a[1] - b[0] + 10, 0) // 10, b[1]) == (lost, 990)
    assert {r["attempt"] for r in found if r["source"] == "metrics.jsonl" and r["step"] > 500} == {1}


def test_runs_of_a_tracker_that_one_log_tells_one_behind_the_other(tmp_path: Path) -> None:
    steps = range(20, 200, 20)
    for n, seed in enumerate((1, 2, 3)):
        tracked(tmp_path, n, f"abcd000{n}", steps, seed, START + 1000 * n)
    (tmp_path / "nohup.out").write_text("".join(printed(steps, seed) for seed in (1, 2, 3)))
    runs = parsers.read_all(tmp_path)
    assert [attempts(r) for r in runs] == [[[20, 180]]] * 3
    for n, run in enumerate(runs, 1):
        told = {r["step"]: r["value"] for r in run.tables["metrics"].to_pylist() if r["tag"] == "val_rmse"}
        assert len(told) > 5 and told.items() <= {s: round(loss(s, n), 3) for s in steps}.items()  # what both round alike is told once
        assert [v for k, v in zip(*(run.tables["config"][c].to_pylist() for c in ("key", "value")), strict=True) if k == "seed"] == [str(n)]


def test_one_id_in_two_folders_is_one_run(tmp_path: Path) -> None:
    for n, seed in enumerate((1, 2)):
        tracked(tmp_path, n, "abcd0000", range(20, 200, 20), seed, START + 1000 * n)
    (tmp_path / "nohup.out").write_text("".join(printed(range(20, 200, 20), seed) for seed in (1, 2)))
    (run,) = parsers.read_all(tmp_path)
    assert attempts(run) == [[20, 180], [20, 180]]


def test_runs_at_the_same_time_are_not_joined_by_a_log_of_all(tmp_path: Path) -> None:
    for n, seed in enumerate((1, 2)):
        tracked(tmp_path, n, f"abcd000{n}", range(20, 200, 20), seed, START)
    (tmp_path / "nohup.out").write_text("".join(printed(range(20, 200, 20), seed) for seed in (1, 2)))
    runs = parsers.read_all(tmp_path)
    assert len([r for r in runs if any(s.format.startswith("wandb") for s in r.sources if s.records)]) == 2
