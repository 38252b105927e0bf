"""Signs that nothing is wrong."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest

from forensics.detectors import loss_spike, lr_schedule
from forensics.errors import CannotTell
from forensics.signs import health as W
from forensics.signs.sign import Sign, Symptoms
from tests.forensics.curves import run_of

T = np.arange(400)
RNG = np.random.default_rng(4)
NOISE = 0.02 * RNG.standard_normal(400)
FALLS = 4 - T / 200 + NOISE
LEARNT = 1 + 4 * np.exp(-T / 20) + NOISE
OUTLIER = FALLS + np.where(T == 200, 5.0, 0)
STRETCH = FALLS + np.where((T >= 200) & (T < 230), 5.0, 0)
COSINE = 1e-3 * 0.5 * (1 + np.cos(np.pi * T / 400))
RELEARNT = 1 + 3 * np.exp(-(T % 200) / 15) + NOISE
WORSE = LEARNT + np.where(T >= 200, 3.0, 0)
STAGES = {"config": {"stages": [{"data": "a", "steps": 200}, {"data": "b", "steps": 200}]}}
PLAN = {"max_steps": 400, "learning_rate": 1e-3, "lr_scheduler_type": "cosine", "warmup_steps": 0}
DONE = ({"kind": "finished", "level": "info", "text": "training done", "attempt": 0, "step": 399, "source": "log", "at": 1},)
DIED = ({"kind": "traceback", "level": "error", "text": "ValueError: no", "attempt": 0, "step": 399, "source": "log", "at": 1},)

CASES: list[tuple[Callable[[Symptoms], Sign], str, Mapping[str, Any], Mapping[str, Any]]] = [
    (W.outliers_only, "seen", {"loss.train": OUTLIER}, {}),
    (W.outliers_only, "absent", {"loss.train": STRETCH}, {}),
    (W.outliers_only, "cannot tell", {"loss.train": FALLS}, {}),
    (W.learned_to_plan, "seen", {"loss.train": FALLS}, {"events": DONE}),
    (W.learned_to_plan, "seen", {"rl.reward": T / 10.0}, {"events": DONE}),
    (W.learned_to_plan, "absent", {"loss.train": 2 + NOISE}, {"events": DONE}),
    (W.learned_to_plan, "absent", {"loss.train": FALLS}, {"events": DIED}),
    (W.learned_to_plan, "cannot tell", {"loss.train": FALLS}, {}),
    (W.loss_near_noise_floor, "seen", {"loss.train": LEARNT}, {}),
    (W.loss_near_noise_floor, "absent", {"loss.train": FALLS}, {}),
    (W.loss_near_noise_floor, "cannot tell", {"lr": COSINE}, {}),
    (W.rate_as_configured, "seen", {"lr": COSINE}, {"config": PLAN}),
    (W.rate_as_configured, "seen", {"lr": np.full(400, 1e-3)}, {"config": PLAN | {"lr_scheduler_type": "constant"}}),
    (W.rate_as_configured, "absent", {"lr": np.where(T < 100, COSINE[np.minimum(4 * T, 399)], 0)}, {"config": PLAN}),
    (W.rate_as_configured, "absent", {"lr": 5 * COSINE}, {"config": PLAN}),
    (W.rate_as_configured, "cannot tell", {"lr": COSINE}, {}),
    (W.stage_learned, "seen", {"loss.train": RELEARNT}, STAGES),
    (W.stage_learned, "absent", {"loss.train": WORSE}, STAGES),
    (W.stage_learned, "seen", {"loss.train": WORSE, "loss.eval": 2 + 3 * np.exp(-T / 20)}, STAGES),  # what was known is kept
    (W.stage_learned, "absent", {"loss.train": WORSE, "loss.eval": 2 + 3 * np.exp(-T / 20) + np.where(T >= 200, 1.0, 0)}, STAGES),
    (W.stage_learned, "cannot tell", {"loss.train": RELEARNT}, {}),
    (W.loss_redefined_as_announced, "seen", {"loss.train": WORSE}, {"config": {"ic_weight": "1 until 200, 30 after"}}),
    (W.loss_redefined_as_announced, "absent", {"loss.train": WORSE}, {"config": {"ic_weight": "1 until 300, 30 after"}}),
    (W.loss_redefined_as_announced, "cannot tell", {"loss.train": WORSE}, {"config": {"weight_decay": "0.1 until 200, 0 after"}}),
    (W.loss_redefined_as_announced, "cannot tell", {"loss.train": WORSE}, {}),
    (W.changes_as_configured, "seen", {"loss.train": WORSE}, {"config": {"stage2_start": 200}}),
    (W.changes_as_configured, "cannot tell", {"loss.train": WORSE}, {"config": {"eval_start": 200}}),
    (W.rate_as_configured, "cannot tell", {"loss.train": FALLS}, {"config": PLAN}),
]


@pytest.mark.parametrize(("look", "state", "metrics", "more"), CASES, ids=[f"{c[0].__name__}-{c[1]}" for c in CASES])
def test_each_state(look: Callable[[Symptoms], Sign], state: str, metrics: Mapping[str, Any], more: Mapping[str, Any]) -> None:
    run, found = run_of(metrics, **more), []
    for detector in (loss_spike, lr_schedule):
        try:
            found += detector.detect(run)
        except CannotTell:
            continue
    sign = look(Symptoms(run, tuple(found)))
    assert sign.state == state, sign.text
    assert sign.text.endswith(".")
