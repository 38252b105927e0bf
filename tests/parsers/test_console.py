"""Whole logs: which files are claimed, how lines get their steps, what damage costs; the real logs that are shared."""

from __future__ import annotations

import json
import math
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

import forensics
import parsers
from parsers.formats import console
from parsers.names import meaning
from parsers.tables import HEAD_BYTES, SCHEMAS, Gap, Note, table_of

SHARED = Path(__file__).parents[2].parent / "shared"
Tables = dict[str, list[dict[str, Any]]]


def read(path: Path) -> tuple[Tables, list[Gap], list[str]]:
    tables: Tables = defaultdict(list)
    gaps, notes = [], []
    for item in console.parse(path):
        if isinstance(item, Gap):
            gaps.append(item)
        elif isinstance(item, Note):
            notes.append(item.text)
        else:
            assert set(item.schema.names) <= set(SCHEMAS[table_of(item)].names)
            item.validate(full=True)
            tables[table_of(item)] += item.to_pylist()
    return tables, gaps, notes


def log(tmp_path: Path, text: str | bytes, name: str = "train.log") -> tuple[Tables, list[Gap], list[str]]:
    path = tmp_path / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    tables, gaps, notes = read(path)
    last = [e for e in tables["events"] if e["kind"] in ("last_line", "last_words")]  # every log that says anything has one
    return tables | {"last": last, "events": [e for e in tables["events"] if e not in last]}, gaps, notes


def series(tables: Tables, tag: str) -> list[tuple[int | None, float]]:
    return [(r["step"], r["value"]) for r in tables["metrics"] if r["tag"] == tag]


def claims(tmp_path: Path, name: str, text: str | bytes) -> bool:
    path = tmp_path / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return console.claims(path, path.read_bytes()[:HEAD_BYTES])


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("train.log", "hello\n"),
        ("slurm-12.out", "hello\n"),
        ("job.e4711", "hello\n"),
        ("nohup.out", "step 1 loss 2.0\n"),
        ("stdout.txt", "hello\n"),
        ("0f3a.txt", "step:0/9 val_loss:3.1\nstep:1/9 train_time:3ms\n"),
        ("run_7", "iter 1: loss 2.0, time 3ms\n"),
        ("0f3a.txt", "import torch\nimport os\n@dataclass\nclass A:\n    def f(self):\n        return 1\nfrom x import y\n"),
        ("a.txt", "Traceback (most recent call last):\n  File\n"),
        ("console.txt", "Epoch 1/2\n"),
        ("hf.txt", "{'loss': 2.0, 'epoch': 1.0}\n"),
        ("powershell.log", "step 1 loss 2.0\n".encode("utf-16")),
    ],
)
def test_logs_are_claimed(tmp_path: Path, name: str, text: str | bytes) -> None:
    assert claims(tmp_path, name, text)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("log.jsonl", '{"step": 1}\n'),
        ("train.log", '{"step": 1, "loss": 2}\n{"step": 2, "loss": 1}\n'),
        ("log.txt", '{"epoch": 0, "loss": 1}\n'),
        ("results.txt", "step,loss\n1,2.0\n"),
        ("log.txt", "step\tloss\n1\t2.0\n"),
        ("config.yaml", "lr: 0.1\n"),
        ("a.log", b"\x00\x01\x02\x03" * 50),
        ("README.md", "# log\n"),
        ("requirements.txt", "torch==2.0\n"),
        ("LICENSE", "MIT\n"),
        ("train.py", "import os\n"),
        ("run.sh", "echo\n"),
        ("debug-internal.log", "2026-03-04 05:06:07 INFO x\n"),
        ("empty.log", ""),
        ("notes.txt", "We should train longer.\n"),
        ("latest_checkpointed_iteration.txt", "450"),
        ("nul.log", b"\0" * 100),
        ("args.txt", '{\n  "lr": 0.1\n}\n'),
    ],
)
def test_others_are_not(tmp_path: Path, name: str, text: str | bytes) -> None:
    assert not claims(tmp_path, name, text)


def _box(step: int) -> str:
    rows = [
        ("rollout/", ""),
        ("   ep_rew_mean", step / 50),
        ("time/", ""),
        ("   total_timesteps", step),
        ("train/", ""),
        ("   loss", 1 / step),
    ]
    border = "-" * 40 + "\n"
    return border + "".join(f"| {name:20} | {value:<10} |\n" for name, value in rows) + border


def test_notes_are_a_log_where_they_are_boxes_of_one(tmp_path: Path) -> None:
    boxes = "# lr 0.0005\n\n```\n" + "".join(map(_box, range(100, 3000, 100))) + "```\n"
    assert claims(tmp_path, "results lr 0.0005.md", boxes)
    stamped = "# Output\n\n```\n" + "[2023-11-28 18:18:14,200] torch._dynamo: [WARNING] due to:\n" * 40 + "```\n"
    assert claims(tmp_path, "job_0.md", stamped)
    assert claims(tmp_path, "job_1.md", "# Output\nKeyboardInterrupt\n\n# LSBATCH: User input\n#!/bin/sh\n#BSUB -n 1\n")
    text = "We trained longer and it helped, as the table shows.\n" * 20 + _box(100)  # a report that quotes one box
    assert not claims(tmp_path, "README.md", text)
    summary = "| method | steps | reward | loss |\n|---|---|---|---|\n" + "".join(
        f"| m{i} | {i}00 | {i}.5 | 0.{i} |\n" for i in range(1, 9)
    )
    assert not claims(tmp_path, "README.md", "# Results\n" + summary + "Words on it.\n" * 3)


def test_same_lines_by_one_regex_give_what_each_line_says(tmp_path: Path) -> None:
    """Thousands of alike lines take the fast lane; values, order, clocks, ranks and places stay those of the lines."""
    text = "".join(
        f"[rank1]:2026-03-04 05:{i // 60 % 60:02}:{i % 60:02},500 - root - INFO - step: {i:4d}  loss:  {i / 8:.3f}  tps: {i + 1000:,}\n"
        for i in range(1, 3001)
    )
    tables, gaps, notes = log(tmp_path, text)
    rows = tables["metrics"]
    assert [r["at"] for r in rows] == [i for i in range(1, 3001) for _ in range(2)]
    assert series(tables, "loss") == [(i, i / 8) for i in range(1, 3001)]
    assert series(tables, "tps") == [(i, i + 1000.0) for i in range(1, 3001)]
    assert {r["rank"] for r in rows} == {1}
    assert [rows[0]["time"], rows[120]["time"]] == [1772600401.5, 1772600461.5]
    assert (gaps, notes) == ([], ["clock without zone, read as UTC"])


def test_duplicate_steps_stay_in_the_order_of_the_file(tmp_path: Path) -> None:
    tables, _, _ = log(tmp_path, "".join(f"step {i} loss {v}\n" for i, v in [(1, 3.0), (2, 2.0), (3, 1.0), (2, 1.5), (3, 1.25), (3, 9.0)]))
    assert series(tables, "loss") == [(1, 3.0), (2, 2.0), (3, 1.0), (2, 1.5), (3, 1.25), (3, 9.0)]


def test_steps_within_an_episode_are_laid_end_to_end(tmp_path: Path) -> None:
    tables, _, _ = log(tmp_path, "".join(f"i_ep {e}: step:{i} reward: {10.0 * e + i}\n" for e in range(3) for i in range(0, 50, 10)))
    steps = [s for s, _ in series(tables, "reward")]
    assert steps == sorted(set(steps)) and len(steps) == 15


def test_megatron_log(tmp_path: Path) -> None:
    line = (
        " [2026-03-04 05:06:{0:02}]  iteration {0:8d}/     500 | consumed samples: {1:12d} | elapsed time per iteration (ms): 99.5 |{2} "
        "loss scale: 1.0 | grad norm: {3} | number of nan iterations:   {4} |\n"
    )
    text = (
        "------------------------ arguments ------------------------\n  lr .................. 0.003\n  fp16 ................ True\n"
        "-------------------- end of arguments ---------------------\n"
        + "".join(line.format(i, i * 8, " lm loss: 2.500000E+00 |", 0.5, 0) for i in range(1, 5))
        + line.format(5, 40, "", "nan", 1)
        + " validation loss at iteration 5 | lm loss value: 2.000000E+00 |\n"
    )
    tables, _, _ = log(tmp_path, text)
    assert [(c["key"], json.loads(c["value"])) for c in tables["config"]] == [("lr", 0.003), ("fp16", True), ("total_steps", 500)]
    assert series(tables, "lm loss") == [(i, 2.5) for i in range(1, 5)]  # nothing is made up for the line without
    assert math.isnan(series(tables, "grad norm")[-1][1])
    assert series(tables, "validation lm loss value") == [(5, 2.0)]
    missing = [e for e in tables["events"] if e["kind"] == "missing_field"]
    assert [(e["step"], e["at"]) for e in missing] == [(5, 9)]


def test_epochs_and_iterations(tmp_path: Path) -> None:
    from_one = "".join(f"Epoch [{e}/3], Step [{i}/20], Loss: {e}.5\n" for e in (1, 2, 3) for i in (10, 20))
    assert [s for s, _ in series(log(tmp_path, from_one)[0], "Loss")] == [10, 20, 30, 40, 50, 60]
    from_zero = "".join(f"Train: {e} [{i:4d}/20 ( 50%)]  Loss: {e}.5 (1.0)\n" for e in (0, 1) for i in (0, 10))
    assert [s for s, _ in series(log(tmp_path, from_zero)[0], "Loss")] == [0, 10, 20, 30]
    whole_run = "".join(f"epoch {1 + i // 20} | step {i}/60 | loss 2.0\n" for i in (10, 20, 30, 40))
    assert [s for s, _ in series(log(tmp_path, whole_run)[0], "loss")] == [10, 20, 30, 40]
    only_epochs = "".join(f"Epoch {e}/3 - loss: 1.{e} - val_loss: 2.{e}\n" for e in (1, 2, 3))
    assert series(log(tmp_path, only_epochs)[0], "val_loss") == [(1, 2.1), (2, 2.2), (3, 2.3)]


def test_keras_heading_gives_the_epoch(tmp_path: Path) -> None:
    tables, _, _ = log(
        tmp_path, "Epoch 1/2\n 5/40 ━━ 1s - loss: 9.0\r40/40 ━━ 5s - loss: 3.0 - val_loss: 4.0\nEpoch 2/2\n40/40 ━━ 5s - loss: 2.0\n"
    )
    assert series(tables, "loss") == [(5, 9.0), (40, 3.0), (80, 2.0)]
    assert series(tables, "epoch") == [(5, 1.0), (80, 2.0)]  # once a heading


def test_steps_below_a_heading_of_the_epoch_begin_anew_with_it(tmp_path: Path) -> None:
    """As paddle.hapi prints them: `step 10/20` counts within the epoch that stands above it, an evaluation to a total of its own."""
    epoch = "".join(f"step {i}/20 - loss: {{e}}.5\n" for i in (10, 20)) + "Eval begin...\nstep 5/5 - loss: 9.{e}\nEval samples: 80\n"
    text = "".join(f"Epoch {e}/3\n" + epoch.format(e=e) for e in (1, 2, 3))
    tables, _, _ = log(tmp_path, text)
    assert series(tables, "loss") == [(10, 1.5), (20, 1.5), (30, 2.5), (40, 2.5), (50, 3.5), (60, 3.5)]
    assert series(tables, "eval loss") == [(20, 9.1), (40, 9.2), (60, 9.3)]
    over_the_run = "".join(f"Epoch {1 + i // 30}/2\nstep {i}/60 - loss: 2.0\n" for i in (10, 20, 30, 40, 50, 60))
    assert [s for s, _ in series(log(tmp_path, over_the_run)[0], "loss")] == [10, 20, 30, 40, 50, 60]


def test_batches_of_an_evaluation_stand_where_training_stands(tmp_path: Path) -> None:
    epoch = "epoch:[ {e}/3 ] train step:0 loss: {e}.1\nepoch:[ {e}/3 ] train step:100 loss: {e}.2\nepoch:[ {e}/3 ] val step:0 loss: {e}.3\n"
    tables, _, _ = log(tmp_path, "".join(epoch.format(e=e) for e in (1, 2, 3)))
    assert series(tables, "loss") == [(0, 1.1), (100, 1.2), (101, 2.1), (201, 2.2), (202, 3.1), (302, 3.2)]
    assert series(tables, "val loss") == [(100, 1.3), (201, 2.3), (302, 3.3)]


def test_lines_without_step_take_the_one_before_but_summaries_none(tmp_path: Path) -> None:
    tables, _, _ = log(
        tmp_path,
        "step 100 loss 2.0\nval loss: 3.0\nstep 200 loss 1.5\nvalidation perplexity: 8.0\n"
        "final val_loss:1.25 val_bpb:0.5\nbest accuracy: 0.75\n",
    )
    assert series(tables, "val loss") == [(100, 3.0)]
    assert series(tables, "validation perplexity") == [(200, 8.0)]
    assert series(tables, "final val_loss") == [(None, 1.25)]
    assert series(tables, "best accuracy") == [(None, 0.75)]


def test_a_speed_is_what_its_unit_counts_and_a_rate_may_be_told_in_words(tmp_path: Path) -> None:
    speeds = "".join(f"[Epoch {e}][Batch 50], Speed: {e}.686 samples/sec, CrossEntropy=1.7{e}e-02\n" for e in (1, 2, 3))
    assert [value for _, value in series(log(tmp_path, speeds)[0], "Speed (samples/sec)")] == [1.686, 2.686, 3.686]
    rates = "".join(f"Epoch {e}/3\nlearning rate now {e}.5e-05\n44/44 - 6s - 133ms/step - loss: {e}.9\n" for e in (1, 2, 3))
    assert [value for _, value in series(log(tmp_path, rates)[0], "learning rate now")] == [1.5e-5, 2.5e-5, 3.5e-5]
    assert meaning("Speed (samples/sec)").name == "tput.samples" and meaning("learning rate now").name == "lr"


def test_the_number_of_the_epoch_in_front_below_its_bar(tmp_path: Path) -> None:
    line = "epoch {e}/8: 100%|██████| 24/24 [00:00<00:00, 416.73it/s]\n[{e:3d}] rec 61.{e} kl 0.04{e} val_rec 59.{e} gnorm 47.25\n"
    tables, _, _ = log(tmp_path, "".join(line.format(e=e) for e in range(1, 9)))
    assert [value for _, value in series(tables, "val_rec")] == [float(f"59.{e}") for e in range(1, 9)]
    other = line.replace("[{e:3d}]", "[{n:3d}]")  # another number is none of the epoch
    assert not series(log(tmp_path, "".join(other.format(e=e, n=90 - e) for e in range(1, 9)))[0], "val_rec")


def test_norms_between_bars_and_letters_of_a_loop(tmp_path: Path) -> None:
    tables, _, _ = log(tmp_path, "".join(f"it {i} | nll 5.{i} | lr 1.66e-04 | g 4.{i} | |w| 28.3{i}\n" for i in (1, 2, 3)))
    assert series(tables, "|w|") == [(i, float(f"28.3{i}")) for i in (1, 2, 3)]
    assert meaning("g", siblings=frozenset({"nll", "lr"})).name == "grad.norm" and meaning("g").name == "other/g"


@pytest.mark.parametrize("remark", ["", " (15 other patients)", " (held out)"])
def test_a_remark_behind_the_name_of_a_split(remark: str, tmp_path: Path) -> None:
    tables, _, _ = log(tmp_path, f"step 100 loss 2.0\nfinal test{remark}: loss 2.1693 acc 0.7333\n")
    assert series(tables, "loss") == [(100, 2.0)]
    assert series(tables, "test loss") == [(None, 2.1693)] and series(tables, "test acc") == [(None, 0.7333)]


def test_settings_before_the_first_step_are_no_metrics(tmp_path: Path) -> None:
    tables, _, _ = log(
        tmp_path,
        "Hyperparameters:\n  adam_eps: 1e-08\n  data_dir: /data/a\n\ntrain_batch_tokens:4096 iterations:900 lr:0.5\n"
        "seed:7\nstep:1/900 train_loss:3.5\n",
    )
    assert {c["key"]: json.loads(c["value"]) for c in tables["config"]} == {
        "adam_eps": 1e-8,
        "data_dir": "/data/a",
        "train_batch_tokens": 4096,
        "iterations": 900,
        "lr": 0.5,
        "seed": 7,
        "total_steps": 900,
    }
    assert [r["tag"] for r in tables["metrics"]] == ["train_loss"]


def test_blocks_under_a_heading(tmp_path: Path) -> None:
    olmo = "2026-03-04 05:06:07.5\thost:0\tolmo_core.x:84\tINFO\t[step={0}/90,epoch=1]\n    train/CE loss={1}\n    optim/LR (group 0)=2e-4\n    throughput/total tokens=1.5M\n"
    tables, _, _ = log(tmp_path, olmo.format(10, 2.5) + olmo.format(20, 2.25))
    assert series(tables, "train/CE loss") == [(10, 2.5), (20, 2.25)]
    assert series(tables, "optim/LR (group 0)") == [(10, 2e-4), (20, 2e-4)]
    assert series(tables, "throughput/total tokens") == [(10, 1.5e6), (20, 1.5e6)]
    composer = "[epoch={0}][batch=5/10]:\n\t Train loss/train/total: {1}\n\t Eval metrics/eval/Accuracy: 0.5\n"
    tables, _, _ = log(tmp_path, composer.format(0, 2.5) + composer.format(1, 2.25))
    assert series(tables, "loss/train/total") == [(5, 2.5), (15, 2.25)]
    assert series(tables, "metrics/eval/Accuracy") == [(5, 0.5), (15, 0.5)]


def test_rows_below_a_line_that_only_names_its_place(tmp_path: Path) -> None:
    """Coqui Trainer: GLOBAL_STEP is the step of the run, STEP that of the epoch; below an evaluation it counts its batches."""
    block = (
        " > EPOCH: {0}/9\n --> /content/run\n\n > TRAINING (2022-11-03 10:47:31)\n\n   --> STEP: 24/36 -- GLOBAL_STEP: {1}\n"
        "     | > loss: 3.5  (3.25)\n     | > grad_norm: 0.5  (2.75)\n     | > current_lr: 0.0002\n     | > step_time: 1.5  (1.25)\n"
        "     | > loss_mel: 19.0  (23.5)\n\n > EVALUATION\n\n   --> STEP: 0\n     | > loss: 4.5  (4.5)\n\n  --> EVAL PERFORMANCE\n"
        "     | > avg_loss: 4.25 (+0.125)\n\n"
    )
    tables, _, _ = log(tmp_path, block.format(0, 1000025) + block.format(1, 1000061))
    assert series(tables, "loss_mel") == [(1000025, 19.0), (1000061, 19.0)]
    assert series(tables, "loss (avg)") == [(1000025, 3.25), (1000061, 3.25)]
    assert series(tables, "evaluation loss") == [(1000025, 4.5), (1000061, 4.5)]
    assert series(tables, "eval avg_loss") == [(1000025, 4.25), (1000061, 4.25)]
    assert series(tables, "eval avg_loss (avg)") == []  # a change since the last evaluation, no mean


def test_a_heading_of_words_opens_no_block_before_a_step(tmp_path: Path) -> None:
    tables, _, _ = log(tmp_path, "iterations:20000\nstep 1 loss 2.5\n")
    assert {c["key"]: c["value"] for c in tables["config"]} == {"iterations": "20000"}
    tables, _, _ = log(tmp_path, "Evaluation\n  batch_size: 8\nstep 1 loss 2.5\n")
    assert [r["tag"] for r in tables["metrics"]] == ["loss"]


def test_tables_of_stable_baselines_and_ultralytics(tmp_path: Path) -> None:
    sb3 = (
        "-" * 30
        + "\n| rollout/ |  |\n|    ep_rew_mean | {1} |\n| time/ |  |\n|    total_timesteps | {0} |\n| train/ | |\n|    loss | 0.5 |\n"
        + "-" * 30
        + "\n"
    )
    tables, _, _ = log(tmp_path, sb3.format(2048, 10.5) + sb3.format(4096, 11.5))
    assert series(tables, "rollout/ep_rew_mean") == [(2048, 10.5), (4096, 11.5)]
    assert series(tables, "train/loss") == [(2048, 0.5), (4096, 0.5)]
    ultralytics = (
        "      Epoch    GPU_mem   box_loss   cls_loss  Instances       Size\n"
        "      1/3      2.6G      1.9      1.5         80        640:  50%|#####     | 4/8 [00:01<00:01]\r"
        "      1/3      2.6G      1.8      1.4         81        640: 100%|##########| 8/8 [00:02<00:00]\n"
        "                 Class     Images  Instances      Box(P          R      mAP50  mAP50-95): 100%|##| 2/2 [00:00]\n"
        "                   all        128        929      0.625       0.5       0.75       0.25\n"
    )
    tables, _, _ = log(tmp_path, ultralytics)
    assert series(tables, "box_loss") == [(1, 1.8)]  # the last drawing of the epoch
    assert series(tables, "val mAP50") == [(1, 0.75)]


def test_bars_keep_the_last_update_of_a_step_and_what_is_printed_behind(tmp_path: Path) -> None:
    bar = "train:  {0}%|##        | {0}/100 [00:01<00:09, 9.5it/s, loss={1}]"
    updates = [(1, 9.0), (1, 4.0), (2, 3.5), (3, 3.0), (3, 2.75), (4, 2.5)]
    tables, _, _ = log(tmp_path, "\r".join(bar.format(i, v) for i, v in updates) + "saved checkpoints/step_4.pt\ntraining finished\n")
    assert series(tables, "loss") == [(1, 4.0), (2, 3.5), (3, 2.75), (4, 2.5)]
    assert [(e["kind"], e["step"]) for e in tables["events"] if e["kind"] != "plan"] == [("checkpoint_saved", 4), ("finished", 4)]


def test_transformers_takes_the_step_from_the_bar(tmp_path: Path) -> None:
    text = (
        "\r 10%|#         | 5/50 [00:01<00:09,  5.0it/s]\r          \r{'loss': 2.5, 'grad_norm': nan, 'epoch': 0.1}\n"
        "\r 10%|#         | 5/50 [00:01<00:09,  5.0it/s]\r 20%|##        | 10/50 [00:02<00:08,  5.0it/s]{'loss': '2.25', 'epoch': '0.2'}\n"
        "\r  0%|          | 0/7 [00:00<?, ?it/s]\r100%|##########| 7/7 [00:00<00:00]\n{'eval_loss': 2.0, 'epoch': 0.2}\n"
        "{'train_runtime': 12.5, 'train_loss': 2.4, 'epoch': 0.2}\n"
    )
    tables, _, notes = log(tmp_path, text)
    assert series(tables, "loss") == [(5, 2.5), (10, 2.25)]
    assert series(tables, "eval_loss") == [(10, 2.0)]
    assert series(tables, "train_loss") == [(None, 2.4)]
    assert notes == ["steps of {'loss': ...} lines: taken from the progress bar"]


def test_transformers_5_prints_the_end_of_an_epoch_as_a_whole_number(tmp_path: Path) -> None:
    head = "***** Running training *****\n  Num examples = 1600\n  Instantaneous batch size per device = 32\n  Gradient Accumulation steps = 1\n"
    rows = "".join(f"{{'loss': '{2 - i / 20:.3g}', 'epoch': '{i / 5:g}'}}\n" for i in range(1, 11))
    again = "".join(f"{{'loss': '{2 - i / 20:.3g}', 'epoch': '{i / 5:g}'}}\n" for i in range(11, 16))
    (tmp_path / "train.out").write_text(head + rows + "Resuming training from exp/checkpoint-100\n" + head + again)
    run = parsers.read(str(tmp_path))
    steps = [r["step"] for r in run.tables["metrics"].to_pylist() if r["tag"] == "loss"]
    assert steps == list(range(10, 160, 10))
    assert [a["steps"] for a in run.attempts] == [[10, 100], [110, 150]]


def test_a_dict_behind_lines_that_name_steps_is_of_the_last_of_them(tmp_path: Path) -> None:
    """As Lightning prints the results of a test at the end."""
    rows = "".join(f"epoch {i} step {72 * i} train_loss {1 / i}\n" for i in range(1, 7))
    (tmp_path / "train.log").write_text(rows + "[{'test_loss': 0.082, 'test_mae': 0.2285}]\n")
    run = parsers.read(str(tmp_path / "train.log"))
    assert [r["step"] for r in run.tables["metrics"].to_pylist() if r["tag"] == "test_loss"] == [432]


def test_evaluations_before_the_first_step_do_not_hold_the_count(tmp_path: Path) -> None:
    rows = "".join(f"{{'loss': {3 - i / 8}, 'epoch': {i / 8}}}\n" for i in range(1, 9))
    (tmp_path / "train.log").write_text("{'eval_loss': 3.5, 'epoch': 0}\n" + rows)
    run = parsers.read(str(tmp_path / "train.log"))
    assert [r["step"] for r in run.tables["metrics"].to_pylist() if r["tag"] == "loss"] == [*range(1, 9)]


def test_transformers_without_bar(tmp_path: Path) -> None:
    rows = "".join(f"{{'loss': {3 - i / 8}, 'epoch': {i * 20 / 125:.4g}}}\n" for i in range(1, 9))
    header = "***** Running training *****\n  Num examples = 2,000\n  Instantaneous batch size per device = 16\n  Gradient Accumulation steps = 1\n"
    tables, _, _ = log(tmp_path, header + rows)
    assert [s for s, _ in series(tables, "loss")] == [20, 40, 60, 80, 100, 120, 140, 160]
    tables, _, notes = log(tmp_path, rows)
    assert [s for s, _ in series(tables, "loss")] == [1, 2, 3, 4, 5, 6, 7, 8]
    assert "names no steps" in notes[0]


def test_overflows_are_events_and_a_series(tmp_path: Path) -> None:
    text = (
        "step=10 loss=2.0\n"
        + "".join(
            f"[2026-03-04 05:06:07,008] [INFO] [x.py:1:f] Reducing dynamic loss scale from {s} to {s // 2}\n" * 4 for s in (1024, 512)
        )
        + "step=11 loss=2.0\n"
    )
    tables, _, _ = log(tmp_path, text)  # four ranks say the same
    assert series(tables, "loss_scale") == [(10, 512.0), (10, 256.0)]
    assert [e["kind"] for e in tables["events"]] == ["overflow", "overflow"]


def test_ranks_interleaved(tmp_path: Path) -> None:
    tables, _, _ = log(tmp_path, "".join(f"{r}: step {s} | loss {s}.{r}\n" for s in range(1, 6) for r in (0, 1)))  # srun -l
    assert [(r["step"], r["rank"], r["value"]) for r in tables["metrics"]][:4] == [(1, 0, 1.0), (1, 1, 1.1), (2, 0, 2.0), (2, 1, 2.1)]
    traces = (
        "[rank1]: Traceback (most recent call last):\n[rank0]: Traceback (most recent call last):\n"
        '[rank1]:   File "a.py", line 1, in f\n[rank0]:   File "b.py", line 2, in g\n[rank1]:     f()\n[rank0]:     g()\n'
        "[rank1]: ValueError: one\n[rank0]: ValueError: null\nstep 3 loss 1.0\n"
    )
    tables, _, _ = log(tmp_path, traces)
    assert [(e["rank"], e["at"], e["text"]) for e in tables["events"]] == [
        (1, 1, "ValueError: one  [a.py:1 in f]"),
        (0, 2, "ValueError: null  [b.py:2 in g]"),
    ]
    assert series(tables, "loss") == [(3, 1.0)]


def test_a_clock_in_front_of_each_line_is_no_label_of_srun(tmp_path: Path) -> None:
    tables, _, _ = log(tmp_path, "".join(f"09:12:{s:02d} step {s} | loss {9 - s}.5\n" for s in range(1, 9)))
    found = [(r["step"], r["rank"]) for r in tables["metrics"] if r["tag"] == "loss"]
    assert found == [(s, None) for s in range(1, 9)]


def test_program_text_gives_nothing(tmp_path: Path) -> None:
    source = (
        "import torch\nfrom torch import nn\n\nclass Model(nn.Module):\n    def forward(self, x):\n        loss = 0.5\n        step = 3\n"
        "        if torch.isnan(loss):\n            raise ValueError('nan detected')\n        return loss\n\n    lr: float = 0.1\n"
        "    print(f'step:{step} loss:{loss}')\n"
    ) * 3
    tables, _, _ = log(tmp_path, source + "=" * 100 + "\nstep:1/9 loss:2.5\nstep:2/9 loss:2.25\n")
    assert [(r["tag"], r["step"], r["value"]) for r in tables["metrics"]] == [("loss", 1, 2.5), ("loss", 2, 2.25)]
    assert not tables["events"]


@pytest.mark.parametrize("head", ["Epoch 0, Step {s}, ", "Train Epoch: 1 [{s}/90] ", "[Epoch 1] step {s} ", "Iteration {s}: "])
def test_lines_that_count_are_read_behind_an_example_in_a_warning(tmp_path: Path, head: str) -> None:
    """Paddle quotes a program in a warning right above the first line of the loop."""
    source = "WARNING: return format changed, such as\n\nimport numpy as np\nfrom paddle.io import Dataset\n\nclass A(Dataset):\n    def __len__(self):\n        return 10\n\n"
    tables, _, _ = log(tmp_path, source + "".join(f"{head.format(s=s)}loss so far is {3 - s / 90:.4f}\n" for s in range(1, 30)))
    assert len([r for r in tables["metrics"] if "loss" in r["tag"]]) == 29


def test_a_line_that_a_logger_stamped_ends_a_programs_text(tmp_path: Path) -> None:
    """mmcv prints its config as Python above the first iteration."""
    config = "import torch\nimport numpy\nfrom torch import nn\nmodel = dict(type='A')\n    step=[8, 11])\n"
    line = "2021-04-12 20:13:56,752 - mmdet - INFO - Epoch [1][50/9870] lr: 9.9e-04, loss: 0.3030"
    tables, _, _ = log(tmp_path, f"{config}{line}\nKilled\n")
    assert [(r["tag"], r["value"]) for r in tables["metrics"] if r["tag"] == "loss"] == [("loss", 0.303)]
    assert "signal" in {e["kind"] for e in tables["events"]}


def test_batches_that_the_loader_printed(tmp_path: Path) -> None:
    tables, _, _ = log(tmp_path, "2026-03-04 05:06:07 DEBUG x: batch step=3 shards=['a.bin', 'b.bin'] ids=[17, 4]\n")
    assert [(b["step"], b["position"], b["sample"], b["shard"], b["how"]) for b in tables["batches"]] == [
        (3, 0, "17", "a.bin", "recorded"),
        (3, 1, "4", "b.bin", "recorded"),
    ]


@pytest.mark.parametrize(
    ("line", "samples", "metrics"),
    [
        ("step {i} loss 1.5 sample_ids=[17, 4] lr 0.1", ["17", "4"], ["loss", "lr"]),
        ("[train] iter: {i}, loss: 1.5, batch_indices: (17, 4)", ["17", "4"], ["loss"]),
        ("global_step={i} loss=1.5 doc_ids=['a', 'b', ...]", ["a", "b"], ["loss"]),
        ("step {i} loss=1.5 indices=[17 4 23]", ["17", "4", "23"], ["loss"]),
        ("step {i} sample_ids=[17, 4]", ["17", "4"], []),
        ("step {i} loss 1.5 input_ids=[17, 4]", [], ["loss"]),
        ("loss 1.5 sample_ids=[17, 4]", [], None),
    ],
)
def test_ids_within_a_line_of_metrics(tmp_path: Path, line: str, samples: list[str], metrics: list[str] | None) -> None:
    tables, _, _ = log(tmp_path, "".join(line.format(i=i) + "\n" for i in range(1, 40)))
    assert [(b["step"], b["sample"]) for b in tables["batches"]] == [(i, x) for i in range(1, 40) for x in samples]
    if metrics is not None:
        found = {(r["step"], r["tag"]) for r in tables["metrics"]}
        assert found >= {(i, tag) for i in range(1, 40) for tag in metrics}
        assert samples == [] or {t for _, t in found} == set(metrics)


def test_secrets_stay_inside(tmp_path: Path) -> None:
    tables, _, _ = log(
        tmp_path, "Hyperparameters:\n  hf_token: hf_abcdefghijklmnopqrstuvwx\nRuntimeError: failed with api_key=abcdef123456\n"
    )
    assert "abcdef" not in json.dumps(tables)
    assert tables["config"]
    assert tables["events"]


def test_a_cut_end_costs_its_number_only(tmp_path: Path) -> None:
    tables, gaps, _ = log(tmp_path, "step 1 | loss 2.5 | lr 0.125\nstep 2 | loss 2.25 | lr 0.1")
    assert series(tables, "loss") == [(1, 2.5), (2, 2.25)]
    assert series(tables, "lr") == [(1, 0.125)]
    assert [(g.at, g.lost) for g in gaps] == [("line 2", 1)]
    assert log(tmp_path, "step 1 | loss 2.5 |")[1] == []


def test_a_hole_of_nuls_costs_what_it_covers(tmp_path: Path) -> None:
    rows = [f"step {i} | loss {i}.25 | lr 0.5\n".encode() for i in range(1, 9)]
    damaged = b"".join(rows[:4]) + rows[4][:16] + b"\0" * 5000 + b"".join(rows[5:])
    tables, gaps, _ = log(tmp_path, damaged)
    assert [s for s, _ in series(tables, "loss")] == [1, 2, 3, 4, 6, 7, 8]
    assert any("5,000 NUL" in g.what and g.at == "line 5" for g in gaps)


def test_wrong_bytes_and_endless_lines(tmp_path: Path) -> None:
    text = b"step 1 loss 2.5\n\xff\xfe\xfa\x80 rubbish\nstep 2 loss 2.25\n" + b"x" * 3_000_000 + b"\nstep 3 loss 2.0\n"
    tables, gaps, _ = log(tmp_path, text)
    assert series(tables, "loss") == [(1, 2.5), (2, 2.25), (3, 2.0)]
    assert {g.at for g in gaps} == {"line 4"}
    assert tables["metrics"][-1]["at"] == 5


def test_a_bar_in_one_line_of_megabytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(console, "BLOCK", 1 << 20)
    bar = "\r".join(f" 50%|#####     | {i}/60000 [00:01<00:09, 9.5it/s, loss={i / 4}]" for i in range(1, 40001))
    tables, gaps, _ = log(tmp_path, bar + "\nstep 60000 loss 1.0\n")
    assert len(bar) > 2 * console.BLOCK
    assert series(tables, "loss") == [*[(i, i / 4) for i in range(1, 40001)], (60000, 1.0)]
    assert {r["at"] for r in tables["metrics"]} == {1, 2}
    assert gaps == []


def test_utf16(tmp_path: Path) -> None:
    assert series(log(tmp_path, "step 1 loss 2.5\nstep 2 loss 2.25\n".encode("utf-16"))[0], "loss") == [(1, 2.5), (2, 2.25)]


def test_names_may_stand_in_front_of_all_values(tmp_path: Path) -> None:
    lines = "".join(
        f"2019-07-24 00:33:{i:02d},654 - INFO - training curr batch, loss, lr: {100 * i}, {3 - i / 8}, 0.001\n" for i in range(6)
    )
    tables, _, _ = log(tmp_path, lines)
    assert series(tables, "loss") == [(100 * i, 3 - i / 8) for i in range(6)]
    assert not log(tmp_path, "sizes of the train, val, test: 100, 20\n")[0]["metrics"]  # three names, two values


@pytest.mark.parametrize("where", ["", " @ 01:04 PM"])
def test_names_may_stand_behind_their_values(tmp_path: Path, where: str) -> None:
    text = "".join(f"Epoch {e}{where} : {1 / e:.4f} C.E. Loss, {90 + e}.5% Accuracy\n" for e in (1, 2, 4))
    tables, _, _ = log(tmp_path, text)
    assert series(tables, "Loss") == [(1, 1.0), (2, 0.5), (4, 0.25)]
    assert series(tables, "Accuracy") == [(1, 91.5), (2, 92.5), (4, 94.5)]


def test_a_checksum_is_a_number_with_letters_or_without(tmp_path: Path) -> None:
    """Only whether two ranks have the same is asked of it."""
    text = "step 20 loss 4.25 wsum cc2b9d0e wnorm 59.5\nstep 40 loss 3.5 wsum 13420639 wnorm 60.0\nstep 60 loss_sum 12345678 loss 3.0\n"
    tables, _, _ = log(tmp_path, text)
    assert series(tables, "wsum") == [(20, float(0xCC2B9D0E)), (40, float(0x13420639))]
    assert series(tables, "loss_sum") == [(60, 12345678.0)]


def test_the_last_line_is_kept_as_it_stands(tmp_path: Path) -> None:
    tables, _, _ = log(tmp_path, "step 1 loss 2.0\nGenerating samples at epoch 125\n-----\n\n")
    assert [(e["at"], e["step"], e["text"]) for e in tables["last"]] == [(2, 1, "Generating samples at epoch 125")]
    tables, _, _ = log(tmp_path, "step 1 loss 2.0\n 1%|   | 1/90 [00:01<01:29]\r 2%|   | 2/90 [00:02<01:28]")
    assert [(e["at"], e["text"]) for e in tables["last"]] == [(2, "2%|   | 2/90 [00:02<01:28]")]
    tables, _, _ = log(tmp_path, "nothing is measured here\n")
    assert [e["kind"] for e in tables["last"]] == ["last_words"]


def test_the_tail_of_a_traceback_is_one_and_a_printed_stack_is_none(tmp_path: Path) -> None:
    tail = '  File "train.py", line 94, in main\n    trainer.fit(model)\n    ^^^^^^^^^^^[rank1]:[E1003 x.cpp:607] [Rank 1] Watchdog caught collective operation timeout\n'
    tables, _, _ = log(tmp_path, tail + '  File "fit.py", line 3, in fit\n    return f(x)\nValueError: too small\n')
    assert [(e["kind"], e["at"]) for e in tables["events"]] == [("nccl", 3), ("traceback", 1)]
    tables, _, _ = log(tmp_path, '  File "train.py", line 94, in main\n    return f(x)\nstep 3 loss 1.0\n')
    assert not tables["events"]


def test_a_traceback_that_a_report_quotes_ends_at_its_own_margin(tmp_path: Path) -> None:
    quoted = (
        'Traceback (most recent call last):\n  File "a.py", line 1, in f\n    print(x)\n    ~~~^^^\nUnicodeEncodeError: no such character'
    )
    report = "".join(f"    {line}\n" for line in quoted.splitlines())
    tables, _, _ = log(tmp_path, f"ERROR REPORT\n\n{report}\n`$ conda run`\n")
    assert [e["text"].split("  [")[0] for e in tables["events"] if e["kind"] == "traceback"] == ["UnicodeEncodeError: no such character"]


def test_floods_are_counted(tmp_path: Path) -> None:
    tables, _, notes = log(tmp_path, "".join(f"RuntimeError: worker {i} failed\n" for i in range(500)))
    assert len(tables["events"]) == 200
    assert any("300 more lines" in n for n in notes)


@pytest.mark.parametrize("seed", range(6))
def test_any_damage_leaves_an_answer(tmp_path: Path, seed: int) -> None:
    import random

    rng = random.Random(seed)
    base = b"".join(
        f"[2026-03-04 05:06:07] step {i}/999 | loss {i / 7:.3f} | lr 1e-{i % 9}\n{{'loss': {i}, 'epoch': 0.{i}}}\n".encode()
        for i in range(60)
    )
    for _ in range(25):
        damaged = bytearray(base)
        for _ in range(rng.randint(1, 20)):
            i = rng.randrange(len(damaged))
            damaged[i : i + rng.randint(0, 40)] = rng.choice(
                [b"", b"\0" * 9, b"\r", b"\n", b"\xff\xfe", b"9" * 40, b"%|", b"[[[", b"1e999"]
            )
        tables, _, _ = log(tmp_path, bytes(damaged))
        assert len(tables["metrics"]) > 0


# -- the real logs ----------------------------------------------------------------------------------------------------

RUNS = SHARED / "open" / "runs"


@pytest.mark.skipif(not RUNS.exists(), reason="the shared runs are not here")
def test_every_loss_of_the_real_logs_is_read() -> None:
    polars = pytest.importorskip("polars")
    truth = polars.read_parquet(SHARED / "open" / "runs_scalars.parquet").filter(polars.col("format") == "console")
    missed: dict[str, int] = {}
    for (run, file), rows in truth.group_by("run", "file"):
        path = RUNS / run / file
        if path.stat().st_size > 1_000_000:
            continue
        wanted = {f"{v:.6g}" for v in rows["value"]}
        got = {f"{r['value']:.6g}" for r in read(path)[0]["metrics"]}
        with path.open("rb") as f:
            assert console.claims(path, f.read(HEAD_BYTES)), path
        if wanted - got:
            missed[f"{run}/{file}"] = len(wanted - got)
    assert missed == {}


@pytest.mark.skipif(not (SHARED / "open" / "zoo").exists(), reason="the shared zoo is not here")
def test_logs_of_the_zoo_have_their_loss_at_every_step() -> None:
    logs = [
        p for p in (SHARED / "open" / "zoo" / "runs").rglob("*") if p.suffix in {".log", ".out"} or p.name in {"console.txt", "stdout.txt"}
    ]
    seen = 0
    for path in logs:
        with path.open("rb") as f:
            head = f.read(HEAD_BYTES)
        if not console.claims(path, head):
            continue
        losses = [(r["step"], r["value"]) for r in read(path)[0]["metrics"] if r["tag"].lower() in {"loss", "lm loss"}]
        assert all(s is not None for s, _ in losses), path
        seen += bool(losses)
    assert seen > 25


def test_a_loss_whose_lines_name_no_step_is_counted(tmp_path: Path) -> None:
    (tmp_path / "train.out").write_text(
        "".join(f"LR: 0.001, Acc: {i}.0000, Loss: {3 - i / 30:.4f}\n" for i in range(40)) + "Final loss: 1.7\n"
    )
    run = parsers.read(tmp_path)
    rows = [r for r in run.tables["metrics"].to_pylist() if r["tag"] == "Loss"]
    assert [r["step"] for r in rows] == list(range(1, 41)) and rows[3]["value"] == 2.9
    assert "counted" in run.sources[0].note
    (tmp_path / "train.out").write_text("step 5 loss 2.0\n" + "".join(f"LR: 0.001, Loss: {3 - i / 30:.4f}\n" for i in range(40)))
    assert "counted" not in parsers.read(tmp_path).sources[0].note


def test_rewards_without_a_step_are_counted_and_a_count_stands_behind_a_percentage(tmp_path: Path) -> None:
    (tmp_path / "train.log").write_text("".join(f"19:24:{i:02} - INFO \t|    Cumulative Reward: {i}.0\n" for i in range(40)))
    assert parsers.read(tmp_path).tables["metrics"]["step"].to_pylist() == list(range(1, 41))
    (tmp_path / "train.log").write_text("".join(f"[{i / 40:.2%}] batch_index={64 * i} loss={3 - i / 30:.4f}\n" for i in range(1, 41)))
    steps = {r["step"] for r in parsers.read(tmp_path).tables["metrics"].to_pylist()}
    assert steps == {64 * i for i in range(1, 41)}


def test_a_log_may_be_named_in_another_language(tmp_path: Path) -> None:
    (tmp_path / "训练日志.txt").write_text("(conv): Conv2d(3, 16)\n" * 400 + printed_epochs())
    assert parsers.read(tmp_path).tables["metrics"].num_rows == 12


def printed_epochs() -> str:
    return "".join(f"Training epoch: {i}\nMean training loss: {3 - i / 30:.4f}.\n" for i in range(1, 13))


def test_a_line_that_names_its_epoch_is_a_report_whatever_its_words(tmp_path: Path) -> None:
    text = "".join(f"Epoch [{e}/9] Recon: {1 / e:.4f} | KL: {3 / e:.4f} | Phys: 0.5000 (w=0.100)\n" for e in range(1, 5))
    tables, gaps, _ = log(tmp_path, text)
    found = [(r["step"], r["value"]) for r in tables["metrics"] if r["tag"] == "KL"]
    assert not gaps and found == [(e, pytest.approx(3 / e, abs=1e-4)) for e in range(1, 5)]


def test_a_dict_behind_an_epoch_does_not_take_its_step(tmp_path: Path) -> None:
    text = "".join(f"Epoch {e}: Train Loss: {3 / e:.4f}, MAP: {{'test_map@20': {0.1 * e:.2f}}}\n" for e in [1, 2, 3, 1, 2])
    tables, _, _ = log(tmp_path, text)
    assert [r["step"] for r in tables["metrics"] if r["tag"] == "Train Loss"] == [1, 2, 3, 1, 2]


@pytest.mark.parametrize(
    ("above", "level"), [("Exception in thread Thread-4:", "warning"), ("--- Logging error ---", "warning"), ("Epoch 2 begins", "error")]
)
def test_a_traceback_that_ends_no_process_is_a_warning(tmp_path: Path, above: str, level: str) -> None:
    stack = 'Traceback (most recent call last):\n  File "/x/a.py", line 9, in run\n    f()\nValueError: gone\n'
    tables, _, _ = log(tmp_path, f"step 1 loss 2.0\nstep 2 loss 1.0\n{above}\n{stack}")
    assert [e["level"] for e in tables["events"] if e["kind"] == "traceback"] == [level]


def test_a_thread_is_known_by_its_first_frame_where_two_write_over_each_other(tmp_path: Path) -> None:
    head, frame = "Traceback (most recent call last):\n", '  File "/x/threading.py", line 1016, in _bootstrap_inner\n    self.run()\n'
    tables, _, _ = log(tmp_path, f"step 1 loss 2.0\nstep 2 loss 1.0\nEnd training...\n{head}{head}{frame}OSError: handle is closed\n")
    assert [(e["kind"], e["level"]) for e in tables["events"] if e["kind"] in ("traceback", "finished")] == [
        ("finished", "info"), ("traceback", "warning"),
    ]  # fmt: skip


def test_a_step_a_split_and_its_loss(tmp_path: Path) -> None:
    text = (
        "0 val 11.2355\n0 hella 0.2463\n" + "".join(f"{i} train {11 - i / 10:.6f}\n" for i in range(6)) + "5 val 10.9000\n10 val 10.1000\n"
    )
    tables, _, _ = log(tmp_path, text, "log.txt")
    assert [(r["step"], r["value"]) for r in tables["metrics"] if r["tag"] == "train"] == [
        (i, pytest.approx(11 - i / 10)) for i in range(6)
    ]
    assert [r["step"] for r in tables["metrics"] if r["tag"] == "val"] == [0, 5, 10]


@pytest.mark.parametrize(
    ("counts", "steps"),
    [([20, 40, 20, 40, 20, 40], [20, 40, 60, 80, 100, 120]), ([20, 40, 60, 80, 100, 120], [20, 40, 60, 80, 100, 120])],
    ids=["within each epoch", "through the run"],
)
def test_iterations_below_the_heading_of_their_epoch(tmp_path: Path, counts: list[int], steps: list[int]) -> None:
    lines = [f"iter:{n:04d} loss_train: {2 - i / 10:.4f} acc_train: 0.5000" for i, n in enumerate(counts)]
    text = "".join(f"Epoch: {e + 1:04d}\n" + "\n".join(lines[2 * e : 2 * e + 2]) + "\nloss= 0.56 accuracy= 0.83\n" for e in range(3))
    tables, _, _ = log(tmp_path, text)
    assert [r["step"] for r in tables["metrics"] if r["tag"] == "loss_train"] == steps


@pytest.mark.parametrize(("word", "steps"), [("the", {340, 220, 360}), ("best", {None}), ("new best", {340, 220, 360})])
def test_a_step_behind_other_words_does_not_count_within_an_epoch(tmp_path: Path, word: str, steps: set[int | None]) -> None:
    """Nor is it where the log is, where it tells where the best was."""
    text = "".join(f"Epoch {e}\n{word} score: 0.{n} found at iteration {n} loss 0.5\n" for e, n in ((1, 340), (2, 220), (3, 360)))
    tables, _, _ = log(tmp_path, text)
    assert {r["step"] for r in tables["metrics"]} <= steps


def test_all_below_an_epoch_that_stands_alone_is_of_it(tmp_path: Path) -> None:
    text = "".join(f"Epoch {e}\nstart training\n" + "reading\n" * 9 + f"train_loss {2 - e / 8}\n" for e in range(8))
    tables, _, _ = log(tmp_path, text)
    assert [(r["step"], r["value"]) for r in tables["metrics"]] == [(e, 2 - e / 8) for e in range(8)]
    head = "epoch: 10\nbatch: 32\n" + "reading\n" * 9  # a setting, which comes once
    tables, _, _ = log(tmp_path, f"{head}train_loss {2.5}\n")
    assert not [r for r in tables["metrics"] if r["step"] is not None]


def test_a_step_beside_a_batch_of_how_many_is_the_step_and_a_list_behind_ids_the_samples(tmp_path: Path) -> None:
    line = "epoch {} batch {}/4 step {} loss {}.25 ids [{}, {}]\n"
    tables, _, _ = log(tmp_path, "".join(line.format(3 + s // 4, s % 4 + 1, 40 + s, 9 - s, s, s + 70) for s in range(8)))
    assert [(r["step"], r["value"]) for r in tables["metrics"] if r["tag"] == "loss"] == [(40 + s, 9.25 - s) for s in range(8)]
    assert [(r["step"], r["sample"]) for r in tables["batches"]][:3] == [(40, "0"), (40, "70"), (41, "1")]


@pytest.mark.parametrize(("lines", "steps"), [(1, [None]), (3, [1, 2, 3])])
def test_one_dict_alone_is_a_result_and_several_are_counted(lines: int, steps: list[int | None], tmp_path: Path) -> None:
    """Lightning's `callback_metrics`, printed once at the end, are of no first step."""
    (tmp_path / "stdout.log").write_text(
        "Seed set to 1\n" + "".join(f"{{'loss/train': tensor({3 - i}.5), 'gnorm': 1.5}}\n" for i in range(lines))
    )
    metrics = forensics.read(str(tmp_path)).tables["metrics"]
    assert [s for s, t in zip(metrics["step"].to_pylist(), metrics["tag"].to_pylist(), strict=True) if t == "loss/train"] == steps
