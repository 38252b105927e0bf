"""What anybody sees in a short log: 10 to 60 values, one an epoch or one every few steps."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

import forensics
from forensics.case import Finding
from forensics.detectors import (
    attention_logits,
    config_change,
    divergence,
    eval_jump,
    initial_loss,
    loss_spike,
    lr_schedule,
    peak_rate,
    plateau,
    restart,
    resume_break,
    schedule_length,
    throughput,
    train_eval_gap,
)
from forensics.errors import CannotTell
from forensics.signs import loss_shape
from forensics.signs.health import changes_as_configured
from forensics.signs.sign import Symptoms
from forensics.spikes.excursions import Floats
from forensics.spikes.trend import falls_in_order
from parsers.tables import Run
from tests.forensics.curves import run_of

T = np.arange(40)
FALLS = 4.6 * np.exp(-T / 10) + 0.4
CYCLE = 1e-3 * (0.5 + 0.5 * np.cos(np.pi * (T % 10) / 10)) + 1e-6
LINE = np.maximum(1 - np.maximum(T - 4, 0) / 36, 0.01) * np.minimum((T + 1) / 5, 1) * 1e-3


def noise(n: int, sigma: float, seed: int) -> Floats:
    return np.asarray(np.exp(sigma * np.random.default_rng(seed).standard_normal(n)))


def found(detector: ModuleType, run: Run) -> list[Finding]:
    try:
        return list(detector.detect(run))
    except CannotTell:
        return []


def grave(detector: ModuleType, metrics: Mapping[str, Floats], **more: object) -> int:
    return sum(f.severity != "info" for f in found(detector, run_of(metrics, **more)))  # type: ignore[arg-type]


@pytest.mark.parametrize("n", [12, 30, 60])
@pytest.mark.parametrize("slow", [0.3, 0.45])
def test_a_slow_down_among_few_times(n: int, slow: float) -> None:
    hits = 0
    for seed in range(20):
        times = 200 * noise(n, 0.1, seed) / np.where(np.arange(n) >= n // 2, slow, 1.0)
        hits += grave(throughput, {"loss.train": np.ones(n), "time.step": times})
        assert not grave(throughput, {"loss.train": np.ones(n), "time.step": 0.05 * noise(n, 0.3, seed)})
    assert hits >= 18


def test_a_time_that_falls_is_that_of_a_step_and_one_that_grows_is_the_clock() -> None:
    each = 0.05 * noise(40, 0.1, 1) * np.where(T >= 20, 4, 1)
    assert grave(throughput, {"loss.train": FALLS, "time.total": each})
    assert grave(throughput, {"loss.train": FALLS, "time.total": np.cumsum(each)})
    assert not grave(throughput, {"loss.train": FALLS, "time.total": np.cumsum(0.05 * noise(40, 0.1, 2))})


def test_rounding_is_no_slow_down() -> None:
    assert not grave(throughput, {"loss.train": FALLS, "time.step": np.where(T >= 20, 0.002, 0.001)})
    assert grave(throughput, {"loss.train": FALLS, "time.step": np.where(T >= 20, 0.006, 0.001) + 0.001 * (T % 2)})


def test_evaluation_turns_up_after_a_steep_beginning() -> None:
    held = np.array([2.4, 1.78, 1.55, 1.28, 1.22, 1.16, 1.27, 1.32, 1.37, 1.40, 1.42, 1.43])
    train = 2.4 * np.exp(-np.arange(12) / 3)
    assert grave(train_eval_gap, {"loss.train": train, "loss.eval": held})
    flat = [np.r_[held[:5], 1.2 * noise(7, 0.04, seed)] for seed in range(40)]
    assert sum(grave(train_eval_gap, {"loss.train": train, "loss.eval": x}) for x in flat) <= 2


@pytest.mark.parametrize("warmup", [0, 3])
def test_two_even_restarts_are_a_schedule(warmup: int) -> None:
    rate = CYCLE[:30].copy()
    rate[:warmup] *= (np.arange(warmup) + 1) / (warmup + 1)
    assert not found(lr_schedule, run_of({"lr": rate}, interval=12))
    assert not grave(schedule_length, {"lr": rate}, interval=12)


def test_a_jump_out_of_the_path_is_none() -> None:
    rate = LINE.copy()
    rate[20:] *= 20
    assert grave(lr_schedule, {"lr": rate}, interval=10)


def test_a_rate_cut_off_that_begins_anew_is_a_reset() -> None:
    rate = np.r_[LINE[:20], LINE[:20]]
    facts = found(lr_schedule, run_of({"lr": rate}))[0].facts
    assert facts.at_resume and facts.step == 20


@pytest.mark.parametrize(("said", "reset"), [("loading state.pt", True), ("saved state.pt", False)])
def test_a_rate_without_warmup_is_reset_where_a_line_says_that_a_checkpoint_was_loaded(tmp_path: Path, said: str, reset: bool) -> None:
    """Without that line it may be the second sweep of a cycle, or somebody's hand."""
    rate = np.tile(2e-3 * (1 - np.arange(20) / 40), 2)
    (tmp_path / "log.csv").write_text(
        "step,loss,lr\n" + "".join(f"{5 * i},{x:.4f},{r:.4g}\n" for i, (x, r) in enumerate(zip(FALLS, rate, strict=True)))
    )
    (tmp_path / "out.txt").write_text(f"step 95/200 loss 0.82\n{said}\nstep 195/200 loss 0.48\n")
    assert found(lr_schedule, forensics.read(tmp_path))[0].facts.at_resume == reset


@pytest.mark.parametrize(
    ("rate", "config", "early"),
    [
        (np.zeros(40), {"lr": 2e-3}, True),  # through before anything was logged
        (2e-5 * 0.1**T, {"lr": 2e-3, "decay_steps": 4}, True),  # four steps of 160 are no decay that is meant
        (2e-5 * 0.1**T, {"lr": 2e-3, "decay_steps": 12}, False),
        (np.full(40, 2e-5), {"lr": 2e-3}, False),  # constant: of another group of parameters
        (np.zeros(40), {}, False),
    ],
)
def test_a_rate_far_below_the_configured_one_from_the_first_row_on(rate: Floats, config: dict[str, float], early: bool) -> None:
    steps = range(4, 164, 4)
    assert bool(grave(schedule_length, {"lr": rate}, steps=steps, config=config | {"max_steps": 160})) == early


def test_a_rate_that_stands_early() -> None:
    rate = np.maximum(1e-3 * (1 - T / 10), 2e-5)
    assert grave(schedule_length, {"lr": rate}, interval=4)
    assert not grave(schedule_length, {"lr": rate}, interval=4, config={"lr_decay_iters": 40, "lr": 1e-3, "x": 1})
    assert not grave(schedule_length, {"lr": np.where(T < 10, 1e-3, 1e-4)}, interval=4)  # one step of a step schedule
    cut = {"kind": "rate_cut", "text": "ReduceLROnPlateau reducing learning rate to 1e-4.", "level": "info", "source": "out", "at": 9}
    assert not grave(schedule_length, {"lr": rate}, interval=4, events=[cut])


def test_learning_that_hardly_happens() -> None:
    hits = 0
    for seed in range(20):
        hits += grave(plateau, {"loss.train": np.linspace(4.54, 4.42, 30) * noise(30, 0.01, seed)})
        assert not grave(plateau, {"loss.train": np.linspace(4.5, 3.4, 30) * noise(30, 0.08, seed)})
    assert hits >= 18
    low = {"loss.train": np.linspace(3.0, 3.4, 40), "acc.eval": np.where(T % 2, 0.33, 0.32)}
    assert grave(plateau, low)
    same = {"loss.train": np.r_[1.4, 1.1, 0.95 * noise(38, 0.05, 3)], "acc.eval": np.full(40, 0.628)}
    assert grave(plateau, same)
    assert not grave(plateau, {"loss.train": FALLS, "acc.eval": np.linspace(0.3, 0.9, 40)})


def test_a_level_reached_at_once() -> None:
    stands = np.r_[4.54, 3.4, 3.05 * noise(38, 0.03, 4)]
    held = np.r_[3.04 * noise(40, 0.002, 5)]
    assert grave(plateau, {"loss.train": stands, "loss.eval": held})
    assert not grave(plateau, {"loss.train": stands / 3, "loss.eval": held / 3})  # it may go on from a trained model
    thrown = np.concatenate([[1.79], np.full(6, 4.1), np.full(18, 1.785)]) * noise(25, 0.001, 3)
    assert grave(plateau, {"loss.train": thrown})  # blown up by the first updates, and no better than before them
    assert not grave(plateau, {"loss.train": np.where(np.arange(25) < 7, thrown, 1.2)})


def test_a_first_loss_far_above_guessing_in_a_sparse_log() -> None:
    x = np.r_[48.8, 11.4, 4.1, 1.5, 2.0, 1.6, 1.5, 1.2, 1.0, 0.9, 0.8, 0.7]
    assert grave(initial_loss, {"loss.train": x, "acc.eval": np.linspace(0.8, 0.95, 12)}, interval=10)
    assert not grave(initial_loss, {"loss.train": x}, interval=10)  # a sum or a regression may begin anywhere


def test_settings_alone_are_no_warning() -> None:
    slow = np.linspace(5.0, 4.0, 40)
    assert not grave(peak_rate, {"loss.train": slow, "lr": np.full(40, 1.0)}, config={"optimizer": "sgd", "lr": 1.0, "x": 1})
    assert not found(peak_rate, run_of({"loss.train": slow, "lr": np.full(40, 1.0)}))
    batch = {"loss.train": FALLS, "batch.size": np.where(T >= 20, 48.0, 12.0)}
    assert grave(config_change, batch)


@pytest.mark.parametrize(("step", "state"), [(200, "seen"), (300, "absent")])
def test_a_batch_size_that_changes_where_config_says(step: int, state: str) -> None:
    sizes, config = np.where(T >= 20, 48.0, 12.0), {"batch_schedule": [[0, 12], [step, 48]]}
    run = run_of({"loss.train": FALLS, "batch.size": sizes}, interval=10, config=config)
    assert changes_as_configured(Symptoms(run, tuple(found(config_change, run)))).state == state


def test_an_epoch_that_goes_back_is_a_restart() -> None:
    epoch = np.r_[0.05 * np.arange(1, 14), 0.05 * np.arange(11, 21)]
    assert grave(restart, {"loss.train": np.linspace(3, 2, 23), "epoch": epoch})
    assert not found(restart, run_of({"loss.train": np.linspace(3, 2, 23), "epoch": np.sort(epoch)}))


@pytest.mark.parametrize("of", [1, 100])
def test_hits_fall_by_points_however_they_are_written(of: int) -> None:
    hits = 0.8 + 0.001 * np.random.default_rng(0).standard_normal(40)
    assert grave(eval_jump, {"acc.eval": of * np.where(T >= 20, hits - 0.3, hits)})
    assert not grave(eval_jump, {"acc.eval": of * np.where(T >= 20, hits - 0.05, hits)})


def test_attention_logits_that_climb_at_once_were_not_large_from_the_start() -> None:
    """Logged every 20 steps: by the third row they are what they stay at. Or they are so from the first row on, in a model that knows nothing."""
    for first, kind in ((0.3, attention_logits.Facts), (900.0, attention_logits.Saturated)):
        logits = np.array([first, 350.0, 1200.0, *[1500.0] * 37])
        told = list(
            attention_logits.detect(run_of({"attn.max_logit": logits, "loss.train": 4.8 * np.exp(-np.arange(40) / 9) + 2.0, "config": {}}))
        )
        assert [type(f.facts) for f in told] == [kind], first


@pytest.mark.parametrize(
    ("logit", "entropy", "tells"),
    [(93.0, 0.1, True), (93.0, 0.2, False), (40.0, 0.1, False)],  # an attention that weighs several places; logits that saturate nothing
)
def test_logits_and_entropy_that_agree_tell_earlier_than_one_of_them(logit: float, entropy: float, tells: bool) -> None:
    goes = 1 - np.exp(-np.arange(40) / 6)
    for both in (True, False):
        values = {"attn.max_logit": 13 + (logit - 13) * goes, **({"attn.entropy": 0.44 + (entropy - 0.44) * goes} if both else {})}
        assert bool(found(attention_logits, run_of(values))) == (tells and both)


def test_entropies_that_are_not_finite_did_not_fall() -> None:
    assert not found(attention_logits, run_of({"attn.entropy": np.full(40, np.nan)}))


@pytest.mark.parametrize("n", [4, 5, 8, 12])
def test_few_values_in_order_are_a_clear_loss_and_others_are_not(n: int) -> None:
    falls = {"loss.train": 2.3 * np.exp(-np.arange(n) / 4) + 0.1}
    assert found(divergence, run_of(falls)) == [] and found(loss_spike, run_of(falls)) == []
    assert divergence.smallest_effect(run_of(falls)) and list(divergence.detect(run_of(falls))) == []
    if n < divergence.LEAST_VALUES:
        with pytest.raises(CannotTell):
            list(divergence.detect(run_of({"loss.train": np.array([2.3, 2.0, 2.4, 1.9, 2.2])})))


@pytest.mark.parametrize("n", [9, 12, 14])
def test_a_loss_of_few_values_that_turns(n: int) -> None:
    half = n // 2
    turned = sum(grave(divergence, {"loss.train": np.r_[falling(half), rising(n - half)] * noise(n, 0.02, seed)}) for seed in range(20))
    sound = sum(grave(divergence, {"loss.train": falling(n) * noise(n, 0.2, seed)}) for seed in range(100))
    assert turned >= 18 and sound == 0


def test_chance_leaves_few_values_in_order_once_in_twenty() -> None:
    rng = np.random.default_rng(0)
    for n in (4, 5, 9):
        assert np.mean([falls_in_order(np.exp(rng.standard_normal(n))) for _ in range(4000)]) < 1 / 20
    assert not falls_in_order(2.303 - 1e-4 * np.arange(7))


def test_four_values_have_to_fall_without_exception() -> None:
    assert falls_in_order(np.array([8.3, 1.3, 0.5, 0.4]))
    assert not falls_in_order(np.array([3.9, 3.3, 3.4, 2.6]))


def test_a_training_loss_of_few_values_leaves_it_to_the_evaluation() -> None:
    held = np.r_[falling(20), rising(15)]
    assert grave(divergence, {"loss.train": np.array([2.0, 1.0, 0.5]), "loss.eval": held})
    assert not grave(divergence, {"loss.train": np.array([2.0, 1.5, 1.0, 0.5]), "loss.eval": held})


def falling(n: int) -> Floats:
    return np.asarray(2.0 * np.exp(-np.arange(n) / 3) + 0.5)


def rising(n: int) -> Floats:
    return np.asarray(0.8 * np.exp(np.arange(n) / 3))


@pytest.mark.parametrize(
    ("levels", "jumps"),
    [((1 / 3, 2 / 3, 1.0, 0.5), 0), ((1 / 3, 1.0, 1.0, 0.5), 1), ((0.2, 0.4, 1.4, 0.5), 2)],
    ids=["even stairs", "one rise", "uneven rises"],
)
def test_a_warmup_in_stairs_is_no_jump(levels: tuple[float, ...], jumps: int) -> None:
    rate = 0.05 * np.repeat(levels, 14)
    assert sum(isinstance(f.facts, lr_schedule.Facts) for f in found(lr_schedule, run_of({"lr": rate}, interval=2))) == jumps


@pytest.mark.parametrize(
    ("levels", "at", "jumps"),
    [
        ((0.04, 1.0, 0.9, 0.6), 0, 0),
        ((0.04, 0.2, 0.7, 1.0), 0, 0),
        ((0.04, 1.0, 0.9, 0.6), 5, 1),
        ((0.2, 1.0, 4.0, 3.0), 0, 2),
        ((1.0, 0.3, 0.8, 0.2), 0, 1),
    ],
    ids=["one stair", "uneven stairs", "within an epoch", "beyond config", "after a fall"],
)
def test_a_warmup_from_epoch_to_epoch_is_no_jump(levels: tuple[float, ...], at: int, jumps: int) -> None:
    epoch = np.repeat(np.arange(4.0), 14)
    rate = np.roll(0.002 * np.repeat(levels, 14), at)
    rate[:at] = rate[at]
    told = found(lr_schedule, run_of({"lr": rate, "epoch": epoch}, interval=2, config={"lr": 0.002}))
    assert sum(isinstance(f.facts, lr_schedule.Facts) for f in told) == jumps


@pytest.mark.parametrize("name", ["pref.acc", "other/test F1"])
@pytest.mark.parametrize(("last", "severity"), [(0.9, "info"), (0.5, "warning")])
def test_preferences_that_are_learnt_need_no_fall_of_their_loss(last: float, severity: str, name: str) -> None:
    """The loss of 0.693 falls by hundredths while the share of pairs in the right order, or a score, rises."""
    n = 16
    ranked = np.linspace(0.5, last, n) + 0.01 * noise(n, 0.1, 1)
    (f,) = plateau.detect(run_of({"loss.train": np.linspace(0.693, 0.68, n), name: ranked}))
    assert f.severity == severity


@pytest.mark.parametrize(
    ("launch", "told"), [((2, 3), ["log.jsonl holds 3 trainings, each from its beginning: this is number 2"]), ((1, 1), [])]
)
def test_a_log_of_several_trainings_says_which_one_this_is(launch: tuple[int, int], told: list[str]) -> None:
    run = run_of({"loss.train": FALLS})
    run.launch, run.attempts = (
        launch,
        [{"steps": [0, 39], "files": {"log.jsonl"}, "begun": None, "started": None, "ended": None, "index": 0}],
    )
    assert [f.title for f in restart.detect(run)] == told


def test_epochs_that_leap_back_up_are_of_another_process() -> None:
    one = np.repeat(np.arange(1.0, 21), 5)
    again = np.r_[one, one[50:]]  # from epoch 20 back to 11
    assert [(f.facts.redone, f.severity) for f in restart.detect(run_of({"epoch": again}))] == [(50, "warning")]
    with pytest.raises(CannotTell, match="by turns: its epoch falls and leaps back up 80 times"):
        list(restart.detect(run_of({"epoch": np.ravel(np.column_stack([one + 30, one]))})))


def test_a_cycle_that_is_logged_by_epoch_climbs_in_several_jumps() -> None:
    """Each of which comes again, from the same rate to the same; a rate that is changed twice by hand does not."""
    triangle = np.tile([0.1, 0.07, 0.04, 0.01, 0.04, 0.07], 4)
    assert not grave(lr_schedule, {"lr": triangle}, interval=38)
    assert grave(lr_schedule, {"lr": np.repeat([0.01, 0.04, 0.01, 0.07], 6)}, interval=38)


def test_a_cycle_that_comes_again_once_is_one() -> None:
    """Twelve epochs of Keras' CyclicLR; a stretch at another rate that comes twice is none."""
    triangle = np.tile([0.0005, 0.0023, 0.0042, 0.006, 0.0042, 0.0023], 2)
    assert not grave(lr_schedule, {"lr": triangle}, interval=1)
    assert not grave(lr_schedule, {"lr": triangle[:9]}, interval=1)
    assert grave(lr_schedule, {"lr": np.r_[triangle[:8], 0.03, 0.02, 0.01]}, interval=1)
    twice = np.where((np.arange(60) % 30 > 20) & (np.arange(60) % 30 < 24), 0.1, 0.01)
    assert grave(lr_schedule, {"lr": twice}, interval=1)


def test_a_cycle_whose_corners_fall_between_the_logged_steps() -> None:
    """It climbs three times, no steeper and no higher than at first; what climbs higher does not."""
    triangle = np.interp(np.arange(18) * 41 + 13, np.arange(0, 900, 123), [0.001, 0.061] * 4)
    assert not grave(lr_schedule, {"lr": triangle}, interval=41)
    assert grave(lr_schedule, {"lr": np.where(np.arange(18) > 12, 2 * triangle, triangle)}, interval=41)


@pytest.mark.parametrize(
    ("score", "tag", "severity"),
    [(0.2, "oos_ic", "info"), (0.002, "oos_ic", "warning"), (0.71, "val_auc", "info"), (0.505, "val_auc", "warning")],
)
def test_a_loss_of_noise_hardly_falls_and_a_score_tells_what_was_learnt(score: float, tag: str, severity: str) -> None:
    n = 30
    held = score * (1 + 0.05 * noise(n, 0.1, 1))
    *_, f = plateau.detect(run_of({"loss.train": np.linspace(1.0, 0.97, n) + 0.002 * noise(n, 0.1, 2), f"other/{tag}": held}))
    assert f.severity == severity


@pytest.mark.parametrize(("first", "up"), [(129.0, True), (0.16, False), (0.2, False)])
def test_a_restart_in_a_log_by_epoch(first: float, up: bool) -> None:
    before, after = [118.0, 38.6, 22.1, 2.6, 0.61, 0.39, 0.26, 0.18], [first, first / 2, first / 3, 0.15]
    run = run_of({"loss.train": np.array([*before, *after])}, attempts=[0] * 8 + [1] * 4)
    assert [f.facts.up for f in resume_break.detect(run)] == ([True] if up else [])


@pytest.mark.parametrize(("after", "up"), [(0.43, False), (0.75, True)])
def test_noise_next_to_a_restart_is_what_a_break_is_held_against(after: float, up: bool) -> None:
    """As a share, a loss that comes to rest scatters more than it did on its way down."""
    down, rest = 2 * np.exp(-np.arange(140) / 80), 0.37 * np.exp(0.13 * np.random.default_rng(3).standard_normal(100))
    run = run_of({"loss.train": np.r_[down, rest, after, after, after, rest[:20]]}, attempts=[0] * 240 + [1] * 23)
    assert [f.facts.up for f in resume_break.detect(run)] == ([True] if up else [])


@pytest.mark.parametrize(("to", "up"), [(0.30, False), (1.5, True)])
def test_a_loss_that_rises_before_a_restart_goes_on_rising(to: float, up: bool) -> None:
    """A policy's: it is below zero at times, and grows with the returns."""
    before, after = [0.01, -0.02, -0.04, 0.01, 0.02, 0.06, 0.09, 0.11, 0.16, 0.22, 0.25, 0.29], np.linspace(to, to - 0.05, 11)
    found = list(resume_break.detect(run_of({"loss.train": np.array([*before, *after])}, attempts=[0] * 12 + [1] * 11)))
    assert [f.facts.up for f in found] == ([True] if up else [])
    assert all(f.facts.height < 100 for f in found)  # times what it was, not e to the power of that


@pytest.mark.parametrize(("first", "up"), [(4.4, True), (2.9, False)])
def test_a_restart_in_a_log_whose_first_fall_is_most_of_its_scatter(first: float, up: bool) -> None:
    before, after = [5.73, 3.81, 3.16, 2.91, 2.71, 2.57, 2.79, 2.56, 2.61, 2.5, 2.59], [first, 0.5 * first + 1.1, 2.9, 2.7, 2.6, 2.6, 2.5]
    run = run_of({"loss.train": np.array([*before, *after])}, attempts=[0] * 11 + [1] * 7)
    assert [f.facts.up for f in resume_break.detect(run)] == ([True] if up else [])


@pytest.mark.parametrize(
    ("loss", "grave_ones"),
    [
        (np.r_[7.1, 69.9 + 20 * np.abs(np.sin(T[1:]))], 1),
        (np.r_[1.6, 11.8, 10.9, 10.5, 10.37, 10.37, 10.37, 10.37, 10.37], 1),
        (np.r_[0.9, FALLS[1:]], 0),  # a first batch that happened to be easy, and the loss comes below it
        (np.r_[3.0, 4.4 + 0.1 * np.sin(T[1:])], 0),  # less than twice as high
    ],
)
def test_a_loss_that_the_first_updates_drove_up_for_good(loss: Floats, grave_ones: int) -> None:
    told = [f for f in found(divergence, run_of({"loss.train": loss})) if "at once" in f.title]
    assert len(told) == grave_ones
    assert all(f.severity == "critical" and f.facts.first == loss[0] for f in told)


@pytest.mark.parametrize(("loss", "n"), [(np.full(23, -0.053), 1), (-0.1 - T / 40, 0)])
def test_a_negative_loss_that_never_moves(loss: Floats, n: int) -> None:
    assert grave(plateau, {"loss.train": loss}) == n


@pytest.mark.parametrize(("rate", "severity"), [(3.0, "warning"), (1e-3, "info")])
def test_a_rate_that_explains_a_first_loss_of_any_height(rate: float, severity: str) -> None:
    run = run_of({"loss.train": np.r_[2.7e5, 3.2e4, 900.0, FALLS]}, config={"optimizer": "adam", "learning_rate": rate})
    assert [f.severity for f in found(initial_loss, run)] == [severity]


def test_a_first_loss_that_no_update_has_touched_is_the_initial_one() -> None:
    climbs = np.r_[2.4, 7e8, 4e15, 6e8, FALLS]
    assert not found(initial_loss, run_of({"loss.train": climbs, "acc.train": np.full(len(climbs), 0.1)}))
    assert found(initial_loss, run_of({"loss.train": climbs[1:], "acc.train": np.full(len(climbs) - 1, 0.1)}))


@pytest.mark.parametrize(("values", "planned", "says"), [(13, 100, False), (13, 20, True), (40, 1000, True)])
def test_so_few_values_of_so_little_of_the_plan_tell_no_plateau(values: int, planned: int, says: bool) -> None:
    run = run_of({"loss.train": np.linspace(5.06, 4.95, values) * noise(values, 0.003, 1)}, config={"max_steps": planned})
    try:
        assert bool(list(plateau.detect(run))) == says
    except CannotTell as e:
        assert not says and f"only {values} values" in str(e)


@pytest.mark.parametrize(("epochs", "told"), [(8, False), (1, True)])
def test_a_level_that_rises_in_each_epoch_wanders_with_the_order_of_the_data(epochs: int, told: bool) -> None:
    """Batches in one order: the hard ones are the last of each epoch."""
    n = 100 * epochs
    y = 0.05 + 0.003 * noise(n, 1.0, 3) + np.where(np.arange(n) % 100 >= 75, 0.3, 0.0)
    before = 0.05 + np.exp(-np.arange(60) / 8)
    assert bool(list(divergence.detect(run_of({"loss.train": np.r_[before, y]})))) is told


def test_the_zeros_before_a_buffer_is_full_are_no_level_of_the_loss() -> None:
    early = np.where(T < 3, 0.0, 0.3 + 0.01 * (T % 3))
    assert loss_shape.loss_ends_above_start(Symptoms(run_of({"loss.train": early}), ())).state != "seen"
    assert loss_shape.loss_ends_above_start(Symptoms(run_of({"loss.train": np.where(T < 3, 0.01, early)}), ())).state == "seen"
