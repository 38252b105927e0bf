"""A progress bar in one stream of a job beside the numbers that it printed into the other."""

from __future__ import annotations

from pathlib import Path

import pytest

import parsers
from parsers.tables import Run


def job(folder: Path, lines: int, at: int, of: int = 500, bar: str = "", measures: str = "") -> Run:
    (folder / "job.out").write_text(
        "".join(f"{{'loss': {2 - i / 50}, 'learning_rate': 1e-05, 'epoch': 0.{i:02}}}\n" for i in range(1, lines + 1))
    )
    drawn = (f"{bar}{100 * i // of:3}%|###   | {i}/{of} [00:{i % 60:02}<02:12,  1.55s/it]" for i in range(at + 1))
    (folder / "job.err").write_text("loading\n" + "\r".join(drawn) + "\n" + measures)
    return parsers.read(folder)


def steps(run: Run) -> list[int]:
    return [r["step"] for r in run.tables["metrics"].to_pylist() if r["tag"] == "loss" and r["source"] == "job.out"]


@pytest.mark.parametrize(("lines", "at", "every"), [(26, 260, 10), (26, 267, 10), (10, 500, 50), (26, 26, 1)])
def test_a_bar_in_the_other_stream_says_at_which_step_each_line_was_printed(tmp_path: Path, lines: int, at: int, every: int) -> None:
    assert steps(job(tmp_path, lines, at)) == [i * every for i in range(1, lines + 1)]


@pytest.mark.parametrize(
    ("lines", "at", "bar", "measures"),
    [
        (3, 100, "", ""),  # 26 to 33 steps a line would fit, none of which people set
        (2, 20, "", ""),
        (26, 12, "", ""),  # of something else: more lines than steps
        (26, 260, "Map: ", ""),
        (26, 260, "", "step 3: eval loss 0.5\n"),  # that log says its steps itself
    ],
)
def test_a_bar_that_may_be_of_something_else_places_nothing(tmp_path: Path, lines: int, at: int, bar: str, measures: str) -> None:
    assert steps(job(tmp_path, lines, at, bar=bar, measures=measures)) == [*range(1, lines + 1)]


def test_lines_of_a_training_that_went_on_stand_behind_the_step_it_went_on_from(tmp_path: Path) -> None:
    job(tmp_path, 20, 500)
    text = (tmp_path / "job.out").read_text()
    (tmp_path / "job.out").write_text(f"Resuming training from out/checkpoint-300\n{text}")
    assert steps(parsers.read(tmp_path)) == [300 + 10 * i for i in range(1, 21)]
