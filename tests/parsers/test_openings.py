"""A program that begins to write its log again, lines as they stood before a notebook or Python 2 printed them, and what stands beside: pairs."""

from __future__ import annotations

import json
import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest

import parsers
from forensics.run import how_it_ended, plan
from forensics.run.robust import walked_digit
from parsers.console_format import line_texts
from parsers.tables import Run

TOP = "Log file: /data/run{n}/train.log\nUsing device: cuda:{n}\nModel: U-Net\nParameters: 4,748,8{n}0\n"
LOADS = "loading annotations into memory...\nDone (t=0.02s)\ncreating index...\nindex created!\n"


def one(tmp_path: Path, text: str, name: str = "train.log") -> list[Run]:
    (tmp_path / name).write_text(text)
    return parsers.read_all(tmp_path)


def read_once(text: str) -> Run:
    with tempfile.TemporaryDirectory() as folder:
        (run,) = one(Path(folder), text)
    return run


def spans(runs: list[Run]) -> list[list[list[int]]]:
    return [[a["steps"] for a in r.attempts] for r in runs]


def batches(first: int, last: int, of: int, epoch: int = 1) -> str:
    return f"Epoch {epoch}/30\n" + "".join(f"Batch {i:3}/{of} | Loss: {1 - i / 1000:.4f}\n" for i in range(first, last, 10))


def test_a_program_that_says_again_what_it_says_first_is_another_launch(tmp_path: Path) -> None:
    """Its epochs have their own length: 71 batches behind 72 are no evaluation."""
    runs = one(tmp_path, TOP.format(n=1) + batches(0, 72, 72) + TOP.format(n=2) + batches(0, 71, 71) + batches(0, 71, 71, 2))
    assert spans(runs) == [[[0, 70]], [[0, 141]]]


def test_a_box_that_comes_again_begins_no_launch(tmp_path: Path) -> None:
    """As Stable-Baselines3 prints one at each report, below a line that it prints once."""
    rule = "-" * 34 + "\n"
    cells = "| rollout/            |          |\n|    ep_len_mean      | {a:<8} |\n|    ep_rew_mean      | {b:<8} |\n"
    count = "| time/               |          |\n|    total_timesteps  | {n:<8} |\n"
    boxes = "".join(rule + cells.format(a=40 - n, b=n / 2) + count.format(n=1000 * n) + rule for n in range(1, 9))
    (run,) = one(tmp_path, "Logging to log\n" + boxes, "stdout.log")
    assert spans([run]) == [[[1000, 8000]]] and "start" not in run.tables["events"]["kind"].to_pylist()


def test_what_a_loader_says_of_each_file_begins_no_launch(tmp_path: Path) -> None:
    text = LOADS + LOADS + batches(0, 72, 72) + LOADS + batches(0, 72, 72, 2) + LOADS + batches(0, 72, 72, 3)
    assert spans(one(tmp_path, text)) == [[[0, 214]]]


def test_lines_of_the_opening_that_come_again_far_apart_begin_no_launch(tmp_path: Path) -> None:
    a, b, c = "Loading the data\n", "Building the model\n", "Writing a checkpoint\n"
    text = a + b + c + "".join(x + batches(0, 400, 400, e) for e, x in enumerate((a, b, c, a, b, c), 1))
    assert spans(one(tmp_path, text)) == [[[0, 2390]]]


def test_two_lines_that_come_again_begin_no_launch(tmp_path: Path) -> None:
    text = "Loading data\nModel: U-Net\n" + batches(0, 72, 72) + "Loading data\nModel: U-Net\n" + batches(0, 72, 72, 2)
    assert spans(one(tmp_path, text)) == [[[0, 142]]]


def test_the_settings_of_the_next_launch_are_no_measurement(tmp_path: Path) -> None:
    top = "Logging arguments!!\nbatch_size: 4\nmodel_name: unet\nloss_weights: {'bce': 1, 'dice': 1}\nmin_lr: 1e-05\n"
    epochs = "".join(f"Epoch: {i} | Train_loss: {1 / (i + 1):.4f} | Val loss: 0.5\n" for i in range(6))
    runs = one(tmp_path, top + epochs + top + epochs)
    assert spans(runs) == [[[0, 5]], [[0, 5]]]
    assert all("bce" not in r.tables["metrics"]["tag"].to_pylist() for r in runs)


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("('Epoch: ', 5)", "Epoch: 5"),
        ("('dcgan Loss: ', [array(0.95, dtype=float32), array(nan, dtype=float32)], '\\t d loss', 0.5)", "dcgan Loss: 0.95 nan d loss 0.5"),
        ("('weights: ', [1, 2, 3, 4, 5])", "weights: [1, 2, 3, 4, 5]"),
        ("('a', 'b'", "('a', 'b'"),
        ("('call', f(2))", "('call', f(2))"),
        (" 20% 266/1330 [02:49<09:37,  1.84it/s]", " 20%|| 266/1330 [02:49<09:37,  1.84it/s]"),
        ("20% 266/1330 of it <", "20% 266/1330 of it <"),
        (
            "train 1.1 (seg 0.1, thick 1.0) | val 1.3 (seg 0.2, thick 1.1)",
            "train 1.1 | train seg 0.1 | train thick 1.0 | val 1.3 | val seg 0.2 | val thick 1.1",
        ),
        ("loss 1.1 (lr 0.1) | val 1.3 (acc 0.2)", "loss 1.1 (lr 0.1) | val 1.3 (acc 0.2)"),  # not of what stands before
        ("Losses {'ner': 12.5, 'text cat': 0.3}", "loss ner: 12.5, loss text cat: 0.3"),
        ("('Losses', {u'ner': 0.18})", "loss ner: 0.18"),
        ("lr: 0.1, loss: [landmark: 0.00003],sample/s: 739", "lr: 0.1, loss landmark: 0.00003,sample/s: 739"),
    ],
)
def test_a_line_as_it_was_meant(text: str, read: str) -> None:
    assert line_texts.plain(text) == read


def test_losses_of_python_2_are_read_at_their_epochs(tmp_path: Path) -> None:
    text = "('Number of epochs: ', 9)\n" + "".join(f"('Epoch: ', {i})\n('G Loss: ', [array(0.{i}, dtype=float32)])\n" for i in range(1, 10))
    (run,) = one(tmp_path, text)
    assert (spans([run]), plan.planned_steps(run)) == ([[[1, 9]]], 9)


def test_the_lines_of_a_trainer_stand_where_the_bar_of_a_notebook_says(tmp_path: Path) -> None:
    bunch = "".join(f"{{'loss': 0.{i}, 'learning_rate': 0.001, 'epoch': {i / 4}}}\n" for i in range(1, 9))
    (run,) = one(tmp_path, bunch + " 50% 40/80 [00:40<00:40,  1.0it/s]\n100% 80/80 [01:20<00:00,  1.0it/s]\n")
    assert (spans([run]), plan.planned_steps(run)) == ([[[10, 80]]], 80)


@pytest.mark.parametrize(("steps", "axis"), [([40, 12, 2000, 7, 55, 3, 90, 4, 60, 5, 70, 6], [1, 12]), (range(10, 130, 10), [10, 120])])
def test_lengths_of_episodes_are_no_steps(tmp_path: Path, steps: list[int], axis: list[int]) -> None:
    rows = [{"episode": i, "steps": n, "reward": 0.5 * i} for i, n in enumerate(steps, 1)]
    assert spans(one(tmp_path, "".join(json.dumps(r) + "\n" for r in rows), "log.jsonl")) == [[axis]]


def test_the_epochs_of_darts_and_a_table_that_it_looks_up(tmp_path: Path) -> None:
    text = "".join(
        f"2025-01-14 15:{i}:04,246 epoch {i - 10} lr 2.5e-02\n2025-01-14 15:{i}:07,578 train 000 2.3e+00 10.9 56.2\n\n\n\n\n"
        f"2025-01-14 15:{i}:24,031 train_acc  {i}.5\n2025-01-14 15:{i}:24,034 train_loss 1.{i}\n"
        "cifar10        train : [loss = 0.071, top1 = 97.75%], test  : [loss = 0.405, top1 = 88.93%]\n"
        for i in range(10, 16)
    )
    (run,) = one(tmp_path, text)
    metrics = run.tables["metrics"].to_pylist()
    assert [(m["step"], m["value"]) for m in metrics if m["name"] == "loss.train"] == [(i - 10, float(f"1.{i}")) for i in range(10, 16)]
    assert spans([run]) == [[[0, 5]]]


def test_rounds_of_federated_learning_are_the_steps(tmp_path: Path) -> None:
    top = "INFO :      Starting Flower server, config: num_rounds=9, no round_timeout\n"
    rounds = "".join(f"INFO :      [ROUND {i}]\nINFO :      Client a:\nINFO :      -> loss: 0.{i}\nINFO :\n" for i in range(1, 5))
    (run,) = one(tmp_path, top + rounds)
    assert (spans([run]), plan.planned_steps(run)) == ([[[1, 4]]], 9)


def test_tensorflow_says_that_memory_was_exhausted(tmp_path: Path) -> None:
    """Its allocator's lines name a step that is none."""
    alloc = "2022-03-18 00:07:38.9: I tensorflow/core/common_runtime/bfc_allocator.cc:1046] InUse of size 256 by op clip_norm/loss count 7 step 0\n"
    told = 'Traceback (most recent call last):\n  File "a.py", line 3, in fit\n    f()\nerrors_impl.ResourceExhaustedError: 2 root error(s) found.\n'
    (run,) = one(tmp_path, "Epoch 14/20\n" + alloc * 3 + told)
    end = how_it_ended.ending(run)
    assert (end.kind, spans([run]), plan.planned_steps(run)) == ("out of memory", [[]], 20)


def test_the_same_logger_of_a_program_measures(tmp_path: Path) -> None:
    lines = "".join(f"I0101 12:00:{i}.0 42 solver.cpp:218] Iteration {i}, loss = 0.{i}\n" for i in range(10, 16))
    assert spans(one(tmp_path, lines)) == [[[10, 15]]]


@pytest.mark.parametrize(("value", "first"), [(repr("\noptimizer = Adam()\nepoch = 0 loss: 0.5\n"), 1), ("epoch 0 loss: 0.5", 0)])
def test_a_cell_that_is_one_long_string_printed_nothing(tmp_path: Path, value: str, first: int) -> None:
    printed = "".join(f"Epoch {i}/6\nAverage training loss: 0.{i}\n" for i in range(1, 7))
    out = [{"output_type": "stream", "text": [printed]}, {"output_type": "execute_result", "data": {"text/plain": [value]}}]
    (run,) = one(
        tmp_path, json.dumps({"nbformat": 4, "cells": [{"cell_type": "code", "source": [], "outputs": [o]} for o in out]}), "a.ipynb"
    )
    assert min(a["steps"][0] for a in run.attempts) == first


def test_steps_that_a_log_says_the_total_of_are_the_labels(tmp_path: Path) -> None:
    lines = "".join(f"Epoch {e}/2 Step {i}/50 Loss: 0.{i + 1}\n" for e in (1, 2) for i in range(0, 50, 5))
    (counted,) = one(tmp_path, "Total training steps: 100\n" + lines)
    assert not plan.counts_epochs(counted)
    (epochs,) = one(tmp_path, lines)
    assert plan.counts_epochs(epochs)


def test_a_mean_of_the_epoch_is_no_loss_of_its_last_step(tmp_path: Path) -> None:
    lines = "".join(
        "".join(f"===> Epoch[{e}]({i}/500): Loss: 0.{e}1\n" for i in range(100, 501, 100)) + f"===> Epoch {e} Complete: Avg. Loss: 24.5\n"
        for e in range(1, 6)
    )
    (run,) = one(tmp_path, lines)
    metrics = run.tables["metrics"].to_pylist()
    assert {m["tag"]: m["value"] for m in metrics if m["name"] == "loss.train"} == {"Loss": 0.51, "Avg. Loss": 24.5}


@pytest.mark.parametrize(("front", "steps"), [("[step={}]", [1, 30]), ("step={}", [50, 1500])])
def test_what_the_loop_counts_in_front_is_the_step(tmp_path: Path, front: str, steps: list[int]) -> None:
    """A bar that names the training says how many there will be."""
    lines = "".join(
        f"\ra2c train:   0%|          | {i - 1}/90 [00:07<51:55,  1.56s/it]  {front.format(i)} global_step={i * 50}.0 loss=0.{i}\n"
        for i in range(1, 31)
    )
    (run,) = one(tmp_path, lines)
    assert spans([run]) == [[steps]]


@pytest.mark.parametrize(("heading", "told"), [("Epoch: {}", False), ("Width: {}", True)])
def test_the_heading_of_an_epoch_is_no_setting(tmp_path: Path, heading: str, told: bool) -> None:
    """The first alone may be one, until another rises above it."""
    (run,) = one(tmp_path, "".join(heading.format(i) + "\nModel was built\n" for i in range(1, 6)) + "loss: 0.5\nloss: 0.4\n")
    values = [int(v) for k, v in zip(*(run.tables["config"][c].to_pylist() for c in ("key", "value")), strict=True) if k in heading]
    assert (5 in values) == told


def test_a_line_of_settings_reaches_no_epoch(tmp_path: Path) -> None:
    epochs = "".join(f"Epoch: {i}\nTrain Loss: 0.{i}\n" for i in range(1, 6))
    (run,) = one(tmp_path, "TRAIN SETTING\tBatch Size:32  Epoch:30  Vocab:234368  Max Words:20\n" + epochs)
    assert spans([run]) == [[[1, 5]]]


@pytest.mark.parametrize(("rows", "guess"), [(80, True), (77, False)])
def test_a_row_that_validates_is_an_epoch(tmp_path: Path, rows: int, guess: bool) -> None:
    text = ",training_losses,validation_losses\n" + "".join(f"{i},{1 / (i + 2)},{1 / (i + 1.5)}\n" for i in range(rows))
    (run,) = one(tmp_path, text, "losses.csv")
    assert (how_it_ended.ending(run).kind == "finished") == guess


@pytest.mark.parametrize(
    ("rates", "digit"),
    [
        ([i * 1e-6 for i in range(11)], 1e-6),
        ([1e-4, 2e-4], 0.0),
        ([i * 3e-4 / 50 for i in range(50)], 0.0),
        ([0.1, 0.2, 0.4, 0.8, 1.6], 0.0),
    ],
)
def test_the_last_digit_that_was_printed(rates: list[float], digit: float) -> None:
    assert walked_digit(np.array(rates)) == pytest.approx(digit)


def test_a_training_is_as_long_as_it_says_above_its_first_loss(tmp_path: Path) -> None:
    """Each of a search prints its epochs anew, and what it scored between them."""
    text = "".join(
        "".join(
            f"Epoch {e}/{n}\n  150/600 [....] - ETA: 2s - loss: 0.{9 - e}1\n600/600 [====] - 1s 18us/sample - loss: 0.{9 - e}\n"
            for e in range(1, 8)
        )
        + f"139421{n}.87\n"
        for n in (90, 80, 70)
    )
    runs = one(tmp_path, text)
    assert [plan.of_epochs(r).value for r in runs if plan.of_epochs(r)] == [90, 80, 70]


def test_rows_that_a_tracker_dropped_keep_their_own_step(tmp_path: Path) -> None:
    lines = "".join(
        f"wandb: WARNING (User provided step: {i} is less than current step: 125. Dropping entry: {{'train/loss': 0.{i}}}).\n"
        for i in range(1, 6)
    )
    (run,) = one(tmp_path, lines)
    assert {m["tag"] for m in run.tables["metrics"].to_pylist()} == {"train/loss"}


@pytest.mark.parametrize(("key", "runs"), [("episode", 2), ("sample", 1)])
def test_episodes_that_begin_again_are_another_launch(tmp_path: Path, key: str, runs: int) -> None:
    rows = [{key: i, "steps": 100 + 7 * (i % 3) - i % 2, "reward": 0.5} for n in (30, 40) for i in range(1, n)]
    assert len(one(tmp_path, "".join(json.dumps(r) + "\n" for r in rows), "log.jsonl")) == runs


def test_a_launch_goes_on_in_an_epoch_that_the_one_before_reached(tmp_path: Path) -> None:
    """Steps that name no total are laid behind those of the epochs before."""
    top = "Running PGAN\nsize ten\nimages found\nimages detected\n"
    lines = [
        "".join(f"[{e} : {i:6}] loss G : 0.{i} loss D : 0.5\n" for i in range(a, b, 100))
        for e, a, b in ((0, 100, 500), (1, 100, 500), (1, 300, 900))
    ]
    (run,) = one(tmp_path, top + lines[0] + lines[1] + top + "Model found at path out/model.pdparams, pursuing the training\n" + lines[2])
    assert spans([run]) == [[[100, 800], [700, 1200]]]


@pytest.mark.parametrize(("numbers", "steps"), [((20, 40, 60), [20, 40, 60]), ((20, 20, 20), [])])
def test_what_stands_below_the_first_count_is_of_it(tmp_path: Path, numbers: tuple[int, ...], steps: list[int]) -> None:
    """A number that never rises is a setting."""
    (run,) = one(tmp_path, "".join(f"iter = {n}\n\tloss = 0.{n}1, accuracy = 0.5\n" for n in numbers))
    metrics = run.tables["metrics"].to_pylist()
    assert [m["step"] for m in metrics if m["tag"] == "loss" and m["step"] in numbers] == steps


@pytest.mark.parametrize(
    ("text", "behind"),
    [
        ("  5%|#  | 4/80 [00:07<51:55,  1.56s/it]  [step=5] loss=0.4", "[step=5] loss=0.4"),
        ("  5%|#  | 4/80 [00:07<51:55,  1.56s/it]step 5", "step 5"),
        ("  5%|#  | 4/80 [00:07<51:55,  1.56s/it] loss: 0.4", None),
        ("5% of 80 [step=5]", None),
    ],
)
def test_what_was_printed_behind_a_bar(text: str, behind: str | None) -> None:
    found = line_texts.two(text)
    assert (found[1] if found else None) == behind


STEPS = "step={n} loss={loss:.4f} step_ms=70.2\n"


def launched(processes: int, start: int, *, key: str = "world_size") -> str:
    """A line of settings, then 60 steps."""
    head = f"{key}={processes} params=68160 global_batch={8 * processes} start_step={start}\n"
    return head + "".join(STEPS.format(n=start + n, loss=3 - (start + n) / 100) for n in range(5, 65, 5))


def test_a_line_of_settings_that_says_how_a_launch_begins_begins_another_one() -> None:
    """Without a clock, too: it says from which step. What it names are settings, before the first step and after it."""
    text = launched(4, 0) + launched(2, 60)
    run = read_once(text)
    config = [c for c in run.tables["config"].to_pylist() if c["key"] == "global_batch"]
    assert spans([run]) == [[[5, 60], [65, 120]]]
    assert [(c["attempt"], c["value"]) for c in config] == [(0, "32"), (1, "16")]
    assert not [t for t in run.tables["metrics"]["tag"].to_pylist() if t in {"world_size", "params", "start_step"}]


def test_what_a_loop_prints_again_begins_no_launch() -> None:
    """Nothing in the line is of a launch."""
    run = read_once(launched(4, 0, key="clip").replace("start_step", "seq") + launched(2, 60, key="clip").replace("start_step", "seq"))
    assert spans([run]) == [[[5, 120]]]


@pytest.mark.parametrize(
    ("seconds", "between", "told"), [(60, "Building the model", 4), (60, "", 4), (0, "", 0), (60, "step 3 loss 2.5", 0)]
)
def test_launches_that_measured_nothing_are_told_by_the_first_line_of_the_log(
    seconds: int, between: str, told: int, tmp_path: Path
) -> None:
    """Not ranks that say it at one time, nor launches between whose first lines something was measured."""
    clock = datetime(2026, 3, 1, 10, tzinfo=UTC)
    text = "".join(
        f"{clock + timedelta(seconds=seconds * i):%Y-%m-%d %H:%M:%S} Logger initialised {i}\n" + (between and between + "\n")
        for i in range(5)
    )
    (tmp_path / "train.log").write_text(text + "".join(f"step {i} loss {3 - i / 10}\n" for i in range(1, 20)))
    found = [e for e in parsers.read(tmp_path).tables["events"].to_pylist() if e["kind"] == "unstarted"]
    assert len(found) == told
    assert all(e["text"] == "Logger initialised 0" for e in found)


@pytest.mark.parametrize(("minutes", "told"), [(2, 6), (0, 0)])
def test_headers_that_follow_each_other_are_of_launches_where_their_time_is_another(minutes: int, told: int, tmp_path: Path) -> None:
    """pix2pix and its heirs open the log of losses so, before anything was loaded."""
    heads = [f"================ Training Loss (Fri Apr  6 00:{10 + minutes * i:02d}:{25 + i} 2018) ================\n" for i in range(7)]
    rows = "".join(f"(epoch: 1, iters: {100 * i}, time: 0.046) G_GAN: 1.5 G_L1: {3 - i / 10}\n" for i in range(1, 20))
    (tmp_path / "loss_log.txt").write_text("".join(heads) + rows)
    found = [e for e in parsers.read(tmp_path).tables["events"].to_pylist() if e["kind"] == "unstarted"]
    assert len(found) == told


@pytest.mark.parametrize("text", ["  * Ep11/80 lr=1.5e-03 trL=0.0125", "    Ep11/80 lr=1.5e-03 trL=0.0125"])
def test_a_number_that_touches_its_word_is_set_apart_whatever_marks_the_line(text: str) -> None:
    assert line_texts.plain(text) == "epoch 11/80 lr=1.5e-03 trL=0.0125"
