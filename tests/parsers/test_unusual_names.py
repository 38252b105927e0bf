"""What people call and print the things that everybody logs: other languages, formulas, sums of terms, lines of cells, names behind numbers."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import parsers
from parsers.names import meaning

NAMES = {
    "taux_appr": "lr", "Lernrate": "lr", "krok_uczenia": "lr", "tasa_de_aprendizaje": "lr", "öğrenme oranı": "lr", "step_size": "lr", "opt/eta_g": "lr",
    "perte_app": "loss.train", "pérdida_val": "loss.eval", "perda validação": "loss.eval", "strata_wal": "loss.eval", "strata_ucz": "loss.train", "kayip/egitim": "loss.train",
    "Verlust": "loss.train", "perdita.validazione": "loss.eval", "Genauigkeit_Val": "acc.eval", "exactitude": "acc.train", "Époque": "epoch",
    "ℒ": "loss.train", "val_ℒ": "loss.eval", "‖∇‖": "grad.norm", "|∇|": "grad.norm", "gn_pre_clip": "grad.norm", "opt/total_norm": "grad.norm",
    "norme_grad": "grad.norm", "Belohnung": "rl.reward", "clips/s": "tput.samples", "games/s": "tput.samples", "hbm_gib": "mem.alloc", "loss/va": "loss.eval",
    "Surrogate loss": "rl.loss_policy", "info/learner/default_policy/learner_stats/total_loss": "loss.train", "total_weighted_loss": "loss.train",
}  # fmt: skip


@pytest.mark.parametrize("tag", NAMES)
def test_names(tag: str) -> None:
    assert meaning(tag).name == NAMES[tag]


@pytest.mark.parametrize(
    "tag", ["eta_s", "eta", "precision", "media", "norm_layer", "MB/s", "temps", "strata", "prompt length", "base learning"]
)
def test_what_only_looks_alike_keeps_its_own(tag: str) -> None:
    assert not meaning(tag).name.startswith(("lr", "loss", "acc", "grad.norm", "tput"))


def series(path: Path, text: str) -> dict[tuple[str, str], list[tuple[int | None, float]]]:
    path.write_text(text, encoding="utf-8")
    found: dict[tuple[str, str], list[tuple[int | None, float]]] = {}
    for r in parsers.read(path).tables["metrics"].to_pylist():
        found.setdefault((r["tag"], r["name"]), []).append((r["step"], r["value"]))
    return found


FALL = [2.9, 2.1, 1.5, 1.2, 0.9, 0.8]
LINES = {
    "cells between bars": ("ep {n:4d} | R {r:.1f} (best {r:.1f}) | len 1161 | huber {x:.3f} | 258 f/s", "huber", None),
    "marks of another kind": ("Época {n}/9 ▸ pérdida={x:.3f} ▸ pérdida_val={r:.3f} ▸ 6.7 s/época", "loss", "loss.train"),
    "points between cells": ("Épisode x · epoch {n} · loss {x:.3f} · acc 0.5", "loss", "loss.train"),
    "a decimal comma": ("Durchlauf {n}/40 | CTC-Verlust: {c} | Lernrate: 0,0010", "CTC-loss", "loss.train"),
    "an at sign in front": ("@{n:06d}  nce {x:.3f}  |q| 11.38  neg 0.29", "nce", "loss.train"),
    "a step in brackets": ("[{n:06d}] wmse={x:.4f} gn=0.102 lr=1.00e-03 2.24s/it", "wmse", None),
    "a word that touches its number": ("ep{n:02d} silog={x:.4f} d1=0.40", "silog", None),
    "names behind numbers": (" {n}: {x:.6f}, 500.2 avg loss, 0.0001 rate, 3.594846 seconds, 6400 images, 5.4 hours left", "loss", "loss.train"),
    "generations": ("[gen {n:02d}] fit: L={x:.4f} (pi 1.95 + v 0.65)  |g|=0.632  η=0.02", "L", None),
}  # fmt: skip


@pytest.mark.parametrize("form", LINES)
def test_lines(form: str, tmp_path: Path) -> None:
    line, tag, name = LINES[form]
    steps = [3, 4, 5, 6, 7, 8]
    text = "".join(line.format(n=n, x=x, r=-x, c=f"{x:.3f}".replace(".", ",")) + "\n" for n, x in zip(steps, FALL, strict=True))
    found = {t: (called, values) for (t, called), values in series(tmp_path / "train.log", text).items()}
    assert found[tag][1] == list(zip(steps, FALL, strict=True))
    assert name is None or found[tag][0] == name


def test_a_block_below_its_iteration(tmp_path: Path) -> None:
    block = (
        "{rule}\n               Learning iteration {n}/1500               \n\n        Computation: 68167 steps/s (collection: 1.280s, learning 0.237s)\n"
        "        Value function loss: 0.{n}5\n             Surrogate loss: -0.0108\n                Mean reward: {n}.5\n        Mean episode length: 48.94\n{rule}\n"
    )
    found = series(tmp_path / "train.log", "".join(block.format(n=n, rule="#" * 60) for n in (1, 2, 3)))
    assert found["Mean reward", "rl.reward"] == [(1, 1.5), (2, 2.5), (3, 3.5)]
    assert [step for step, _ in found["Mean episode length", "rl.len"]] == [1, 2, 3]
    assert [step for step, _ in found["Value function loss", "rl.loss_value"]] == [1, 2, 3]


@pytest.mark.parametrize(
    "line", ["Updating learning rate to {x}", "Adjusting learning rate of group 0 to {x}.", "learning rate reduced to {x}"]
)
def test_a_rate_that_a_sentence_sets(line: str, tmp_path: Path) -> None:
    text = "".join(f"Epoch: {n}, Steps: 50 | Train Loss: 0.{9 - n}\n{line.format(x=10.0**-n)}\n" for n in (1, 2, 3))
    assert [value for (_, name), rows in series(tmp_path / "train.log", text).items() if name == "lr" for _, value in rows] == [
        0.1,
        0.01,
        0.001,
    ]


def rows(**columns: list[float]) -> str:
    keys = [k.replace("__", "/") for k in columns]
    return "".join(json.dumps(dict(zip(keys, values, strict=True))) + "\n" for values in zip(*columns.values(), strict=True))


def test_the_sum_of_terms_is_the_loss(tmp_path: Path) -> None:
    half = [x / 2 for x in FALL]
    found = series(tmp_path / "log.jsonl", rows(step=[1, 2, 3, 4, 5, 6], bc__total=FALL, bc__speed_ce=half, bc__waypoint=half))
    assert {("bc/total", "loss.train"), ("bc/speed_ce", "loss.aux")} <= set(found)
    counted = [100.0, 200, 300, 400, 500, 600]
    found = series(tmp_path / "log.jsonl", rows(step=[1, 2, 3, 4, 5, 6], total=counted, ce=FALL, seen=counted))
    assert ("ce", "loss.train") in found
    found = series(tmp_path / "log.jsonl", rows(step=[1, 2, 3, 4, 5, 6], time__total=FALL, time__data=half, time__forward=half))
    assert not any(name.startswith("loss") for _, name in found)


def test_what_falls_and_is_measured_of_both_sets_is_the_loss(tmp_path: Path) -> None:
    found = series(
        tmp_path / "log.jsonl", rows(step=[1, 2, 3, 4, 5, 6], hybrid=FALL, dev_hybrid=FALL, clarity=FALL[::-1], dev_clarity=FALL[::-1])
    )
    assert {("hybrid", "loss.train"), ("dev_hybrid", "loss.eval"), ("clarity", "other/clarity")} <= set(found)


def test_the_first_column_counts_whatever_it_is_called(tmp_path: Path) -> None:
    sweeps = "".join(f"{25 * n},{x},0.5\n" for n, x in enumerate(FALL, 1))
    found = series(tmp_path / "log.csv", "tree_no,logloss,lift\n" + sweeps)
    assert [step for step, _ in found["logloss", "loss.train"]] == [25, 50, 75, 100, 125, 150]
    found = series(tmp_path / "log.jsonl", rows(sweep=[1, 2, 3, 4, 5, 6], cost=FALL))
    assert [step for step, _ in found["cost", "loss.train"]] == [1, 2, 3, 4, 5, 6]
    found = series(tmp_path / "log.csv", "elapsed_ms,logloss,lift\n" + sweeps)
    assert [step for step, _ in found["logloss", "loss.train"]] == [0, 1, 2, 3, 4, 5]


def test_comments_with_commas_are_no_header(tmp_path: Path) -> None:
    text = "# a run; seed=3\n# started at noon; cer, wer of the batch\nupd,xent,cer\n" + "".join(
        f"{100 * n},{x},0.3\n" for n, x in enumerate(FALL, 1)
    )
    assert [step for step, _ in series(tmp_path / "log.csv", text)["xent", "loss.train"]] == [100, 200, 300, 400, 500, 600]


ALIKE = {
    "a count in brackets": ("[ppo {n}0] rm=-0.36 kl/seq=0.43 lr=1.0e-5 batch=8 outer={x:.3f} len=14{n}tok rollout=4{n}.4s", "outer", 10),
    "words with blanks": ("after {n} sweeps the misfit stands at {x:.3f} beside 0.{n}1", "sweeps the misfit stands at", 1),
}


@pytest.mark.parametrize("form", ALIKE)
def test_lines_that_come_again_with_other_numbers(form: str, tmp_path: Path) -> None:
    line, tag, times = ALIKE[form]
    text = "".join(f"loading shard\n{line.format(n=n, x=x)}\n" for n, x in enumerate(FALL, 3))
    found = {t: values for (t, _), values in series(tmp_path / "train.log", text).items()}
    assert found[tag] == [(times * n, x) for n, x in enumerate(FALL, 3)]
    assert "by its words" in parsers.read(tmp_path).sources[0].note
    (tmp_path / "train.log").write_text("step 1 loss 2.0\nstep 2 loss 1.5\n" + text)  # a log of which any line measures by its words
    assert "by its words" not in parsers.read(tmp_path).sources[0].note


@pytest.mark.parametrize("line", ["{n} {x} 10", "file_{n}.bin", "read {n} of 9 files", "same 0.5 again 3"])
def test_lines_alike_that_measure_nothing(line: str, tmp_path: Path) -> None:
    (tmp_path / "train.log").write_text("starting\n" + "".join(line.format(n=n, x=x) + "\n" for n, x in enumerate(FALL)))
    assert not parsers.read(tmp_path).tables["metrics"].num_rows
