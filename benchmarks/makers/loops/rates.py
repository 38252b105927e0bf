"""Schedules of the rate, and optimizers by name."""

import math

import torch


def lr_at(h, s):
    total, warm, base = h["steps"], h.get("warmup", 0), h["lr"]
    if warm and s < warm:
        return base * (s + 1) / warm
    u = min(1.0, max(0.0, (s - warm) / max(1, total - warm)))
    kind, period = h.get("schedule", "constant"), h.get("period", 100)
    if kind == "cosine":
        return base * (0.05 + 0.95 * 0.5 * (1 + math.cos(math.pi * u)))
    if kind == "linear":
        return base * max(0.02, 1 - u)
    if kind == "wsd":
        return base * (1 if u < 0.75 else max(0.05, 1 - (u - 0.75) / 0.25))
    if kind == "onecycle":
        return base * (0.04 + 0.96 * u / 0.3) if u < 0.3 else base * (0.002 + 0.998 * 0.5 * (1 + math.cos(math.pi * (u - 0.3) / 0.7)))
    if kind == "cyclic":
        return base * (0.1 + 0.9 * abs(1 - 2 * ((s % period) / period)))
    if kind == "restarts":
        return base * (0.05 + 0.95 * 0.5 * (1 + math.cos(math.pi * (s % period) / period)))
    if kind == "step":
        return base * 0.3 ** int(u * 3)
    return base


def make_optimizer(h, groups):
    name = h.get("optimizer", "adamw")
    wd = h.get("weight_decay", 0.0)
    if name == "sgd":
        return torch.optim.SGD(groups, lr=h["lr"], momentum=h.get("momentum", 0.9), weight_decay=wd)
    kind = torch.optim.Adam if name == "adam" else torch.optim.AdamW
    return kind(groups, lr=h["lr"], betas=tuple(h.get("betas", (0.9, 0.999))), eps=h.get("eps", 1e-8), weight_decay=wd)
