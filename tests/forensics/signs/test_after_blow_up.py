"""Signs of what is left of a model after a blow-up."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest

from forensics import pipeline
from forensics.signs import after_blow_up as signs
from forensics.signs.sign import Sign, Symptoms
from tests.forensics.curves import run_of

T = np.arange(300)
NOISE = np.random.default_rng(1).standard_normal(300)
LEARNS = 1 + 2 * np.exp(-T / 40) + 0.02 * NOISE
UNDONE = np.where(T < 150, LEARNS, 3 + 0.02 * NOISE)
SPIKE = LEARNS + np.where(T == 150, 8.0, 0.0)
STILL = 1.8 + 0.01 * NOISE
THROWN = np.where((T > 2) & (T < 30), 4.0, STILL)
NORM = 2 + 0.2 * NOISE
CONFIDENT = 35 + 3 * NOISE

CASES: list[tuple[Callable[[Symptoms], Sign], str, Mapping[str, Any]]] = [
    (signs.learning_undone, "seen", {"loss.train": UNDONE}),
    (signs.learning_undone, "absent", {"loss.train": LEARNS}),
    (signs.learning_undone, "absent", {"loss.train": SPIKE}),  # one batch, and all is well again
    (signs.learning_undone, "absent", {"loss.train": 3 + 0.02 * NOISE}),  # it never learned
    (signs.learning_undone, "cannot tell", {"loss.train": UNDONE[140:160]}),
    (signs.climbed_before_it_stood, "seen", {"loss.train": THROWN}),
    (signs.climbed_before_it_stood, "seen", {"loss.train": STILL, "loss.eval": np.where(T < 30, 40.0, STILL)}),
    (signs.climbed_before_it_stood, "absent", {"loss.train": THROWN, "loss.eval": 2 - T / 400}),  # it learns, whatever single batches cost
    (signs.climbed_before_it_stood, "absent", {"loss.train": STILL}),
    (signs.climbed_before_it_stood, "absent", {"loss.train": SPIKE}),  # it learnt
    (signs.climbed_before_it_stood, "cannot tell", {"loss.train": THROWN, "acc.eval": np.full(300, 0.96)}),  # a trained model goes on
    (signs.climbed_before_it_stood, "seen", {"loss.train": THROWN, "acc.eval": np.full(300, 0.1)}),
    (signs.climbed_before_it_stood, "absent", {"loss.train": 1.8 + T / 50}),  # it diverges
    (signs.loss_above_any_guess, "seen", {"loss.train": CONFIDENT, "ppl.train": np.exp(CONFIDENT)}),
    (signs.loss_above_any_guess, "absent", {"loss.train": np.where(T < 10, 35, LEARNS), "ppl.train": np.exp(LEARNS)}),
    (signs.loss_above_any_guess, "cannot tell", {"loss.train": CONFIDENT}),  # a squared error, or the sum over a sequence
    (signs.loss_above_any_guess, "cannot tell", {"loss.eval": CONFIDENT}),
]


@pytest.mark.parametrize(("sign", "state", "metrics"), CASES)
def test_what_is_left_after_a_blow_up(sign: Callable[[Symptoms], Sign], state: str, metrics: Mapping[str, Any]) -> None:
    run = run_of(metrics)
    found = sign(Symptoms(run, tuple(pipeline.detect(run)[0])))
    assert found.state == state, found.text
