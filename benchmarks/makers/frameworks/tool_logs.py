"""Logs in the form of well-known tool kits."""

import datetime
import json
import math
import os
import time
from typing import ClassVar

import numpy as np
import yaml


def stamp():
    return datetime.datetime.now().strftime("%Y-%m-%d %H:%M:%S")


class Log:
    imports: ClassVar = []

    def __init__(self, cfg, launch, f):
        self.c, self.launch, self.f, self.win, self.t0 = cfg, launch, f, [], time.time()
        self.per = cfg.get("epoch_steps", 50)
        self.setup()

    def setup(self):
        pass

    def end(self):
        pass

    def flush(self):
        pass

    def ckpt(self, step):
        return f"checkpoints/checkpoint_{step}.pt"

    def mean(self, key="loss", clear=True):
        v = [d[key] for d in self.win if key in d]
        if clear:
            self.win = []
        return sum(v) / max(1, len(v))


class Timm(Log):
    """Console lines of an image training script, args.yaml and summary.csv with a row for each epoch."""

    def setup(self):
        yaml.safe_dump({**self.c, "model": "convnet_tiny8", "dataset": "digits"}, open("args.yaml", "w"))
        self.ep = []
        if self.launch:
            print("Restored all state from checkpoint 'checkpoints/last.pth.tar'")

    def ckpt(self, step):
        return "checkpoints/last.pth.tar"

    def train(self, s, d):
        self.win.append(d), self.ep.append(d["loss"])
        e, i = divmod(s - 1, self.per)
        if i % self.c["log"] == 0 or i == self.per - 1:
            n = self.c["bs"]
            print(
                f"Train: {e} [{i:>4d}/{self.per} ({100.0 * i / (self.per - 1):>3.0f}%)]  Loss: {d['loss']:#.3g} ({np.mean(self.ep):#.3g})  Time: {d['dt']:.3f}s, {n / d['dt']:>7.2f}/s  LR: {d['lr']:.3e}  Data: {d['data']:.3f} ({d['data']:.3f})"
            )

    def eval(self, s, d):
        e = (s - 1) // self.per
        print(
            f"Test: [   0/0]  Time: {0.004:.3f} (0.004)  Loss: {d['loss']:>6.3f} ({d['loss']:>6.3f})  Acc@1: {100 * d['acc']:>7.3f} ({100 * d['acc']:>7.3f})"
        )
        new = not os.path.exists("summary.csv")
        with open("summary.csv", "a") as h:
            if new:
                h.write("epoch,train_loss,eval_loss,eval_top1,lr\n")
            h.write(f"{e},{np.mean(self.ep)},{d['loss']},{100 * d['acc']},{self.win[-1]['lr'] if self.win else ''}\n")
        self.ep, self.win = [], []


class MMDet(Log):
    """A work_dirs folder: time-stamped JSON lines and the config as Python."""

    def setup(self):
        self.dir = "work_dirs/" + f"20260{3 + self.launch}14_0{self.launch}1207"
        os.makedirs(self.dir + "/vis_data", exist_ok=True)
        with open(self.dir + "/vis_data/config.py", "w") as h:
            for k, v in self.c.items():
                h.write(f"{k} = {v!r}\n")
        self.h = open(self.dir + "/vis_data/scalars.json", "a")

    def train(self, s, d):
        self.win.append(d)
        if s % self.c["log"] == 0:

            def m(k):
                return float(np.mean([w[k] for w in self.win]))

            r = {
                "lr": d["lr"],
                "data_time": m("data"),
                "loss": m("loss"),
                "loss_cls": m("loss_cls"),
                "loss_bbox": m("loss_bbox"),
                "acc": d["acc"],
                "time": m("dt"),
                "epoch": (s - 1) // self.per + 1,
                "iter": s,
                "memory": 312,
                "step": s,
            }
            self.win = []
            self.h.write(json.dumps(r) + "\n"), self.h.flush()

    def eval(self, s, d):
        (
            self.h.write(
                json.dumps(
                    {
                        "val/loss_bbox": round(d["loss_bbox"], 4),
                        "val/loss_cls": round(d["loss_cls"], 4),
                        "val/acc": round(d["acc"], 2),
                        "data_time": 0.002,
                        "time": 0.01,
                        "step": s // self.per,
                    }
                )
                + "\n"
            ),
            self.h.flush(),
        )


class Fairseq(Log):
    def setup(self):
        self.logger = lambda name, m: print(f"{stamp()} | INFO | {name} | {m}", flush=True)
        self.logger(
            "fairseq_cli.train",
            {
                "common": {"seed": 1, "log_format": "simple", "log_interval": self.c["log"]},
                "optimization": dict(self.c.items()),
                "task": "translation",
            },
        )
        self.logger(
            "fairseq.trainer",
            f"Loaded checkpoint checkpoints/checkpoint_last.pt (epoch {self.f['start'] // self.per + 1} @ {self.f['start']} updates)"
            if self.launch
            else "No existing checkpoint found checkpoints/checkpoint_last.pt",
        )
        self.ep = []

    def ckpt(self, step):
        return "checkpoints/checkpoint_last.pt"

    def line(self, d, s, win):
        loss, nll = np.mean([w["loss"] for w in win]) / math.log(2), np.mean([w.get("nll_loss", w["loss"]) for w in win]) / math.log(2)
        dt = np.mean([w["dt"] for w in win])
        return {
            "loss": f"{loss:.3f}",
            "nll_loss": f"{nll:.3f}",
            "ppl": f"{2 ** min(nll, 99):.2f}",
            "wps": f"{6 * self.c['bs'] / dt:.1f}",
            "ups": f"{1 / dt:.2f}",
            "wpb": 6 * self.c["bs"],
            "bsz": self.c["bs"],
            "num_updates": s,
            "lr": f"{d['lr']:.6g}",
            "gnorm": f"{d['gnorm']:.3f}",
            "train_wall": f"{dt * len(win):.0f}",
            "wall": f"{time.time() - self.t0:.0f}",
        }

    def train(self, s, d):
        self.win.append(d), self.ep.append(d)
        e = (s - 1) // self.per + 1
        if s % self.c["log"] == 0:
            self.logger(
                "train_inner",
                f"epoch {e:03d}: {(s - 1) % self.per + 1:6d} / {self.per} "
                + ", ".join(f"{k}={v}" for k, v in self.line(d, s, self.win).items()),
            )
            self.win = []
        if s % self.per == 0:
            self.logger("train", f"epoch {e:03d} | " + " | ".join(f"{k} {v}" for k, v in self.line(d, s, self.ep).items()))
            self.ep = []

    def eval(self, s, d):
        n = d.get("nll_loss", d["loss"]) / math.log(2)
        self.logger(
            "valid",
            f"epoch {(s - 1) // self.per + 1:03d} | valid on 'valid' subset | loss {d['loss'] / math.log(2):.3f} | nll_loss {n:.3f} | ppl {2 ** min(n, 99):.2f} | num_updates {s}",
        )


class Ultralytics(Log):
    """results.csv with a row for each epoch, args.yaml; console without times."""

    def setup(self):
        yaml.safe_dump({"task": "detect", **self.c}, open("args.yaml", "w"))
        self.w = None

    def train(self, s, d):
        self.win.append(d)

    def eval(self, s, d):
        e = s // self.per
        row = {
            "epoch": e,
            "time": round(time.time() - self.t0, 4),
            "train/box_loss": round(np.mean([w["loss_bbox"] for w in self.win]), 5),
            "train/cls_loss": round(np.mean([w["loss_cls"] for w in self.win]), 5),
            "metrics/accuracy": round(d["acc"] / 100, 5),
            "val/box_loss": round(d["loss_bbox"], 5),
            "val/cls_loss": round(d["loss_cls"], 5),
            "lr/pg0": self.win[-1]["lr"],
        }
        new = not os.path.exists("results.csv")
        with open("results.csv", "a") as h:
            if new:
                h.write(",".join(row) + "\n")
            h.write(",".join(str(v) for v in row.values()) + "\n")
        self.win = []
