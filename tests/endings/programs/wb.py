"""W&B offline over the toy task; its ending is chosen by the environment."""

import atexit
import os
import sys
import time

import wandb
from lib import make_model, make_optimizer, one_step, prefetch, toy_batch

ENDING = os.environ.get("ENDING", "")
TOTAL = 240


def lookup(step):
    table = {name: index for index, name in enumerate(["train", "val"])}
    return table["test" if step == 150 else "val"]


def train(run):
    model = make_model()
    optimizer, schedule = make_optimizer(model, TOTAL)
    for step in range(1, TOTAL + 1):
        loss, norm = one_step(model, optimizer, schedule, toy_batch())
        time.sleep(0.02)
        run.log({"train/loss": loss, "train/grad_norm": norm, "lr": schedule.get_last_lr()[0]}, step=step)
        if step % 20 == 0:
            print(f"step {step}/{TOTAL} loss {loss:.4f}", flush=True)
        if ENDING in ("exception", "zero") and step == 150:
            lookup(step)
        prefetch(step, int(os.environ.get("AT", "-1")))


def flush_metrics():
    raise BrokenPipeError(32, "Broken pipe")


def main():
    settings = wandb.Settings(x_disable_meta=True, disable_git=True, host="gpu-node-3", x_disable_stats=True)
    config = {"lr": 3e-3, "batch_size": 64, "steps": TOTAL, "optimizer": "adamw", "seed": 0}
    run = wandb.init(project="toy", mode="offline", config=config, settings=settings)
    if ENDING == "noise":
        atexit.register(flush_metrics)
    if ENDING == "zero":
        try:
            train(run)
        finally:
            wandb.finish(exit_code=0)
    train(run)
    print("Training finished.", flush=True)
    wandb.finish()
    sys.stderr.flush()


if __name__ == "__main__":
    main()
