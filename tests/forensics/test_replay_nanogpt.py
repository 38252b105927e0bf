"""`--adapter nanogpt`: a script of that kind is run, killed and resumed; the batches are drawn again as it drew them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")

from replays import replayed

from forensics.replays import all_ranks, into_case
from forensics.replays.client import ReplayFailed, Worker

pytestmark = pytest.mark.filterwarnings("ignore:TF32 acceleration")

MODEL = """
from dataclasses import dataclass
import torch
from torch import nn
from torch.nn import functional as F

@dataclass
class GPTConfig:
    vocab_size: int = 32
    n_embd: int = 16
    dropout: float = 0.0

class GPT(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.table, self.head = nn.Embedding(config.vocab_size, config.n_embd), nn.Linear(config.n_embd, config.vocab_size)

    def forward(self, x, targets=None):
        logits = self.head(torch.tanh(self.table(x)))
        return logits, None if targets is None else F.cross_entropy(logits.flatten(0, 1), targets.flatten())

    def configure_optimizers(self, weight_decay, learning_rate, betas, device_type):
        decayed = [p for p in self.parameters() if p.dim() > 1]
        others = [p for p in self.parameters() if p.dim() < 2]
        groups = [{"params": decayed, "weight_decay": weight_decay}, {"params": others, "weight_decay": 0.0}]
        return torch.optim.AdamW(groups, lr=learning_rate, betas=betas)
"""

SCRIPT = """
import json, math, sys
from pathlib import Path
import numpy as np
import torch
from model import GPT, GPTConfig

run, data, resumed, last, ahead = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3] == "resume", int(sys.argv[4]), sys.argv[5] == "ahead"
config = dict(learning_rate=3e-2, warmup_iters=30, lr_decay_iters=200, min_lr=3e-3, decay_lr=True, weight_decay=0.1, beta1=0.9, beta2=0.95, grad_clip=1.0,
              gradient_accumulation_steps=2, batch_size=4, block_size=16, eval_interval=20, eval_iters=3, device="cpu", dtype="bfloat16", dropout=0.0)
torch.manual_seed(1337)
drawn = (run / "drawn.txt").open("a")

def some(split):
    tokens = np.memmap(data / f"{split}.bin", dtype=np.uint16, mode="r")
    at = torch.randint(len(tokens) - config["block_size"], (config["batch_size"],))
    x = torch.stack([torch.from_numpy(tokens[i : i + config["block_size"]].astype(np.int64)) for i in at])
    y = torch.stack([torch.from_numpy(tokens[i + 1 : i + 1 + config["block_size"]].astype(np.int64)) for i in at])
    return x, y, at.tolist()

def rate(it):
    if it < config["warmup_iters"]:
        return config["learning_rate"] * ((it + 1) / (config["warmup_iters"] + 1) if ahead else it / config["warmup_iters"])
    share = 0.5 * (1 + math.cos(math.pi * (it - config["warmup_iters"]) / (config["lr_decay_iters"] - config["warmup_iters"])))
    return config["min_lr"] + share * (config["learning_rate"] - config["min_lr"])

saved = torch.load(run / "ckpt.pt", weights_only=True) if resumed else None
model = GPT(GPTConfig())
optimizer = model.configure_optimizers(0.1, config["learning_rate"], (0.9, 0.95), "cpu")
it = 0
if saved:
    model.load_state_dict(saved["model"])
    optimizer.load_state_dict(saved["optimizer"])
    it = saved["iter_num"]
log = (run / "train.log").open("a")
x, y, at = some("train")
while it <= last:
    for group in optimizer.param_groups:
        group["lr"] = rate(it)
    if it % config["eval_interval"] == 0:
        with torch.no_grad():
            means = {}
            for split in ("train", "val"):
                means[split] = sum(float(model(*some(split)[:2])[1]) for _ in range(config["eval_iters"])) / config["eval_iters"]
        print(f"step {it}: train loss {means['train']:.4f}, val loss {means['val']:.4f}", file=log)
        if it:
            torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "model_args": {"n_embd": 16}, "iter_num": it, "best_val_loss": 1.0,
                        "config": config}, run / "ckpt.pt")
    rows = []
    for _ in range(2):
        loss = model(x, y)[1] / 2
        rows += at
        x, y, at = some("train")
        loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), config["grad_clip"])
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    print(f"iter {it}: loss {float(loss) * 2:.6f}, time 1.00ms, mfu -100.00%", file=log)
    print(json.dumps([it, rows]), file=drawn)
    it += 1
"""


def trained(
    folder: Path, monkeypatch: pytest.MonkeyPatch, ahead: str = "ahead", first: int = 70, last: int = 139
) -> tuple[Path, list[Any]]:
    """The run, and what its script drew: (step, where the samples begin), in the order of the launches."""
    run, code, data = folder / "run", folder / "code", folder / "data"
    for f in (run, code, data):
        f.mkdir()
    (code / "model.py").write_text(MODEL)
    (code / "script.py").write_text(SCRIPT)
    rng = np.random.default_rng(0)
    for split, n in (("train", 5000), ("val", 700)):
        (rng.integers(0, 32, n) // rng.integers(1, 9, n)).astype(np.uint16).tofile(data / f"{split}.bin")
    for how, until in (("scratch", first), ("resume", last)):
        command = [sys.executable, str(code / "script.py"), str(run), str(data), how, str(until), ahead]
        subprocess.run(command, check=True, timeout=120, cwd=code, env={**os.environ, "OMP_NUM_THREADS": "1"})
    monkeypatch.setenv("FORENSICS_MODULE", str(code / "model.py"))
    monkeypatch.setenv("FORENSICS_DATA", str(data))
    return run, [json.loads(x) for x in (run / "drawn.txt").read_text().splitlines()]


@pytest.mark.parametrize("ahead", ["ahead", "from zero"])
def test_the_replay_meets_the_log_and_draws_what_the_script_drew(ahead: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run, drawn = trained(tmp_path, monkeypatch, ahead)
    _, result = replayed(run, into_case.adapter_file("nanogpt"), check=True)
    told = result.document["check"]
    assert not result.failed, result.traceback
    assert told["met"] and told["agreed"] == told["of"] >= 16
    lasting = dict(drawn)  # of a step that was run twice the second time
    with Worker(sys.executable, into_case.adapter_file("nanogpt"), run=run, processes=all_ranks.environments(1)) as worker:
        worker.open("cpu", 1)
        steps = [0, 1, 20, 59, 60, 70, 100, 139]
        assert worker.ask("ids", batches=steps)["ids"] == [lasting[s] for s in steps]


def test_a_checkpoint_of_the_warmup_says_how_that_begins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for i, ahead in enumerate(("ahead", "from zero")):
        (tmp_path / str(i)).mkdir()
        run, _ = trained(tmp_path / str(i), monkeypatch, ahead, first=22, last=39)
        _, result = replayed(run, into_case.adapter_file("nanogpt"), check=True)
        assert result.document["check"]["met"], result.document["check"]["lines"]


@pytest.mark.parametrize(
    ("without", "what"), [("FORENSICS_MODULE", "set FORENSICS_MODULE"), ("FORENSICS_DATA", "names the folder with train.bin")]
)
def test_what_is_not_named_is_asked_for(without: str, what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run, _ = trained(tmp_path, monkeypatch, first=22, last=25)
    monkeypatch.delenv(without)
    with (
        Worker(sys.executable, into_case.adapter_file("nanogpt"), run=run, processes=all_ranks.environments(1)) as worker,
        pytest.raises(ReplayFailed, match=what),
    ):
        worker.open("cpu", 1)
        worker.ask("ids", batches=[1])
