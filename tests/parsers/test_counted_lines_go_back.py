"""Trainer's lines that are numbered for want of steps: where their epoch goes back, and beside the state that says the step of each epoch."""

from __future__ import annotations

import json
from pathlib import Path

import parsers
from forensics.run import done_twice
from parsers.tables import Run


def said(epochs: list[float], between: dict[int, str] | None = None) -> str:
    lines = [f"{{'loss': {3 - e / 10:.4g}, 'learning_rate': 1e-05, 'epoch': {e:.4g}}}\n" for e in epochs]
    return "".join((between or {}).get(i, "") + line for i, line in enumerate(lines))


def steps(run: Run, source: str = "train.log") -> list[int]:
    return [r["step"] for r in run.tables["metrics"].to_pylist() if r["tag"] == "loss" and r["source"] == source]


def tenths(first: int, last: int) -> list[float]:
    return [i / 10 for i in range(first, last + 1)]


STOP = "^C KeyboardInterrupt\nresuming from out/checkpoint-200\n"


def test_the_number_goes_back_with_the_epoch(tmp_path: Path) -> None:
    (tmp_path / "train.log").write_text(said([*tenths(1, 24), *tenths(21, 30)], {24: STOP}) + "{'eval_loss': 1.5, 'eval_runtime': 2.0}\n")
    run = parsers.read(tmp_path)
    assert steps(run) == [*range(1, 25), *range(21, 31)]
    assert [a["steps"] for a in run.attempts] == [[1, 24], [21, 30]]
    assert {r["step"] for r in run.tables["metrics"].to_pylist() if r["tag"] == "eval_loss"} == {30}


def test_it_does_not_where_another_training_begins_or_two_write_by_turns(tmp_path: Path) -> None:
    anew = [*tenths(1, 20), *tenths(1, 20)]
    turns = [e for i in range(1, 12) for e in (i / 10 + 2, i / 10)]
    for i, epochs in enumerate((anew, turns)):
        (tmp_path / str(i)).mkdir()
        (tmp_path / str(i) / "train.log").write_text(said(epochs))
        assert steps(parsers.read(tmp_path / str(i))) == [*range(1, len(epochs) + 1)]


def state(folder: Path, last: int) -> None:
    history = [{"loss": 3 - i / 100 + 1e-5, "learning_rate": 1e-5, "epoch": i / 10, "step": 7 * i} for i in range(1, last + 1)]
    (folder / "trainer_state.json").write_text(json.dumps({"global_step": 7 * last, "log_history": history, "max_steps": 7 * last}))


def test_a_state_beside_the_lines_says_the_step_of_each_epoch(tmp_path: Path) -> None:
    (tmp_path / "train.log").write_text(said([*tenths(1, 24), *tenths(21, 30)], {24: STOP}))
    state(tmp_path, 30)
    run = parsers.read(tmp_path)
    assert steps(run) == [*range(7, 175, 7), *range(147, 211, 7)]
    assert any("for the epoch" in s.note for s in run.sources)


def test_a_state_of_another_training_says_nothing(tmp_path: Path) -> None:
    (tmp_path / "train.log").write_text(said(tenths(1, 30)))
    state(tmp_path, 44)
    assert steps(parsers.read(str(tmp_path / "train.log"))) == [*range(1, 31)]


def test_lines_go_on_beyond_the_state_of_the_last_whole_save(tmp_path: Path) -> None:
    (tmp_path / "train.log").write_text(said(tenths(1, 30)))
    (tmp_path / "out/checkpoint-168").mkdir(parents=True)
    state(tmp_path / "out/checkpoint-168", 24)
    (run,) = parsers.read_all(tmp_path)
    assert steps(run) == [*range(7, 211, 7)]


def test_lines_that_say_other_losses_than_the_state_are_of_another_training(tmp_path: Path) -> None:
    (tmp_path / "train.log").write_text(said(tenths(1, 30)).replace("'loss': 2", "'loss': 1"))
    (tmp_path / "out/checkpoint-168").mkdir(parents=True)
    state(tmp_path / "out/checkpoint-168", 24)
    assert len(parsers.read_all(tmp_path)) == 2


START = "2026-11-29 18:34:32 start params=60727 train=6400 resume={}\n"


def test_what_stands_between_the_lines_takes_the_step_above_it(tmp_path: Path) -> None:
    """A line of the program's own that counts something has no epoch; the launch that it begins did again what the state has from the second."""
    (tmp_path / "train.log").write_text(
        START.format("None") + said([*tenths(1, 24), *tenths(21, 30)], {24: START.format("out/checkpoint-140")})
    )
    state(tmp_path, 30)
    run = parsers.read(tmp_path)
    assert [a["steps"] for a in run.attempts] == [[7, 168], [147, 210]]
    assert run.attempts[1]["evidence"].text.startswith("start params=60727")
    assert done_twice.steps(run, run.attempts[0], run.attempts[1]) == 28
