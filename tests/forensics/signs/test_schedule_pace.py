"""Schedules that are still on their way where the run is over, or through before config says so; and runs that were cut off, or meant it so."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from forensics.signs.schedule_pace import cosine_counts_epochs, schedule_runs_slow, warmup_ends_early
from forensics.signs.sign import Symptoms
from tests.forensics.curves import noisy, run_of

N = 64
STEP = 10.0 * np.arange(N)
PEAK = 2e-3
BY_EPOCH = PEAK * (1 + STEP // 200) / 80  # a warmup of 80 steps that makes one step an epoch
CYCLE = PEAK * (1 + (STEP // 40) / 200) / 25  # one cycle of 640 steps that makes one step an epoch
LINE = PEAK * STEP / STEP[-1]
COSINE = PEAK * (1 + np.cos(np.pi * STEP / STEP[-1])) / 2
HARDLY = PEAK * (1 + np.cos(np.pi * STEP / STEP[-1] / 8)) / 2  # the same, stepped once in eight
ROUND = PEAK * (1 + np.cos(np.pi * STEP / STEP[-1] * 4.2)) / 2
CONFIG = {"lr": PEAK, "warmup": 80, "max_steps": 640}
DONE = [{"kind": "finished", "level": "info", "text": "done", "step": 630}]


@pytest.mark.parametrize(
    ("lr", "config", "events", "state"),
    [
        (BY_EPOCH, CONFIG, [], "seen"),
        (BY_EPOCH, {"peak_lr": PEAK, "warmup_iters": 80}, DONE, "seen"),
        (BY_EPOCH, CONFIG | {"max_steps": 64_000}, [], "cannot tell"),  # cut off, and the warmup may end within the plan
        (BY_EPOCH, CONFIG | {"warmup": 0.1}, DONE, "absent"),  # a share of the run
        (BY_EPOCH, CONFIG | {"warmup": 600}, DONE, "absent"),
        (LINE, {"max_steps": 640}, [], "seen"),
        (CYCLE, {"max_steps": 640}, [], "seen"),
        (CYCLE, {}, [], "cannot tell"),
        (np.minimum(CYCLE, CYCLE[5 * N // 8]), {"max_steps": 640}, [], "absent"),  # it comes to its peak
        (PEAK * (30 + np.arange(N)) / 700, {"max_steps": 640}, [], "absent"),  # within the epochs, too
        (LINE, {}, DONE, "seen"),
        (LINE, {}, [], "cannot tell"),
        (LINE, {"mode": "lr_range_test"}, DONE, "absent"),
        (PEAK * 10 ** (STEP / STEP[-1]), {}, DONE, "absent"),  # a range test in even factors
        (np.minimum(LINE, PEAK / 2), CONFIG, DONE, "absent"),  # it ends, at half of the peak
        (HARDLY, CONFIG | {"lr_scheduler_type": "cosine"}, [], "seen"),
        (HARDLY, CONFIG | {"lr_scheduler_type": "cosine", "max_steps": 6400}, [], "absent"),  # not over
        (HARDLY, CONFIG | {"lr_scheduler_type": "cosine", "lr_decay_steps": 5000}, [], "absent"),  # meant so
        (HARDLY, CONFIG | {"lr_scheduler_type": "cosine", "min_lr": PEAK / 2}, [], "absent"),
        (HARDLY, CONFIG | {"lr_scheduler_type": "cosine_with_restarts"}, [], "absent"),
        (COSINE, CONFIG | {"lr_scheduler_type": "cosine"}, [], "absent"),
        (ROUND, CONFIG | {"lr_scheduler_type": "cosine"}, [], "absent"),  # too fast: it came down long ago and rises again
        (np.full(N, PEAK), CONFIG | {"schedule": "constant_with_warmup"}, [], "absent"),
        (np.full(N, PEAK), CONFIG | {"schedule": "const"}, [], "absent"),
        (np.full(N, PEAK), CONFIG | {"schedule": "mine"}, [], "absent"),  # whatever that is
        (np.where(STEP < 400, COSINE, PEAK), CONFIG | {"lr_scheduler_type": "cosine"}, [], "absent"),  # a jump, which is told as such
        (LINE[:5], {}, DONE, "cannot tell"),
        (None, CONFIG, DONE, "cannot tell"),
    ],
)
def test_a_schedule_on_its_way_when_the_run_is_over(lr: Any, config: Mapping[str, Any], events: Any, state: str) -> None:
    metrics = {"loss.train": noisy(N, 0.01), "epoch": STEP // 40} | ({} if lr is None else {"lr": lr})
    run = run_of({k: v[: len(lr) if lr is not None else N] for k, v in metrics.items()}, interval=10, config=config, events=events)
    run.attempts[0]["steps"] = [0, 630]
    found = schedule_runs_slow(Symptoms(run, ()))
    assert found.state == state, found.text


def test_what_learns_all_the_same_needs_no_peak() -> None:
    run = run_of({"loss.train": 2 * np.exp(-STEP / 200), "lr": LINE}, interval=10, events=DONE)
    run.attempts[0]["steps"] = [0, 630]
    assert schedule_runs_slow(Symptoms(run, ())).state == "absent"


def test_the_factor_is_told() -> None:
    run = run_of({"loss.train": noisy(N, 0.01), "lr": PEAK * STEP / (80 * 16)}, interval=10, config=CONFIG)
    assert "16 times too slow" in schedule_runs_slow(Symptoms(run, ())).text


EVERY = 20.0 * np.arange(1, 36)  # to step 700
PLAN = {"lr": 3e-3, "lr_warmup_steps": 160, "max_steps": 700}


def warmed(until: float) -> Any:
    return 3e-3 * np.minimum(EVERY / until, np.sqrt(until / EVERY))


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
    run = run_of(metrics, steps=EVERY.astype(int).tolist(), config=config)
    run.attempts[0]["steps"] = [20, 700]
    found = warmup_ends_early(Symptoms(run, ()))
    assert found.state == state, found.text


EPOCH = STEP // 45  # 14 of them
TURNS = PEAK * (1 + np.cos(np.pi * STEP / 14)) / 2


@pytest.mark.parametrize(
    ("lr", "config", "state"),
    [
        (TURNS, {"max_epochs": 14, "max_steps": 640}, "seen"),
        (PEAK * (1 + np.cos(np.pi * (STEP + 1) / 14)) / 2, {"max_epochs": 14, "max_steps": 640}, "seen"),  # the rate of the step before
        (COSINE, {"max_epochs": 14, "max_steps": 640}, "absent"),
        (PEAK * (1 + np.cos(np.pi * EPOCH / 14)) / 2, {"max_epochs": 14, "max_steps": 640}, "absent"),  # by epochs, as it should
        (PEAK * (1 + np.cos(np.pi * STEP / 90)) / 2, {"max_epochs": 14, "max_steps": 640}, "absent"),  # a cycle of another length
        (np.full(N, PEAK), {"max_epochs": 5, "max_steps": 640}, "absent"),  # it is logged where each turn of the cosine would end
        (TURNS, {"max_steps": 640}, "cannot tell"),
    ],
)
def test_a_cosine_that_takes_epochs_for_steps(lr: Any, config: Mapping[str, Any], state: str) -> None:
    run = run_of({"loss.train": noisy(N, 0.01), "lr": lr, "epoch": EPOCH}, interval=10, config=config | {"lr": PEAK})
    found = cosine_counts_epochs(Symptoms(run, ()))
    assert found.state == state, found.text
