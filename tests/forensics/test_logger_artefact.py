"""What the logging made: filtered NaN, dropped fields, poisoned averages, other units, norms after clipping."""

from __future__ import annotations

import math

import numpy as np
import pytest

from forensics.case import Finding
from forensics.detectors import logger_artefact, loss_spike
from forensics.errors import CannotTell
from forensics.run import nan_filter
from forensics.run.series import Floats, series
from forensics.signs import logged_wrongly
from forensics.signs.sign import Symptoms
from parsers.tables import Run
from tests.forensics.curves import noisy, run_of

TEN = {"gradient_accumulation_steps": 8, "logging_steps": 10}


def found(run: Run) -> dict[str, Finding]:
    return {f.facts.kind: f for f in logger_artefact.detect(run)}


def filtered(last_step: bool = True, **config: object) -> Run:
    x, g = noisy(100, 0.002), np.full(100, 1.0)
    x[60] = nan_filter.logged(float(np.median(x[45:60])), 10, 8, 9 if last_step else 5, 8)
    g[60] = np.nan
    settings = TEN | config
    return run_of({"loss.train": x, "grad.norm": g}, interval=10, config=settings, framework="hf-trainer")


def test_the_filter_is_inverted() -> None:
    f = found(filtered())["nan_filter"]
    assert (f.facts.step, f.facts.nans, f.facts.nan_step) == (600, 8, 600)
    assert f.facts.expected == pytest.approx(f.facts.value, rel=0.01)


def test_such_a_row_is_no_spike() -> None:
    (f,) = loss_spike.detect(filtered())
    assert (f.facts.class_, f.facts.why, f.severity) == ("not_a_spike", "logger", "info")


def test_a_real_spike_with_a_finite_norm_is_no_artefact() -> None:
    x = noisy(100, 0.002)
    x[60] *= 1.9
    run = run_of({"loss.train": x, "grad.norm": np.ones(100)}, interval=10, config=TEN, framework="hf-trainer")
    assert found(run) == {}
    (f,) = loss_spike.detect(run)
    assert f.facts.class_ == "fast"


def test_the_filter_turned_off_explains_nothing() -> None:
    assert "nan_filter" not in found(filtered(logging_nan_inf_filter=False))


def test_nan_for_good_is_a_jump_and_then_zeros() -> None:
    x = noisy(100, 0.002)
    x[60] = nan_filter.logged_forever(float(np.median(x[45:60])), 10, 8, 5)
    x[61:] = 0.0
    f = found(run_of({"loss.train": x}, interval=10, config=TEN, framework="hf-trainer"))["nan_filter"]
    assert f.facts.forever and f.facts.nan_step == 596


def test_lines_without_a_loss() -> None:
    lines = [
        {"step": s, "kind": "missing_field", "level": "warning", "text": "no lm loss", "source": "log.txt", "at": s}
        for s in (120, 121, 122)
    ]
    f = found(run_of({"loss.train": noisy(200, 0.01)}, events=lines))["dropped_field"]
    assert (f.first_step, f.last_step, f.facts.count) == (120, 122, 3)


def test_one_nan_in_a_running_average() -> None:
    x = noisy(200, 0.01)
    x[120:] = np.nan
    f = found(run_of({"loss.train": x, "grad.norm": np.ones(200)}))["nan_for_ever"]
    assert (f.facts.step, f.facts.count, f.facts.finite) == (120, 80, ["grad.norm"])
    assert found(run_of({"loss.train": x, "grad.norm": np.where(np.isnan(x), np.nan, 1.0)})) == {}


@pytest.mark.parametrize(("factor", "kind"), [(8.0, "times_accumulation"), (1 / math.log(2), "base_2"), (1.0, None), (1.2, None)])
def test_the_unit_of_the_first_loss(factor: float, kind: str | None) -> None:
    x = factor * math.log(50_000) * np.linspace(1, 0.4, 100)
    got = found(run_of({"loss.train": x}, config={"vocab_size": 50_000, "gradient_accumulation_steps": 8}))
    assert list(got) == ([kind] if kind else [])


def test_a_norm_that_was_clipped_before_it_was_logged() -> None:
    g = np.minimum(np.exp(np.random.default_rng(0).standard_normal(200)), 1.0)
    run = run_of({"loss.train": noisy(200, 0.01), "grad.norm": g}, config={"max_grad_norm": 1.0})
    assert found(run)["clipped_norm"].facts.share > 0.3
    run = run_of({"loss.train": noisy(200, 0.01), "grad.norm": 2 * g}, config={"max_grad_norm": 1.0})
    assert found(run) == {}


DIPS = np.arange(13, 160, 20)


def dipping(factor: float | np.ndarray, norm: float | None = 1.0, at: np.ndarray = DIPS, **other: np.ndarray) -> Run:
    """A loss that dips at some rows, with its gradient norm, which moves by `norm` there."""
    x, g = noisy(160, 0.03), noisy(160, 0.1, seed=1)
    x[at] *= factor
    g[at] *= norm or 1.0
    return run_of({"loss.train": x, **({} if norm is None else {"grad.norm": g}), **other}, interval=10)


@pytest.mark.parametrize(("factor", "norm"), [(0.0, None), (0.0, 1.0), (1 / 3, 1.0)])
def test_dips_at_even_distances_are_a_meter(factor: float, norm: float | None) -> None:
    f = found(dipping(factor, norm))["meter"]
    assert (f.facts.step, f.facts.count, f.severity) == (130, 8, "warning")
    assert "every 200 steps" in f.title


@pytest.mark.parametrize(("every", "grave"), [(1, False), (2, True)])
def test_what_a_meter_left_out_it_prints_with_the_next_value(every: int, grave: bool) -> None:
    """Where only some of the values behind dips are high, these are spikes of the loss."""
    run = dipping(0.0)
    x = series(run, "loss.train")
    assert x is not None
    high = x.value.copy()
    high[DIPS[::every] + 1] *= 2.6
    spikes = loss_spike.detect(run_of({"loss.train": high, "grad.norm": np.ones(160)}, interval=10))
    assert any(f.severity != "info" for f in spikes) == grave


@pytest.mark.parametrize(
    "run",
    [
        dipping(1 / 3, None),  # nothing tells an easy batch of each epoch from a meter
        dipping(1 / 3, 0.55),  # the easy batch moves the norm
        dipping(0.0, 0.0001),  # a batch without targets has no gradient either
        dipping(1 / 3, at=np.array([13, 40, 47, 90, 131])),  # at no even distances
        dipping(0.0, at=DIPS[:3]),  # too few to have one distance
        dipping(np.linspace(0.2, 0.7, len(DIPS))),  # by no one factor
        run_of({"loss.train": np.ones(160), "grad.norm": np.ones(160)}, interval=10),  # none at all
        dipping(0.8),  # within what a loss scatters
        dipping(0.0, **{"rl.reward": np.ones(160)}),  # a policy's first update
    ],
    ids=["norm not logged", "easy batch", "no targets", "uneven", "three", "factors", "constant", "scatter", "policy"],
)
def test_other_dips_are_no_meter(run: Run) -> None:
    assert "meter" not in found(run)


def test_zeros_of_a_loss_near_the_last_digit_are_no_meter() -> None:
    x = np.round(noisy(160, 0.03) / 500, 3)
    x[DIPS] = 0
    assert "meter" not in found(run_of({"loss.train": x}, interval=10))


def test_zeros_of_a_loss_that_goes_below_zero() -> None:
    x = noisy(160, 0.03) - 12
    x[DIPS] = 0
    assert found(run_of({"loss.train": x}, interval=10))["meter"].facts.count == 8
    x[DIPS] = -50
    assert "meter" not in found(run_of({"loss.train": x}, interval=10))


@pytest.mark.parametrize(("whole", "made"), [(1.0, True), (5.0, False), (None, False)])
def test_a_term_that_is_too_high_while_the_loss_is_as_before(whole: float | None, made: bool) -> None:
    term, loss = noisy(160, 0.03), noisy(160, 0.1, seed=1)
    term[DIPS] *= 5
    loss[DIPS] *= whole or 1.0
    run = run_of({"loss.aux": term, ("loss.train" if whole else "other/x"): loss}, interval=10)
    assert ("meter" in found(run)) == made


def test_a_term_of_every_so_many_steps_is_no_meter() -> None:
    term = noisy(160, 0.03)
    term[DIPS] = 0
    assert "meter" not in found(run_of({"loss.aux": term, "loss.train": noisy(160, 0.1, seed=1)}, interval=10))


def emptied(*tags: str, **other: np.ndarray) -> Run:
    x = noisy(160, 0.03)
    x[DIPS] = 0
    return run_of({**{tag: x * (1 + i) for i, tag in enumerate(tags)}, **other}, interval=10)


def test_without_a_loss_two_metrics_that_are_zero_together_are_none_of_the_training() -> None:
    assert found(emptied("other/D(x)", "other/D(G(z))"))["zeros"].facts.count == 8
    assert not found(emptied("other/D(x)", **{"other/hits": noisy(160, 0.03)}))  # one alone may be so by what it measures
    with pytest.raises(CannotTell, match="not logged"):
        found(emptied("rl.len"))


ZERO = np.where(np.isin(np.arange(60), (20, 43)), 0.0, 1.0)


@pytest.mark.parametrize(
    ("one", "other", "told"),
    [
        (noisy(60, 0.03) * ZERO, 5 * noisy(60, 0.03) * ZERO, True),
        (noisy(60, 0.03) * ZERO, 5 * noisy(60, 0.03), False),  # one alone may be so by what it measures
        (noisy(60, 0.03) * ZERO, np.where(np.arange(60) > 50, 0.0, 5 * noisy(60, 0.03) * ZERO), False),  # zero elsewhere, too
        (np.r_[noisy(20, 0.03), 0, 0.01 * noisy(22, 0.03), 0, noisy(16, 0.03)], 5 * noisy(60, 0.03) * ZERO, False),  # on its way to zero
        (noisy(60, 0.03) * (np.arange(60) != 20), 5 * noisy(60, 0.03) * (np.arange(60) != 20), False),  # once
    ],
)
def test_two_metrics_that_are_zero_in_the_same_rows_alone(one: Floats, other: Floats, told: bool) -> None:
    run = run_of({"loss.train": noisy(60, 0.01), "other/distance": one, "other/q": other})
    f = found(run).get("zeros")
    assert (f is not None) == told
    assert f is None or (f.severity, f.facts.step, f.facts.count) == ("warning", 20, 2)
    assert logged_wrongly.zeros_at_once(Symptoms(run, (f,) if f else ())).state == ("seen" if told else "absent")


@pytest.mark.parametrize(("norm", "made"), [(1.0, True), (4.0, False), (None, False)])
def test_the_norm_of_the_one_part_that_was_logged_tells_that_a_batch_was_no_harder(norm: float | None, made: bool) -> None:
    x, g = noisy(160, 0.03), noisy(160, 0.1, seed=1)
    x[DIPS] *= 5
    g[DIPS] *= norm or 1.0
    run = run_of({"loss.train": x, **({} if norm is None else {"grad.norm_layer": g})}, interval=10)
    assert ("meter" in found(run)) == made


@pytest.mark.parametrize(("factor", "held", "made"), [(900.0, 1.0, True), (900.0, 400.0, False), (900.0, None, False), (3.0, 1.0, False)])
def test_sums_at_even_distances_are_a_meter_where_the_evaluation_stays(factor: float, held: float | None, made: bool) -> None:
    x, y = noisy(160, 0.03), noisy(160, 0.05, seed=1)
    x[DIPS] *= factor
    y[DIPS] *= held or 1.0
    run = run_of({"loss.train": x, **({} if held is None else {"loss.eval": y})}, interval=10)
    assert ("meter" in found(run)) == made
    assert not made or all(f.facts.why == "logger" for f in loss_spike.detect(run))


def test_a_file_of_events_that_was_removed_below_its_writer() -> None:
    gone = {
        "kind": "curves_lost",
        "level": "warning",
        "text": "The events file a/events.out.tfevents.1 has disappeared.",
        "source": "log.txt",
    }
    lines = [gone | {"step": s, "at": s} for s in (70, 71)]
    f = found(run_of({"loss.train": noisy(200, 0.01)}, events=lines))["file_gone"]
    assert (f.severity, f.first_step, f.facts.step) == ("info", 70, 70)
    assert found(run_of({"loss.train": noisy(200, 0.01)}, events=[lines[0] | {"kind": "warning"}])) == {}
