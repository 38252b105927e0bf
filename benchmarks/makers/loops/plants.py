"""Planted faults that suit many families, each a short function that returns a run specification."""

import os
import signal
import struct

import torch
from callbacks import best_row, dump_row
from core import OK, F


def shuffle_y(b, g):
    y = b["y"]
    return {**b, "y": y.flatten()[torch.randperm(y.numel(), generator=g)].view_as(y)}


def spoil(b, how, g, size=1.0):
    """One batch with wrong content: noise or random tokens as input, mixed targets, outliers or NaN."""
    b = dict(b)
    x = b["x"]
    if how == "inputs":
        b["x"] = (
            x + size * torch.randn(x.shape, generator=g)
            if x.is_floating_point()
            else torch.randint(0, int(x.max()) + 1, x.shape, generator=g)
        )
        if not x.is_floating_point() and "y" in b and b["y"].shape == x.shape:
            b["y"] = torch.roll(b["x"], -1, 1)
    elif how == "scale":
        b["x"] = x * size
    elif how == "targets":
        b = shuffle_y(b, g)
    elif how == "outlier":
        b["y"] = b["y"] * size
    elif how == "nan":
        b["x"] = x.clone()
        b["x"].view(-1)[int(torch.randint(0, x.numel(), (1,), generator=g))] = float("nan")
    return b


def at_steps(steps, how, size=1.0):
    steps = set(steps)

    def make(h, rng):
        g = torch.Generator().manual_seed(int(rng.integers(1 << 30)))
        return {"batch": lambda s, b: spoil(b, how, g, size) if s in steps else b}

    return make


def bad_batch(steps, how="inputs", size=1.0, **kw):
    return F("bad_data_batch", ext=at_steps(steps, how, size), step=min(steps), **kw)


def pocket(a, b, how="inputs", size=1.0, **kw):
    return F("bad_data_pocket", ext=at_steps(range(a, b), how, size), step=a, **kw)


def shift(a, fn, **kw):
    return F("data_distribution_shift", ext=lambda h, rng: {"batch": lambda s, b: fn(b) if s >= a else b}, step=a, **kw)


def labels_wrong(share=1.0, **kw):
    def make(h, rng):
        g = torch.Generator().manual_seed(int(rng.integers(1 << 30)))

        def fn(s, b):
            if share >= 1:
                return shuffle_y(b, g)
            y, z = b["y"], shuffle_y(b, g)["y"]
            return {**b, "y": torch.where(torch.rand(y.shape, generator=g) < share, z, y)}

        return {"batch": fn}

    return F("labels_wrong", ext=make, step=0, **kw)


def masked(**kw):
    return F("labels_all_masked", ext=lambda h, rng: {"batch": lambda s, b: {**b, "y": torch.full_like(b["y"], -100)}}, step=0, **kw)


def nan_sample(step, **kw):
    return F("nan_from_sample", ext=at_steps([step], "nan"), step=step, **kw)


def lr_high(lr, **kw):
    return F("lr_too_high", h={"lr": lr, **kw.pop("h", {})}, step=0, **kw)


def lr_low(lr, **kw):
    return F("lr_too_low", h={"lr": lr}, step=0, **kw)


def units(n, **kw):
    return F("schedule_wrong_units", ext=lambda h, rng: {"clock": lambda s, first: s * n}, step=0, **kw)


def lr_jump(a, factor, n=None, **kw):
    return F("lr_jump", ext=lambda h, rng: {"lr": lambda s, lr: lr * factor if a <= s < a + (n or 10**9) else lr}, step=a, **kw)


def no_clear(**kw):
    return F("gradients_not_cleared", ext=lambda h, rng: {"clear": False}, step=1, **kw)


def times_loss(k, **kw):
    return F("loss_scaled_wrong", ext=lambda h, rng: {"loss": lambda loss: loss * k}, step=0, **kw)


def big_init(k, **kw):
    def before(task):
        with torch.no_grad():
            for p in task.model.parameters():
                if p.dim() > 1:
                    p.mul_(k)

    return F("init_too_large", ext=lambda h, rng: {"before": before}, step=0, **kw)


def dead(**kw):
    """Hidden biases far below zero: no ReLU unit fires."""

    def before(task):
        with torch.no_grad():
            for m in list(task.model.modules()):
                if isinstance(m, (torch.nn.Linear, torch.nn.Conv2d)) and m is not task.head and m.bias is not None:
                    m.bias.fill_(-12.0)

    return F("dead_or_saturated_units", ext=lambda h, rng: {"before": before}, step=0, **kw)


def frozen(match, **kw):
    """Only the parameters whose name contains one of the words are trained."""

    def groups(model, h):
        return [{"params": [p for n, p in model.named_parameters() if any(w in n for w in match)]}]

    return F("frozen_parameters", ext=lambda h, rng: {"groups": groups}, step=0, **kw)


def double_softmax(**kw):
    return F("double_softmax", ext=lambda h, rng: {"before": lambda task: setattr(task, "soft_first", True)}, step=0, **kw)


def train_mode_eval(**kw):
    return F("eval_mode_missing", ext=lambda h, rng: {"before": lambda task: setattr(task, "eval_mode", False)}, step=0, **kw)


def flip(step, where="weight", index=0, bit=30, **kw):
    """Flip one bit of a float32 in memory: a weight, or an entry of Adam's second moment."""

    def after(s, task, opt):
        if s != step:
            return
        params = [p for p in task.model.parameters() if p.dim() > 1]
        p = params[index % len(params)]
        t = p.data if where == "weight" else opt.state[p]["exp_avg"]
        a = t.view(-1)
        i = int(a.abs().argmax())
        v = struct.unpack("I", struct.pack("f", float(a[i])))[0] ^ (1 << bit)
        a[i] = struct.unpack("f", struct.pack("I", v))[0]

    return F("silent_data_corruption", ext=lambda h, rng: {"after": after}, step=step + 1, **kw)


def slow(step, seconds, every=1, **kw):
    return F("throughput_collapse", ext=lambda h, rng: {"pause": lambda s: seconds if s >= step and s % every == 0 else 0}, step=step, **kw)


def killed(step, sig=signal.SIGTERM, **kw):
    return F("stopped_from_outside", ext=lambda h, rng: {"signal_at": (step, sig)}, step=step, **kw)


def disk_full(step, **kw):
    def on_save(s, path):
        if s >= step:
            if os.path.lexists(path):
                os.unlink(path)
            os.symlink("/dev/full", path)

    return F("disk_full", ext=lambda h, rng: {"on_save": on_save}, step=step, **kw)


def artefact(kind, **kw):
    return F("logger_artefact", ext=lambda h, rng: {"average": kind}, **kw)


def overfit(**kw):
    return F("overfitting", **kw)


def code_error(kind, step=0, **kw):
    if kind == "key":
        return F("code_error", ext=lambda h, rng: {"on_eval": best_row}, **kw)
    if kind == "json":
        return F(
            "code_error", ext=lambda h, rng: {"on_eval": dump_row, "before": lambda t: setattr(t, "report_from", step)}, step=step, **kw
        )
    if kind == "shape":
        return F("code_error", ext=lambda h, rng: {"batch": lambda s, b: {**b, "y": b["y"][:-1]} if s >= step else b}, step=step, **kw)
    return F("code_error", ext=lambda h, rng: {"batch": lambda s, b: {**b, "x": b["x"] + (1 << 12)} if s >= step else b}, step=step, **kw)


# two launches
def _two(cause, stop, ext2=None, h2=None, ext1=None, words="", **kw):
    first = {"ext": ext1 or (lambda h, rng: {"stop_at": stop})}
    second = {"ext": lambda h, rng: ext2 or {}, "h": h2 or {}}
    if cause is None:
        return OK(words or "clean resume, everything restored", launches=[first, second], **kw)
    return F(cause, launches=[first, second], step=kw.pop("step", stop), **kw)


def clean_resume(stop, **kw):
    return _two(None, stop, **kw)


def lost_optimizer(stop, **kw):
    return _two("optimizer_state_lost", stop, {"restore": ("model", "order")}, **kw)


def schedule_reset(stop, **kw):
    return _two("lr_schedule_reset", stop, {"clock": lambda s, first: s - first}, **kw)


def order_restarted(stop, **kw):
    return _two("data_order_restarted", stop, {"restore": ("model", "opt")}, **kw)


def crash_restart(at, **kw):
    return _two("crash_and_restart", at, {}, ext1=lambda h, rng: {"signal_at": (at, signal.SIGKILL)}, **kw)


def batch_changed(stop, n, **kw):
    return _two("batch_size_changed", stop, {}, {"batch_size": n}, **kw)


def config_changed(stop, h2, **kw):
    return _two("config_changed", stop, {}, h2, **kw)
