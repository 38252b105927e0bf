"""Signs of the gradient norm, and of the attention."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest

from forensics import pipeline
from forensics.detectors import layer_gradients
from forensics.evidence import found as finding
from forensics.signs import attention, gradients
from forensics.signs.sign import Sign, Symptoms
from tests.forensics.curves import run_of

T = np.arange(300)
RNG = np.random.default_rng(1)
LOSS = 1 + 2 * np.exp(-T / 60) + 0.02 * RNG.standard_normal(300)
SPIKE = LOSS + np.where(T == 200, 5.0, 0.0)
CLIMBS = LOSS + np.where(T > 100, (T - 100) / 40, 0.0)
NORM = 0.5 + 0.02 * RNG.standard_normal(300)
FROM_CHANCE, CHARS = 2.4 + 2.3 * np.exp(-T / 60) + 0.02 * RNG.standard_normal(300), {"vocab_size": 98}
G, A = gradients, attention


def at_spike(times: float) -> Any:
    return np.where(T == 200, times * 0.5, NORM)


CASES: list[tuple[Callable[[Symptoms], Sign], str, Mapping[str, Any], Mapping[str, Any]]] = [
    (G.gradient_jumps_with_trouble, "seen", {"loss.train": SPIKE, "grad.norm": at_spike(8)}, {}),
    (
        G.gradient_jumps_with_trouble,
        "seen",
        {"loss.train": SPIKE, "grad.norm": np.where(T >= 195, 4.0, NORM)},
        {"attempts": [0] * 195 + [1] * 105},
    ),
    (G.gradient_jumps_with_trouble, "absent", {"loss.train": SPIKE, "grad.norm": NORM}, {}),
    (G.gradient_jumps_with_trouble, "cannot tell", {"loss.train": SPIKE}, {}),
    (G.gradient_jumps_with_trouble, "cannot tell", {"loss.train": LOSS, "grad.norm": NORM}, {}),
    (G.gradient_was_tiny, "seen", {"loss.train": SPIKE, "grad.norm": NORM * 1e-4}, {}),
    (G.gradient_was_tiny, "absent", {"loss.train": SPIKE, "grad.norm": NORM}, {}),
    (G.gradient_was_tiny, "cannot tell", {"loss.train": LOSS, "grad.norm": NORM}, {}),
    (G.gradient_exactly_zero, "seen", {"loss.train": np.where(T < 100, LOSS, 0), "grad.norm": np.where(T < 100, NORM, 0)}, {}),
    (G.gradient_exactly_zero, "absent", {"loss.train": np.where(T < 100, LOSS, 0), "grad.norm": NORM}, {}),
    (G.gradient_exactly_zero, "cannot tell", {"loss.train": LOSS}, {}),
    (G.gradient_zero_throughout, "seen", {"loss.train": 3 + 0.01 * NORM, "grad.norm": 0 * NORM}, {}),
    (G.gradient_zero_throughout, "absent", {"loss.train": 3 + 0.01 * NORM, "grad.norm": np.where(T < 3, NORM, 0)}, {}),  # lost on the way
    (G.gradient_zero_throughout, "cannot tell", {"loss.train": 3 + 0.01 * NORM, "loss.eval": 3 - T / 300, "grad.norm": 0 * NORM}, {}),
    (G.gradient_zero_throughout, "cannot tell", {"loss.train": 3 - T / 120, "grad.norm": 0 * NORM}, {}),
    (G.gradient_zero_throughout, "seen", {"loss.train": 0 * NORM, "rl.reward": 0 * NORM, "grad.norm": 0 * NORM}, {}),
    (G.gradient_zero_throughout, "cannot tell", {"loss.train": 0 * NORM, "rl.reward": 1 + T / 120, "grad.norm": 0 * NORM}, {}),
    (G.gradients_flow, "seen", {"grad.norm": NORM}, {}),
    (G.gradients_flow, "absent", {"grad.norm": NORM * 1e-6}, {}),
    (G.gradients_flow, "cannot tell", {"loss.train": LOSS}, {}),
    (G.first_gradients_large, "seen", {"loss.train": LOSS, "grad.norm": np.where(T < 10, 40, NORM)}, {}),
    (G.first_gradients_large, "absent", {"loss.train": LOSS, "grad.norm": NORM}, {}),
    (G.first_gradients_large, "cannot tell", {"loss.train": LOSS}, {}),
    (G.layers_without_gradient, "cannot tell", {"loss.train": LOSS}, {}),
    (G.units_dead, "seen", {"loss.train": LOSS, "dead_fraction": np.full(300, 0.97)}, {}),
    (G.units_dead, "absent", {"loss.train": LOSS, "dead_fraction": np.full(300, 0.2)}, {}),
    (G.units_dead, "cannot tell", {"loss.train": LOSS}, {}),
    (G.gradient_grows_steadily, "seen", {"loss.train": LOSS, "grad.norm": NORM * np.exp(T / 60)}, {}),
    (G.gradient_grows_steadily, "absent", {"loss.train": LOSS, "grad.norm": NORM}, {}),
    (G.gradient_grows_steadily, "absent", {"loss.train": np.where(T == 30, 20.0, LOSS), "grad.norm": NORM * np.exp(T / 60)}, {}),
    (G.gradient_carries_over, "seen", {"loss.train": LOSS, "grad.norm": 5 + np.sin(T / 90)}, {}),
    (G.gradient_carries_over, "seen", {"loss.train": -LOSS, "grad.norm": 5 + np.sin(T / 90)}, {}),
    (G.gradient_carries_over, "absent", {"loss.train": LOSS, "grad.norm": np.exp(np.cumsum(NORM - NORM.mean()) / 20)}, {}),  # a random walk
    (G.gradient_carries_over, "absent", {"loss.train": LOSS, "grad.norm": NORM}, {}),
    (G.gradient_carries_over, "absent", {"loss.train": np.where(T < 200, LOSS, np.nan), "grad.norm": np.where(T < 200, NORM, 0)}, {}),
    (
        G.gradient_carries_over,
        "cannot tell",
        {"loss.train": 1 + 2 * np.exp(-T / 60), "grad.norm": np.exp(-T / 60) * (1 + 0.1 * np.sin(T / 40))},
        {},
    ),  # one batch of all samples
    (G.gradient_carries_over, "cannot tell", {"loss.train": LOSS, "grad.norm": np.minimum(NORM * 4, 1.0)}, {}),
    (G.gradient_carries_over, "cannot tell", {"loss.train": LOSS}, {}),
    (G.gradient_carries_over, "seen", {"loss.train": LOSS[:30], "grad.norm": 5 + np.sin(T[:30] / 90)}, {}),
    (G.gradient_carries_over, "absent", {"loss.train": LOSS[:36], "grad.norm": NORM[:36] * (T[:36] > 0)}, {}),  # nothing is learnt at first
    (G.gradient_carries_over, "cannot tell", {"loss.train": LOSS[:20], "grad.norm": 5 + np.sin(T[:20] / 90)}, {}),
    (G.gradient_carries_over, "seen", {"loss.train": LOSS, "grad.norm": 5 + np.sin(T / 90)}, {"interval": 10}),
    (
        G.gradient_carries_over,
        "cannot tell",
        {"loss.train": LOSS, "grad.norm": np.round(0.02 + 0.01 * np.sin(T / 90), 2)},
        {},
    ),  # printed so
    (G.gradient_carries_over, "absent", {"loss.train": np.exp(4 * NORM * (-1) ** T), "grad.norm": NORM}, {}),  # blown up
    (G.gradient_clipped_always, "seen", {"loss.train": LOSS, "grad.norm": np.minimum(NORM * 4, 1.0 + 1e-5 * NORM)}, {}),
    (G.gradient_clipped_always, "seen", {"loss.train": LOSS, "grad.norm": NORM * 4}, {"config": {"max_grad_norm": 1.0}}),
    (G.gradient_clipped_always, "absent", {"loss.train": LOSS, "grad.norm": NORM}, {"config": {"max_grad_norm": 1.0}}),
    (G.gradient_clipped_always, "absent", {"loss.train": LOSS, "grad.norm": NORM}, {"config": {"max_grad_norm": 0}}),
    (G.gradient_clipped_always, "cannot tell", {"loss.train": LOSS, "grad.norm": NORM}, {}),
    (A.attention_logits_grew, "seen", {"loss.train": SPIKE, "attn.max_logit": 2 * np.exp(T / 50)}, {}),
    (A.attention_logits_grew, "absent", {"loss.train": LOSS, "attn.max_logit": 2 + 0.001 * T}, {}),
    (A.attention_logits_grew, "absent", {"loss.train": LOSS, "attn.max_logit": 2 * np.exp(T / 50), "attn.entropy": 3 - T / T.max()}, {}),
    (
        A.attention_logits_grew,
        "seen",
        {"loss.train": LOSS, "attn.max_logit": 2 * np.exp(T / 50), "attn.entropy": 3 - 2.5 * T / T.max()},
        {},
    ),
    (A.attention_logits_grew, "cannot tell", {"loss.train": LOSS}, {}),
    (
        A.attention_logits_grew,
        "absent",
        {"loss.train": np.where(T < 100, LOSS, np.nan), "attn.max_logit": np.where(T < 100, 5.0, np.nan)},
        {},
    ),  # of a model that is no more
    (A.attention_logits_grew, "seen", {"loss.train": np.where(T < 297, LOSS, np.nan), "attn.max_logit": 2 * np.exp(T / 50)}, {}),
    (A.attention_saturated_from_start, "seen", {"loss.train": FROM_CHANCE, "attn.max_logit": 130 + 10 * NORM}, {"config": CHARS}),
    (A.attention_saturated_from_start, "absent", {"loss.train": FROM_CHANCE, "attn.max_logit": 13 + NORM}, {"config": CHARS}),
    (A.attention_saturated_from_start, "absent", {"loss.train": FROM_CHANCE, "attn.max_logit": 2 * np.exp(T / 50)}, {"config": CHARS}),
    (
        A.attention_saturated_from_start,
        "cannot tell",
        {"loss.train": FROM_CHANCE / 2, "attn.max_logit": 130 + 10 * NORM},
        {"config": CHARS},
    ),
    (A.attention_saturated_from_start, "cannot tell", {"loss.train": FROM_CHANCE}, {"config": CHARS}),
    (A.attention_logits_grew, "absent", {"loss.train": FROM_CHANCE, "attn.max_logit": 130 + 10 * NORM}, {"config": CHARS}),
]


@pytest.mark.parametrize(("sign", "state", "metrics", "more"), CASES, ids=lambda v: getattr(v, "__name__", v if isinstance(v, str) else ""))
def test_what_the_gradient_shows(sign: Callable[[Symptoms], Sign], state: str, metrics: Mapping[str, Any], more: Mapping[str, Any]) -> None:
    run = run_of(metrics, **more)
    found = sign(Symptoms(run, tuple(pipeline.detect(run)[0])))
    assert found.state == state, found.text
    assert state != "seen" or {"first", "last"} <= found.numbers.keys()


@pytest.mark.parametrize(
    ("facts", "seen"),
    [
        (layer_gradients.Facts(["a"], []), "layers_without_gradient"),
        (layer_gradients.Facts(["a", "b"], [], every=True), "no_layer_has_gradient"),
        (layer_gradients.Facts([], ["a"]), "layers_starved"),
    ],
)
def test_layers_are_told_apart_by_what_was_found(facts: layer_gradients.Facts, seen: str) -> None:
    s = Symptoms(run_of({"loss.train": LOSS}), (finding(facts, "2 of 3 layers never move", (1, 9), "warning"),))
    for name in ("layers_without_gradient", "no_layer_has_gradient", "layers_starved"):
        assert (getattr(gradients, name)(s).state == "seen") == (name == seen)
