"""Spikes of a run: found, classed, measured; and the four sorts of things that are none."""

from __future__ import annotations

import numpy as np
import pytest

from forensics.case import Finding
from forensics.detectors import loss_spike
from forensics.errors import CannotTell
from forensics.spikes import classes
from forensics.spikes.excursions import Excursion, Floats
from parsers.tables import Run
from tests.forensics.curves import noisy, run_of


def spikes(run: Run) -> list[Finding]:
    return list(loss_spike.detect(run))


def one(run: Run) -> Finding:
    (found,) = spikes(run)
    return found


def decaying(x: Floats, at: int, factor: float, values: float) -> Floats:
    out = x.copy()
    out[at:] *= 1 + (factor - 1) * np.exp(-np.arange(len(x) - at) / values)
    return out


def test_a_fast_spike_with_all_its_measures() -> None:
    x = noisy(1000, 0.01)
    x[500:503] = x[485:500].mean() * np.array([3.0, 2.0, 1.4])
    f = one(run_of({"loss.train": x}))
    assert (f.facts.start, f.facts.peak, f.facts.end) == (500, 500, 503)
    assert f.facts.class_ == "fast" and f.severity == "warning" and not f.facts.censored
    assert sum(f.facts.class_probability.values()) == pytest.approx(1, abs=0.01)
    assert f.facts.class_probability["fast"] > 0.9
    assert f.facts.height == pytest.approx(2 * f.facts.level, rel=0.05)
    assert f.facts.half_life in (1, 2)
    assert f.facts.cost_steps in range(3, 20)
    assert f.facts.cost_excess == pytest.approx((2 + 1 + 0.4) * f.facts.level, rel=0.1)
    offset = f.facts.residual_offset
    assert offset["low"] < 0 < offset["high"] and offset["high"] - offset["low"] < 0.05 * f.facts.level
    assert f.evidence[0].data["marks"][0]["kind"] == "fast"


def test_slow_means_longer_than_the_share_of_the_plan() -> None:
    x = decaying(noisy(1000, 0.01), 500, 2.0, 15)
    assert one(run_of({"loss.train": x})).facts.class_ == "slow"
    assert one(run_of({"loss.train": x}, config={"max_steps": 40_000})).facts.class_ == "fast"


def test_a_spike_of_one_coarse_interval_is_fast() -> None:
    x = noisy(300, 0.01)
    x[150] *= 1.8
    f = one(run_of({"loss.train": x}, interval=500))
    assert (f.facts.class_, f.facts.end - f.facts.start) == ("fast", 500)


def test_what_does_not_come_back_is_critical() -> None:
    x = noisy(600, 0.01)
    x[300:] *= 1.2
    x[300:306] *= [2.2, 1.9, 1.6, 1.4, 1.2, 1.1]
    f = one(run_of({"loss.train": x}))
    assert (f.facts.class_, f.facts.end, f.severity) == ("non_recovering", None, "critical")
    offset = f.facts.residual_offset
    assert offset["low"] > 0 and offset["offset"] == pytest.approx(0.2 * f.facts.level, rel=0.2)


@pytest.mark.parametrize(("undone", "kind"), [(True, "slow"), (False, "non_recovering")])
def test_what_later_learning_undoes_is_slow(undone: bool, kind: str) -> None:
    """The log of the loss touches its old level behind the spike and stays above it; later learning brings it below that, or not."""
    y = 0.02 * np.sin(np.arange(900))
    y[300:312] += np.linspace(2, 0, 12)
    y[320:] += 0.6
    if undone:
        y[700:] -= 1.0
    e = Excursion(300, 300, 312, 0.0, 0.05, 2.0)
    spike = classes._spike(np.arange(900), y, e, 0.9, 20.0, len(y), True)
    assert spike.kind == kind
    assert spike.at.end is None if not undone else 695 <= (spike.at.end or 0) <= 715


def test_divergence_without_a_spike_is_found_where_it_begins() -> None:
    x = noisy(1000, 0.007)
    x[800:] *= 1 + np.linspace(0, 0.06, 200)
    f = one(run_of({"loss.train": x}))
    assert f.facts.why == "divergence" and f.facts.class_ == "non_recovering"
    assert 800 <= f.facts.start <= 900


def test_the_end_of_the_log_censors() -> None:
    x = noisy(600, 0.01)
    x[596:] *= 3
    f = one(run_of({"loss.train": x}))
    assert f.facts.censored and f.facts.class_probability["non_recovering"] <= 0.5


def test_one_last_value_above_the_level_is_not_grave() -> None:
    x = noisy(600, 0.01)
    x[599] *= 3
    assert {f.severity for f in spikes(run_of({"loss.train": x}))} == {"warning"}
    x[599] = np.nan
    assert {f.severity for f in spikes(run_of({"loss.train": x}))} == {"critical"}


def test_a_rollback_censors_and_the_new_attempt_is_compared_with_the_old() -> None:
    x = noisy(400, 0.01)
    first, second = x[:200].copy(), x[150:].copy()
    first[190:] *= 3  # diverges; rolled back to 150
    second[50] *= 2.5  # and a spike at 200 of the new attempt
    steps = [*range(200), *range(150, 400)]
    found = spikes(run_of({"loss.train": np.r_[first, second]}, steps=steps, attempts=[0] * 200 + [1] * 250))
    assert [(f.facts.start, f.facts.attempt, f.facts.censored) for f in found] == [(190, 0, True), (200, 1, False)]
    assert not found[0].facts.alive


def test_a_bump_right_after_a_restart_is_seen_against_the_attempt_before() -> None:
    x = noisy(400, 0.01)
    x[200:204] *= [1.9, 1.6, 1.3, 1.1]
    f = one(run_of({"loss.train": x}, attempts=[0] * 200 + [1] * 200))
    assert (f.facts.start, f.facts.attempt) == (200, 1)


def test_nan_is_the_highest_spike() -> None:
    x = noisy(300, 0.01)
    x[200:] = np.nan
    f = one(run_of({"loss.train": x}))
    assert (f.facts.class_, f.facts.why, f.facts.start) == ("non_recovering", "nonfinite", 200)
    assert f.facts.residual_offset["offset"] is None


def test_weights_that_start_anew_are_no_spike() -> None:
    t = np.arange(300)
    begin = 2 + 8 * np.exp(-t / 30)
    x = np.r_[begin, begin] * np.exp(0.01 * np.random.default_rng(0).standard_normal(600))
    f = one(run_of({"loss.train": x}))
    assert (f.facts.class_, f.facts.why, f.severity, f.facts.start) == ("not_a_spike", "reinit", "info", 300)


def test_a_level_that_steps_up_and_learns_on_is_no_spike() -> None:
    x = noisy(600, 0.01)
    x[300:] *= 1 + 0.4 * np.exp(-np.arange(300) / 300)
    f = one(run_of({"loss.train": x}))
    assert (f.facts.class_, f.facts.why) == ("not_a_spike", "step")


def test_a_stretch_of_bad_data_is_a_spike_although_it_is_flat() -> None:
    x = noisy(600, 0.01)
    x[300:345] *= 1.6
    f = one(run_of({"loss.train": x}))
    assert (f.facts.class_, f.facts.end) == ("slow", 345)


def test_equal_bumps_at_regular_distances_are_the_loops() -> None:
    x = noisy(500, 0.004)
    for at in (150, 250, 350):
        x[at : at + 25] *= 1 + 0.06 * np.exp(-np.arange(25) / 10)
    found = spikes(run_of({"loss.train": x}))
    assert len(found) == 3 and {f.facts.why for f in found} == {"periodic"}


@pytest.mark.parametrize(("offset", "whys"), [(0, {"periodic"}), (37, {""})])
def test_bumps_at_multiples_of_their_distance_are_the_loops(offset: int, whys: set[str]) -> None:
    """Gaussian splatting resets its opacities every 3000 steps; a bad batch that comes again stands elsewhere in its epoch."""
    x = noisy(1000, 0.02)
    for at in (300, 600, 900):
        x[at + offset : at + offset + 12] *= 1 + 3 * np.exp(-np.arange(12) / 3)
    found = [f for f in spikes(run_of({"loss.train": x}, interval=10)) if f.facts.height > 1]
    assert len(found) == 3 and {f.facts.why for f in found} == whys


def few_samples(seed: int = 0) -> Floats:
    """A loss of batches of which one in forty is hard: twice to four times as high, for one value."""
    rng = np.random.default_rng(seed)
    x = noisy(2000, 0.05)
    hard = rng.random(2000) < 1 / 40
    return np.where(hard, x * np.exp(rng.uniform(0.3, 1.4, 2000)), x)


def test_one_of_many_alike_throughout_the_run_is_no_event() -> None:
    x = few_samples()
    found = spikes(run_of({"loss.train": x}))
    assert found
    assert not [f for f in found if f.severity != "info"]
    assert "come and go throughout the run" in found[0].title
    x[1200:1230] = 4 * x[1190]  # as high, but wider than any of them
    assert [f.facts.start for f in spikes(run_of({"loss.train": x})) if f.severity != "info"] == [1200]
    x = noisy(2000, 0.05)
    x[1000:1400:40] *= 3.0  # ten alike, all in one part of the run
    assert [f for f in spikes(run_of({"loss.train": x})) if f.severity == "warning"]


def test_a_loss_of_two_levels_by_batch_does_not_stay_up_because_it_was_low_for_once() -> None:
    """Of a batch that has none of the rare class it is low, of others it is high: a run of low ones is no level."""
    rng = np.random.default_rng(3)
    x = np.where(rng.random(3000) < 0.35, 0.007, 0.035) * np.exp(0.1 * rng.standard_normal(3000))
    x[::97] *= 2.5
    x[1500:1512], x[1512] = 0.007, 0.15
    assert not [f for f in spikes(run_of({"loss.train": x})) if f.severity != "info"]


@pytest.mark.parametrize(("top", "lasts", "severity"), [(0.05, 10, "info"), (1.5, 10, "info"), (2.5, 10, "warning"), (1.5, 500, "warning")])
def test_a_spike_that_comes_back_soon_and_takes_back_less_than_half_of_the_fall_is_no_warning(
    top: float, lasts: int, severity: str
) -> None:
    x = 4 * np.exp(-np.arange(4000) / 500) + 0.005 * noisy(4000, 0.05)
    x[3000 : 3000 + lasts] = top
    assert [f.severity for f in spikes(run_of({"loss.train": x}))] == [severity]


def test_a_spike_at_a_restart_is_a_warning_however_little_it_takes_back() -> None:
    x = 4 * np.exp(-np.arange(4000) / 500) + 0.005 * noisy(4000, 0.05)
    x[3002:3012] = 1.5
    attempts = [0] * 3000 + [1] * 1000
    assert [f.severity for f in spikes(run_of({"loss.train": x}, attempts=attempts))] == ["warning"]


def test_steps_that_fall_back_within_an_attempt_make_no_spike() -> None:
    x = decaying(noisy(600, 0.01), 300, 2.0, 30)
    begins_anew = [*range(300), *range(300)]  # two trainings that nothing tells apart
    assert spikes(run_of({"loss.train": x}))
    assert not spikes(run_of({"loss.train": x}, steps=begins_anew))


def test_what_moved_first_comes_with_the_bound_of_the_log() -> None:
    rng = np.random.default_rng(1)
    x, g = noisy(600, 0.01), np.exp(0.1 * rng.standard_normal(600))
    lr = np.full(600, 1e-3)
    x[400:405] *= [2.5, 2.0, 1.6, 1.3, 1.1]
    g[392:405] *= 30
    f = one(run_of({"loss.train": x, "grad.norm": g, "lr": lr}))
    first = f.facts.moved_first
    assert (first["metric"] if "metric" in first else first["first"]) == "grad.norm"
    assert (first["lead"], first["bound"], first["certain"]) == (8, 1, True)
    assert set(first["looked"]) == {"grad.norm", "lr"}
    lr[400:] *= 10
    g[392:400] = 1.0
    first = one(run_of({"loss.train": x, "grad.norm": g, "lr": lr}, interval=10)).facts.moved_first
    assert (first["lead"], first["bound"], first["certain"]) == (0, 10, False)


def healthy(seed: int, smooth: bool) -> Floats:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(150, 3000))
    noise = (rng.standard_normal(n) if seed % 2 else rng.gamma(2, 0.7, n)) * rng.choice([0.005, 0.05, 0.15])
    x = np.exp(np.log(1 + 5 * (1 + np.arange(n) / 20) ** -0.5) + noise)
    for i in range(1, n if smooth else 0):
        x[i] = 0.9 * x[i - 1] + 0.1 * x[i]
    return np.asarray(x)


@pytest.mark.parametrize(("smooth", "most"), [(False, 0), (True, 2)])
def test_healthy_curves_are_clear(smooth: bool, most: int) -> None:
    """Of 20: noise of a few sizes, one-sided in half of them; smoothed noise is the hardest to tell from a spike."""
    grave = [s for s in range(20) if any(f.severity != "info" for f in spikes(run_of({"loss.train": healthy(s, smooth)})))]
    assert len(grave) <= most


def test_an_eval_loss_serves_where_there_is_no_training_loss() -> None:
    x = noisy(300, 0.01)
    x[150] *= 2
    assert one(run_of({"loss.eval": x})).facts.metric == "loss.eval"


def test_a_short_log_cannot_tell() -> None:
    with pytest.raises(CannotTell):
        spikes(run_of({"loss.train": np.ones(9)}))


def test_the_table_of_the_case_has_what_it_needs() -> None:
    from forensics.case_parts import summary

    x = noisy(400, 0.01)
    x[200] *= 3
    run = run_of({"loss.train": x})
    (row,) = summary.spikes(run, spikes(run))
    assert row["start"] == row["peak"] == 200 and row["class"] == "fast"


@pytest.mark.parametrize(("schedule", "severity"), [("warm_restarts", "info"), ("cosine", "warning")])
def test_a_spike_where_the_rate_begins_again_as_configured(schedule: str, severity: str) -> None:
    """A rate that comes back up by plan costs some steps; by no plan it is a jump of the rate."""
    t = np.arange(400)
    rate = 0.05 * (1 + np.cos(np.pi * (t % 200) / 200)) + 1e-4
    loss = noisy(400, 0.03) * (0.06 + 5 * np.exp(-np.abs(t - 200) / 8) * (t >= 200))
    found = list(loss_spike.detect(run_of({"loss.train": loss, "lr": rate}, config={"schedule": schedule, "lr": 0.1})))
    assert [f.severity for f in found] == [severity]
