"""What the page calls the smallest effect that a check could have seen is planted, in just that size: it is found nine times in ten.

The size is read from the sentence on the page. Healthy curves with noise of several kinds, 20 seeds of each.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from forensics.detectors import (
    divergence,
    eval_jump,
    eval_noise,
    grad_spike,
    initial_loss,
    level_shift,
    loss_spike,
    oscillation,
    plateau,
    resume_break,
    seed_spread,
    throughput,
    train_eval_gap,
)  # fmt: skip
from parsers.tables import Run
from tests.forensics.curves import run_of

SEEDS, FOUND = 20, 18
Rng = np.random.Generator
Values = np.ndarray
KINDS: dict[str, Callable[[Rng, int], Values]] = {
    "white": lambda rng, n: 2.0 * np.exp(0.01 * rng.standard_normal(n)),
    "wide": lambda rng, n: 2.0 * np.exp(0.05 * rng.standard_normal(n)),
    "heavy tails": lambda rng, n: 2.0 * np.exp(0.01 * rng.standard_t(3, n)),
    "falling": lambda rng, n: (1 + 3 * (1 + np.arange(n) / 20) ** -0.6) * np.exp(0.01 * rng.standard_normal(n)),
}
kinds = pytest.mark.parametrize("kind", KINDS)


def told(detector: Any, run: Run, pattern: str) -> float:
    """The number in the sentence."""
    said = str(detector.smallest_effect(run))
    found = re.search(pattern, said)
    assert found, said
    return float(found[1])


def percent(detector: Any, run: Run) -> float:
    return told(detector, run, r"([\d.]+) ?%") / 100


def hits(kind: str, n: int, once: Callable[[Rng, Values], bool]) -> int:
    total = 0
    for seed in range(SEEDS):
        rng = np.random.default_rng(seed)
        total += once(rng, KINDS[kind](rng, n))
    return total


@pytest.mark.parametrize(("kind", "n"), [("white", 600), ("wide", 600), ("heavy tails", 600), ("white", 1500), ("falling", 1500)])
def test_level_shift(kind: str, n: int) -> None:
    def once(rng: Rng, x: Values) -> bool:
        run = run_of({"loss.train": x})
        width = int(told(level_shift, run, r"with (\d+) values"))
        at = int(rng.integers(2 * width, n - width + 1))
        y = x.copy()
        y[at:] *= 1 + percent(level_shift, run)
        return any(abs(f.facts.step - at) <= width // 4 for f in level_shift.detect(run_of({"loss.train": y})))

    assert hits(kind, n, once) >= FOUND


@pytest.mark.parametrize("kind", ["white", "wide", "heavy tails"])
@pytest.mark.parametrize("n", [14, 20, 40, 70])
def test_level_shift_of_a_short_log(kind: str, n: int) -> None:
    def once(rng: Rng, x: Values) -> bool:
        at = int(rng.integers(5, n - 5))
        y = x.copy()
        y[at:] *= 1 + percent(level_shift, run_of({"loss.train": x}))
        return any(abs(f.facts.step - at) <= 1 for f in level_shift.detect(run_of({"loss.train": y})))

    assert hits(kind, n, once) >= FOUND


def test_a_short_log_promises_no_step() -> None:
    x = KINDS["white"](np.random.default_rng(0), 200)
    assert level_shift.smallest_effect(run_of({"loss.train": x})).startswith("no step")


@kinds
@pytest.mark.parametrize("n", [120, 600])
def test_loss_spike(kind: str, n: int) -> None:
    def once(rng: Rng, x: Values) -> bool:
        at = int(rng.integers(20, n - 20))
        y = x.copy()
        y[at] *= 1 + percent(loss_spike, run_of({"loss.train": x}))
        return any(abs(f.facts.peak - at) <= 1 for f in loss_spike.detect(run_of({"loss.train": y})))

    assert hits(kind, n, once) >= FOUND


@kinds
def test_grad_spike(kind: str) -> None:
    def once(rng: Rng, x: Values) -> bool:
        at = int(rng.integers(20, len(x) - 20))
        y = x.copy()
        y[at] *= told(grad_spike, run_of({"grad.norm": x}), r"([\d.]+) times")
        return any(f.facts.peak == at for f in grad_spike.detect(run_of({"grad.norm": y})))

    assert hits(kind, 300, once) >= FOUND


@kinds
@pytest.mark.parametrize("n", [24, 60, 400])
def test_divergence(kind: str, n: int) -> None:
    def once(rng: Rng, x: Values) -> bool:
        run = run_of({"loss.train": x})
        size, last = percent(divergence, run), int(told(divergence, run, r"for (\d+) values"))
        y = x.copy()
        best = min(float(np.median(x[i - last // 2 : i])) for i in range(last, n - last + 1))
        y[-last:] *= best * (1 + size) / np.median(x[-last:])
        return any(True for _ in divergence.detect(run_of({"loss.train": y})))

    assert hits(kind, n, once) >= FOUND


@pytest.mark.parametrize("kind", ["white", "heavy tails"])
@pytest.mark.parametrize("n", [8, 19, 200])
def test_plateau(kind: str, n: int) -> None:
    def once(rng: Rng, x: Values) -> bool:
        steady = 2 * np.exp(0.2 * np.log(x / 2))
        fall = percent(plateau, run_of({"loss.train": steady}))
        return bool(list(plateau.detect(run_of({"loss.train": steady * (1 - np.linspace(0, fall, n))}))))

    assert hits(kind, n, once) >= FOUND


@kinds
def test_oscillation(kind: str) -> None:
    def once(rng: Rng, x: Values) -> bool:
        run = run_of({"loss.train": x})
        size, last = percent(oscillation, run), int(told(oscillation, run, r"over (\d+) values"))
        y = x.copy()
        y[-last:] *= np.exp(size * rng.standard_normal(last))
        return any(f.facts.kind == "wild" for f in oscillation.detect(run_of({"loss.train": y})))

    assert hits(kind, 600, once) >= FOUND


def evaluated(train: Values, held: Values, name: str = "loss.eval") -> Run:
    return run_of({"loss.train": train, name: held})


@kinds
@pytest.mark.parametrize("n", [10, 60])
def test_eval_jump(kind: str, n: int) -> None:
    def once(rng: Rng, x: Values) -> bool:
        at = int(rng.integers(2 if n < 20 else 8, n - 3))
        y = x.copy()
        y[at:] *= 1 + percent(eval_jump, evaluated(x, x))
        return any(f.facts.step == at for f in eval_jump.detect(evaluated(x, y)))

    assert hits(kind, n, once) >= FOUND


@kinds
@pytest.mark.parametrize("n", [8, 40])
def test_train_eval_gap(kind: str, n: int) -> None:
    def once(rng: Rng, x: Values) -> bool:
        train = np.linspace(2, 1, n)
        y = x.copy()
        y[-4:] = x[:-4].min() * (1 + percent(train_eval_gap, evaluated(train, x))) * x[-4:] / np.median(x[-4:])
        return bool(list(train_eval_gap.detect(evaluated(train, y))))

    assert hits(kind, n, once) >= FOUND


@pytest.mark.parametrize("kind", ["white", "heavy tails", "falling"])
def test_resume_break(kind: str) -> None:
    def once(rng: Rng, x: Values) -> bool:
        def resumed(y: Values) -> Run:
            run = run_of({"loss.train": y}, attempts=[0] * 120 + [1] * 60)
            for a, steps in zip(run.attempts, ([0, 119], [120, 179]), strict=True):
                a["steps"] = steps
            return run

        y = x.copy()
        y[120:] *= 1 + percent(resume_break, resumed(x))
        return any(f.facts.up for f in resume_break.detect(resumed(y)))

    assert hits(kind, 180, once) >= FOUND


@pytest.mark.parametrize("kind", ["white", "wide", "heavy tails"])
@pytest.mark.parametrize("n", [12, 40, 60, 400])
def test_throughput(kind: str, n: int) -> None:
    def once(rng: Rng, x: Values) -> bool:
        run = run_of({"loss.train": x, "tput.tokens": x})
        y, last = x.copy(), int(told(throughput, run, r"lasts (\d+) values"))
        y[-last:] *= percent(throughput, run)
        return bool(list(throughput.detect(run_of({"loss.train": x, "tput.tokens": y}))))

    assert hits(kind, n, once) >= FOUND


@pytest.mark.parametrize("kind", ["white", "wide", "heavy tails"])
def test_seed_spread(kind: str) -> None:
    def once(rng: Rng, x: Values) -> bool:
        a, b = run_of({"loss.train": x}), run_of({"loss.train": KINDS[kind](rng, len(x))})
        a.group = [a, b]
        c = run_of({"loss.train": KINDS[kind](rng, len(x)) * (1 + percent(seed_spread, a))})
        a.group = [a, c]
        return bool(list(seed_spread.detect(a)))

    assert hits(kind, 200, once) >= FOUND


@pytest.mark.parametrize("kind", ["white", "wide", "heavy tails"])
def test_initial_loss(kind: str) -> None:
    def once(rng: Rng, x: Values) -> bool:
        config = {"vocab_size": 50}
        run = run_of({"loss.train": x * 1.9}, config=config)
        y = x * 1.9
        y[:3] *= told(initial_loss, run, r"of ([\d.]+)") / 3.8
        return bool(list(initial_loss.detect(run_of({"loss.train": y}, config=config))))

    assert hits(kind, 60, once) >= FOUND


@pytest.mark.parametrize("kind", ["white", "wide", "heavy tails"])
def test_evaluations_that_differ_by_less_are_chance(kind: str) -> None:
    def once(rng: Rng, x: Values) -> bool:
        size = told(eval_noise, evaluated(x, x), r"of ([\d.e-]+) between")
        a, b = rng.choice(len(x), 2, replace=False)
        return bool(abs(x[a] - x[b]) <= size)

    assert hits(kind, 60, once) >= FOUND
