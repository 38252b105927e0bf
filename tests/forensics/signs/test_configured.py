"""Signs of the config: each setting says yes, says no, or is not there."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from forensics.signs import configured
from forensics.signs.sign import ABSENT, CANNOT_TELL, SEEN, Symptoms
from tests.forensics.curves import run_of

ADAMW = {"optimizer": "adamw", "lr": 0.01}
SCIKIT = {"estimator": "SGDClassifier", "eta0": 0.1}
CASES = [
    ("clipping_off", {"grad_clip": None}, {"grad_clip": 1.0}, {}),
    ("clipping_off", {"clip_grad": "none"}, {"max_grad_norm": True}, {"grad_clip": "auto"}),
    ("clipping_on", {"grad_clip": 1.0}, {"grad_clip": 1e9}, {}),
    ("clipping_on", {"grad_clip": "0.5"}, {"grad_clip": -1}, {"lr": 1}),
    ("epsilon_tiny", {"adam_eps": 1e-16}, {"eps": 1e-8}, {"norm.eps": 1e-12}),
    ("epsilon_large", {"eps": 0.1, "optimizer": "adam"}, {"eps": 1e-8}, {"eps": 0.1, "optimizer": "sgd"}),
    ("beta2_short", {"adam_beta2": 0.8}, {"beta2": 0.9}, {"beta2": 1.5}),
    ("beta2_short", {"betas": [0.9, 0.3]}, {"optimizer.betas": "(0.9, 0.999)"}, {"betas": "default"}),
    ("half_precision", {"fp16": True}, {"precision": "bf16"}, {}),
    ("half_precision", {"use_fp16": True}, {"use_bf16": True}, {"use_fp16": False}),
    ("full_range_precision", {"dtype": "bfloat16"}, {"dtype": "float16"}, {"dtype": "int8"}),
    ("qk_norm_off", {"qk_norm": False}, {"qk_norm": True}, {}),
    ("qk_norm_on", {"qk_layernorm": True}, {"qk_norm": "none"}, {}),
    ("inputs_left_raw", {"standardize": False}, {"normalize_inputs": True}, {}),
    ("inputs_left_raw", {"scale_features": False}, {"scale_data": True}, {"scale": None}),
    ("init_std_large", {"init_std": 0.5, "n_embd": 64}, {"initializer_range": 0.02, "n_embd": 64}, {"init_std": 0.5}),
    ("init_std_large", {"init_std": 0.2, "n_embd": 64}, {"init_std": 0.1, "n_embd": 64}, {"init_scale": 1.0, "n_embd": 64}),
    ("init_std_large", {"init": "normal_2.0"}, {"init": "normal(0.05)", "hidden": 96}, {"init": "glorot_uniform"}),
    ("init_std_large", {"kernel_init": "RandomNormal(stddev=0.5)", "hidden": 96}, {"init_std": 0.02, "hidden": 96}, {"init_scale": 65536.0}),
    ("init_std_large", {"init_scale": 12.0}, {"init_std": 0.1, "n_embd": 64}, {"init_scale": 2.0}),
    ("weight_decay_strong", ADAMW | {"weight_decay": 30.0}, ADAMW | {"weight_decay": 0.05}, {"optimizer": "adam", "lr": 0.01, "weight_decay": 0.1}),
    ("weight_decay_strong", {"optimizer": "sgd", "lr": 0.1, "wd": 0.05}, {"optimizer": "sgd", "lr": 2.0, "wd": 1e-3}, {"lr": 0.1, "wd": 0.01}),
    ("weight_decay_strong", {"momentum": 0.9, "lr": 0.2, "wd": 0.15}, {"momentum": 0.9, "lr": 0.2, "wd": 1e-4}, {"momentum": 0.1, "lr": 0.2, "wd": 0.15}),
    ("weight_decay_strong", {"optimizer": "adam", "lr": 1e-3, "l2": 0.5}, {"optimizer": "adamw", "lr": 1e-3, "wd": 0.5}, {"optimizer": "adam", "lr": 1e-3, "l2": 0.1}),
    ("weight_decay_strong", {"lr": 1e-3, "l2": 0.5, "max_steps": 100}, {"lr": 1e-3, "l2": 0.0}, {"lr": 1e-3, "l2": 0.1}),
    ("weight_decay_strong", {"lr": 0.002, "wd": 30.0}, {"lr": 0.002, "wd": 0.0}, {"lr": 0.1, "wd": 0.01}),
    ("weight_decay_strong", ADAMW | {"wd": 0.2, "max_steps": 1000}, ADAMW | {"wd": 0.2, "max_steps": 100}, ADAMW),
    ("weight_decay_strong", SCIKIT | {"alpha": 5.0}, SCIKIT | {"alpha": 1e-4}, {"estimator": "MLPRegressor", "lr": 0.01, "alpha": 30.0}),
    ("weight_decay_strong", {"estimator": "MLPRegressor", "lr": 0.01, "alpha": 300.0}, {"estimator": "MLPRegressor", "lr": 0.01, "alpha": 0.0}, SCIKIT),
    ("label_smoothing_set", {"label_smoothing_factor": 0.1}, {"label_smoothing": 0.0}, {}),
    ("scale_configured_static", {"fp16": True, "loss_scale": 128}, {"loss_scale": "dynamic"}, {"bf16": True, "loss_scale": 128}),
    ("scale_configured_static", {"static_loss_scale": 1024}, {"fp16.loss_scale": 0}, {}),
]  # fmt: skip


@pytest.mark.parametrize(("name", "yes", "no", "open_"), CASES)
def test_each_state(name: str, yes: dict[str, Any], no: dict[str, Any], open_: dict[str, Any]) -> None:
    for config, state in ((yes, SEEN), (no, ABSENT), (open_, CANNOT_TELL)):
        found = getattr(configured, name)(Symptoms(run_of({"loss.train": np.ones(30)}, config=config), ()))
        assert found.state == state, (config, found.text)
        assert found.text.endswith(".") and (state == CANNOT_TELL or found.where == "config.json")


def test_a_decay_that_a_huge_rate_makes_strong_is_the_rates_though_the_model_was_trained_before() -> None:
    config = {"optimizer": "adamw", "weight_decay": 0.05, "pretrained": True}
    for rate, state in ((0.04, ABSENT), (0.004, ABSENT)):
        assert (
            configured.weight_decay_strong(Symptoms(run_of({"loss.train": np.ones(30)}, config=config | {"lr": rate}), ())).state == state
        )
    told = configured.weight_decay_strong(
        Symptoms(run_of({"loss.train": np.ones(30)}, config=config | {"lr": 0.004, "weight_decay": 2.0}), ())
    )
    assert told.state == SEEN


@pytest.mark.parametrize(
    ("scale", "config", "state"), [(65536.0, {}, SEEN), (65536.0, {"precision": "bf16"}, ABSENT), (1.0, {}, CANNOT_TELL)]
)
def test_a_loss_scale_is_of_half_precision(scale: float, config: dict[str, Any], state: str) -> None:
    run = run_of({"loss.train": np.ones(20), "loss_scale": np.full(20, scale)}, config=config)
    assert configured.half_precision(Symptoms(run, ())).state == state
