"""The words about replay in a case: the command that settles a cause, and none once the run has been replayed."""

from __future__ import annotations

from pathlib import Path

from forensics import at_path
from forensics.case import Clue, Hypothesis
from forensics.replays import advice

ADAPTER = "def build():\n    ...\n\ndef batch(step):\n    ...\n\ndef loss(model, batch):\n    ...\n"


def cause(name: str, settle: str) -> Hypothesis:
    return Hypothesis(name, name, (Clue("x", 1.0),), settle=settle)


def test_the_command_is_the_one_that_runs_with_the_adapter_that_is_there(tmp_path: Path) -> None:
    (tmp_path / "metrics.jsonl").write_text('{"step": 0, "loss": 1.0}\n{"step": 1, "loss": 0.9}\n')
    run = at_path.read(str(tmp_path))
    causes = (
        cause("bad_data_batch", "Replay step 60."),
        cause("lr_jump", "Read the rate."),
        cause("hang", "Read the logs."),
        cause("nan_from_layer", ""),
    )
    plain = [h.settle for h in advice.offered(run, causes)]
    assert (
        plain[0]
        == f"Replay step 60. Replay does it: `forensics replay {tmp_path} --adapter adapter.py`, with an adapter that `forensics replay --init` writes for you to fill in."
    )
    assert plain[1:] == ["Read the rate.", "Read the logs.", ""]
    (tmp_path / "helpers.py").write_text("def build():\n    pass\n")
    (tmp_path / "train.py").write_text(ADAPTER)
    own = [h.settle for h in advice.offered(run, causes)]
    line = f"train.py came with the run and is foreign code, read it before you run `forensics replay {tmp_path} --adapter {tmp_path}/train.py`."
    assert own == [f"Replay step 60. Replay does it: {line}", f"Read the rate. Replay tells it, too: {line}", "Read the logs.", ""]


def test_after_a_replay_nothing_asks_for_one_but_where_the_budget_ended(tmp_path: Path) -> None:
    (tmp_path / "metrics.jsonl").write_text('{"step": 0, "loss": 1.0}\n')
    run = at_path.read(str(tmp_path))
    causes = (cause("bad_data_batch", "Replay step 60."), cause("hang", "Read the logs."))
    told = {"verdict": "data", "budget": 400, "bound": 100, "not_tried": ["one batch over and over"]}
    assert [h.settle for h in advice.resolved(run, causes, told, "train.py")] == ["", "Read the logs."]
    again = advice.resolved(run, causes, told | {"verdict": "undecided"}, "train.py")
    assert again[0].settle == f"Replay with more steps: `forensics replay {tmp_path} --adapter train.py --budget 1600`."
