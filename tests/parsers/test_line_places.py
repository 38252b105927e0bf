"""Steps that the form of a console line tells, and epochs whose number of batches changes."""

from __future__ import annotations

from pathlib import Path

import pytest

from parsers.console_format.line_numbers import read_line
from tests.parsers.test_console_tables import series


def test_epochs_and_ranges_of_batches_as_espnet_writes_them(tmp_path: Path) -> None:
    at = "[node1] 2026-01-02 10:00:0{} (trainer:7{}4) INFO: "
    text = "".join(
        at.format(e, e) + f"{e}epoch:train:{b - 9}-{b}batch: iter_time=0.25, loss_ctc={loss}, optim0_lr0=1.000e-04\n" * 1
        + (at.format(e, e) + f"{e}epoch results: [train] loss_ctc=4.5, [valid] loss_ctc={loss - 0.5}, cer_ctc=0.5\n") * (b == 20)
        for e, b, loss in ((1, 10, 9.5), (1, 20, 8.5), (2, 10, 7.5), (2, 20, 6.5))
    )  # fmt: skip
    found = series(tmp_path, text)
    assert found["loss_ctc"] == [(10, 9.5), (20, 8.5), (30, 7.5), (40, 6.5)]
    assert found["valid loss_ctc"] == [(20, 8.0), (40, 6.0)]
    assert not {"trainer", "node1"} & found.keys()


def test_epochs_that_go_on_with_another_number_of_batches_go_on_in_steps(tmp_path: Path) -> None:
    line = "Train: {} [{:>4}/{} ({}%)]  Loss: {:.3f}\n"
    text = "".join(line.format(e, i, n, 100 * i // n, 9 - e) for e, n in ((0, 40), (1, 40), (2, 4), (3, 4)) for i in (0, n - 1))
    assert [step for step, _ in series(tmp_path, text)["Loss"]] == [0, 39, 40, 79, 80, 83, 84, 87]


def test_epochs_that_fall_back_are_where_they_were(tmp_path: Path) -> None:
    text = "".join(f"Train: {e} [{i}/40]  Loss: {9 - e}.5\n" for e in (0, 1, 2, 1, 2) for i in (0, 20))
    assert [step for step, _ in series(tmp_path, text)["Loss"]] == [0, 20, 40, 60, 80, 100, 40, 60, 80, 100]


def test_an_evaluation_of_other_batches_moves_no_epoch(tmp_path: Path) -> None:
    text = "".join(f"Train: {e} [{i}/40]  Loss: {9 - e}.5\n" * (m == 40) + f"Val: {e} [{i}/8]  Loss: 1.5\n" * (m == 8) for e in (0, 1, 2) for i, m in ((0, 40), (20, 40), (4, 8)))  # fmt: skip
    assert [step for step, _ in series(tmp_path, text)["Loss"]] == [0, 20, 40, 60, 80, 100]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("====> Epoch: 1 Average loss: 3.5  (rec 3.25, kld 0.25, beta 2.0)", {"Average loss": 3.5, "rec": 3.25, "kld": 0.25, "beta": 2.0}),
        ("step 3 | loss 4.5 (ce 4.25, aux 0.25)", {"loss": 4.5, "ce": 4.25, "aux": 0.25}),
        ("it 3 | loss 4.5 | attn max 0.25 H 3.25 | 9 ms", {"loss": 4.5, "attn max": 0.25}),  # two in a cell
        ("it 3 | loss 4.5 | took about 3 runs in 9 days | 9 ms", {"loss": 4.5}),
        ("step 3 | acc 0.5 (best 0.75)", {"acc": 0.5}),  # where the best was is no measurement of this step
    ],
)
def test_parts_that_are_named_in_brackets(text: str, found: dict[str, float]) -> None:
    assert dict(read_line(text).metrics()) == found


def test_arrows_in_front_compare_nothing(tmp_path: Path) -> None:
    text = "".join(f"Train Epoch: {e} [{i}/800 (0%)]\tLoss: {5 - e}.5\n" for e in (1, 2) for i in (0, 400)) + "====> Test set loss: 2.25\n"
    assert series(tmp_path, text)["Test set loss"] == [(1200, 2.25)]
    assert "loss" not in series(tmp_path, "Train Epoch: 1 [0/800 (0%)]\tLoss: 5.5\nif x == 3 loss = 2.5\n", "b.log")


@pytest.mark.parametrize(("words", "steps"), [("Start Evaluating {} Epoch", [1, 10, 20]), ("Start training for {} epochs", [])])
def test_an_act_in_an_epoch_is_a_place_and_one_for_epochs_is_none(tmp_path: Path, words: str, steps: list[int]) -> None:
    text = "".join(f"{words.format(e)}..0%..10%..20%....BEST_ACC: {50 + e}.5%....[success][66.5 s]\n" for e in (1, 10, 20))
    assert [step for step, _ in series(tmp_path, text).get("BEST_ACC", []) if step is not None] == steps


@pytest.mark.parametrize(
    ("line", "parts"),
    [
        ("[ Valid | 003/100 ] loss = 1.25, acc = 0.5", {"epoch": 3}),
        ("[ Train | 003/100 ] loss = 1.25, acc = 0.5", {"epoch": 3}),
        ("[ Valid | host 3/100 ] loss = 1.25, acc = 0.5", {}),
        ("Training [====      ] 8.5% 5000/58874 | 4.62 it/s | ETA: 11664.8 s | loss=3.91", {"it": 5000, "total": 58874}),
        ("Tokenizing [========] 100.0% 98436/98436 | 414.98 MiB/s | ETA: 0.0 s", {}),  # measures nothing of a training
        ("Loss after 3 epochs: 0.053", {"epoch": 3}),
        ("[Mar 29, 22:34:54] 1016 4.5932852879947985", {"step": 1016}),  # ColBERT
        ("[Mar 29, 22:34:54] 1016 queries of 45.5 words", {}),
        ("Loss after 3 attempts: 0.053", {}),
        ("Labels: Down=11778, Stable=19264, Up=11459", {}),
        ("Ep. 1 : Up. 100 : Sen. 12,345 : Cost 8.5", {"epoch": 1, "step": 100}),  # Marian
    ],
)
def test_places_by_their_form(line: str, parts: dict[str, int]) -> None:
    assert read_line(line).parts() == parts


def test_samples_in_front_count_where_they_rise(tmp_path: Path) -> None:
    rising = "".join(f"Sample {n}000, up {n * 50}, reward {n}.5, pi loss -3.5\n" for n in (1, 2, 3, 4))
    assert [step for step, _ in series(tmp_path, rising)["pi loss"]] == [1000, 2000, 3000, 4000]
    fixed = "".join(f"step {n} loss {n}.5\nSample 8000, reward 1.5, pi loss -3.5\n" for n in (1, 2, 3, 4))
    assert [step for step, _ in series(tmp_path, fixed, "b.log")["loss"]] == [1, 2, 3, 4]


def test_samples_of_an_evaluation_are_no_steps(tmp_path: Path) -> None:
    text = "".join(
        f"Iters: {e}0/90 || Loss: {4 - e}.5\n" * (i == 0) + f"Sample: {i + 1}, Validation acc: 0.5\n" for e in (1, 2) for i in range(9)
    )
    assert {step for step, _ in series(tmp_path, text)["Validation acc"]} == {10, 20}


def test_what_ray_counts_of_its_lines_is_not_measured(tmp_path: Path) -> None:
    text = "(train pid=7) step {} loss {}.5\x1b[32m [repeated 4x across cluster]\x1b[0m\n"
    assert series(tmp_path, "".join(text.format(i, 9 - i) for i in (1, 2, 3))).keys() == {"loss"}


def test_keys_of_settings_in_yaml_head_no_evaluation_and_count_nothing(tmp_path: Path) -> None:
    settings = "** configuration:\neval:\n  interval: 1000\nagent:\n  num_updates: 50\n  alpha: 0.1\nprecision: 0.1\n"
    lines = "".join(f"step {i} loss {9 - i}.5\n" for i in (1, 2, 3))
    assert series(tmp_path, settings + lines) == {"loss": [(1, 8.5), (2, 7.5), (3, 6.5)]}
    heading = lines + "eval:\nprecision: 0.125\n"
    assert series(tmp_path, heading, "b.log")["eval precision"] == [(3, 0.125)]


def test_a_number_of_updates_above_losses_counts_where_it_rises(tmp_path: Path) -> None:
    text = "".join(f"time elapsed: 0:0{i}:07\nnum of updates: {i}000\nret loss: {5 - i}.5\nstate loss: 0.125\n=====\n" for i in (1, 2, 3))
    assert series(tmp_path, text)["ret loss"][1:] == [(2000, 3.5), (3000, 2.5)]
    text = "num of updates: 5000\n" + "".join(f"num of epochs: 30\nret loss: {5 - i}.5\n" for i in (1, 2, 3))
    assert {step for step, _ in series(tmp_path, text, "b.log")["ret loss"]}.isdisjoint({30, 5000})


@pytest.mark.parametrize(
    ("text", "roles"),
    [
        ("INFO:2-epoch (84/900): total loss 11.25", {"epoch": 2, "it": 84, "total": 900}),
        ("Epoch [3]/[25] \t Loss: 1.5", {"epoch": 3, "epochs": 25}),
        ("3/25 epoch G_loss : 4.5, D_loss : 0.25", {"epoch": 3, "epochs": 25}),
        ("Epoch 1.01 / 500, i = 130 / 12000, loss = 1.5", {"it": 130, "total": 12000}),
        ("Epoch (84/900): total loss 11.25", {"epoch": 84, "epochs": 900}),
    ],
)
def test_epochs_in_brackets_and_before_their_word(text: str, roles: dict[str, int]) -> None:
    line = read_line(text)
    assert {role: line.value(role) for role in roles} == roles
