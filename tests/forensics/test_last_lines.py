"""The last lines of a run that could not be judged."""

from __future__ import annotations

import json
from pathlib import Path

import forensics


def test_the_last_lines_of_a_short_log_are_in_the_case_without_secrets(tmp_path: Path) -> None:
    run = tmp_path / "run"
    run.mkdir()
    key = "hf_" + "AbCdEfGhIjKlMnOpQrStUvWxYz01234567"
    (run / "train.log").write_text(f"Loading\n\nBuilding the model\nexport HF_TOKEN={key}\nWaiting for data " + "x" * 500 + "\n")
    case = forensics.analyze(str(run)).to_json()
    [told] = case["run"]["last_lines"]
    assert told["path"] == "train.log" and told["lines"][0] == "Building the model"
    assert key not in str(case) and len(told["lines"]) == 3 and len(told["lines"][2]) == 300


def test_a_judged_run_has_none() -> None:
    sample = Path(__file__).resolve().parents[2] / "samples" / "bad_batch_jsonl"
    assert "last_lines" not in forensics.analyze(str(sample)).to_json()["run"]


def test_a_log_that_ends_before_its_first_step_is_told_with_its_last_line(tmp_path: Path) -> None:
    run = tmp_path / "run"
    run.mkdir()
    (run / "train.log").write_text("[01/23 19:07:19] Loading the data\n[01/23 19:07:21] Starting training from iteration 0\n")
    case = forensics.analyze(str(run)).to_json()
    [found] = case["findings"]
    assert (found["kind"], found["severity"]) == ("ending", "info")
    assert 'the log ends without a closing line: "[01/23 19:07:21] Starting training from iteration 0"' in case["answer"]


def test_the_last_line_of_notes_beside_a_log_with_steps_is_none_of_training(tmp_path: Path) -> None:
    run = tmp_path / "run"
    run.mkdir()
    (run / "metrics.jsonl").write_text("".join(f'{{"step": {i}, "loss": {3 - i / 50}}}\n' for i in range(60)))
    (run / "notes.log").write_text("to be done\ncall Anna\n")
    assert "call Anna" not in str(forensics.analyze(str(run)).to_json()["run"]["ending"])


def test_a_total_beside_steps_is_a_plan_whatever_stands_in_the_row(tmp_path: Path) -> None:
    run = tmp_path / "run"
    run.mkdir()
    (run / "train.log").write_text("".join(f"[{i}/25] wins {i + 3} games {40 + i}\n" for i in range(1, 8)))
    case = forensics.analyze(str(run)).to_json()
    assert case["run"]["planned_steps"] == 25
    assert "just stops after step 7 of 25 planned" in case["answer"]


def test_whole_epochs_beside_finer_steps_tell_how_long_the_plan_is(tmp_path: Path) -> None:
    run = tmp_path / "run"
    run.mkdir()
    (run / "config.yaml").write_text("max_epochs: 12\nlr: 0.004\n")
    rows = [f'{{"step": {i}, "loss": {3 - i / 200}, "epoch": {i // 40}}}\n' for i in range(4, 334, 5)]
    (run / "metrics.jsonl").write_text("".join(rows))
    case = forensics.analyze(str(run)).to_json()
    assert case["run"]["planned_steps"] == 480
    assert case["verdict"] == "inconclusive"


def test_a_history_that_was_written_as_a_whole_stands_behind_the_loop(tmp_path: Path) -> None:
    curves = {"loss": [2.5, 1.75, 1.5, 1.25, 1.125, 1.0, 0.9375], "val_loss": [2.75, 2.25, 1.875, 1.75, 1.625, 1.5, 1.4375]}
    for name, document in {"a": curves, "b": [{"epoch": i, "loss": x} for i, x in enumerate(curves["loss"])]}.items():
        run = tmp_path / name
        run.mkdir()
        (run / "history.json").write_text(json.dumps(document))
    assert "a history that was written as a whole" in forensics.analyze(str(tmp_path / "a")).to_json()["answer"]
    assert forensics.analyze(str(tmp_path / "b")).to_json()["run"]["status"] == "unknown"


def test_a_test_that_comes_once_behind_several_epochs_closes_them(tmp_path: Path) -> None:
    rows = [f"{i},{i // 50},{3 - i / 200:.3f},\n" for i in range(9, 250, 10)]
    for name, more in {"a": "250,5,,0.4\n", "b": ""}.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "metrics.csv").write_text("step,epoch,train_loss,test_loss\n" + "".join(rows) + more)
    assert forensics.analyze(str(tmp_path / "a")).to_json()["run"]["status"] == "finished"
    assert forensics.analyze(str(tmp_path / "b")).to_json()["run"]["status"] == "unknown"
