"""What a console log says of its planned length, of settings printed as dictionaries or options, and of lines that count within an epoch."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from parsers.formats import console
from parsers.records.vocabulary import COMPOSED_STEPS, EPOCH_STEPS
from parsers.tables import HEAD_BYTES, Gap, Note, table_of


def read(tmp_path: Path, text: str) -> tuple[dict[str, list[dict[str, object]]], list[str]]:
    path = tmp_path / "train.log"
    path.write_text(text)
    tables: dict[str, list[dict[str, object]]] = {"config": [], "events": [], "metrics": []}
    notes = []
    for item in console.parse(path):
        if isinstance(item, Note):
            notes.append(item.text)
        elif not isinstance(item, Gap):
            tables[table_of(item)] += item.to_pylist()
    return tables, notes


def said(tmp_path: Path, text: str) -> set[str]:
    tables, _ = read(tmp_path, text)
    totals = {f"total_steps: {json.loads(str(c['value']))}" for c in tables["config"] if c["key"] == "total_steps"}
    return totals | {str(e["text"]) for e in tables["events"] if e["kind"] == "plan"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("step 1/900 loss 3.5\nstep 2/900 loss 3.4\n", {"total_steps: 900"}),
        ("[1][1/2000][1/1] | loss: 1.5e-01\n[2][2/2000][1/1] | loss: 1.4e-01\n", {"beside_steps: 2000"}),
        ("Epoch 0/2\ntrain Loss: 0.5\nEpoch 1/2\ntrain Loss: 0.4\n", {"epochs: 2"}),
        ("Epoch 0/2\ntrain Loss: 0.5\nEpoch 1/2\ntrain Loss: 0.4\nEpoch 2/2\ntrain Loss: 0.3\n", {"epochs: 2", "epochs: 3"}),
        ("Epoch 1/2\ntrain Loss: 0.5\nEpoch 2/2\ntrain Loss: 0.4\n", {"epochs: 2"}),
        ("train_cfg = dict(by_epoch=True, max_epochs=300, val_interval=1)\nval_cfg = dict()\n", {"epochs: 300"}),
        ("runner = dict(type='IterBasedRunner', max_iters=8000)\n", {"total_steps: 8000"}),
        ("hook = dict(type='Warmup', max_epochs=5)\n", set()),
        ("Total Optimization Iterations: 12238\n", {"total_steps: 12238"}),
        ("Total Optimization Iterations: 12238 iterations completed\n", {"reached: 12238"}),
        ("step 00001/16704 (0.01%) | loss: 3.5 | epoch: 1\n", {"total_steps: 16704"}),
        ("Epoch [3/40], Loss: 0.41\n", {"epochs: 40"}),
        ("Epoch: [7/100]  [ 940/1562]  loss: 7.84 (7.88)  lr: 0.1 (0.1)\n", {"epochs: 100", "steps_per_epoch: 1562"}),
        ("| epoch   1 |   200/ 2983 batches | lr 20.00 | ms/batch 11.6 | loss  5.10 | ppl   164.02\n", {"steps_per_epoch: 2983"}),
        ("Training Progress:   0%|          | 0/3746 [00:00<?, ?it/s]\n", {"total_steps: 3746"}),
        ("d: 0.9;gen: 0.1:   0%|  | 7/20000 [00:15<87:33:24, 15.76s/it]\n", {"total_steps: 20000", "reached: 7"}),
        ("Formatting:   2%|▏  | 292/13772 [00:01<00:53, 250.83sample/s]\n", set()),
        ("Loading checkpoint shards: 100%|####| 2/2 [00:04<00:00, 2.02s/it]\n", set()),
        ("  Total optimization steps = 7,272\n", {"total_steps: 7272"}),
        ("125 iterations per epoch. 12500 max iterations\n", {"steps_per_epoch: 125", "total_steps: 12500"}),
        ("Beginning of Epoch 1/16, Total Micro Batches 460\n", {"epochs: 16", "micro_batches_per_epoch: 460"}),
        ("Starting training for 20 epochs...\n", {"epochs: 20"}),
        ("开始训练 (30 epochs)...\n", {"epochs: 30"}),
        ("Training (30 epochs left)\n", set()),
        ("총 학습 스텝 수: 15000\n", {"total_steps: 15000"}),
        ("총 300개의 JSON 파일을 로드합니다.\n", set()),
        ("总训练步数：1200\n", {"total_steps: 1200"}),
        ("INFO :  Starting Flower server, config: num_rounds=200, no round_timeout\n", {"epochs: 200"}),
        ("boosting, num_rounds=200 of trees\n", set()),
        ("Epoch 1/9, Loss: 0.41\nEpoch 2/9, Loss: 0.3\nEpoch 1/9, Loss: 0.41\n", {"epochs: 9"}),
        ("Beginning training 500 epochs, logging every 1, batch size 4.\n", {"epochs: 500"}),
        ("Continued training 3.5 epochs ago\n", set()),
        ("`Trainer.fit` stopped: `max_epochs=500` reached.\n", {"epochs: 500"}),
        ("Progress on: 4.09kit/200kit rate:1.5s/it remaining:82:41:21\n", {"total_steps: 200000"}),
    ],
)
def test_planned_length(tmp_path: Path, text: str, expected: set[str]) -> None:
    assert said(tmp_path, text) == expected


def test_a_dictionary_with_switches_holds_settings_and_no_step(tmp_path: Path) -> None:
    text = "PPO params: {'batch_size': 256, 'learning_rate': 0.0003, 'normalize': True, 'num_timesteps': 5000000, 'reward_scaling': 1.0}\n"
    tables, _ = read(tmp_path, text + "STEP: 0 reward: 81.5 reward_std: 97.5\nSTEP: 491520 reward: 103.5 reward_std: 99.5\n")
    assert {c["key"]: json.loads(str(c["value"])) for c in tables["config"]}["num_timesteps"] == 5000000
    assert {(m["step"], m["tag"]) for m in tables["metrics"]} == {(s, t) for s in (0, 491520) for t in ("reward", "reward_std")}
    tables, _ = read(tmp_path, "{'step': 1, 'loss': 2.5, 'improved': True}\n{'step': 2, 'loss': 2.4, 'improved': True}\n")
    assert [(m["step"], m["value"]) for m in tables["metrics"] if m["tag"] == "loss"] == [(1, 2.5), (2, 2.4)]


@pytest.mark.parametrize(("word", "steps"), [("batch", [10, 20, 30, 40]), ("step", [10, 20, 10, 20])])
def test_a_batch_of_how_many_in_front_of_its_epoch_counts_within_it(tmp_path: Path, word: str, steps: list[int]) -> None:
    """Any other word may count over the run."""
    lines = "".join(f"[{word} {i}/20, epoch {e}/2]: loss_total:{2 - e / 8} other:0.5\n" for e in (1, 2) for i in (10, 20))
    tables, _ = read(tmp_path, lines)
    assert [r["step"] for r in tables["metrics"] if r["tag"] == "loss_total"] == steps


@pytest.mark.parametrize(("batches", "of_epochs"), [((405, 405, 405), True), ((3, 4, 5), False)])
def test_a_batch_that_is_the_same_in_each_epoch_is_no_place(tmp_path: Path, batches: tuple[int, ...], of_epochs: bool) -> None:
    lines = (f"Epoch {e}/2\n-----\nbatch = {n}\ntrain Loss: 0.{9 - e} Acc: 0.5\n" for e, n in enumerate(batches))
    tables, _ = read(tmp_path, "".join(lines))
    assert ([r["step"] for r in tables["metrics"] if r["tag"] == "train Loss"] == [0, 1, 2]) == of_epochs


def test_a_bar_that_is_drawn_again_counts_an_epoch(tmp_path: Path) -> None:
    bar = "".join(f"train: {i}%|#| {i}/100 [00:01<00:09, 9.5it/s, loss={3 - i / 100:.2f}]\n" for i in (1, 50, 100))
    assert said(tmp_path, bar * 3) == {"steps_per_epoch: 100"}
    assert said(tmp_path, "Training:   0%|  | 0/100 [00:00<?, ?it/s]\rEpoch 0:   3%|  | 3/100 [00:01<00:09, 9.5it/s, loss=2.0]\n") == {
        "steps_per_epoch: 100"
    }


def test_bars_of_preprocessing_measure_nothing(tmp_path: Path) -> None:
    tables, _ = read(tmp_path, "Filter (num_proc=1): 100%|####| 7500/7500 [00:10<00:00, 700.1 examples/s]\nstep:1 - actor/loss:0.5\n")
    assert {(m["step"], m["tag"]) for m in tables["metrics"]} == {(1, "actor/loss")}


def test_lines_that_count_within_their_epoch_are_laid_end_to_end(tmp_path: Path) -> None:
    lines = "".join(f"[{e},  {i}] loss: {3 / e:.3f}\n" for e in (1, 2, 3) for i in (2000, 4000))
    tables, notes = read(tmp_path, lines)
    assert [m["step"] for m in tables["metrics"] if m["tag"] == "loss"] == [2000, 4000, 6000, 8000, 10000, 12000]
    assert COMPOSED_STEPS in notes


def test_cyclegan_lines(tmp_path: Path) -> None:
    tables, notes = read(
        tmp_path,
        "".join(f"(epoch: {e}, iters: {i}, time: 0.1, data: 0.2) , D_A: 0.3, G_A: 0.5\n" for e, i in ((1, 100), (2, 20), (2, 120))),
    )
    assert [(m["step"], m["tag"]) for m in tables["metrics"] if m["tag"] == "D_A"] == [(100, "D_A"), (120, "D_A"), (220, "D_A")]
    assert COMPOSED_STEPS in notes


def test_steps_that_go_on_over_epochs_stay(tmp_path: Path) -> None:
    tables, notes = read(tmp_path, "".join(f"epoch {1 + i // 3} step {i} loss {3 / i:.3f}\n" for i in range(1, 9)))
    assert [m["step"] for m in tables["metrics"] if m["tag"] == "loss"] == list(range(1, 9))
    assert COMPOSED_STEPS not in notes


def test_a_log_of_epochs_says_so(tmp_path: Path) -> None:
    _, notes = read(tmp_path, "Epoch 1 train_loss 2.0 val_loss 2.1\nEpoch 2 train_loss 1.8 val_loss 2.0\n")
    assert EPOCH_STEPS in notes


@pytest.mark.parametrize(
    "text",
    [
        "Run config :  {'task': 'videoqa', 'max_epoch': 10, 'optim': {'lr': 3e-05}}\n",
        "{   'task': 'videoqa',\n    'max_epoch': 10,\n    'optim': {   'lr': 3e-05}}\n",
        'json = {\n    "task": "videoqa", \n    "max_epoch": 10, \n    "optim": {\n        "lr": 3e-05\n    }\n}\n',
    ],
)
def test_settings_printed_as_a_dictionary(tmp_path: Path, text: str) -> None:
    tables, _ = read(tmp_path, text + "step 1 loss 2.0\n")
    config = {c["key"]: json.loads(str(c["value"])) for c in tables["config"]}
    assert (config["task"], config["max_epoch"], config["optim.lr"]) == ("videoqa", 10, 3e-5)


def test_a_row_of_measurements_is_no_dictionary_of_settings(tmp_path: Path) -> None:
    tables, _ = read(tmp_path, "{'loss': 2.3, 'grad_norm': 1.0, 'learning_rate': 1e-4, 'epoch': 0.1}\n")
    assert tables["config"] == []


def test_options_of_a_command_line(tmp_path: Path) -> None:
    tables, _ = read(
        tmp_path,
        "cmd = deepspeed main.py --data a b --lr=1e-05 --num_train_epochs 16 --deepspeed --token hf_abcdefghijklmnopqrstuvwxyz123456\n",
    )
    config = {c["key"]: json.loads(str(c["value"])) for c in tables["config"]}
    assert {k: config[k] for k in ("data", "lr", "num_train_epochs", "deepspeed")} == {
        "data": "a b",
        "lr": 1e-5,
        "num_train_epochs": 16,
        "deepspeed": True,
    }
    assert "hf_abcdef" not in str(tables)


def test_dict_lines_that_came_in_a_bunch_take_their_steps_from_their_epochs(tmp_path: Path) -> None:
    bars = "".join(f" {i}%|#| {i}/200 [00:01<00:09, 9.5it/s]\n" for i in range(0, 101, 10))
    rows = "".join(f"{{'loss': {3 - e:.2f}, 'learning_rate': 1e-05, 'epoch': {e}}}\n" for e in (0.1, 0.2, 0.3))
    tables, _ = read(tmp_path, "epochs: 2\nlogging_steps: 10\n" + bars.rstrip("\n") + rows)
    assert [m["step"] for m in tables["metrics"] if m["tag"] == "loss"] == [10, 20, 30]


@pytest.mark.parametrize("reached", [100, 90])
def test_dict_lines_in_bunches_take_their_steps_from_a_bar_that_came_to_its_end(tmp_path: Path, reached: int) -> None:
    """The output of a program under nohup comes in bunches, far from the bar; without the bar's end, no epoch says how many steps it has."""
    bar = "".join(f" {i}%|#| {i}/100 [00:01<00:09, 9.5it/s]\n" for i in range(0, reached + 1, 10))
    rows = "".join(f"{{'loss': {3 - i / 100:.2f}, 'learning_rate': 1e-05, 'epoch': {i / 150:.2f}}}\n" for i in range(20, 101, 20))
    closing = f"{{'train_runtime': 30.5, 'train_loss': 2.5, 'epoch': {reached / 150:.2f}}}\n"
    tables, notes = read(tmp_path, bar + rows + closing)
    steps = [m["step"] for m in tables["metrics"] if m["tag"] == "loss"]
    assert steps == ([20, 40, 60, 80, 100] if reached == 100 else [1, 2, 3, 4, 5])
    assert any("running number" in note for note in notes) is (reached != 100)


def test_notes_that_are_a_log_are_read_and_others_are_not(tmp_path: Path) -> None:
    log = "Namespace(epochs=5, lr=20)\n" + "".join(
        f"| epoch 1 | {i}/ 2983 batches | lr 20.0 | loss 5.1 | ppl 164.0\n" for i in range(200, 2000, 200)
    )
    note = "# Results\n\nWe trained for 5 epochs.\n\n| step 100 | loss 2.0 |\n\nAnd that was that.\n"
    for name, text, claimed in (("model.md", log, True), ("notes.md", note, False)):
        assert console.claims(tmp_path / name, text.encode()[:HEAD_BYTES]) is claimed


def test_a_launch_that_follows_in_the_same_log_says_its_length_for_itself(tmp_path: Path) -> None:
    line = "2026-03-01 1{h}:0{i}:00 | INFO | epoch: {e}/30, iter: {i}/9, total_loss: {x:.1f}\n"
    first = "".join(line.format(h=0, e=1, i=i, x=9 - i / 9) for i in range(1, 8))
    second = "".join(line.format(h=2, e=e, i=i, x=9 - e) for e in range(1, 4) for i in range(1, 10))
    tables, _ = read(tmp_path, first + "loading checkpoint weights/last.pth\n" + second)
    plans = [(e["text"], e["at"]) for e in tables["events"] if e["kind"] == "plan"]
    assert plans == [("epochs: 30", 1), ("steps_per_epoch: 9", 1), ("epochs: 30", 9), ("steps_per_epoch: 9", 9)]
    for begun, again in ((second, [("epochs: 30", 9), ("steps_per_epoch: 9", 9)]), (second[second.index("iter: 4") - 45 :], [])):
        tables, _ = read(tmp_path, first + "saving checkpoint weights/last.pth\n" + begun)
        plans = [(e["text"], e["at"]) for e in tables["events"] if e["kind"] == "plan"]
        assert plans == [("epochs: 30", 1), ("steps_per_epoch: 9", 1), *again], "the first batch of the first epoch says that another began"
