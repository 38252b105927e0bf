"""A series whose name says nothing is the loss of a run without one if it runs as a loss does."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from forensics.run import inputs
from forensics.run.series import series
from parsers.loss_by_course import is_of_loss
from tests.forensics.curves_in_logs import N, learns, noise, run

Columns = dict[str, Callable[[int], float]]


@pytest.mark.parametrize(
    ("columns", "judged"),
    [
        ({"lm": learns(4.6, 2.1)}, {"loss.train": "lm"}),
        ({"crit": learns(4.6, 2.1), "val": learns(4.7, 2.2, 2)}, {"loss.train": "crit", "loss.eval": "val"}),
        ({"crit": learns(4.6, 2.1), "val_crit": learns(4.7, 4.7, 2)}, {"loss.train": "crit", "loss.eval": "val_crit"}),
        ({"crit": learns(4.6, 2.1), "misfit": learns(9.0, 1.0, 2)}, {"loss.train": "crit"}),  # two of them: the one that stands first
        (
            {"crit": learns(4.6, 2.1), "misfit": learns(9.0, 1.0, 2), "val_misfit": learns(9.1, 1.1, 3)},
            {"loss.train": "misfit", "loss.eval": "val_misfit"},
        ),
        ({"crit": learns(4.6, 2.1), "loss": learns(1.0, 0.9, 2)}, {"loss.train": "loss"}),
        ({"crit": learns(4.6, 2.1), "ep_rew_mean": learns(1.0, 9.0, 2)}, {"rl.reward": "ep_rew_mean"}),
        ({"epsilon": learns(1.0, 0.05)}, {}),  # exploration
        ({"policy_temperature": learns(1.0, 0.05)}, {}),
        ({"plasticity": lambda i: math.exp(-i / 30)}, {}),  # computed, not measured
        ({"crit": learns(2.1, 4.6)}, {}),
        ({"eps_mse": learns(1.0, 0.9)}, {"loss.train": "eps_mse"}),  # by its name, whatever its course
        ({"eps_mse": learns(1.0, 0.3), "x0_mse": learns(0.9, 0.3)}, {"loss.train": "eps_mse"}),
    ],
)
def test_what_is_judged_where_no_loss_is_named(columns: Columns, judged: dict[str, str], tmp_path: Path) -> None:
    r = run(tmp_path, **columns)
    found = {name: s.tag for name in ("loss.train", "loss.eval", "rl.reward") if (s := series(r, name)) is not None}
    assert found == judged
    if "lm" in columns:
        assert inputs.loss_of(r).tag == "lm" and r.meanings[r.sources[0].path, "lm"].trap.endswith("by its course.")


T = np.arange(1, N + 1)
SCATTER = np.array([noise(5, 0.02)(int(i)) for i in T])


@pytest.mark.parametrize(
    ("values", "is_loss"),
    [
        (2 + 2 * np.exp(-T / 30) + SCATTER, True),
        (2 + 2 * np.exp(-T / 30) + SCATTER + 4 * ((T > 100) & (T < 120)), True),  # a spike is no other course
        (4 - T / 100 + SCATTER, False),  # as fast at the end as at first
        (3.5 + 0.5 * np.exp(-T / 30) + SCATTER, False),  # hardly
        (np.round(400 * np.exp(-T / 30)), False),  # a count
        (2 * np.exp(-T / 30) - 1 + SCATTER, False),
        (np.array([4.0, 3.0, 2.0]), False),
    ],
)
def test_the_course_of_a_loss(values: np.ndarray, is_loss: bool) -> None:
    assert is_of_loss(values) == is_loss
