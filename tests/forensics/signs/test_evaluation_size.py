"""Evaluations of other data, told by how many samples they take."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from forensics import evidence
from forensics.detectors import config_change
from forensics.signs.evaluation_size import evaluation_size_changed
from forensics.signs.sign import Symptoms
from tests.forensics.curves import run_of

T = np.arange(30)
FEWER = np.where(T < 14, 397.0, 244.0)
SECONDS = 0.2 + 0.05 * np.random.default_rng(2).random(30)
SAME = np.full(30, 397.0)


def by_speed(n: Any, tag: str = "eval") -> dict[str, Any]:
    """As a trainer writes it: times of four digits behind the point, speeds of three."""
    return {f"axis/{tag}_runtime": np.round(SECONDS, 4), f"other/{tag}_samples_per_second": np.round(n / SECONDS, 3)}


@pytest.mark.parametrize(
    "metrics",
    [
        {"other/knn_n": FEWER},
        {"other/val/num_samples": FEWER},
        {"other/eval_batches": FEWER},
        {"other/eval_users": FEWER},
        {"other/val/cases": FEWER},
        {"other/n_oos": FEWER},
        {"other/valid n_token": FEWER},
        by_speed(FEWER),
    ],
)
def test_another_number_of_samples(metrics: dict[str, Any]) -> None:
    found = evaluation_size_changed(Symptoms(run_of(metrics, interval=10), ()))
    assert (found.state, found.numbers.get("first")) == ("seen", 140), found.text
    assert "397" in found.text
    assert "244" in found.text


@pytest.mark.parametrize(
    ("metrics", "state"),
    [
        ({"other/knn_n": SAME}, "absent"),
        (by_speed(SAME), "absent"),
        ({"other/knn_n": np.where(T < 28, 100.0, 397.0)}, "absent"),  # the whole set at the end
        ({"other/val/num_samples": np.where(T % 5, 100.0, 397.0)}, "absent"),  # now and then the whole set
        ({"other/train/num_samples": FEWER}, "cannot tell"),
        ({"other/eval_batch_size": FEWER}, "cannot tell"),
        ({"other/val_count_error": FEWER}, "cannot tell"),
        ({"other/eval_samples_per_second": FEWER}, "cannot tell"),
        ({"other/knn_n": FEWER[12:16]}, "seen"),  # half of a short log
        ({"other/knn_n": FEWER[11:15]}, "absent"),  # one at its end
        ({"other/knn_n": FEWER[12:15]}, "cannot tell"),
    ],
)
def test_evaluations_that_may_be_of_the_same_data(metrics: dict[str, Any], state: str) -> None:
    found = evaluation_size_changed(Symptoms(run_of(metrics, interval=10), ()))
    assert found.state == state, found.text


STEPS = {"loss.eval": np.where(T < 14, 0.13, 0.11) + 0.0001 * np.sin(T * T)}


@pytest.mark.parametrize(
    ("evaluation", "state"), [(STEPS, "seen"), ({"loss.eval": 0.13 + 0.0001 * np.sin(T * T)}, "cannot tell"), ({}, "cannot tell")]
)
def test_a_count_of_whatever_where_the_evaluation_steps_with_it(evaluation: dict[str, Any], state: str) -> None:
    found = evaluation_size_changed(Symptoms(run_of({"other/n_windows": FEWER, **evaluation}, interval=10), ()))
    assert found.state == state, found.text


@pytest.mark.parametrize(
    ("key", "after", "state"),
    [
        ("val chars", 35743, "seen"),
        ("data.eval_samples", "35743", "seen"),
        ("val chars", 59000, "cannot tell"),
        ("eval_batch_size", 32, "cannot tell"),
        ("hidden chars", 35743, "cannot tell"),
    ],
)
def test_a_setting_that_counts_what_is_evaluated(key: str, after: Any, state: str) -> None:
    facts = config_change.Facts([key], [[60000, after]], 520, batch=False)
    change = evidence.found(facts, "Config changed between launches", (520, 520), "warning")
    assert evaluation_size_changed(Symptoms(run_of({"loss.train": SAME}, interval=10), (change,))).state == state
