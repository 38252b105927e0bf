"""Which data the numbers of a console log are of: words in the line, labels within it, headings above it; each rule beside what only looks like it."""

from __future__ import annotations

from pathlib import Path

import pytest

from parsers.console_format.line_numbers import read_line
from parsers.console_format.line_prefix import prefix, seconds
from tests.parsers.test_console_tables import series


def tags(text: str) -> list[str]:
    return [tag for tag, _ in read_line(text).metrics()]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Epoch 3 - Train: loss 0.5, hit 0.2 - Val: loss 0.6, hit 0.1", ["loss", "hit", "val loss", "val hit"]),
        ("Epoch 3 | val: loss=0.6 | train: loss=0.5", ["val loss", "loss"]),
        ("[Epoch 3] [Train] loss: 0.5 [Test] loss: 0.6", ["loss", "test loss"]),
        ("Epoch 3 - Validation CHRF: CHRF-1 41.5, CHRF-2 33.25", ["validation CHRF-1", "validation CHRF-2"]),
        ("Epoch 3: Train Loss=0.5, Val Loss=0.6", ["Train Loss", "Val Loss"]),
        ("Epoch 3: G loss=0.5, D loss=0.6", ["G loss", "D loss"]),
        ("Epoch 3 accuracy (test): 0.4, accuracy (train): 0.5", ["accuracy (test)", "accuracy (train)"]),
        # not labels: a number stands behind, a path, what was best before, one loss alone
        ("Epoch 3: loss: 0.5, Test: 0.6", ["loss", "Test"]),
        ("Epoch 3 loss: 0.5, best val: loss 0.4", ["loss", "loss"]),
        ("Epoch 3 loss=0.5 saved to runs/test: done", ["loss"]),
        ("Epoch 3 final loss=0.5", ["loss"]),
    ],
)
def test_the_words_of_a_line_say_of_which_data_its_numbers_are(text: str, expected: list[str]) -> None:
    assert tags(text) == expected


@pytest.mark.parametrize(
    ("text", "place", "metrics"),
    [
        ("Mean loss at step 120: 0.75", {"step": 120}, [("Mean loss", 0.75)]),
        ("Cost after epoch 12: 0.75", {"epoch": 12}, [("Cost", 0.75)]),
        ("Score at iteration 120 is 0.75", {"step": 120}, [("Score (loss)", 0.75)]),
        ("epoch 4, Mean Negative ELBO   4.5, PPL: 90.0", {"epoch": 4}, [("Mean Negative ELBO", 4.5), ("PPL", 90.0)]),
        ("epoch 4, minibatch 7/7, validation error 5.5 %", {"epoch": 4}, [("validation error", 5.5)]),
        # the step names itself, a word of its own stands between, a count or a duration in prose
        ("loss at step 120, lr: 0.5", {"step": 120}, [("lr", 0.5)]),
        ("epoch 4, of all files 500, it took 3.5 minutes, loss 0.5", {"epoch": 4}, [("loss", 0.5)]),
        ("epoch 4: loss 0.5 time: 15m 1s", {"epoch": 4}, [("loss", 0.5)]),
    ],
)
def test_names_that_stand_before_a_step_or_between_marks(text: str, place: dict[str, int], metrics: list[tuple[str, float]]) -> None:
    line = read_line(text)
    assert {k: v for k, v in line.parts().items() if k in place} == place
    assert line.metrics() == metrics


@pytest.mark.parametrize(
    ("text", "body"),
    [
        ("12:00:01.250 [main] INFO org.some.Listener - loss 1", "loss 1"),
        ("2026-01-02 12:00:01,250 - logs\\run.log - INFO - loss 1", "loss 1"),
        ("2026-01-02 12:00:01,250 -my_app-INFO-train:loss 1", "loss 1"),
        ("20260102-12:00:01 loss 1", "loss 1"),
        ("[main] loss 1", "[main] loss 1"),
        ("20260102 loss 1", "20260102 loss 1"),
    ],
)
def test_what_stands_before_a_message(text: str, body: str) -> None:
    assert text[prefix(text).body :].strip() == body


def test_a_clock_without_dashes() -> None:
    assert seconds("20260102-12:00:01", "compact") == seconds("2026-01-02 12:00:01", "iso")


def test_a_loss_at_a_step_is_no_setting(tmp_path: Path) -> None:
    text = "".join(f"Minibatch loss at step {i}: {2 / i}\nValidation accuracy: {i / 10}\n" for i in (100, 200, 300))
    assert series(tmp_path, text) == {
        "Minibatch loss": [(100, 0.02), (200, 0.01), (300, 2 / 300)],
        "Validation accuracy": [(100, 10.0), (200, 20.0), (300, 30.0)],
    }
