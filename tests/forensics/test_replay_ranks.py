"""Replays of runs of several processes: trained by two that meet over gloo, and replayed by two."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
import time
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")

from replays import replayed

from forensics.replays import all_ranks
from forensics.replays.client import ReplayFailed, Worker

pytestmark = pytest.mark.filterwarnings("ignore:TF32 acceleration")

ADAPTER = """
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

def build():
    torch.manual_seed(3)
    model = nn.Sequential(nn.Linear(6, 16), nn.Tanh(), nn.Linear(16, 1))
    model = DistributedDataParallel(model)
    return model, torch.optim.Adam(model.parameters(), lr=0.01)

def sample_ids(step):
    return [16 * step + 8 * dist.get_rank() + i for i in range(8)]

def batch(step):
    x = torch.randn(16, 6, generator=torch.Generator().manual_seed(step))
    y = torch.tanh(x.sum(1))
    if step in BAD:
        y[ROWS] = 9.0
    mine = slice(8 * dist.get_rank(), 8 * dist.get_rank() + 8)
    return {"x": x[mine], "y": y[mine]}

def loss(model, batch, reduction="mean"):
    rows = (model(batch["x"])[:, 0] - batch["y"]) ** 2
    return rows if reduction == "none" else rows.mean()

CLIP = 5.0
BAD = {60}
ROWS = [11, 14]
"""

TRAINING = """
import json, os, sys
import torch
import torch.distributed as dist
from pathlib import Path

dist.init_process_group("gloo")
folder = Path(sys.argv[1])
space = {}
exec((folder / "train.py").read_text(), space)
model, optimizer = space["build"]()
log = (folder / "metrics.jsonl").open("w") if dist.get_rank() == 0 else None
for step in range(90):
    if step == 40 and log:
        torch.save({"model": model.module.state_dict(), "optimizer": optimizer.state_dict(), "step": step}, folder / "step_40.pt")
    optimizer.zero_grad()
    loss = space["loss"](model, space["batch"](step))
    loss.backward()
    norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 5.0)
    optimizer.step()
    told = loss.detach().clone()
    if sys.argv[2] == "mean":
        dist.all_reduce(told)
        told /= 2
    if log:
        print(json.dumps({"step": step, "loss": float(told), "grad_norm": float(norm), "lr": 0.01}), file=log)
dist.destroy_process_group()
if log:
    log.close()
os._exit(0)  # torch's threads may abort an interpreter that ends (pytorch/pytorch#190489)
"""


def trained(folder: Path, logged: str, extra: str = "") -> Path:
    """The run's adapter, after two processes have trained with it; `logged`: the mean of their losses, or rank 0's."""
    folder.mkdir(exist_ok=True)
    (folder / "train.py").write_text(ADAPTER + extra)
    script = folder.parent / "training.py"
    script.write_text(TRAINING)
    started = [
        subprocess.Popen([sys.executable, str(script), str(folder), logged], env={**os.environ, **env}, stderr=subprocess.PIPE)
        for env in all_ranks.environments(2)
    ]
    told = [p.communicate(timeout=120)[1].decode() for p in started]
    assert [p.returncode for p in started] == [0, 0], told
    return folder / "train.py"


@pytest.mark.parametrize(("logged", "rows"), [("mean", [11, 14]), ("rank 0", [3, 6])])
def test_bad_samples_of_one_rank_are_named_over_all_ranks(logged: str, rows: list[int], tmp_path: Path) -> None:
    """A log that prints rank 0's loss shows the harm of its own samples alone."""
    case, result = replayed(tmp_path / "run", trained(tmp_path / "run", logged, f"ROWS = {rows}\n"), processes=2)
    told = result.document
    assert not result.failed, result.traceback
    assert told["check"]["met"] and told["check"]["agreed"] == told["check"]["of"]
    assert told["check"]["view"]["part"] == ("" if logged == "mean" else "rank 0")
    assert told["verdict"] == "data"
    assert [c["step"] for c in case.culprits] == [60]
    assert case.culprits[0]["samples"] == [16 * 60 + r for r in rows]


def worker(folder: Path, extra: str, **more: Any) -> Worker:
    path = folder / "train.py"
    path.write_text(ADAPTER + textwrap.dedent(extra))
    return Worker(sys.executable, path, processes=all_ranks.environments(2), **more)


def test_what_fails_on_one_rank_ends_all_and_is_told(tmp_path: Path) -> None:
    extra = """
    _batch = batch
    def batch(step):
        if step == 2 and dist.get_rank() == 1:
            raise OSError("shard 7 is gone")
        return _batch(step)
    """
    with worker(tmp_path, extra) as w:
        w.open("cpu", 1)
        w.ask("run", state="built", plan=[{"batch": 0}])
        begin = time.monotonic()
        with pytest.raises(ReplayFailed, match=r"train\.py on rank 1 failed: OSError: shard 7 is gone"):
            w.ask("run", state="built", plan=[{"batch": i} for i in range(4)])
        assert time.monotonic() - begin < 60
    assert all(p.poll() is not None for p in w._processes)


def test_a_rank_that_hangs_is_stopped(tmp_path: Path) -> None:
    extra = """
    _batch = batch
    def batch(step):
        import time
        if step == 2 and dist.get_rank() == 1:
            time.sleep(600)
        return _batch(step)
    """
    with worker(tmp_path, extra) as w:
        w.open("cpu", 1)
        w.timeout = 8.0  # from here on: the imports of an open worker on a loaded machine take longer
        with pytest.raises(ReplayFailed, match="said nothing for 8 seconds"):
            w.ask("run", state="built", plan=[{"batch": i} for i in range(4)])
    assert all(p.poll() is not None for p in w._processes)


def test_rows_of_the_whole_batch_are_each_ranks_own(tmp_path: Path) -> None:
    with worker(tmp_path, "") as w:
        w.open("cpu", 1)
        assert w.ask("ids", batches=[3]) == {"ids": [list(range(48, 64))], "rows": [16]}
        whole = w.ask("losses", state="built", batches=[60], rows=True)["losses"][0]
        assert [i for i, x in enumerate(whole) if x > 20] == [11, 14]
        seen: list[dict[str, Any]] = []
        for rows in ([0, 1, 2, 11], [11, 14], list(range(8))):
            w.ask("run", seen.append, state="built", plan=[{"batch": 60, "rows": rows}, {"batch": 61}])
        assert seen[2]["parts"]["rank 1"] == pytest.approx((whole[11] + whole[14]) / 2, rel=1e-5)
        assert seen[4]["parts"]["rank 0"] == pytest.approx(sum(whole[:8]) / 8, rel=1e-5)
        assert seen[4]["parts"]["rank 1"] < 5  # an ordinary batch in place of rows that are all left out
        norms = w.ask("gradients", state="built", batch=60)
        assert len(norms["norms"]) == 16
        told = w.ask("content", batch=60, rows=[2, 11], most=8)
        assert (told["of"], told["ids"]) == (16, [960 + 2, 960 + 11])


def test_states_of_ranks_come_back_bit_for_bit(tmp_path: Path) -> None:
    with worker(tmp_path, "") as w:
        w.open("cpu", 1)
        first: list[dict[str, Any]] = []
        again: list[dict[str, Any]] = []
        w.ask("run", first.append, state="built", plan=[{"batch": i} for i in range(6)], keep={"3": "at 3"})
        w.ask("run", again.append, state="at 3", plan=[{"batch": i} for i in range(3, 6)])
    assert [r["loss"] for r in first[3:]] == [r["loss"] for r in again]


def test_answers_of_ranks_are_joined() -> None:
    one = {"losses": [1.0, "NaN"], "seconds": 1}
    assert all_ranks.done("losses", [one]) == one
    joined = all_ranks.done("losses", [{"losses": [[1.0], [2.0]]}, {"losses": [[3.0], [4.0]]}])
    assert joined == {"losses": [[1.0, 3.0], [2.0, 4.0]]}
    assert all_ranks.done("pure", [{"differs": [1]}, {"differs": [1, 5]}])["differs"] == [1, 5]
    assert all_ranks.done("ids", [{"ids": [None], "rows": [2]}, {"ids": [None], "rows": [2]}]) == {"ids": [None], "rows": [4]}
    step = all_ranks.step([{"i": 0, "loss": 1.0, "norm": 2.0, "lr": 0.1}, {"i": 0, "loss": "Infinity", "norm": 2.0, "lr": 0.1}])
    assert step["loss"] == float("inf")
    assert json.dumps(step["parts"]) == '{"rank 0": 1.0, "rank 1": "Infinity"}'
