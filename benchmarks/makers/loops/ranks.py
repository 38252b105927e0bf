"""Two gloo processes, one log for each rank."""

import os
import signal
import sys
import time
from datetime import timedelta

import plants as P
import torch
from core import OK, F, Family
from digits import Digits
from loop import Order, send_later
from rates import lr_at


# two gloo processes, one log a rank
def rank_main(rank, folder, h, ext, meas, store):
    import torch.distributed as dist

    log = open(folder / f"rank{rank}.log", "a", buffering=1)
    os.dup2(log.fileno(), 1)
    os.dup2(log.fileno(), 2)
    sys.stdout.reconfigure(line_buffering=True)

    def say(s):
        print(time.strftime("%Y-%m-%d %H:%M:%S"), f"[rank{rank}]", s)

    dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=2, timeout=timedelta(seconds=h["timeout_s"]))
    say(f"initialized: world_size 2 backend gloo lr {h['lr']} per-rank batch {h['batch_size']}")
    torch.manual_seed(h["seed"])
    task = Digits(h)
    model = task.model
    opt = torch.optim.AdamW(model.parameters(), lr=h["lr"])
    order = Order(task.n, h["seed"] + rank)
    for step in range(h["steps"]):
        t0 = time.perf_counter()
        for g in opt.param_groups:
            g["lr"] = ext.lr(step, lr_at(h, ext.clock(step, 0)))
        batch = task.get(order.take(h["batch_size"]))
        if rank == 1:
            batch = ext.batch(step, batch)
            if ext.pause:
                time.sleep(ext.pause(step))
        tl = time.perf_counter()
        model.train()
        loss, _ = task.loss(batch)
        loss.backward()
        tc = time.perf_counter()
        params = [p for p in model.parameters() if p.grad is not None]
        flat = torch.cat([p.grad.flatten() for p in params])
        dist.all_reduce(flat)
        flat /= 2
        sync = time.perf_counter() - tc
        at = 0
        for p in params:
            p.grad = flat[at : at + p.numel()].view_as(p).clone()
            at += p.numel()
        gn = float(flat.norm())
        torch.nn.utils.clip_grad_norm_(model.parameters(), h.get("grad_clip", 1e9))
        opt.step()
        opt.zero_grad()
        if ext.after and rank == 1:
            ext.after(step, task, opt)
        if rank == 0:
            meas.m["loss"].append((step, loss.item()))
            meas.m["dt"].append(time.perf_counter() - t0)
        if step % h["log_every"] == 0:
            say(
                f"step {step} loss {loss.item():.4f} gnorm {gn:.3f} data {1e3 * (tl - t0):.1f}ms compute {1e3 * (tc - tl):.1f}ms allreduce {1e3 * sync:.1f}ms"
            )
        if ext.signal_at and rank == 1 and step == ext.signal_at[0]:
            send_later(ext.signal_at[1], 0.0)
            time.sleep(0.2)
        if rank == 0 and (step + 1) % h["eval_every"] == 0:
            e = task.evaluate()
            meas.m["eval"].append((step, e["val_loss"]))
            meas.dump()
            say("validation " + " ".join(f"{k} {v:.4f}" for k, v in e.items()))
    say("done")
    if rank == 0:
        meas.dump(True)
    dist.destroy_process_group()


def two_ranks(folder, h, ext, meas, ckpt, k):
    store = ckpt + ".store"
    pids = []
    for r in range(2):
        pid = os.fork()
        if pid == 0:
            code = 0
            try:
                rank_main(r, folder, h, ext, meas, store)
            except BaseException as e:
                import traceback

                traceback.print_exception(type(e), e, e.__traceback__.tb_next)
                code = 1
            sys.stdout.flush()
            os._exit(code)
        pids.append(pid)
    bad = 0
    for r, pid in enumerate(pids):
        st = os.waitpid(pid, 0)[1]
        if st:
            how = (
                f"Signal {os.WTERMSIG(st)} ({signal.Signals(os.WTERMSIG(st)).name})"
                if os.WIFSIGNALED(st)
                else f"exitcode {os.WEXITSTATUS(st)}"
            )
            print(f"launch: rank {r} (pid {pid}) failed: {how}")
            bad = 1
    raise SystemExit(bad)


def stuck(step, seconds):
    """A rank's loader stops answering; the other rank waits in all_reduce until its time limit."""
    return F(
        "hang",
        ext=lambda h, rng: {"pause": lambda s: seconds if s == step else 0},
        step=step,
        what="one rank's log stops at a step without an error, the other reports a timeout in the collective",
        accept=[],
    )


R = {"train": two_ranks, "task": None, "console": "launcher.log", "shell": "launch.py"}
H23 = {
    "task": "digits",
    "steps": 150,
    "batch_size": 16,
    "lr": 3e-3,
    "schedule": "constant",
    "log_every": 3,
    "eval_every": 24,
    "timeout_s": 3,
    "dropout": 0.0,
}
ddp_digits = Family(
    "torch-twogloo-cnndigits-ranklogs",
    H23,
    None,
    config="json",
    logs=["eval", "gnorm", "time"],
    **R,
    plan=[
        OK(),
        OK(),
        OK("one-cycle", h={"schedule": "onecycle", "lr": 5e-3}),
        OK("dropout", h={"dropout": 0.4}),
        stuck(110, 5.0),
        P.slow(75, 0.03),
        P.killed(90, signal.SIGTERM, what="one rank is ended by a signal, the other loses its peer", accept=["hang"]),
        P.lr_jump(90, 150),
        P.labels_wrong(ident="partly", what="one rank's training loss stays high"),
        P.code_error("shape", 99),
        P.nan_sample(101),
        P.pocket(90, 115, "targets"),
    ],
)


FAMILIES = [ddp_digits]
