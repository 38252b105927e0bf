"""Log writers that several families share: JSON lines, CSV, TensorBoard."""

import csv
import json
import time
from typing import ClassVar


class Jsonl:
    keys: ClassVar = {"step": "step", "loss": "train/loss", "lr": "lr", "gnorm": "grad_norm", "attn": "attn_logit_max"}
    ekeys: ClassVar = {"step": "step", "val_loss": "eval/loss"}
    name, clock = "metrics.jsonl", True

    def __init__(self, folder, h, k):
        self.f, self.t0 = open(folder / self.name, "a"), time.time()

    def put(self, d, keys):
        row = {b: (round(d[a], 6) if isinstance(d[a], float) else d[a]) for a, b in keys.items() if a in d}
        if self.clock:
            row["time"] = round(time.time() - self.t0, 3)
        self.f.write(json.dumps(row) + "\n")
        self.f.flush()

    def train(self, d):
        self.put(d, self.keys)

    def eval(self, d):
        self.put(d, self.ekeys)

    def note(self, s):
        pass

    def close(self):
        self.f.close()


class Csv:
    name, tk, ek = "log.csv", ("step", "loss"), ("val_loss",)
    digits = 5

    def __init__(self, folder, h, k):
        new = not (folder / self.name).exists()
        self.f, self.last = open(folder / self.name, "a", newline=""), None
        self.w = csv.writer(self.f)
        if new:
            self.w.writerow(self.tk + self.ek)

    def fmt(self, v):
        return f"{v:.{self.digits}g}" if isinstance(v, float) else v

    def flush(self, e=None):
        if self.last is not None or e is not None:
            d = self.last or {"step": e["step"]}
            self.w.writerow([self.fmt(d.get(k, "")) for k in self.tk] + [self.fmt(e[k]) if e and k in e else "" for k in self.ek])
            self.f.flush()
        self.last = None

    def train(self, d):
        self.flush()
        self.last = d

    def eval(self, d):
        self.flush(d)

    def note(self, s):
        pass

    def close(self):
        self.flush()
        self.f.close()


class Board:
    tkeys, ekeys, sub = {"loss": "loss/train", "lr": "optim/lr", "acc": "acc/train"}, {"val_loss": "loss/val", "val_acc": "acc/val"}, "tb"

    def __init__(self, folder, h, k):
        from torch.utils.tensorboard import SummaryWriter

        self.w = SummaryWriter(str(folder / self.sub))

    def train(self, d):
        for a, b in self.tkeys.items():
            if a in d:
                self.w.add_scalar(b, d[a], d["step"])

    def eval(self, d):
        for a, b in self.ekeys.items():
            if a in d:
                self.w.add_scalar(b, d[a], d["step"])
        self.w.flush()

    def note(self, s):
        pass

    def close(self):
        self.w.close()


class EpochCsv(Csv):
    """One row an epoch, written at evaluation."""

    name, digits = "results.csv", 6
    cols = ("epoch", "train_loss", "val_loss", "val_mae", "lr")

    def __init__(self, folder, h, k):
        new = not (folder / self.name).exists()
        self.f = open(folder / self.name, "a", newline="")
        self.w = csv.writer(self.f)
        if new:
            self.w.writerow(self.cols)

    def train(self, d):
        pass

    def eval(self, d):
        self.w.writerow([self.fmt(d[c]) for c in self.cols])
        self.f.flush()

    def close(self):
        self.f.close()
