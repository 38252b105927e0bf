"""Signs across seeds of one recipe."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from curves import noisy, run_of
from runs import read

from forensics.detectors import nonfinite, seed_spread
from forensics.errors import CannotTell
from forensics.run.series import Floats
from forensics.signs import across_seeds
from forensics.signs.sign import ABSENT, CANNOT_TELL, SEEN, Sign, Symptoms
from parsers.tables import Run

SAMPLES = Path(__file__).resolve().parents[3] / "samples"
CALM, FAR = [noisy(300, 0.01, seed) for seed in range(3)], 2 * noisy(300, 0.01)
BROKEN = np.where(np.arange(300) < 200, CALM[0], np.nan)


def group(first: Floats, *others: Floats) -> Run:
    """The first run, with the others as its seeds."""
    runs = [replace(run_of({"loss.train": x}), id=f"seed_{i}") for i, x in enumerate((first, *others))]
    runs[0].group = runs if len(runs) > 1 else []
    return runs[0]


def looked(sign: str, run: Run) -> Sign:
    findings = []
    for detector in (seed_spread, nonfinite):
        try:
            findings += list(detector.detect(run))
        except CannotTell:
            continue
    found: Sign = getattr(across_seeds, sign)(Symptoms(run, tuple(findings)))
    assert found.text.endswith("."), found
    return found


@pytest.mark.parametrize(("sign", "curves", "state"), [
    ("seeds_end_apart", (FAR, *CALM), SEEN),
    ("seeds_end_apart", CALM, ABSENT),
    ("seeds_end_apart", CALM[:1], CANNOT_TELL),
    ("seeds_bear_it", (BROKEN, *CALM), SEEN),
    ("seeds_bear_it", (BROKEN, BROKEN, CALM[0]), ABSENT),
    ("seeds_bear_it", CALM, CANNOT_TELL),
    ("seeds_bear_it", (BROKEN,), CANNOT_TELL),
    ("run_broke", (BROKEN, *CALM), SEEN),
    ("run_broke", CALM, ABSENT),
    ("run_broke", (BROKEN,), CANNOT_TELL),
])  # fmt: skip
def test_seeds(sign: str, curves: tuple[Floats, ...], state: str) -> None:
    found = looked(sign, group(*curves))
    assert found.state == state, found


@pytest.mark.parametrize(
    ("ends", "state"), [((5e-5, 7.2e-5), ABSENT), ((5e-5, 5e-3), SEEN), ((0.5, 0.9), SEEN)], ids=["near zero", "one learnt less", "apart"]
)
def test_seeds_are_held_against_what_was_learnt(ends: tuple[float, float], state: str) -> None:
    """Of a loss that falls to a two-hundredth within the first values, a share of the last level says little."""
    t = np.arange(20)
    curves = [end + 0.1 * np.exp(-3 * t) + end * 0.01 * np.sin(5 * t) for end in ends]
    assert looked("seeds_end_apart", group(*curves)).state == state


def test_a_folder_of_seeds() -> None:
    found = looked("seeds_end_apart", read(SAMPLES / "seeds_far_apart"))
    assert found.state == SEEN and found.numbers["runs"] == 4


GAINS = np.linspace(20, 220, 100) + np.random.default_rng(2).normal(0, 8, 100)


@pytest.mark.parametrize(
    ("rewards", "state"),
    [
        ((GAINS, GAINS + 3, 20 + (GAINS - 20) / 4), SEEN),
        ((GAINS - 300, GAINS - 300, -280 + (GAINS - 20) / 4), SEEN),
        ((GAINS, GAINS[::-1] / 2 + 100, 20 + (GAINS - 20) / 1.5), SEEN),  # one of them falls
        ((GAINS, GAINS + 3, 20 + (GAINS - 20) / 1.5), ABSENT),
        ((GAINS, GAINS + 90), ABSENT),  # began elsewhere, learnt as much
        ((GAINS, 120 + GAINS / 2.2), ABSENT),  # began elsewhere, and came to the same end
        ((np.full(100, 20.0), np.full(100, 21.0)), ABSENT),
        ((GAINS[:20], GAINS[:20] / 4), CANNOT_TELL),
    ],
)
def test_policies_are_compared_by_what_their_rewards_gained(rewards: tuple[Floats, ...], state: str) -> None:
    runs = [replace(run_of({"rl.reward": x, "rl.loss_policy": 0.1 * x[::-1]}), id=f"seed_{i}") for i, x in enumerate(rewards)]
    runs[0].group = runs
    found = looked("seeds_end_apart", runs[0])
    assert found.state == state, found
