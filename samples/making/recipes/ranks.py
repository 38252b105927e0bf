"""Jobs of two ranks: two processes that average their gradients with torch.distributed (gloo), and log each for itself."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path

import torch
import torch.distributed as dist
import torch.multiprocessing as processes
from torch import Tensor

from making import files
from making.clock import Clock, millis
from making.data import language
from making.expect import Expect
from making.models import Transformer
from making.training import Config, Job, Row, order, settings

NAMES = {"loss": "loss", "grad_norm": "grad_norm", "lr": "lr", "step_time": "step_time"}


class _Shared(Job):
    """A job whose gradients are the mean over all ranks where ``shared(step)``; each rank has its own half of a batch."""

    rank, world, now = 0, 2, 0
    shared: Callable[[int], bool] = staticmethod(lambda step: True)

    def step(self, step: int) -> Row:
        self.now = step
        return super().step(step)

    def update(self, loss: Tensor) -> tuple[float, bool]:
        self.optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        if self.shared(self.now):
            for p in self.model.parameters():
                dist.all_reduce(p.grad)
                p.grad /= self.world
        norm = torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.config["grad_clip"])
        self.optimizer.step()
        return norm.item(), False


def _train(rank: int, meeting: str, out: str, config: Config, alone_from: int, last: int) -> None:
    """One rank; ``alone_from``: the step from which gradients are not averaged any more, 0 for never."""
    dist.init_process_group("gloo", init_method=f"file://{meeting}", rank=rank, world_size=2)
    job = _Shared(language(65, samples=16000), lambda: Transformer(width=32), config, Clock("2026-05-08T08:00:00", 0.3, seed=rank))
    job.rank = rank
    job.shared = lambda step: not alone_from or step < alone_from
    half = config["batch_size"] // 2
    job.ids = lambda step: order(config, 16000, step)[rank * half : (rank + 1) * half]
    files.jsonl(Path(out) / f"rank{rank}.jsonl", list(job.run(last=last)), NAMES)
    if rank == 0:
        files.config_yaml(Path(out), config)
    dist.destroy_process_group()


def _both(out: Path, config: Config, alone_from: int, last: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        processes.spawn(_train, (f"{folder}/meeting", str(out), config, alone_from, last), nprocs=2)  # type: ignore[no-untyped-call]


def rank_divergence_jsonl(out: Path) -> Expect:
    """From step 351 on the two ranks of a job no longer average their gradients, as with a no_sync that is never left: each
    trains a model of its own on half of the data. Both losses go on falling; only the norm of the averaged gradient,
    equal on both ranks until then, tells. Really trained by two processes with gloo; JSONL of each rank."""
    config = settings(max_steps=600, lr=3e-3, seed=85, eval_every=0, batch_size=32, world_size=2)
    _both(out, config, 351, 600)
    return Expect(
        top="rank_divergence",
        findings=["rank_disagreement"],
        clear=["loss_spike", "nonfinite", "restart", "divergence", "stall"],
        first_bad_step=351,
    )


def hang_torchrun(out: Path) -> Expect:
    """At step 241 rank 0 goes into an evaluation and rank 1 does not: one broadcasts, the other averages gradients, and both
    wait until the watchdog gives up ten minutes later. Two processes with gloo trained it; JSONL of each rank, and the
    console with the watchdog's words."""
    config = settings(max_steps=600, lr=3e-3, seed=86, eval_every=0, batch_size=32, world_size=2)
    _both(out, config, 0, 240)
    end = Clock("2026-05-08T08:00:00", 0.3).now + 240 * 0.302 + 600
    when = millis(end)[11:].replace(",", ".")
    work = [("BROADCAST", 5056), ("ALLREDUCE", 50912)]
    lines = []
    for rank, (operation, numbers) in enumerate(work):
        head = f"[rank{rank}]:[E508 {when}000 ProcessGroupNCCL.cpp:"
        lines += [
            f"{head}616] [Rank {rank}] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=3121, OpType={operation},"
            f" NumelIn={numbers}, NumelOut={numbers}, Timeout(ms)=600000) ran for 60004{rank} milliseconds before timing out.",
            f"{head}1785] [PG ID 0 PG GUID 0(default_pg) Rank {rank}] Exception (either an error or timeout) detected by watchdog"
            " at work: 3121, last enqueued NCCL work: 3121, last completed NCCL work: 3120.",
            f"{head}630] [Rank {rank}] Some NCCL operations have failed or timed out. Due to the asynchronous nature of CUDA"
            " kernels, subsequent GPU operations might run on corrupted/incomplete data.",
        ]
    files.lines(out / "console.log", lines)
    return Expect(
        top="hang",
        findings=["stall"],
        clear=["loss_spike", "nonfinite", "restart", "divergence", "rank_disagreement"],
        status="hung",
        first_bad_step=240,
        emulated="the hang, the watchdog's words and the clocks",
    )
