"""What W&B prints of a run whose losses stand in another file, behind the traceback that ended it."""

from pathlib import Path

import pytest

import forensics

BAR = "".join(f" {i // 5}%|##   | {i}/500 [{i // 10:02}:55<11:44,  2.92s/it]\n" for i in range(1, 61))
DIED = 'Traceback (most recent call last):\n  File "train.py", line 20, in <module>\n    trainer.train()\nOSError: Disk quota exceeded\n'
SUMMARY = """wandb: Run history:
wandb:   train/global_step ▁▁▂▂▃▃
wandb:          train/loss █▇▆▅▄▃
wandb:
wandb: Run summary:
wandb:   train/global_step {step}
wandb: train/learning_rate 7e-05
wandb:          train/loss 1.4358
wandb:
wandb: Synced 5 W&B file(s), 0 media file(s)
"""


@pytest.mark.parametrize(("step", "read"), [(60, True), (50, True), (400, False)])
def test_the_last_values_stand_where_the_bar_stood(tmp_path: Path, step: int, read: bool) -> None:
    """A step that the bar never reached is of something else."""
    path = tmp_path / "train.err"
    path.write_text(BAR + DIED + SUMMARY.format(step=step))
    case = forensics.analyze(path).to_json()
    assert case["run"]["status"] == "crashed"
    assert (case["run"]["steps"] == [step, step]) is read
    assert ("Died before its first step" in case["answer"]) is not read
    assert case["run"]["planned_steps"] == (500 if step == 60 else None)


def test_beside_losses_of_its_own_it_says_nothing_new(tmp_path: Path) -> None:
    path = tmp_path / "train.log"
    path.write_text("".join(f"step {i} loss {2 / i:.4f}\n" for i in range(1, 40)) + SUMMARY.format(step=39))
    assert forensics.analyze(path).to_json()["run"]["metrics"]["loss.train"]["points"] == 39
