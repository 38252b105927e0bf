"""What the staged trainings share: a toy classification task, a clock that runs at the pace of a real step, two loggers."""

import datetime
import json
import os
import random
import time

import torch

START = datetime.datetime(2026, 3, 2, 9, 14, 3).timestamp()
PACE = 0.84
TEACHER = torch.randn(32, 10, generator=torch.Generator().manual_seed(1))


class Clock:
    def __init__(self):
        self.now = START
        self.jitter = random.Random(7)

    def tick(self):
        self.now += PACE * self.jitter.uniform(0.96, 1.05)

    def stamp(self):
        return datetime.datetime.fromtimestamp(self.now).strftime("%Y-%m-%d %H:%M:%S,%f")[:-3]


CLOCK = Clock()


def say(text):
    print(f"{CLOCK.stamp()} INFO {text}", flush=True)


def record(step, total, **values):
    """One step's values: a line on the console, or a record in metrics.jsonl where the run logs so."""
    if os.environ.get("LOGGER") == "jsonl":
        with open("metrics.jsonl", "a", encoding="utf-8") as out:
            out.write(json.dumps({"step": step, "time": round(CLOCK.now, 3), **{k: round(v, 5) for k, v in values.items()}}) + "\n")
        return
    numbers = " | ".join(f"{key} {value:.4g}" if key == "lr" else f"{key} {value:.4f}" for key, value in values.items())
    say(f"step {step}/{total} | {numbers}")


def toy_batch(size=64, generator=None):
    x = torch.randn(size, 32, generator=generator)
    y = (x @ TEACHER + 1.5 * torch.randn(size, 10, generator=generator)).argmax(1)
    return x, y


def make_model():
    torch.manual_seed(int(os.environ.get("SEED", "0")))
    return torch.nn.Sequential(torch.nn.Linear(32, 64), torch.nn.GELU(), torch.nn.Linear(64, 10))


def make_optimizer(model, total, lr=3e-3):
    optimizer = torch.optim.AdamW(model.parameters(), lr=lr)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=lr, total_steps=total + 1, pct_start=0.05)
    return optimizer, schedule


def one_step(model, optimizer, schedule, batch):
    x, y = batch
    loss = torch.nn.functional.cross_entropy(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    schedule.step()
    CLOCK.tick()
    return loss.item(), norm.item()


def train(model, batches, total, every=10, after=None):
    """The plain loop; `after` is called with every finished step."""
    optimizer, schedule = make_optimizer(model, total)
    mean = 0.0
    for step, batch in enumerate(batches, start=1):
        loss, norm = one_step(model, optimizer, schedule, batch)
        mean += loss / every
        if step % every == 0:
            record(step, total, loss=mean, lr=schedule.get_last_lr()[0], grad_norm=norm)
            mean = 0.0
        if after:
            after(step)
        if step == total:
            break


def endless():
    while True:
        yield toy_batch()


def prefetch(step, at):
    """Waits at one step until the next shard lies on the disk; there the recorder sends its signal."""
    if step == at:
        with open(".ready", "w", encoding="utf-8") as out:
            out.write(str(os.getpid()))
    while step == at and not os.path.exists(".shard"):
        time.sleep(0.05)
