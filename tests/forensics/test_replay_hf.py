"""The adapter of Hugging Face Trainer folders beside a Trainer that was run here, dropout included."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
datasets = pytest.importorskip("datasets")

from forensics.replays import all_ranks, into_case  # noqa: E402
from forensics.replays.training import adapter, commands  # noqa: E402

WORDS, STEPS = 16, 24


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A one-block GPT-2 with dropout, trained for two epochs, saved every 10 steps, its log in trainer_state.json."""
    folder = tmp_path_factory.mktemp("hf")
    x = torch.randint(WORDS, (96, 12), generator=torch.Generator().manual_seed(0)).tolist()
    rows = datasets.Dataset.from_dict({"input_ids": x, "labels": x})
    rows.save_to_disk(str(folder / "data"))
    transformers.set_seed(5)
    config = transformers.GPT2Config(vocab_size=WORDS, n_positions=12, n_embd=16, n_layer=1, n_head=2, bos_token_id=0, eos_token_id=0)
    args = transformers.TrainingArguments(
        output_dir=str(folder), per_device_train_batch_size=8, max_steps=STEPS, logging_steps=1, save_steps=10, learning_rate=3e-3,
        report_to=[], seed=7, use_cpu=True, disable_tqdm=True, warmup_steps=4,
    )  # fmt: skip
    trainer = transformers.Trainer(model=transformers.GPT2LMHeadModel(config), args=args, train_dataset=rows)
    trainer.train()
    (folder / "log.json").write_text(json.dumps({r["step"]: r["loss"] for r in trainer.state.log_history if "loss" in r}))
    return folder


SCRIPT = """
import json, os, sys
import datasets, torch, transformers
folder, accumulation = sys.argv[1], int(sys.argv[2])
rows = datasets.load_from_disk(folder + "/data")
transformers.set_seed(5)
config = transformers.GPT2Config(vocab_size=16, n_positions=12, n_embd=16, n_layer=1, n_head=2, bos_token_id=0, eos_token_id=0, resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0)
args = transformers.TrainingArguments(
    output_dir=folder, per_device_train_batch_size=4, gradient_accumulation_steps=accumulation, max_steps=20, logging_steps=1, save_steps=5, learning_rate=3e-3,
    report_to=[], seed=7, use_cpu=True, disable_tqdm=True, warmup_steps=4, ddp_backend="gloo" if os.environ.get("RANK") else None,
)
trainer = transformers.Trainer(model=transformers.GPT2LMHeadModel(config), args=args, train_dataset=rows)
trainer.train()
os._exit(0)  # torch's threads may abort an interpreter that ends (pytorch/pytorch#190489)
"""


@pytest.mark.parametrize(("accumulation", "processes"), [(2, 1), (1, 2)])
def test_micro_batches_and_processes_are_one_batch(
    accumulation: int, processes: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows with very different numbers of tokens to predict; two epochs, the last batch of each is a short one."""
    x = torch.randint(WORDS, (100, 12), generator=torch.Generator().manual_seed(0)).tolist()
    labels = [[v if j <= 2 + i % 10 else -100 for j, v in enumerate(row)] for i, row in enumerate(x)]
    datasets.Dataset.from_dict({"input_ids": x, "labels": labels}).save_to_disk(str(tmp_path / "data"))
    (tmp_path / "script.py").write_text(SCRIPT)
    command = [sys.executable, str(tmp_path / "script.py"), str(tmp_path), str(accumulation)]
    started = [subprocess.Popen(command, env={**os.environ, **env}, stderr=subprocess.PIPE) for env in all_ranks.environments(processes)]
    told = [p.communicate(timeout=240)[1].decode() for p in started]
    assert [p.returncode for p in started] == [0] * processes, told[0][-2000:]
    history = json.loads((tmp_path / "checkpoint-20/trainer_state.json").read_text())["log_history"]
    logged = {r["step"]: r["loss"] for r in history if "loss" in r}
    session, _ = opened(tmp_path, monkeypatch)
    commands.start(session, None, str(tmp_path / "checkpoint-5"), "start")
    rows: list[dict[str, Any]] = []
    commands.run(session, rows.append, "start", [{"batch": s} for s in range(5, 20)])
    assert len(session.adapter.ids(7)) == 8
    assert [r["loss"] for r in rows] == pytest.approx([logged[s + 1] for s in range(5, 20)], abs=2e-4)


def opened(folder: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Any, dict[str, Any]]:
    monkeypatch.setenv("FORENSICS_RUN", str(folder))
    session = commands.Session()
    told = commands.open_(session, None, str(into_case.adapter_file("hf")), "cpu", 0, 1 << 30)
    return session, told


def test_steps_from_a_checkpoint_meet_the_log_with_its_dropout(trained: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    session, told = opened(trained, monkeypatch)
    assert [s for s, _ in told["checkpoints"]] == [10, 20, 24]
    assert told["dropout"]
    begun = commands.start(session, None, str(trained / "checkpoint-10"), "start")
    assert begun["step"] == begun["count"] == 10
    assert begun["parts"] == ["weights", "optimizer", "scheduler", "random numbers"]
    rows: list[dict[str, Any]] = []
    commands.run(session, rows.append, "start", [{"batch": s} for s in range(10, STEPS)])
    logged = {int(k): v for k, v in json.loads((trained / "log.json").read_text()).items()}
    replayed = [r["loss"] for r in rows]
    assert replayed[:2] == pytest.approx([logged[11], logged[12]], abs=1e-5)  # of the same epoch: the same batches, the same dropout
    assert replayed == pytest.approx([logged[s + 1] for s in range(10, STEPS)], abs=0.3)


def test_losses_of_samples_are_those_of_the_batch(trained: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    session, _ = opened(trained, monkeypatch)
    session.adapter.model.eval()
    batch = session.adapter.batch(3)
    rows = session.adapter.loss(batch, rows=True)
    assert rows.shape == (8,)
    assert len(session.adapter.ids(3)) == 8
    mean = float(session.adapter.module.loss(session.adapter.model, batch).detach())
    assert float(rows.mean()) * 11 / 12 == pytest.approx(mean, rel=1e-4)  # the Trainer divides by the first token of each row, too


def test_folders_that_lack_something_are_told_in_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(FileNotFoundError, match="no checkpoint-N folder"):
        module(tmp_path, monkeypatch).build()
    (tmp_path / "checkpoint-5").mkdir()
    with pytest.raises(FileNotFoundError, match=r"no training_args.bin"):
        module(tmp_path, monkeypatch).build()
    torch.save(Path("x"), tmp_path / "training_args.bin")
    with pytest.raises(ValueError, match="which is neither transformers nor accelerate"):
        module(tmp_path, monkeypatch).build()


def module(folder: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.setenv("FORENSICS_RUN", str(folder))
    spec = importlib.util.spec_from_file_location("hf_of_test", into_case.adapter_file("hf"))
    assert spec is not None and spec.loader is not None
    found = importlib.util.module_from_spec(spec)
    sys.modules["hf_of_test"] = found
    spec.loader.exec_module(found)
    return found


def test_the_adapter_needs_nothing_of_forensics() -> None:
    text = into_case.adapter_file("hf").read_text("utf-8")
    assert "import forensics" not in text
    assert "from forensics" not in text
    assert adapter.HALVES == {"bf16": "bfloat16", "fp16": "float16"}


def test_saved_arguments_are_settings_and_no_calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A function or class of the allowed libraries that loads code, as a pickle would call it."""

    class Calls:
        def __reduce__(self) -> Any:
            return transformers.AutoModel.from_pretrained, (str(tmp_path), None, None)

    class Loads:
        def __reduce__(self) -> Any:
            return torch.hub.load, (str(tmp_path), "model")

    for n, evil in enumerate((Calls(), Loads())):
        folder = tmp_path / f"run{n}" / "checkpoint-1"
        folder.mkdir(parents=True)
        torch.save(evil, folder / "training_args.bin")
        monkeypatch.setenv("FORENSICS_RUN", str(folder.parent))
        loaded = adapter.import_file(str(into_case.adapter_file("hf")))
        with pytest.raises(ValueError, match="wants"):
            loaded._arguments()
