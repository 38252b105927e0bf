"""Steps that a logger rounds to thousands (LeRobot's), and numbers with such a unit that are no step of a loop."""

from __future__ import annotations

from pathlib import Path

import pytest

import parsers
from tests.parsers.test_console_tables import series


def label(n: int) -> str:
    """As LeRobot's format_big_number writes it."""
    return str(n) if n < 1000 else f"{n / 1000:.0f}K" if n < 1_000_000 else f"{n / 1_000_000:.0f}M"


def line(step: int) -> str:
    told = f"step:{label(step)} smpl:{label(32 * step)} ep:{label(step // 9)} epch:{step / 410:.2f} loss:{900 / (step + 300):.3f} grdn:9.5 lr:1.0e-05"
    return f"INFO 2026-01-02 03:04:05 train.py:357 {told}\n"


@pytest.mark.parametrize(("first", "every"), [(100, 100), (200, 200), (400, 200), (250, 250), (500, 500), (1000, 1000), (5000, 5000)])
def test_a_rounded_step_is_the_next_one_at_the_distance_of_those_before(tmp_path: Path, first: int, every: int) -> None:
    steps = list(range(first, 20_001, every))
    found = series(tmp_path, "".join(map(line, steps)))
    assert [step for step, _ in found["loss"]] == steps
    assert not {"step", "ep"} & found.keys()
    assert found["epch"][0] == (steps[0], round(steps[0] / 410, 2))
    assert found["episodes"][0] == (steps[0], steps[0] // 9)


def test_behind_lines_that_were_lost_a_step_is_one_that_its_label_rounds(tmp_path: Path) -> None:
    steps = [200, 400, 600, 800, 4200, 4400]
    assert [step for step, _ in series(tmp_path, "".join(map(line, steps)))["loss"]] == [200, 400, 600, 800, 3600, 4000]


def test_another_launch_below_counts_anew(tmp_path: Path) -> None:
    steps = [*range(200, 2001, 200), *range(200, 2001, 200)]
    assert [step for step, _ in series(tmp_path, "".join(map(line, steps)))["loss"]] == steps


def test_without_a_distance_the_label_is_the_step(tmp_path: Path) -> None:
    found = series(tmp_path, "".join(line(n) for n in (20_000, 20_200, 20_400, 20_600, 21_000)))
    assert [step for step, _ in found["loss"]] == [20_000, 20_000, 20_000, 21_000, 21_000]


@pytest.mark.parametrize("text", ["steps: 10K, batch 32", "max_step:10K lr:0.1", "it took one step: 2M parameters moved"])
def test_a_plan_with_a_unit_is_no_step(tmp_path: Path, text: str) -> None:
    log = f"{text}\n" + "".join(f"step:{n} loss:{5 - n / 1000:.3f}\n" for n in range(100, 1000, 100)) + f"{text}\n"
    found = series(tmp_path, log)["loss"]
    assert [step for step, _ in found] == list(range(100, 1000, 100))


def boxes(counts: list[int]) -> str:
    """The logger of OpenAI's baselines, and of guided-diffusion."""
    rule = "-----------------------\n"
    return "".join(f"{rule}| loss | {2 - i / 1e6:<8.3g} |\n| step | {i:<8.3g} |\n{rule}" for i in counts)


@pytest.mark.parametrize("every", [1, 10, 500])
def test_a_box_with_three_digits_counts_on(tmp_path: Path, every: int) -> None:
    counts = [*range(0, 3000 * every, every)]
    (tmp_path / "log.txt").write_text(boxes(counts))
    rows = parsers.read(tmp_path).tables["metrics"].to_pylist()
    assert [r["step"] for r in rows if r["tag"] == "loss"] == counts


def test_a_box_of_a_run_that_resumes_counts_from_there(tmp_path: Path) -> None:
    counts = [*range(0, 20_000, 100), *range(12_000, 15_000, 100)]
    (tmp_path / "log.txt").write_text(boxes(counts))
    rows = parsers.read(tmp_path).tables["metrics"].to_pylist()
    assert [r["step"] for r in rows if r["tag"] == "loss"] == counts
