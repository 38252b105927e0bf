"""Signs of the rate's size: against the usual, at the trouble, in the first steps."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from forensics.case import Finding
from forensics.detectors import divergence, plateau, warmup
from forensics.signs import learning_rate
from forensics.signs.sign import ABSENT, CANNOT_TELL, SEEN, Symptoms
from tests.forensics.curves import run_of

GPT = {"optimizer": "adamw", "n_head": 4, "n_embd": 64}  # usual: 3e-3
SIZES = ("rate_far_above_usual", "rate_above_usual", "rate_ordinary", "rate_far_below_usual")


def of(name: str, metrics: dict[str, Any], findings: tuple[Finding, ...] = (), config: dict[str, Any] | None = None) -> Any:
    run = run_of(metrics, config=config)
    run.attempts[0]["steps"] = [0, 399]
    return getattr(learning_rate, name)(Symptoms(run, findings))


def turn(step: int) -> Finding[Any]:
    facts = divergence.Facts(step, 1.0, 3.0, 2.0, step, 4.0)
    return Finding(f"divergence-{step}", "divergence", f"The loss turns at step {step}", step, 399, "critical", facts=facts)


@pytest.mark.parametrize(
    ("rate", "config", "states"),
    [
        (0.03, GPT, (SEEN, ABSENT, ABSENT, ABSENT)),
        (0.012, GPT, (ABSENT, SEEN, ABSENT, ABSENT)),
        (0.003, GPT, (ABSENT, ABSENT, SEEN, ABSENT)),
        (8e-5, GPT, (ABSENT, ABSENT, ABSENT, SEEN)),
        (0.0005, GPT, (ABSENT, ABSENT, ABSENT, ABSENT)),
        (6.0, {"optimizer": {"name": "sgd"}} | {"optim.name": "sgd"}, (SEEN, ABSENT, ABSENT, ABSENT)),
        (0.1, {"optimizer": "adamw"}, (SEEN, ABSENT, ABSENT, ABSENT)),  # whatever the model is
        (0.003, {"optimizer": "adamw"}, (CANNOT_TELL, CANNOT_TELL, CANNOT_TELL, ABSENT)),
        (1e-6, {"optimizer": "adamw"}, (ABSENT, ABSENT, ABSENT, SEEN)),
        (0.03, {}, (CANNOT_TELL,) * 4),
        (1e-4, {"optimizer": "sgd", "optimizer_name": "adam"}, (CANNOT_TELL,) * 4),
        (0.03, {"optimizer": "lion"}, (CANNOT_TELL,) * 4),
        (0.02, GPT | {"pretrained": True}, (CANNOT_TELL,) * 4),
        (0.3, GPT | {"pretrained": True}, (SEEN, CANNOT_TELL, CANNOT_TELL, CANNOT_TELL)),  # more than trains it from the start
        (0.02, GPT | {"lora_r": 8}, (CANNOT_TELL,) * 4),
        (0.2, GPT | {"lora_r": 8}, (CANNOT_TELL,) * 4),  # adapters take ten times as much
        (0.3, GPT | {"lora_r": 8}, (SEEN, CANNOT_TELL, CANNOT_TELL, CANNOT_TELL)),
        (0.03, GPT | {"package.peft": "0.17"}, (SEEN, ABSENT, ABSENT, ABSENT)),  # installed, not used
        (0.03, GPT | {"use_lora": False, "lora_r": 8}, (SEEN, ABSENT, ABSENT, ABSENT)),
    ],
)
def test_a_rate_stands_in_one_bracket_of_the_usual(rate: float, config: dict[str, Any], states: tuple[str, ...]) -> None:
    found = [of(name, {"lr": np.full(400, rate)}, config=config) for name in SIZES]
    assert tuple(s.state for s in found) == states, [s.text for s in found]


@pytest.mark.parametrize(("rate", "stuck", "state"), [(2e-6, True, SEEN), (2e-6, False, CANNOT_TELL), (2e-5, True, CANNOT_TELL)])
def test_a_rate_below_that_of_any_optimizer(rate: float, stuck: bool, state: str) -> None:
    """Where config names no optimizer; a trained model that learns may be tuned at such a rate."""
    still = Finding(
        "plateau-0", "plateau", "Loss does not fall", 0, 399, "warning", facts=plateau.Facts(1.79, 1.79, 1.79, 0.0, None, False)
    )
    found = of("rate_far_below_usual", {"lr": np.full(400, rate)}, (still,) if stuck else ())
    assert found.state == state, found.text


def test_a_log_that_breaks_off_in_its_warmup_says_nothing_of_the_peak() -> None:
    for rate, state in ((np.linspace(2e-9, 2e-7, 400), CANNOT_TELL), (np.full(400, 2e-7), SEEN)):
        assert of("rate_far_below_usual", {"lr": rate}, config=GPT).state == state


@pytest.mark.parametrize(("first", "state"), [(4.6, SEEN), (0.3, CANNOT_TELL)])
def test_a_model_that_knew_at_first_is_tuned(first: float, state: str) -> None:
    """Its loss begins far below what guessing among a hundred classes costs."""
    run = run_of({"lr": np.full(400, 2e-7), "loss.train": np.full(400, first)}, config={**GPT, "num_classes": 100})
    run.attempts[0]["steps"] = [0, 399]
    assert learning_rate.rate_far_below_usual(Symptoms(run, ())).state == state


def test_the_trainer_of_hugging_face_takes_adam_where_nothing_is_said() -> None:
    run = run_of({"lr": np.full(400, 0.08)})
    run.attempts[0]["steps"] = [0, 399]
    assert learning_rate.rate_far_above_usual(Symptoms(run, ())).state == CANNOT_TELL
    trainer = run_of({"lr": np.full(400, 0.08)}, framework="hf-trainer")
    trainer.attempts[0]["steps"] = [0, 399]
    assert learning_rate.rate_far_above_usual(Symptoms(trainer, ())).state == SEEN


def test_no_rate_at_all() -> None:
    assert {of(name, {"loss.train": np.ones(9)}).state for name in (*SIZES, "rate_zero_throughout", "warmup_present")} == {CANNOT_TELL}


def test_a_rate_of_zero() -> None:
    assert of("rate_zero_throughout", {"lr": np.zeros(50)}).state == SEEN
    assert of("rate_zero_throughout", {"lr": np.r_[0, np.full(49, 1e-3)]}).state == ABSENT


@pytest.mark.parametrize(("step", "high", "fallen"), [(50, SEEN, ABSENT), (380, ABSENT, SEEN), (5, ABSENT, ABSENT)])
def test_where_the_rate_stood_at_the_trouble(step: int, high: str, fallen: str) -> None:
    lr = np.interp(np.arange(400), [0, 20, 100, 399], [0, 1e-3, 1e-3, 0])
    assert of("rate_high_at_trouble", {"lr": lr}, (turn(step),)).state == high
    assert of("rate_fallen_at_trouble", {"lr": lr}, (turn(step),)).state == fallen
    assert (
        of("rate_high_at_trouble", {"lr": lr}).state == of("rate_high_at_trouble", {"loss.train": lr}, (turn(step),)).state == CANNOT_TELL
    )


@pytest.mark.parametrize(("step", "early"), [(10, SEEN), (100, ABSENT), (300, ABSENT)])
def test_when_the_trouble_begins(step: int, early: str) -> None:
    loss = {"loss.train": np.ones(400)}
    assert of("trouble_in_first_tenth", loss, (turn(step),)).state == early
    assert of("trouble_in_first_tenth", loss).state == CANNOT_TELL


def test_warmup() -> None:
    warm, flat = np.interp(np.arange(400), [0, 50], [1e-5, 1e-3]), np.full(400, 1e-3)
    assert of("warmup_present", {"lr": warm}).state == of("no_warmup", {"lr": flat}, (_bare(),)).state == SEEN
    assert of("warmup_present", {"lr": flat}).state == of("no_warmup", {"lr": warm}).state == ABSENT
    assert of("no_warmup", {"lr": flat}, config=GPT).text.endswith("needs none.")
    assert of("no_warmup", {"lr": flat}).state == CANNOT_TELL  # no attention that is known of
    assert of("no_warmup", {"lr": flat}, config={"model": "bert-mini", "hidden_size": 64}).state == ABSENT
    assert of("no_warmup", {"lr": flat}, config=GPT | {"model_name_or_path": "base"}).state == CANNOT_TELL  # what tunes has no usual rate


def _bare() -> Finding[Any]:
    return Finding("warmup-0", "warmup", "There is no warmup", 0, 0, "warning", facts=warmup.Facts(0.0, 0.03, 10.0))
