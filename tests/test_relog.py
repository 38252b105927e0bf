"""The same run written again: each transformation gives what it promises, and never touches the original."""

from __future__ import annotations

import importlib
import math
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import forensics
from forensics.run.series import Series, series
from parsers import names
from parsers.tables import Run

REPOSITORY = Path(__file__).resolve().parent.parent
SAMPLES = REPOSITORY / "samples"
JSONL, CONSOLE, EVENTS = "bad_batch_jsonl", "healthy_nanogpt", "healthy_tensorboard"
NAMES = ("loss.train", "loss.eval", "lr", "grad.norm")


@pytest.fixture(scope="module")
def relog() -> Iterator[Any]:
    sys.path.insert(0, str(REPOSITORY / "benchmarks"))
    try:
        yield importlib.import_module("relog")
    finally:
        sys.path.remove(str(REPOSITORY / "benchmarks"))


def bytes_of(folder: Path) -> dict[str, bytes]:
    return {p.relative_to(folder).as_posix(): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def again(relog: Any, sample: str, transformation: str, out: Path, step: int | None = None) -> tuple[Run, Run]:
    """Original and copy, read; the original has its bytes still."""
    before = bytes_of(SAMPLES / sample)
    assert relog.relogged(SAMPLES / sample, out / "run", transformation, step) == out / "run"
    assert bytes_of(SAMPLES / sample) == before
    assert not {"expect.toml", "README.md"} & set(bytes_of(out / "run"))
    return forensics.read(str(SAMPLES / sample)), forensics.read(str(out / "run"))


def curve(run: Run, name: str) -> Series:
    found = series(run, name)
    assert found is not None, name
    return found


def same(a: Series, b: Series, relative: float = 1e-6) -> None:
    assert a.step.tolist() == b.step.tolist()
    np.testing.assert_allclose(b.value, a.value, rtol=relative)


@pytest.mark.parametrize("sample", [JSONL, CONSOLE, EVENTS])
@pytest.mark.parametrize("transformation", ["again", "as_csv", "as_jsonl", "as_console", "as_tensorboard", "as_trainer_state", "renamed",
                                            "key_order", "two_files", "no_config", "no_clock"])  # fmt: skip
def test_what_keeps_the_values_keeps_them(relog: Any, sample: str, transformation: str, tmp_path: Path) -> None:
    if relog.relogged(SAMPLES / sample, tmp_path / "probe", transformation) is None:
        assert not (tmp_path / "probe").exists()
        pytest.skip("not sound for this sample")
    a, b = again(relog, sample, transformation, tmp_path)
    for name in NAMES:
        if (before := series(a, name)) is not None:
            same(before, curve(b, name))
            if transformation == "no_clock":
                assert np.isnan(curve(b, name).time).all()


def test_every_format_is_another_one(relog: Any, tmp_path: Path) -> None:
    formats = {"as_csv": "csv_log", "as_console": "console", "as_tensorboard": "tensorboard", "as_trainer_state": "trainer_state"}
    for transformation, format in formats.items():
        _, b = again(relog, JSONL, transformation, tmp_path / transformation)
        assert {s.format for s in b.sources if s.path in b.tables["metrics"]["source"].to_pylist()} == {format}
    assert relog.relogged(SAMPLES / JSONL, tmp_path / "none", "as_jsonl") is None  # it is one already


def test_other_names_mean_the_same(relog: Any, tmp_path: Path) -> None:
    changes = importlib.import_module("relogging.changes")
    for table in (changes.LIGHTNING, changes.SLASHED):
        assert {n: names.meaning(tag).name for n, tag in table.items()} == {n: n for n in table}
    a, b = again(relog, JSONL, "renamed", tmp_path)
    assert curve(a, "loss.train").tag != curve(b, "loss.train").tag == "train_loss"


def test_fewer_and_shorter_values(relog: Any, tmp_path: Path) -> None:
    a, b = again(relog, JSONL, "every_second", tmp_path / "a")
    assert curve(b, "loss.train").step.tolist() == curve(a, "loss.train").step.tolist()[::2]
    if series(a, "loss.eval") is not None:
        same(curve(a, "loss.eval"), curve(b, "loss.eval"))
    _, b = again(relog, JSONL, "rounded", tmp_path / "b")
    assert curve(b, "loss.train").value.tolist() == [float(f"{v:.4g}") for v in curve(a, "loss.train").value]
    assert curve(b, "grad.norm").value.tolist() == [float(f"{v:.3g}") for v in curve(a, "grad.norm").value]
    _, b = again(relog, JSONL, "smoothed", tmp_path / "c")
    was = curve(a, "loss.train").value.tolist()
    means = [math.fsum(was[max(i - 4, 0) : i + 1]) / min(i + 1, 5) for i in range(len(was))]
    np.testing.assert_allclose(curve(b, "loss.train").value, means, rtol=1e-9)


def test_another_origin(relog: Any, tmp_path: Path) -> None:
    for sample in (JSONL, CONSOLE):
        a, b = again(relog, sample, "offset", tmp_path / sample)
        by = 1 if curve(a, "loss.train").step[0] == 0 else -1
        assert (curve(b, "loss.train").step - curve(a, "loss.train").step == by).all()
        assert b.tables["batches"]["step"].to_pylist() == [s + by for s in a.tables["batches"]["step"].to_pylist()]


@pytest.mark.parametrize(("transformation", "gone"), [("no_lr", "lr"), ("no_grad_norm", "grad.norm"), ("no_eval", "loss.eval")])
def test_what_is_dropped_is_gone_and_no_more(relog: Any, transformation: str, gone: str, tmp_path: Path) -> None:
    a, b = again(relog, EVENTS, transformation, tmp_path)
    assert series(a, gone) is not None and series(b, gone) is None
    for name in NAMES:
        if name != gone and (before := series(a, name)) is not None:
            same(before, curve(b, name))


def test_settings_are_dropped(relog: Any, tmp_path: Path) -> None:
    a, b = again(relog, JSONL, "no_config", tmp_path)
    assert a.tables["config"].num_rows and not b.tables["config"].num_rows


def test_a_run_ends_some_steps_after_its_event(relog: Any, tmp_path: Path) -> None:
    a, b = again(relog, JSONL, "cut_after", tmp_path, 348)
    steps = curve(a, "loss.train").step
    assert curve(b, "loss.train").step[-1] == 348 + math.ceil(0.1 * (steps[-1] - steps[0]))
    assert relog.relogged(SAMPLES / JSONL, tmp_path / "none", "cut_after") is None  # without a step


def test_two_files_are_two(relog: Any, tmp_path: Path) -> None:
    a, b = again(relog, "overfitting_keras", "two_files", tmp_path)
    assert sorted(p.name for p in (tmp_path / "run").glob("*.csv")) == ["training_eval.csv", "training_train.csv"]
    for name in ("loss.train", "loss.eval"):
        same(curve(a, name), curve(b, name))


def test_lines_that_are_no_rows_stay(relog: Any, tmp_path: Path) -> None:
    again(relog, "code_error_titan", "every_second", tmp_path)
    logs = [p for p in (tmp_path / "run").rglob("*") if p.is_file() and b"KeyError" in p.read_bytes()]
    assert logs


def test_the_command_prints_a_table(relog: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "argv", ["relog.py", "--only", "as_csv", "--limit", "2"])
    relog.main()
    assert "| as_csv |" in capsys.readouterr().out


def test_the_last_step_that_a_truth_names(relog: Any, tmp_path: Path) -> None:
    (tmp_path / "truth").mkdir()
    (tmp_path / "truth" / "x.json").write_text(
        '{"id": "x", "verdict": "unhealthy", "causes": [], "acceptable": [], "fault_steps": [3, 5], "spikes": [{"end": 9}]}'
    )
    (tmp_path / "truth.json").write_text('[{"id": "y", "family": "f", "kind": "faulty", "first_fault_step": 0}]')
    assert [t.last for t in relog.corpora.read(tmp_path)] == [9, None]
    assert {t.id: t.last for t in relog.corpora.read(SAMPLES)}[JSONL] == 348
