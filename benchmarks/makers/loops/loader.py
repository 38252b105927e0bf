"""A character model whose loader is another process."""

import ctypes
import multiprocessing as mp
import os
import signal
import time

import plants as P
import torch
from core import OK, F, Family
from loop import Order, send_later
from text import CharLM


# loader in another process, CSV and console
def loader_process(task, h, q, ext):
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # end with the parent, however it ends
    order = Order(task.n, h["seed"])
    for step in range(h["steps"]):
        if ext.pause:
            time.sleep(ext.pause(step))
        q.put(order.take(h["batch_size"]).tolist())


def with_loader(folder, h, ext, meas, ckpt, k):
    torch.manual_seed(h["seed"])
    task = CharLM(h)
    ctx = mp.get_context("fork")
    q = ctx.Queue(4)
    worker = ctx.Process(target=loader_process, args=(task, h, q, ext), daemon=True)
    worker.start()
    opt = torch.optim.Adam(task.model.parameters(), lr=h["lr"])
    kept = []
    print(f"pid {os.getpid()} worker pid {worker.pid}")
    with open(folder / "stats.csv", "w", buffering=1) as f:
        f.write("step,loss,data_s,step_s,rss_mb\n")
        for step in range(h["steps"]):
            t0 = time.perf_counter()
            idx = q.get(timeout=h["loader_timeout"])
            t1 = time.perf_counter()
            b = ext.batch(step, task.get(idx))
            task.model.train()
            loss, _ = task.loss(b)
            opt.zero_grad()
            loss.backward()
            opt.step()
            if ext.keep is not None:
                kept.append(task.model(b["x"]).float().repeat(1, 1, 4))
            t2 = time.perf_counter()
            meas.m["loss"].append((step, loss.item()))
            meas.m["dt"].append(t2 - t0)
            if step % 5 == 0:
                rss = int(open("/proc/self/statm").read().split()[1]) * 4096 / 2**20
                f.write(f"{step},{loss.item():.4f},{t1 - t0:.4f},{t2 - t0:.4f},{rss:.0f}\n")
            if ext.signal_at and step == ext.signal_at[0]:
                send_later(ext.signal_at[1], 0.0)
                time.sleep(0.1)
            if (step + 1) % 50 == 0:
                e = task.evaluate()["val_loss"]
                meas.m["eval"].append((step, e))
                meas.dump()
                print(f"validation after {step + 1} steps: {e:.4f} nats/char")
    print("training complete")
    meas.dump(True)


def starved(step, seconds):
    return F(
        "hang",
        ext=lambda h, rng: {"pause": lambda s: seconds if s == step else 0},
        step=step,
        accept=["code_error"],
        what="the step waits for a batch until queue.Empty is raised",
    )


H24 = {"steps": 200, "n_embd": 24, "n_layer": 1, "batch_size": 8, "lr": 3e-3, "schedule": "constant", "loader_timeout": 3.0}


loader = Family(
    "torch-chargpt-loader-csv",
    H24,
    None,
    task=None,
    train=with_loader,
    console="job.log",
    config="yaml",
    logs=["eval", "time"],
    plan=[
        OK(),
        OK(),
        OK("evaluation pauses and a slow start", ext=lambda h, rng: {"pause": lambda s: 1.0 if s == 0 else 0}),
        OK("short run", h={"steps": 150}, check=lambda m, t, s: (m["done"], "done")),
        starved(120, 6.0),
        starved(60, 6.0),
        P.slow(100, 0.05),
        P.slow(110, 0.2, every=5),
        F("out_of_memory", ext=lambda h, rng: {"keep": []}, limit_mb=260, step=0),
        F("out_of_memory", ext=lambda h, rng: {"keep": []}, limit_mb=200, h={"batch_size": 12}, step=0),
        P.killed(130, signal.SIGTERM),
        P.code_error("index", 155),
        P.lr_high(1.0),
        P.labels_wrong(ident="partly"),
    ],
)


FAMILIES = [loader]
