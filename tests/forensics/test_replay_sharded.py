"""Replays of runs whose weights were sharded (FSDP2), from checkpoints of torch.distributed.checkpoint: by two ranks, and by one process."""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")

import torch
from replays import replayed

from forensics.replays import all_ranks
from forensics.replays.client import ReplayFailed, Worker
from forensics.replays.training import dcp_folder, layouts

DDP = """
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

BAD = {60}

def factor(step):
    return 1.0

def build():
    torch.manual_seed(3)
    model = DistributedDataParallel(nn.Sequential(nn.Linear(6, 16), nn.Tanh(), nn.Linear(16, 1)))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    return model, optimizer, torch.optim.lr_scheduler.LambdaLR(optimizer, factor)

def batch(step):
    first = 8 * step + 4 * dist.get_rank()
    x = torch.randn(8, 6, generator=torch.Generator().manual_seed(step))[4 * dist.get_rank():][:4]
    y = torch.tanh(x.sum(1))
    if step in BAD and dist.get_rank() == 1:
        y[2] = 12.0
    return {"x": x, "y": y, "ids": torch.arange(4) + first}

def loss(model, batch, reduction="mean"):
    rows = (model(batch["x"])[:, 0] - batch["y"]) ** 2
    return rows if reduction == "none" else rows.mean()

CLIP = 5.0
"""
TRAIN = """
import json, os, sys
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import torch
import torch.distributed as dist
torch.set_num_threads(1)
dist.init_process_group("gloo")
import train as t
model, optimizer, scheduler = t.build()
log = open("metrics.jsonl", "w") if dist.get_rank() == 0 else None
for step in range(90):
    if step == 40:
        SAVE
    optimizer.zero_grad()
    loss = t.loss(model, t.batch(step))
    loss.backward()
    norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 5.0)
    norm = norm.full_tensor() if hasattr(norm, "full_tensor") else norm
    lr = optimizer.param_groups[0]["lr"]
    optimizer.step()
    scheduler.step()
    shown = loss.detach().clone()
    dist.all_reduce(shown)
    if log:
        log.write(json.dumps({"step": step, "loss": float(LOGGED), "grad_norm": float(norm), "lr": lr}) + "\\n")
dist.destroy_process_group()
if log:
    log.close()
os._exit(0)  # torch's threads may abort an interpreter that ends (pytorch/pytorch#190489)
"""
SHARDED = DDP.replace(
    "model = DistributedDataParallel(nn.Sequential(nn.Linear(6, 16), nn.Tanh(), nn.Linear(16, 1)))",
    """model = nn.Sequential(nn.Linear(6, 16), nn.Tanh(), nn.Linear(16, 1))
    if dist.is_initialized():
        from torch.distributed.fsdp import fully_shard
        fully_shard(model)""",
)
DCP_SAVE = """
        import torch.distributed.checkpoint as dcp
        from torch.distributed.checkpoint.state_dict import StateDictOptions, get_state_dict
        dcp.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "step": step}, checkpoint_id="checkpoints/step_40")
        weights, moments = get_state_dict(model, optimizer)
        dcp.save({"app": {"model": weights, "optim": moments, "step": step}}, checkpoint_id="by_name")
        weights, moments = get_state_dict(model, optimizer, options=StateDictOptions(full_state_dict=True, cpu_offload=True))
        if dist.get_rank() == 0:
            torch.save({"model": weights, "optimizer": moments, "step": step}, "whole.pt")
"""
WHOLE = """
def batch(step):
    x = torch.randn(8, 6, generator=torch.Generator().manual_seed(step))
    y = torch.tanh(x.sum(1))
    if step in BAD:
        y[6] = 12.0
    return {"x": x, "y": y, "ids": torch.arange(8) + 8 * step}
"""


def train(folder: Path, script: str, save: str) -> Path:
    """Two real processes train, and leave log, checkpoints and adapter."""
    (folder / "train.py").write_text(script)
    text = TRAIN.replace("        SAVE\n", textwrap.indent(textwrap.dedent(save), "        ")).replace("LOGGED", "shown / 2")
    (folder / "ranks.py").write_text(text)
    both = [
        subprocess.Popen(
            [sys.executable, "ranks.py"], cwd=folder, env={**os.environ, **env, "CUDA_VISIBLE_DEVICES": ""}, stderr=subprocess.PIPE
        )
        for env in all_ranks.environments(2)
    ]
    told = [p.communicate(timeout=120)[1].decode() for p in both]
    assert [p.returncode for p in both] == [0, 0], told
    (folder / "ranks.py").unlink()
    return folder


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return train(tmp_path_factory.mktemp("sharded"), SHARDED, DCP_SAVE)


def logged(run: Path) -> list[float]:
    return [float(json.loads(line)["loss"]) for line in (run / "metrics.jsonl").read_text().splitlines()]


def worker(folder: Path, text: str, extra: str = "", processes: int = 2) -> Worker:
    path = folder / "train.py"
    path.write_text(text + textwrap.dedent(extra))
    return Worker(sys.executable, path, timeout=60, processes=all_ranks.environments(processes))


def steps(worker: Worker, plan: Sequence[int], state: str = "built", **options: Any) -> list[Any]:
    seen: list[Any] = []
    worker.ask("run", seen.append, state=state, plan=[{"batch": b} for b in plan], **options)
    return seen


def test_a_sharded_run_is_replayed_from_its_dcp_folder(run: Path) -> None:
    case, result = replayed(run, run / "train.py", processes=2)
    told = result.document
    assert not result.failed, result.traceback
    assert told["check"]["met"] and told["check"]["agreed"] == told["check"]["of"] >= 20, told["check"]
    assert told["from"]["step"] == 40 and {"weights", "optimizer"} <= set(told["from"]["parts"])
    assert told["noise_floor"] == 0.0 and told["parts"] is None
    assert told["verdict"] == "data", told["why"]
    assert [(c["step"], c["samples"]) for c in case.culprits] == [(60, [486])]


def test_another_precision_leaves_gradients_shared(tmp_path: Path) -> None:
    """DDP loses its hooks where a weight gets another dtype: from then on each rank would train alone."""
    with worker(tmp_path, DDP) as w:
        w.open("cpu", 1)
        first = steps(w, range(3))
        double = steps(w, range(3), changes={"precision": "fp64"})
        assert [s["norm"] for s in double] == pytest.approx([s["norm"] for s in first], rel=1e-4)
        assert steps(w, range(3)) == first


@pytest.mark.parametrize("saved", ["checkpoints/step_40", "by_name", "whole.pt"])
@pytest.mark.parametrize("kind", ["sharded", "replicated", "one process"])
def test_each_save_goes_on_as_the_run_did(run: Path, tmp_path: Path, saved: str, kind: str) -> None:
    text, extra = (DDP, "") if kind == "replicated" else (SHARDED, WHOLE if kind == "one process" else "")
    with worker(tmp_path, text, extra, 1 if kind == "one process" else 2) as w:
        w.open("cpu", 1)
        told = w.ask("start", path=str(run / saved), name="loaded")
        assert (told["step"], told["count"], told["parts"][:2], told["left"]) == (40, 40, ["weights", "optimizer"], [])
        seen = [s["loss"] for s in steps(w, range(40, 50), "loaded")]
        # two halves of a batch and the whole of it are summed in another order
        assert seen == logged(run)[40:50] if kind != "one process" else seen == pytest.approx(logged(run)[40:50], rel=1e-5)


def test_a_sharded_state_comes_back_exactly_from_memory_and_disk(tmp_path: Path) -> None:
    for memory in (1 << 30, 1):
        with worker(tmp_path, SHARDED) as w:
            assert w.open("cpu", 1, memory)["parameters"] == 129
            first = steps(w, range(5), keep={"3": "three", "5": "five"})
            assert [(s["loss"], s["norm"]) for s in steps(w, [3, 4], "three")] == [(s["loss"], s["norm"]) for s in first[3:]]
            assert len(w.ask("losses", state="five", batches=[60], rows=True)["losses"][0]) == 8
            assert "layers" in steps(w, [0], changes={"layers": True})[0]
            assert w.ask("frames", state="five", batch=60)["frames"]
            assert "why" in w.ask("leaks", state="five", batch=60)
            with pytest.raises(ReplayFailed, match="not tried with sharded weights"):
                steps(w, [0], changes={"precision": "fp64"})
            assert steps(w, range(5)) == first


class Evil:
    def __reduce__(self) -> Any:
        return (exec, ("print('run')",))


def test_nothing_in_a_dcp_folder_is_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    import torch.distributed.checkpoint as dcp

    model = torch.nn.Linear(2, 1)
    dcp.save({"model": model.state_dict(), "step": 7, "odd": Evil()}, checkpoint_id=tmp_path / "values", no_dist=True)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    told = layouts.load_checkpoint(str(tmp_path / "values"), model, optimizer, None)
    assert told == (7, ["weights"], ["odd (it asks for code to be run)"])
    (tmp_path / "names").mkdir()
    (tmp_path / "names" / ".metadata").write_bytes(pickle.dumps(Evil()))
    with pytest.raises(layouts.Unusable, match=r"names builtins\.exec"):
        layouts.load_checkpoint(str(tmp_path / "names"), model, optimizer, None)
    assert "run" not in capsys.readouterr().out


def test_a_dcp_folder_keeps_to_itself(tmp_path: Path) -> None:
    import torch.distributed.checkpoint as dcp

    dcp.save({"model": torch.nn.Linear(2, 1).state_dict()}, checkpoint_id=tmp_path / "a", no_dist=True)
    about = dcp_folder.metadata(str(tmp_path / "a"))
    for info in about.storage_data.values():
        info.relative_path = "../outside.distcp"
    (tmp_path / "a" / ".metadata").write_bytes(pickle.dumps(about))
    with pytest.raises(dcp_folder.Foreign, match="outside the folder"):
        dcp_folder.read(str(tmp_path / "a"))
