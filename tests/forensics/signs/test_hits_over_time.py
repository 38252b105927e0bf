"""Answers that never leave chance, and what looks like them: runs that learn, that go on from a trained model, that train no classifier."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from forensics.signs.hits_over_time import hits_never_rise, training_right_less_often
from forensics.signs.sign import Symptoms
from tests.forensics.curves import run_of

N = 90
EPOCH = 1.0 + np.arange(N) // 15
NOISE = np.random.default_rng(3).standard_normal(N)
OF_SIX = 100 / 6 + 3 * NOISE  # in percent, of a batch
RISES = OF_SIX + 40 * (1 - np.exp(-np.arange(N) / 40))
OF_SIX_SAMPLES = 100 * np.random.default_rng(5).binomial(6, 1 / 6, N) / 6  # batches of six
FALLS = 1.3 + 5 * np.exp(-np.arange(N) / 4)
STEPWISE = {"loss.train": FALLS, "epoch": EPOCH}

AFTER = np.arange(1.0, 29)  # epochs
TENTH = 0.1 + 0.004 * np.sin(AFTER * 3)
BY_EPOCH = {"epoch": AFTER, "loss.train": np.where(AFTER == 1, 12.2, math.log(10)), "loss.eval": math.log(10) + 0.002 * AFTER / 28}


@pytest.mark.parametrize(
    ("metrics", "config", "state"),
    [
        (STEPWISE | {"acc.train": OF_SIX}, {}, "seen"),
        (STEPWISE | {"acc.train": OF_SIX}, {"load_from": None}, "seen"),
        (BY_EPOCH | {"acc.eval": TENTH, "acc.train": TENTH}, {}, "seen"),
        (BY_EPOCH | {"acc.eval": TENTH}, {"num_classes": 10}, "seen"),
        (STEPWISE | {"acc.train": RISES}, {}, "absent"),
        (STEPWISE | {"acc.train": np.where(np.arange(N) // 18 == 2, 50.0, OF_SIX)}, {}, "absent"),  # it had learnt something
        (STEPWISE | {"acc.train": OF_SIX + 55}, {}, "absent"),  # starts good and stays
        (STEPWISE | {"acc.train": OF_SIX * 3}, {}, "absent"),  # one of two, as a domain classifier is meant to guess
        (STEPWISE | {"acc.train": np.where(np.arange(N) % 7, 0.0, 0.05)}, {}, "absent"),  # right now and then, as the rarest class
        (BY_EPOCH | {"acc.eval": TENTH, "acc.train": TENTH + AFTER / 100}, {}, "absent"),  # learnt by rote
        (BY_EPOCH | {"acc.eval": 0.3 + TENTH}, {}, "cannot tell"),  # learnt in the first epoch: guessing as well costs less
        ({k: v[:3] for k, v in BY_EPOCH.items()} | {"acc.eval": TENTH[:3]}, {}, "cannot tell"),
        (STEPWISE | {"acc.train": 17 + 16 * np.sin(2.4 * np.arange(N))}, {}, "cannot tell"),  # single batches scatter widely
        (STEPWISE | {"acc.train": OF_SIX_SAMPLES}, {}, "cannot tell"),
        ({k: v[:15] for k, v in STEPWISE.items()} | {"acc.train": OF_SIX[:15]}, {}, "absent"),  # stopped soon
        (STEPWISE | {"acc.train": OF_SIX, "rl.reward": NOISE}, {}, "cannot tell"),
        (STEPWISE | {"acc.train": OF_SIX, "pref.acc": NOISE}, {}, "cannot tell"),
        (STEPWISE | {"acc.train": OF_SIX}, {"vocab_size": 50257}, "cannot tell"),
        (STEPWISE | {"acc.train": OF_SIX}, {"model.pretrained": True}, "cannot tell"),
        (STEPWISE | {"acc.train": OF_SIX}, {"freeze_backbone": True}, "cannot tell"),
        (STEPWISE | {"acc.train": OF_SIX}, {"lora_r": 8}, "cannot tell"),
        (STEPWISE | {"acc.train": np.full(N, 0.17)}, {}, "cannot tell"),  # a monitor that is frozen
        ({"loss.train": FALLS}, {}, "cannot tell"),
    ],
)
def test_answers_that_never_get_better(metrics: Mapping[str, Any], config: Mapping[str, Any], state: str) -> None:
    found = hits_never_rise(Symptoms(run_of(metrics, config=config), ()))
    assert found.state == state, found.text
    assert found.text.endswith(".")


@pytest.mark.parametrize("x", [np.zeros(0), np.array([1.0]), np.full(30, np.nan), np.zeros(30)], ids=["empty", "one", "nan", "zero"])
def test_odd_runs_raise_nothing(x: Any) -> None:
    run = run_of(dict.fromkeys(["acc.train", "acc.eval", "loss.train", "loss.eval", "epoch"], x))
    assert hits_never_rise(Symptoms(run, ())).state in ("absent", "cannot tell")


@pytest.mark.parametrize(
    ("hits", "held", "config", "state"),
    [
        (RISES * 0.9, RISES + 50, {}, "seen"),
        (RISES * 0.9, RISES + 50, {"mixup_alpha": 0.2}, "cannot tell"),
        (RISES * 0.9, RISES + 50, {"mixup_alpha": 0.0}, "seen"),
        (RISES, RISES + 13, {}, "absent"),  # dropout, or a mean over the epoch
        (RISES + 50, RISES, {}, "absent"),
        (np.where(np.arange(len(RISES)) % 3, 0.0, 1.0), 0 * RISES + 0.33, {}, "absent"),  # of one sample each
        (RISES, None, {}, "cannot tell"),
    ],
)
def test_training_that_is_right_less_often_than_the_evaluation(hits: Any, held: Any, config: Mapping[str, Any], state: str) -> None:
    metrics = STEPWISE | {"acc.train": hits} | ({} if held is None else {"acc.eval": held})
    found = training_right_less_often(Symptoms(run_of(metrics, config=config), ()))
    assert found.state == state, found.text
