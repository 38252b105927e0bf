"""Settings that a cause warns of: alone, or beside what the curve shows; and the same settings where it shows nothing."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from forensics.causes.files import causes
from forensics.pipeline import judge
from forensics.signs.sign import looks
from tests.forensics.curves import run_of

T = np.arange(200)
NOISE = 0.02 * np.random.default_rng(4).standard_normal(200)
FALLS = 0.3 + 2 * np.exp(-T / 30) + NOISE
LATE = np.where(T < 80, 2.3, 0.5 + 1.8 * np.exp(-(T - 80) / 30)) + NOISE


@pytest.mark.parametrize(
    ("loss", "config", "kind", "cause"),
    [
        (FALLS, {"optimizer": "adam", "b2": 0.5}, "beta2_short", "optimizer_second_moment"),
        (FALLS, {"optimizer": "adam", "b2": 0.95}, "", ""),
        (LATE, {"normalize": False}, "inputs_left_raw", "inputs_not_normalized"),
        (FALLS, {"normalize": False}, "", ""),  # the same setting, and nothing that it would explain
        (LATE, {"normalize": True}, "", ""),  # the same curve, and no setting that explains it
        (FALLS, {"train_tokenizer": "bpe-a", "eval_tokenizer": "bpe-b"}, "tokenizer_differs", "tokenizer_mismatch"),
        (FALLS, {"train_tokenizer": "bpe-a", "eval_tokenizer": "bpe-a"}, "", ""),
    ],
)
def test_a_setting_beside_the_curve(loss: Any, config: dict[str, Any], kind: str, cause: str) -> None:
    case = judge(run_of({"loss.train": loss}, config=config))
    grave = [f.kind for f in case.findings if f.severity == "warning"]
    assert grave == ([kind] if kind else [])
    assert case.verdict == ("unhealthy" if kind else "healthy")
    assert not cause or any(h.id == cause for h in case.hypotheses)


def test_what_a_cause_warns_of_it_also_explains() -> None:
    warned = [(c, e) for c in causes().values() for e in c.warns]
    assert len(warned) > 10
    for cause, effect in warned:
        assert effect in cause.explains and set(effect.signs) <= looks().keys() and effect.signs[0] in cause.for_, cause.id
