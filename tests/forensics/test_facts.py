"""Planned length on the axis that the log counts, the facts of a run with their places, and what may be judged where losses have other names."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from runs import loss, make, read

import forensics
import parsers
from forensics.detectors import divergence, nonfinite
from forensics.errors import CannotTell
from forensics.run import facts, inputs, plan
from parsers.tables import Run


def run(folder: Path, rows: Sequence[dict[str, Any]], config: dict[str, Any] | None = None, log: str = "") -> Run:
    return read(make(folder, rows, config, log))


def steps(last: int, first: int = 1, **more: Callable[[int], float]) -> list[dict[str, Any]]:
    return [{"step": i, "loss": loss(i)} | {k: f(i) for k, f in more.items()} for i in range(first, last + 1)]


@pytest.mark.parametrize(
    ("last", "config", "planned"),
    [
        (90, {"max_steps": 500}, 500),
        (90, {"max_steps": -1, "total_timesteps": 400}, 400),
        (90, {"n_timesteps": 2e4}, 20000),
        (90, {"niter": 600}, 600),  # ESRGAN and its heirs
        (90, {"niter": 25}, None),  # DCGAN: epochs
        (90, {"max_steps": 50}, None),  # gone past: it counts something else
        (90, {"epochs": 20}, None),  # no steps of an epoch are known
        (90, {"env": {"max_steps": 200}, "max_steps": 500}, 500),
        (50, {"epochs": 50}, 50),  # as many steps as epochs: a step is an epoch
    ],
)
def test_plans_of_settings(tmp_path: Path, last: int, config: dict[str, Any], planned: int | None) -> None:
    assert plan.planned_steps(run(tmp_path, steps(last), config)) == planned


@pytest.mark.parametrize(("lines", "planned"), [([*range(1, 30)], 50), ([*range(1, 15), *range(1, 15)], None)])
def test_a_total_without_a_word_is_the_plan_where_steps_never_fall_back(tmp_path: Path, lines: list[int], planned: int | None) -> None:
    (tmp_path / "train.log").write_text("".join(f"[{i}][{i}/50][1/1] | loss: {2 - i / 50:.3f}\n" for i in lines))
    assert plan.planned_steps(parsers.read_all(tmp_path)[-1]) == planned


def test_epochs_times_measured_steps(tmp_path: Path) -> None:
    rows = steps(90, epoch=lambda i: i / 40)
    found = plan.plan(run(tmp_path, rows, {"num_train_epochs": 3, "max_steps": -1}))
    assert found is not None and (found.value, found.unit) == (120, "step") and "40 steps an epoch" in found.says


def test_a_log_of_epochs_is_planned_in_epochs(tmp_path: Path) -> None:
    rows = [{"epoch": i, "loss": loss(5 * i), "val_loss": loss(5 * i) + 0.1} for i in range(30)]
    r = run(tmp_path, rows, {"epochs": 40, "max_steps": 2000})
    assert (plan.unit(r), plan.planned_steps(r)) == ("epoch", 40)


def test_what_the_loop_prints_beats_a_setting_and_this_is_said(tmp_path: Path) -> None:
    log = "".join(f"iter: {i}/500 loss: {loss(i):.4f}\n" for i in range(1, 60))
    (tmp_path / "train.log").write_text("Namespace(max_iterations=50000, lr=0.1)\n" + log)
    found = plan.plan(forensics.read(str(tmp_path)))
    assert found is not None and found.value == 500 and found.where.startswith("train.log line")
    assert any("50,000" in other for other in found.against)


def test_epoch_and_iteration_are_told_in_epochs(tmp_path: Path) -> None:
    lines = (f"Train Epoch [{e}/20] [{i}/100] loss: {loss(100 * e + i):.4f}\n" for e in range(1, 6) for i in (0, 50))
    (tmp_path / "train.log").write_text("".join(lines))
    case = forensics.analyze(str(tmp_path)).to_json()["run"]
    assert (case["steps"], case["step_unit"], case["planned_steps"]) == ([1, 5], "epoch", 20)
    assert case["axis"]["says"] and case["axis"]["steps"][1] > 400


def test_epochs_are_told_where_the_loop_counts_down_to_the_end_of_the_run(tmp_path: Path) -> None:
    lines = (
        f"Epoch [{e}/7][{i}/100]  lr: 0.1, eta: 0:{(700 - 100 * (e - 1) - i) // 15:02}:30, loss: {loss(100 * e + i):.4f}\n"
        for e in range(1, 4)
        for i in range(10, 101, 10)
    )
    (tmp_path / "train.log").write_text("".join(lines))
    case = forensics.analyze(str(tmp_path)).to_json()["run"]
    assert (case["steps"], case["step_unit"], case["planned_steps"]) == ([1, 3], "epoch", 7)


def test_keras_is_told_in_its_headings_epochs(tmp_path: Path) -> None:
    lines = (f"Epoch {e}/9\n300/300 - 30s - loss: {loss(8 * e):.4f} - val_loss: {loss(8 * e):.4f}\n" for e in range(1, 6))
    (tmp_path / "train.log").write_text("".join(lines))
    case = forensics.analyze(str(tmp_path)).to_json()["run"]
    assert (case["steps"], case["step_unit"], case["planned_steps"]) == ([1, 5], "epoch", 9)


@pytest.mark.parametrize(("last", "expected"), [(6_881_280, 5_000_000), (10_000_000, None)])
def test_rounds_of_rollouts_go_past_the_plan_but_not_by_a_factor(tmp_path: Path, last: int, expected: int | None) -> None:
    rows = [{"step": last * i // 60, "reward": 10 - loss(i)} for i in range(61)]
    assert plan.planned_steps(run(tmp_path, rows, {"num_timesteps": 5_000_000})) == expected


def test_facts_stand_where_they_say(tmp_path: Path) -> None:
    r = run(tmp_path, steps(60), {"max_steps": 100, "precision": "bf16"})
    found = {f["what"]: f for f in facts.facts(r)}
    assert (found["first step"]["value"], found["last step"]["value"]) == (1, 60)
    assert (found["planned steps"]["value"], found["planned steps"]["where"].split()[0]) == (100, "config.json")
    assert (found["last loss"]["value"], found["last loss"]["where"]) == (loss(60), "metrics.jsonl line 60")
    assert found["precision"]["value"] == "bf16"


def test_what_an_engine_prints_of_itself_is_no_first_step(tmp_path: Path) -> None:
    rows = [{"step": 0, "lr": 1e-4}] + [{"step": i, "lr": 1e-4, "loss": loss(i)} for i in range(10, 300, 10)]
    assert facts.labels(run(tmp_path, rows))[0] == [10, 290]


def test_a_run_of_an_epoch_a_row_is_judged(tmp_path: Path) -> None:
    calm = [{"epoch": i, "loss": loss(8 * i)} for i in range(25)]
    assert forensics.analyze(str(Path(run(tmp_path / "calm", calm).path))).verdict == "healthy"
    rising = [{"epoch": i, "loss": loss(20 * i) if i < 12 else 1.6 + 0.3 * (i - 11)} for i in range(25)]
    found = list(divergence.detect(run(tmp_path / "rising", rising)))
    assert len(found) == 1 and found[0].severity == "critical"
    with pytest.raises(CannotTell, match="only 3 finite values"):
        list(divergence.detect(run(tmp_path / "short", calm[:3])))


def test_terms_of_a_loss_are_judged_by_the_one_that_stands_for_it(tmp_path: Path) -> None:
    boxes = [{"epoch": i, "box_loss": loss(8 * i), "obj_loss": 0.1, "val_box_loss": loss(8 * i)} for i in range(25)]
    assert inputs.loss_of(run(tmp_path / "boxes", boxes)).tag == "box_loss"
    game = [{"step": i, "l_d_real": 0.1, "l_g_gan": 2.0, "l_g_pix": loss(i)} for i in range(1, 60)]
    with pytest.raises(CannotTell, match="none of which stands for the whole"):
        inputs.loss_of(run(tmp_path / "game", game))
    broken = [dict(r, l_g_gan=float("nan")) if r["step"] > 40 else r for r in game]
    found = list(nonfinite.detect(run(tmp_path / "broken", broken)))
    assert [f.facts.first for f in found] == [41]


def test_a_perplexity_stands_for_the_loss(tmp_path: Path) -> None:
    r = run(tmp_path, [{"step": i, "eval/ppl": math.exp(loss(i))} for i in range(1, 60)])
    assert inputs.loss_of(r).name == "ppl.eval"


def test_a_log_without_any_training_says_so(tmp_path: Path) -> None:
    (tmp_path / "a3.log").write_text(
        "This is pdfTeX, Version 3.14 (TeX Live 2023)\nentering extended mode\n(rerunfilecheck) Checksum: D41D8CD98F00B204;0.\n"
    )
    case = forensics.analyze(str(tmp_path))
    assert case.verdict == "inconclusive" and case.answer.startswith("No training run was found")


def onecycle(i: int, n: int = 400) -> float:
    """torch's OneCycleLR with its defaults: up by a cosine over 30 %, from a 25th, down to a ten-thousandth of that."""
    up = 0.3 * n
    a, b, u = (1 / 25, 1.0, i / up) if i <= up else (1.0, 1 / 25 / 1e4, (i - up) / (n - up))
    return 3e-3 * (b + (a - b) * (1 + math.cos(math.pi * u)) / 2)


def warmed(fall: Callable[[float], float], warm: int = 20, n: int = 400) -> Callable[[int], float]:
    return lambda i: 3e-4 * (i / warm if i <= warm else fall((i - warm) / (n - warm)))


@pytest.mark.parametrize(
    ("rate", "words"),
    [
        (onecycle, "OneCycle"),
        (warmed(lambda u: (1 + math.cos(math.pi * u)) / 2), "warmup of 20 steps, then cosine"),
        (warmed(lambda u: 0.1 + 0.9 * (1 + math.cos(math.pi * u)) / 2), "warmup of 20 steps, then cosine"),
        (warmed(lambda u: 1 - u), "warmup of 20 steps, then linear"),
        (warmed(lambda u: (1 + math.cos(math.pi * u)) / 2, warm=100), "warmup of 100 steps, then cosine"),
        (warmed(lambda u: 1.0 if u < 0.7 else (1 - u) / 0.3), "warmup, stable, decay (WSD)"),
        (warmed(lambda u: 1.0), "warmup of 20 steps, then constant"),
        (lambda i: 1e-3, "constant"),
        (lambda i: 1e-2 * 0.1 ** (i // 150), "steps (2 drops)"),
        (lambda i: 1e-3 * (1 + math.cos(math.pi * (i % 100) / 100)) / 2 + 1e-6, "5 cycles"),
        (lambda i: 1e-3 * math.sqrt(20 / max(i, 20)) * min(i / 20, 1), "warmup of 20 steps, then inverse root"),
        (lambda i: 1e-3 * (1 + 0.3 * math.sin(i * 1.7)), ""),
    ],
)
def test_the_schedule_by_its_path(rate: Callable[[int], float], words: str, tmp_path: Path) -> None:
    told = [f["value"] for f in facts.facts(run(tmp_path, steps(400, lr=rate))) if f["what"] == "schedule"]
    assert len(told) == 1 and told[0].startswith(words or ("a fall of no", "no shape", "warmup of")), told


def test_evaluations_say_what_differences_they_can_tell(tmp_path: Path) -> None:
    def scattered(i: int, level: float, size: float) -> float:
        return level + size * ((i * 7919) % 13 - 6) / 6

    def told(name: str, config: dict[str, Any] | None = None) -> list[dict[str, Any]]:
        rows = steps(300)
        for r in rows[9::10]:
            i = r["step"]
            r |= {"eval_loss": scattered(i, 1.5 + 2 * math.exp(-i / 80), 0.02), "eval_accuracy": scattered(i, 0.5 + i / 3000, 0.05)}
        return [f for f in facts.facts(run(tmp_path / name, rows, config)) if f["what"].startswith("scatter of")]

    plain = told("plain")
    assert [f["what"] for f in plain] == ["scatter of eval_loss", "scatter of eval_accuracy"]  # the more telling one first
    assert "items" not in str(plain)
    assert "of 400 items, two models have to differ by" in str(told("items", {"eval_samples": 400}))
    assert not [f for f in facts.facts(run(tmp_path / "none", steps(300))) if f["what"].startswith("scatter of")]


def test_epochs_of_a_table_beside_a_log_of_steps_are_not_the_unit(tmp_path: Path) -> None:
    (tmp_path / "history.csv").write_text("epoch,mse_tr\n" + "".join(f"{e},{1 / e}\n" for e in range(1, 19)))
    (tmp_path / "fit.log").write_text("".join(f"it {10 * i} mse={1 / i:.4f} |g|=0.5\n" for i in range(1, 91)))
    assert plan.unit(forensics.read(str(tmp_path))) == "step"


@pytest.mark.parametrize(("at", "planned"), [(31, 50), (12, None)])
def test_the_bar_in_a_log_that_measures_nothing_tells_the_plan_where_it_stands_where_the_epochs_do(
    tmp_path: Path, at: int, planned: int | None
) -> None:
    (tmp_path / "train.log").write_text("".join(f"Train Epoch {i} --- train loss : {2 - i / 50}\n" for i in range(1, 32)))
    (tmp_path / "nohup.log").write_text("27617\n" + "\r".join(f"{2 * i}%|##  | {i}/50 [01:13<1:00:20, 73.88s/it]" for i in range(at + 1)))
    assert plan.planned_steps(read(tmp_path)) == planned


@pytest.mark.parametrize(("laps", "planned"), [(1, 40), (2, None)])
def test_a_bar_without_a_name_that_stands_where_the_epochs_do_tells_the_plan_unless_it_is_drawn_again(
    tmp_path: Path, laps: int, planned: int | None
) -> None:
    bar = "\r".join(f"{i * 100 // 40}%|##  | {i}/40 [01:13<1:00:20, 73.88s/it]" for i in range(32))
    lines = "".join(f"Epoch {i}: Validation Accuracy: {40 + i}.5%\n" for i in range(1, 32))
    (tmp_path / "train.log").write_text("\n".join([bar] * laps) + "\n" + lines)
    assert plan.planned_steps(read(tmp_path)) == planned


@pytest.mark.parametrize(("tag", "told"), [("best_loss", False), ("aux_loss", True)])
def test_the_best_so_far_begins_at_infinity(tag: str, told: bool, tmp_path: Path) -> None:
    rows = [{"step": i, tag: math.inf if i == 1 else 2 / i} for i in range(1, 30)]
    (tmp_path / "log.jsonl").write_text("".join(json.dumps(r) + "\n" for r in rows))
    assert bool(list(nonfinite.detect(read(tmp_path)))) == told


@pytest.mark.parametrize(
    ("line", "severity"),
    [
        ("clearml - INFO - NaN value encountered. Reporting it as '0.0'. Use clearml.Logger.set_reporting_nan_value", "info"),
        ("WARNING: NaN value encountered in the loss of step 3", "warning"),
    ],
)
def test_a_tracker_that_was_given_a_nan_of_some_metric(line: str, severity: str, tmp_path: Path) -> None:
    (tmp_path / "train.log").write_text("".join(f"step {i} loss {3 / i:.4f}\n" for i in range(1, 40)) + line + "\n")
    assert [f.severity for f in nonfinite.detect(read(tmp_path))] == [severity]


@pytest.mark.parametrize(
    ("last", "told"),
    [("Training complete!", 23), ("Early stopping: no improvement", None), ("saving the figures", None)],
    ids=["finished by its own word", "stopped itself early", "says nothing of its end"],
)
def test_a_run_that_finished_was_to_go_as_far(last: str, told: int | None, tmp_path: Path) -> None:
    """Epochs from 0 to 22 are 23; no rule judges the run by it."""
    lines = [f"epoch {i} train loss {loss(10 * i):.4f} val loss {loss(10 * i) + 0.1:.4f}" for i in range(23)]
    (tmp_path / "train.log").write_text("\n".join([*lines, last, ""]))
    r = read(tmp_path)
    found = facts.planned(r)
    assert (None if found is None else found.value) == told
    assert plan.planned_steps(r) is None


def test_what_is_to_be_kept_to_is_a_setting(tmp_path: Path) -> None:
    """``target_kl`` ends as a result does."""
    (tmp_path / "args.json").write_text(json.dumps({"lr": 3e-4, "target_kl": 0.02, "target_entropy": -1.0, "kl": 0.013}))
    (tmp_path / "metrics.csv").write_text("step,loss\n" + "".join(f"{i},{2 / i:.4f}\n" for i in range(1, 30)))
    known = {c["key"] for c in forensics.read(str(tmp_path)).tables["config"].to_pylist()}
    assert {"lr", "target_kl", "target_entropy"} <= known and "kl" not in known
