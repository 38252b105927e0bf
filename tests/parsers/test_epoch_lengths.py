"""How long an epoch is where that stands apart from what is measured: on a bar beside a global step, above the losses, in the rows of Ultralytics."""

from __future__ import annotations

from pathlib import Path

import pytest

import parsers
from parsers.records.vocabulary import COMPOSED_STEPS, EPOCH_STEPS
from tests.parsers.test_plan_lines import read, said


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Epoch 0:   2%|#  | 87/5087 [01:01<58:27,  1.43it/s, v_num=0, loss=1.110, global_step=86.00]\n", {"steps_per_epoch: 5087"}),
        ("Epoch 1/500\n  Batch 1/218\n    Loss: 0.9\n  Batch 21/218\n    Loss: 0.5\n", {"epochs: 500", "steps_per_epoch: 218"}),
        ("Epoch 1/500\n  Batch 1\n    Loss: 0.9\n  Batch 21\n    Loss: 0.5\n", {"epochs: 500"}),
    ],
)
def test_the_length_of_an_epoch_that_stands_apart_from_its_losses(tmp_path: Path, text: str, expected: set[str]) -> None:
    assert said(tmp_path, text) == expected


def test_batches_that_stand_above_their_losses_count_on_from_epoch_to_epoch(tmp_path: Path) -> None:
    batch = "  Batch {i}/218\n    Loss: {x:.4f}\n    Grad norm: 2.5\n"
    epochs = [f"Epoch {e}/500\n" + "".join(batch.format(i=i, x=1 / e / i) for i in (1, 2, 21, 201)) for e in (1, 2)]
    tables, notes = read(tmp_path, "".join(epochs))
    assert [m["step"] for m in tables["metrics"] if m["tag"] == "Loss"] == [1, 2, 21, 201, 219, 220, 239, 419]
    assert any(COMPOSED_STEPS in note for note in notes)


def test_rows_of_ultralytics_count_epochs(tmp_path: Path) -> None:
    names = "     Epoch   gpu_mem       box       obj       cls    labels  img_size\n"
    rows = "".join(f"{names}     {e}/199     18.6G    0.17{e}    0.0142   0.01563        55      1600: 100%|█|\n" for e in range(3))
    tables, notes = read(tmp_path, "Starting training for 200 epochs...\n" + rows)
    assert [m["step"] for m in tables["metrics"] if m["tag"] == "box"] == [0, 1, 2]
    assert EPOCH_STEPS in notes


def test_a_count_that_ran_through_two_epochs_runs_through_a_resume_at_the_border_too(tmp_path: Path) -> None:
    places = [(1, 5), (1, 10), (2, 15), (2, 20), (3, 25), (3, 30), (4, 30), (4, 35)]
    tables, _ = read(tmp_path, "".join(f"Epoch {e}, Batch {i}, Training Loss: {3 - i / 50:.4f}\n" for e, i in places))
    assert [m["step"] for m in tables["metrics"] if m["tag"] == "Training Loss"] == [i for _, i in places]
    fallen = [(1, 5), (1, 10), (2, 5), (2, 10), (3, 5), (3, 10)]
    tables, _ = read(tmp_path, "".join(f"Epoch {e}, Batch {i}, Training Loss: {3 - i / 50:.4f}\n" for e, i in fallen))
    assert [m["step"] for m in tables["metrics"] if m["tag"] == "Training Loss"] == [5, 10, 15, 20, 25, 30]


def keras(epochs: range, batches: int) -> str:
    return "".join(f"Epoch {e}/9\n{batches}/{batches} - 1s - 2ms/step - loss: {1 / e:.4f} - val_loss: {1.1 / e:.4f}\n" for e in epochs)


@pytest.mark.parametrize("launch", ["", "\n[relaunch] loading last.keras, epoch 3\n"])
def test_epochs_that_take_another_number_of_batches_go_on_in_steps(tmp_path: Path, launch: str) -> None:
    """With another batch size, be it in the same life or after a launch that goes on."""
    tables, _ = read(tmp_path, keras(range(1, 4), 50) + launch + keras(range(4, 7), 5))
    for tag in ("loss", "val_loss"):
        assert [m["step"] for m in tables["metrics"] if m["tag"] == tag] == [50, 100, 150, 155, 160, 165]


def test_a_second_training_with_other_batches_counts_from_its_own_beginning(tmp_path: Path) -> None:
    tables, _ = read(tmp_path, keras(range(1, 4), 50) + keras(range(1, 4), 5))
    assert [m["step"] for m in tables["metrics"] if m["tag"] == "loss"] == [50, 100, 150, 5, 10, 15]


def test_batches_of_an_evaluation_stand_where_training_stands(tmp_path: Path) -> None:
    """Of another set, with a total of its own: ``VALID SET | Epoch [02/9], Step[0010/0031]``."""
    row = "| {} SET | Epoch [{:02d}/9], Step[{:04d}/{:04d}], Loss: {:.4f}, Top 1 Acc: 0.1875\n"
    lines = []
    for epoch in range(1, 5):
        lines += [row.format("TRAIN", epoch, i, 444, 4 / epoch + 0.001 * i) for i in range(0, 444, 20)]
        lines += [row.format("VALID", epoch, i, 31, 2 / epoch + 0.001 * i) for i in range(0, 31, 10)] + [
            f"valid Loss: {2 / epoch:.4f} Top 1 Acc: 0.19\n"
        ]
    (tmp_path / "nohup.out").write_text("".join(lines))
    rows = parsers.read(tmp_path).tables["metrics"].to_pylist()
    assert {r["step"] for r in rows if r["name"] == "loss.eval"} == {444 * k - 4 for k in range(1, 5)}
    assert max(r["step"] for r in rows if r["name"] == "loss.train") == 4 * 444 - 4
