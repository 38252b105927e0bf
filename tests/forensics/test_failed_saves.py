"""A checkpoint that could not be written is told, and gravely only where the run ended of it."""

from __future__ import annotations

from pathlib import Path

import pytest
from runs import read, write

from forensics.detectors import checkpoint_damage
from forensics.errors import CannotTell

SAVE = 'Traceback (most recent call last):\n  File "/src/train.py", line 42, in save_checkpoint\n    torch.save(x, path)\n'
NO_FOLDER = SAVE + "FileNotFoundError: [Errno 2] No such file or directory: 'out/model_10.pth'\n"


def test_a_run_that_ended_in_a_save_lost_its_checkpoint(tmp_path: Path) -> None:
    (found,) = checkpoint_damage.detect(read(write(tmp_path / "r", log=NO_FOLDER)))
    assert (found.severity, found.facts.unwritten, found.first_step) == ("info", 1, 300)  # the ending says so
    assert "could not be written" in found.title and "FileNotFoundError" in found.title


def test_a_run_that_went_on_is_told_for_information(tmp_path: Path) -> None:
    (tmp_path / "r.log").write_text(
        NO_FOLDER + "".join(f"step {i} loss {2 - i / 100:.4f}\n" for i in range(1, 41)) + "Training completed\n"
    )
    (found,) = checkpoint_damage.detect(read(tmp_path))
    assert found.severity == "info"


def test_an_exception_elsewhere_is_no_failed_save(tmp_path: Path) -> None:
    with pytest.raises(CannotTell):
        list(checkpoint_damage.detect(read(write(tmp_path / "r", log=NO_FOLDER.replace("save_checkpoint", "forward")))))
