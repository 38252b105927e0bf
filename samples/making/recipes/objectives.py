"""Objectives that are no likelihood of a label: two players, codes, experts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional

from making import files, tensorboard, wandb_offline
from making.clock import Clock
from making.data import LETTERS, clusters, cross_entropy, language
from making.expect import HEALTHY, Expect, healthy
from making.training import Config, Job, Row, every, settings

GAN: Config = {"batch_size": 64, "nz": 8, "beta1": 0.5, "beta2": 0.999, "max_steps": 600, "loss": "bce", "optimizer": "adam"}
TWO_PLAYERS = {"loss_d": "Loss_D", "loss_g": "Loss_G", "d_x": "D(x)", "d_g_z": "D(G(z))"}


def _net(inputs: int, width: int, outputs: int) -> nn.Sequential:
    return nn.Sequential(nn.Linear(inputs, width), nn.LeakyReLU(0.2), nn.Linear(width, width), nn.LeakyReLU(0.2), nn.Linear(width, outputs))


def _gan(config: Config, points: Tensor, clock: Clock) -> Iterator[Row]:
    """What PyTorch's DCGAN example logs: both losses, and what the discriminator says of real and of generated samples."""
    torch.manual_seed(config["seed"])
    torch.set_num_threads(1)
    size, width = config["batch_size"], points.shape[1]
    maker, judge = _net(config["nz"], 48, width), _net(width, config["ndf"], 1)
    betas = (config["beta1"], config["beta2"])
    of_maker = torch.optim.Adam(maker.parameters(), config["lr_g"], betas)
    of_judge = torch.optim.Adam(judge.parameters(), config["lr_d"], betas)
    bce, one, zero = functional.binary_cross_entropy_with_logits, torch.ones(size, 1), torch.zeros(size, 1)
    for step in range(1, config["max_steps"] + 1):
        fake = maker(torch.randn(size, config["nz"]))
        on_real, on_fake = judge(points[torch.randint(len(points), (size,))]), judge(fake.detach())
        loss_d = bce(on_real, one) + bce(on_fake, zero)
        of_judge.zero_grad()
        loss_d.backward()
        of_judge.step()
        loss_g = bce(judge(fake), one)
        of_maker.zero_grad()
        loss_g.backward()
        of_maker.step()
        row = {"step": step, "loss_d": loss_d.item(), "loss_g": loss_g.item(), "step_time": clock.tick(), "time": clock.now}
        yield row | {"d_x": on_real.sigmoid().mean().item(), "d_g_z": on_fake.sigmoid().mean().item()}


def gan_csv(out: Path) -> Expect:
    """The discriminator learns at five hundred times the generator's rate: from early on it is sure of every sample, real or
    generated, and the generator's loss climbs. CSV with the columns of PyTorch's DCGAN example."""
    config = GAN | {"lr_d": 1e-2, "lr_g": 2e-5, "ndf": 96, "seed": 111}
    rows = list(_gan(config, 2 * clusters(91, samples=4000, spread=0.1).inputs, Clock("2026-06-11T08:00:00", 0.04)))
    files.config_json(out, config)
    files.table(out / "log.csv", every(rows, 2), TWO_PLAYERS)
    return Expect(top="gan_imbalance", clear=["nonfinite", "restart"], first_bad_step=None)


def healthy_gan_csv(out: Path) -> Expect:
    """Two players of one strength: neither wins, and generated points come to lie where the real ones do. CSV."""
    config = GAN | {"lr_d": 4e-4, "lr_g": 1e-3, "ndf": 32, "seed": 112}
    rows = list(_gan(config, clusters(92, samples=4000, width=2).inputs, Clock("2026-06-12T08:00:00", 0.04)))
    files.config_json(out, config)
    files.table(out / "log.csv", every(rows, 2), TWO_PLAYERS)
    return Expect("healthy", clear=HEALTHY)


class TextVae(nn.Module):
    """A code for a window of text; the decoder sees the letters before, too, and may do without the code."""

    def __init__(self, width: int, latent: int) -> None:
        super().__init__()
        self.letters = nn.Embedding(len(LETTERS), 16)
        self.encoder, self.decoder = nn.GRU(16, width, batch_first=True), nn.GRU(16 + latent, width, batch_first=True)
        self.mean, self.spread, self.head = nn.Linear(width, latent), nn.Linear(width, latent), nn.Linear(width, len(LETTERS))
        nn.init.normal_(self.mean.weight, std=0.5)

    def forward(self, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        seen = self.letters(x)
        last = self.encoder(seen)[1][0]
        mean, log_variance = self.mean(last), self.spread(last)
        code = mean + (log_variance / 2).exp() * torch.randn_like(mean)
        hidden = self.decoder(torch.cat([seen, code[:, None].expand(-1, x.shape[1], -1)], -1))[0]
        kl = 0.5 * (mean.square() + log_variance.exp() - 1 - log_variance).sum(1).mean()
        return cross_entropy(self.head, hidden, y) * x.shape[1], kl  # nats a window


class PointVae(nn.Module):
    """A code for a point, from which alone the point is made again."""

    def __init__(self, width: int, latent: int) -> None:
        super().__init__()
        self.encoder, self.decoder = _net(16, width, 2 * latent), _net(latent, width, 16)

    def forward(self, x: Tensor, _: Tensor) -> tuple[Tensor, Tensor]:
        mean, log_variance = self.encoder(x).chunk(2, -1)
        code = mean + (log_variance / 2).exp() * torch.randn_like(mean)
        kl = 0.5 * (mean.square() + log_variance.exp() - 1 - log_variance).sum(1).mean()
        return (self.decoder(code) - x).square().sum(1).mean() / 0.5, kl


def _vae(job: Job, weight: Callable[[int], float]) -> Iterator[Row]:
    for step in range(1, job.config["max_steps"] + 1):
        for group in job.optimizer.param_groups:
            group["lr"] = job.lr(step)
        recon, kl = job.model(*job.fetch(step, job.ids(step)))
        norm, _ = job.update(recon + weight(step) * kl)
        row = {"step": step, "loss": (recon + weight(step) * kl).item(), "recon": recon.item(), "kl": kl.item(), "beta": weight(step)}
        yield row | {"lr": job.lr(step), "grad_norm": norm, "step_time": job.clock.tick(), "time": job.clock.now}


VAE = {"loss": "train/loss", "recon": "train/recon_loss", "kl": "train/kl_loss", "lr": "train/lr", "grad_norm": "train/grad_norm"}


def text_vae_tensorboard(out: Path) -> Expect:
    """A VAE for text with the full weight on its KL term from the first step: the decoder does as well without the code,
    and the term goes to zero and stays there. TensorBoard."""
    config = settings(max_steps=500, lr=3e-3, seed=113, kl_weight=1.0, latent_dim=8, batch_size=24, eval_every=0, schedule="constant")
    job = Job(language(93), lambda: TextVae(48, config["latent_dim"]), config, Clock("2026-06-15T08:00:00", 0.2))
    started = job.clock.now
    rows = every(list(_vae(job, lambda step: config["kl_weight"])), 3)
    files.config_yaml(out, config)
    tensorboard.event_file(out / "tb", rows, started, VAE)
    first = next(row["step"] for i, row in enumerate(rows) if all(later["kl"] < 0.1 for later in rows[i:]))
    return Expect(top="posterior_collapse", clear=["nonfinite", "restart", "loss_spike", "divergence"], first_bad_step=first)


def healthy_vae_jsonl(out: Path) -> Expect:
    """A VAE for points whose KL term gets its weight within 150 steps: the term comes down and stays at some nats. JSONL."""
    config = settings(max_steps=600, lr=2e-3, seed=114, kl_weight=1.0, kl_anneal_steps=150, latent_dim=4, batch_size=32, eval_every=0)
    job = Job(clusters(94), lambda: PointVae(64, config["latent_dim"]), config, Clock("2026-06-16T08:00:00", 0.03))
    rows = every(list(_vae(job, lambda step: min(step / config["kl_anneal_steps"], 1.0))), 3)
    files.config_yaml(out, config)
    files.jsonl(out / "metrics.jsonl", rows, VAE | {"beta": "train/kl_weight"})
    return healthy()


class Experts(nn.Module):
    """Each point goes to the one expert that its router likes best, as in the Switch Transformer (arXiv 2101.03961)."""

    def __init__(self, width: int, experts: int) -> None:
        super().__init__()
        self.inside, self.router, self.head = nn.Linear(16, width), nn.Linear(width, experts), nn.Linear(width, 10)
        self.experts = nn.ModuleList(nn.Sequential(nn.Linear(width, width), nn.GELU(), nn.Linear(width, width)) for _ in range(experts))
        self.load, self.balance = torch.zeros(experts), torch.zeros(())

    def forward(self, x: Tensor) -> Tensor:
        x = functional.gelu(self.inside(x))
        share = self.router(x).softmax(-1)
        best, which = share.max(-1)
        self.load = torch.bincount(which, minlength=len(self.experts)) / len(x)
        self.balance = len(self.experts) * (self.load * share.mean(0)).sum()
        mixed = torch.zeros_like(x)
        for i, expert in enumerate(self.experts):
            mixed = mixed + (which == i)[:, None] * expert(x)
        scores: Tensor = self.head(x + best[:, None] * mixed)
        return scores


def _experts(config: Config, data: int, start: str) -> Job:
    task = clusters(data)

    def loss(model: nn.Module, inputs: Tensor, targets: Tensor) -> Tensor:
        plain = cross_entropy(model, inputs, targets)
        return plain + config["router_aux_loss_coef"] * model.balance if model.training else plain  # type: ignore[operator]

    task.loss = loss
    job = Job(task, lambda: Experts(32, config["num_experts"]), config, Clock(start, 0.05))

    def loads(step: int) -> Row:
        found = {"balance": job.model.balance.item()}
        return found | {f"load_{i}": value for i, value in enumerate(job.model.load.tolist())}

    job.extra = loads
    return job


def experts_wandb(out: Path) -> Expect:
    """Six experts with top-1 routing and no balance loss: the expert that is chosen most learns most and is chosen more,
    until it gets nearly all points and the others learn nothing. The wandb package in offline mode logs the load of
    each expert."""
    config = settings(
        max_steps=500, lr=3e-3, seed=115, batch_size=64, num_experts=6, moe_top_k=1, router_aux_loss_coef=0.0, schedule="constant"
    )
    job = _experts(config, 95, "2026-06-17T08:00:00")
    rows = every(list(job.run()), 5)
    loads = {f"load_{i}": f"moe/expert_{i}_load" for i in range(6)}
    wandb_offline.offline_run(out, rows, config, "points", "m7t2c4ex", {k: v for k, v in files.NAMES.items() if "perf" not in v} | loads)
    return Expect(
        top="moe_routing_collapse",
        clear=["nonfinite", "restart", "loss_spike", "divergence"],
        emulated="the clock and the machine's name in wandb's file",
    )


def healthy_experts_csv(out: Path) -> Expect:
    """Six experts with a balance loss: each gets its share of the points, and the balance loss stays near 1. CSV."""
    config = settings(max_steps=500, lr=3e-3, seed=116, batch_size=64, num_experts=6, moe_top_k=1, router_aux_loss_coef=0.02)
    job = _experts(config, 96, "2026-06-18T08:00:00")
    rows = every(list(job.run()), 5)
    loads = {f"load_{i}": f"moe/expert_{i}_load" for i in range(6)}
    names = {"loss": "train/loss", "lr": "lr", "grad_norm": "grad_norm", "val_loss": "val/loss", "balance": "moe/load_balance_loss"}
    files.config_yaml(out, config)
    files.table(out / "metrics.csv", rows, names | loads)
    return healthy()
