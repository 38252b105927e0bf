"""Hits that rise beside a loss that stands still, or is a sum: each in a faulty run and its look-alike."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from forensics.detectors import plateau
from forensics.pipeline import judge
from forensics.run.series import Floats
from forensics.signs.hits_beside_still_loss import hits_rise_beside_still_loss
from forensics.signs.sign import Symptoms
from forensics.signs.summed_at_chance import loss_stands_at_multiple_of_guess
from tests.forensics.curves import noisy, run_of

N = 40
T = np.arange(N)
STILL = math.log(10) - 0.0005 * T
HITS = np.clip(0.1 + 0.02 * T, 0, 0.8)
GUESSES = 0.1 + 0.004 * np.sin(T)
SUMMED = (16 * math.log(10) + 5 * np.exp(-T / 4)) * (1 + 0.002 * np.sin(3 * T))


@pytest.mark.parametrize("name", ["acc.eval", "acc.train"])
@pytest.mark.parametrize(
    ("loss", "hits", "state"),
    [
        (STILL, HITS, "seen"),
        (STILL, 100 * HITS, "seen"),
        (STILL, GUESSES, "absent"),
        (STILL, 0.1 + 0.01 * T, "absent"),  # nothing that is right more often than not
        (math.log(10) * np.exp(-T / 20), HITS, "cannot tell"),
    ],
    ids=["learnt", "percent", "guesses", "a few", "the loss falls"],
)
def test_what_is_learnt_beside_a_loss_that_stands_still(name: str, loss: Floats, hits: Floats, state: str) -> None:
    run = run_of({"loss.train": loss, name: hits})
    assert hits_rise_beside_still_loss(Symptoms(run, tuple(plateau.detect(run)))).state == state


def test_wrong_labels_and_a_low_rate_are_no_causes_where_the_answers_are_learnt() -> None:
    named = [{h.id for h in judge(run_of({"loss.train": STILL, "acc.eval": hits})).hypotheses} for hits in (HITS, GUESSES)]
    assert {"labels_wrong", "lr_too_low"}.isdisjoint(named[0]) and "regularization_floor" in named[0]
    assert {"labels_wrong", "lr_too_low"} <= named[1]


@pytest.mark.parametrize(
    ("loss", "hits", "config", "state"),
    [
        (SUMMED, GUESSES, {"batch_size": 16}, "seen"),
        (SUMMED, 100 * GUESSES, {"batch_size": 16, "num_classes": 10}, "seen"),
        (SUMMED / 4, GUESSES, {"gradient_accumulation_steps": 4, "batch_size": 512}, "seen"),
        (SUMMED, GUESSES, {"batch_size": 64}, "absent"),
        (SUMMED / 16, GUESSES, {"batch_size": 16}, "absent"),  # a mean that stands at chance
        (SUMMED, HITS, {"batch_size": 16}, "absent"),  # a sum from which it learns
        (SUMMED, GUESSES, {}, "cannot tell"),
    ],
    ids=["batch", "classes told", "accumulation", "another batch", "a mean", "it learns", "no factor"],
)
def test_a_sum_over_guesses(loss: Floats, hits: Floats, config: dict[str, Any], state: str) -> None:
    s = Symptoms(run_of({"loss.train": loss, "acc.eval": hits}, config=config), ())
    assert loss_stands_at_multiple_of_guess(s).state == state


@pytest.mark.parametrize("x", [np.zeros(0), np.array([1.0]), np.full(30, np.nan), np.zeros(30), noisy(30, 0.1)])
def test_odd_runs_raise_nothing(x: Floats) -> None:
    for look in (hits_rise_beside_still_loss, loss_stands_at_multiple_of_guess):
        run = run_of({"loss.train": x, "acc.eval": x}, config={"batch_size": 16})
        assert look(Symptoms(run, ())).state in ("absent", "cannot tell", "seen")
