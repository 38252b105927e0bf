"""The words in which the answer tells how a run ended: in the unit of the log, a long line cut between words, and no second full stop."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from runs import case, read

from forensics.case_parts import headline
from forensics.detectors import ending as how
from forensics.run import how_it_ended, proper_end
from forensics.run.how_it_ended import Ending
from reports import costs
from reports.schema import complete

LONG = "RuntimeError: the state of layer " + " ".join(f"blocks.{i}.attention" for i in range(20))


def written(folder: Path, rows: list[dict[str, float]]) -> Path:
    folder.mkdir()
    (folder / "metrics.jsonl").write_text("".join(json.dumps(r) + "\n" for r in rows))
    return folder


@pytest.mark.parametrize(
    ("ending", "said"),
    [
        (Ending("unknown", step=3, unit="epoch"), "The log stops after epoch 3; neither a closing line nor a planned length was logged."),
        (Ending("signal", "SIGTERM received.", step=7, unit="epoch"), "Stopped after epoch 7 by a signal: SIGTERM received."),
        (Ending("finished", "early stop", step=7, planned=9, how="early", unit="epoch"),
         'The program stopped itself after epoch 7 of 9 planned: "early stop".'),
        (Ending("finished", "early stop", how="early"), 'The program stopped itself: "early stop".'),
        (Ending("signal", "SIGTERM received."), "Stopped by a signal: SIGTERM received."),
    ],
)  # fmt: skip
def test_an_epoch_is_not_called_a_step(ending: Ending, said: str) -> None:
    assert how.sentence(ending) == said


def test_a_long_line_is_cut_between_words_and_the_cut_is_shown() -> None:
    e = Ending("exception", LONG, "train.log line 9", step=4)
    said = how.title(e)
    assert said.endswith(" \u2026") and len(said) < how.QUOTED + 30
    assert LONG.startswith(said.partition(": ")[2].removesuffix(" \u2026") + " ")
    assert headline.explained([], [], e) == f"{said} The cause is open."


def test_the_ending_of_a_case_keeps_its_unit(tmp_path: Path) -> None:
    rows = [{"epoch": i, "loss": 2 - i / 100} for i in range(17)]
    document = case(written(tmp_path / "r", rows))
    assert document["run"]["axis"]["unit"] == document["run"]["ending"]["unit"] == "epoch"
    assert how_it_ended.of_case(document["run"]) == how_it_ended.ending(read(tmp_path / "r"))
    old = {k: v for k, v in document["run"]["ending"].items() if k != "unit"}
    told = how_it_ended.of_case(document["run"] | {"ending": old})
    assert told is not None and told.unit == "step"


def test_the_last_of_a_plan_that_is_counted_from_0_is_not_one_short(tmp_path: Path) -> None:
    for first, said in ((0, "step 59 of 60 planned, counted from 0"), (1, "step 60 of 60 planned")):
        folder = written(tmp_path / f"r{first}", [{"step": first + i, "train/loss": 2 - i / 100} for i in range(60)])
        (folder / "config.json").write_text(json.dumps({"max_steps": 60}))
        end = proper_end.finish(read(folder))
        assert end is not None and end.says == said


def test_a_loss_that_came_back_is_not_said_to_never_recover(tmp_path: Path) -> None:
    loss = [5 + i % 3 / 30 for i in range(10)] + [60 + i % 7 for i in range(60)] + [60 * 0.93**i + 0.2 + i % 5 / 50 for i in range(230)]
    document = case(written(tmp_path / "r", [{"step": i, "train/loss": v} for i, v in enumerate(loss)]))
    climbed = [f["id"] for f in document["findings"] if f["kind"] == "divergence" and "stays above its first level" in f["title"]]
    assert [b["kind"] for b in document["timeline"]["bands"] if b["finding"] in climbed] == ["slow"]
    assert "never recovers" not in costs.cost(complete(document))


@pytest.mark.parametrize(
    ("last", "said"),
    [("", "traceback without its last line, in a/b/run.py:81 in finish"), ("ValueError: too small\n", "ValueError: too small")],
)
def test_where_no_exception_is_named_the_frame_is_told(tmp_path: Path, last: str, said: str) -> None:
    text = "".join(f"step {i}: loss {2 - i / 200:.4f}\n" for i in range(40))
    (tmp_path / "train.log").write_text(
        text + f'Traceback (most recent call last):\n  File "a/b/run.py", line 81, in finish\n    run.end()\n{last}'
    )
    assert how_it_ended.ending(read(tmp_path)).says == said


@pytest.mark.parametrize(
    "said",
    [
        "train.py: error: unrecognized arguments: --lr-max 1",
        "train.py: error: argument --lr: invalid float value: '1e'",
        "Error: No such option: --lr-max",
    ],
)
def test_a_command_line_that_is_refused_is_a_death_before_the_first_step(tmp_path: Path, said: str) -> None:
    (tmp_path / "nohup.out").write_text(f"usage: train.py [-h] [--lr LR]\n                [--bs BS]\n{said}\n")
    e = how_it_ended.ending(read(tmp_path))
    assert (e.kind, e.before_first_step) == ("exception", True)
    assert said.removeprefix("train.py: ") in e.says


def test_a_rank_that_was_killed_goes_before_a_stack_that_names_no_error(tmp_path: Path) -> None:
    """What the others raise where a peer is gone is its consequence."""
    folder = written(tmp_path / "r", [{"step": i, "loss": 2 - i / 100} for i in range(17)])
    torn = 'Traceback (most recent call last):\n  File "train.py", line 47, in worker\n    dist.all_reduce(flat)\n'
    (folder / "rank0.log").write_text(torn + "Read error [127.0.0.1]:13745: Connection reset by peer\n")
    (folder / "launcher.log").write_text("launcher: rank 1 exit code -9\nlauncher: rank 0 exit code 1\n")
    end = how_it_ended.ending(read(folder))
    assert (end.kind, end.says) == ("signal", "launcher: rank 1 exit code -9")
    (folder / "launcher.log").write_text("launcher: rank 1 exit code 1\nlauncher: rank 0 exit code 1\n")
    assert how_it_ended.ending(read(folder)).kind == "exception"
