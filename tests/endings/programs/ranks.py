"""Data-parallel training with gloo under torchrun; its ending is chosen by the environment."""

import datetime
import os
import time

import lib
import torch
import torch.distributed as dist
from lib import CLOCK, make_model, make_optimizer, toy_batch

ENDING = os.environ.get("ENDING", "")
TOTAL = int(os.environ.get("TOTAL", "300"))
CLOCK.now, lib.PACE = time.time(), 0.05  # the agent writes the real time
SHARDS = {0: "shard-000", 1: "shard-001", 2: "shard-002"}


def next_shard(rank, step):
    key = rank if ENDING == "key" and step == 180 else rank % 3
    return SHARDS[key]


def train(rank):
    model = torch.nn.parallel.DistributedDataParallel(make_model())
    optimizer, schedule = make_optimizer(model, TOTAL)
    torch.manual_seed(100 + rank)
    for step in range(1, TOTAL + 1):
        if step % 60 == 0:
            print(f"[rank{rank}] {CLOCK.stamp()} reading {next_shard(rank, step)}", flush=True)
        x, y = toy_batch()
        loss = torch.nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        CLOCK.tick()
        if step % 10 == 0:
            print(f"[rank{rank}] {CLOCK.stamp()} step {step}/{TOTAL} loss {loss.item():.4f} lr {schedule.get_last_lr()[0]:.3e}", flush=True)
        if ENDING in ("kill", "term") and step == 210:
            with open(f".ready{rank}", "w", encoding="utf-8") as out:
                out.write(str(os.getpid()))
            while not os.path.exists(".shard"):
                pass


def main():
    dist.init_process_group("gloo", timeout=datetime.timedelta(seconds=20))
    rank = dist.get_rank()
    print(f"[rank{rank}] {CLOCK.stamp()} process group ready, world size {dist.get_world_size()}", flush=True)
    train(rank)
    dist.barrier()
    print(f"[rank{rank}] {CLOCK.stamp()} finished training", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
