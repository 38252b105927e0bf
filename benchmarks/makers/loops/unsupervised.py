"""A VAE and a GAN."""

import math
import time

import numpy as np
import plants as P
import torch
import torch.nn as nn
import torch.nn.functional as F_
from core import OK, F, Family
from digits import digits
from loop import Task
from sinks import Csv


# VAE with CSV
class VaeNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.enc, self.dec = (
            nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 16)),
            nn.Sequential(nn.Linear(8, 64), nn.ReLU(), nn.Linear(64, 64)),
        )


class Vae(Task):
    def __init__(self, h):
        x, _ = digits()
        self.x, self.val, self.n = x[360:].flatten(1), [{"x": x[:360].flatten(1)}], 1437
        self.model, self.beta, self.anneal, self.seen = VaeNet(), h["beta"], h.get("kl_anneal", 0), 0
        self.head, self.overflow, self.free = self.model.dec[-1], h.get("logvar_gain", 1.0), 0.0

    def get(self, idx):
        return {"x": self.x[torch.as_tensor(idx)]}

    def loss(self, b):
        mu, lv = self.model.enc(b["x"]).chunk(2, -1)
        lv = lv * self.overflow
        z = mu + torch.exp(0.5 * lv) * torch.randn_like(mu)
        rec = F_.binary_cross_entropy_with_logits(self.model.dec(z), b["x"].clamp(0, 1), reduction="sum") / len(mu)
        kl = 0.5 * (lv.exp() + mu**2 - 1 - lv).sum(-1).mean()
        self.seen += self.model.training
        w = self.beta * min(1.0, self.seen / self.anneal) if self.anneal else self.beta
        return rec + w * kl, {"recon": rec.item(), "kl": kl.item(), "beta": w}


class VaeCsv(Csv):
    name, tk, ek = "history.csv", ("step", "loss", "recon", "kl"), ("val_loss", "val_recon", "val_kl")


def loud_input(steps, k):
    return P.bad_batch(steps, "scale", k)


H9 = {
    "steps": 600,
    "batch_size": 32,
    "lr": 3e-3,
    "optimizer": "adam",
    "beta": 1.0,
    "log_every": 10,
    "eval_every": 60,
    "save_every": 60,
    "latent": 8,
}
vae = Family(
    "torch-vaedigits-csv",
    H9,
    VaeCsv,
    task=Vae,
    config="json",
    names={"lr": "learning_rate", "steps": "num_steps"},
    logs=["eval", "parts"],
    plan=[
        OK(),
        OK(),
        OK("kl annealing", h={"kl_anneal": 200}),
        OK("noisy small batch", h={"batch_size": 12, "lr": 2e-3}),
        P.clean_resume(300),
        F("posterior_collapse", h={"beta": 30.0}, step=0, accept=["regularization_floor"]),
        F("posterior_collapse", h={"beta": 12.0}, step=0, accept=["regularization_floor"]),
        F("nan_from_layer", h={"lr": 0.1, "logvar_gain": 30.0}, step=0, accept=["lr_too_high", "nan_from_sample"], ident="partly"),
        P.nan_sample(230),
        OK("short run", h={"steps": 480}),
        OK("cyclic rate", h={"schedule": "cyclic"}),
        P.pocket(300, 360, "inputs", 1.0),
        loud_input([180, 400, 401], 25.0),
        P.flip(350, index=1),
        P.big_init(15),
        P.artefact(
            "ema0",
            ident="partly",
            what="the logged loss starts near zero and climbs to the level of its own parts: an average that starts at zero",
        ),
        P.shift(330, lambda b: {"x": 1 - b["x"]}),
    ],
)


# GAN on a ring of points, console
def ring(n, g):
    a = torch.randint(0, 8, (n,), generator=g) * (math.pi / 4)
    return torch.stack([a.cos(), a.sin()], 1) * 2 + 0.1 * torch.randn(n, 2, generator=g)


def gan(folder, h, ext, meas, ckpt, k):
    torch.manual_seed(h["seed"])
    g = torch.Generator().manual_seed(h["seed"])
    G = nn.Sequential(nn.Linear(8, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 2))
    D = nn.Sequential(nn.Linear(2, 64), nn.LeakyReLU(0.2), nn.Linear(64, 64), nn.LeakyReLU(0.2), nn.Linear(64, 1))
    og, od = (
        torch.optim.Adam(G.parameters(), lr=h["lr_g"], betas=(0.5, 0.99)),
        torch.optim.Adam(D.parameters(), lr=h["lr_d"], betas=(0.5, 0.99)),
    )
    ones, zeros = torch.ones(64, 1), torch.zeros(64, 1)
    ref, t0 = ring(500, torch.Generator().manual_seed(1)), time.time()
    bce = F_.binary_cross_entropy_with_logits
    for step in range(h["steps"]):
        t1 = time.perf_counter()
        for _ in range(h.get("d_steps", 1)):
            real = ext.batch(step, {"x": ring(64, g)})["x"]
            fake = G(torch.randn(64, 8)).detach()
            ld = bce(D(real), ones * h.get("real_label", 1.0)) + bce(D(fake), zeros)
            od.zero_grad()
            ld.backward()
            od.step()
        lg = bce(D(G(torch.randn(64, 8))), ones)
        if ext.clear:
            og.zero_grad()
        lg.backward()
        og.step()
        if ext.pause:
            time.sleep(ext.pause(step))
        meas.m["dt"].append(time.perf_counter() - t1)
        meas.m["loss"].append((step, lg.item() + ld.item()))
        if step % 20 == 0:
            with torch.no_grad():
                px, pz = D(real).sigmoid().mean(), D(fake).sigmoid().mean()
            print(f"[{step:04d}/{h['steps']}] Loss_D: {ld.item():.4f} Loss_G: {lg.item():.4f} D(x): {px:.3f} D(G(z)): {pz:.3f}")
        if step % 100 == 99:
            with torch.no_grad():
                d = torch.cdist(ref, G(torch.randn(500, 8)))
            c = float(d.min(1).values.mean() + d.min(0).values.mean())
            meas.m["eval"].append((step, c))
            meas.dump()
            print(f"    chamfer {c:.3f} ({time.time() - t0:.1f}s)")
        if ext.signal_at and step == ext.signal_at[0]:
            from loop import send_later

            send_later(ext.signal_at[1])
    meas.dump(True)


def bad_gan(m, t, s):
    a, b = np.mean([v for _, v in m["eval"][-3:]]), np.mean([v for _, v in t["eval"][-3:]])
    return not a < 1.5 * b, f"chamfer {a:.3f} twin {b:.3f}"


def good_gan(m, t, s):
    a, b = np.mean([v for _, v in m["eval"][-3:]]), np.mean([v for _, v in t["eval"][-3:]])
    return a < 0.7, f"chamfer {a:.3f} twin {b:.3f}"


H11 = {"steps": 700, "lr_g": 1e-3, "lr_d": 1e-3}
gan_ring = Family(
    "torch-ganring-console",
    H11,
    None,
    train=gan,
    console="gan.log",
    config="argv",
    logs=["eval", "time"],
    plan=[
        OK(check=good_gan),
        OK(check=good_gan),
        OK("two discriminator steps as configured", h={"d_steps": 2}, check=good_gan),
        OK("one-sided label smoothing", h={"real_label": 0.9}, check=good_gan),
        OK("longer run", h={"steps": 1300}, check=good_gan),
        F("gan_imbalance", h={"lr_g": 1e-6}, step=0, check=bad_gan),
        F(
            "gan_imbalance",
            h={"lr_d": 2e-6},
            step=0,
            check=bad_gan,
            what="the discriminator never separates: both losses stay at chance while the distance stays high",
        ),
        F("gan_imbalance", h={"d_steps": 5, "lr_d": 1e-2, "lr_g": 5e-5}, step=0, check=bad_gan),
        F("lr_too_high", h={"lr_g": 0.5, "lr_d": 0.5}, step=0, check=bad_gan, accept=["gan_imbalance"]),
        P.killed(520),
        P.slow(400, 0.04),
        P.no_clear(check=bad_gan, accept=["gan_imbalance", "lr_too_high"], ident="no", what="the generator never settles"),
        P.nan_sample(430, check=lambda m, t, s: (not math.isfinite(m["loss"][-1][1]), "nan")),
    ],
)

FAMILIES = [vae, gan_ring]
