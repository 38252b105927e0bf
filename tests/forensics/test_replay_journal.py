"""A replay that was stopped goes on where it was: the same verdict, without the steps that it had run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

pytest.importorskip("torch")

from replays import PLAIN, replayed, train, train_again
from test_replay_stops import STOPS

from forensics import at_path
from forensics.cli import main
from forensics.errors import ForensicsError
from forensics.replays import journal, session
from forensics.replays.delta_debugging import OutOfBudget

pytestmark = pytest.mark.filterwarnings("ignore:TF32 acceleration")

NOT_THE_SAME = ("seconds", "estimate", "trouble")


def told(result: Any) -> dict[str, Any]:
    return {k: v for k, v in result.document.items() if k not in NOT_THE_SAME}


def new_steps(adapter: Path) -> int:
    """How many batches the adapter was asked for, by the file it writes."""
    counted = adapter.parent.parent / "asked"
    n = len(counted.read_text()) if counted.exists() else 0
    counted.unlink(missing_ok=True)
    return n


COUNTS = """
_steps = loss
def train_step(model, optimizer, scheduler, batch):
    open("COUNTED", "a").write(".")
    optimizer.zero_grad()
    value = _steps(model, batch)
    value.backward()
    norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 5.0)
    optimizer.step()
    scheduler.step()
    return value, norm
"""


@pytest.fixture
def run(tmp_path: Path) -> Path:
    folder = tmp_path / "run"
    folder.mkdir()
    train(folder)
    train_again(folder, COUNTS.replace("COUNTED", str(tmp_path / "asked")))
    return folder


@pytest.mark.usefixtures("here")
def test_a_second_start_asks_for_nothing_twice(run: Path, tmp_path: Path) -> None:
    adapter, kept = run / "train.py", tmp_path / "kept.jsonl"
    _, plain = replayed(run, adapter)
    whole = new_steps(adapter)
    _, first = replayed(run, adapter, journal=kept)
    assert told(first) == told(plain)
    assert new_steps(adapter) == whole
    _, second = replayed(run, adapter, journal=kept)
    assert told(second) == told(plain)
    assert new_steps(adapter) == 0
    assert second.recalled == second.document["steps_replayed"] + second.document["check"]["steps"]
    assert second.culprits == plain.culprits


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("share", [0.3, 0.6, 0.9])
def test_a_replay_that_was_killed_goes_on_where_it_was(share: float, run: Path, tmp_path: Path) -> None:
    adapter, kept = run / "train.py", tmp_path / "kept.jsonl"
    _, plain = replayed(run, adapter, journal=kept)
    whole = new_steps(adapter)
    lines = kept.read_text().splitlines()
    known = lines[: int(share * len(lines))]
    kept.write_text("\n".join([*known, lines[len(known)][:40]]))  # killed in the middle of a line
    _, second = replayed(run, adapter, journal=kept)
    assert told(second) == told(plain)
    assert second.culprits == plain.culprits
    assert second.recalled == sum(len(json.loads(line).get("steps", [])) for line in known)
    assert second.recalled + new_steps(adapter) <= whole + 100  # the way to the effect is run once more, for its states
    assert [json.loads(x).get("key") for x in kept.read_text().splitlines()] == [json.loads(x).get("key") for x in lines]


@pytest.mark.usefixtures("here")
def test_time_that_is_over_is_no_loss(run: Path, tmp_path: Path) -> None:
    adapter, kept = run / "train.py", tmp_path / "kept.jsonl"
    _, plain = replayed(run, adapter)
    _, first = replayed(run, adapter, journal=kept, max_time=1e-9)
    assert first.document["verdict"] != plain.document["verdict"]
    for _ in range(2):
        _, later = replayed(run, adapter, journal=kept)
    assert told(later) == told(plain)


@pytest.mark.usefixtures("here")
def test_a_damaged_line_costs_itself_alone(run: Path, tmp_path: Path) -> None:
    adapter, kept = run / "train.py", tmp_path / "kept.jsonl"
    _, plain = replayed(run, adapter, journal=kept)
    lines = kept.read_text().splitlines()
    kept.write_text("\n".join([*lines[:5], lines[5][:40], *lines[6:]]) + "\n")
    _, second = replayed(run, adapter, journal=kept)
    assert told(second) == told(plain)
    assert second.recalled == sum(len(json.loads(x).get("steps", [])) for x in [*lines[:5], *lines[6:]])


@pytest.mark.usefixtures("here")
def test_time_that_ends_after_the_verdict_leaves_it(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As where a further effect is reproduced for its culprits."""

    def explained(asked: Any, found: Any, result: Any) -> None:
        result.document |= {"verdict": "data", "why": "The batch makes it."}
        raise OutOfBudget("the time is over")

    monkeypatch.setattr(session, "_explain_all", explained)
    _, result = replayed(run, run / "train.py")
    assert (result.document["verdict"], result.document["why"]) == ("data", "The batch makes it.")
    assert result.document["budget_note"] == "the time is over"


@pytest.mark.usefixtures("here")
def test_another_adapter_begins_anew(run: Path, tmp_path: Path) -> None:
    kept = tmp_path / "kept.jsonl"
    replayed(run, run / "train.py", journal=kept)
    (run / "train.py").write_text(PLAIN)
    _, second = replayed(run, run / "train.py", journal=kept)
    assert second.recalled == 0
    _, third = replayed(run, run / "train.py", journal=kept)
    assert third.recalled > 0


@pytest.mark.usefixtures("here")
def test_data_that_changed_since_are_told(tmp_path: Path) -> None:
    run, kept = tmp_path / "run", tmp_path / "kept.jsonl"
    run.mkdir()
    train(run)
    adapter = train_again(
        run, f"_made = batch\ndef batch(step):\n    return dict(_made(step), x=_made(step)['x'] * float(open('{tmp_path}/scale').read()))\n"
    )
    (tmp_path / "scale").write_text("1.0")
    replayed(run, adapter, journal=kept)
    lines = kept.read_text().splitlines()
    kept.write_text("\n".join(lines[: len(lines) // 2]) + "\n")
    (tmp_path / "scale").write_text("3.0")
    _, second = replayed(run, adapter, journal=kept)
    assert "data or code have changed since; delete" in second.failed


@pytest.mark.usefixtures("here")
def test_a_file_that_is_no_journal_stays(run: Path, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine\n")
    with pytest.raises(ForensicsError, match="is no journal of a replay"):
        replayed(run, run / "train.py", journal=tmp_path / "notes.txt")
    assert (tmp_path / "notes.txt").read_text() == "mine\n"


@pytest.mark.usefixtures("here")
def test_what_an_adapter_raises_is_no_answer(tmp_path: Path) -> None:
    train(tmp_path)
    kept = tmp_path / "kept.jsonl"
    adapter = train_again(tmp_path, STOPS.replace("N", "86", 1).replace("WHAT", "MemoryError('no room')"))
    _, first = replayed(tmp_path, adapter, journal=kept)
    assert first.failed
    assert all("done" in json.loads(x) for x in kept.read_text().splitlines()[1:])


def test_a_changed_checkpoint_is_another_state(tmp_path: Path) -> None:
    path = tmp_path / "a.pt"
    path.write_bytes(b"1")
    before = journal._stamp(str(path))
    path.write_bytes(b"12")
    assert journal._stamp(str(path)) != before
    assert journal._stamp(None) is None


def command(run: Path, folder: Path, *more: str) -> Any:
    return CliRunner().invoke(
        main, ["replay", str(run), "--adapter", str(run / "train.py"), "--device", "cpu", "--out", str(folder / "a.html"), *more]
    )


def test_the_command_goes_on_and_leaves_no_journal_behind(run: Path, tmp_path: Path) -> None:
    first = command(run, run, "--max-time", "0.00001")
    (kept,) = run.glob("a.replay-*.jsonl")
    assert f"what was learned is in {kept}" in first.stderr
    assert [s.claimed for s in at_path.read(str(run)).sources if s.path == kept.name] == [False]
    second = command(run, run, "--force")
    assert "of the steps were known from" in second.stderr
    assert "replay: data" in second.stdout
    assert not kept.exists()


def test_what_is_redacted_keeps_no_journal(run: Path, tmp_path: Path) -> None:
    command(run, tmp_path, "--max-time", "0.00001", "--redact")
    assert not list(tmp_path.glob("*.jsonl"))
