"""The last lines of a run that could not be judged."""

from __future__ import annotations

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
