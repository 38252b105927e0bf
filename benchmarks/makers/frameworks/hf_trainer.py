"""The Trainer with what goes wrong inside it."""

import os
import signal
import time

import proj
import torch
import torch.nn.functional as F
from transformers import Trainer, TrainerCallback


class Hooks(TrainerCallback):
    """What happens inside the run at given steps."""

    def __init__(self, f, rec, cfg):
        self.f, self.rec, self.cfg, self.t = f, rec, cfg, time.time()

    def on_step_begin(self, args, state, control, model=None, optimizer=None, lr_scheduler=None, **k):
        f, s = self.f, state.global_step
        if "lr_mult" in f and f["lr_mult"][0] <= s < f["lr_mult"][2]:
            for g in optimizer.param_groups:
                g["lr"] = g["lr"] * f["lr_mult"][1]

    def on_step_end(self, args, state, control, model=None, optimizer=None, lr_scheduler=None, **k):
        f, s = self.f, state.global_step
        self.rec["dts"].append(time.time() - self.t)
        self.t = time.time()
        for _ in range(f.get("sched_extra", 0)):
            lr_scheduler.step()
        if "flip" in f and s == f["flip"]:
            p = list(model.parameters())[3]
            with torch.no_grad():
                v = p.data.view(-1)[:1].view(torch.int32)
                v ^= 1 << f.get("bit", 29)
        if "kill" in f and s == f["kill"]:
            os.kill(os.getpid(), f.get("sig", signal.SIGTERM))
            time.sleep(5)


class T(Trainer):
    def _get_train_sampler(self, *a, **k):
        return torch.utils.data.SequentialSampler(self.train_dataset)

    def compute_loss(self, model, inputs, return_outputs=False, **k):
        f = self.hooks.f
        out = model(**inputs)
        loss = out.loss
        if f.get("double_softmax"):
            loss = F.cross_entropy(out.logits.softmax(-1), inputs["labels"])
        if f.get("sum_loss") and model.training:
            loss = F.cross_entropy(out.logits.reshape(-1, out.logits.shape[-1]), inputs["labels"].reshape(-1), reduction="sum")
        if f.get("shifted_twice"):
            loss = F.cross_entropy(out.logits[:, :-2].reshape(-1, 96), inputs["labels"][:, 2:].reshape(-1))
        if self.args.label_smoothing_factor and model.training:
            loss = self.label_smoother(out, inputs["labels"], shift_labels=self.task == "lm")
        if model.training:
            self.hooks.rec["train"].append((self.state.global_step, loss.item()))
        return (loss, out) if return_outputs else loss

    def evaluate(self, *a, **k):
        if self.hooks.f.get("slow_eval"):
            time.sleep(self.hooks.f["slow_eval"])
        m = super().evaluate(*a, **k)
        if "eval_loss" in m:
            self.hooks.rec["evals"].append((self.state.global_step, m["eval_loss"]))
        return m

    def _save(self, *a, **k):
        if "disk_full" in self.hooks.f and self.state.global_step >= self.hooks.f["disk_full"]:
            path = os.path.join(a[0] if a else "out", "model.safetensors")
            os.path.exists(path) or os.symlink("/dev/full", path)
            proj.write_file(path, "x" * 10**6)
        return super()._save(*a, **k)
