"""A family of lightning.Trainer with the CSVLogger."""

import os
import signal
import time
import warnings

import lightning as L
import proj
import torch
from cases import chosen
from common import launches_of, limit_memory, ok
from data import stream
from lightning.pytorch.callbacks import EarlyStopping, ModelCheckpoint
from lightning.pytorch.loggers import CSVLogger
from loops import flip_bit, lr_at, optimizer
from nets import NETS, clean_loss, final_loss

HIDE = ("hot", "wild_init", "pools", "log", "eval", "ckpt", "save", "epoch_steps")


class Module(L.LightningModule):
    def __init__(self, task, c, f, rec):
        super().__init__()
        self.save_hyperparameters({k: v for k, v in c.items() if k not in HIDE})
        self.net, self.c, self.f, self.rec, self.t = NETS[task](c, f), c, f, rec, time.time()
        if f.get("frozen"):
            for p in list(self.net.parameters())[:-2]:
                p.requires_grad_(False)

    def training_step(self, batch, i):
        f, s = self.f, self.global_step
        if s == f.get("kill"):
            os.kill(os.getpid(), f.get("sig", signal.SIGTERM))
            time.sleep(5)
        loss, d = self.net.loss(*batch, f)
        self.rec["train"].append((s, loss.item()))
        self.rec["dts"].append(time.time() - self.t)
        self.t = time.time()
        self.log("train_loss", loss, prog_bar=True)
        for k, v in d.items():
            self.log(f"train_{k}", v)
        if s == f.get("code_error"):
            proj.read_meta(s)
        return loss

    def validation_step(self, batch, i):
        if self.f.get("eval_sleep"):
            time.sleep(self.f["eval_sleep"])
        loss, d = self.net.loss(*batch, {k: v for k, v in self.f.items() if k in ("raw", "double_softmax")})
        self.rec["evals"].append((self.global_step, loss.item()))
        self.log("val_loss", loss, prog_bar=True)
        for k, v in d.items():
            self.log(f"val_{k}", v)

    def on_before_optimizer_step(self, opt):
        if self.c.get("log_gnorm"):
            self.log("grad_norm", torch.nn.utils.get_total_norm([p.grad for p in self.parameters() if p.grad is not None]))

    def optimizer_zero_grad(self, *a):
        if not self.f.get("no_zero"):
            super().optimizer_zero_grad(*a)

    def on_train_batch_end(self, *a):
        if self.global_step == self.f.get("flip"):
            flip_bit(self.net, self.f["bit"])

    def configure_optimizers(self):
        o = optimizer(self.c, [p for p in self.parameters() if p.requires_grad])
        c, f = self.c, self.f

        def factor(s):
            s = s - f.get("start", 0) if f.get("sched_reset") else s
            k = lr_at(c, s * f.get("sched_mult", 1)) / c["lr"]
            return k * (f["lr_mult"][1] if "lr_mult" in f and f["lr_mult"][0] <= s < f["lr_mult"][2] else 1.0)

        return {"optimizer": o, "lr_scheduler": {"scheduler": torch.optim.lr_scheduler.LambdaLR(o, factor), "interval": "step"}}


class Items(torch.utils.data.Dataset):
    def __init__(self, x, y, f, bs):
        self.x, self.y, self.f, self.bs, self.cache = torch.from_numpy(x), torch.from_numpy(y), f, bs, proj.SampleCache()

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        f = self.f
        if i % self.bs == 0:
            if "slow" in f and i // self.bs >= f["slow"][0]:
                time.sleep(f["slow"][1])
            if i // self.bs == f.get("stall"):
                import threading

                proj.wait_for_shard(threading.Event())
            if f.get("leak_mb"):
                self.cache.decode(i, int(f["leak_mb"] * 2**20))
        return self.x[i], self.y[i]


class Checkpoint(ModelCheckpoint):
    disk_full = None

    def _save_checkpoint(self, trainer, path):
        if self.disk_full is not None and trainer.global_step >= self.disk_full:
            os.makedirs(os.path.dirname(path), exist_ok=True)
            os.symlink("/dev/full", path)
            proj.write_file(path, "x" * 10**6)
        super()._save_checkpoint(trainer, path)


def run(task, base, case, rec):
    c, f = {**base, **case.cfg}, case.f
    warnings.filterwarnings("ignore", message=".*(workers|litlogger|srun).*")
    x, y, xe, ye = stream(task, c, f, rec["seed"])
    limit_memory(f.get("rlimit_mb"))
    launches = launches_of(f)
    for i, g in enumerate(launches):
        ci = {**c, **g.get("cfg", {})}
        torch.manual_seed(rec["seed"])
        m = Module(task, ci, g, rec)
        if i == 0:
            rec["init"] = clean_loss(m.net, xe, ye)
        lg = [CSVLogger(".", name="lightning_logs", flush_logs_every_n_steps=c["log"])]
        cbs = []
        every = ci.get("save") or ci.get("ckpt")
        if every:
            cb = Checkpoint(dirpath="checkpoints", filename="{step}", every_n_train_steps=every, save_top_k=-1)
            cb.disk_full = g.get("disk_full")
            cbs.append(cb)
        if ci.get("patience"):
            cbs.append(EarlyStopping("val_loss", patience=ci["patience"], verbose=True))
        bs, acc = ci["bs"], ci.get("accum", 1)
        steps = g.get("stop", ci["steps"])
        start = g.get("start", 0)
        t = L.Trainer(
            max_steps=steps,
            accelerator="cpu",
            devices=1,
            logger=lg,
            callbacks=cbs,
            log_every_n_steps=c["log"],
            val_check_interval=ci["eval"] * acc,
            check_val_every_n_epoch=None,
            enable_progress_bar=False,
            enable_model_summary=False,
            enable_checkpointing=bool(every),
            gradient_clip_val=ci.get("clip", 1.0) or None,
            accumulate_grad_batches=acc,
            num_sanity_val_steps=0,
        )
        off = start * bs if i else 0

        def dl(a, b, q, n):
            return torch.utils.data.DataLoader(Items(a, b, q, n), batch_size=n)

        if i and "start" in g:
            ck = f"checkpoints/step={start}.ckpt"
            if g.get("lost") or ci.get("lr") != c.get("lr"):
                d = torch.load(ck, weights_only=False)
                if g.get("lost"):
                    d["optimizer_states"] = [optimizer(ci, [p for p in m.parameters() if p.requires_grad]).state_dict()]
                    torch.save(d, ck)

        def fit():
            t.fit(m, dl(x[off:], y[off:], g, bs // acc), dl(xe, ye, {}, 512), ckpt_path=ck if i else None, weights_only=False)

        if i == 0 and len(launches) == 2 and g.get("kill"):
            pid = os.fork()
            if pid == 0:
                fit()
                os._exit(0)
            os.waitpid(pid, 0)
            continue
        fit()
    rec["final"] = final_loss(m.net, xe, ye, f)


def family(task, cfg, names, console, more=None):
    return {
        "cases": lambda rng: chosen(rng, cfg, names, more),
        "console": console,
        "run": lambda c, r: run(task, cfg, c, r),
        "gain": 0.05,
        "imports": ["sklearn.datasets", "torch.utils.tensorboard", "tensorboard.compat"],
    }


D = dict
FAMILIES = {
    "lightning-cnn-digits-csvlogger": family(
        "digits",
        D(steps=240, bs=32, lr=2e-3, log=10, eval=40, hot=2000, wild_init=3.0, log_gnorm=1, pools=[60, 100]),
        "lr_high lr_low wd jump units pocket labels double nan slow over dead init smooth nozero h_rough h_drop h_restarts h_resume h_pause h_sgd stop",
        None,
        lambda r, c: {"stop": ok("early stop as configured", cfg={"patience": 2, "steps": 300, "lr": 3e-3}, check="fine:.2")},
    )
}
