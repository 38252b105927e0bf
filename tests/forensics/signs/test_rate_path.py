"""Signs of the way that the rate goes, on curves that its detectors look at."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from forensics.case import Finding
from forensics.detectors import attention_logits, divergence, lr_schedule, schedule_length
from forensics.errors import CannotTell
from forensics.signs import rate_path
from forensics.signs.sign import ABSENT, CANNOT_TELL, SEEN, Symptoms
from tests.forensics.curves import noisy, run_of

N = 400
FLAT = np.full(N, 1e-3)
JUMP = np.where(np.arange(N) < 200, 1e-3, 2e-2)
COSINE = 1e-3 * (1 + np.cos(np.arange(N) / N * np.pi)) / 2
EARLY = np.where(np.arange(N) < 100, 1e-3 * (1 - np.arange(N) / 100), 0.0)
RESET = np.r_[np.linspace(1e-3, 5e-4, 200), np.linspace(0, 1e-3, 200)]
ANEW = [0] * 200 + [1] * 200


def of(name: str, lr: Any, more: Sequence[Finding] = (), *, attempts: list[int] | None = None, **config: Any) -> Any:
    metrics = {"loss.train": noisy(N, 0.01)} | ({} if lr is None else {"lr": lr})
    run = run_of(metrics, attempts=attempts, config=config)
    run.attempts[0]["steps"] = [0, N - 1]
    found: list[Finding] = []
    for detector in (lr_schedule, schedule_length):
        with contextlib.suppress(CannotTell):
            found += detector.detect(run) if lr is not None else []
    return getattr(rate_path, name)(Symptoms(run, (*found, *more)))


@pytest.mark.parametrize(
    ("name", "lr", "state"),
    [
        ("rate_jumped", JUMP, SEEN), ("rate_jumped", COSINE, ABSENT), ("rate_jumped", None, CANNOT_TELL),
        ("rate_jumped", np.select([np.arange(N) < 80, np.arange(N) < 160], [8e-4, 1.5e-3], 2e-3), ABSENT),  # stairs up to the peak, which cuts the last
        ("rate_jumped", np.select([np.arange(N) < 80, np.arange(N) < 160], [8e-4, 1.5e-3], 3e-3), SEEN),
        # what get_lr() gives at a milestone, the factor once more
        ("rate_jumped", np.select([np.arange(N) < 80, np.arange(N) == 80], [0.1, 0.001], 0.01), ABSENT),
        ("rate_jumped", np.select([np.arange(N) < 80, np.arange(N) < 90], [0.1, 0.001], 0.01), SEEN),
        ("rate_jumped", np.tile([3.07, 2.12, 1.17, 0.22, 1.13, 2.08, 3.03, 3.98], N // 8), ABSENT),  # cycles that begin below the top
    ],
)  # fmt: skip
def test_the_path(name: str, lr: Any, state: str) -> None:
    assert of(name, lr).state == state


def test_a_reset_at_a_restart() -> None:
    assert of("rate_reset_at_resume", RESET, attempts=ANEW).state == SEEN
    assert of("rate_reset_at_resume", FLAT, attempts=ANEW).state == ABSENT
    assert of("rate_reset_at_resume", FLAT).state == of("rate_reset_at_resume", None, attempts=ANEW).state == CANNOT_TELL


@pytest.mark.parametrize(("step", "state"), [(210, SEEN), (390, ABSENT)])
def test_the_attention_after_a_jump(step: int, state: str) -> None:
    facts = attention_logits.Facts(0.2, 300.0, step)
    left = Finding("a", "attention_logits", "Largest attention logit grows", step, N, "warning", facts=facts)
    found = of("loss_follows_rate_jump", JUMP, [left])
    assert found.state == state
    assert ("attention" in found.text) == (state == SEEN)


@pytest.mark.parametrize(("step", "state"), [(210, SEEN), (390, ABSENT), (None, ABSENT)])
def test_the_loss_after_a_jump(step: int | None, state: str) -> None:
    facts = divergence.Facts(step or 0, 1.0, 3.0, 2.0, step or 0, 4.0)
    turned = [Finding("d", "divergence", "The loss turns", step, N, "critical", facts=facts)] if step is not None else []
    assert of("loss_follows_rate_jump", JUMP, turned).state == state
    assert of("loss_follows_rate_jump", COSINE, turned).state == CANNOT_TELL


@pytest.mark.parametrize(("factor", "state"), [(1.5, SEEN), (1.0, ABSENT), (0.8, ABSENT)])
def test_the_level_after_a_jump(factor: float, state: str) -> None:
    loss = noisy(N, 0.01) * np.where(np.arange(N) < 200, 1.0, factor)
    run = run_of({"loss.train": loss, "lr": JUMP})
    found = rate_path.loss_follows_rate_jump(Symptoms(run, tuple(lr_schedule.detect(run))))
    assert found.state == state, found.text


@pytest.mark.parametrize(("at", "state"), [(210, SEEN), (100, CANNOT_TELL)])
def test_the_policy_after_a_jump(at: int, state: str) -> None:
    run = run_of({"rl.reward": np.arange(N) * 0.1, "rl.entropy": np.where(np.arange(N) < at, 0.69, 0.001), "lr": JUMP})
    found = rate_path.loss_follows_rate_jump(Symptoms(run, tuple(lr_schedule.detect(run))))
    assert found.state == state, found.text


def test_the_end_of_the_schedule() -> None:
    assert of("schedule_ends_early", EARLY, max_steps=N).state == SEEN
    assert of("schedule_ends_early", COSINE, max_steps=N).state == ABSENT
    for lr, config in (
        (COSINE, {}),
        (None, {"max_steps": N}),
        (COSINE, {"max_steps": N, "schedule": "cyclic"}),
        (EARLY, {"max_steps": N, "schedule": "cyclic"}),
        (FLAT, {"max_steps": 4000}),
    ):
        assert of("schedule_ends_early", lr, **config).state == CANNOT_TELL


def test_one_cycle_has_an_end() -> None:
    up = np.minimum(np.arange(N) / 20, 1.0) * EARLY
    for name in ("onecycle", "OneCycleLR", "1cycle"):
        assert of("schedule_ends_early", up, max_steps=N, schedule=name).state == SEEN


def test_the_last_stair_of_a_step_schedule_has_no_end() -> None:
    at = np.arange(N)
    assert of("schedule_ends_early", np.where(at < 200, 1e-3, 5e-6), max_steps=N).state == ABSENT
    assert of("schedule_ends_early", np.select([at < 100, at < 200], [1e-3, 1e-4], 5e-6), max_steps=N).state == ABSENT
    assert of("schedule_ends_early", np.select([at < 3, at < 6], [1e-3, 4e-4], 0.0), max_steps=N).state == SEEN  # it stood nowhere before


def test_a_warmup_that_a_restart_began_anew_is_no_end_of_the_schedule() -> None:
    assert of("schedule_ends_early", RESET, attempts=ANEW, max_steps=N).state == ABSENT
    assert (
        of("schedule_ends_early", np.r_[EARLY[:200], RESET[200:]], attempts=ANEW, max_steps=N).state == SEEN
    )  # it ended before the restart
    assert of("schedule_ends_early", RESET, max_steps=N, lr_scheduler_type="linear").state == SEEN  # no restart: it comes round by itself


def test_a_rate_that_comes_round_is_a_cycle_unless_config_names_a_schedule_with_one_way_down() -> None:
    wave = 1e-3 * (1 + np.cos(np.arange(N) / 75 * np.pi)) / 2
    assert of("schedule_ends_early", wave, max_steps=N, lr_scheduler_type="cosine").state == SEEN
    assert of("schedule_ends_early", wave[::10], max_steps=N, lr_scheduler_type="cosine").state == SEEN  # no row shows its lowest value
    assert of("schedule_ends_early", wave, max_steps=N).state == ABSENT
    assert of("schedule_ends_early", wave, max_steps=N, lr_scheduler_type="cosine", decay="cyclic").state == ABSENT


def test_a_decay_by_a_factor_has_no_end() -> None:
    assert of("schedule_ends_early", 1e-3 * 0.5 ** (np.arange(N) // 30), max_steps=N).state == ABSENT
    assert of("schedule_ends_early", 1e-3 * 0.9 ** np.arange(N), max_steps=N).state == SEEN  # to less than a millionth


def test_whose_factor_it_is() -> None:
    assert of("schedule_factor_configured", EARLY, max_steps=N, gradient_accumulation_steps=4).state == SEEN
    assert of("schedule_factor_configured", EARLY, max_steps=N, world_size=8).state == ABSENT
    assert of("schedule_factor_configured", EARLY, max_steps=N).state == CANNOT_TELL
    assert of("schedule_factor_configured", COSINE, max_steps=N, world_size=8).state == CANNOT_TELL


WARM = np.minimum(np.arange(N) / 20, 1.0)
HIGH = {"optimizer": "adamw"}


@pytest.mark.parametrize(
    ("loss", "config", "state"),
    [
        (np.full(N, 2.0), HIGH, SEEN),
        (2 - np.arange(N) / N, HIGH, ABSENT),  # it learns
        (np.where(np.arange(N) < 300, 2.0, 1.0), HIGH, SEEN),  # once the rate has come down
        (np.full(N, 2.0), {"optimizer": "sgd"}, SEEN),
        (np.full(N, 2.0), {"optimizer": "sgd", "grad_clip": 1.0}, CANNOT_TELL),  # whose steps are no longer than the clip allows
        (np.full(N, -2.0), HIGH, CANNOT_TELL),
    ],
)
def test_a_rate_at_which_nothing_is_learnt(loss: Any, config: dict[str, Any], state: str) -> None:
    run = run_of({"loss.train": loss * (1 + 0.001 * noisy(N, 0.01)), "lr": COSINE * WARM}, config=config)
    assert rate_path.loss_stands_at_high_rate(Symptoms(run, ())).state == state


def test_without_a_rate_it_cannot_tell_at_which_nothing_is_learnt() -> None:
    assert of("loss_stands_at_high_rate", None).state == CANNOT_TELL
