"""Settings in the forms in which people print them before training, and lines like them that are none."""

from __future__ import annotations

from pathlib import Path

import pytest

import forensics
from forensics.run import how_it_ended, settings
from forensics.run.series import series

TRAINING = "".join(f"step {i} loss {3 - 0.01 * i:.4f}\n" for i in range(1, 40))


def told(tmp_path: Path, head: str, training: str = TRAINING) -> dict[str, object]:
    (tmp_path / "train.log").write_text(head + "\n" + training)
    return {s.key: s.value for s in settings.every(forensics.read(str(tmp_path)))}


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("config: lr=0.15 warmup=20 betas=(0.9, 0.99) eps=1e-08", {"lr": 0.15, "warmup": 20, "betas": "(0.9, 0.99)", "eps": 1e-8}),
        ("trainer:fit - hyperparameters: optimizer=sgd, lr=0.1, accum=2", {"optimizer": "sgd", "lr": 0.1, "accum": 2}),
        (
            "11-29 06:22:49 [0] start params=120064 world=2 batch=4 lr=0.003 warmup=40",
            {"batch": 4, "lr": 0.003, "warmup": 40},
        ),  # a size beside a plan
        ("images: 48 train / 12 val, classes ['disc', 'box'], batch 8, epochs 12, lr 0.002, adamw", {"batch": 8, "optimizer": "adamw"}),
        (">>>>> lr: 0.002, batch_size: 32, scaler: standard", {"lr": 0.002, "batch_size": 32, "scaler": "standard"}),
        ("GIN hidden=128 layers=3 train=48 valid=440 batch=16 epochs=240 lr=1e-3", {"train": 48, "batch": 16, "epochs": 240, "lr": 1e-3}),
        (
            "***** Running training *****\n  learning_rate = 0.012, label_smoothing_factor = 0.0, evaluation examples = 320",
            {"learning_rate": 0.012, "label_smoothing_factor": 0.0, "evaluation examples": 320},
        ),
        ("***** Running training *****\n  note = first, second", {"note": "first, second"}),
        ("--lr=0.004 --clip=5.0 --layers=6", {"lr": 0.004, "clip": 5.0, "layers": 6}),
        ("batch 0: x (32, 1, 14, 14) min 0.00 max 255.00 mean 56.36 | y [1, 6]", {"x.min": 0.0, "x.max": 255.0, "x.mean": 56.36}),
        ("lm_head.py: inputs range -1e-3 to 2.5", {"inputs.min": -1e-3, "inputs.max": 2.5}),
        ("train (2880, 128, 1) x mean 1039.157 std 58.749 classes [688, 732]", {"x.mean": 1039.157, "x.std": 58.749}),
        ("# asr: sgd lr=0.05 clip=0.0 reduction=sum", {"optimizer": "sgd", "lr": 0.05, "clip": 0.0, "reduction": "sum"}),
        ("optim: adam lr=0.4 batch_size=16 max_epoch=14", {"optimizer": "adam", "lr": 0.4, "batch_size": 16, "max_epoch": 14}),
        ("CartPole, 8 envs, lr 0.015, gamma 0.98, entropy bonus 0.01", {"lr": 0.015, "gamma": 0.98, "entropy bonus": 0.01}),
        (
            "| batch_size B          | 12      |\n| learning rate (LR)    | 3.0e-04 |\n| num_parameters | 174144 |",
            {"batch_size": 12, "learning_rate": 3e-4, "num_parameters": 174144},
        ),
        (
            "12:00 - util\\log - INFO - lr             :\t0.1\n12:00 - util\\log - INFO - optimizer      :\tadam\n"
            "12:00 - util\\log - INFO - emb_file       :\tvec.txt",
            {"lr": 0.1, "optimizer": "adam", "emb_file": "vec.txt"},
        ),
        (
            "2026-05-04 12:48:40,318 - INFO - x.helpers -       cfg.name : nmt\n2026-05-04 12:48:40,318 - INFO - x.helpers - cfg.batch_size : 32\n2026-05-04 12:48:40,318 - INFO - x.helpers - cfg.tokenizer_merges : 3200\n"
            "2026-05-04 12:48:40,318 - INFO - x.helpers -    cfg.metrics : ['bleu']",
            {"cfg.name": "nmt", "cfg.batch_size": 32, "cfg.tokenizer_merges": 3200, "cfg.metrics": "['bleu']"},
        ),
        ('base_lr: 0.1\nlr_policy: "fixed"\nsolver_type: NESTEROV', {"base_lr": 0.1, "lr_policy": "fixed", "solver_type": "NESTEROV"}),
        (
            "  bf16 ................. True\n  lr ................... 0.0006\n  rampup_batch_size .... None\n  recompute_granularity ....... full",
            {"bf16": True, "lr": 0.0006, "rampup_batch_size": None},
        ),
        (
            "Data path      : /data/x\nMinibatch size : 128   [DEFAULT]\nGPUs           : 2     [DEFAULT]",
            {"GPUs": 2, "Minibatch size": 128},
        ),
        ("use_gpu: True, batch_size: 32, epochs: 20, print_interval: 500", {"use_gpu": True, "batch_size": 32, "epochs": 20}),
        (
            "+---------+-------+\n| Key     | Value |\n+=========+=======+\n| Epochs  | 500   |\n+---------+-------+\n| Dropout | 0.500 |\n"
            "+---------+-------+\n| Graphs  | ./a/  |\n+---------+-------+",
            {"Epochs": 500, "Dropout": 0.5, "Graphs": "./a/"},
        ),
        (
            " - nr. of training examples 6250\n * number of parameters: 394532",
            {"number of training examples": 6250, "number of parameters": 394532},
        ),
        ("alphabet 15 glyphs + blank, 2000 lines, adam lr=0.002", {"optimizer": "adam", "lr": 0.002}),
        ("2 ranks, 1800 molecules each, batch 32/rank, Adam 1e-3", {"optimizer": "Adam", "lr": 0.001}),
        ("I1126 21:28:21 10496] flags: --batch=128 --lr=0.003 --fp16", {"batch": 128, "lr": 0.003, "fp16": True}),
        ("PPO reach-v2  lr=0.0015 gamma=0.95 epochs=4 minibatch=256 ent=-0.4", {"lr": 0.0015, "epochs": 4, "ent": -0.4}),
        ("we train with SGD (learning rate 0.1) on 4 devices", {"optimizer": "SGD", "lr": 0.1}),
        ("AMP: float16, static loss scale 65536", {"mixed_precision": "float16", "static_loss_scale": 65536.0}),
        ("running with bf16 autocast", {"mixed_precision": "bf16"}),
        ("Train on 60000 samples, validate on 10000 samples", {"training samples": 60000, "validation samples": 10000}),
        ("Will train until validation_rmse hasn't improved in 50 rounds.", {"early_stopping_rounds": 50}),
        ("Using device: cuda", {"device": "cuda"}),
        (" | > Torch seed: 54321\n | > Torch CUDNN: True", {"Torch seed": 54321, "Torch CUDNN": True}),
        (
            "stream training: SGDClassifier(eta0=200.0, learning_rate='invscaling',\n      alpha=5.0, hidden=(32, 8)), 150 chunks",
            {"estimator": "SGDClassifier", "eta0": 200.0, "learning_rate": "invscaling", "alpha": 5.0, "hidden": "(32, 8)"},
        ),
    ],
)
def test_settings_are_read_in_the_forms_people_print(tmp_path: Path, line: str, found: dict[str, object]) -> None:
    assert found.items() <= told(tmp_path, line).items()


@pytest.mark.parametrize(
    "text",
    [
        "    epoch          : 1\n    optimizer      : adam\n    train_loss     : 2.1\n    batch_size     : 8",  # a loop that prints so
        "    step       : 10\n    optimizer  : adam\n    time       : 3.5",
        "  loss ....... 2.1\n  optimizer .. adam\n  lr ......... 0.1",
        "  epoch ...... 1\n  optimizer .. adam\n  lr ......... 0.1",
        "loading the data ....... done\nbuilding lr ............ done",
        "precision : 0.91\nrecall    : 0.88\nsupport   : 100",
        "Precision: 0.6369",
        "mean IoU: 42.8",
        "+----------+------+\n| category | mIoU |\n+----------+------+\n| road     | 0.98 |\n| person   | 0.71 |\n+----------+------+",
        "val_loss: [3.3, 3.2]",
        "step: 10, lr: 0.1, skipped: False, batch_size: 8",
    ],
)
def test_results_are_no_settings(tmp_path: Path, text: str) -> None:
    words = {"optimizer", "train_loss", "road", "precision", "Precision", "recall", "mean IoU", "val_loss", "lr"}
    assert not words & told(tmp_path, text, "The end.\n").keys()


def test_a_promise_to_stop_early_is_no_metric(tmp_path: Path) -> None:
    text = "Will train until validation_rmse hasn't improved in 50 rounds.\n" + "".join(
        f"[{i}]\ttrain-rmse:{9 / i}\n" for i in range(1, 30)
    )
    (tmp_path / "train.log").write_text(text)
    assert set(forensics.read(str(tmp_path)).tables["metrics"]["tag"].to_pylist()) == {"train-rmse"}


@pytest.mark.parametrize(
    "line",
    [
        "Found 3 workers, using 2, kept 4",
        "best so far: loss=2.1, lr=0.1, seed=3",
        "{'loss': '2.45', 'grad_norm': '0.45', 'learning_rate': '0.1195', 'epoch': '0.05'}",
        "| loss | 0.3 |",
        "| lr | unknown |",
        "compared: adam lr=0.1 and sgd lr=0.3",
        "madam lr=0.1 a word",
        "adam 0.9 of the runs",
        "iter 20/900 wer=5.5 gnorm=5.9 lr=0.001",
        "step 20 wer=5.5 gnorm=5.9 lr=0.001",
        "batch=16 wer=5.5 gnorm=5.9 lr=0.001",
        "0-epoch (84/900): total loss 11.25, group-sup.: 11.5,, lr 0.1, wd 0.04, seed 3",
        "loaded Regressor( of 3 files, lr unknown",
    ],
)
def test_lines_like_them_are_no_settings(tmp_path: Path, line: str) -> None:
    assert not {"lr", "seed", "loss", "learning_rate", "using"} & told(tmp_path, line).keys()


def test_an_estimator_that_never_closes_costs_nothing_else(tmp_path: Path) -> None:
    assert "alpha" not in told(tmp_path, "MLPRegressor(alpha=0.1,")
    loss = series(forensics.read(str(tmp_path)), "loss.train")
    assert loss is not None and len(loss.value) == 39


def test_dots_below_their_heading_are_read_once(tmp_path: Path) -> None:
    rows = "  lr ......... 0.1\n  seed ....... 1\n  optimizer .. adam\n"
    (tmp_path / "train.log").write_text(f"----- arguments -----\n{rows}----- end of arguments -----\n{TRAINING}")
    assert forensics.read(str(tmp_path)).tables["config"]["key"].to_pylist() == ["lr", "seed", "optimizer"]


def test_settings_before_training_are_no_measurement(tmp_path: Path) -> None:
    told(tmp_path, "PPO reach-v2  lr=0.0015 gamma=0.95 epochs=4 minibatch=256 ent=-0.4")
    assert set(forensics.read(str(tmp_path)).tables["metrics"]["tag"].to_pylist()) == {"loss"}


def test_a_dictionary_of_settings_is_read_at_each_launch(tmp_path: Path) -> None:
    (tmp_path / "train.log").write_text(
        f'cfg {{"eta": 0.003, "drop": 0.0, "total": 80}}\n{TRAINING}##### launch 2 #####\n'
        f'cfg {{"eta": 0.003, "drop": 0.35, "total": 80}}\nresumed from step 39\n'
        + "".join(f'step {i} loss {3 - 0.01 * i:.4f} {{"a": 1}}\n' for i in range(40, 80))
    )
    config = forensics.read(str(tmp_path)).tables["config"].to_pylist()
    assert [c["value"] for c in config if c["key"] == "drop"] == ["0.0", "0.35"]
    assert not [c for c in config if c["key"] == "a"]


_OPENED = """server arguments: ['--override', '{"temperature": 1.0, "top_k": -1, "top_p": 1, \\'
  '"max_new": 512}',
  '--config',
"""
_OTHERS = "".join(f"server {i} of 9 is ready\n" for i in range(1, 9))


def test_a_dictionary_that_never_closes_costs_no_measurement(tmp_path: Path) -> None:
    """A server prints its arguments, of which one is a dictionary in quotes; what ends it is lost, and the training begins."""
    (tmp_path / "train.log").write_text(_OPENED + "loss 3.5 at step 0\n" + _OTHERS + TRAINING)
    loss = series(forensics.read(str(tmp_path)), "loss.train")
    assert loss is not None and loss.step.tolist() == list(range(40))


def test_lines_of_another_process_within_a_dictionary_cost_none_of_its_settings(tmp_path: Path) -> None:
    dictionary = "{'model': {'width': 96,\n%s           'depth': 4},\n 'trainer': {'every': 7, 'name': 'a'}}"
    found = told(tmp_path, dictionary % "")
    assert found["model.width"] == 96 and found["trainer.every"] == 7
    found = told(tmp_path, dictionary % "a worker says that it is there\nand another one, too\n")
    assert found["depth"] == 4, "it is no literal any more: what stands by itself in a line is kept"


def test_a_loggers_name_stands_before_indented_settings(tmp_path: Path) -> None:
    lines = ["telegraph decoder, seed 25519", "  encoder: conv3", "  updates: 60", "  momentum: 0.0"]
    log = "".join(f"2026-11-29 20:03:52,01{i} INFO [banner] {line}\n" for i, line in enumerate(lines))
    log += "".join(f"2026-11-29 20:04:0{i},100 INFO [train] update {10 * i} ep 0 ctc {40 / i:.3f} |g| 3.2\n" for i in range(1, 7))
    log += "2026-11-29 20:04:07,000 INFO [evaluate] valid @60 ctc 18.411 cer 0.5\n2026-11-29 20:04:08,000 INFO [train] finished at update 60, best cer 0.5\n"
    (tmp_path / "telegraph.log").write_text(log)
    run = forensics.read(str(tmp_path))
    assert {s.key: s.value for s in settings.every(run)} == {"encoder": "conv3", "updates": 60, "momentum": 0.0}
    assert [(r["step"], r["value"]) for r in run.tables["metrics"].to_pylist() if r["name"] == "loss.eval"] == [(60, 18.411)]
    assert how_it_ended.ending(run).status == "finished" and how_it_ended.ending(run).planned == 60
