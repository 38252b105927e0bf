"""One training loop shared by most families: schedule, accumulation, clipping, checkpoints, resume, logging."""

import math
import os
import pickle
import threading
import time

import numpy as np
import torch
from rates import lr_at, make_optimizer


class Ext:
    """Everything a run changes in the loop. The defaults change nothing."""

    def __init__(self, **kw):
        self.batch = lambda step, b: b  # data of one step
        self.lr = lambda step, lr: lr  # rate after the schedule
        self.clock = lambda step, first: step  # what the schedule is asked for
        self.loss = lambda loss: loss  # before backward
        self.groups = lambda model, h: [{"params": [p for p in model.parameters() if p.requires_grad]}]
        self.before = None  # called with the task before the optimizer is built
        self.after = None  # called with (step, task, opt) after each step
        self.pause = None  # seconds to sleep in step
        self.clear = True  # zero_grad
        self.average = "mean"  # how the log averages
        self.evaluate = lambda task, step: task.evaluate()
        self.restore = ("model", "opt", "order")
        self.stop_at = None  # orderly end of this launch (step)
        self.signal_at = None  # (step, signal number) sent by a timer thread
        self.on_eval = None  # called with (task, row, folder)
        self.on_save = None  # called with (step, path) before a save
        self.keep = None  # a list that holds on to each loss
        self.sizes = lambda step, n: n  # batch size by step
        self.__dict__.update(kw)


class Order:
    """Shuffled (or plain sequential) passes over n items."""

    def __init__(self, n, seed, shuffle=True):
        self.n, self.shuffle, self.rng = n, shuffle, np.random.default_rng(seed)
        self.epoch, self.at, self.perm = 0, 0, self._new()

    def _new(self):
        return self.rng.permutation(self.n) if self.shuffle else np.arange(self.n)

    def take(self, k):
        if self.at >= self.n:
            self.epoch, self.at, self.perm = self.epoch + 1, 0, self._new()
        idx = self.perm[self.at : self.at + k]
        self.at += k
        return idx

    def state(self):
        return pickle.dumps(self)


class Log:
    """Averages training values between rows and hands rows to the family's sink."""

    def __init__(self, sink, every, average="mean"):
        self.sink, self.every, self.average = sink, every, average
        self.sums, self.count, self.esums, self.ecount, self.ema = {}, 0, {}, 0, {}

    def step(self, d):
        for k, v in d.items():
            if isinstance(v, (int, float)):
                self.sums[k] = self.sums.get(k, 0.0) + v
                self.esums[k] = self.esums.get(k, 0.0) + v
                self.ema[k] = 0.98 * self.ema.get(k, 0.0) + 0.02 * v
        self.count += 1
        self.ecount += 1
        if d["step"] % self.every == 0:
            row = dict(d)
            if self.average == "mean":
                row["loss"] = self.sums["loss"] / self.count
            elif self.average in ("never_reset", "fixed_count"):
                row["loss"] = self.sums["loss"] / self.every
            elif self.average == "ema0":
                row["loss"] = self.ema["loss"]
            if self.average != "never_reset":
                self.sums, self.count = {}, 0
            self.sink.train(row)

    def eval(self, d, per_epoch=None):
        n = per_epoch if per_epoch and self.average == "fixed_count" else max(1, self.ecount)
        for k, v in self.esums.items():
            d.setdefault("train_" + k, v / n)
        if self.average != "never_reset":
            self.esums, self.ecount = {}, 0
        self.sink.eval(d)


class Measures:
    """Raw values for the check against the twin; kept outside the run folder."""

    def __init__(self, path):
        self.path, self.m = path, {"loss": [], "eval": [], "dt": [], "gn": [], "done": False}

    def dump(self, done=False):
        self.m["done"] = done
        with open(self.path, "wb") as f:
            pickle.dump(self.m, f)


def send_later(sig, delay=0.03):
    threading.Timer(delay, os.kill, (os.getpid(), sig)).start()


def fit(task, h, sink, ext, meas, folder, ckpt):
    log = Log(sink, h["log_every"], ext.average if ext.average != "mean" or h.get("window", True) else "last")
    if ext.before:
        ext.before(task)
    model, opt = task.model, None
    opt = make_optimizer(h, ext.groups(model, h))
    order = Order(task.n, h["seed"], h.get("shuffle", True))
    first, scale, good, amp = 0, float(h.get("loss_scale", 1.0)), 0, h.get("amp")
    if os.path.exists(ckpt):
        state = pickle.load(open(ckpt, "rb")) if h.get("pickle_save") else torch.load(ckpt, weights_only=False)
        model.load_state_dict(state["model"])
        if "opt" in ext.restore:
            opt.load_state_dict(state["opt"])
        if "order" in ext.restore:
            order = pickle.loads(state["order"])
        first = state["step"] + 1
        torch.manual_seed(h["seed"] + first)
        sink.note(f"resumed from {os.path.basename(ckpt)} at step {first}")
    params = list(model.parameters())
    accum, per_epoch = h.get("accum", 1), math.ceil(task.n / h["batch_size"])
    for step in range(first, h["steps"]):
        if ext.stop_at is not None and step >= ext.stop_at:
            sink.note("time budget used up, leaving")
            break
        t0 = time.perf_counter()
        lr = ext.lr(step, lr_at(h, ext.clock(step, first)))
        for g in opt.param_groups:
            g["lr"] = lr * g.get("mult", 1.0)
        model.train()
        total, info = 0.0, {}
        for _ in range(accum):
            batch = ext.batch(step, task.get(order.take(ext.sizes(step, h["batch_size"]))))
            with torch.autocast("cpu", dtype=torch.float16 if amp == "fp16" else torch.bfloat16, enabled=bool(amp)):
                loss, info = task.loss(batch)
            if ext.keep is not None:
                ext.keep.append(loss)
            total += loss.item() / accum
            (ext.loss(loss) * (scale / accum)).backward()
        if scale != 1.0:
            for p in params:
                if p.grad is not None:
                    p.grad.div_(scale)
        clip = h.get("grad_clip") or float("inf")
        gn = float(torch.nn.utils.clip_grad_norm_(params, clip))
        if h.get("dynamic_scale") and not math.isfinite(gn):
            scale, good = scale / 2, 0
        else:
            opt.step()
            good += 1
            if h.get("dynamic_scale") and good % h["dynamic_scale"] == 0:
                scale *= 2
        if ext.clear:
            opt.zero_grad(set_to_none=True)
        if ext.pause:
            time.sleep(ext.pause(step))
        dt = time.perf_counter() - t0
        meas.m["loss"].append((step, total))
        meas.m["dt"].append(dt)
        meas.m["gn"].append(gn)
        if ext.after:
            ext.after(step, task, opt)
        log.step(
            {
                "step": step,
                "epoch": order.epoch,
                "loss": total,
                "lr": lr,
                "gnorm": gn,
                "dt": dt,
                "scale": scale,
                "at": order.at,
                "bs": len(next(iter(batch.values()))),
                **info,
            }
        )
        if ext.signal_at and step == ext.signal_at[0]:
            meas.dump()
            send_later(ext.signal_at[1])
        if (step + 1) % h["eval_every"] == 0 or step == h["steps"] - 1:
            row = ext.evaluate(task, step)
            meas.m["eval"].append((step, row["val_loss"]))
            meas.dump()
            row = {"step": step, "epoch": order.epoch, "lr": lr, **row}
            if ext.on_eval:
                ext.on_eval(task, row, folder)
            log.eval(row, per_epoch)
        every = h.get("save_every")
        if every and (step + 1) % every == 0:
            if ext.on_save:
                ext.on_save(step, ckpt)
            state = {"model": model.state_dict(), "opt": opt.state_dict(), "order": order.state(), "step": step}
            if h.get("pickle_save"):
                with open(ckpt, "wb") as f:
                    pickle.dump(state, f)
            else:
                torch.save(state, ckpt)
            sink.note(f"saved {os.path.basename(ckpt)} (step {step + 1})")
    else:
        meas.m["done"] = True
    sink.close()
    meas.dump(meas.m["done"])


class Task:
    """n items (x and y), get(indices) -> dict of tensors, loss(batch) -> (loss, values to log), evaluate() -> dict with val_loss."""

    eval_mode = True

    def get(self, idx):
        i = torch.as_tensor(idx)
        return {"x": self.x[i], "y": self.y[i]}

    def forward_loss(self, batch):
        return self.loss(batch)

    def evaluate(self):
        self.model.train(not self.eval_mode)
        rows = []
        with torch.no_grad():
            for b in self.val:
                loss, info = self.forward_loss(b)
                rows.append({"val_loss": loss.item(), **{"val_" + k: v for k, v in info.items()}})
        return {k: float(np.mean([r[k] for r in rows])) for k in rows[0]}
