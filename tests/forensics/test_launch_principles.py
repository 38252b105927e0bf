"""Principles of launches and schedules, each on a small run written for it: a restart is no trouble by itself, nor is a rate that is meant to rise."""

from __future__ import annotations

import json
import math
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from small_runs import analyzed, cosine, curve, kinds, lead

import forensics
from forensics import pipeline
from forensics.detectors import lr_schedule, restart
from tests.forensics.curves import run_of


def test_one_warm_restart_is_schedule_and_a_jump_above_the_peak_is_none(tmp_path: Path) -> None:
    x = curve(300)
    restarts = [{"step": i, "loss": x[i], "lr": cosine(i, 150)} for i in range(300)]
    jump = [{"step": i, "loss": x[i], "lr": cosine(i, 300) * (8 if i >= 150 else 1)} for i in range(300)]
    assert "lr_schedule" not in kinds(analyzed(tmp_path / "a", restarts))
    assert "lr_schedule" in kinds(analyzed(tmp_path / "b", jump))


def test_restarts_that_are_logged_by_epoch_stand_exactly_where_the_cycles_end(tmp_path: Path) -> None:
    """Three epochs, six, twelve (SGDR), a value each; a jump above the peak is none of these."""
    x = curve(300)
    cycles = [cosine(i, 3) for i in range(3)] + [cosine(i, 6) for i in range(6)] + [cosine(i, 12) for i in range(12)]
    higher = [rate * (2.5 if 3 <= i < 9 else 1) for i, rate in enumerate(cycles)]
    for name, rates, told in (("a", cycles, False), ("b", higher, True)):
        rows = [{"step": i, "loss": x[i], **({"lr": rates[i // 10]} if i % 10 == 0 else {})} for i in range(210)]
        assert ("lr_schedule" in kinds(analyzed(tmp_path / name, rows))) == told


def test_a_coarse_jump_of_a_schedule_that_config_calls_a_cycle() -> None:
    """Fifteen values show neither the way up nor where the next cycle would end; one above the peak is no cycle."""
    rate = np.array([1, 2, 1.8, 1.2, 0.6, 0.04, 1.9, 1.8, 1.6, 1.4, 1.1, 0.9, 0.6, 0.3, 0.0])
    for config, higher, told in (("cosine_with_restarts", 1, False), ("cosine", 1, True), ("cosine_with_restarts", 4, True)):
        x = 1e-3 * np.where(np.arange(15) >= 6, higher, 1) * rate
        run = run_of({"loss.train": np.linspace(4, 1, 15), "lr": x}, interval=25, config={"lr_scheduler_type": config})
        assert bool(list(lr_schedule.detect(run))) == told, config


@pytest.mark.parametrize(("again", "told"), [(1.0, False), (1.2, True)])
def test_a_cycle_that_begins_again_to_the_last_digit_is_one_by_two_values(again: float, told: bool) -> None:
    first = 1e-3 * np.array([1, 0.976, 0.905, 0.794, 0.655, 0.5, 0.345, 0.206, 0.0955, 0.0245])
    run = run_of({"loss.train": np.linspace(4, 3, 12), "lr": np.r_[first, again * first[:2]]})
    assert bool(list(lr_schedule.detect(run))) == told


def test_cycles_whose_heights_shrink_by_one_factor(tmp_path: Path) -> None:
    """timm's cycle_decay; heights of no one factor are jumps."""
    x = curve(300)
    for name, heights, told in (("a", (1, 0.7, 0.49), False), ("b", (1, 0.3, 0.9), True)):
        rows = [{"step": i, "loss": x[i], "lr": heights[i // 100] * cosine(i % 100, 100)} for i in range(300)]
        assert ("lr_schedule" in kinds(analyzed(tmp_path / name, rows))) == told


def test_a_rate_that_begins_anew_after_a_silence_was_reset(tmp_path: Path) -> None:
    x = curve(300)
    rate = [1e-3 * min((i + 1) / 40, 1.0) for i in range(200)]
    rows = [{"step": i, "loss": x[i], "lr": rate[i if i < 120 else i - 120], "timestamp": 1.7e9 + i + (900 if i >= 120 else 0)} for i in range(300)]  # fmt: skip
    case = analyzed(tmp_path / "r", rows)
    assert lead(case) == "lr_schedule_reset"


def test_a_line_that_ends_the_job_cuts_the_attempts_where_rows_go_on_after_a_pause(tmp_path: Path) -> None:
    x = curve(200)
    rows = [{"step": i, "loss": x[i], "timestamp": 1.7e9 + i + (600 if i >= 100 else 0)} for i in range(200)]
    log = "slurmstepd: error: *** JOB 7 ON n1 CANCELLED AT 2023-11-14T22:14:59 DUE TO PREEMPTION ***\n"  # 1.7e9 + 99
    (tmp_path / "r").mkdir()
    (tmp_path / "r" / "metrics.jsonl").write_text("".join(json.dumps(r) + "\n" for r in rows))
    assert len(forensics.read(str(tmp_path / "r")).attempts) == 1
    (tmp_path / "r" / "slurm.out").write_text(log)
    assert [a["steps"] for a in forensics.read(str(tmp_path / "r")).attempts] == [[0, 99], [100, 199]]


def test_a_loss_that_falls_on_over_a_sound_restart_is_no_break(tmp_path: Path) -> None:
    x = curve(200, tau=80, noise=0.003)
    sound = [{"step": i, "loss": x[i], "timestamp": 1.7e9 + i + (600 if i >= 60 else 0)} for i in range(200)]
    higher = [r | {"loss": r["loss"] * (1.25 if r["step"] >= 60 else 1)} for r in sound]
    lower = [r | {"loss": r["loss"] * (0.8 if r["step"] >= 60 else 1)} for r in sound]
    log = "slurmstepd: error: *** JOB 7 ON n1 CANCELLED AT 2023-11-14T22:14:19 DUE TO PREEMPTION ***\n"
    assert "resume_break" not in kinds(analyzed(tmp_path / "a", sound, log=log))
    assert "resume_break" in kinds(analyzed(tmp_path / "b", higher, log=log))
    told = analyzed(tmp_path / "c", lower, log=log)  # worth a line, but no harm
    assert [f.severity for f in told.findings if f.kind == "resume_break"] == ["info"] and told.verdict == "healthy"


def test_the_last_warm_restart_of_several_is_schedule_however_near_the_end(tmp_path: Path) -> None:
    x = curve(250)
    restarts = [{"step": i, "loss": x[i], "lr": cosine(i, 120)} for i in range(250)]
    jump = [r | {"lr": r["lr"] * (4 if r["step"] >= 240 else 1)} for r in restarts]
    assert "lr_schedule" not in kinds(analyzed(tmp_path / "a", restarts))
    assert "lr_schedule" in kinds(analyzed(tmp_path / "b", jump))


@pytest.mark.parametrize("again", [True, False])
def test_a_rate_on_its_way_down_that_warms_up_again_after_a_restart_was_reset(again: bool, tmp_path: Path) -> None:
    """Its first value is hardly below the last one before the restart, and the way up is a warmup like any."""
    rate = [2e-3 * min((i + 1) / 4, 1 - i / 80) for i in range(80)]
    x = curve(60)
    lines = [f"step {10 * i + 10}: loss {x[i]:.4f}, lr {rate[i % 40 if again else i]:.4e}" for i in range(60)]
    (tmp_path / "train.log").write_text("\n".join([*lines[:40], "--- restarted, checkpoint out/checkpoint-400", *lines[40:]]) + "\n")
    case = forensics.analyze(str(tmp_path))
    assert [a["steps"] for a in case.run["attempts"]] == [[10, 400], [410, 600]]
    assert ("lr_schedule" in {f.kind for f in case.findings}) == again


@pytest.mark.parametrize(("first", "redone"), [(10, 20), (0, 11)])
def test_rows_that_name_their_last_step_tell_of_whole_intervals_done_twice(first: int, redone: int, tmp_path: Path) -> None:
    x = curve(40)
    before, after = ([f"step={i} loss={x[i // 10]:.4f}" for i in rows] for rows in (range(first, 180, 10), range(160, 310, 10)))
    (tmp_path / "train.log").write_text("\n".join([*before, "restored from ck.pt", *after]) + "\n")
    told = next(f for f in forensics.analyze(str(tmp_path)).findings if f.kind == "restart")
    assert told.facts.redone == redone


def test_a_process_that_died_in_the_middle_of_a_log_ends_a_attempt(tmp_path: Path) -> None:
    rate = [1e-3 * min((i % 100 + 1) / 40, 1.0) for i in range(200)]
    x = curve(200)
    lines = [f"iter {i}: loss {x[i]:.4f}, time 20.5ms, mfu 30.1%, lr {rate[i]:.4e}" for i in range(200)]
    dead = "RuntimeError: CUDA error: an illegal memory access was encountered"
    (tmp_path / "r").mkdir()
    (tmp_path / "r" / "train.log").write_text("\n".join([*lines[:100], dead, *lines[100:]]) + "\n")
    run = forensics.read(str(tmp_path / "r"))
    assert [a["steps"] for a in run.attempts] == [[0, 99], [100, 199]]
    assert lead(pipeline.analyze_run(run)) == "lr_schedule_reset"
    (tmp_path / "r" / "train.log").write_text("\n".join([*lines[:100], "RuntimeError: could not upload the plot", *lines[100:]]) + "\n")
    assert len(forensics.read(str(tmp_path / "r")).attempts) == 1


def test_a_resume_line_without_a_clock_counts_where_the_clock_of_the_rows_pauses(tmp_path: Path) -> None:
    x = curve(200)
    for name, pause, attempts in (("a", 600, 2), ("b", 0, 1)):
        (tmp_path / name).mkdir()
        rows = [{"step": i, "loss": x[i], "timestamp": 1.7e9 + i + (pause if i > 100 else 0)} for i in range(200)]
        (tmp_path / name / "metrics.jsonl").write_text("".join(json.dumps(r) + "\n" for r in rows))
        (tmp_path / name / "job.log").write_text("Resuming from checkpoint step 100\n")
        assert len(forensics.read(str(tmp_path / name)).attempts) == attempts


def test_the_address_of_an_object_is_no_change_of_config(tmp_path: Path) -> None:
    for name, scaler in (("a", "<GradScaler object at 0x{}>"), ("b", "<GradScaler object {}>")):
        (tmp_path / name).mkdir()
        rows = [{"step": i, "loss": v} for i, v in enumerate(curve(100))]
        (tmp_path / name / "metrics.jsonl").write_text("".join(json.dumps(r) + "\n" for r in [*rows, *rows[60:]]))
        for launch, mark in (("1", "7f00aa10"), ("2", "7f11bb20")):
            config = {"lr": 1e-3, "batch_size": 8, "seed": 1, "scaler": scaler.format(mark)}
            (tmp_path / name / f"config_{launch}.json").write_text(json.dumps(config))
        changed = any(f.kind == "config_change" for f in forensics.analyze(str(tmp_path / name)).findings)
        assert changed == (name == "b")


@pytest.mark.parametrize(
    ("key", "one", "two", "differ"),
    [
        ("target_modules", ["c_proj", "c_fc", "c_attn"], ["c_attn", "c_fc", "c_proj"], False),  # a set, written in another order
        ("target_modules", ["c_proj", "c_fc"], ["c_attn", "c_fc"], True),
        ("sizes", [1, 2], [2, 1], True),
        ("use_cache", True, False, False),  # of keys and values while text is written
        ("architectures", ["BertForSequenceClassification"], ["BertForMaskedLM"], False),  # of the weights that a launch began with
    ],
)
def test_what_differs_between_launches_and_changes_nothing(tmp_path: Path, key: str, one: object, two: object, differ: bool) -> None:
    rows = [{"step": i, "loss": v} for i, v in enumerate(curve(100))]
    (tmp_path / "metrics.jsonl").write_text("".join(json.dumps(r) + "\n" for r in [*rows, *rows[60:]]))
    for launch, value in (("1", one), ("2", two)):
        (tmp_path / f"config_{launch}.json").write_text(json.dumps({"lr": 1e-3, "model": "m", "layers": 2, key: value}))
    assert any(f.kind == "config_change" for f in forensics.analyze(str(tmp_path)).findings) == differ


@pytest.mark.parametrize(("one", "two", "differ"), [(32, 32.0, False), (False, 0, False), ("1e-3", 0.001, False), (16, 32, True)])
def test_settings_are_compared_by_value_and_only_between_two_launches(tmp_path: Path, one: object, two: object, differ: bool) -> None:
    x = curve(100)
    for name, again in (("once", 100), ("twice", 60)):
        (tmp_path / name).mkdir()
        rows = [{"step": i, "loss": x[i]} for i in [*range(100), *range(again, 100)]]
        (tmp_path / name / "metrics.jsonl").write_text("".join(json.dumps(r) + "\n" for r in rows))
        for launch, value in (("1", one), ("2", two)):
            (tmp_path / name / f"config_{launch}.json").write_text(json.dumps({"lr": 1e-3, "batch_size": value, "model": "m", "layers": 2}))
        changed = any(f.kind == "config_change" for f in forensics.analyze(str(tmp_path / name)).findings)
        assert changed == (differ and name == "twice")


@pytest.mark.parametrize(("batch", "warmup", "keys"), [(4, 50, ["batch"]), (128, 50, None), (128, 10, ["warmup"])])
def test_the_step_where_a_launch_goes_on_is_no_setting_that_changed(
    tmp_path: Path, batch: int, warmup: int, keys: list[str] | None
) -> None:
    """A warmup that was as long as the first launch is one."""
    rows: list[dict[str, object]] = []
    for begin, size in ((0, 128), (50, batch)):
        config = {
            "model": "vae",
            "batch": size,
            "lr": 1e-3,
            "seed": 3,
            "latent": 8,
            "stop_at": 0 if begin else 50,
            "total_steps": 100 if begin else 50,  # it goes on further than was planned first
            "launch": 1 + (begin > 0),
            "warmup": warmup if begin else 50,
        }
        rows.append({"event": "start", "time": 1.7e9 + begin + 100 * (begin > 0), "from_step": begin, "config": config})
        rows += [{"step": i, "loss": v, "time": 1.7e9 + i + 100 * (begin > 0)} for i, v in enumerate(curve(100)) if 0 <= i - begin < 50]
    (tmp_path / "metrics.jsonl").write_text("".join(json.dumps(r) + "\n" for r in rows))
    case = forensics.analyze(str(tmp_path))
    changed = [f.facts.keys for f in case.findings if f.kind == "config_change"]
    assert changed == ([keys] if keys else []) and len(case.run["attempts"]) == 2


@pytest.mark.parametrize(
    ("override", "differ"), [("  lr ................... 0.12", True), ("  lr ................... 0.0020", False), ("", False)]
)
def test_a_log_of_two_launches_tells_what_the_second_overrides(tmp_path: Path, override: str, differ: bool) -> None:
    lines = ["---------------- arguments ----------------"]
    lines += [f"  {key} ................... {value}" for key, value in (("hidden_size", 40), ("lr", 0.002), ("seed", 1))]
    lines += ["------------- end of arguments -------------"]
    steps = [f" iteration {10 * i:6}/     500 | lm loss: {2 + 1 / i:.6E} |" for i in range(1, 51)]
    resumed = [" loading checkpoint from checkpoints at iteration 250", *([override] if override else [])]
    (tmp_path / "train.log").write_text("\n".join([*lines, *steps[:25], *resumed, *steps[25:]]) + "\n")
    changed = [f.facts for f in forensics.analyze(str(tmp_path)).findings if f.kind == "config_change"]
    assert [(f.keys, f.changes, f.step) for f in changed] == ([(["lr"], [["0.002", "0.12"]], 260)] if differ else [])


@pytest.mark.parametrize(
    ("one", "two", "logged", "same"),
    [
        ({"global_batch_size": 16, "micro_batch_size": 16}, {"global_batch_size": 16, "micro_batch_size": 8}, None, True),
        ({"per_device_train_batch_size": 8, "accum_steps": 1}, {"per_device_train_batch_size": 4, "accum_steps": 2}, None, True),
        ({"batch_size": 8, "world_size": 4}, {"batch_size": 16, "world_size": 2}, None, True),
        ({"micro_batch_size": 16}, {"micro_batch_size": 8}, 16, True),
        ({"train_batch_size": 32, "train_micro_batch_size_per_gpu": 8}, {"train_batch_size": 32, "train_micro_batch_size_per_gpu": 4}, None, True),
        ({"micro_batch_size": 16}, {"micro_batch_size": 8}, None, False),  # nothing says what the others are
        ({"global_batch_size": 16, "micro_batch_size": 16}, {"global_batch_size": 8, "micro_batch_size": 8}, None, False),
        ({"batch_size": 8, "accum_steps": 1}, {"batch_size": 4, "accum_steps": 1}, None, False),
        ({"batch_size": 8, "world_size": 4}, {"batch_size": 8, "world_size": 2}, 8, False),  # the log has the batch of a process
        ({"batch_size": 8, "accum_steps": 1}, {"batch_size": 4, "accum_steps": 4}, None, False),
    ],
)  # fmt: skip
def test_a_batch_that_is_shared_out_otherwise_is_no_change(tmp_path: Path, one: Any, two: Any, logged: int | None, same: bool) -> None:
    x = curve(100)
    rows = [{"step": i, "loss": x[i]} | ({"global_batch_size": logged} if logged else {}) for i in [*range(100), *range(60, 100)]]
    (tmp_path / "metrics.jsonl").write_text("".join(json.dumps(r) + "\n" for r in rows))
    for launch, config in (("1", one), ("2", two)):
        (tmp_path / f"config_{launch}.json").write_text(
            json.dumps({"lr": 1e-3, "model": "m", "layers": 2, "heads": 2, "width": 8} | config)
        )
    case = forensics.analyze(str(tmp_path))
    (found,) = [f for f in case.findings if f.kind == "config_change"]
    assert ("samples a step, with" in found.title) == same, found.title
    assert not same or found.severity == "info"


def test_a_manifest_without_a_clock_belongs_to_the_attempts_by_its_steps(tmp_path: Path) -> None:
    """Rows of the log come every five steps, the manifest has every step: those before a row are the attempt's that reaches it."""
    folder = tmp_path / "r"
    folder.mkdir()
    x = curve(200)
    logged = [{"step": i, "loss": x[i], "timestamp": 1.7e9 + i + (900 if i >= 100 else 0)} for i in range(4, 200, 5)]
    (folder / "metrics.jsonl").write_text("".join(json.dumps(r) + "\n" for r in logged))
    order = random.Random(3).sample(range(4000), 800)
    seen = [order[8 * (i % 100) : 8 * (i % 100) + 8] for i in range(200)]
    (folder / "data_order.jsonl").write_text("".join(json.dumps({"step": i, "sample_ids": s}) + "\n" for i, s in enumerate(seen)))
    (folder / "slurm.out").write_text("slurmstepd: error: *** JOB 7 ON n1 CANCELLED AT 2023-11-14T22:15:00 DUE TO PREEMPTION ***\n")
    run = forensics.read(str(folder))
    batches = run.tables["batches"]
    first = [a for s, a in zip(batches["step"].to_pylist(), batches["attempt"].to_pylist(), strict=True) if s < 100]
    assert len(run.attempts) == 2 and set(first) == {0}
    assert lead(pipeline.analyze_run(run)) == "data_order_restarted"


def test_a_cosine_that_comes_round_again_is_no_jump_however_low_it_gets(tmp_path: Path) -> None:
    x = curve(350)
    rate = [1e-3 * 0.5 * (1 + math.cos(math.pi * (i - 10) / 78)) + 1e-8 if i >= 10 else 1e-4 * (i + 1) for i in range(350)]
    rows = [{"step": i, "loss": x[i], "lr": rate[i]} for i in range(0, 350, 2)]
    config = {"max_steps": 350, "lr_scheduler": "cosine", "gradient_accumulation_steps": 4}
    case = analyzed(tmp_path / "a", rows, config)
    assert "lr_schedule" not in kinds(case) and lead(case) == "schedule_wrong_units"
    jump = [r | {"lr": r["lr"] * (20 if r["step"] > 40 else 1)} for r in rows]
    assert "lr_schedule" in kinds(analyzed(tmp_path / "b", jump, config))


def test_the_even_way_up_of_a_cycle_is_no_jump(tmp_path: Path) -> None:
    """A triangle between 0.01 and 0.2: one value in ten is logged, so that the first rise triples the rate. A step up that stays is one."""
    x = curve(600)
    triangle = [{"step": i, "loss": x[i], "lr": 0.2 - 0.19 * abs(i % 200 - 100) / 100} for i in range(0, 600, 10)]
    step = [{"step": i, "loss": x[i], "lr": 0.2 if i < 200 or i >= 400 else 0.01} for i in range(0, 600, 10)]
    assert "lr_schedule" not in kinds(analyzed(tmp_path / "a", triangle))
    assert "lr_schedule" in kinds(analyzed(tmp_path / "b", step))


def test_a_stop_between_two_saves_costs_little_and_a_rollback_much(tmp_path: Path) -> None:
    x = curve(600)
    for name, back, grave in (("a", 21, False), ("b", 80, True)):
        rows = [{"step": i, "loss": x[i]} for i in [*range(300), *range(300 - back, 600)]]
        assert ("restart" in kinds(analyzed(tmp_path / name, rows))) == grave


@pytest.mark.parametrize(
    ("line", "grave"), [("^C KeyboardInterrupt", False), ("RuntimeError: CUDA error: unspecified launch failure", True)]
)
def test_a_stop_by_hand_is_no_crash(line: str, grave: bool, tmp_path: Path) -> None:
    x = curve(600)
    lines = [f"step {i} loss {x[i]:.5f}" for i in range(300)]
    again = [f"step {i} loss {x[i]:.5f}" for i in range(220, 600)]
    (tmp_path / "train.log").write_text("\n".join([*lines, line, "resuming from out/checkpoint-220", *again]) + "\n")
    case = forensics.analyze(str(tmp_path))
    assert "restart" in {f.kind for f in case.findings} and ("restart" in kinds(case)) == grave


@pytest.mark.parametrize(("times", "told"), [(6, False), (2, True)])
def test_a_rate_that_jumps_in_every_fourth_row_is_a_cycle_shorter_than_the_rows_are_apart(times: int, told: bool) -> None:
    rate = np.array([1e-4, 2e-7, 8.6e-5, 1.6e-4, 5.9e-5, 1.2e-4, 3.6e-5, 7.8e-5, 3.6e-7, 2.9e-5, 5.9e-5, 1.1e-5, 9e-6, 8e-6, 7e-6, 6e-6])
    rate[2 * times :] = 1e-6
    assert bool(list(lr_schedule.detect(run_of({"lr": rate})))) == told


@pytest.mark.parametrize(("rows", "told"), [((41,), False), ((41, 42, 43), True)])
def test_an_epoch_that_falls_for_one_line_is_no_restart(rows: tuple[int, ...], told: bool) -> None:
    """A heading counts from zero what the lines below it count from one."""
    epoch = np.array([i / 20 - 0.3 * (i in rows) for i in range(1, 61)])
    found = [f for f in restart.detect(run_of({"epoch": epoch, "loss.train": 2 - epoch / 6})) if "epoch goes back" in f.title]
    assert bool(found) is told
