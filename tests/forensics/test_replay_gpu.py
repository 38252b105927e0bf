"""Trained on a GPU and replayed there: half precision, fused attention and dropout, from the checkpoint's random states; needs CUDA."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from replays import outcome  # noqa: E402 - needs torch

from forensics import at_path  # noqa: E402
from forensics.replays import into_case  # noqa: E402
from forensics.replays.session import Options  # noqa: E402

pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")]

STEPS, SAVED, BAD, ROWS = 120, 60, 95, [1, 6]
TRANSFORMER = f"""
import torch
from torch import nn
from torch.nn import functional as F

PRECISION, CLIP = "HALF", 1.0

class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.before, self.after = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.wide = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width), nn.Dropout(0.1))

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = self.qkv(self.before(x)).view(b, t, 3, 4, c // 4).permute(2, 0, 3, 1, 4)
        a = F.scaled_dot_product_attention(q, k, v, is_causal=True, dropout_p=0.1 if self.training else 0.0)
        x = x + self.out(a.transpose(1, 2).reshape(b, t, c))
        return x + self.wide(self.after(x))

class Transformer(nn.Module):
    def __init__(self, width=64):
        super().__init__()
        self.table, self.place = nn.Embedding(64, width), nn.Embedding(64, width)
        self.blocks, self.head = nn.Sequential(Block(width), Block(width)), nn.Linear(width, 64)

    def forward(self, x):
        return self.head(self.blocks(self.table(x) + self.place(torch.arange(x.shape[1], device=x.device))))

def build():
    torch.manual_seed(0)
    model = Transformer()
    return model, torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.01)

def batch(step):
    drawn = torch.Generator().manual_seed(step)
    x = (torch.randint(64, (12, 1), generator=drawn) + torch.arange(33) * torch.randint(1, 4, (12, 1), generator=drawn)) % 64
    if step == {BAD}:
        x[{ROWS}] = torch.randint(64, (2, 33), generator=drawn)
    return {{"x": x, "ids": torch.arange(12) + 12 * step}}

def loss(model, batch, reduction="mean"):
    x = batch["x"]
    losses = F.cross_entropy(model(x[:, :-1]).transpose(1, 2), x[:, 1:], reduction="none").mean(1)
    return losses if reduction == "none" else losses.mean()
"""


def train(folder: Path, half: str) -> Path:
    """As a plain loop trains: autocast, a loss scaler for fp16, a checkpoint with the random states of both devices."""
    path = folder / "train.py"
    path.write_text(TRANSFORMER.replace("HALF", half))
    space: dict[str, Any] = {}
    exec(compile(path.read_text(), "train.py", "exec"), space)
    model, optimizer = space["build"]()
    model.to("cuda")
    dtype = {"bf16": torch.bfloat16, "fp16": torch.float16, "fp32": None}[half]
    scaler = torch.amp.GradScaler("cuda", enabled=half == "fp16")
    with (folder / "metrics.jsonl").open("w") as f:
        for step in range(STEPS):
            if step == SAVED:
                random = {"torch": torch.get_rng_state(), "cuda": torch.cuda.get_rng_state_all()}
                state = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "scaler": scaler.state_dict(), "step": step}
                torch.save({**state, "rng_state": random}, folder / f"step_{step}.pt")
            rows = {k: v.to("cuda") for k, v in space["batch"](step).items()}
            optimizer.zero_grad()
            with torch.autocast("cuda", dtype or torch.bfloat16, enabled=dtype is not None):
                loss = space["loss"](model, rows)
            scaler.scale(loss).backward()
            scaler.unscale_(optimizer)
            norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            scaler.step(optimizer)
            scaler.update()
            f.write(json.dumps({"step": step, "loss": float(loss.detach()), "grad_norm": float(norm), "lr": 1e-3}) + "\n")
    return path


@pytest.mark.parametrize("half", ["bf16", "fp16", "fp32"])
def test_the_samples_of_a_run_on_a_gpu_are_named(half: str, tmp_path: Path) -> None:
    adapter = train(tmp_path, half)
    run = at_path.read(str(tmp_path))
    case, result = into_case.replayed(run, Options(adapter, sys.executable, "cuda", 1500), None)
    told = result.document
    assert not result.failed, result.traceback
    assert told["agreed"] > 20, told
    assert told["verdict"] == "data", told
    assert [(c["step"], c["samples"]) for c in case.culprits] == [(BAD, [12 * BAD + r for r in ROWS])]
    assert outcome(result, "other kernels") == outcome(result, "on a second device") == "spike"
