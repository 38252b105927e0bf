"""Sentences and places of a case in the labels that its log prints; what is quoted stays as it is."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import forensics
from forensics.case_parts.axis_words import in_epochs, with_epochs
from reports import html

SAMPLES = Path(__file__).parents[2] / "samples"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("Lowest at step 6, worse over steps 7 to 59.", "Lowest at epoch 6, worse over epochs 7 to 59."),
        ("Steps 1 to 3 repeat; back after 1 step, 93 steps in all", "Epochs 1 to 3 repeat; back after 1 epoch, 93 epochs in all"),
        ("Look with `forensics batch RUN --step 6` at step 6", "Look with `forensics batch RUN --step 6` at epoch 6"),
        ('The log says "step 5 done" at step 5', 'The log says "step 5 done" at epoch 5'),
        ("Replay --step 4 of checkpoint-step 5", "Replay --step 4 of checkpoint-step 5"),
        ("Each step takes a second", "Each step takes a second"),
    ],
)
def test_steps_with_a_number_become_epochs(text: str, said: str) -> None:
    assert in_epochs(text) == said


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("It rises at step 250 and again at step 260", "It rises at step 250 (epoch 2) and again at step 260"),
        ("From step 99 to the end (step 400)", "From step 99 (epoch 0) to the end (step 400, epoch 4)"),
        ("Up over steps 120 to 310, back after 30 steps", "Up over steps 120 to 310 (epochs 1 to 3), back after 30 steps"),
        ('"step 250" in `batch --step 250`, epoch 2', '"step 250" in `batch --step 250`, epoch 2'),
        ("Loss 0.3 at step 5.", "Loss 0.3 at step 5 (epoch 0)."),
    ],
)
def test_epochs_stand_beside_steps_that_no_line_prints(text: str, said: str) -> None:
    assert with_epochs(text, lambda step: step // 100) == said


def test_epochs_that_begin_at_one_keep_their_number() -> None:
    assert in_epochs("Lowest at step 6, worse over steps 7 to 59", lambda step: step + 1) == "Lowest at epoch 7, worse over epochs 8 to 60"


def logged(tmp_path: Path, first: int) -> dict[str, Any]:
    """Twelve epochs of 50 iterations, a line every ten, where the loss jumps at the seventh and stays."""
    rng, lines = np.random.default_rng(0), []
    for epoch in range(first, first + 12):
        for i in range(0, 50, 10):
            loss = 0.4 + 0.02 * rng.standard_normal() + 3.0 * (epoch >= first + 6)
            lines.append(f"Epoch: [{epoch}/{first + 11}][{i}/50] Loss: {loss:.4f} lr: 0.001")
    (tmp_path / "train.log").write_text("\n".join(lines) + "\n")
    return forensics.analyze(str(tmp_path)).to_json()


@pytest.mark.parametrize("first", [0, 1])
def test_findings_stand_at_the_epochs_that_the_log_prints(tmp_path: Path, first: int) -> None:
    case = logged(tmp_path, first)
    found = [f for f in case["findings"] if f["severity"] == "critical"]
    assert case["run"]["steps"] == [first, first + 11] and found
    assert all(f["steps"][0] == first + 6 and f["axis_steps"][0] == 300 for f in found)
    assert f"steps 300 to 470 (epochs {first + 6} to {first + 9})" in case["answer"]
    assert f"Epochs {first + 6} to {first + 11}" in html.render(case)


def test_a_line_of_the_log_within_a_title_stays(tmp_path: Path) -> None:
    lines = "".join(f"epoch {i} loss {2 / (i + 1):.3f} val_loss {2.1 / (i + 1):.3f}\n" for i in range(9))
    (tmp_path / "train.log").write_text(f"{lines}Traceback (most recent call last):\nValueError: nothing to do in step 7 of 9\n")
    assert "ValueError: nothing to do in step 7 of 9" in forensics.analyze(str(tmp_path)).to_json()["answer"]


def test_a_run_of_epochs_says_one_number_and_one_unit() -> None:
    case = forensics.analyze(str(SAMPLES / "overfitting_keras")).to_json()
    said = [case["answer"], *(f["title"] for f in case["findings"])]
    said += [t for h in case["hypotheses"] for t in (*(c["text"] for c in h["clues"]), h["settle"], *h["interventions"])]
    assert any("epoch 6" in t for t in said) and not any(re.search(r"\bsteps? \d|\d steps?\b", t) for t in said)
    last = next(s for s in case["timeline"]["series"] if s["metric"] == "loss.eval")["lives"][0]["points"][-1][1]
    assert f"ends at {last:.4g}" in case["answer"]
