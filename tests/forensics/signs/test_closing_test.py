"""The test at the end beside the evaluations on the way: far worse, alike, and what cannot be compared."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

import forensics
from forensics.signs.closing_test import closing_test_costs_more, closing_test_far_worse
from forensics.signs.sign import ABSENT, CANNOT_TELL, SEEN, Sign, Symptoms


def looked(folder: Path, last: str, head: str = "", score: str = "val_acc", top: float = 0.96) -> Sign:
    lines = [f"epoch {i} | train_loss {1 / i:.4f} | val_loss {1.1 / i:.4f} | {score} {top - 0.3 / i:.4f}\n" for i in range(1, 41)]
    (folder / "train.log").write_text(head + "".join(lines) + f"{last}\n")
    return closing_test_far_worse(Symptoms(forensics.read(str(folder)), ()))


@pytest.mark.parametrize(
    ("last", "state"),
    [
        ("test acc 0.730  macro F1 0.728", SEEN),
        ("Test:  Acc@1 70.375 Acc@5 90.1", SEEN),  # in percent
        ("test_acc=0.73", SEEN),
        ("Final test accuracy: 0.73", SEEN),
        ("test acc 0.930  macro F1 0.128", ABSENT),  # the F1 of no evaluation on the way
        ("Test:  Acc@1 95.5 Acc@5 60.1", ABSENT),
        ("test acc 0.99", ABSENT),
        ("test acc 0.45", SEEN),
        ("oot acc 0.45", SEEN),  # out of time, as banks say
        ("test auc 0.45", CANNOT_TELL),  # another score
        ("test robust acc 0.45", CANNOT_TELL),  # another question
        ("val_acc=0.73", CANNOT_TELL),  # one more on the way
        ("done", CANNOT_TELL),
    ],
)
def test_the_score_of_a_closing_test(tmp_path: Path, last: str, state: str) -> None:
    assert looked(tmp_path, last).state == state


@pytest.mark.parametrize(
    ("score", "last"), [("val_macroF1", "test macro F1 0.6"), ("dev_auc", "test roc_auc 0.6"), ("valid/acc", "test/acc: 0.6")]
)
def test_other_scores_and_names(tmp_path: Path, score: str, last: str) -> None:
    assert looked(tmp_path, last, score=score).state == SEEN


@pytest.mark.parametrize(
    ("head", "value", "state"),
    [
        ("", 0.83, SEEN),
        ("", 0.8701, ABSENT),
        ("n_test: 40\n", 0.83, CANNOT_TELL),  # forty samples scatter by as much
        ("n_test: 40000\n", 0.8701, CANNOT_TELL),  # no chance, and not far
        ("n_test: 40000\n", 0.83, SEEN),
    ],
)
def test_the_error_of_a_share(tmp_path: Path, head: str, value: float, state: str) -> None:
    assert looked(tmp_path, f"test acc {value}", head).state == state


def test_a_test_on_the_way_is_none_at_the_end(tmp_path: Path) -> None:
    assert looked(tmp_path, "epoch 41 | test_acc 0.5\nepoch 42 | test_acc 0.5").state == CANNOT_TELL
    lines = [f"epoch {i} | train_loss {1 / i:.4f} | val_acc {0.96 - 0.3 / i:.4f}\n" for i in range(1, 41)]
    (tmp_path / "train.log").write_text("epoch 0 | test_acc 0.1\n" + "".join(lines))  # before the training
    assert closing_test_far_worse(Symptoms(forensics.read(str(tmp_path)), ())).state == CANNOT_TELL


def test_a_set_called_va_is_one_on_the_way(tmp_path: Path) -> None:
    assert looked(tmp_path, "test acc 0.73", score="acc@va").state == SEEN


@pytest.mark.parametrize(("value", "state"), [(0.04, SEEN), (0.95, ABSENT)])
def test_a_share_of_the_variance_is_compared_too(tmp_path: Path, value: float, state: str) -> None:
    rows = [{"epoch": i, "train_loss": 1 / i, "val_r2": 0.96 - 0.3 / i} for i in range(1, 41)]
    (tmp_path / "log.jsonl").write_text("".join(json.dumps(row) + "\n" for row in [*rows, {"epoch": 40, "test_r2": value}]))
    assert closing_test_far_worse(Symptoms(forensics.read(str(tmp_path)), ())).state == state


@pytest.mark.parametrize(
    ("held", "last", "state"),
    [
        (lambda i: 0.2 + 6 / i, "test mae 4.96", SEEN),
        (lambda i: 0.2 + 6 / i, "test mae 0.40", ABSENT),  # little more than on the way
        (lambda i: 0.2 + 6 / i, "test mae 0.70", ABSENT),  # twice as much, and still most of what was learnt
        (lambda i: 0.2 + 6 / i, "test rmse 4.96", CANNOT_TELL),  # another error
        (lambda i: 0.2 + i / 10, "test mae 9.0", CANNOT_TELL),  # nothing was gained
        (lambda i: 0.2 + 6 / i, "done", CANNOT_TELL),
    ],
)
def test_the_cost_of_a_closing_test(tmp_path: Path, held: Callable[[int], float], last: str, state: str) -> None:
    lines = [f"epoch {i} | train_loss {1 / i:.4f} | val_mae {held(i):.4f}\n" for i in range(1, 41)]
    (tmp_path / "train.log").write_text("".join(lines) + f"{last}\n")
    assert closing_test_costs_more(Symptoms(forensics.read(str(tmp_path)), ())).state == state
