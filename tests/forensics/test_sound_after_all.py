"""Curves that look like trouble and are none: of runs that others made or left behind, each beside what is trouble."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import forensics
from forensics.case import Finding
from forensics.detectors import checkpoint_damage, divergence, eval_jump, plateau, restart, train_eval_gap
from parsers import read
from parsers.records.by_turns import taken_up_again
from parsers.runs.spans import Span
from tests.forensics.curves import run_of

N = 60
T = np.arange(N)
FALLS = 2 * np.exp(-T / 15) + 0.2
TURNS = np.where(T < 20, 1.2 * FALLS, 1.2 * FALLS[20] * (1 + (T - 20) / 130))  # up by three tenths of its lowest


def test_a_loss_that_wanders_about_its_fall_has_not_turned_at_its_end() -> None:
    """A mean of the last batches moves slowly, and by as much before; where it stays up for longer than ever, it has turned."""
    t = np.arange(3000)
    falls = 0.7 * np.exp(-t / 1500)
    waves = falls * (1 + 0.15 * np.sin(2 * np.pi * t / 150 - np.pi / 2))
    ends_up = waves[:2930]  # at the top of a wave
    noise = np.random.default_rng(0).normal(1, 0.004, len(t))
    assert severities(divergence.detect, loss__train=ends_up * noise[: len(ends_up)]) == []
    stays = np.r_[waves[:2880], np.full(400, waves[2700:].min() * 1.3)]
    assert severities(divergence.detect, loss__train=stays * np.r_[noise, noise][: len(stays)]) == ["critical"]


def severities(detect: Callable[[Any], Any], **metrics: Any) -> list[str]:
    found: list[Finding] = list(detect(run_of({name.replace("__", "."): values for name, values in metrics.items()})))
    return [f.severity for f in found]


def test_an_evaluation_that_goes_on_to_where_it_was_before_has_not_stepped() -> None:
    """Its scatter has a long tail: out there it was before, from the same level."""
    calm = 700 + 30 * np.sin(T * T)
    out = np.where(T >= 40, 5000.0, calm)
    assert severities(eval_jump.detect, loss__eval=out, loss__train=FALLS) == ["warning"]
    assert severities(eval_jump.detect, loss__eval=np.where((T == 20) | (T == 28), 8600.0, out), loss__train=FALLS) == []


@pytest.mark.parametrize(
    ("more", "severity"),
    [
        ({}, "warning"),
        ({"other/val_r2": np.minimum(0.5 + T / 40, 0.93) - np.maximum(T - 20, 0) / 4000}, "info"),  # what it answers is as good
        ({"other/val_r2": np.minimum(0.5 + T / 40, 0.93) - np.maximum(T - 20, 0) / 400}, "warning"),
        ({"acc.eval": np.minimum(0.5 + T / 40, 0.93)}, "info"),
    ],
)
def test_what_the_scores_say_of_an_evaluation_loss_that_turns(more: dict[str, Any], severity: str) -> None:
    found = list(train_eval_gap.detect(run_of({"loss.train": FALLS, "loss.eval": TURNS} | more)))
    assert [f.severity for f in found] == [severity]


def test_what_evaluation_costs_less_than_training_is_not_known_by_heart() -> None:
    assert severities(train_eval_gap.detect, loss__train=FALLS + 1, loss__eval=TURNS) == ["info"]


@pytest.mark.parametrize(("first", "severity"), [(0.57, "info"), (0.2, "warning")])
def test_a_trained_model_that_gets_better_stands_still_by_no_means(first: float, severity: str) -> None:
    """The loss falls by a hundredth, and so it does in a model that learns nothing; the evaluations tell which it is."""
    hits = first + (0.02 * T / N if severity == "info" else 0.01 * np.sin(T))
    assert severities(plateau.detect, loss__train=4.8 - 0.05 * T / N, acc__eval=hits)[-1] == severity


def test_a_warmup_that_is_not_over_teaches_nothing_yet() -> None:
    loss = 28.3 - T / N
    assert severities(plateau.detect, loss__train=loss, lr=1e-9 * (T + 1)) == ["info"]
    assert severities(plateau.detect, loss__train=loss, lr=1e-9 * np.full(N, N)) == ["warning"]


def test_a_loss_without_a_floor_runs_away_downwards() -> None:
    """A binary cross entropy of targets above one."""
    runs_off = np.where(T < 30, 2 + FALLS, -(10.0 ** (T / 5)))
    found = list(divergence.detect(run_of({"loss.train": runs_off, "loss.eval": np.where(T < 30, 2 + FALLS, 10.0 ** (T / 6))})))
    assert [(f.severity, "without end" in f.title) for f in found] == [("critical", True)]
    assert not list(divergence.detect(run_of({"loss.train": 1 - T / 6})))  # a likelihood of numbers
    assert severities(train_eval_gap.detect, loss__train=runs_off, loss__eval=np.where(T < 30, 2 + FALLS, 10.0 ** (T / 6))) == ["info"]


@pytest.mark.parametrize(
    ("error", "cause", "severity"),
    [
        ("RuntimeError: The file 'llama.cpp/quantize' does not exist.", "code_error", "info"),
        ("OSError: [Errno 28] No space left on device", "disk_full", "warning"),
    ],
)
def test_a_save_that_fails_for_another_reason_than_room(tmp_path: Path, error: str, cause: str, severity: str) -> None:
    lines = "".join(f"step {i} loss {2 - i / 99:.4f}\n" for i in range(1, 40))
    trace = f'Traceback (most recent call last):\n  File "train.py", line 9, in <module>\n    torch.save(model, path)\n  File "serialization.py", line 943, in save\n{error}\n'
    (tmp_path / "train.log").write_text(lines + trace)
    case = forensics.analyze(str(tmp_path))
    assert case.hypotheses[0].id == cause
    assert [f.severity for f in checkpoint_damage.detect(read(tmp_path))] == [severity]


def test_a_shell_that_finds_no_program_ends_the_run_before_it_begins(tmp_path: Path) -> None:
    (tmp_path / "slurm-12.out").write_text(
        "loading modules\n/var/spool/slurmd/job02859/slurm_script: line 42: torchrun: command not found\n"
    )
    case = forensics.analyze(str(tmp_path))
    assert (case.verdict, case.run["status"]) == ("unhealthy", "crashed") and "command not found" in case.answer
    (tmp_path / "slurm-12.out").write_text(
        "bash: module: command not found\n" + "".join(f"step {i} loss {2 - i / 99:.4f}\n" for i in range(1, 99))
    )
    assert forensics.analyze(str(tmp_path)).verdict == "healthy"


def test_a_sum_that_the_weight_of_a_term_lifts_ends_above_its_start_by_design(tmp_path: Path) -> None:
    rows = []
    for i in range(24):
        rebuilt, kl, weight = 2.2e5 + 1e3 * math.sin(i), 6e5 * math.exp(-i / 9) + 1.2e5, 0.05 * i
        rows.append({"epoch": i, "Reconstruction Loss": rebuilt, "KL Divergence": kl, "Total Loss": rebuilt + weight * kl})
    (tmp_path / "log.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert forensics.analyze(str(tmp_path)).verdict == "healthy"


@pytest.mark.parametrize(("begins", "severity"), [(0, "info"), (100, "warning")])
def test_a_launch_that_begins_at_the_first_step_again_lost_nothing_that_it_was_to_go_on_from(begins: int, severity: str) -> None:
    """Unless a line says that the one before it died, or that this one was resumed."""
    steps, attempts = [*range(200), *range(begins, 300)], [0] * 200 + [1] * (300 - begins)
    lives = [
        {"index": i, "steps": span, "started": None, "ended": None, "files": {"log.jsonl"}, "begun": None, "span": Span(*span)}
        for i, span in enumerate(([0, 199], [begins, 299]))
    ]

    def told(**more: Any) -> list[str]:
        run = run_of({"loss.train": 2 * np.exp(-np.array(steps) / 100)}, steps=steps, attempts=attempts, **more)
        run.attempts = lives
        return [f.severity for f in restart.detect(run)]

    assert told() == [severity]
    died = {"kind": "traceback", "text": "RuntimeError: no", "level": "error", "attempt": 0, "source": "log.jsonl", "at": 200}
    assert told(events=[died]) == ["warning"]


@pytest.mark.parametrize(("worst", "falls"), [(-120.0, True), (-220.0, False)])
def test_a_reward_has_to_lose_half_of_what_it_gained_from_its_worst(worst: float, falls: bool) -> None:
    """It rose from there to -65 at its best and ends 35 lower."""
    way = np.interp(np.arange(400), [0, 60, 280, 400], [-120.0, worst, -65.0, -100.0]) + np.sin(np.arange(400) ** 2)
    assert bool(severities(divergence.detect, rl__reward=way)) == falls


@pytest.mark.parametrize(("end", "told"), [(60.0, []), (260.0, ["critical"])])
def test_a_loss_that_falls_to_half_from_its_second_value_on_learns(end: float, told: list[str]) -> None:
    loss = np.r_[7.0, np.linspace(254, end, 60)]
    assert severities(divergence.detect, loss__train=loss) == told


def test_a_loss_above_its_first_level_is_no_trouble_while_the_evaluation_falls() -> None:
    """As with heavy-tailed targets, which a few batches of the training hold and the evaluation does not."""
    loss = np.r_[np.full(3, 5.8), np.full(40, 90.0), np.linspace(5, 1, 60)]
    assert severities(divergence.detect, loss__train=loss) == ["warning"]
    assert severities(divergence.detect, loss__train=loss, loss__eval=np.linspace(6, 1, 103)) == ["info"]


def test_processes_that_write_by_turns_are_no_restarts() -> None:
    """Each goes on where it had stopped; a resume goes back into what was done."""
    a, b = np.arange(6, 46), np.arange(3, 43)
    by_turns = np.concatenate([x for i in range(0, 40, 8) for x in (a[i : i + 8], b[i : i + 8])])
    assert taken_up_again(by_turns) == 8
    assert taken_up_again(np.r_[0:100, 60:140, 120:200, 150:300]) == 0
