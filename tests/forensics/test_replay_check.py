"""The check before a replay: what is refused unread, what protects the run, and what an adapter is told that does not meet the log."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from forensics.cli import main
from forensics.errors import ForensicsError
from forensics.replays.adapter_source import refuse_unless_adapter

torch = pytest.importorskip("torch")

from replays import direct, replayed, train, train_again  # noqa: E402 - needs torch

from forensics.replays.training import layouts  # noqa: E402


@pytest.fixture
def here() -> Iterator[None]:
    with direct():
        yield


ADAPTER = "def batch(step): ...\ndef loss(model, batch): ...\n"


@pytest.mark.parametrize(
    "text",
    [
        ADAPTER + "def build(): ...\n",
        ADAPTER + "from train import build\n",
        ADAPTER + "build = lambda: None\n",
        ADAPTER + "try:\n    from train import build\nexcept ImportError:\n    build = None\n",
        "from train import *\n",
    ],
)
def test_an_adapter_is_known_by_its_names(text: str, tmp_path: Path) -> None:
    path = tmp_path / "a.py"
    path.write_text(text)
    refuse_unless_adapter(path)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (ADAPTER, "defines no build(), so it is no replay adapter"),
        (ADAPTER + "if __name__ == '__main__':\n    def build(): ...\n", "defines no build()"),
        ("import torch\n", "defines no build() and no batch() and no loss()"),
        ("def build(:\n", "line 1"),
        ("\0", "no Python that can be read"),
        ("(" * 5000, "no Python that can be read"),
    ],
)
def test_what_is_no_adapter_is_refused_unread(text: str, sentence: str, tmp_path: Path) -> None:
    path = tmp_path / "a.py"
    path.write_text(text)
    with pytest.raises(ForensicsError, match=sentence.replace("(", r"\(").replace(")", r"\)")) as e:
        refuse_unless_adapter(path)
    assert "not run" in (e.value.hint or "")


def test_a_script_that_trains_when_it_is_imported_is_never_run(tmp_path: Path) -> None:
    run = train(tmp_path).parent
    kept = next((run / "checkpoints").iterdir())
    before = kept.read_bytes()
    script = run / "script.py"
    script.write_text(f"open({str(kept)!r}, 'wb').write(b'gone')\n")
    result = CliRunner().invoke(main, ["replay", str(run), "--adapter", str(script), "--check"])
    assert result.exit_code == 1
    assert "defines no build()" in result.output
    assert kept.read_bytes() == before


WRITES = """
import pathlib, shutil, sqlite3
RUN = pathlib.Path(__import__('os').environ['FORENSICS_RUN'])
_loss = loss
def loss(model, batch, reduction="mean"):
    WRITE
    return _loss(model, batch, reduction)
"""


@pytest.mark.parametrize(
    "write",
    [
        "torch.save(model.state_dict(), RUN / 'checkpoints' / 'step_40.pt')",
        "torch.save(model.state_dict(), str(RUN / 'new.pt'))",
        "(RUN / 'metrics.jsonl').open('a').write('{}')",
        "(RUN / 'metrics.jsonl').unlink()",
        "(RUN / 'metrics.jsonl').rename(RUN / 'old.jsonl')",
        "shutil.rmtree(RUN / 'checkpoints')",
        "(RUN / 'plots').mkdir()",
        "(RUN / 'metrics.jsonl').chmod(0)",
        "__import__('numpy').save(RUN / 'a.npy', [1])",
        "sqlite3.connect(RUN / 'runs.db')",
    ],
)
def test_nothing_can_be_written_into_the_run(write: str, tmp_path: Path) -> None:
    run = tmp_path / "run"
    run.mkdir()
    train(run)
    adapter = train_again(tmp_path, WRITES.replace("WRITE", write))
    before = {p: p.read_bytes() for p in sorted(run.rglob("*")) if p.is_file()}
    result = CliRunner().invoke(main, ["replay", str(run), "--adapter", str(adapter), "--device", "cpu", "--check"])
    assert result.exit_code == 1
    assert "would have changed the run" in result.output, result.output
    assert {p: p.read_bytes() for p in sorted(run.rglob("*")) if p.is_file()} == before


def test_reading_the_run_and_writing_elsewhere_is_allowed(tmp_path: Path) -> None:
    run = tmp_path / "run"
    run.mkdir()
    train(run)
    write = "(RUN / 'metrics.jsonl').read_text(); pathlib.Path(RUN.parent / 'cache.txt').write_text('x')"
    adapter = train_again(tmp_path, WRITES.replace("WRITE", write))
    result = CliRunner().invoke(main, ["replay", str(run), "--adapter", str(adapter), "--device", "cpu", "--check"])
    assert result.exit_code == 0, result.output
    assert "The loss agrees with" in result.output
    assert (tmp_path / "cache.txt").exists()
    assert not list(run.rglob("__pycache__"))


OFF = "_batch = batch\ndef batch(step): return _batch(step + SHIFT)\n"


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize(("shift", "said"), [(1, "batch(step - 1)"), (-1, "batch(step + 1)"), (2, "batch(step - 2)")])
def test_an_adapter_some_steps_off_accuses_nobody_and_is_told_so(shift: int, said: str, tmp_path: Path) -> None:
    """The log counts from 0, so an adapter that counts from 1 is another training."""
    train(tmp_path)
    case, result = replayed(tmp_path, train_again(tmp_path, OFF.replace("SHIFT", str(shift))))
    assert result.document["verdict"] == "cannot reproduce"
    assert f"With {said} the replay meets" in result.document["why"]
    assert case.culprits == ()
    assert not [c for h in case.hypotheses for c in h.clues if c.part == "replay"]


@pytest.mark.usefixtures("here")
def test_where_the_log_counts_from_1_an_adapter_may_count_from_0_or_1(tmp_path: Path) -> None:
    train(tmp_path)
    log = tmp_path / "metrics.jsonl"
    rows = [json.loads(line) for line in log.read_text().splitlines()]
    log.write_text("".join(json.dumps(r | {"step": r["step"] + 1}) + "\n" for r in rows))
    for extra in ("", OFF.replace("SHIFT", "-1")):
        case, result = replayed(tmp_path, train_again(tmp_path, extra))
        assert result.document["verdict"] == "data", extra
        assert [(c["step"], c["rows"]) for c in case.culprits] == [(61, [2, 5])], extra


SUMS = """
def train_step(model, optimizer, scheduler, b):
    optimizer.zero_grad()
    value = loss(model, b)
    value.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 5.0)
    optimizer.step()
    scheduler.step()
    return 4 * float(value.detach())
"""


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize(
    ("extra", "why"),
    [
        ("_batch = batch\ndef batch(step): return _batch(1000 + step * 7)", "another order of the data"),
        (SUMS, "log shows 0.25 times the loss"),
        (
            "def batch(step):\n    x = torch.randn(8, 6)\n    return {'x': x, 'y': x.sum(1)}",
            "gives another batch when it is asked for once more",
        ),
    ],
)
def test_the_likeliest_reason_is_told(extra: str, why: str, tmp_path: Path) -> None:
    train(tmp_path)
    case, result = replayed(tmp_path, train_again(tmp_path, extra))
    assert (result.document["verdict"], case.culprits) == ("cannot reproduce", ())
    assert why in result.document["why"]


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("digits", [2, 4])
def test_a_log_of_few_digits_is_met(digits: int, tmp_path: Path) -> None:
    adapter = train(tmp_path)
    log = tmp_path / "metrics.jsonl"
    rows = [json.loads(line) for line in log.read_text().splitlines()]
    log.write_text("".join(json.dumps({"step": r["step"], "loss": round(r["loss"], digits)}) + "\n" for r in rows))
    case, result = replayed(tmp_path, adapter)
    assert result.document["check"]["met"] is True
    assert [(c["step"], c["rows"]) for c in case.culprits] == [(60, [2, 5])]


@pytest.mark.usefixtures("here")
def test_too_few_logged_values_leave_a_culprit_a_hint(tmp_path: Path) -> None:
    """Only one value lies between the start and the effect: nothing shows that this adapter is the run's."""
    adapter = train(tmp_path, steps=90, save=40)
    log = tmp_path / "metrics.jsonl"
    rows = [json.loads(line) for line in log.read_text().splitlines()]
    log.write_text("".join(json.dumps(r) + "\n" for r in rows if r["step"] in (0, 58, 59) or r["step"] >= 60))
    case, result = replayed(tmp_path, adapter, steps=(58, 70))
    if result.document["check"]["met"] is None:
        assert all(c["confidence"] <= 0.6 for c in case.culprits)
        assert not [c for h in case.hypotheses for c in h.clues if c.part == "replay"]


def test_what_a_checkpoint_holds_beside_what_was_loaded_is_named(tmp_path: Path) -> None:
    model = torch.nn.Linear(2, 1)
    optimizer = torch.optim.Adam(model.parameters())
    model(torch.ones(1, 2)).sum().backward()
    optimizer.step()
    path = tmp_path / "a.pt"
    schedule = {"last_epoch": 4, "_step_count": 5}
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "scheduler": schedule, "ema": model.state_dict(),
                "hidden": torch.zeros(3), "config": {"lr": 1}, "iter_num": 7}, path)  # fmt: skip
    loaded = layouts.load_checkpoint(str(path), model, optimizer, None)
    assert (loaded.step, loaded.parts) == (7, ["weights", "optimizer"])
    assert loaded.left == ["scheduler", "ema", "hidden"]


def test_a_folder_of_accelerate_is_loaded_whole(tmp_path: Path) -> None:
    """As `save_state` names its files (accelerate 1.x): optimizer.bin, scheduler.bin, random_states_0.pkl, custom_checkpoint_0.pkl."""
    model = torch.nn.Linear(2, 1)
    optimizer = torch.optim.AdamW(model.parameters())
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda k: 1.0)
    for _ in range(3):
        optimizer.zero_grad()
        model(torch.ones(1, 2)).sum().backward()
        optimizer.step()
        schedule.step()
    torch.save(model.state_dict(), tmp_path / "pytorch_model.bin")
    torch.save(optimizer.state_dict(), tmp_path / "optimizer.bin")
    torch.save(schedule.state_dict(), tmp_path / "scheduler.bin")
    torch.save({"step": 3, "torch_manual_seed": torch.get_rng_state()}, tmp_path / "random_states_0.pkl")
    torch.save({"shadow": torch.ones(2)}, tmp_path / "custom_checkpoint_0.pkl")
    drawn = torch.rand(2)
    fresh = torch.nn.Linear(2, 1)
    again = torch.optim.AdamW(fresh.parameters())
    plan = torch.optim.lr_scheduler.LambdaLR(again, lambda k: 1.0)
    loaded = layouts.load_checkpoint(str(tmp_path), fresh, again, plan)
    assert loaded.parts == ["weights", "optimizer", "scheduler", "random numbers"]
    assert loaded.left == ["custom_checkpoint_0.pkl"]
    assert torch.equal(torch.rand(2), drawn)
    assert torch.equal(fresh.weight, model.weight)
    assert next(iter(again.state.values()))["step"] == 3


def test_scores_rank_the_bad_batch_first_from_weights_alone(tmp_path: Path) -> None:
    run = tmp_path / "run"
    run.mkdir()
    adapter = train(run)
    state: Any = torch.load(run / "checkpoints" / "step_40.pt")
    torch.save({"model": state["model"], "step": 40}, run / "checkpoints" / "step_40.pt")
    out = tmp_path / "scores.json"
    command = [
        sys.executable,
        "-m",
        "forensics",
        "replay",
        str(run),
        "--adapter",
        str(adapter),
        "--score",
        "--steps",
        "50:66",
        "--json",
        str(out),
    ]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "the batch of step 60" in done.stdout
    found = json.loads(out.read_text())
    first = found["rows"][0]
    assert (first["step"], first["sample"] in (482, 485)) == (60, True)
    assert first["corrected"] <= 0.05 < found["rows"][1]["corrected"]
    healthy = subprocess.run([*command[:-2], "--steps", "44:56"], capture_output=True, text=True, cwd=tmp_path)
    assert "No batch of the window stands out" in healthy.stdout


def test_the_stretch_of_a_slow_trouble_is_found_among_checkpoints(tmp_path: Path) -> None:
    run = tmp_path / "run"
    run.mkdir()
    adapter = train(run)
    folder = run / "checkpoints"
    state: Any = torch.load(folder / "step_40.pt")
    for step, noise in ((50, 0.0), (60, 0.0), (70, 0.7), (80, 0.7)):
        weights = {k: v + noise for k, v in state["model"].items()}
        torch.save({"model": weights, "step": step}, folder / f"step_{step}.pt")
    out = tmp_path / "across.json"
    result = CliRunner().invoke(main, ["replay", str(run), "--adapter", str(adapter), "--device", "cpu", "--across", "--json", str(out)])
    assert result.exit_code == 0, result.output
    assert "Between step 60 and step 70 the loss of the same batches rises" in result.output
    found = json.loads(out.read_text())
    assert [r["step"] for r in found["rows"]] == [40, 50, 60, 70, 80]
    assert found["worst"] == 3
    assert found["rows"][1]["change"] == 0.0
    for path in folder.glob("step_[5-8]0.pt"):
        path.unlink()
    few = CliRunner().invoke(main, ["replay", str(run), "--adapter", str(adapter), "--device", "cpu", "--across"])
    assert few.exit_code == 1
    assert "nothing to compare" in few.output


@pytest.mark.usefixtures("here")
def test_a_state_that_was_half_loaded_accuses_nobody(tmp_path: Path) -> None:
    """The weights are there and the moments are not: the first step meets the log, and the others leave it."""
    train(tmp_path, steps=120, save=20)
    half = """
def load(path, model, optimizer, scheduler):
    kept = torch.load(path)
    model.load_state_dict(kept["model"])
    scheduler.load_state_dict({**kept["scheduler"], "lr_lambdas": [None]})
    return kept["step"]
"""
    case, result = replayed(tmp_path, train_again(tmp_path, half))
    assert (result.document["verdict"], case.culprits) == ("cannot reproduce", ())
    assert "what the optimizer remembers" in result.document["why"]


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize(("shown", "words"), [(slice(4, 8), "the last 1/2 of the batch"), (slice(0, 4), "the first 1/2 of the batch")])
def test_a_log_of_one_micro_batch_is_met_and_its_sample_found(shown: slice, words: str, tmp_path: Path) -> None:
    case, result = replayed(tmp_path, train(tmp_path, shown=shown))
    told = result.document
    assert told["check"]["view"]["part"] == words
    assert told["check"]["met"] and told["check"]["agreed"] == told["check"]["of"]
    assert told["verdict"] == "data"
    assert [c["step"] for c in case.culprits] == [60]
    assert set(case.culprits[0]["samples"]) & {482, 485}
