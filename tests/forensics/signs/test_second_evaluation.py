"""Two held-out sets beside one training."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from forensics.signs import second_evaluation
from forensics.signs.sign import Symptoms
from tests.forensics.curves import run_of

T = np.arange(60)
FALLS = 0.5 + 2 * np.exp(-T / 20) + 0.005 * np.random.default_rng(2).standard_normal(60)
TURNS = np.where(T < 20, FALLS, FALLS[20] + (T - 20) / 40)
LEARNT = 3 * np.exp(-T / 8) + 0.05


def with_a_second_set(metrics: dict[str, Any], second: Any) -> Symptoms:
    run = run_of(metrics)
    rows = run.tables["metrics"].to_pylist()
    more = [r | {"tag": "test_loss", "value": float(second[i])} for i, r in enumerate(r for r in rows if r["name"] == "loss.eval")]
    run.tables["metrics"] = pa.Table.from_pylist([*rows, *more], run.tables["metrics"].schema)
    return Symptoms(run, ())


@pytest.mark.parametrize(
    ("first", "second", "state"),
    [
        (FALLS, TURNS, "seen"),
        (FALLS, FALLS + 0.1, "absent"),
        (TURNS, TURNS + 0.1, "absent"),  # both: overfitting
        (FALLS, 0.4 + T / 20, "absent"),  # known at first, and forgotten
    ],
)
def test_a_second_set_that_turns_up(first: Any, second: Any, state: str) -> None:
    found = second_evaluation.second_evaluation_turns_up(with_a_second_set({"loss.train": FALLS, "loss.eval": first}, second))
    assert found.state == state, found.text


@pytest.mark.parametrize(
    ("train", "first", "second", "state"),
    [
        (LEARNT, LEARNT + 0.02, 1.5 + LEARNT / 2, "seen"),  # it comes down to a half, as what is alike does
        (LEARNT, LEARNT + 0.02, LEARNT + 0.2, "absent"),  # five times as high, and learnt
        (LEARNT, LEARNT + 0.02, 8 + LEARNT / 2, "absent"),  # other data from the beginning on
        (LEARNT / 9, LEARNT + 0.02, 1.5 + LEARNT / 2, "absent"),  # the first does not follow training either
        (LEARNT, LEARNT + 0.02, 1.5 + LEARNT / 2 + T / 40, "absent"),  # it turns up
    ],
)
def test_a_second_set_that_stays_behind(train: Any, first: Any, second: Any, state: str) -> None:
    found = second_evaluation.second_evaluation_stays_behind(with_a_second_set({"loss.train": train, "loss.eval": first}, second))
    assert found.state == state, found.text
