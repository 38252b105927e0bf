"""Principles of the ranking: what the log shows that rules a cause out, however often it is the cause elsewhere."""

from __future__ import annotations

import math
import random
from pathlib import Path
from typing import Any

import pytest

from tests.forensics.small_runs import Rows, analyzed, curve, lead, probability

NAN = math.nan


def never_finite(first: int, every: int = 10, **more: Any) -> Rows:
    return [{"step": i, "loss": NAN, "grad_norm": NAN} | more for i in range(first, first + 60 * every, every)]


def test_nan_before_training_could_make_it_is_the_model_or_the_data(tmp_path: Path) -> None:
    case = analyzed(tmp_path / "a", never_finite(10, lr=1e-3), {"optimizer": "adam", "lr": 1e-3})
    layer, sample = probability(case, "nan_from_layer"), probability(case, "nan_from_sample")
    assert lead(case) in ("nan_from_layer", "nan_from_sample")
    assert max(layer, sample) < 0.5 and max(layer, sample) < 2 * min(layer, sample), "the log does not tell them apart"
    assert probability(case, "lr_too_high") == probability(case, "gradient_clipping_missing") == 0


@pytest.mark.parametrize(
    ("first", "rate"), [(500, 1e-3), (10, 1.0)], ids=["many updates before it", "a rate of a thousand times the usual"]
)
def test_nan_that_updates_could_make_may_be_the_rate(first: int, rate: float, tmp_path: Path) -> None:
    config = {"optimizer": "adam", "lr": rate, "model": "mlp"}
    assert probability(analyzed(tmp_path / "a", never_finite(first, lr=rate), config), "lr_too_high") > 0.05


def test_a_norm_of_nan_is_not_that_of_masked_labels(tmp_path: Path) -> None:
    """Where every label is masked the mean is zero over zero, and the gradient is zero (torch) or was not logged."""
    masked = [r | {"grad_norm": 0.0} for r in never_finite(10)]
    assert lead(analyzed(tmp_path / "a", masked)) == "labels_all_masked"
    assert lead(analyzed(tmp_path / "b", never_finite(10))) != "labels_all_masked"


def test_a_gradient_that_is_nan_before_any_update_is_a_formula(tmp_path: Path) -> None:
    rows = [r | ({"loss": 3.0} if r["step"] == 0 else {}) for r in never_finite(0, lr=1e-3)]
    case = analyzed(tmp_path / "a", rows)
    assert lead(case) == "nan_from_layer"
    assert probability(case, "lr_too_high") == probability(case, "nan_from_sample") == probability(case, "logger_artefact") == 0


def test_a_scaler_that_looks_for_its_scale_is_well(tmp_path: Path) -> None:
    x = curve(300)
    rows = [{"step": i, "loss": x[i], "grad_norm": NAN if i < 4 else 0.5, "loss_scale": 65536.0 / 2 ** min(i, 4), "lr": 1e-3} for i in range(300)]  # fmt: skip
    assert analyzed(tmp_path / "a", rows, {"precision": "fp16"}).verdict == "healthy"


def test_a_term_that_is_always_nan_beside_a_sound_loss_accuses_nobody(tmp_path: Path) -> None:
    rows = [{"step": i, "loss": v, "val/mean_iou": NAN, "lr": 1e-3} for i, v in enumerate(curve(300))]
    assert analyzed(tmp_path / "a", rows).verdict == "healthy"


def test_weights_that_never_move_learn_from_no_label(tmp_path: Path) -> None:
    """What moves beside them lets the loss fall, as a temperature does; labels would have had to move the weights."""
    x = curve(300, low=4.4, high=5.4)
    rows = [{"step": i, "loss": x[i], "grad_norm": 8.0, "param_norm": 13.321462631225586} for i in range(300)]
    rows = [r | ({"val_loss": 5.4} if r["step"] % 30 == 0 else {}) for r in rows]
    moves = [r | {"param_norm": 13.321462631225586 + r["step"] / 1000} for r in rows]
    still = analyzed(tmp_path / "a", rows)
    assert lead(still) == "frozen_parameters" and probability(still, "labels_wrong") == 0
    assert lead(analyzed(tmp_path / "b", moves)) == "labels_wrong"


def test_updates_far_below_a_thousandth_of_the_weights_are_a_rate_too_low(tmp_path: Path) -> None:
    x = curve(300, low=4.9, high=5.4, tau=150)
    rows = [{"step": i, "loss": x[i], "grad_norm": 8.0, "update_ratio": 2e-5 * (1 - i / 300)} for i in range(300)]
    case = analyzed(tmp_path / "a", rows)
    assert (case.verdict, lead(case)) == ("unhealthy", "lr_too_low")
    assert analyzed(tmp_path / "b", [r | {"update_ratio": r["update_ratio"] * 50} for r in rows]).verdict == "healthy"


def at_the_mean(spread: float, norm: float) -> Rows:
    """A regression that gives one answer: its error is the variance of the targets."""
    return [{"step": i, "train_mse": 1.0 + 0.02 * math.sin(i), "grad_norm": norm, "pred_std": spread} for i in range(120)]


@pytest.mark.parametrize(("spread", "norm", "first"), [(2e-8, 0.5, "dead_or_saturated_units"), (0.0, 0.0, "dead_or_saturated_units"), (0.4, 0.0, "frozen_parameters")])  # fmt: skip
def test_predictions_without_spread_are_dead_units_and_with_it_none(spread: float, norm: float, first: str, tmp_path: Path) -> None:
    case = analyzed(tmp_path / "a", at_the_mean(spread, norm))
    assert lead(case) == first
    assert (probability(case, "dead_or_saturated_units") > 0.5) == (first == "dead_or_saturated_units")


def test_predictions_that_are_alike_at_first_and_then_learn_accuse_nobody(tmp_path: Path) -> None:
    x = curve(200, low=0.1, high=1.0)
    rows = [{"step": i, "train_mse": x[i], "grad_norm": 0.5, "pred_std": 0.0 if i < 3 else 1 - x[i]} for i in range(200)]
    assert analyzed(tmp_path / "a", rows).verdict == "healthy"
    one = [r | {"pred_std": 0.0} for r in rows]  # as where each batch is one sample
    assert analyzed(tmp_path / "b", one, {"batch_size": 1}).verdict == "healthy"


def test_units_that_are_all_zero_at_first_are_dead_where_nothing_is_learnt(tmp_path: Path) -> None:
    stuck = [{"step": i, "loss": 1.609 + 0.01 * math.sin(i), "zero_frac": 1.0 if i < 60 else 0.625} for i in range(300)]
    x = curve(300, low=0.3, high=1.6)
    learns = [{"step": i, "loss": x[i], "zero_frac": 1.0 if i < 40 else 0.6} for i in range(300)]  # branches that begin at zero
    sparse = [{"step": i, "loss": 1.609 + 0.01 * math.sin(i), "zero_frac": 0.6} for i in range(300)]
    assert lead(analyzed(tmp_path / "a", stuck)) == "dead_or_saturated_units"
    assert analyzed(tmp_path / "b", learns).verdict == "healthy"
    assert probability(analyzed(tmp_path / "c", sparse), "dead_or_saturated_units") == 0


def two_heads(hits: list[float], late: int = 200) -> Rows:
    """A head that guesses among four classes until a step, and one that learns; ten evaluations of their accuracy."""
    boxes, cls = curve(200, low=0.02, high=0.8), [1.386 + 0.01 * math.sin(i) - (0.9 if i >= late else 0) for i in range(200)]
    rows = [{"step": i, "loss": cls[i] + boxes[i], "loss_cls": cls[i], "loss_bbox": boxes[i]} for i in range(200)]
    return [r | ({"val_acc": hits[r["step"] // 20]} if hits and r["step"] % 20 == 0 else {}) for r in rows]


LEARNT = [0.25, 0.3, 0.4, 0.5, 0.6, 0.7, 0.75, 0.8, 0.85, 0.9]


@pytest.mark.parametrize(
    ("hits", "late"), [(LEARNT, 200), ([], 200), (LEARNT, 120)], ids=["the accuracy is of another head", "no accuracy", "it learns late"]
)
def test_a_term_near_a_logarithm_alone_accuses_nobody(hits: list[float], late: int, tmp_path: Path) -> None:
    """As the loss of a domain classifier that is to be confused, or of a discriminator at its balance."""
    assert analyzed(tmp_path / "a", two_heads(hits, late)).verdict == "healthy"


def blown_up(norm_after: float) -> Rows:
    """Learns for half of the run, then stands where it began."""
    x, rng = curve(300, low=1.3, high=3.0, tau=40), random.Random(1)
    loss = [x[i] if i < 150 else 17.0 if i == 150 else 2.98 + 0.02 * rng.gauss(0, 1) for i in range(300)]
    norm = [2.0 + 0.2 * rng.random() if i < 150 else 150.0 if i == 150 else norm_after * (0.8 + 0.4 * rng.random()) for i in range(300)]
    return [{"step": i, "loss": loss[i], "grad_norm": norm[i], "lr": 0.12 if i < 220 else 0.012} for i in range(300)]


def test_what_a_blow_up_undid_is_neither_labels_nor_a_low_rate(tmp_path: Path) -> None:
    case = analyzed(tmp_path / "a", blown_up(0.1), {"optimizer": "sgd", "grad_clip": 0})
    assert lead(case) in ("gradient_clipping_missing", "lr_too_high")
    assert [probability(case, c) for c in ("labels_wrong", "lr_too_low", "frozen_parameters")] == [0] * 3
    other_data = analyzed(tmp_path / "b", blown_up(2.0), {"optimizer": "sgd", "grad_clip": 0})
    assert probability(other_data, "data_distribution_shift") > 0


def test_a_loss_beyond_any_guess_was_thrown_there(tmp_path: Path) -> None:
    rng = random.Random(1)
    rows = [{"step": i, "loss": (v := 35 + 3 * rng.gauss(0, 1)), "ppl": math.exp(v), "lr": 20.0} for i in range(120)]
    case = analyzed(tmp_path / "a", rows)
    assert lead(case) == "lr_too_high" and probability(case, "gradient_clipping_missing") > 0
    assert probability(case, "labels_wrong") == probability(case, "lr_too_low") == 0


def test_a_loss_that_was_summed_by_mistake_is_no_rate_too_low(tmp_path: Path) -> None:
    """Where training loss is the evaluation loss times the size of a batch, so is the gradient."""

    def stuck(factor: float) -> Rows:
        rows: Rows = [{"step": i, "loss": factor * (1.79 + 0.01 * math.sin(i)), "grad_norm": 2.0} for i in range(200)]
        return [r | ({"val_ce": 1.8 + 0.01 * math.cos(r["step"])} if r["step"] % 20 == 10 else {}) for r in rows]

    summed = analyzed(tmp_path / "a", stuck(16.0), {"batch_size": 16})
    assert lead(summed) == "loss_scaled_wrong" and probability(summed, "lr_too_low") == probability(summed, "labels_wrong") == 0
    meant = analyzed(tmp_path / "b", stuck(1.0), {"batch_size": 16})
    assert probability(meant, "lr_too_low") > 0 and probability(meant, "loss_scaled_wrong") == 0


def noise_alone(norm: float, learnt: float = 0.0) -> Rows:
    """Batches grow harder by the way; what is evaluated moves by as much as was learnt."""
    rng = random.Random(3)
    rows: Rows = [{"step": i, "loss": 7.5 + 0.8 * i / 200 + 0.1 * rng.gauss(0, 1), "grad_norm": norm, "lr": 1e-3} for i in range(200)]
    return [r | ({"eval_loss": 11.25793 - learnt * r["step"]} if r["step"] % 20 == 10 else {}) for r in rows]


@pytest.mark.parametrize(("norm", "learnt", "bears"), [(0.0, 0.0, 0), (0.5, 0.0, 1), (0.0, 0.03, 1)], ids=["zero", "a gradient", "cleared"])
def test_where_no_gradient_ever_is_no_rate_is_too_high(norm: float, learnt: float, bears: int, tmp_path: Path) -> None:
    """A norm of zero beside an evaluation that learns was taken after zero_grad."""
    case = analyzed(tmp_path / "a", noise_alone(norm, learnt), {"optimizer": "adam", "lr": 1e-3})
    assert (probability(case, "lr_too_high") > 0) == bool(bears)
    assert lead(case) == "frozen_parameters" or bears
