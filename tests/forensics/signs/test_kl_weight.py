"""Weights of a KL term that are raised, switched on or run in cycles, and what they do to the loss."""

from __future__ import annotations

import numpy as np
import pytest

from forensics.detectors import divergence, level_shift, loss_spike, plateau
from forensics.pipeline import judge
from forensics.signs import kl_weight as K
from forensics.signs.sign import Symptoms
from tests.forensics.curves import noisy, run_of

T, ONE = np.arange(100), np.ones(100)
FADES = np.exp(-T / 10)


@pytest.mark.parametrize(
    ("lift", "term", "state"),
    [(5.0, 5.0, "seen"), (9.0, 3.0, "absent"), (5.0, None, "cannot tell"), (0.0, 5.0, "cannot tell")],
    ids=["the weight alone", "a third of it", "no term", "no rise"],
)
def test_a_weight_that_is_raised_lifts_a_loss_by_its_term(lift: float, term: float | None, state: str) -> None:
    weight = np.clip((T - 40) / 40, 0, 1)
    terms = {"other/beta": weight} | ({} if term is None else {"other/kld": term * ONE})
    run = run_of({"loss.train": 20 + 10 * FADES + lift * weight, **terms})
    assert K.kl_weight_lifts_loss(Symptoms(run, tuple(divergence.detect(run)))).state == state


@pytest.mark.parametrize("called", ["ce", "recon", "accuracy"])
def test_a_weight_is_told_by_the_loss_and_its_terms(called: str) -> None:
    """A cross entropy is the reconstruction of a text."""
    weight, rest, kl = 0.01 + np.clip((T - 20) / 30, 0, 1), 1 + 2 * FADES, 4 + 0 * T + noisy(100, 0.01)
    run = run_of({"loss.train": rest + weight * kl, f"other/{called}": rest, "other/kl": kl})
    assert K.kl_weight_lifts_loss(Symptoms(run, tuple(divergence.detect(run)))).state == ("cannot tell" if called == "accuracy" else "seen")


@pytest.mark.parametrize("of_the_term", [False, True], ids=["by its weight", "by itself"])
def test_a_cycle_of_the_weight_lifts_the_loss_each_time(of_the_term: bool) -> None:
    """KL annealing in cycles: the term is large where its weight is small. A term that grows under its weight is no annealing."""
    t = np.arange(240)
    weight = np.clip((t % 80) / 50, 0, 1)
    term = 3 + 6 * np.exp(-weight * 3)
    if of_the_term:
        weight, term = np.full(240, 0.5), np.where(t < 160, 6, 6 + 10 * weight)
    x = 20 + 10 * np.exp(-t / 20) + weight * term + noisy(240, 0.01)
    run = run_of({"loss.train": x, "other/beta": weight, "other/kl": term})
    found = [*loss_spike.detect(run), *divergence.detect(run)]
    assert {f.kind for f in found} == {"loss_spike", "divergence"}
    assert K.kl_weight_lifts_loss(Symptoms(run, tuple(found))).state == ("absent" if of_the_term else "seen")
    assert {f.severity for f in judge(run).findings if f.kind in ("loss_spike", "divergence")} == {"critical" if of_the_term else "info"}


def test_a_weight_that_is_raised_makes_no_spike() -> None:
    """In the cycle that the weight lifts the loss by a third, something else throws it up fivefold, for a moment."""
    t = np.arange(240)
    weight = np.clip((t % 80) / 50, 0, 1)
    term = 3 + 6 * np.exp(-weight * 3)
    x = 20 + 10 * np.exp(-t / 20) + weight * term + noisy(240, 0.01) + np.where(t >= 120, 100 * np.exp(-(t - 120) / 2.0), 0)
    run = run_of({"loss.train": x, "other/beta": weight, "other/kl": term})
    assert [f.severity for f in judge(run).findings if f.kind == "loss_spike" and f.facts.peak == 120] == ["warning"]


@pytest.mark.parametrize("worse", [0.0, 6.0], ids=["as before at that weight", "higher than before at that weight"])
def test_a_cycle_costs_reconstruction_too(worse: float) -> None:
    """Codes that have to be short tell less: the loss without its term rises with the weight. At one weight it is no higher than before."""
    t = np.arange(240)
    weight = np.clip((t % 80) / 20, 0, 1)
    x = 20 + 10 * np.exp(-t / 20) + 5 * weight + noisy(240, 0.01) + np.where(t > 170, worse * weight, 0)
    run = run_of({"loss.train": x, "other/beta": weight, "other/kl": 3 + 0 * weight})
    found = tuple(f for f in divergence.detect(run))
    assert found and K.kl_weight_lifts_loss(Symptoms(run, found)).state == ("absent" if worse else "seen")


@pytest.mark.parametrize(("left", "state", "severity"), [(24.0, "seen", "info"), (34.5, "absent", "warning")])
def test_a_weight_that_is_raised_holds_the_loss_up(left: float, state: str, severity: str) -> None:
    """beta of 4: what reconstruction gains, the term costs."""
    t = np.arange(100)
    weight, x = np.clip((t + 1) / 60, 0, 1) * 4, 35 - t / 80 + 0.05 * noisy(100, 0.1)
    rest = left + (35 - left) * np.exp(-t / 4)
    run = run_of({"loss.train": x, "other/beta": weight, "other/kl": (x - rest) / weight})
    found = tuple(plateau.detect(run))
    assert found and K.kl_weight_holds_loss_up(Symptoms(run, found)).state == state
    assert {f.severity for f in judge(run).findings if f.kind == "plateau"} == {severity}


def test_a_cycle_that_begins_anew_at_the_end_is_no_lower_weight() -> None:
    t = np.arange(195)
    weight = np.where(t < 190, np.clip((t % 64) / 40, 0, 1), 0)
    x = 20 + 10 * np.exp(-t / 20) + 5 * weight + noisy(195, 0.01)
    run = run_of({"loss.train": x, "other/beta": weight, "other/kl": 3 + 0 * weight})
    found = tuple(f for f in divergence.detect(run))
    assert found and K.kl_weight_lifts_loss(Symptoms(run, found)).state == "seen"


@pytest.mark.parametrize("name", ["kl_w", "kl_weight", "lambda_kl", "kld_coef", "beta"])
def test_a_weight_that_is_switched_on_trades_reconstruction_for_shorter_codes(name: str) -> None:
    """Without its weight the KL term had run away, so that the loss of before was no loss at this weight."""
    t = np.arange(200)
    weight = np.clip((t - 80) / 60, 0, 1)
    term = np.where(weight > 0, 70 * np.exp(-8 * weight) + 4, 70.0 * (1 - np.exp(-t / 20)))
    rest = 18 + 20 * np.exp(-t / 20) + 3 * weight
    run = run_of({"loss.train": rest + weight * term + noisy(200, 0.01), f"other/{name}": weight, "other/kl": term})
    found = (*loss_spike.detect(run), *divergence.detect(run))
    assert found and K.kl_weight_lifts_loss(Symptoms(run, found)).state == "seen"


@pytest.mark.parametrize(("worse", "state"), [(0.0, "seen"), (20.0, "absent")])
def test_cycles_that_an_epoch_logs_once(worse: float, state: str) -> None:
    """Few values: what stands behind the last low weight is held against what stood at its weight before."""
    t = np.arange(36)
    weight = (t % 12) / 12
    x = 19 + 15 * np.exp(-t / 6) + 8 * weight + np.where(t > 24, worse, 0)
    run = run_of({"loss.train": x, "other/vae/beta": weight, "other/kl": 3 + 0 * weight})
    found = tuple(divergence.detect(run))
    assert found and K.kl_weight_lifts_loss(Symptoms(run, found)).state == state


@pytest.mark.parametrize(("raised", "state"), [(True, "seen"), (False, "cannot tell")])
def test_a_weight_that_was_not_logged_is_told_by_the_loss_and_its_terms(raised: bool, state: str) -> None:
    """What the loss adds to the reconstruction, over the term. Where that stands still the loss steps up for another reason."""
    t = np.arange(40)
    weight = np.clip((t + 1) / 15, 0, 1) if raised else np.ones(40)
    term = 7 - 3 * np.clip(t / 15, 0, 1) if raised else np.full(40, 4.0)
    rest = 20 + 12 * np.exp(-t / 1.5) + (0 if raised else 2.5 * (t > 10))
    run = run_of({"loss.train": rest + weight * term, "other/recon": rest + noisy(40, 0.05) - 2, "other/kl": term}, interval=40)
    found = tuple(f for f in [*level_shift.detect(run), *loss_spike.detect(run)] if not (raised and f.kind == "loss_spike"))
    assert found and K.kl_weight_lifts_loss(Symptoms(run, found)).state == state
