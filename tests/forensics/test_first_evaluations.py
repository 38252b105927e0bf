"""Evaluations before the first step: what was known and is lost, and a first loss that says nothing of the initialization."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

import forensics
from forensics.detectors import initial_loss
from forensics.errors import CannotTell
from forensics.pipeline import judge
from forensics.run.first_evaluations import with_first
from forensics.run.series import parts
from forensics.signs.loss_level import loss_starts_above_chance
from forensics.signs.sign import Symptoms

NEW = [11.26, 1.382, 0.6502, 0.2944, 0.186, 0.1199, 0.1107, 0.1082]
LOST = [0.000253, 2.908, 3.041, 2.863, 3.425, 3.143, 3.472, 3.525]
KEPT = [0.000253, 0.0312, 0.0303, 0.0154, 0.009, 0.0082, 0.0011, 0.0003]
UNKNOWN = [3.71, 3.6, 3.5, 3.4, 3.3, 3.2, 3.1, 3.0]


def trained(folder: Path, old: list[float], *, printed: bool = True, whole: bool = True) -> Path:
    """A Trainer's folder: its state begins with the first step, its printed log with an evaluation before that."""
    folder.mkdir()
    state, lines = [], []
    for i in range(0, 701, 10):
        if i:
            loss = 11.2 * math.exp(-i / 60) + 0.1
            state.append({"step": i, "epoch": i / 250, "loss": loss, "learning_rate": 1e-3, "grad_norm": 1.0})
            lines.append({"loss": f"{loss:.4g}", "grad_norm": "1", "learning_rate": "0.001", "epoch": f"{i / 250:.4g}"})
        if i % 100 == 0:
            for name, x in (("reverse", NEW), ("base", old)) if whole else (("base", old),):
                told = {f"eval_{name}_loss": x[i // 100], "epoch": i / 250}
                state += [told | {"step": i}] if i else []
                lines.append({k: f"{v:.4g}" for k, v in told.items()})
    (folder / "trainer_state.json").write_text(json.dumps({"global_step": 700, "max_steps": 700, "log_history": state}))
    (folder / "config.json").write_text(json.dumps({"model_type": "gpt2", "vocab_size": 40}))
    if printed:
        (folder / "train.log").write_text("".join(f"{line}\n" for line in lines))
    return folder


@pytest.mark.parametrize(("printed", "first", "step"), [(True, 0.000253, 0), (False, 2.908, 100)])
def test_the_evaluation_that_only_the_printed_log_has(tmp_path: Path, printed: bool, first: float, step: int) -> None:
    run = forensics.read(str(trained(tmp_path / "r", LOST, printed=printed)))
    s = next(with_first(run, p) for p in parts(run, "loss.eval") if "base" in p.tag)
    assert (float(s.value[0]), int(s.step[0]), len(s.source_code)) == (first, step, len(s))


@pytest.mark.parametrize(
    ("old", "printed", "severity"), [(LOST, True, ["warning"]), (LOST, False, []), (KEPT, True, []), (UNKNOWN, True, [])]
)
def test_what_was_known_and_is_lost(tmp_path: Path, old: list[float], printed: bool, severity: list[str]) -> None:
    case = judge(forensics.read(str(trained(tmp_path / "r", old, printed=printed))))
    assert [f.severity for f in case.findings if f.kind == "dataset_loss"] == severity
    assert [h.id for h in case.hypotheses][:1] == ["forgetting"] or not severity


@pytest.mark.parametrize(("old", "whole", "fires"), [(LOST, True, False), (KEPT, True, False), (UNKNOWN, True, True), (KEPT, False, True)])
def test_a_model_that_knows_another_set_was_not_initialized_so(tmp_path: Path, old: list[float], whole: bool, fires: bool) -> None:
    """Of one set alone, which costs other than the training loss, the unit is not known."""
    run = forensics.read(str(trained(tmp_path / "r", old, whole=whole)))
    if fires:
        found = list(initial_loss.detect(run))
        assert [f.severity for f in found] == ["warning"]
        return
    with pytest.raises(CannotTell, match=r"eval_base_loss is 0\.000253: the model was trained before"):
        list(initial_loss.detect(run))
    assert loss_starts_above_chance(Symptoms(run, ())).state == "cannot tell"


@pytest.mark.parametrize(
    ("tag", "other", "severity"),
    [
        ("plain_corpus_nll", [3.7, 5.3, 5.9, 5.2, 5.3], ["warning"]),
        ("general_ppl", [40, 200, 370, 180, 200], ["warning"]),  # the same in e to the nats
        ("plain_corpus_nll", [3.7, 3.8, 3.75, 3.7, 3.7], []),
        ("plain_corpus_nll", [6.7, 8.3, 8.9, 8.2, 8.3], []),  # was as bad as what is new from the start
        ("contrastive_loss", [3.7, 5.3, 5.9, 5.2, 5.3], []),  # no likelihood: its unit is not known
    ],
)
def test_another_corpus_beside_few_evaluations(tmp_path: Path, tag: str, other: list[float], severity: list[str]) -> None:
    rows: list[dict[str, float]] = []
    for step in range(5, 126, 5):
        rows.append({"step": step, "loss": 7 * math.exp(-step / 20) + 0.5})
        if step % 25 == 0:
            rows += [{"step": step, "eval_loss": 7 * math.exp(-step / 20) + 0.52}, {"step": step, tag: other[step // 25 - 1]}]
    (tmp_path / "log.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    case = judge(forensics.read(str(tmp_path)))
    assert [f.severity for f in case.findings if f.kind == "dataset_loss"] == severity
    assert [h.id for h in case.hypotheses][:1] == ["forgetting"] or not severity
