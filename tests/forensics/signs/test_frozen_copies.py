"""An evaluated copy that training does not reach, and evaluations that only look as still."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from forensics.signs.frozen_copies import evaluation_never_moves
from forensics.signs.sign import Symptoms
from tests.forensics.curves import run_of

AT = np.arange(30)
FALLS = 0.2 + np.exp(-AT / 6)
FIXED = np.full(30, 1.0944308)


@pytest.mark.parametrize(
    ("metrics", "state"),
    [
        ({"loss.train": FALLS, "loss.eval": FIXED}, "seen"),
        ({"loss.train": 1.2 + 0.01 * AT, "loss.eval": FIXED}, "seen"),  # nothing is learnt, and nothing moves
        ({"loss.train": np.zeros(30), "loss.eval": FIXED}, "absent"),  # all labels masked: nothing is asked of the weights
        ({"loss.train": FALLS, "loss.eval": FIXED + 1e-6 * AT}, "absent"),
        ({"loss.train": FALLS, "loss.eval": FALLS + 0.1}, "absent"),
        ({"loss.train": 1.1 + 1e-3 * FALLS, "loss.eval": FIXED}, "absent"),  # a rate so low that neither moves
        ({"loss.train": FALLS, "loss.eval": np.full(30, 0.693)}, "cannot tell"),  # printed with three digits
        ({"loss.train": FALLS, "acc.eval": np.full(30, 0.916667)}, "cannot tell"),  # eleven of twelve
        ({"loss.train": FALLS, "loss.eval": np.full(30, float(np.float32(9.6)))}, "cannot tell"),  # 9.60000038, which is 9.6 in 32 bits
        ({"loss.train": FALLS}, "cannot tell"),
        ({"loss.eval": FIXED}, "cannot tell"),
    ],
)
def test_an_evaluation_that_never_moves(metrics: Mapping[str, Any], state: str) -> None:
    found = evaluation_never_moves(Symptoms(run_of(metrics), ()))
    assert found.state == state, found.text
    assert found.text.endswith(".")


@pytest.mark.parametrize("x", [np.zeros(0), np.array([1.0]), np.full(30, np.nan), np.zeros(30)], ids=["empty", "one", "nan", "zero"])
def test_odd_runs_raise_nothing(x: Any) -> None:
    assert evaluation_never_moves(Symptoms(run_of({"loss.train": x, "loss.eval": x}), ())).state in ("absent", "cannot tell")


def test_an_evaluated_return_that_never_moves_is_of_a_policy_that_is_not_trained() -> None:
    run = run_of({"rl.loss_value": 100 * FALLS, "rl.reward": np.sin(AT), "other/x": np.full(30, -65.97604841)})
    rows = [r | ({"tag": "eval/return", "name": "rl.reward"} if r["tag"] == "x" else {}) for r in run.tables["metrics"].to_pylist()]
    run.tables["metrics"] = pa.Table.from_pylist(rows, run.tables["metrics"].schema)
    found = evaluation_never_moves(Symptoms(run, ()))
    assert found.state == "seen" and found.text.startswith("eval/return is -65.976"), found.text
