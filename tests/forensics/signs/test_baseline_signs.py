"""Signs of a run beside its baseline: each setting and batch is unlike, like, or not known."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from forensics.detectors import loss_spike
from forensics.many_runs import baseline, baseline_signs
from forensics.signs.sign import ABSENT, CANNOT_TELL, SEEN, Sign, Symptoms
from tests.forensics.curves import noisy, run_of

N = 400
PLAIN = noisy(N, 0.01)
SPIKED = PLAIN + np.where(np.arange(N) == 250, 3.0, 0.0)
HIGHER = PLAIN * np.where(np.arange(N) < 200, 1.0, 1.3)


def sign(name: str, here: dict[str, Any], there: dict[str, Any], x: Any = HIGHER, y: Any = PLAIN) -> Sign:
    run, base = run_of({"loss.train": x}, config=here), run_of({"loss.train": y}, config=there)
    found: Sign = getattr(baseline_signs, name)(baseline.beside(run, base), Symptoms(run, tuple(loss_spike.detect(run))))
    return found


@pytest.mark.parametrize(
    ("name", "there", "yes", "no"),
    [
        ("rate_above_baseline", {"lr": 1e-3}, {"lr": 3e-3}, {"lr": 1e-3}),
        ("rate_below_baseline", {"lr": 1e-3}, {"lr": 1e-4}, {"lr": 1e-3}),
        ("rate_like_baseline", {"lr": 1e-3}, {"lr": 1e-3}, {"lr": 3e-3}),
        ("warmup_shorter_than_baseline", {"warmup_steps": 100}, {"warmup_steps": 10}, {"warmup_steps": 100}),
        ("clips_unlike_baseline", {"grad_clip": 1.0}, {"grad_clip": None}, {"grad_clip": 2.0}),
        ("clips_unlike_baseline", {"grad_clip": 1.0}, {"grad_clip": 0}, {"grad_clip": 1.0}),
        ("precision_unlike_baseline", {"precision": "bf16"}, {"precision": "fp16"}, {"precision": "bf16"}),
        ("optimizer_differs_from_baseline", {"eps": 1e-8}, {"eps": 1e-15}, {"eps": 1e-8}),
        ("init_differs_from_baseline", {"init_std": 0.02}, {"init_std": 0.2}, {"init_std": 0.02}),
        ("evaluation_differs_from_baseline", {"val_metric": 0.1}, {"val_metric": 0.3}, {"val_metric": 0.1}),
        ("parted_without_cause", {"lr": 1e-3}, {"lr": 1e-3}, None),
    ],
)
def test_settings(name: str, there: dict[str, Any], yes: dict[str, Any], no: dict[str, Any] | None) -> None:
    assert sign(name, yes, there).state == SEEN
    assert no is None or sign(name, no, there).state == ABSENT
    assert sign(name, {}, {}).state == CANNOT_TELL


def test_equal_runs_and_unequal_configs() -> None:
    assert sign("parted_without_cause", {"lr": 1}, {"lr": 1}, PLAIN, PLAIN).state == ABSENT
    assert not sign("parted_without_cause", {"lr": 1}, {"lr": 2}).missing
    assert sign("rate_like_baseline", {"lr": 1}, {"lr": 1}, PLAIN, PLAIN).state == CANNOT_TELL


@pytest.mark.parametrize(
    ("base", "both", "passes"), [(SPIKED, SEEN, ABSENT), (PLAIN, ABSENT, SEEN), (noisy(N, 0.01, 5), CANNOT_TELL, CANNOT_TELL)]
)
def test_the_batch_in_the_baseline(base: Any, both: str, passes: str) -> None:
    assert sign("batch_spikes_in_baseline_too", {}, {}, SPIKED, base).state == both
    assert sign("batch_passes_in_baseline", {}, {}, SPIKED, base).state == passes
    assert sign("batch_passes_in_baseline", {}, {}, PLAIN, base).state == CANNOT_TELL
