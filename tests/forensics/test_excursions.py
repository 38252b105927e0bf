"""The robust arithmetic under the spike detectors, on curves whose answer is known."""

from __future__ import annotations

import numpy as np
import pytest

from forensics.run import nan_filter, robust
from forensics.spikes import excursions, medians, once_per_series, plain_rule, trend
from forensics.spikes.excursions import Floats
from forensics.spikes.visible import smallest_spike
from tests.forensics.curves import log_of, noisy


def test_a_spike_is_found_where_it_is_with_its_end() -> None:
    x = noisy(400, 0.01)
    x[200:204] *= [1.5, 1.3, 1.2, 1.1]
    (e,) = plain_rule.find(x)
    assert (e.start, e.peak, e.end) == (200, 200, 204)
    assert e.level == pytest.approx(np.median(x[185:200]), rel=0.01)
    assert e.height == pytest.approx(x[200] - e.level)
    assert 30 < e.sigmas < 120  # the running median follows the noise, which makes sigma small


def test_the_height_in_sigmas_does_not_depend_on_the_unit() -> None:
    x = noisy(400, 0.02)
    x[300] *= 1.6
    (a,), (b,) = plain_rule.find(x), plain_rule.find(1e6 * x)
    assert a.sigmas == pytest.approx(b.sigmas)


@pytest.mark.parametrize("seed", range(5))
def test_plain_noise_has_no_events(seed: int) -> None:
    assert plain_rule.find(noisy(2000, 0.05, seed)) == []


def test_the_descent_at_the_start_is_no_event() -> None:
    t = np.arange(1000)
    assert plain_rule.find(np.exp(-t / 60) * 8 + 2 + 0.01 * np.random.default_rng(0).standard_normal(1000)) == []


def test_a_crowd_is_noise_and_a_giant_in_it_is_not() -> None:
    x = noisy(1500, 0.01)
    x[100::15] *= 1.12
    assert plain_rule.find(x) == []
    x[802] *= 3
    assert [e.start for e in plain_rule.find(x)] == [802]


def test_what_never_comes_back_has_no_end() -> None:
    x = noisy(300, 0.01)
    x[250:] *= 2
    assert [(e.start, e.end, e.censored) for e in plain_rule.find(x)] == [(250, None, True)]


def test_a_second_spike_on_the_tail_of_the_first_is_a_candidate_of_its_own() -> None:
    x = noisy(600, 0.005)
    x[200:400] *= 1 + 1.5 * np.exp(-np.arange(200) / 40)
    x[300] *= 2
    y, _ = excursions.scaled(x)
    assert (300, 1) in {(e.start, e.depth) for e in excursions.candidates(y)}


def test_the_noise_after_a_long_event_is_that_from_before_it() -> None:
    x = noisy(600, 0.02)
    x[200:300] *= 2
    y, _ = excursions.scaled(x)
    assert [e.start for e in excursions.candidates(y) if e.depth == 0] == [200]


def test_nan_counts_as_the_highest() -> None:
    x = noisy(200, 0.01)
    x[100:103] = np.nan
    y, logs = excursions.scaled(x)
    assert logs and y[100] > y[np.isfinite(x)].max() + 1
    (e,) = excursions.candidates(y)
    assert (e.start, e.end) == (100, 103)
    assert plain_rule.find(x) == []  # the plain rule looks at finite values


@pytest.mark.parametrize("x", [np.array([]), np.array([1.0]), np.full(50, 2.0), np.zeros(50), np.full(50, np.nan), np.full(9, np.inf)])
def test_degenerate_series_are_survived(x: Floats) -> None:
    y, _ = excursions.scaled(x)
    assert plain_rule.find(x) == []
    assert [e for e in excursions.candidates(y) if np.isfinite(e.height)] == []


def test_values_near_zero_are_all_alike() -> None:
    x = np.r_[np.linspace(2, 0.0005, 200), np.full(100, 1e-7)]
    x[250] = 1e-6  # ten times its neighbours, and nothing
    assert plain_rule.find(x) == []


def test_middle_of_three() -> None:
    assert excursions.middle_of_three(np.array([5.0, 1, 3, 2, 9])).tolist() == [3, 2, 3, 5.5, 9]


def test_the_smallest_visible_spike_is_visible_and_half_of_it_is_not() -> None:
    x = noisy(800, 0.02, seed=3)
    share = excursions.smallest_visible(x)
    assert share is not None and 0.06 < share < 0.25
    for size, seen in ((1.6 * share, True), (0.4 * share, False)):
        z = x.copy()
        z[500] = np.median(x[485:500]) * (1 + size)
        assert bool(plain_rule.find(z)) is seen


def test_smoothing_and_interval_are_part_of_what_could_be_seen() -> None:
    x = noisy(500, 0.02)
    raw = smallest_spike(log_of(x))
    assert "19 of 20 places" in raw
    assert "every 10" in smallest_spike(log_of(x, interval=10))
    assert "mean of interval over 10 steps" in smallest_spike(log_of(x, interval=10, smoothing="mean of interval"))
    assert "at least 11 steps" in smallest_spike(log_of(x, interval=20, smoothing="median of 20"))
    assert "decay 0.9" in smallest_spike(log_of(x, smoothing="EMA 0.9"))
    assert smallest_spike(log_of(x[:20])) == ""


def test_a_slow_rise_that_lasts_is_a_turn_and_a_wave_is_none() -> None:
    x = noisy(1000, 0.006)
    y, _ = excursions.scaled(x)
    assert trend.turn(y, []) is None
    x[800:] *= 1 + np.linspace(0, 0.05, 200)
    y, _ = excursions.scaled(x)
    found = trend.turn(y, excursions.candidates(y))
    assert found is not None and 800 <= found.start <= 900 and found.rise == pytest.approx(0.045, abs=0.015)
    y = y + 0.04 * np.sin(np.arange(1000) / 40)
    assert trend.turn(y, []) is None


@pytest.mark.parametrize(
    ("finished", "nans", "micro", "logged"), [(0, 1, 1, 1.8), (5, 1, 1, 1.9667), (5, 1, 8, 2.1417), (5, 1, 32, 2.1604), (5, 8, 8, 4.2322)]
)
def test_the_nan_filter_writes_what_was_measured(finished: int, nans: int, micro: int, logged: float) -> None:
    """Values measured on transformers 5.23: ten steps a log, a loss of 2.0."""
    assert nan_filter.logged(2.0, 10, micro, finished, nans) == pytest.approx(logged, abs=5e-5)


def test_the_nan_filter_is_inverted() -> None:
    assert nan_filter.logged_forever(2.0, 10, 8, 5) == pytest.approx(127.62, abs=0.01)
    found = nan_filter.explain(127.62, 2.0, 0.01, 10, 8, forever=True)
    assert found is not None and (found.finished, found.forever) == (5, True)
    found = nan_filter.explain(4.2322, 2.0, 0.001, 10, 8)
    assert found is not None and (found.finished, found.nans) == (5, 8)
    assert nan_filter.explain(30.0, 2.0, 0.01, 10, 8) is None
    assert nan_filter.explain(2.0, 0.0, 0.01, 10, 8) is None


@pytest.mark.parametrize("length", [50, 5000])
def test_a_remembered_median_is_nobodys_to_change(length: int) -> None:
    x = np.random.default_rng(1).normal(size=length)
    first = medians.rolling_median(x, 9)
    expected, centred = first.copy(), medians.centred_median(x, 9)
    first[:] = 0
    assert np.array_equal(medians.rolling_median(x, 9), expected)
    assert np.array_equal(medians.centred_median(x, 9), centred) and not np.array_equal(expected, centred)
    x[length // 2] = 1e6  # the same array with another number in it
    assert not np.array_equal(medians.centred_median(x, 1), expected)
    assert medians.centred_median(x, 1)[length // 2] == 1e6


def test_what_is_kept_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(once_per_series, "_kept", {})
    monkeypatch.setattr(once_per_series, "KEPT_VALUES", 250)
    for seed in range(20):
        medians.rolling_median(noisy(100, 0.1 + seed), 9)
        assert sum(size for size, _ in once_per_series._kept.values()) <= 250
    assert len(once_per_series._kept) == 2


def test_nobody_can_change_what_is_kept() -> None:
    x = noisy(100, 0.1)
    first, noise = medians.rolling_median(x, 9), excursions.local_noise(x)
    first[:] = 0
    assert (medians.rolling_median(x, 9) != 0).all()
    with pytest.raises(ValueError, match="read-only"):
        noise[:] = 0
    assert excursions.candidates(x) is excursions.candidates(x.copy())


@pytest.mark.parametrize("window", [1, 2, 8, 15, 80])
@pytest.mark.parametrize("odd", [None, np.inf, np.nan])
def test_running_medians_are_those_of_each_window(window: int, odd: float | None) -> None:
    for length in (0, 1, 2, 30, 300):
        x = noisy(length, 0.1)
        if odd is not None:
            x[::5] = odd
        for found, later in ((medians.rolling_median(x, window), 0), (medians.centred_median(x, window), (window - 1) // 2)):
            windows = [x[max(i + later - window + 1, 0) : i + later + 1] for i in range(length)]
            expected = [np.nanmedian(w) if np.isfinite(w).any() or np.isinf(w).any() else np.nan for w in windows]
            assert np.allclose(found, expected, rtol=1e-15, atol=0, equal_nan=True)


@pytest.mark.parametrize("odd", [None, np.inf, np.nan])
@pytest.mark.parametrize("length", [1, 2, 7, 500, 2001])
def test_the_quick_median_is_numpys(length: int, odd: float | None) -> None:
    x = noisy(length, 0.1)
    if odd is not None:
        x[:: max(length // 3, 1)] = odd
    assert np.array_equal(robust.median(x), np.median(x), equal_nan=True)
