"""No sign breaks on a run that has next to nothing in it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from forensics import pipeline
from forensics.signs.sign import Symptoms, looks
from tests.forensics.curves import run_of

NAMES = ("loss.train", "loss.eval", "lr", "grad.norm", "loss_scale", "batch.size", "acc.eval", "time.step")
ODD: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "nothing": ({}, {}),
    "one value": ({n: np.ones(1) for n in NAMES}, {}),
    "all NaN": ({n: np.full(40, np.nan) for n in NAMES}, {}),
    "all zero": ({n: np.zeros(40) for n in NAMES}, {}),
    "infinite": ({n: np.full(40, np.inf) for n in NAMES}, {}),
    "below zero": ({n: -np.arange(40.0) for n in NAMES}, {}),
    "half of it NaN, in two attempts": ({n: np.r_[np.ones(30), np.full(30, np.nan)] for n in NAMES}, {"attempts": [0] * 30 + [1] * 30}),
    "an odd config": (
        {n: np.ones(40) for n in NAMES},
        {
            "config": {
                "lr": "auto",
                "optimizer": 7,
                "eps": None,
                "beta2": "x",
                "grad_clip": [1],
                "weight_decay": {},
                "max_steps": 0,
                "n_embd": 0,
            }
        },
    ),
}


@pytest.mark.parametrize("kind", ODD)
def test_no_sign_breaks(kind: str) -> None:
    metrics, more = ODD[kind]
    run = run_of(metrics, **more)
    s = Symptoms(run, tuple(pipeline.detect(run)[0]))
    for name, look in looks().items():
        found = look(s)
        assert found.text.endswith("."), name
