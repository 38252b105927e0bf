"""A setting that leaves the loss no room, beside twins: the same curve with a usual setting, the same setting under a loss that falls."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import forensics
from forensics.detectors import divergence
from forensics.signs import early_climb, loss_beside_settings
from forensics.signs.sign import ABSENT, CANNOT_TELL, SEEN, Symptoms
from tests.forensics.curves import run_of
from tests.forensics.runs import case, make

CLASSES = 50
STANDS = np.linspace(math.log(CLASSES), 0.8 * math.log(CLASSES), 60)
FALLS = np.linspace(math.log(CLASSES), 0.4 * math.log(CLASSES), 60)
TREES = {"num_leaves": 15, "learning_rate": 0.001}
ADAM = {"optimizer": "adamw"}
HELD = [
    ({"label_smoothing": 0.6, "num_classes": CLASSES}, {"label_smoothing": 0.1, "num_classes": CLASSES}),
    ({"label_smoothing_factor": 0.6}, {"label_smoothing_factor": 0.05}),
    (ADAM | {"eps": 0.3}, ADAM | {"eps": 1e-8}),
    (ADAM | {"lr": 0.5}, ADAM | {"lr": 0.001}),
    (ADAM | {"lr": 1e-6, "model": "mlp"}, ADAM | {"lr": 0.001, "model": "mlp"}),
    (ADAM | {"lr": 0.01, "weight_decay": 30.0}, ADAM | {"lr": 0.01, "weight_decay": 0.01}),
    (TREES, TREES | {"learning_rate": 0.1}),
]


def look(name: str, x: Any, config: dict[str, Any]) -> Any:
    return getattr(loss_beside_settings, name)(Symptoms(run_of({"loss.train": x}, config=config), ()))


@pytest.mark.parametrize(("holds", "usual"), HELD)
def test_a_setting_and_its_effect_are_a_symptom_together(holds: dict[str, Any], usual: dict[str, Any]) -> None:
    assert look("setting_holds_loss_up", STANDS, holds).state == SEEN
    assert look("setting_holds_loss_up", STANDS, usual).state == ABSENT
    assert look("setting_holds_loss_up", FALLS, holds).state == ABSENT


@pytest.mark.parametrize("config", [{"optimizer": "sgd", "lr": 2.0, "grad_clip": 0.25}, {"lr": 0.5}, {"optimizer": "adafactor", "lr": 0.5}])
def test_a_rate_is_judged_of_adam_alone(config: dict[str, Any]) -> None:
    """What SGD bears hangs on the loss and on clipping, and of an optimizer that is not named nothing is known."""
    assert look("setting_holds_loss_up", STANDS, config).state == ABSENT


def test_the_floor_of_smoothing_is_its_entropy() -> None:
    told = look("smoothing_costs_half", STANDS, {"label_smoothing": 0.5, "num_classes": 2})
    right = 0.75
    assert f"costs {-right * math.log(right) - 0.25 * math.log(0.25):.3g} of a loss" in told.text
    assert look("smoothing_costs_half", STANDS, {}).state == CANNOT_TELL
    assert look("smoothing_costs_half", STANDS, {"label_smoothing": 0.0}).state == ABSENT


@pytest.mark.parametrize(
    ("config", "state"),
    [
        ({"max_depth": 4, "eta": 2.6}, SEEN),
        ({"max_depth": 4, "eta": 1.0}, ABSENT),  # XGBoost's documentation: from 0 to 1
        ({"max_depth": 4}, CANNOT_TELL),
        ({"eta": 2.6}, CANNOT_TELL),  # of no trees
        ({"lgbm.max_depth": 4, "mlp.lr": 2.6}, CANNOT_TELL),
    ],
)
def test_boosting_adds_no_more_than_is_left(config: dict[str, Any], state: str) -> None:
    assert look("boosting_overshoots", STANDS, config).state == state


def test_trees_climb_for_no_want_of_clipping() -> None:
    climbs = np.r_[0.7, 0.8, np.full(58, 9.0)]
    of_trees = {"max_depth": 4, "eta": 2.6, "num_classes": 2}
    assert early_climb.loss_climbs_above_any_guess(Symptoms(run_of({"loss.train": climbs}, config={"num_classes": 2}), ())).state == SEEN
    assert early_climb.loss_climbs_above_any_guess(Symptoms(run_of({"loss.train": climbs}, config=of_trees), ())).state == CANNOT_TELL


def test_rounds_of_boosting_reach_what_their_rate_leaves_them() -> None:
    told = look("rounds_cannot_reach", STANDS, TREES)
    assert told.state == SEEN and f"no more than {1 - 0.999**60:.2g} of what there is to learn in 60 rounds" in told.text
    assert look("rounds_cannot_reach", STANDS, {"learning_rate": 0.001}).state == CANNOT_TELL  # no trees
    assert look("rounds_cannot_reach", STANDS, {"num_leaves": 15, "eta": 0.001}).state == SEEN
    assert look("rounds_cannot_reach", STANDS, {"lgbm.num_leaves": 15, "mlp.lr": 0.001}).state == CANNOT_TELL  # of another model
    assert look("rounds_cannot_reach", STANDS, TREES | {"num_iterations": 100_000}).state != SEEN  # planned, and stopped early
    assert look("rounds_cannot_reach", STANDS, {"depth": 12, "learning_rate": 0.001, "batch_size": 64}).state == CANNOT_TELL  # a ViT


def test_a_run_that_has_hardly_begun_is_not_judged() -> None:
    config = ADAM | {"eps": 0.3}
    assert look("setting_holds_loss_up", STANDS, config | {"max_steps": 60}).state == SEEN
    assert look("setting_holds_loss_up", STANDS, config | {"max_steps": 1000}).state == CANNOT_TELL


def test_the_verdict_follows(tmp_path: Path) -> None:
    """The page accuses the setting where the loss stands, and says nothing of it where the loss falls."""
    config = {"label_smoothing": 0.6, "num_classes": CLASSES}
    for name, x, verdict in (("stands", STANDS, "unhealthy"), ("falls", FALLS, "healthy")):
        rows = [{"step": i, "loss": float(v)} for i, v in enumerate(x)]
        found = case(make(tmp_path / name, rows, config))
        assert found["verdict"] == verdict
        if verdict == "unhealthy":
            assert found["hypotheses"][0]["id"] == "regularization_floor" and found["answer"].startswith(
                "Label smoothing of 0.6 over 50 outcomes"
            )


def test_a_loss_below_the_floor_of_smoothing_is_not_smoothed() -> None:
    told = look("smoothing_costs_half", STANDS / 20, {"label_smoothing": 0.1, "num_classes": 2})
    assert told.state == ABSENT and "it is no smoothed one" in told.text


@pytest.mark.parametrize(("lowest", "state"), [(1.27, SEEN), (0.5, ABSENT)])
def test_where_the_outcomes_are_not_known_a_first_loss_above_guessing_counts_too_many(lowest: float, state: str) -> None:
    """Of four classes smoothed by 0.7 no model gets below 1.27; a loss that begins at 1.6 looks like one of five, whose floor is 1.46."""
    told = look("smoothing_costs_half", np.linspace(1.6, lowest, 60), {"label_smoothing": 0.7})
    assert told.state == state


def test_what_drives_a_loss_up_holds_nothing(tmp_path: Path) -> None:
    climbs = np.concatenate([np.full(30, 2.0), np.geomspace(2.0, 2000.0, 30)])
    run = run_of({"loss.train": climbs}, config=ADAM | {"eps": 0.3})
    found = tuple(divergence.detect(run))
    told = loss_beside_settings.setting_holds_loss_up(Symptoms(run, found))
    assert found and told.state == ABSENT and "it is driven" in told.text


def test_an_objective_beside_a_held_out_likelihood_is_one(tmp_path: Path) -> None:
    """What is called an objective may be anything; held-out nats beside it say what it is made of."""
    for tag, state in (("val_nll", SEEN), ("val_mse", CANNOT_TELL)):
        rows = [{"step": i, "obj": float(v), tag: float(v) / 2} for i, v in enumerate(STANDS)]
        run = forensics.read(str(make(tmp_path / tag, rows, {"label_smoothing": 0.6})))
        assert loss_beside_settings.smoothing_costs_half(Symptoms(run, ())).state == state


@pytest.mark.parametrize(
    ("config", "state"),
    [
        ({"last": "softmax", "from_logits": True}, "seen"),
        ({"head_activation": "Sigmoid", "from_logits": "True"}, "seen"),  # as MLflow keeps it
        ({"cls_head": "softmax", "cls_loss": "CategoricalCrossentropy(from_logits=True)"}, "seen"),
        ({"output_activation": "softmax", "criterion": "nn.CrossEntropyLoss"}, "seen"),
        ({"output_activation": "softmax", "criterion": "nn.NLLLoss"}, "cannot tell"),
        ({"attn_activation": "softmax", "criterion": "CrossEntropyLoss"}, "cannot tell"),
        ({"last": "softmax", "from_logits": False}, "absent"),
        ({"last": "logits", "from_logits": True}, "absent"),
        ({"last": "softmax"}, "cannot tell"),
        ({"from_logits": True}, "cannot tell"),
    ],
)
def test_a_config_that_contradicts_itself_about_logits(config: dict[str, Any], state: str) -> None:
    assert look("config_squashes_twice", STANDS, config).state == state
