"""In the training: what is written at each way of ending, and that nothing of it disturbs the training."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import forensics.callbacks
from forensics.callbacks import recording

LOOP = """
import os, signal, sys
import forensics.callbacks
from forensics.callbacks import recording

class Noted:  # in place of the analysis, which takes seconds
    def __init__(self, folder): open(folder / "analyzed", "a").write(f"{run.last}\\n")
    def trouble(self, seconds, stop=True): return ""
    def stop(self): pass

how = sys.argv[1]
if how != "really": recording.Analysis = Noted
if how == "handled": signal.signal(signal.SIGTERM, lambda number, frame: print("mine", number))
if how == "ignored": signal.signal(signal.SIGTERM, signal.SIG_IGN)
run = forensics.callbacks.record("run")
def train():
    for i in range(30):
        run.step(i, ids=[2 * i, 2 * i + 1], loss=2.5 - i * 1e-2)
        if i == 20:
            if how in ("raised", "really", "uncaught", "caught"): raise RuntimeError("boom")
            if how == "exit": sys.exit(3)
            if how in ("term", "handled", "ignored"): os.kill(os.getpid(), signal.SIGTERM)
            if how == "int": os.kill(os.getpid(), signal.SIGINT)
if how in ("uncaught", "caught"):  # as a framework does it, without a block
    run.begin()
    try: train()
    except RuntimeError:
        if how == "uncaught": raise
else:
    with run: train()
print("over")
"""


def trained(how: str, folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", LOOP, how]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, env={**os.environ, **environment}, timeout=120)


ENDS = {  # how: exit code, what the end says, steps at which the analysis began
    "end": (0, ["training finished after step 29"], [29]),
    "raised": (1, ["training ended after step 20 by an exception", "RuntimeError: boom"], [20]),
    "uncaught": (1, ["training ended after step 20 by an exception", "RuntimeError: boom"], [20]),
    "caught": (0, [], [20]),
    "exit": (3, ["training ended after step 20 by an exception", "SystemExit: 3"], [20]),
    "term": (-signal.SIGTERM, ["training got SIGTERM after step 20"], [20]),
    "handled": (0, ["training got SIGTERM after step 20"], [20, 29]),
    "ignored": (0, ["training finished after step 29"], [29]),
    "int": (-signal.SIGINT, ["training got SIGINT after step 20", "KeyboardInterrupt"], [20]),
}


@pytest.mark.parametrize("how", ENDS)
def test_each_end_is_told_analyzed_and_left_as_it_is(how: str, tmp_path: Path) -> None:
    code, said, begun = ENDS[how]
    p = trained(how, tmp_path)
    assert p.returncode == code, p.stderr
    told = (tmp_path / "run" / "training_ended.log").read_text() if said else ""
    assert [line for line in said if line not in told] == []
    assert [int(x) for x in (tmp_path / "run" / "analyzed").read_text().split()] == begun
    assert ("over" in p.stdout) == (code == 0)
    assert "forensics:" not in p.stderr
    if how == "handled":
        assert f"mine {int(signal.SIGTERM)}" in p.stdout
    rows = [json.loads(line) for line in (tmp_path / "run" / "batches.jsonl").read_text().splitlines()]
    assert rows[20] == {"step": 20, "sample_ids": [40, 41], "loss": 2.3}


def test_a_crash_leaves_its_page_and_case_in_the_folder(tmp_path: Path) -> None:
    assert trained("really", tmp_path).returncode == 1
    case = json.loads((tmp_path / "run" / "run.case.json").read_text())
    assert case["run"]["ending"]["kind"] == "exception"
    assert case["run"]["ending"]["where"].startswith("training_ended.log line ")
    assert "RuntimeError: boom" in case["answer"]
    assert case["run"]["records"]["batches"] == 21
    assert (tmp_path / "run" / "run.html").exists()


def test_another_rank_tells_its_end_and_leaves_the_analysis_to_the_first(tmp_path: Path) -> None:
    p = trained("raised", tmp_path, RANK="1", WORLD_SIZE="2")
    assert p.returncode == 1
    assert sorted(x.name for x in (tmp_path / "run").iterdir()) == ["batches_rank1.jsonl", "training_ended_rank1.log"]


def test_the_import_is_light_and_loads_no_framework() -> None:
    code = (
        "import sys, forensics.callbacks\n"
        "forensics.callbacks.record('nowhere').step(1)\n"
        "print(sorted({m.split('.')[0] for m in sys.modules}))\n"
    )
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    heavy = {"numpy", "pyarrow", "polars", "torch", "transformers", "lightning", "keras", "click", "jinja2", "parsers", "reports"}
    assert heavy & set(eval(told)) == set()


def test_an_unknown_callback_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute MXNetCallback"):
        forensics.callbacks.MXNetCallback  # noqa: B018


class Noted:
    """In place of the analysis."""

    begun: list[Path] = []  # noqa: RUF012
    says = ""

    def __init__(self, folder: Path) -> None:
        self.begun.append(folder)

    def trouble(self, seconds: float, *, stop: bool = True) -> str:
        return self.says

    def stop(self) -> None:
        self.begun.pop()


@pytest.fixture
def noted(monkeypatch: pytest.MonkeyPatch) -> Iterator[type[Noted]]:
    Noted.begun.clear()
    monkeypatch.setattr(recording, "Analysis", Noted)
    monkeypatch.setattr(Noted, "says", "")
    before = [signal.getsignal(n) for n in recording.SIGNALS], sys.excepthook
    yield Noted
    assert ([signal.getsignal(n) for n in recording.SIGNALS], sys.excepthook) == before, "a handler was left behind"


def test_a_step_costs_at_most_one_write(tmp_path: Path, noted: type[Noted], monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []

    class Counted:
        def __init__(self, *args: Any, **given: Any) -> None:
            calls.append("open")

        def write(self, line: str) -> None:
            calls.append("write")

        def close(self) -> None:
            calls.append("close")

    with recording.record(tmp_path) as run:
        monkeypatch.setattr(Path, "open", Counted)
        for i in range(100):
            run.step(i)
        assert calls == []
        for i in range(100):
            run.saw([i])
            run.step(i, loss=1.0)
        assert calls == ["open"] + ["write"] * 100
        monkeypatch.undo()
        monkeypatch.setattr(recording, "Analysis", Noted)


def test_ids_of_micro_batches_are_one_batch_and_tensors_are_ids(tmp_path: Path, noted: type[Noted]) -> None:
    import numpy as np

    with recording.record(tmp_path) as run:
        run.saw(np.array([[1, 2]]))
        run.saw(["a"])
        run.step(5)
        run.step(6, ids=np.array([3]))
    rows = [json.loads(line) for line in (tmp_path / "batches.jsonl").read_text().splitlines()]
    assert rows == [{"step": 5, "sample_ids": [1, 2, "a"]}, {"step": 6, "sample_ids": [3]}]


def test_every_failure_is_one_line_and_the_training_goes_on(tmp_path: Path, noted: type[Noted], capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").write_text("no folder")
    Noted.says = "no page was written: nothing readable"
    with recording.record(tmp_path / "file") as run:
        for i in range(50):
            run.step(i, ids=[object()])
            run.step(i, ids=3)
            run.step(i, loss="much")  # type: ignore[arg-type]
        went_on = True
    lines = capsys.readouterr().err.splitlines()
    assert went_on and all(line.startswith("forensics: ") for line in lines)
    assert len(lines) == len(set(lines)) <= 7
    assert any("begin failed" in line for line in lines) and any("no page was written" in line for line in lines)


def test_nobody_listens_to_the_warning(tmp_path: Path, noted: type[Noted], monkeypatch: pytest.MonkeyPatch) -> None:
    closed = open(os.devnull, "w")  # noqa: SIM115
    closed.close()
    monkeypatch.setattr(sys, "stderr", closed)
    Noted.says = "it broke"
    with recording.record(tmp_path) as run:
        run.step(1, ids=3)


def test_a_new_attempt_forgets_how_the_one_before_ended(tmp_path: Path, noted: type[Noted]) -> None:
    with pytest.raises(ValueError), recording.record(tmp_path) as run:
        run.step(1)
        raise ValueError("first attempt")
    with recording.record(tmp_path) as run:
        assert not (tmp_path / "training_ended.log").exists()
        run.step(2)
    assert "finished after step 2" in (tmp_path / "training_ended.log").read_text()
    assert len(noted.begun) == 2


def test_a_handler_that_was_put_over_ours_stays(tmp_path: Path, noted: type[Noted]) -> None:
    first, got = signal.getsignal(signal.SIGTERM), []
    with recording.record(tmp_path):
        ours = signal.getsignal(signal.SIGTERM)

        def theirs(number: int, frame: Any) -> None:
            got.append(number)

        signal.signal(signal.SIGTERM, theirs)
    assert signal.getsignal(signal.SIGTERM) is theirs and ours != theirs
    signal.signal(signal.SIGTERM, first)


def test_a_forked_worker_ends_without_a_word(tmp_path: Path, noted: type[Noted]) -> None:
    with recording.record(tmp_path) as run:
        run.step(1)
        worker = os.fork()
        if worker == 0:
            run.end()
            os._exit(0 if not noted.begun and not (tmp_path / "training_ended.log").exists() else 1)
        assert os.waitpid(worker, 0)[1] == 0
    assert noted.begun == [tmp_path]


def test_outside_the_main_thread_the_end_is_told_and_signals_are_not(
    tmp_path: Path, noted: type[Noted], capsys: pytest.CaptureFixture[str]
) -> None:
    def train() -> None:
        with recording.record(tmp_path) as run:
            run.step(1)

    thread = threading.Thread(target=train)
    thread.start()
    thread.join()
    assert noted.begun == [tmp_path]
    assert capsys.readouterr().err.count("main thread") == 1


def test_an_analysis_that_cannot_start_or_is_slow_is_a_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from forensics.callbacks.analysis_process import Analysis

    (tmp_path / f"{tmp_path.name}.html").write_text("somebody's")
    assert "already exists" in Analysis(tmp_path).trouble(100)
    assert (tmp_path / f"{tmp_path.name}.html").read_text() == "somebody's"
    assert "longer than 0 seconds" in Analysis(tmp_path).trouble(0)


def test_transformers(tmp_path: Path, noted: type[Noted]) -> None:
    torch, transformers = pytest.importorskip("torch"), pytest.importorskip("transformers")

    class Model(torch.nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.layer = torch.nn.Linear(4, 2)

        def forward(self, x: Any, labels: Any) -> dict[str, Any]:
            logits = self.layer(x)
            return {"loss": torch.nn.functional.cross_entropy(logits, labels), "logits": logits}

    callback = forensics.callbacks.HFCallback()

    class Trainer(transformers.Trainer):  # type: ignore[misc, name-defined]
        def compute_loss(self, model: Any, inputs: Any, **more: Any) -> Any:
            callback.saw(inputs.pop("ids"))
            if self.state.global_step == 6:
                raise ValueError("bad batch")
            return super().compute_loss(model, inputs, **more)

    data = [{"x": torch.ones(4), "labels": torch.tensor(i % 2), "ids": torch.tensor(i)} for i in range(64)]
    options = transformers.TrainingArguments(
        str(tmp_path), per_device_train_batch_size=2, gradient_accumulation_steps=2, max_steps=8, logging_steps=2, report_to=[], use_cpu=True,
        remove_unused_columns=False, disable_tqdm=True, save_strategy="no",
    )  # fmt: skip
    trainer = Trainer(Model(), options, train_dataset=data, callbacks=[callback])
    with pytest.raises(ValueError, match="bad batch") as caught:
        trainer.train()
    sys.excepthook(ValueError, caught.value, None)  # as at the end of a program
    rows = [json.loads(line) for line in (tmp_path / "batches.jsonl").read_text().splitlines()]
    assert [r["step"] for r in rows] == list(range(1, 7)) and {len(r["sample_ids"]) for r in rows} == {4}
    logged = [json.loads(line) for line in (tmp_path / "training_log.jsonl").read_text().splitlines()]
    assert [r["step"] for r in logged] == [2, 4, 6] and all("loss" in r for r in logged)
    assert "after step 6 by an exception" in (tmp_path / "training_ended.log").read_text()
    assert noted.begun == [tmp_path]


@pytest.mark.parametrize("breaks", [False, True])
def test_lightning(breaks: bool, tmp_path: Path, noted: type[Noted]) -> None:
    torch, lightning = pytest.importorskip("torch"), pytest.importorskip("lightning.pytorch")

    class Model(lightning.LightningModule):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.layer = torch.nn.Linear(4, 2)

        def training_step(self, batch: Any, i: int) -> Any:
            if breaks and i == 7:
                raise ValueError("bad batch")
            return torch.nn.functional.cross_entropy(self.layer(batch["x"]), batch["y"])

        def configure_optimizers(self) -> Any:
            return torch.optim.SGD(self.parameters(), 0.1)

    data = [{"x": torch.ones(4), "y": torch.tensor(i % 2), "ids": torch.tensor(i)} for i in range(24)]
    trainer = lightning.Trainer(
        max_epochs=1, accumulate_grad_batches=2, accelerator="cpu", logger=False, enable_checkpointing=False, enable_progress_bar=False,
        enable_model_summary=False, callbacks=[forensics.callbacks.LightningCallback(str(tmp_path), ids="ids")],
    )  # fmt: skip
    loader = torch.utils.data.DataLoader(data, batch_size=2)
    before = {n: signal.getsignal(n) for n in recording.SIGNALS}
    if breaks:
        with pytest.raises(ValueError, match="bad batch"):
            trainer.fit(Model(), loader)
        with pytest.raises(KeyboardInterrupt):  # Lightning puts our handler back once all is over: it passes on
            os.kill(os.getpid(), signal.SIGINT)
        for number, handler in before.items():
            signal.signal(number, handler)
    else:
        trainer.fit(Model(), loader)
    rows = [json.loads(line) for line in (tmp_path / "batches.jsonl").read_text().splitlines()]
    assert [r["step"] for r in rows] == list(range(3 if breaks else 6))
    assert rows[1]["sample_ids"] == [4, 5, 6, 7]
    said = "after step 2 by an exception" if breaks else "training finished after step 5"
    assert said in (tmp_path / "training_ended.log").read_text()
    assert noted.begun == [tmp_path]


def test_keras(tmp_path: Path, noted: type[Noted]) -> None:
    keras = pytest.importorskip("keras")
    import numpy as np

    model = keras.Sequential([keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    callback = forensics.callbacks.KerasCallback(str(tmp_path))
    model.fit(np.ones((8, 4), "f"), np.ones((8, 1), "f"), epochs=3, batch_size=2, verbose=0, callbacks=[callback])
    logged = [json.loads(line) for line in (tmp_path / "training_log.jsonl").read_text().splitlines()]
    assert [(r["step"], r["epoch"]) for r in logged] == [(4, 0), (8, 1), (12, 2)] and all("loss" in r for r in logged)
    assert "training finished after step 12" in (tmp_path / "training_ended.log").read_text()
    assert noted.begun == [tmp_path]
