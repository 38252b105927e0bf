"""Whether a replay meets a log: every way in which logs show steps, to the digits they print, and never by chance."""

from __future__ import annotations

import math

import numpy as np
import pytest

from forensics.replays.agreement import Agreement, best, printed_unit, views
from forensics.replays.runner import Trace
from forensics.replays.targets import Logged

N = 60
RANDOM = np.random.default_rng(3)
LOSS = (2.5 - 0.01 * np.arange(N) + 0.1 * RANDOM.standard_normal(N)).tolist()


def trace(values: list[float], first: int = 0) -> Trace:
    return Trace(first, tuple(values), (None,) * len(values), (0.1,) * len(values))


def log(values: dict[int, float], interval: int = 1) -> Logged:
    return Logged(values, {}, {}, interval, ())


def met(values: list[float], logged: Logged, origin: int = 0) -> Agreement:
    return best(trace(values), logged, views(logged, origin), [0.0] * len(values), 10**6)


def mean(last: int, of: int) -> float:
    part = LOSS[max(last - of + 1, 0) : last + 1]
    return sum(part) / len(part)


@pytest.mark.parametrize("digits", [2, 4, 17])
@pytest.mark.parametrize("shift", [0, 1])
def test_steps_are_found_however_the_log_counts_and_rounds(shift: int, digits: int) -> None:
    found = met(LOSS, log({s + shift: round(x, digits) for s, x in enumerate(LOSS)}))
    assert (found.view.shift, found.view.words, found.agreed, found.compared) == (shift, "", N, N)
    assert found.certain


@pytest.mark.parametrize(("of", "interval"), [(5, 5), (10, 10), (20, 1), (50, 1)])
def test_means_of_steps_are_found(of: int, interval: int) -> None:
    found = met(LOSS, log({s: mean(s, of) for s in range(of - 1, N, interval)}, interval))
    assert (found.view.shift, found.view.mean_of) == (0, of)
    assert found.certain or interval == 10  # six values


def test_a_running_mean_with_decay_is_found() -> None:
    shown, x = {}, LOSS[0]
    for s, loss in enumerate(LOSS):
        x = 0.95 * x + 0.05 * loss
        shown[s] = x
    found = met(LOSS, log(shown))
    assert (found.view.decay, found.certain) == (0.95, True)


def test_another_order_is_never_certain() -> None:
    """At any number of digits: what rounding makes alike proves nothing."""
    for seed in range(40):
        random = np.random.default_rng(seed)
        other = [LOSS[i] - 0.01 * (j - i) for j, i in enumerate(random.permutation(N))]
        for digits in (0, 1, 2, 3, 17):
            found = met(other, log({s: round(x, digits) for s, x in enumerate(LOSS)}))
            assert not found.certain, (seed, digits, found)


def test_a_batch_one_step_off_is_never_certain() -> None:
    """The adapter gives the batch of the next step: the noise is that of the next step, the level that of this one."""
    noise = RANDOM.standard_normal(N + 1)
    level = 2.5 - 0.01 * np.arange(N)
    logged = log(dict(enumerate((level + 0.1 * noise[:N]).tolist())))
    found = met((level + 0.1 * noise[1:]).tolist(), logged)
    assert found.view.shift in (-1, 1) or not found.certain


def test_few_values_are_no_proof_and_the_first_ones_are_enough() -> None:
    assert not met(LOSS, log({0: LOSS[0], 1: LOSS[1]})).certain
    parted = met(LOSS, log({s: x + (1.0 if s >= 30 else 0.0) for s, x in enumerate(LOSS)}))
    assert parted.certain
    assert parted.first == 30


def test_values_that_are_not_finite_prove_nothing() -> None:
    found = met([math.nan] * N, log(dict(enumerate(LOSS))))
    assert (found.agreed, found.certain) == (0, False)
    assert met(LOSS, log(dict.fromkeys(range(N), math.nan))).compared == 0


@pytest.mark.parametrize(
    ("values", "unit"), [([2.31, 2.3], 0.01), ([2.0, 3.0], 0.1), ([2.3456, 1.0], 1e-4), ([2.31234567], 0.0), ([1e-7], 0.0), ([], 0.0)]
)
def test_the_last_digit_that_a_log_prints(values: list[float], unit: float) -> None:
    assert printed_unit(values) == pytest.approx(unit)
