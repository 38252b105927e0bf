"""`forensics tables --verify`: two readers of one file, and what is said where they differ."""

from __future__ import annotations

import math
import sys
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result

from forensics import verify
from forensics.cli import main
from forensics.verify import second_readers

ROOT = Path(__file__).resolve().parents[2]


def tables(*args: object) -> Result:
    return CliRunner().invoke(main, ["tables", *map(str, args)], catch_exceptions=False)


@pytest.fixture
def event_run(tmp_path: Path) -> Path:
    from torch.utils.tensorboard import SummaryWriter

    folder = tmp_path / "tb"
    with SummaryWriter(str(folder)) as writer:
        for step in range(50):
            writer.add_scalar("loss", math.nan if step == 40 else 0.1 * step, step)
            writer.add_scalar("lr", math.inf if step == 7 else 1e-4, step, new_style=True)
        writer.add_scalar("loss", 9.0, 49)  # a step that is logged twice
        writer.add_text("note", "no number")
        writer.add_histogram("weights", np.arange(9.0), 1)
    return folder


@pytest.fixture
def wandb_run(tmp_path: Path) -> Path:
    wandb = pytest.importorskip("wandb")
    settings = wandb.Settings(console="off", silent=True)
    with wandb.init(mode="offline", dir=str(tmp_path), project="p", settings=settings) as run:
        for step in range(50):
            run.log({"loss": math.nan if step == 40 else 0.1 * step, "nested": {"a": step, "word": "x"}, "good": True})
        run.log({"weights": wandb.Histogram(np.arange(9.0)), "note": "text"})
        run.summary["best"] = 0.25
    wandb.teardown()  # the file is written by a process of its own: wait until it has ended
    return tmp_path / "wandb"


def test_readers_agree_on_what_torch_wrote(event_run: Path) -> None:
    result = tables(event_run, "--verify")
    assert result.exit_code == 0, result.output
    assert result.stdout.endswith("Both readers agree on all 101 values in 1 file.\n")
    assert "101 values agree (tbparse " in result.stdout


def test_an_event_file_of_another_name_is_read_by_both(event_run: Path, tmp_path: Path) -> None:
    (file,) = event_run.iterdir()
    found = verify.compare(file.rename(tmp_path / "renamed.bin"), "renamed.bin", "tensorboard")
    assert found.is_same and found.agree == 101


def test_readers_agree_on_what_wandb_wrote(wandb_run: Path) -> None:
    (file,) = wandb_run.rglob("*.wandb")
    found = verify.compare(file, file.name, "wandb_offline")
    assert found.is_same and found.agree >= 50 * 3 + 1, found
    theirs, _ = second_readers.wandb_file(file)
    assert {"loss", "nested.a", "good", "best"} <= theirs.keys() and not {"weights.bins", "note", "nested.word", "_step"} & theirs.keys()
    assert tables(wandb_run, "--verify").exit_code == 0


@pytest.mark.parametrize("sample", ["healthy_wandb", "rollback_tensorboard", "nan_layer_tensorboard"])
def test_readers_agree_on_samples(sample: str) -> None:
    result = tables(ROOT / "samples" / sample, "--verify")
    assert result.exit_code == 0 and "Both readers agree on all" in result.stdout


def test_each_kind_of_difference_is_counted_and_told(event_run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def other(path: Path) -> tuple[second_readers.Values, str]:
        values, stopped = second_readers.event_file(path)
        key, value = values["loss"]
        value[3] += 0.5
        lr = values["lr"]
        return {"loss": (key, value), "lr": (lr[0][:-2], lr[1][:-2]), "ghost": (np.array([5]), np.array([math.nan]))}, stopped

    monkeypatch.setitem(verify.READERS, "tensorboard", ("tbparse", other))
    result = tables(event_run, "--verify")
    assert result.exit_code == 1
    assert "98 values agree, 1 differ, 2 only in forensics, 1 only in tbparse" in result.stdout
    assert f"loss at step 3: {float(np.float32(0.3))!r} in forensics, {float(np.float32(0.3)) + 0.5!r} in tbparse" in result.stdout
    assert "lr at step 49: " in result.stdout and "missing in tbparse" in result.stdout
    assert "ghost at step 5: missing in forensics, nan in tbparse" in result.stdout
    assert result.stdout.endswith("The readers disagree in 1 of 1 file.\n")


def test_ten_differences_are_listed_and_the_rest_counted(event_run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(verify.READERS, "tensorboard", ("tbparse", lambda path: ({}, "")))
    result = tables(event_run, "--verify")
    assert result.exit_code == 1 and result.stdout.count("missing in tbparse") == 10 and "and 91 more" in result.stdout


def test_a_reader_that_stops_early_is_no_agreement(tmp_path: Path) -> None:
    (sample,) = (ROOT / "samples" / "healthy_wandb").rglob("*.wandb")
    data = bytearray(sample.read_bytes())
    data[len(data) // 2] ^= 0xFF
    (tmp_path / sample.name).write_bytes(data)
    result = tables(tmp_path, "--verify")
    assert result.exit_code == 1
    assert "broke off: ValueError: damaged at byte " in result.stdout and " only in forensics" in result.stdout


@pytest.mark.parametrize(("package", "sample"), [("tbparse", "healthy_tensorboard"), ("wandb", "healthy_wandb")])
def test_a_reader_that_is_not_installed_is_named(package: str, sample: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [n for n in sys.modules if n.split(".")[0] == package]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, package, None)
    result = tables(ROOT / "samples" / sample, "--verify")
    assert result.exit_code == 1
    assert f"with {package}, which is not installed" in result.stderr and "run-forensics[verify]" in result.stderr


def test_it_writes_and_verifies_in_one_go(event_run: Path, tmp_path: Path) -> None:
    result = tables(event_run, "--out", tmp_path / "out", "--verify")
    assert result.exit_code == 0 and (tmp_path / "out" / "metrics.parquet").exists()


def test_without_anything_to_do_it_says_so(event_run: Path) -> None:
    assert tables(event_run).exit_code == 2
    result = tables(ROOT / "samples" / "healthy_lightning", "--verify")
    assert result.exit_code == 1 and "nothing to verify" in result.stderr


def test_on_a_terminal_it_is_a_table(event_run: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    from forensics.verbs import verify_output

    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    verify_output.show([verify.Comparison("a.tfevents", "tbparse 0.0.9", 7, 0, 0, 0), verify.Comparison("b", "wandb 1", 1, 2, 0, 0)])
    said = capsys.readouterr().out
    assert "second reader" in said and "a.tfevents: " not in said and "b: 1 value agrees, 2 differ" in said
