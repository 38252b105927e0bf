"""Signs of the shape and the height of spikes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from forensics import pipeline
from forensics.signs import spike_height, spike_shape
from forensics.signs.sign import Sign, Symptoms
from forensics.spikes.excursions import Floats
from tests.forensics.curves import run_of

N = 600
T = np.arange(N)
CALM = 1 + 2.5 * np.exp(-T / 60) + 0.02 * np.random.default_rng(1).standard_normal(N)


def raised(first: int, by: Floats | list[float], x: Floats = CALM) -> Floats:
    x = x.copy()
    x[first : first + len(by)] += np.asarray(by)[: len(x) - first]
    return x


ONE = raised(300, [4.0])
MANY = raised(500, [4.0], raised(400, [4.0], raised(200, [3.0], raised(250, [5.0], raised(450, [3.5], ONE)))))
SLOW = raised(300, 5 * np.exp(-np.arange(200) / 25))
STEP = raised(300, np.full(40, 3.0))  # a stretch that begins and ends at once
HEALS = raised(300, np.concatenate([np.full(12, 8.0), 0.8 * np.exp(-np.arange(40) / 10)]))  # and what it broke is learnt again
CLIMBS = raised(300, np.concatenate([np.linspace(0.2, 3, 30), 3 * np.exp(-np.arange(120) / 20)]))
STAYS = raised(300, 6 * np.exp(-np.arange(300) / 150))
HURTS = raised(300, np.concatenate([[40.0, 30.0], 2 * np.exp(-np.arange(200) / 60)]))  # one batch, and what it did to the weights
LAST = raised(N - 2, [4.0, 4.2])
LOW = raised(300, [0.5])
S, H = spike_shape, spike_height

CASES: list[tuple[Callable[[Symptoms], Sign], str, Floats]] = [
    (S.spiked_once, "seen", ONE),
    (S.spiked_once, "absent", CALM),
    (S.spiked_once, "cannot tell", CALM[:5]),
    (S.spiked_again, "seen", MANY),
    (S.spiked_again, "absent", ONE),
    (S.spiked_often, "seen", MANY),
    (S.spiked_often, "absent", ONE),
    (S.spike_back_at_once, "seen", ONE),
    (S.spike_back_at_once, "absent", SLOW),
    (S.spike_back_at_once, "seen", HURTS),
    (S.spike_back_at_once, "absent", raised(300, np.concatenate([[40.0], 8 * np.exp(-np.arange(200) / 60)]))),
    (S.spike_back_at_once, "cannot tell", CALM),
    (S.spike_stays, "seen", STAYS),
    (S.spike_stays, "absent", ONE),
    (S.spike_stays, "cannot tell", LAST),
    (S.spike_recovers_slowly, "seen", SLOW),
    (S.spike_recovers_slowly, "absent", ONE),
    (S.spike_recovers_slowly, "cannot tell", CALM),
    (S.spike_peaks_at_once, "seen", ONE),
    (S.spike_peaks_at_once, "absent", CLIMBS),
    (S.spike_within_scatter, "absent", ONE),
    (S.spike_within_scatter, "cannot tell", CALM),
    (S.stretch_stays_high, "seen", STEP),
    (S.stretch_stays_high, "absent", ONE),
    (S.stretch_stays_high, "seen", HEALS),
    (H.spike_above_first_loss, "seen", STAYS),
    (H.spike_above_first_loss, "absent", ONE),
    (H.spike_above_first_loss, "cannot tell", CALM),
    (H.level_left_at_once, "seen", STEP),
    (H.level_left_at_once, "absent", SLOW),
    (H.level_left_at_once, "cannot tell", ONE),
    (H.spike_at_last_steps, "seen", LAST),
    (H.spike_at_last_steps, "absent", ONE),
    (H.spike_at_last_steps, "cannot tell", CALM),
]


def symptoms(x: Floats, **more: Any) -> Symptoms:
    run = run_of({"loss.train": x}, **more)
    return Symptoms(run, tuple(pipeline.detect(run)[0]))


@pytest.mark.parametrize(("sign", "state", "x"), CASES, ids=lambda v: getattr(v, "__name__", v if isinstance(v, str) else ""))
def test_what_the_spikes_show(sign: Callable[[Symptoms], Sign], state: str, x: Floats) -> None:
    found = sign(symptoms(x))
    assert found.state == state, found.text
    assert found.text.endswith(".") and (state != "seen" or {"first", "last"} <= found.numbers.keys())


def test_a_spike_among_others_nearly_as_high_may_be_scatter() -> None:
    s = symptoms(ONE)
    (f,) = [f for f in s.findings if f.kind == "loss_spike"]
    doubtful = replace(f.facts, over_highest=0.2, class_probability=f.facts.class_probability | {"not_a_spike": 0.5})
    assert S.spike_within_scatter(Symptoms(s.run, (replace(f, facts=doubtful),))).state == "seen"


@pytest.mark.parametrize(("x", "shift"), [(raised(300, 40 * (T[:300] == 0) + 0.5 * np.exp(-T[:300] / 150)), False), (STAYS, True)])
def test_other_data_stay(x: Floats, shift: bool) -> None:
    causes = {h.id for h in pipeline.causes_of(run_of({"loss.train": x}))[0]}
    assert "bad_data_batch" in causes and ("data_distribution_shift" in causes) is shift


@pytest.mark.parametrize("x", [np.zeros(0), np.array([1.0]), np.full(200, np.nan), -ONE, np.where(T == 300, np.nan, CALM)], ids=str)
def test_odd_losses_break_nothing(x: Floats) -> None:
    s = symptoms(x)
    for sign in {c[0] for c in CASES}:
        assert sign(s).text
