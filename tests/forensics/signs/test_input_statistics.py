"""What was logged of the inputs, beside the loss: each sign in a faulty run and in its healthy twin."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import pytest

from forensics.detectors import level_shift, loss_spike, nonfinite, train_eval_gap
from forensics.errors import CannotTell
from forensics.run.series import Floats
from forensics.signs import input_statistics as I
from forensics.signs.sign import ABSENT, CANNOT_TELL, SEEN, Symptoms
from parsers import read
from parsers.tables import Run
from tests.forensics.curves import run_of

N = 400
T = np.arange(N)
RNG = np.random.default_rng(5)
LOSS = 1 + 2 * np.exp(-T / 60) + 0.02 * RNG.standard_normal(N)
ONCE, STRETCH = LOSS + np.where(T == 200, 5.0, 0), LOSS + np.where((T >= 200) & (T < 240), 2.0, 0)
STEPPED = LOSS + np.where(T >= 200, 1.0, 0)
LARGEST, MEAN = 3.5 + 0.2 * RNG.standard_normal(N), 0.1 * RNG.standard_normal(N)


def at(x: Floats, *steps: int) -> Floats:
    return np.where(np.isin(T, steps), 3000.0, x)


def symptoms(run: Run) -> Symptoms:
    found = []
    for detector in (loss_spike, level_shift, train_eval_gap):
        try:
            found += detector.detect(run)
        except CannotTell:
            continue
    return Symptoms(run, tuple(found))


@pytest.mark.parametrize(
    ("loss", "inputs", "once", "stretch"),
    [
        (ONCE, at(LARGEST, 200), SEEN, ABSENT),
        (ONCE, LARGEST, ABSENT, ABSENT),
        (ONCE, at(LARGEST, 300), ABSENT, ABSENT),  # not where the loss spikes
        (ONCE, at(LARGEST, 200, 100), ABSENT, ABSENT),  # elsewhere, too, and the loss bore it
        (STRETCH, at(LARGEST, *range(200, 240)), ABSENT, SEEN),
        (STRETCH, np.where((T >= 200) & (T < 240), 14.0, LARGEST), ABSENT, SEEN),  # four times their size, and in no other row
        (ONCE, np.where(T == 200, 14.0, LARGEST), ABSENT, ABSENT),  # a tail has such a value now and then
        (STRETCH, at(LARGEST, 200), SEEN, ABSENT),  # what follows is the recovery
        (LOSS, at(LARGEST, 200), CANNOT_TELL, CANNOT_TELL),  # no spike
    ],
)
def test_absurd_inputs_where_the_loss_spikes(loss: Floats, inputs: Floats, once: str, stretch: str) -> None:
    s = symptoms(run_of({"loss.train": loss, "other/feat_absmax": inputs}))
    assert (I.inputs_absurd_at_spike(s).state, I.inputs_absurd_in_stretch(s).state) == (once, stretch)


@pytest.mark.parametrize(
    ("loss", "inputs", "state"),
    [
        (STEPPED, MEAN + (T >= 200), SEEN),
        (STEPPED, MEAN, ABSENT),
        (STEPPED, MEAN + (T >= 150), ABSENT),  # fifty steps before the loss
        (STEPPED, MEAN + T / N, ABSENT),  # a drift through the whole run
        (STEPPED, MEAN + ((T >= 200) & (T < 260)), ABSENT),  # not for good
        (LOSS, MEAN + (T >= 200), CANNOT_TELL),
    ],
)
def test_inputs_that_step_where_the_loss_does(loss: Floats, inputs: Floats, state: str) -> None:
    assert I.inputs_step_with_loss(symptoms(run_of({"loss.train": loss, "other/Data/batch_mean": inputs}))).state == state
    assert I.inputs_step_with_loss(symptoms(run_of({"loss.train": loss, "other/data/outside_temp_mean": inputs}))).state == state
    assert I.inputs_step_with_loss(symptoms(run_of({"loss.train": loss, "other/data/target_mean": inputs}))).state == CANNOT_TELL


@pytest.mark.parametrize(
    ("tag", "value", "state"),
    [
        ("x_mean", 378 + MEAN, SEEN),
        ("pixel/std", 96 + MEAN, SEEN),
        ("x_mean", -40 + MEAN, SEEN),
        ("x_mean", MEAN, ABSENT),
        ("x_std", np.r_[np.full(20, 50.0), np.ones(N - 20)], ABSENT),  # scaled from then on
        ("x_max", 255 + MEAN, CANNOT_TELL),  # of images that are scaled a largest value says little
        ("data/amp_max", 4e5 + MEAN, SEEN),
        ("data/amp_max", 4e5 + np.round(MEAN * 100), CANNOT_TELL),  # ids of tokens are whole numbers
        ("batch_mean", 250 + MEAN, CANNOT_TELL),  # milliseconds of a batch, or its inputs
    ],
)
def test_inputs_as_they_were_measured(tag: str, value: Floats, state: str) -> None:
    assert I.inputs_far_from_unit(symptoms(run_of({"loss.train": LOSS, f"other/{tag}": value}))).state == state


@pytest.mark.parametrize(
    "tag",
    [
        "grad_x_mean",
        "batch_loss_max",
        "batch_size_max",
        "reward/batch_mean",
        "x_out_std",
        "act/input_std",
        "val/x_mean",
        "image_logit_max",
        "data",
    ],
)
def test_what_is_no_statistic_of_the_inputs(tag: str) -> None:
    s = symptoms(run_of({"loss.train": ONCE, f"other/{tag}": at(378 + LARGEST, 200)}))
    assert {
        f(s).state for f in (I.inputs_absurd_at_spike, I.inputs_absurd_in_stretch, I.inputs_step_with_loss, I.inputs_far_from_unit)
    } == {CANNOT_TELL}


def test_a_long_tag_takes_no_time() -> None:
    began = time.monotonic()
    I.inputs_far_from_unit(symptoms(run_of({"loss.train": LOSS, "other/" + "max_abs_x_mean_" * 40 + "!": MEAN})))
    assert time.monotonic() - began < 60


@pytest.mark.parametrize(
    ("tag", "labels", "state"),
    [
        ("pos_rate", 0.4 + 0.02 * RNG.standard_normal(N) + 0.5 * (T >= 200), SEEN),
        ("label_mean", 0.4 + 0.02 * RNG.standard_normal(N), ABSENT),
        ("pos_rate", 0.4 + 0.02 * RNG.standard_normal(N) + 0.5 * (T >= 90), ABSENT),  # long before the evaluation turns
        ("true_positive_rate", 0.4 + 0.5 * (T >= 200), CANNOT_TELL),  # what the model does
    ],
)
def test_labels_that_step_where_the_evaluation_turns(tag: str, labels: Floats, state: str) -> None:
    held = np.where(T % 20 == 19, np.where(T < 200, LOSS + 0.1, LOSS + 0.1 + (T - 180) / 200), np.nan)
    run = run_of({"loss.train": LOSS, "loss.eval": held, f"other/{tag}": labels})
    assert I.inputs_step_with_loss(symptoms(run)).state == state


@pytest.mark.parametrize(
    ("line", "state"),
    [
        ("X_train: mean=152.3 std=812.4 min=-30.5", SEEN),
        ("input features mean 152.3, std 812.4", SEEN),
        ("x mean/std = 152.3 / 81.2", SEEN),
        ("train inputs: mean=0.02 std=0.99", ABSENT),
        ("inputs mean 152.3, std 4.1", ABSENT),  # far off, and no wider than a few
        ("feature stats on 256 utts: mean 427.996 std 71261.727 max 39463356.00", SEEN),
        ("2026-11-28 14:40:14,549 INFO kws: feature stats on 256 utts: mean 427.9 std 71261.7 max 39463356.00", SEEN),
        ("11-29 11:27:41 fbank: mean 15749.63 std 104916.28 min 0.00 max 1202604.38", SEEN),
        ("feature stats, normalized: mean 427.9 std 71.7", CANNOT_TELL),
        ("reward mean 152.3 std 812.4", CANNOT_TELL),
        ("mean=152.3 std=812.4", CANNOT_TELL),  # of whatever
        ("X_train: (1437, 64) mean=152.3", CANNOT_TELL),
    ],
)
def test_what_is_printed_once_of_the_inputs(tmp_path: Path, line: str, state: str) -> None:
    epochs = "".join(f"Epoch {e}: train loss {2.3 + e % 3 / 100:.4f}\n" for e in range(1, 13))
    (tmp_path / "train.log").write_text(f"loading data ...\n{line}\nmodel: MLP\n{epochs}")
    told = I.inputs_far_from_unit(Symptoms(read(tmp_path), ()))
    assert told.state == state, told.text
    assert told.where == ("train.log line 2" if state != CANNOT_TELL else "")


@pytest.mark.parametrize(("stds", "state"), [((384.8, 18.6, 6.9, 259.8), SEEN), ((384.8, 1.2, 6.9, 0.7), ABSENT), ((384.8, 0.99), ABSENT)])
def test_fields_that_are_printed_one_below_the_other(tmp_path: Path, stds: tuple[float, ...], state: str) -> None:
    """Most of several fields are wide; of two lines the second may be what the first became."""
    lines = [
        f"INFO clickrec: feature {name}  mean={2 * std:.1f} std={std}"
        for name, std in zip(("price", "age", "hour", "days"), stds, strict=False)
    ]
    lines += [f"step {i} loss {2 - i / 99:.4f}" for i in range(1, 40)]
    (tmp_path / "train.log").write_text("\n".join(lines) + "\n")
    found = I.inputs_far_from_unit(Symptoms(read(tmp_path), ()))
    assert found.state == state, found.text


def test_mean_and_spread_of_a_batch_together_are_of_the_inputs() -> None:
    both = {"other/batch_mean": 19000 + 500 * MEAN, "other/batch_std": 9000 + 500 * MEAN}
    assert I.inputs_far_from_unit(symptoms(run_of({"loss.train": LOSS} | both))).state == SEEN
    assert I.inputs_far_from_unit(symptoms(run_of({"loss.train": LOSS} | both | {"other/batch_std": 1 + MEAN / 100}))).state == CANNOT_TELL


@pytest.mark.parametrize(("said", "state"), [("[0.00, 255.00]", SEEN), ("[-2.33, 2.29]", ABSENT)])
def test_the_range_of_a_batch_that_a_log_prints(tmp_path: Path, said: str, state: str) -> None:
    lines = [f"train 1024 images, val 512 images, 8 classes; first batch range {said}"]
    lines += [f"step {i} loss {2 - i / 99:.4f}" for i in range(1, 40)]
    (tmp_path / "train.log").write_text("\n".join(lines) + "\n")
    found = I.inputs_far_from_unit(Symptoms(read(tmp_path), ()))
    assert found.state == state, found.text


@pytest.mark.parametrize(
    ("tag", "value", "state"),
    [
        ("buffer/obs_absmax", np.where(T < 300, 8.0, 30000.0), SEEN),
        ("buffer/obs_absmax", np.where(T == 300, 30000.0, LARGEST), SEEN),
        ("buffer/obs_absmax", np.where(T < 300, 8.0, 80.0), ABSENT),
        ("buffer/obs_absmax", np.where(T < 2, 8.0, 30000.0), ABSENT),  # a beginning
        ("buffer/size", np.where(T < 300, 8.0, 30000.0), CANNOT_TELL),
    ],
)
def test_inputs_that_leap(tag: str, value: Floats, state: str) -> None:
    assert I.inputs_leap(symptoms(run_of({"loss.train": LOSS, f"other/{tag}": value}))).state == state


@pytest.mark.parametrize(
    ("tag", "value", "state"),
    [
        ("tgt_max", np.where(T == 300, np.inf, LARGEST), SEEN),
        ("input/max", np.where(T >= 300, np.nan, LARGEST), SEEN),
        ("tgt_max", LARGEST, ABSENT),
        ("tgt_max", np.where(np.isin(T, (100, 300)), np.inf, LARGEST), ABSENT),  # it was so before, and did no harm
        ("out_max", np.where(T == 300, np.inf, LARGEST), CANNOT_TELL),
    ],
)
def test_what_came_in_with_the_data(tag: str, value: Floats, state: str) -> None:
    run = run_of({"loss.train": np.where(T >= 300, np.nan, LOSS), f"other/{tag}": value})
    found = I.data_not_finite_first(Symptoms(run, tuple(nonfinite.detect(run))))
    assert found.state == state, found.text
