"""Principles of the ranking, each on a small run written for it: what speaks for one neighbour must speak against the other."""

from __future__ import annotations

import math
import random
from pathlib import Path

from small_runs import Rows, analyzed, curve, kinds, lead, probability

import forensics


def test_one_hard_sample_of_a_task_that_is_learnt_is_no_warning(tmp_path: Path) -> None:
    x = [2.2 * math.exp(-i / 30) + 1e-5 * (1 + 0.3 * math.sin(7 * i)) for i in range(600)]
    for name, height, verdict in (("a", 0.4, "healthy"), ("b", 1.4, "unhealthy")):
        rows = [{"step": i, "loss": v + (height if i == 500 else 0)} for i, v in enumerate(x)]
        assert analyzed(tmp_path / name, rows).verdict == verdict


def test_a_loss_that_climbs_above_its_first_level_and_comes_back_late_diverged(tmp_path: Path) -> None:
    x = curve(300, noise=0.05)
    wild = [v + (6.0 * math.exp(-i / 60) if i > 5 else 0) for i, v in enumerate(x)]
    config = {"lr": 0.06, "optimizer": "adamw", "grad_clip": 1.0, "max_steps": 300}
    rows = [{"step": i, "loss": wild[i], "lr": 0.06 * (1 - i / 300)} for i in range(300)]
    case = analyzed(tmp_path / "a", rows, config)
    assert case.verdict == "unhealthy" and probability(case, "lr_too_high") > 0.1
    assert analyzed(tmp_path / "b", [r | {"loss": x[i]} for i, r in enumerate(rows)], config).verdict == "healthy"


def test_the_tail_of_a_spike_that_comes_back_is_no_drift(tmp_path: Path) -> None:
    x = [0.08 + 0.4 * math.exp(-i / 12) + 0.004 * math.sin(7 * i) for i in range(200)]
    tail = [v + (0.8 * math.exp(-(i - 100) / 14) + 0.006 if i >= 100 else 0) for i, v in enumerate(x)]
    case = analyzed(tmp_path / "a", [{"step": i, "loss": v} for i, v in enumerate(tail)])
    assert "loss_spike" in kinds(case) and "divergence" not in kinds(case)
    risen = [v + (0.0004 * (i - 100) if i >= 100 else 0) for i, v in enumerate(x)]
    assert "divergence" in kinds(analyzed(tmp_path / "b", [{"step": i, "loss": v} for i, v in enumerate(risen)]))


def test_data_in_one_order_climb_again_and_again_and_not_for_long(tmp_path: Path) -> None:
    """Dry months and wet ones: the loss is above its first level every pass, for a few values each."""
    seasons = [0.03, 0.03, 0.1, 0.12, 0.1, 0.12, 0.1, 0.03, 0.02, 0.02, 0.02, 0.02, 0.02, 0.02, 0.02] * 10
    rows = [{"step": i, "loss": v * math.exp(-i / 250)} for i, v in enumerate(seasons)]
    assert analyzed(tmp_path / "a", rows).verdict == "healthy"
    assert analyzed(tmp_path / "b", [r | {"loss": 0.1 if 3 <= i < 40 else r["loss"]} for i, r in enumerate(rows)]).verdict == "unhealthy"


def test_a_step_that_rises_no_further_is_another_level_and_no_divergence(tmp_path: Path) -> None:
    x = curve(300, tau=40, noise=0.03)
    rows = [{"step": i, "loss": x[i] * (1.6 if i >= 180 else 1), "lr": 1e-3} for i in range(300)]
    case = analyzed(tmp_path / "r", rows, {"lr": 1e-3, "optimizer": "adamw"})
    assert lead(case) == "data_distribution_shift"
    assert probability(case, "lr_too_high") < 0.1


def test_accuracy_is_no_ratio_scale_and_a_lone_step_of_evaluation_is_found(tmp_path: Path) -> None:
    x = curve(300, noise=0.02)
    rows: Rows = [{"step": i, "loss": x[i]} for i in range(300)]
    learning = [r | ({"val_acc": 0.05 * 1.7 ** (r["step"] / 60)} if r["step"] % 25 == 0 else {}) for r in rows]
    assert "eval_jump" not in kinds(analyzed(tmp_path / "a", learning))
    stepped = [r | ({"val_loss": x[r["step"]] * (1.6 if r["step"] >= 150 else 1)} if r["step"] % 20 == 0 else {}) for r in rows]
    assert lead(analyzed(tmp_path / "b", stepped)) == "eval_changed"


def test_what_megatron_leaves_out_of_its_lines_is_real(tmp_path: Path) -> None:
    folder = tmp_path / "r"
    folder.mkdir()
    line = " [2026-01-07 16:{m:02d}:{s:02d}] iteration {i:8d}/     200 | consumed samples: {c:12d} | elapsed time per iteration (ms): 2477.3 | learning rate: 3.000000E-03 | global batch size:     8 | {loss}loss scale: 16777216.0 | grad norm: {g} | number of skipped iterations:   0 | number of nan iterations: {n:3d} |\n"
    bad = 4
    text = "".join(
        line.format(m=i // 20, s=3 * (i % 20), i=i, c=8 * i, loss="lm loss: 2.757650E+00 | " if i < bad else "", g="inf" if i < bad else "nan", n=int(i >= bad))
        for i in range(1, 120)
    )  # fmt: skip
    (folder / "pretrain.out").write_text(text)
    (folder / "config.json").write_text('{"dtype": "fp16", "max_iters": 200}')
    case = forensics.analyze(str(folder))
    assert lead(case) == "fp16_overflow"
    assert probability(case, "logger_artefact") < 0.2


def test_without_a_gradient_norm_wrong_labels_are_less_sure_and_the_page_says_why(tmp_path: Path) -> None:
    rng = random.Random(1)
    rows = [
        {"step": i, "loss": math.log(10) * (1 + 0.01 * rng.gauss(0, 1)), "lr": 1e-3, "grad_norm": 0.3 + 0.02 * rng.random()}
        for i in range(300)
    ]
    config = {"lr": 1e-3, "num_classes": 10, "optimizer": "adamw"}
    seen = analyzed(tmp_path / "a", rows, config)
    blind = analyzed(tmp_path / "b", [{k: v for k, v in r.items() if k != "grad_norm"} for r in rows], config)
    assert probability(blind, "labels_wrong") < probability(seen, "labels_wrong")
    clues = next(h for h in blind.hypotheses if h.id == "labels_wrong").clues
    assert any(c.text.startswith("Cannot tell: the gradient norm was not logged") and c.weight == 0 for c in clues)
    assert any(b["what"] == "grad.norm" and b["would_tell"] for b in blind.blind_spots)


def test_a_flat_high_stretch_that_ends_at_once_is_data_and_one_that_decays_is_not(tmp_path: Path) -> None:
    x, rng = curve(260, tau=40, noise=0.03), random.Random(1)
    after = [1.0 if i < 130 else 1.6 for i in range(260)]  # the stretch did harm: the old level does not come back

    def rows(high: list[float]) -> Rows:
        return [{"step": i, "loss": x[i] * after[i] + high[i], "grad_norm": 0.3 + high[i] / 3, "lr": 1e-3} for i in range(260)]

    flat = rows([20 + rng.random() if 130 <= i < 165 else 0.0 for i in range(260)])
    hit = rows([20 * math.exp(-(i - 130) / 12) if i >= 130 else 0.0 for i in range(260)])
    off = {"grad_clip": 0, "learning_rate": 1e-3}
    a, b = analyzed(tmp_path / "a", flat, off), analyzed(tmp_path / "b", hit, off)
    assert probability(a, "bad_data_pocket") > 2 * probability(b, "bad_data_pocket")


def test_a_level_that_steps_up_at_a_steady_rate_is_other_data(tmp_path: Path) -> None:
    x = curve(300, low=2.0, tau=80, noise=0.004)
    up = [v * (1.13 if i >= 180 else 1) for i, v in enumerate(x)]
    steady = [{"step": i, "loss": up[i], "grad_norm": 0.5, "lr": 1e-3} for i in range(300)]
    unknown = [{"step": i, "loss": up[i], "grad_norm": 0.5} for i in range(300)]
    case = analyzed(tmp_path / "a", steady)
    assert (case.verdict, lead(case)) == ("unhealthy", "data_distribution_shift")
    assert {f.facts.why for f in case.findings if f.kind == "loss_spike"} == {"data"}
    other = analyzed(tmp_path / "b", unknown)  # the rate may have begun again there
    assert "data" not in {f.facts.why for f in other.findings if f.kind == "loss_spike"}


def test_wide_scatter_is_no_bad_batch_and_a_value_far_outside_it_is_one(tmp_path: Path) -> None:
    rng = random.Random(5)
    wide = [0.2 * math.exp(rng.gauss(0, 0.8)) for _ in range(200)]
    highest = max(wide[60:120])
    for name, top in (("a", 1.3 * highest), ("b", 30 * highest)):
        x = [*wide[:120], top, *wide[121:]]
        case = analyzed(tmp_path / name, [{"step": i, "loss": v, "lr": 1e-3, "grad_norm": 0.5} for i, v in enumerate(x)])
        accused = case.verdict == "unhealthy" and lead(case) == "bad_data_batch"
        assert accused == (name == "b")


def test_a_norm_that_overflows_beside_a_finite_loss_is_no_formula(tmp_path: Path) -> None:
    x = curve(200, low=2.0)
    rows = [{"step": i, "loss": x[i] * (1.5 ** max(i - 125, 0) if i > 125 else 1), "grad_norm": 0.5 if i < 120 else math.inf, "lr": 1e-3} for i in range(200)]  # fmt: skip
    case = analyzed(tmp_path / "a", rows, {"precision": "fp32"})
    assert probability(case, "silent_data_corruption") > probability(case, "nan_from_layer") and probability(case, "nan_from_layer") < 0.3
    nan = [r | {"grad_norm": 0.5 if r["step"] < 120 else math.nan, "loss": r["loss"] if r["step"] <= 120 else math.nan} for r in rows]
    assert lead(analyzed(tmp_path / "b", nan, {"precision": "fp32"})) in ("nan_from_layer", "nan_from_sample")


def test_a_share_of_zeros_among_activations_tells_dead_units(tmp_path: Path) -> None:
    stuck = [{"step": i, "loss": 2.3 + 0.01 * math.sin(i), "lr": 1e-3, "frac_zero_relu": 1.0} for i in range(150)]
    assert lead(analyzed(tmp_path / "a", stuck)) == "dead_or_saturated_units"
    told_nothing = [r | {"kl_loss": 4.0 * math.exp(-r["step"] / 5), "recon_loss": r["loss"]} for r in stuck]  # a dead encoder's latents
    assert lead(analyzed(tmp_path / "b", told_nothing)) == "dead_or_saturated_units"


def test_no_gradient_in_any_layer_is_dead_units_and_in_some_is_freezing(tmp_path: Path) -> None:
    x = [math.log(5) + 0.003 * math.sin(i) for i in range(150)]
    layers = [f"grad_norm/layers.{k}.weight" for k in range(4)]
    dead = [{"step": i, "loss": x[i], "grad_norm": 0.1, "lr": 1e-3} | dict.fromkeys(layers, 0.0) for i in range(150)]
    frozen = [r | {layers[3]: 0.1, "loss": curve(150, low=0.5, high=1.6)[i]} for i, r in enumerate(dead)]
    config = {"num_classes": 5, "learning_rate": 1e-3}
    assert lead(analyzed(tmp_path / "a", dead, config)) == "dead_or_saturated_units"
    assert lead(analyzed(tmp_path / "b", frozen, config)) == "frozen_parameters"


def test_a_unit_of_the_log_does_not_explain_a_nan(tmp_path: Path) -> None:
    x = [math.log2(8) * 1.003 * math.exp(-i / 90) + 0.4 for i in range(200)]
    x[0] = x[1] = x[2] = 3.013
    rows = [{"step": i, "loss": x[i], "grad_norm": 0.5, "lr": 1e-3} for i in range(200)]
    bits = analyzed(tmp_path / "a", rows, {"num_classes": 8})
    died = analyzed(
        tmp_path / "b", [r | ({"loss": math.nan, "grad_norm": math.nan} if r["step"] >= 150 else {}) for r in rows], {"num_classes": 8}
    )
    assert any(f.kind == "logger_artefact" for f in bits.findings)
    assert lead(died).startswith("nan_from")


def test_a_loss_that_scatters_more_the_lower_it_is_does_not_diverge(tmp_path: Path) -> None:
    level = curve(400, low=0.5, high=1.6, tau=250, noise=0)
    for seed in (4, 11, 23, 69, 96):  # where the noise of the whole run would have said so
        rng = random.Random(seed)
        x = [v * math.exp(rng.gauss(0, 0.02 if v > 0.9 else 0.2)) for v in level]
        assert "divergence" not in kinds(analyzed(tmp_path / f"a{seed}", [{"step": i, "loss": v} for i, v in enumerate(x)]))
    up = [v * (1 if i < 300 else 1.02 ** (i - 300)) for i, v in enumerate(x)]
    assert "divergence" in kinds(analyzed(tmp_path / "b", [{"step": i, "loss": v} for i, v in enumerate(up)]))


def evaluated(x: list[float], every: int, held: dict[int, dict[str, float]]) -> Rows:
    return [{"step": i, "loss": v, "grad_norm": 0.5, "lr": 1e-3} | (held[i // every] if i % every == 0 else {}) for i, v in enumerate(x)]


def test_a_share_of_hits_that_steps_up_while_its_loss_goes_on_is_learning(tmp_path: Path) -> None:
    x = curve(320, low=1.2, high=2.1, tau=150)
    hits = [0.1, 0.13, 0.15, 0.16, 0.48, 0.49, 0.5, 0.51, 0.52, 0.52, 0.53, 0.53, 0.54, 0.54, 0.54, 0.55]
    smooth = {k: {"eval_loss": x[20 * k] * 1.02, "eval_accuracy": hits[k]} for k in range(16)}
    both = {k: {"eval_loss": x[20 * k] * (1.02 if k < 4 else 0.6), "eval_accuracy": hits[k]} for k in range(16)}
    assert analyzed(tmp_path / "a", evaluated(x, 20, smooth)).verdict == "healthy"
    assert lead(analyzed(tmp_path / "b", evaluated(x, 20, both))) == "eval_changed"


def test_an_evaluation_that_comes_late_and_then_climbs_is_overfitting_and_no_wrong_labels(tmp_path: Path) -> None:
    x = [2.0 * math.exp(-i / 25) + 1e-4 for i in range(320)]
    rng = random.Random(2)
    held = {k: {"eval_loss": 0.6 + 0.03 * k + 0.01 * rng.random()} for k in range(16)}
    rows = evaluated(x, 20, held)
    rows[0].pop("eval_loss")
    case = analyzed(tmp_path / "a", rows)
    assert lead(case) == "overfitting" and probability(case, "labels_wrong") < 0.1
    rote = {k: {"eval_loss": 2.2 + 0.03 * k + 0.01 * rng.random()} for k in range(16)}
    assert lead(analyzed(tmp_path / "b", evaluated(x, 20, rote))) == "labels_wrong"


def test_a_noisy_evaluation_that_climbs_steadily_overfits(tmp_path: Path) -> None:
    x = [2.8 * math.exp(-i / 80) + 1e-3 for i in range(400)]
    down, up = [2.8, 2.66, 2.36, 2.24, 2.0, 1.9, 1.88, 1.99], [1.86, 1.93, 1.95, 2.04, 1.97, 2.0, 2.04, 2.1, 2.07, 2.09, 2.11, 2.11]
    climbs = {k: {"eval_loss": v} for k, v in enumerate([*down, *up])}
    flat = {k: {"eval_loss": v} for k, v in enumerate([*down, *[1.86 + 0.1 * (k % 3) for k in range(12)]])}
    assert "train_eval_gap" in kinds(analyzed(tmp_path / "a", evaluated(x, 20, climbs)))
    assert "train_eval_gap" not in kinds(analyzed(tmp_path / "b", evaluated(x, 20, flat)))


def test_a_loss_that_reached_zero_can_diverge(tmp_path: Path) -> None:
    x = [max(2 - i / 40, 0.0) if i < 120 else (i - 120) / 20 for i in range(240)]
    case = analyzed(tmp_path / "a", [{"step": i, "loss": v} for i, v in enumerate(x)])
    assert "divergence" in kinds(case) and not any(c.status == "error" for c in case.checks)


def test_a_monitor_that_outlives_the_steps_tells_a_hang(tmp_path: Path) -> None:
    x = curve(200)
    rows = [{"step": i, "loss": x[i], "timestamp": 1.7e9 + i} for i in range(200)]  # to 22:16:39
    alive = "".join(f"2023-11-14 22:{m}:39,000 INFO monitor: pid 81 alive, gpu util 100%\n" for m in range(17, 58, 5))
    done = "2023-11-14 22:16:40,000 INFO Training finished\n"
    case = analyzed(tmp_path / "a", rows, log=alive)
    assert lead(case) == "hang" and case.run["status"] == "hung"
    run = forensics.read(str(tmp_path / "a"))
    assert [e["kind"] for e in run.tables["events"].to_pylist()] == ["alive", "last_line"], "of many lines the last one"
    assert analyzed(tmp_path / "b", rows, log=done).verdict == "healthy"


def test_an_evaluation_that_turns_where_training_jumps_did_not_overfit(tmp_path: Path) -> None:
    rng = random.Random(7)
    x = [
        (3.9 * math.exp(-i / 450) if i < 160 else 2.6 + 1.5 * math.exp(-(i - 160) / 40)) * (1 + 0.01 * rng.gauss(0, 1)) for i in range(350)
    ]
    old = {k: {"eval_loss": x[25 * k] * 1.02 if k <= 6 else 3.4 + 0.1 * (k - 7)} for k in range(14)}
    case = analyzed(tmp_path / "a", evaluated(x, 25, old), {"grad_clip": 0})
    assert lead(case) in ("data_distribution_shift", "bad_data_pocket") and probability(case, "overfitting") < 0.3


def test_labels_learnt_by_rote_a_little_are_wrong_labels(tmp_path: Path) -> None:
    rng = random.Random(8)
    x = [(2.77 if i < 120 else 2.77 - 0.3 * (i - 120) / 230) * (1 + 0.01 * rng.gauss(0, 1)) for i in range(350)]
    rote = {k: {"eval_loss": 2.78 + 0.02 * max(k - 4, 0)} for k in range(14)}
    learns = {k: {"eval_loss": 2.78 - 0.02 * max(k - 4, 0)} for k in range(14)}
    config = {"num_classes": 16, "learning_rate": 1e-3}
    assert lead(analyzed(tmp_path / "a", evaluated(x, 25, rote), config)) == "labels_wrong"
    assert probability(analyzed(tmp_path / "b", evaluated(x, 25, learns), config), "labels_wrong") < 0.2


def test_a_wide_scatter_of_evaluations_holds_no_step(tmp_path: Path) -> None:
    x = curve(350, low=2.2, high=3.4, tau=35)
    held = [
        3.32,
        3.13,
        2.93,
        2.73,
        2.16,
        2.5,
        2.42,
        2.16,
        2.13,
        2.22,
        2.12,
        2.44,
        2.41,
        2.36,
        2.35,
        2.26,
        2.21,
        2.16,
        2.27,
        2.49,
        2.23,
        2.13,
        2.12,
        2.2,
    ]
    rows = evaluated(x, 15, {k: {"eval_loss": v} for k, v in enumerate(held)})
    assert "eval_jump" not in kinds(analyzed(tmp_path / "a", rows))
