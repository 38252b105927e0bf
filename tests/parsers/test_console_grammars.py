"""One made line of each framework's form, and what must be read from it: step, tags and numbers."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from typing import Any

import pytest

import parsers
from parsers.console_format import grammars, line_prefix, line_shapes
from parsers.console_format.line_numbers import read_line

SHARED = Path(__file__).parents[2].parent / "shared"

# (framework, line, step parts, metrics)
LINES: list[tuple[str, str, dict[str, int], dict[str, float]]] = [
    (
        "Megatron-LM",
        " [2026-03-04 05:06:07.000000] iteration      250/    2000 | consumed samples:        16000 | elapsed time per "
        "iteration (ms): 512.5 | throughput per GPU (TFLOP/s/GPU): 301.5 | learning rate: 1.500000E-04 | global batch size:    64 | "
        "lm loss: 3.141593E+00 | loss scale: 65536.0 | grad norm: 1.618 | number of skipped iterations:   1 | number of nan iterations:   0 |",
        {"it": 250, "total": 2000},
        {
            "consumed samples": 16000,
            "elapsed time per iteration (ms)": 512.5,
            "throughput per GPU (TFLOP/s/GPU)": 301.5,
            "learning rate": 1.5e-4,
            "global batch size": 64,
            "lm loss": 3.141593,
            "loss scale": 65536,
            "grad norm": 1.618,
            "number of skipped iterations": 1,
            "number of nan iterations": 0,
        },
    ),
    (
        "Megatron-LM validation",
        " validation loss at iteration 250 | lm loss value: 2.718282E+00 | lm loss PPL: 1.515426E+01 | ",
        {"step": 250},
        {"validation lm loss value": 2.718282, "validation lm loss PPL": 15.15426},
    ),
    (
        "torchtitan",
        "[titan] 2026-03-04 05:06:07,008 - root - INFO - step: 40  loss:  6.54321  grad_norm:  2.2500  memory: 20.50GiB"
        "(25.75%)  tps: 9,876  tflops: 123.45  mfu: 12.34%",
        {"step": 40},
        {"loss": 6.54321, "grad_norm": 2.25, "memory": 20.5, "memory (%)": 25.75, "tps": 9876, "tflops": 123.45, "mfu": 12.34},
    ),
    (
        "torchtitan validation",
        "validate step: 40  loss:  6.1000  memory: 20.50GiB(25.75%)  tps: 9,876",
        {"step": 40},
        {"validation loss": 6.1, "validation memory": 20.5, "validation memory (%)": 25.75, "validation tps": 9876},
    ),
    (
        "DCGAN",
        "[3/25][50/1583]\tLoss_D: 1.3125\tLoss_G: 0.7500\tD(x): 0.5000\tD(G(z)): 0.5312 / 0.4844",
        {"epoch": 3, "it": 50, "total": 1583},
        {"Loss_D": 1.3125, "Loss_G": 0.75, "D(x)": 0.5, "D(G(z))": 0.5312, "D(G(z)) (after)": 0.4844},
    ),
    ("nanoGPT", "iter 30: loss 4.5678, time 88.25ms, mfu 21.50%", {"step": 30}, {"loss": 4.5678, "time": 88.25, "mfu": 21.5}),
    ("nanoGPT estimate", "step 500: train loss 3.2100, val loss 3.4300", {"step": 500}, {"train loss": 3.21, "val loss": 3.43}),
    (
        "nanochat",
        "step 00033/09000 (0.37%) | loss: 5.125000 | lrm: 0.50 | dt: 250.50ms | tok/sec: 1,048,576 | bf16_mfu: 41.25 | epoch: 1 | "
        "total time: 1.50m | eta: 33.1m",
        {"it": 33, "total": 9000, "epoch": 1},
        {"loss": 5.125, "lrm": 0.5, "dt": 250.5, "tok/sec": 1048576, "bf16_mfu": 41.25, "total time": 1.5},
    ),
    (
        "transformers 4",
        "{'loss': 1.75, 'grad_norm': nan, 'learning_rate': 2e-05, 'epoch': 0.25}",
        {},
        {"loss": 1.75, "grad_norm": math.nan, "learning_rate": 2e-5, "epoch": 0.25},
    ),
    (
        "transformers 5",
        "{'loss': '1.75', 'grad_norm': '3.125', 'learning_rate': '2e-05', 'epoch': '0.25'}",
        {},
        {"loss": 1.75, "grad_norm": 3.125, "learning_rate": 2e-5, "epoch": 0.25},
    ),
    (
        "TRL GRPO",
        "{'loss': 0.01, 'rewards/chosen': -1.5, 'reward_std': 0.5, 'kl': 0.02, 'epoch': 0.5}",
        {},
        {"loss": 0.01, "rewards/chosen": -1.5, "reward_std": 0.5, "kl": 0.02, "epoch": 0.5},
    ),
    (
        "DeepSpeed",
        "[2026-03-04 05:06:07,008] [INFO] [logging.py:96:log_dist] [Rank 0] step=70, skipped=2, lr=[3e-05, 3e-05], mom=[[0.9, 0.95]]",
        {"step": 70, "rank": 0},
        {"skipped": 2, "lr": 3e-5},
    ),
    (
        "DeepSpeed pipe",
        "steps: 70 loss: 4.2500 iter time (s): 0.750 samples/sec: 85.333",
        {"step": 70},
        {"loss": 4.25, "iter time (s)": 0.75, "samples/sec": 85.333},
    ),
    (
        "DeepSpeed timer",
        "[2026-03-04 05:06:07,008] [INFO] [timer.py:199:stop] epoch=0/micro_step=140/global_step=70, "
        "RunningAvgSamplesPerSec=12.5, CurrSamplesPerSec=13.5, MemAllocated=4.25GB",
        {"epoch": 0, "step": 70},
        {"RunningAvgSamplesPerSec": 12.5, "CurrSamplesPerSec": 13.5, "MemAllocated": 4.25},
    ),
    (
        "GPT-NeoX",
        " samples/sec: 98.765 | iteration       12/     500 | elapsed time per iteration (ms): 650.0 | learning rate: 3.000E-04 | "
        "approx flops per GPU: 33.3TFLOPS | lm_loss: 7.250000E+00 | loss scale: 4096.0 | number of skipped iterations:   0 |",
        {"it": 12, "total": 500},
        {
            "samples/sec": 98.765,
            "elapsed time per iteration (ms)": 650,
            "learning rate": 3e-4,
            "approx flops per GPU": 33.3,
            "lm_loss": 7.25,
            "loss scale": 4096,
            "number of skipped iterations": 0,
        },
    ),
    (
        "torchtune",
        "Step 25 | loss:1.2500 lr:3e-05 tokens_per_second_per_gpu:4321.5 grad_norm:0.75 ",
        {"step": 25},
        {"loss": 1.25, "lr": 3e-5, "tokens_per_second_per_gpu": 4321.5, "grad_norm": 0.75},
    ),
    ("torchtune bar", "2|25|Loss: 1.25:   5%|5         | 25/500 [00:30<09:30,  1.20s/it]", {"epoch": 2, "step": 25}, {"Loss": 1.25}),
    (
        "MaxText",
        "completed step: 15, seconds: 2.500, TFLOP/s/device: 150.250, Tokens/s/device: 4096.500, total_weights: 32768, loss: 9.875",
        {"step": 15},
        {"seconds": 2.5, "TFLOP/s/device": 150.25, "Tokens/s/device": 4096.5, "total_weights": 32768, "loss": 9.875},
    ),
    (
        "MMEngine",
        "2026/03/04 05:06:07 - mmengine - INFO - Epoch(train)   [3][ 50/400]  lr: 2.0000e-02  eta: 0:10:00  time: 0.2500  "
        "data_time: 0.0250  memory: 2048  grad_norm: 5.5000  loss: 1.1250  loss_cls: 0.6250",
        {"epoch": 3, "it": 50, "total": 400},
        {"lr": 0.02, "time": 0.25, "data_time": 0.025, "memory": 2048, "grad_norm": 5.5, "loss": 1.125, "loss_cls": 0.625},
    ),
    (
        "MMEngine validation",
        "2026/03/04 05:06:07 - mmengine - INFO - Epoch(val) [3][20/20]    accuracy/top1: 61.5000  time: 0.0500",
        {"epoch": 3},
        {"val accuracy/top1": 61.5, "val time": 0.05},
    ),
    (
        "MMCV 1",
        "2026-03-04 05:06:07,008 - mmdet - INFO - Epoch [3][50/400]\tlr: 2.000e-02, eta: 1 day, 2:03:04, time: 0.250, loss: 1.125",
        {"epoch": 3, "it": 50, "total": 400},
        {"lr": 0.02, "time": 0.25, "loss": 1.125},
    ),
    (
        "Detectron2",
        "[03/04 05:06:07 d2.utils.events]:  eta: 1:02:03  iter: 79  total_loss: 1.625  loss_cls: 0.875  time: 0.4500  "
        "last_time: 0.4400  data_time: 0.0150  lr: 0.00025  max_mem: 4321M",
        {"step": 79},
        {"total_loss": 1.625, "loss_cls": 0.875, "time": 0.45, "last_time": 0.44, "data_time": 0.015, "lr": 0.00025, "max_mem": 4321},
    ),
    (
        "timm",
        "Train: 2 [  50/ 500 ( 10%)]  Loss: 5.25 (5.75)  Time: 0.250s, 1024.00/s  (0.260s,  990.00/s)  LR: 5.000e-04  Data: 0.012 (0.020)",
        {"epoch": 2, "it": 50, "total": 500},
        {"Loss": 5.25, "Loss (avg)": 5.75, "Time": 0.25, "LR": 5e-4, "Data": 0.012, "Data (avg)": 0.02},
    ),
    ("imagenet example, below an evaluation", " *   Acc@1 81.513 Acc@5 97.250", {}, {"eval Acc@1": 81.513, "eval Acc@5": 97.25}),
    (
        "tensorflow estimator, what an evaluation gave",
        "I1126 05:28:56.123456 77 evaluation.py:275] Saving dict for global step 100: auc = 0.70384, average_loss = 0.58269, num_examples = 6000",
        {"step": 100},
        {"eval auc": 0.70384, "eval average_loss": 0.58269, "eval num_examples": 6000},
    ),
    (
        "timm test",
        "Test: [  10/48]  Time: 0.100 (0.200)  Loss:   1.500 ( 1.625)  Acc@1:  70.500 ( 71.250)",
        {},
        {
            "test Time": 0.1,
            "test Time (avg)": 0.2,
            "test Loss": 1.5,
            "test Loss (avg)": 1.625,
            "test Acc@1": 70.5,
            "test Acc@1 (avg)": 71.25,
        },
    ),
    (
        "OpenCLIP",
        "Train Epoch: 0 [ 6400/128000 (5%)] Data (t): 0.015 Batch (t): 0.750, 1024.00/s, 128.000/s/gpu LR: 0.000250 Logit Scale: "
        "14.275 Contrastive_loss: 6.5000 (6.7500) Loss: 6.5000 (6.7500)",
        {"epoch": 0, "it": 6400, "total": 128000},
        {
            "Data (t)": 0.015,
            "Batch (t)": 0.75,
            "LR": 0.00025,
            "Logit Scale": 14.275,
            "Contrastive_loss": 6.5,
            "Contrastive_loss (avg)": 6.75,
            "Loss": 6.5,
            "Loss (avg)": 6.75,
        },
    ),
    (
        "Keras",
        "94/94 ━━━━━━━━━━━━━━━━━━━━ 2s 20ms/step - accuracy: 0.6250 - loss: 1.1250 - val_loss: 1.2500 - learning_rate: 0.0020",
        {"it": 94, "total": 94},
        {"ms/step": 20, "accuracy": 0.625, "loss": 1.125, "val_loss": 1.25, "learning_rate": 0.002},
    ),
    (
        "fairseq",
        "2026-03-04 05:06:07 | INFO | train_inner | epoch 002:    300 / 4000 loss=7.5, nll_loss=7.25, ppl=152.2, wps=20000.5, ups=1.5, "
        "num_updates=4300, lr=0.0002, gnorm=1.25, loss_scale=64, train_wall=66, wall=400",
        {"epoch": 2, "step": 4300},
        {
            "loss": 7.5,
            "nll_loss": 7.25,
            "ppl": 152.2,
            "wps": 20000.5,
            "ups": 1.5,
            "lr": 2e-4,
            "gnorm": 1.25,
            "loss_scale": 64,
            "train_wall": 66,
            "wall": 400,
        },
    ),
    (
        "fairseq simple",
        "| epoch 002 | loss 6.5 | nll_loss 6.25 | ppl 76.1 | num_updates 8000 | lr 0.0003 | gnorm 1.5",
        {"epoch": 2, "step": 8000},
        {"loss": 6.5, "nll_loss": 6.25, "ppl": 76.1, "lr": 3e-4, "gnorm": 1.5},
    ),
    (
        "fairseq valid",
        "2026-03-04 05:06:07 | INFO | valid | epoch 002 | valid on 'valid' subset | loss 6.75 | ppl 107.6 | num_updates 8000",
        {"epoch": 2, "step": 8000},
        {"valid loss": 6.75, "valid ppl": 107.6},
    ),
    (
        "metaseq",
        '2026-03-04 05:06:07 | INFO | train_inner | {"epoch": 1, "update": 0.02, "loss": "8.5", "ppl": "362.0", "num_updates": "40", '
        '"lr": "1e-05", "gnorm": "2.5"}',
        {"epoch": 1, "step": 40},
        {"update": 0.02, "loss": 8.5, "ppl": 362, "lr": 1e-5, "gnorm": 2.5},
    ),
    (
        "nanotron",
        "03/04/2026 05:06:07 [INFO|DP=0|PP=0|TP=0|node-1]: iteration: 20 / 900 | consumed_tokens: 1.25M | elapsed_time_per_iteration_ms: "
        "1.5K | tokens_per_sec: 250K | lm_loss: 8.25 | lr: 0.0001 | grad_norm: 3.5",
        {"it": 20, "total": 900},
        {
            "consumed_tokens": 1.25e6,
            "elapsed_time_per_iteration_ms": 1500,
            "tokens_per_sec": 250e3,
            "lm_loss": 8.25,
            "lr": 1e-4,
            "grad_norm": 3.5,
        },
    ),
    ("llm.c test", "s:250 tel:4.1250", {"step": 250}, {"test loss": 4.125}),
    ("llm.c train", "s:250 trl:4.0625 lr:0.000500 norm:0.75", {"step": 250}, {"train loss": 4.0625, "lr": 0.0005, "norm": 0.75}),
    (
        "llm.c console",
        "step   12/18865 | loss 9.750000 (+nanz)| norm 3.5000 (-0.12z)| lr 1.03e-05 | 250.25 ms | 48.5% bf16 MFU | 210000 tok/s",
        {"it": 12, "total": 18865},
        {"loss": 9.75, "norm": 3.5, "lr": 1.03e-5, "tok/s": 210000},
    ),
    (
        "modded-nanogpt",
        "step:250/1750 val_loss:4.3125 train_time:35250ms step_avg:141.00ms",
        {"it": 250, "total": 1750},
        {"val_loss": 4.3125, "train_time": 35250, "step_avg": 141},
    ),
    (
        "parameter-golf",
        "100/5000 train_loss: 3.8750 train_time: 1.5m tok/s: 3276800",
        {"it": 100, "total": 5000},
        {"train_loss": 3.875, "train_time": 1.5, "tok/s": 3276800},
    ),
    (
        "Lightning, NeMo",
        "Epoch 0:  30%|###       | 30/100 [00:05<00:11,  6.00it/s, v_num=7, reduced_train_loss=4.500, global_step=29, "
        "consumed_samples=960.0]",
        {"epoch": 0, "step": 29},
        {"reduced_train_loss": 4.5, "consumed_samples": 960},
    ),
    (
        "NeMo 2",
        "Training epoch 1, iteration 7/49 | lr: 0.0001 | global_batch_size: 16 | reduced_train_loss: 3.75 | train_step_timing in s: 0.5",
        {"epoch": 1, "it": 7, "total": 49},
        {"lr": 1e-4, "global_batch_size": 16, "reduced_train_loss": 3.75, "train_step_timing in s": 0.5},
    ),
    (
        "PaddleNLP",
        "[2026-03-04 05:06:07,008] [    INFO] - loss: 6.25, learning_rate: 2e-05, global_step: 30, interval_samples_per_second: 12.5",
        {"step": 30},
        {"loss": 6.25, "learning_rate": 2e-5, "interval_samples_per_second": 12.5},
    ),
    (
        "Levanter",
        "Progress on:train 44it/2.00kit rate:3.5it/s remaining:09:18 elapsed:00:12 postfix:loss=5.375",
        {"step": 44},
        {"rate": 3.5, "loss": 5.375},
    ),
    (
        "verl",
        "step:8 - actor/pg_loss:np.float64(0.125) - actor/grad_norm:0.75 - critic/rewards/mean:0.5",
        {"step": 8},
        {"actor/pg_loss": 0.125, "actor/grad_norm": 0.75, "critic/rewards/mean": 0.5},
    ),
    ("CleanRL", "global_step=512, episodic_return=[21.]", {"step": 512}, {"episodic_return": 21}),
    (
        "OpenRLHF",
        "Train epoch [1/2]:   5%|5         | 50/1000 [00:30<09:30,  1.66it/s, gpt_loss=1.5, loss_mean=1.75, lr=1e-5]",
        {"epoch": 1, "it": 50, "total": 1000},
        {"gpt_loss": 1.5, "loss_mean": 1.75, "lr": 1e-5},
    ),
    ("PyTorch tutorial", "Epoch [2/5], Step [300/600], Loss: 0.4375", {"epoch": 2, "it": 300, "total": 600}, {"Loss": 0.4375}),
    (
        "torchvision",
        "Epoch: [4]  [ 20/500]  eta: 0:01:00  lr: 0.05  img/s: 800.5  loss: 3.5 (3.75)  acc1: 25.0 (24.5)  time: 0.25  max mem: 6000",
        {"epoch": 4, "it": 20, "total": 500},
        {"lr": 0.05, "img/s": 800.5, "loss": 3.5, "loss (avg)": 3.75, "acc1": 25, "acc1 (avg)": 24.5, "time": 0.25, "max mem": 6000},
    ),
    ("thousands of a speed", "upd 12/50 | nll 3.5 | 12.5k tok/s", {"it": 12, "total": 50}, {"nll": 3.5, "tok/s": 12500.0}),
    ("a sentence of a set", "epoch 3 mean IoU on test 0.25", {"epoch": 3}, {"mean IoU on test": 0.25}),
    ("logging's %(asctime)s:%(levelname)s:", "2026-03-01 10:00:00,982:INFO: step 12 loss: 0.5", {"step": 12}, {"loss": 0.5}),
    ("TensorFlow", "INFO:tensorflow:loss = 2.125, step = 900 (4.2 sec)", {"step": 900}, {"loss": 2.125, "time": 4.2}),
    ("XGBoost", "[12]\ttrain-rmse:0.43750\teval-rmse:0.50000", {"step": 12}, {"train-rmse": 0.4375, "eval-rmse": 0.5}),
    ("words and spaces", "step 1,250 loss 2.5 norm 0.75 lr 1.00e-03", {"step": 1250}, {"loss": 2.5, "norm": 0.75, "lr": 1e-3}),
    (
        "sides and percent",
        "Epoch 3/9 | train loss 0.5 | train acc 81.25% | val loss 0.625",
        {"epoch": 3},
        {"train loss": 0.5, "train acc": 81.25, "val loss": 0.625},
    ),
    ("a duration in words", "Epoch: 17 | Test Acc: 63.25% | Time: 0.00 hr 4.00 min 34.01 sec", {"epoch": 17}, {"Test Acc": 63.25}),
    (
        "a duration of a set",
        "Epoch 3/50 | Loss: 0.25 | Time: 2.5s (train=2.25s, val=0.25s)",
        {"epoch": 3},
        {"Loss": 0.25, "Time": 2.5, "train time (s)": 2.25, "val time (s)": 0.25},
    ),
    (
        "what it cost in seconds",
        "Epoch 3 Train, reg:0.25, mae:9.5, Cost: 675.5 sec",
        {"epoch": 3},
        {"reg": 0.25, "mae": 9.5, "Cost time (sec)": 675.5},
    ),
    (
        "a mini-batch",
        "Epoch is [1/600], mini-batch is [31/1600], batch_loss is 2.25",
        {"epoch": 1, "it": 31, "total": 1600},
        {"batch_loss": 2.25},
    ),
    ("a minimum", "step 7 loss 0.5 min 0.25 max 0.75", {"step": 7}, {"loss": 0.5, "min": 0.25, "max": 0.75}),
    ("letters that name numbers", "step 7 acc 0.91 m 0.25 s 0.5", {"step": 7}, {"acc": 0.91, "m": 0.25, "s": 0.5}),
    ("a word behind a clock", "11-29 11:30:34 ep 2 it 110/700 loss 33.5", {"epoch": 2, "it": 110, "total": 700}, {"loss": 33.5}),
    ("not finite", "step=7 loss=-inf gnorm=Infinity lr=NaN", {"step": 7}, {"loss": -math.inf, "gnorm": math.inf, "lr": math.nan}),
]


def same(a: dict[str, float], b: dict[str, float]) -> bool:
    return a.keys() == b.keys() and all(a[k] == b[k] or (a[k] != a[k] and b[k] != b[k]) for k in a)


@pytest.mark.parametrize(("name", "text", "parts", "metrics"), LINES, ids=[x[0] for x in LINES])
def test_line(name: str, text: str, parts: dict[str, int], metrics: dict[str, float]) -> None:
    line = read_line(text)
    found = {r: line.value(r) for r in ("step", "it", "total", "epoch") if line.has(r)}
    if "rank" in parts:
        found["rank"] = line.value("rank")
    assert found == parts
    assert len(line.metrics()) == len(dict(line.metrics()))
    assert same(dict(line.metrics()), metrics), line.metrics()


@pytest.mark.parametrize("text", [x[1] for x in LINES], ids=[x[0] for x in LINES])
def test_shape_reads_the_line_it_was_made_of_and_others_like_it(text: str) -> None:
    line = read_line(text)
    shape = line_shapes.shape_of(line, {"step": 1} if line.has("step") else {"it": 1} if line.has("it") else {})
    other = re.sub(r"(?<=\d)[.](\d)(\d*)(?=\D|$)", lambda m: f".{(int(m[1]) + 3) % 10}{m[2]}", text)
    assert shape.pattern.fullmatch(text) is not None
    again = shape.pattern.fullmatch(other)
    assert again is not None
    words = [w for w, f in zip(again.groups(), shape.fields, strict=True) if f.role == "metric"]
    expected = [v for _, v in read_line(other).metrics()]
    assert [str(line_prefix.number(w)) for w in words] == [str(v) for v in expected]
    assert shape.pattern.fullmatch(text + " and more") is None


@pytest.mark.parametrize(
    "text",
    [
        "Loss NaN/Inf detected (attempt 1/3)",
        "saved checkpoints/step_200.pt",
        "2026-03-04 05:06:07 GPU 3 is busy",
        "  0%|          | 0/800 [00:00<?, ?it/s]",
        "torch 2.4.1+cu124 on 10.0.0.1:29500",
        "epoch 3 begins at step 100",
        "params: [[0.1, 0.2], [0.3, 0.4]]",
        "edges=[0.5, 0.25, 0.125, 0.0625]",
        "foo(bar=3, baz(4))",
    ],
)
def test_no_measurement_in_words(text: str) -> None:
    assert [m for m in read_line(text).metrics() if grammars.STRONG.search(m[0])] == []


@pytest.mark.parametrize(
    ("text", "rank", "body"),
    [
        ("[rank3]:2026-03-04 05:06:07,008 - root - INFO - step: 1", 3, "step: 1"),
        ("[rank: 3] step: 1", 3, "step: 1"),
        ("[Rank 3/8] step: 1", 3, "step: 1"),
        ("Rank 3: step: 1", 3, "step: 1"),
        ("(rank3) | step: 1", 3, "step: 1"),
        ("rank 3 has finished 7 of 9 batches", None, "rank 3 has finished 7 of 9 batches"),
        ("[1,2]<stdout>:step 1", 2, "step 1"),
        ("[default5]:step 1", 5, "step 1"),
        ("[node12:3] step 1", 3, "step 1"),
        ("(RayTrainWorker pid=77, ip=10.0.0.1) step 1", None, "step 1"),
        ("[Rank 4] step 1", 4, "step 1"),
        ("[launch.py:346:main] step 1", None, "step 1"),
        ("I0102 03:04:05.678901 1234 train.cc:12] step 1", None, "step 1"),
        ("I 0102 03:04:05 train.py:12] step 1", None, "step 1"),
        ("2026-01-02 03:04:05.678 | INFO     | __main__:<module>:22 - step 1", None, "step 1"),
        ("2026-01-02 03:04:05.678 | WARNING  | pkg.fit:<lambda>:7 - step 1", None, "step 1"),
        ("2026-01-02 03:04:05.678 | SUCCESS  | train:Trainer.fit:107 - step 1", None, "step 1"),
        ("2026-01-02 03:04:05,678 INFO    [ocr:main] step 1", None, "step 1"),
        ("2026-01-02 03:04:05,678 INFO    [ocr:<module>:12] step 1", None, "step 1"),
        ("[ratio:kept] step 1", None, "[ratio:kept] step 1"),
        ("loss:train:3 - acc:0.5", None, "loss:train:3 - acc:0.5"),  # no logger's mark before it
        ("2026-01-02 03:04:05.678 | INFO | ratio:a:3 of 4", None, "ratio:a:3 of 4"),
        ("01-02 03:04:05.678 [rank1] INFO step 1", 1, "step 1"),
        ("01-02 of 03-04 step 1", None, "01-02 of 03-04 step 1"),
        ("torch.OutOfMemoryError: CUDA out of memory", None, "torch.OutOfMemoryError: CUDA out of memory"),
    ],
)
def test_prefix(text: str, rank: int | None, body: str) -> None:
    line = line_prefix.prefix(text)
    assert line.value("rank") == rank
    assert text[line.body :].strip() == body


@pytest.mark.parametrize(
    ("text", "metrics"),
    [
        ("step=10 loss=1.5 |theta|=7.25 150.0 it/s", {"loss": 1.5, "|theta|": 7.25, "it/s": 150}),
        ("step 10 loss 1.5 ||w||=3.5 |g|: 0.5", {"loss": 1.5, "||w||": 3.5, "|g|": 0.5}),
        ("step 10, loss 1.5, ‖θ‖ = 3.5, ||grad||_2: 0.5", {"loss": 1.5, "‖θ‖": 3.5, "||grad||_2": 0.5}),
        ("| step 10 |loss: 1.5 |acc: 0.5|", {"loss": 1.5, "acc": 0.5}),  # bars that part cells
        ("step 10 || loss: 1.5 || acc: 0.5 || 3 it/second", {"loss": 1.5, "acc": 0.5}),
        ("step 10 loss 1.5 |w|1 1318.25 5.5 ms/it", {"loss": 1.5, "|w|1": 1318.25, "ms/it": 5.5}),
        ("step 10 loss=1.5 |w|1=3.25 |w|2=0.5", {"loss": 1.5, "|w|1": 3.25, "|w|2": 0.5}),
        ("step 10 loss 1.5 |1 2| 7", {"loss": 1.5}),
    ],
)
def test_norms_as_a_formula_has_them(text: str, metrics: dict[str, float]) -> None:
    assert dict(read_line(text).metrics()) == metrics


@pytest.mark.parametrize(
    ("text", "metrics"),
    [
        (
            "step 40 loss 0.8 (8.7 ms/step) psum 20.5",
            {"loss": 0.8, "ms/step": 8.7, "psum": 20.5},
        ),  # the words in the bracket speak of the number in it
        ("step 40 loss 0.8 psum (all ranks) 20.5", {"loss": 0.8}),
        ("step 40 loss: 0.8 grad norm (L2 of all): 20.5", {"loss": 0.8, "grad norm (L2 of all)": 20.5}),
        ("skipping batch: non-finite loss (epoch 3, step 40), acc 0.5", {"acc": 0.5}),
        ("step 40 loss (smoothed) 0.5", {"loss (smoothed)": 0.5}),
        ("step 40 gnorm local 1.5 reduced 0.5", {"gnorm local": 1.5, "gnorm reduced": 0.5}),
        ("step 40 grad_norm before 1.5 after 0.5", {"grad_norm before": 1.5, "grad_norm after": 0.5}),
        ("step 40 gnorm local 1.5 took 0.5", {"gnorm local": 1.5}),  # another thing
        ("step 40 loss total 1.5 reduced 0.5", {"loss total": 1.5}),
    ],
)
def test_what_a_word_beside_a_bracket_or_a_value_belongs_to(text: str, metrics: dict[str, float]) -> None:
    assert dict(read_line(text).metrics()) == metrics


@pytest.mark.parametrize(
    ("text", "metrics"),
    [
        ("<5/260> loss 4.5 (last 4.25), norm of grads 4.0, 487 ms/upd", {"loss": 4.5, "norm grads": 4.0, "ms/upd": 487}),
        ("learning rate 0.5 -> 0.25", {"learning rate": 0.25}),  # from here on
        ("Mean test loss of 63 batches: 4.5.", {"Mean test loss": 4.5}),
        ("eval box accuracy (IoU=0.7): 0.25", {"eval accuracy (IoU=0.7)": 0.25}),
        ("1m 47s (- 25m 9s) (5000 6%) 2.875", {"loss": 2.875}),  # PyTorch's tutorial of translation
        ("  PSNR = 27.5dB, SSIM = 0.75", {"PSNR": 27.5, "SSIM": 0.75}),
        ("Accuracy:  0.5 Best 0.75 ep 67", {"Accuracy": 0.5, "Best": 0.75}),  # where the best was is no place of this line
    ],
)
def test_numbers_that_belong_to_a_name_or_follow_from_it(text: str, metrics: dict[str, float]) -> None:
    assert dict(read_line(text).metrics()) == metrics
    assert read_line(text).value("epoch") is None


def test_a_row_of_names_whose_numbers_are_gone_is_still_one() -> None:
    found = read_line("    40  nll     nan  g       nan  lr 0.50000").metrics()
    assert [tag for tag, _ in found] == ["nll", "g", "lr"] and [x == x for _, x in found] == [False, False, True]


@pytest.mark.parametrize(
    ("text", "metrics"),
    [
        ("32/32 - 1s - 29ms/step - loss: 0.25", {"ms/step": 29, "loss": 0.25}),
        ("32/32 [====] - 1s 29us/step - loss: 0.25", {"us/step": 29, "loss": 0.25}),
        ("ep 0 upd   25 | ctc 0.5 | 56 ms/upd", {"ctc": 0.5, "ms/upd": 56}),
        ("313/313 - 0s - 2ms/step", {}),  # of a prediction
        ("step 300 | 2 ms/step", {"ms/step": 2}),
        ("step 20 loss 0.5 data_ms 0.25 samples/s 14740", {"loss": 0.5, "data_ms": 0.25, "samples/s": 14740}),  # a name, no unit of 0.25
        ("step 20 loss 0.5 120 samples/s", {"loss": 0.5, "samples/s": 120}),
    ],
)
def test_how_long_a_step_takes(text: str, metrics: dict[str, float]) -> None:
    assert dict(read_line(text).metrics()) == metrics


@pytest.mark.parametrize(
    ("text", "tags"),
    [
        ("ep 0 upd   25 | ctc nan | 56 ms/upd", ["ctc", "ms/upd"]),
        ("[dev] ep 0 ctc nan CER 100.00% blank 100.0%", ["dev ctc", "dev CER", "dev blank"]),
        ("step 20 found nan", []),
        ("step 20 found inf in 3 tensors", []),
        ("step 20 | nan found | 3 skipped", []),
    ],
)
def test_a_name_whose_number_is_none(text: str, tags: list[str]) -> None:
    assert [tag for tag, _ in read_line(text).metrics() if tag not in {"skipped"}] == tags


def test_where_the_best_value_was_is_no_place() -> None:
    line = read_line("epoch 50 | val f1 0.81 | best epoch: 48")
    assert [(field.role, field.tag) for field in line.fields] == [("epoch", "epoch"), ("metric", "val f1"), ("skip", "best epoch")]


@pytest.mark.parametrize(
    ("text", "kind", "expected"),
    [
        ("2026-03-04 05:06:07,250", "iso", 1772600767.25),
        ("2026-03-04T05:06:07", "isoZ", 1772600767.0),
        ("2026-03-04 05:06:07", "iso+02:00", 1772600767.0 - 7200),
        ("I0304 05:06:07.5", "glog", 68533567.5),  # without a year: in 1972
        ("I 0304 05:06:07", "glog", 68533567.0),
        ("Mar 04 05:06:07", "syslog", 68533567.0),
        ("03/04 05:06:07", "md", 68533567.0),
        ("03-04 05:06:07.5", "md", 68533567.5),
        ("05:06:07,5", "day", 18367.5),  # without a date: on 1970-01-01
        ("03/04/2026 05:06:07", "md", 1772600767.0),
        ("1772600767.5", "unix", 1772600767.5),
        ("2026-13-45 05:06:07", "iso", None),
        ("nonsense", "iso", None),
    ],
)
def test_clock(text: str, kind: str, expected: float | None) -> None:
    assert line_prefix.seconds(text, kind) == expected


def test_steps_are_whole_numbers() -> None:
    assert [line_prefix.whole(w) for w in ("00012", "119.0", "1,024", "1.5", "nan", "9" * 30, "x")] == [
        12,
        119,
        1024,
        None,
        None,
        None,
        None,
    ]


@pytest.mark.skipif(not SHARED.exists(), reason="the shared reference is not here")
def test_every_sample_line_of_the_reference_gives_its_numbers() -> None:
    """The named groups of the reference's own patterns are found among the numbers that were read."""
    samples: list[dict[str, Any]] = json.loads((SHARED / "reference" / "console_lines.json").read_text())
    for sample in samples:
        text = re.sub(r"\x1b\[[0-9;]*m", "", sample["sample"])
        found = re.search(sample["pattern"], text)
        assert found is not None
        line = read_line(text)
        seen = {text[f.start : f.end] for f in line.fields}
        groups = {k: v for k, v in found.groupdict().items() if v is not None and k not in {"pct", "a", "rank"}}
        numbers = {v.rstrip("%") for v in groups.values() if re.fullmatch(r"[-+]?[\d.,]+(?:[eE][-+]?\d+)?%?", v)}
        assert numbers <= seen, (sample["framework"], numbers - seen)


@pytest.mark.parametrize(
    ("text", "metrics"),
    [
        ("================ Training Loss (Sat Jun  6 16:47:21 2020) ================", {}),  # pix2pix and CycleGAN, at each launch
        ("loss: 0.3 (Sat Jun 16 16:47:21 CEST 2020)", {"loss": 0.3}),
        ("Sat: 6 loss: 0.3", {"Sat": 6, "loss": 0.3}),
    ],
)
def test_a_date_within_a_line_measures_nothing(text: str, metrics: dict[str, float]) -> None:
    assert dict(read_line(text).metrics()) == metrics


def test_an_epoch_without_its_word_before_a_step_of_many(tmp_path: Path) -> None:
    (tmp_path / "train.log").write_text(
        "".join(f"[{i // 9} {200 * i}/75400] loss {4 / i:.4f} lr 2.98e-05 {i / 2}m\n" for i in range(1, 30))
    )
    run = parsers.read(tmp_path)
    assert [r["step"] for r in run.tables["metrics"].to_pylist() if r["name"] == "loss.train"] == [200 * i for i in range(1, 30)]
