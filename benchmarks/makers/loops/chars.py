"""Two character models on the source text of the standard library."""

from typing import ClassVar

import plants as P
import torch
from core import OK, F, Family
from sinks import Jsonl
from text import Attention, CharLM


# helpers for plans
def attention_growth(mult, scale):
    def before(task):
        for m in task.model.modules():
            if isinstance(m, Attention):
                m.scale = scale

    def groups(model, h):
        qk = [p for n, p in model.named_parameters() if ".q." in n or ".k." in n]
        rest = [p for n, p in model.named_parameters() if not (".q." in n or ".k." in n)]
        return [{"params": rest}, {"params": qk, "mult": mult}]

    return F("attention_logit_growth", ext=lambda h, rng: {"before": before, "groups": groups}, step=0)


def other_vocab(shift):
    """Evaluation text encoded with another vocabulary file."""

    def before(task):
        task.val = [{k: (v + shift) % task.vocab for k, v in b.items()} for b in task.val]

    return F("tokenizer_mismatch", ext=lambda h, rng: {"before": before}, step=0)


def ramp(a, n1):
    return lambda h, rng: {"sizes": lambda s, n: n1 if s < a else n}


# nanoGPT-like console
class IterConsole:
    def __init__(self, folder, h, k):
        torch.manual_seed(h["seed"])
        if k == 0:
            print(f"tokens per iteration will be: {h['batch_size'] * 32:,}\nnumber of parameters: 0.07M\nnum decayed parameter tensors: 26")

    def train(self, d):
        print(f"iter {d['step']}: loss {d['loss']:.4f}, time {d['dt'] * 1000:.2f}ms")

    def eval(self, d):
        print(f"step {d['step'] + 1}: train loss {d['train_loss']:.4f}, val loss {d['val_loss']:.4f}")

    def note(self, s):
        print(s)

    def close(self):
        pass


H1 = {
    "steps": 300,
    "batch_size": 12,
    "lr": 3e-3,
    "warmup": 20,
    "schedule": "cosine",
    "grad_clip": 1.0,
    "weight_decay": 0.1,
    "betas": (0.9, 0.99),
    "log_every": 10,
    "eval_every": 50,
    "save_every": 100,
    "window": False,
    "shuffle": True,
}


char_gpt = Family(
    "torch-chargpt-iterconsole",
    H1,
    IterConsole,
    task=CharLM,
    console="train.log",
    hide=["shuffle", "save_every"],
    logs=["eval", "time"],
    shell="python train.py config/py_char.py",
    plan=[
        OK(),
        OK(),
        OK("noisy loss with a tiny batch", h={"batch_size": 6}),
        OK("wsd schedule", h={"schedule": "wsd"}),
        P.clean_resume(200),
        OK("slow first step and evaluation pauses", ext=lambda h, rng: {"pause": lambda s: 0.5 if s == 0 else 0.03 if s % 50 == 49 else 0}),
        P.pocket(150, 190, "inputs"),
        P.labels_wrong(),
        P.lr_high(0.3, h={"grad_clip": 0.0}),
        P.no_clear(h={"grad_clip": 0.0, "lr": 6e-3}),
        P.killed(170),
        P.disk_full(150),
        P.slow(140, 0.04),
        P.crash_restart(160),
        P.code_error("index", 130),
        other_vocab(3),
        P.lr_low(2e-6),
    ],
)


# GPT with JSONL
class GPTJsonl(Jsonl):
    keys: ClassVar = {
        "step": "step",
        "loss": "train/loss",
        "lr": "lr",
        "gnorm": "grad_norm",
        "attn": "attn_logit_max",
        "at": "sample_cursor",
    }


class PostLM(CharLM):
    post, ctx = True, 24


H2 = {
    "steps": 320,
    "batch_size": 16,
    "lr": 4e-3,
    "warmup": 60,
    "schedule": "linear",
    "grad_clip": 0.0,
    "weight_decay": 0.01,
    "log_every": 4,
    "eval_every": 80,
    "save_every": 80,
    "optimizer": "adamw",
    "shuffle": False,
    "window": False,
    "model": "post-ln gpt",
    "n_layer": 3,
}


gpt_jsonl = Family(
    "torch-postgpt-jsonl",
    H2,
    GPTJsonl,
    task=PostLM,
    config="json",
    names={"lr": "learning_rate", "steps": "max_steps"},
    logs=["eval", "lr", "gnorm", "time", "attn", "at"],
    plan=[
        OK(),
        OK(),
        P.clean_resume(160),
        OK("warm restarts", h={"schedule": "restarts", "period": 130, "lr": 3e-3}),
        OK("batch ramp as configured", ext=ramp(100, 6), h={"batch_ramp": [0, 6, 100, 16]}),
        F("warmup_too_short", h={"warmup": 0, "lr": 3e-2}, step=0),
        attention_growth(40, 3.0),
        P.order_restarted(160),
        P.schedule_reset(200),
        F("optimizer_second_moment", h={"eps": 0.3}, step=0),
        F("optimizer_second_moment", h={"betas": (0.9, 0.2), "lr": 8e-3}, step=0),
        P.lr_jump(180, 12),
        P.flip(170),
        P.bad_batch([120, 121, 230], "inputs"),
        F("regularization_floor", h={"label_smoothing": 0.5}, step=0),
        P.config_changed(160, {"lr": 4e-2}),
        P.units(5),
        F("weight_decay_too_strong", h={"weight_decay": 20.0}, step=0),
    ],
)


FAMILIES = [char_gpt, gpt_jsonl]
