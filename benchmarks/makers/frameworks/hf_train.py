"""One run of a Trainer family: one launch, or two of which the second resumes."""

import os

import torch
import transformers as tf
from common import launches_of, limit_memory
from data import stream
from hf_model import Items, build, clean_loss
from hf_trainer import Hooks, T
from transformers import TrainingArguments


def train(task, base, case, rec, report, extra_args):
    cfg = {**base, **case.cfg}
    f, m = case.f, cfg.get("model", {})
    x, y, xe, ye = stream(task, cfg, f, rec["seed"])
    limit_memory(f.get("rlimit_mb"))
    launches = launches_of(f)
    for n, g in enumerate(launches):
        c = {**cfg, **g.get("cfg", {})}
        model = build(task, m, g)
        if n == 0:
            rec["init"] = clean_loss(task, model, xe, ye)
        if g.get("freeze"):
            for k, p in model.named_parameters():
                p.requires_grad_(not any(w in k for w in g["freeze"]))
        args = TrainingArguments(
            output_dir="out",
            max_steps=c.get("stop", c["steps"]),
            per_device_train_batch_size=c["bs"] // c.get("accum", 1),
            gradient_accumulation_steps=c.get("accum", 1),
            per_device_eval_batch_size=128,
            learning_rate=c["lr"],
            warmup_steps=c.get("warmup", 10),
            lr_scheduler_type=c.get("schedule", "linear"),
            lr_scheduler_kwargs=c.get("skw"),
            weight_decay=c.get("wd", 0.0),
            max_grad_norm=c.get("clip", 1.0),
            adam_epsilon=c.get("eps", 1e-8),
            label_smoothing_factor=c.get("smooth", 0.0),
            optim=c.get("optim", "adamw_torch"),
            logging_steps=c.get("log", 10),
            eval_strategy="steps",
            eval_steps=c.get("eval", 50),
            save_strategy="steps" if c.get("save") else "no",
            save_steps=c.get("save") or 500,
            save_total_limit=2,
            disable_tqdm=not c.get("tqdm"),
            report_to=report,
            seed=rec["seed"] + n,
            logging_nan_inf_filter=False,
            use_cpu=True,
            dataloader_num_workers=0,
            **extra_args,
        )
        hooks = Hooks(g, rec, c)
        opt = (None, None)
        if "stop" in cfg or (
            "launch1" in f and "cfg" in f["launch1"] and "stop" in f["launch1"]["cfg"]
        ):  # a schedule laid out for the planned length, though this launch stops early
            o = torch.optim.AdamW(model.parameters(), lr=c["lr"], weight_decay=c.get("wd", 0.0))
            opt = (o, tf.get_scheduler(c.get("schedule", "linear"), o, c.get("warmup", 10), c["steps"]))
        t = T(
            model=model,
            args=args,
            train_dataset=Items(x, y, task, g, c["bs"]),
            eval_dataset=Items(xe, ye, task, {k: v for k, v in g.items() if k in ("raw", "masked")}, 1),
            callbacks=[hooks],
            optimizers=opt,
        )
        t.hooks, t.task = hooks, task
        if g.get("no_zero"):
            model.zero_grad = lambda *a, **k: None
        ck = None
        if n:
            ck = f"out/checkpoint-{g['from']}"
            for name in g.get("lost", ()):
                os.unlink(f"{ck}/{name}")
        if n == 0 and len(launches) == 2 and g.get("kill"):  # the first launch dies: do it in a child
            pid = os.fork()
            if pid == 0:
                t.train()
                os._exit(0)
            os.waitpid(pid, 0)
        else:
            t.train(resume_from_checkpoint=ck)
    rec["final"] = clean_loss(task, model, xe * 255 if f.get("raw") else xe, ye)
    if report == ["wandb"]:
        import wandb

        wandb.finish()
