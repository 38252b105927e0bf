"""Warmups that end before config says so."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from forensics.signs.fast_schedule import warmup_ends_early
from forensics.signs.sign import Symptoms
from tests.forensics.curves import noisy, run_of

STEP = 20.0 * np.arange(1, 36)  # to step 700
PLAN = {"lr": 3e-3, "lr_warmup_steps": 160, "max_steps": 700}


def warmed(until: float) -> Any:
    return 3e-3 * np.minimum(STEP / until, np.sqrt(until / STEP))


@pytest.mark.parametrize(
    ("lr", "config", "state"),
    [
        (warmed(40), PLAN, "seen"),  # four micro-batches a step
        (
            warmed(40),
            {"lr_warmup_steps": 160, "gradient_accumulation_steps": 4},
            "seen",
        ),  # no plan, and the factor is that of the accumulation
        (warmed(40), {"lr_warmup_steps": 160}, "cannot tell"),  # the log may count something else
        (warmed(40), {"lr_warmup_steps": 160, "max_steps": 7000}, "cannot tell"),  # so it does, or it was cut off
        (warmed(160), PLAN, "absent"),
        (warmed(120), PLAN, "absent"),  # rounding, or a warmup of another shape
        (warmed(40), PLAN | {"lr_warmup_steps": 0.2}, "cannot tell"),  # a share of the run
        (warmed(40), PLAN | {"lr_scheduler": "cyclic"}, "cannot tell"),
        (np.full(35, 3e-3), PLAN, "absent"),  # config's warmup is not used at all: told elsewhere
        (None, PLAN, "cannot tell"),
    ],
)
def test_a_warmup_that_is_over_before_half_of_it(lr: Any, config: dict[str, Any], state: str) -> None:
    metrics = {"loss.train": noisy(35, 0.01)} | ({} if lr is None else {"lr": lr})
    run = run_of(metrics, steps=STEP.astype(int).tolist(), config=config)
    run.attempts[0]["steps"] = [20, 700]
    found = warmup_ends_early(Symptoms(run, ()))
    assert found.state == state, found.text
