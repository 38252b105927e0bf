"""A run that counts epochs: every sentence of its case says epochs, what is quoted stays as it is."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import forensics
from forensics.case_parts.axis_words import in_epochs

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


def test_a_line_of_the_log_within_a_title_stays() -> None:
    line = "ValueError: nothing to do in step 7 of 9"
    assert in_epochs(f"Died after step 3: {line}", [line]) == f"Died after epoch 3: {line}"


def test_a_run_of_epochs_says_one_number_and_one_unit() -> None:
    case = forensics.analyze(str(SAMPLES / "overfitting_keras")).to_json()
    said = [case["answer"], *(f["title"] for f in case["findings"])]
    said += [t for h in case["hypotheses"] for t in (*(c["text"] for c in h["clues"]), h["settle"], *h["interventions"])]
    assert any("epoch 6" in t for t in said) and not any(re.search(r"\bsteps? \d|\d steps?\b", t) for t in said)
    last = next(s for s in case["timeline"]["series"] if s["metric"] == "loss.eval")["lives"][0]["points"][-1][1]
    assert f"ends at {last:.4g}" in case["answer"]
