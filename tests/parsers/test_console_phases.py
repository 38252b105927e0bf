"""Which data the numbers of a console log are of: words in the line, labels within it, headings above it; each rule beside what only looks like it."""

from __future__ import annotations

from pathlib import Path

import pytest

import parsers
from parsers.console_format.line_numbers import read_line
from parsers.console_format.line_prefix import prefix, seconds
from tests.parsers.test_console_tables import series


def tags(text: str) -> list[str]:
    return [tag for tag, _ in read_line(text).metrics()]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Epoch 3 - Train: loss 0.5, hit 0.2 - Val: loss 0.6, hit 0.1", ["train loss", "train hit", "val loss", "val hit"]),
        ("Epoch 3 | val: loss=0.6 | train: loss=0.5", ["val loss", "train loss"]),
        ("[Epoch 3] [Train] loss: 0.5 [Test] loss: 0.6", ["train loss", "test loss"]),
        ("Epoch 3 - Validation CHRF: CHRF-1 41.5, CHRF-2 33.25", ["validation CHRF-1", "validation CHRF-2"]),
        ("Epoch 3: Train Loss=0.5, Val Loss=0.6", ["Train Loss", "Val Loss"]),
        ("Epoch 3: G loss=0.5, D loss=0.6", ["G loss", "D loss"]),
        ("Metric val/accuracy improved by 0.114 >= min_delta = 0.0. New best score: 0.862", ["best val/accuracy so far"]),
        ("Epoch 3 accuracy (test): 0.4, accuracy (train): 0.5", ["accuracy (test)", "accuracy (train)"]),
        ("[3/25] loss 0.5  acc 62.9%   test: loss 0.6 acc 19.5%", ["loss", "acc", "test loss", "test acc"]),
        ("epoch 3 time 3.5 test: loss 0.6 acc 0.1", ["test time", "test loss", "test acc"]),
        ("epoch 1 | train MAE 1.5 | valid MAE 0.5 | best 0.25 | grad 16.5", ["train MAE", "valid MAE", "best", "grad"]),
        ("epoch 1 | train loss 1.5 | acc 0.5 | val loss 0.25 | acc 0.75", ["train loss", "train acc", "val loss", "val acc"]),
        ("step 3 loss=2.5 | grad norms: emb=0.5 head=0.25 | lr=0.5", ["loss", "grad norms/emb", "grad norms/head", "lr"]),
        ("epoch 3 losses: cls=0.5 box=0.25", ["losses/cls", "losses/box"]),
        ("epoch 3 net: cls=0.5 box=0.25", ["cls", "box"]),  # whose, not what
        ("epoch 3 valid n=120 loss=0.5 roc_auc=0.6", ["valid n", "valid loss", "valid roc_auc"]),  # how many were evaluated
        ("epoch 3 train n=900 valid n=120 loss=0.5", ["train n", "valid n", "loss"]),
        ("[Epoch: 01] Valid acc: 0.8 | loss: 9.5", ["Valid acc", "valid loss"]),  # what follows a measure of a split is of that split
        ("**Epoch: 001/020 | Test. Acc.: 97.5% | Loss: 0.5", ["Test. Acc", "test Loss"]),
        (
            "Epoch: 1/9 Lr=0.5 | train Loss:5.5 Acc_9:0.5 | test Loss:4.5 Acc_9:0.25",
            ["Lr", "train Loss", "train Acc_9", "test Loss", "test Acc_9"],
        ),
        ("   held-out xent 1.75 ppl 5.75", ["held-out xent", "heldout ppl"]),
        ("epoch 3 loss=0.5 valid n=120", ["loss", "valid n"]),
        ("trainloss=0.5 trainacc=0.7 VAL loss=0.6 acc=0.4 QWK=0.1", ["trainloss", "trainacc", "VAL loss", "val acc", "val QWK"]),
        ("ep 3 train loss=0.5 acc=0.7 val loss=0.6 acc=0.4", ["train loss", "train acc", "val loss", "val acc"]),
        ("ep 3 train loss=0.5 val loss=0.6 acc=0.4 lr=0.1 tokens=9000", ["train loss", "val loss", "val acc", "lr", "tokens"]),
        # neither: what was best before, something else behind a comma, one measurement
        ("ep 3 loss=0.5 acc=0.7 best val loss=0.6 acc=0.4", ["loss", "acc", "val loss", "acc"]),
        ("ep 3 loss=0.5 val loss=0.6, acc=0.4", ["loss", "val loss", "acc"]),
        ("ep 3 acc=0.7 val loss=0.6", ["acc", "val loss"]),
        # not labels: a number stands behind, a path, what was best before, one loss alone
        ("Epoch 3: loss: 0.5, Test: 0.6", ["loss", "Test"]),
        ("Epoch 3 loss: 0.5, best val: loss 0.4", ["loss", "loss"]),
        ("Epoch 3 loss=0.5 saved to runs/test: done", ["loss"]),
        ("Epoch 3 final loss=0.5", ["loss"]),
        ("| step 50 | dev xent 1.70 acc 0.58 | train xent 1.5 acc 0.6 |", ["dev xent", "dev acc", "train xent", "train acc"]),
        ("rank:0 DONE loss=0.5 left=9 rank:1 DONE loss=0.5 left=9", ["loss", "left", "loss", "left"]),
        ("Epoch[3] Time cost=106.5", ["Time cost"]),
    ],
)
def test_the_words_of_a_line_say_of_which_data_its_numbers_are(text: str, expected: list[str]) -> None:
    assert tags(text) == expected


@pytest.mark.parametrize(
    ("text", "place", "metrics"),
    [
        ("Mean loss at step 120: 0.75", {"step": 120}, [("Mean loss", 0.75)]),
        ("Cost after epoch 12: 0.75", {"epoch": 12}, [("Cost", 0.75)]),
        ("Score at iteration 120 is 0.75", {"step": 120}, [("Score (loss)", 0.75)]),
        ("epoch 4, Mean Negative ELBO   4.5, PPL: 90.0", {"epoch": 4}, [("Mean Negative ELBO", 4.5), ("PPL", 90.0)]),
        ("epoch 4, minibatch 7/7, validation error 5.5 %", {"epoch": 4}, [("validation error", 5.5)]),
        # the step names itself, a word of its own stands between, a count or a duration in prose
        ("loss at step 120, lr: 0.5", {"step": 120}, [("lr", 0.5)]),
        ("epoch 4, of all files 500, it took 3.5 minutes, loss 0.5", {"epoch": 4}, [("loss", 0.5)]),
        ("epoch 4: loss 0.5 time: 15m 1s", {"epoch": 4}, [("loss", 0.5)]),
    ],
)
def test_names_that_stand_before_a_step_or_between_marks(text: str, place: dict[str, int], metrics: list[tuple[str, float]]) -> None:
    line = read_line(text)
    assert {k: v for k, v in line.parts().items() if k in place} == place
    assert line.metrics() == metrics


@pytest.mark.parametrize(
    ("text", "body"),
    [
        ("12:00:01.250 [main] INFO org.some.Listener - loss 1", "loss 1"),
        ("2026-01-02 12:00:01,250 - logs\\run.log - INFO - loss 1", "loss 1"),
        ("2026-01-02 12:00:01,250 -my_app-INFO-train:loss 1", "loss 1"),
        ("20260102-12:00:01 loss 1", "loss 1"),
        ("[02/Jan/2026 12:00:01] INFO loss 1", "loss 1"),
        ("02-Januar 12:00:01 loss 1", "02-Januar 12:00:01 loss 1"),
        ("[main] loss 1", "[main] loss 1"),
        ("20260102 loss 1", "20260102 loss 1"),
    ],
)
def test_what_stands_before_a_message(text: str, body: str) -> None:
    assert text[prefix(text).body :].strip() == body


def test_a_clock_without_dashes() -> None:
    assert seconds("20260102-12:00:01", "compact") == seconds("2026-01-02 12:00:01", "iso")
    assert seconds("01.02.26|12:00:01", "dotted") == seconds("2026-01-02 12:00:01", "iso")
    assert seconds("Fri Jan  2 12:00:01 2026", "ctime") == seconds("2026-01-02 12:00:01", "iso")
    assert seconds("2-Jan-2026 12:00:01", "dmy") == seconds("2026-01-02 12:00:01", "iso")


def test_a_loss_at_a_step_is_no_setting(tmp_path: Path) -> None:
    text = "".join(f"Minibatch loss at step {i}: {2 / i}\nValidation accuracy: {i / 10}\n" for i in (100, 200, 300))
    assert series(tmp_path, text) == {
        "Minibatch loss": [(100, 0.02), (200, 0.01), (300, 2 / 300)],
        "Validation accuracy": [(100, 10.0), (200, 20.0), (300, 30.0)],
    }


BELOW = {
    "a sentence": ("Starting evaluation nr. 1", "evaluation Precision"),
    "a split behind a colon": ("evaluate:dev", "dev Precision"),
    "between rules": ("======Test output======", "test Precision"),
    "a word": ("--- Eval ---", "eval Precision"),
    "an epoch": ("Test epoch: 3 ...", "test Precision"),
    "results on a split": ("Results on the test set:", "test Precision"),
}


@pytest.mark.parametrize(("heading", "tag"), BELOW.values(), ids=BELOW)
def test_values_below_a_heading_are_of_its_evaluation(tmp_path: Path, heading: str, tag: str) -> None:
    text = f"step 10 loss 2.0\nstep 20 loss 1.0\n{heading}\n Precision: 0.25\n loss: 1.5\nstep 30 loss 0.5\n"
    found = series(tmp_path, text)
    assert [v for _, v in found[tag]] == [0.25]
    assert [v for _, v in found["loss"]] == [2.0, 1.0, 0.5]


@pytest.mark.parametrize(
    "heading",
    [
        "Loading test images",
        "evaluate: False",
        "Test set size: 900",
        "Evaluation done",
        "test: 900",
        "Training after evaluation",
        "val_path: data/val",
        "the token is valid",
        "Testing: 100%|####| 10/10 [00:01<00:00, 9.8it/s]",
    ],
)
def test_what_only_names_an_evaluation_is_no_heading(tmp_path: Path, heading: str) -> None:
    found = series(tmp_path, f"step 10 loss 2.0\nstep 20 loss 1.0\n{heading}\n Precision: 0.25\n loss: 1.5\nstep 30 loss 0.5\n")
    assert [v for _, v in found["loss"]] == [2.0, 1.0, 1.5, 0.5]
    assert set(found) == {"loss"}


@pytest.mark.parametrize("row", ["classes: 5", "cat: Precision: 0.25", "Precision: 0.25 0.5 0.75"])
def test_counts_classes_and_lists_below_a_heading_are_no_values(tmp_path: Path, row: str) -> None:
    assert set(series(tmp_path, f"step 10 loss 2.0\nstep 20 loss 1.0\nEvaluating\n{row}\nstep 30 loss 0.5\n")) == {"loss"}


def test_times_below_a_heading_are_not_the_evaluations(tmp_path: Path) -> None:
    assert "elapsed time" in series(tmp_path, "step 10 loss 2.0\nEvaluating\nelapsed time: 2.5\nstep 20 loss 0.5\n")


def test_a_heading_ends_where_training_goes_on(tmp_path: Path) -> None:
    text = "".join(f"Training\nTraining batches: 9\nmean loss: {i}.5\nEvaluating\nmean loss: {i}.75\n" for i in range(9))
    found = series(tmp_path, text)
    assert found["mean loss"] == [(i + 1, i + 0.5) for i in range(9)]
    assert found["evaluation mean loss"] == [(i + 1, i + 0.75) for i in range(9)]


def test_what_comes_less_often_stands_at_the_last_count(tmp_path: Path) -> None:
    text = "".join(f"loss: {i}.5\n" + f"val score: 0.{i}\n" * (i % 3 == 0) for i in range(1, 10))
    found = series(tmp_path, text + "test score: 0.5\n")
    assert found["loss"] == [(i, i + 0.5) for i in range(1, 10)]
    assert found["val score"] == [(3, 0.3), (6, 0.6), (9, 0.9)]
    assert found["test score"] == [(None, 0.5)]


def test_a_score_is_counted_where_there_is_no_loss(tmp_path: Path) -> None:
    assert series(tmp_path, "".join(f'-- "test accuracy 0.{i}\n' for i in range(1, 10)))["test accuracy"] == [
        (i, i / 10) for i in range(1, 10)
    ]


@pytest.mark.parametrize("word", ["Generation", "--- batch:", "Episode"])
def test_a_count_above_its_values_is_their_step(tmp_path: Path, word: str) -> None:
    text = "".join(f"{word} {i}\nreward: {i}.5\nbest fit: {i}.25\n\n" for i in (1, 2, 3, 4))
    found = series(tmp_path, text)
    assert found["reward"][-3:] == [(i, i + 0.5) for i in (2, 3, 4)]
    assert found["best fit"] == [(i, i + 0.25) for i in (2, 3, 4)]  # the first may have headed settings


@pytest.mark.parametrize(
    ("clock", "known"), [("[03.24.23|09:5{}:11]", True), ("[ Fri Mar 24 09:5{}:11 2023 ]", True), ("[text 24 09 {}]", False)]
)
def test_the_clocks_of_st_gcn_stand_before_the_message(tmp_path: Path, clock: str, known: bool) -> None:
    text = "".join(f"{clock.format(e)} Training epoch: {e}\n{clock.format(e)} \tmean_loss: {'nan' if e % 2 else 1.5}\n" for e in range(6))
    found = series(tmp_path, text).get("mean_loss", [])
    assert ([step for step, _ in found] == [*range(6)]) == known


@pytest.mark.parametrize("mark", ["-" * 40, ""])
def test_an_iteration_in_a_drawn_line_is_that_of_what_stands_below(tmp_path: Path, mark: str) -> None:
    """Alone it may be a setting, until it rises: then the first one was none, either."""
    text = "".join(f"{mark}Iteration: {i}000{mark}\nLoss: {1 / i:.3e} Loss_u: 0.5\n" for i in (1, 2, 3))
    assert [step for step, _ in series(tmp_path, text)["Loss"]] == [1000, 2000, 3000]


@pytest.mark.parametrize("text", ["batch: 64\ndropout: 0.5\nrate: 0.1\n", "GPU 0\nmemory: 1.5\nGPU 1\nmemory: 1.5\nGPU 2\nmemory: 1.5\n"])
def test_settings_and_devices_have_no_steps(tmp_path: Path, text: str) -> None:
    assert series(tmp_path, text + "step 1 loss 0.5\nstep 2 loss 0.25\n").keys() == {"loss"}


def test_tables_of_training_and_validation_with_the_same_names(tmp_path: Path) -> None:
    rows = [
        f"training\n# Epoch batch   loss   mae\n  {e}   4   {e}.5   0.5\n\nvalidation\n# Epoch batch   loss   mae\n  {e}   1   {e}.75   0.5\n"
        for e in (1, 2, 3)
    ]
    found = series(tmp_path, "\n".join(rows))
    assert found["loss"] == [(4 * e, e + 0.5) for e in (1, 2, 3)]
    assert found["validation loss"] == [(4 * e, e + 0.75) for e in (1, 2, 3)]


def test_a_cell_says_whose_row_it_is(tmp_path: Path) -> None:
    rows = "".join(f"train  {e}  {e}.5\n! Val  {e}  {e}.75\n" for e in (1, 2, 3))
    found = series(tmp_path, f"phase  epoch  loss\n{rows}")
    assert found == {"train loss": [(e, e + 0.5) for e in (1, 2, 3)], "val loss": [(e, e + 0.75) for e in (1, 2, 3)]}


def test_a_box_of_settings_before_training_measures_nothing(tmp_path: Path) -> None:
    rule = "+---------------+--------+\n"
    box = rule + rule.join(f"| {k:13} | {v:6} |\n" for k, v in (("Batch size", 8), ("Epochs", 40), ("Dropout", 0.5))) + rule
    assert series(tmp_path, box + "epoch 1 loss 0.5\nepoch 2 loss 0.25\n") == {"loss": [(1, 0.5), (2, 0.25)]}
    log = box.replace("Dropout", "loss   ")
    assert series(tmp_path, log + "epoch 41 loss 0.25\n")["loss"][0][1] == 0.5


def test_a_second_shorter_bar_of_an_epoch_is_an_evaluation(tmp_path: Path) -> None:
    text = "".join(
        f"\nEpoch: {e}\n [=== 40/40 ==>]  Step: 34ms | Loss: {2 - e / 2} | Acc: 50.0% (200/400)\n [== 10/10 =>]  Step: 30ms | Loss: {3 - e / 2} | Acc: 25.0% (25/100)\n"
        for e in (0, 1, 2)
    )
    found = series(tmp_path, text)
    assert found["Loss"] == [(40, 2.0), (80, 1.5), (120, 1.0)]
    assert found["eval Loss"] == [(40, 3.0), (80, 2.5), (120, 2.0)]
    assert found["Step time (ms)"] == [(40, 34.0), (80, 34.0), (120, 34.0)]


def test_a_shorter_bar_that_names_the_epoch_again_is_an_evaluation(tmp_path: Path) -> None:
    def bar(e: int, total: int, of: str) -> str:
        return "".join(
            f"Epoch {e}: {100 * i // total:3d}%|##| {i}/{total} [00:{i:02d}<00:00, 1.00it/s, {of}={e + i / 64}]\n"
            for i in range(1, total + 1)
        )

    text = "".join(bar(e, 16, "loss") + "\n" + bar(e, 4, "acc=0.5, loss") + "\n" for e in range(3))
    found = series(tmp_path, text)
    assert [step for step, _ in found["loss"]] == list(range(1, 49))
    assert {step for step, _ in found["eval loss"]} == {16, 32, 48}


def test_a_last_epoch_that_is_shorter_is_training(tmp_path: Path) -> None:
    text = "".join(f"\nEpoch {e}/3\n {n}/{n} [===] - loss: {3 - e}.0\n" for e, n in ((1, 40), (2, 40), (3, 30)))
    assert [v for _, v in series(tmp_path, text)["loss"]] == [2.0, 1.0, 0.0]


@pytest.mark.parametrize(
    ("text", "metrics"),
    [
        ("step 4, loss = 0.5 (612.5 examples/sec, 0.25 sec/batch)", [("loss", 0.5), ("examples/sec", 612.5), ("sec/batch", 0.25)]),
        ("epoch 4 | 1.5 it/sec | loss 0.5", [("it/sec", 1.5), ("loss", 0.5)]),
        ("Time taken for 1 epoch: 38.5 secs", [("epoch time (secs)", 38.5)]),
        ("loss: 0.5:  10%|#         | 10/100 [00:01<00:09, 10.5it/s]", [("loss", 0.5)]),
    ],
)
def test_speeds_and_times(text: str, metrics: list[tuple[str, float]]) -> None:
    assert read_line(text).metrics() == metrics


def test_the_rate_of_a_loop_stands_below_its_losses(tmp_path: Path) -> None:
    text = "".join(f"epoch 1 step {i} loss 0.5\nLearning rate: 0.{i}\nepoch time: 2.5\n" for i in (1, 2))
    found = series(tmp_path, "learning rate: 0.5\n" + text)
    assert found["Learning rate"] == [(1, 0.1), (2, 0.2)]
    assert found["epoch time"] == [(1, 2.5), (2, 2.5)]
    assert "learning rate" not in found


def test_a_printed_history_is_the_curves_of_a_training(tmp_path: Path) -> None:
    text = "start\n{'loss': [2.5, 1.5, 0.5], 'val_hit': [0.1, np.float64(0.2), 0.3]}\n"
    assert series(tmp_path, text) == {"loss": [(1, 2.5), (2, 1.5), (3, 0.5)], "val_hit": [(1, 0.1), (2, 0.2), (3, 0.3)]}


@pytest.mark.parametrize(
    "text",
    [
        "{'precision': [0.5, 0.25, 0.75], 'recall': [0.5, 0.25, 0.75]}\n",  # of classes
        "{'loss_weights': [1.0, 0.5, 0.5], 'sizes': [64, 64]}\n",
        "{'betas': [0.9, 0.95]}\n",
    ],
)
def test_other_lists_in_a_dictionary_are_no_history(tmp_path: Path, text: str) -> None:
    assert series(tmp_path, "start\n" + text) == {}


def test_a_history_after_its_epochs_says_nothing_new(tmp_path: Path) -> None:
    text = "".join(f"Epoch {i}/3 loss: {3 - i}.5\n" for i in (1, 2, 3)) + "{'loss': [2.5, 1.5, 0.5], 'val_loss': [2.5, 1.5, 0.5]}\n"
    assert series(tmp_path, text) == {"loss": [(1, 2.5), (2, 1.5), (3, 0.5)]}


@pytest.mark.parametrize(("encoding", "words"), [("gb18030", "训练损失" * 40), ("utf-8", "训练损失" * 40), ("latin-1", "où " + "x" * 99)])
def test_a_log_in_another_encoding(tmp_path: Path, encoding: str, words: str) -> None:
    text = "".join(f"epoch {i} loss {i}.5 {words}\n" for i in (1, 2, 3))
    path = tmp_path / "run.txt"
    path.write_bytes(text.encode(encoding))
    rows = parsers.read_file(path, tmp_path).batches["metrics"]
    assert [r["value"] for b in rows for r in b.to_pylist()] == [1.5, 2.5, 3.5]


def test_text_of_common_chinese_characters_is_decoded(tmp_path: Path) -> None:
    path = tmp_path / "train.log"
    path.write_bytes("epoch 1 loss 0.5\nepoch 2 loss 0.25\n训练完成\n".encode("gbk"))
    events = [r["text"] for b in parsers.read_file(path, tmp_path).batches["events"] for r in b.to_pylist()]
    assert "训练完成" in events


def test_boxes_in_a_document_are_a_log_and_a_table_of_results_is_none(tmp_path: Path) -> None:
    rule = "-" * 30 + "\n"
    rows = ("ep_rew_mean", "fps", "loss", "n_updates")
    box = "".join(rule + "".join(f"| {k:12} | {i}.5 |\n" for k in rows) + f"| total_timesteps | {i}000 |\n" + rule for i in (1, 2, 3, 4))
    assert series(tmp_path, box, "results.md")["loss"] == [(i * 1000, i + 0.5) for i in (1, 2, 3, 4)]
    table = "# Results\n| model | epoch | acc | loss | f1 |\n|---|---|---|---|---|\n| a | 90 | 0.5 | 0.5 | 0.5 |\n| b | 90 | 0.5 | 0.5 | 0.5 |\n"
    assert series(tmp_path, table, "notes.md") == {}


def test_ticks_count_and_scores_between_them_stand_at_the_last_one(tmp_path: Path) -> None:
    ticks = "".join(
        f'tick {i}    kimg {4 * i}.0   time {i}m 08s    sec/tick 150.5\n{{"results": {{"fid50k_full": {i}.5}}, "num_gpus": 1}}\n'
        for i in range(1, 6)
    )
    found = series(tmp_path, ticks)
    assert found["sec/tick"] == [(i, 150.5) for i in range(1, 6)]
    assert found["fid50k_full"][-2:] == [(4, 4.5), (5, 5.5)]
    assert "time" not in found


def test_wide_names_wait_for_their_rows_and_narrow_ones_do_not(tmp_path: Path) -> None:
    rows = "".join(f"  0/2  {i}/40  0.5  {4 - i}.5\n" for i in (1, 2, 3))
    assert series(tmp_path, "  Epoch  Batch  box  total\nthe set is loaded\nand one more line\n" + rows)["total"] == [
        (1, 3.5),
        (2, 2.5),
        (3, 1.5),
    ]
    assert "total" not in series(tmp_path, "  Epoch  total\nthe set is loaded\n  1  0.5\n  2  0.25\n")


@pytest.mark.parametrize("mode", ["eval", "train"])
def test_a_row_of_a_table_of_modules_is_no_heading(mode: str, tmp_path: Path) -> None:
    """A module in mode eval: what the summary says below is of no evaluation."""
    table = f"│ 0 │ net  │ UNet │ 30.4 K │ {mode} │     0 │\n└───┴──────┴──────┴────────┴──────┴───────┘\n"
    (tmp_path / "run.log").write_text(f"{table}Trainable params: 13\nNon-trainable params: 30.4 K\nepoch 1 loss 0.5\n")
    told = parsers.read(tmp_path).tables["events"]["text"].to_pylist()
    assert told[:2] == ["Trainable params: 13", "Non-trainable params: 30.4 K"]


def test_a_step_among_what_an_evaluation_gave_ends_it_not(tmp_path: Path) -> None:
    """TensorFlow's Estimator and BERT's run_classifier print all that was evaluated in order of its name."""
    steps = "".join(f"INFO:tensorflow:loss = {4 - i}.5, step = {100 * i}\n" for i in range(3))
    block = "INFO:tensorflow:***** Eval results *****\n" + "".join(
        f"INFO:tensorflow:  {said}\n" for said in ("eval_accuracy = 0.85", "global_step = 200", "loss = 0.7218847")
    )
    found = series(tmp_path, steps + block + "INFO:tensorflow:loss = 1.5, step = 300\n")
    assert found["loss"] == [(0, 4.5), (100, 3.5), (200, 2.5), (300, 1.5)]
    assert found["eval loss"] == [(200, 0.7218847)]


def test_the_best_so_far_behind_an_evaluation_makes_it_no_summary(tmp_path: Path) -> None:
    """tqdm.write between the bars: the line has the step of the bar above it."""
    bar = "\rfit:  16%|####8       | {i}/1500 [00:01<00:08, 149.71it/s, nll={v}]"
    text = "".join(
        bar.format(i=i, v=5 - i / 500) + (f"\r{' ' * 40}\r[{i}] val nll {6 - i / 500} best 2.5\n" if i % 50 == 0 else "")
        for i in range(10, 210, 10)
    )
    found = series(tmp_path, text)
    assert found["val nll"] == [(i, 6 - i / 500) for i in (50, 100, 150, 200)]
    assert len(found["nll"]) == 20
    assert series(tmp_path, "step 5 loss 0.5\nbest val loss 0.25\n")["best val loss"] == [(None, 0.25)]


@pytest.mark.parametrize(
    ("line", "tags"),
    [
        ("dev epoch {n} ctc {v} PER 84.36%", {"dev ctc", "dev PER"}),
        ("dev epoch {n} loss {v} PER 84.36%", {"dev loss", "dev PER"}),
        ("test epoch {n} files 20 parts 3", set()),  # counts of what is evaluated
    ],
)
def test_an_evaluation_behind_the_name_of_its_logger(tmp_path: Path, line: str, tags: set[str]) -> None:
    """Speech recipes: nothing but names and values, in no word that is known of losses; the loss of the training keeps its own values."""
    text = ""
    for epoch in range(4):
        text += "".join(
            f"2026-11-28 22:52:3{k},702 INFO [asr] epoch {epoch} step {epoch * 3 + k} loss {9 - epoch}.5 lr 1.00e-02\n" for k in range(3)
        )
        text += f"2026-11-28 22:52:35,702 INFO [asr] {line.format(n=epoch, v=7 - epoch / 2)}\n"
    found = series(tmp_path, text)
    assert {tag for tag in found if tag.startswith(("dev", "test", "PER", "ctc", "files", "parts"))} == tags
    assert [v for _, v in found["loss"]] == [9.5] * 3 + [8.5] * 3 + [7.5] * 3 + [6.5] * 3
