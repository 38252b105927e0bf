"""Bars without an epoch that are drawn anew in each: below a line that names it, above one that sums it up, and bars that are of something else."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.parsers.test_console_tables import series


def bar(it: int, total: int, loss: float, name: str = "Training") -> str:
    return f"{name}: {100 * it // total:3}%|{'#' * (it * 10 // total):10}| {it}/{total} [00:01<00:02, 9.5it/s, loss={loss:.2f}]\r"


def drawn(epochs: list[int], above: str = "", below: str = "\n", total: int = 40) -> str:
    return "".join(above.format(e) + bar(0, total, 3.5) + bar(20, total, 3.25) + bar(total - 1, total, 3) + below.format(e) for e in epochs)


@pytest.mark.parametrize(
    ("above", "below"),
    [
        ("Epoch {}/4\n", "\n"),
        ("Epoch {}/4\n", "\nTrain Loss: 2.5 | Val Loss: 2.75\n"),
        ("", "\nEpoch {}/4 | Train Loss: 2.5 | Val Loss: 2.75\n"),
    ],
)
def test_a_bar_that_is_drawn_anew_in_each_epoch_goes_on_in_steps(tmp_path: Path, above: str, below: str) -> None:
    found = series(tmp_path, drawn([1, 2, 3], above, below))
    assert [step for step, _ in found["loss"]] == [0, 20, 39, 40, 60, 79, 80, 100, 119]
    assert [value for _, value in found["epoch"]] == [1, 2, 3]
    assert [step for step, _ in found.get("Val Loss", [])] in ([], [39, 79, 119])


def test_a_bar_over_the_whole_run_counts_on_through_epochs(tmp_path: Path) -> None:
    text = "".join(bar(20 * e + i, 80, 3) + f"\nEpoch {e + 1}/4 | Val Loss: 2.75\n" * (i == 15) for e in range(4) for i in (0, 10, 15))
    assert [step for step, _ in series(tmp_path, text)["loss"]] == [0, 10, 15, 20, 30, 35, 40, 50, 55, 60, 70, 75]


@pytest.mark.parametrize("epochs", [[1, 2, 3, 1, 2, 3], [5, 6, 7]])
def test_the_line_below_says_of_which_epoch_a_bar_was(tmp_path: Path, epochs: list[int]) -> None:
    """The next fold begins at its first epoch, and a resumed log at a later one."""
    found = series(tmp_path, drawn(epochs, below="\nEpoch {}/9 | Train Loss: 2.5\n"))["loss"]
    assert [step for step, _ in found] == [(e - 1) * 40 + i for e in epochs for i in (0, 20, 39)]


def test_a_bar_without_epochs_that_is_drawn_again_is_another_launch(tmp_path: Path) -> None:
    assert [step for step, _ in series(tmp_path, drawn([1, 2]))["loss"]] == [0, 20, 39, 0, 20, 39]


def test_a_shorter_bar_within_an_epoch_counts_no_steps(tmp_path: Path) -> None:
    text = "".join(f"Epoch {e}/3\n" + bar(0, 40, 3) + bar(39, 40, 2.5) + "\n" + bar(3, 8, 2.75, "Progress") + "\n" for e in (1, 2))
    found = series(tmp_path, text)
    assert [step for step, _ in found["loss"]] == [0, 39, 40, 79]
    assert [step for step, _ in found["eval loss"]] == [39, 79]


def test_batches_of_how_many_begin_again_in_each_epoch(tmp_path: Path) -> None:
    """``Current batch: 20/40`` above the line that names the epoch; an evaluation counts batches of its own."""
    text = "".join(
        "".join(f"train --- Current batch:{i}/40  loss:[ {9 - e}.{i}]\n" for i in (20, 40))
        + f"Epoch [{e}]/[2] \t Training Phase Loss: {9 - e}.25 \t Accuracy: 0.{e + 5}\n"
        + f"val --- Current batch:10/10  loss:[ {8 - e}.5]\n"
        for e in range(3)
    )
    found = series(tmp_path, text)
    assert [step for step, _ in found["loss"]] == [20, 40, 60, 80, 100, 120]
    assert found["Training Phase Loss"] == [(40, 9.25), (80, 8.25), (120, 7.25)]
    assert found["val loss"] == [(40, 8.5), (80, 7.5), (120, 6.5)]


def test_batches_of_how_many_of_one_epoch_are_its_steps(tmp_path: Path) -> None:
    text = "".join(f"batch: {i}/400  loss: {9 - i / 100:.2f}\n" for i in range(0, 400, 50))
    assert [step for step, _ in series(tmp_path, text)["loss"]] == [*range(0, 400, 50)]
