"""A small training that planted runs are made with; copied into each run folder, where it is the replay adapter, too.

config.json says what is trained, data.pt holds the rows. Everything depends on the step and the state alone.
"""

import json
import math
from pathlib import Path

import torch
from torch import nn
from torch.nn import functional as F

HERE = Path(__file__).resolve().parent
CONFIG = json.loads((HERE / "config.json").read_text())
DATA = torch.load(HERE / "data.pt", weights_only=True)
LAST_STEP = CONFIG["steps"] + 60


class Reader(nn.Module):
    """A transformer with one or two blocks over 32 tokens, or a GRU."""

    def __init__(self):
        super().__init__()
        width, words = CONFIG["width"], CONFIG["words"]
        self.embed = nn.Embedding(words, width)
        self.place = nn.Parameter(torch.randn(64, width) * 0.02)
        if CONFIG["model"] == "gru":
            self.body = nn.GRU(width, width, batch_first=True)
        else:
            layer = nn.TransformerEncoderLayer(width, 4, 2 * width, dropout=CONFIG.get("dropout", 0.0), batch_first=True, norm_first=True)
            self.body = nn.TransformerEncoder(layer, CONFIG.get("layers", 1), enable_nested_tensor=False)
        self.head = nn.Linear(width, words)

    def forward(self, x):
        h = self.embed(x) + self.place[: x.shape[1]]
        if CONFIG["model"] == "gru":
            h = self.body(h)[0]
        else:
            h = self.body(h, mask=nn.Transformer.generate_square_subsequent_mask(x.shape[1], device=x.device), is_causal=True)
        return self.head(h)


class Half(nn.Module):
    """Rounds to half precision and back, as a layer that is kept in fp16 would."""

    def forward(self, x):
        return x.half().float()


def plain(inputs, outputs):
    width, parts, d = CONFIG["width"], [], inputs
    for _ in range(CONFIG.get("layers", 2)):
        parts += [nn.Linear(d, width), nn.Tanh() if CONFIG.get("tanh") else nn.ReLU()]
        if CONFIG.get("fp16"):
            parts.append(Half())
        d = width
    return nn.Sequential(*parts, nn.Linear(d, outputs))


def build():
    torch.manual_seed(CONFIG["seed"])
    kind = CONFIG["task"]
    model = Reader() if kind == "text" else plain(DATA["x"].shape[1], 1 if kind == "regression" else CONFIG["classes"])
    lr = CONFIG["lr"]
    if CONFIG["optimizer"] == "sgd":
        optimizer = torch.optim.SGD(model.parameters(), lr=lr, momentum=CONFIG.get("momentum", 0.9))
    else:
        optimizer = torch.optim.AdamW(model.parameters(), lr=lr, betas=tuple(CONFIG.get("betas", [0.9, 0.99])), eps=CONFIG.get("eps", 1e-8))
    return model, optimizer, torch.optim.lr_scheduler.LambdaLR(optimizer, factor)


def factor(step):
    f = min(1.0, (step + 1) / max(CONFIG.get("warmup", 0), 1))
    if CONFIG.get("cosine"):
        f *= 0.55 + 0.45 * math.cos(math.pi * min(1.0, step / CONFIG["steps"]))
    for first, last, times in CONFIG.get("boost", []):
        f *= times if first <= step < last else 1.0
    return f


def rows_at(step):
    n, size = len(DATA["x"]), CONFIG["batch"]
    epoch, i = divmod(step, n // size)
    order = torch.randperm(n, generator=torch.Generator().manual_seed(CONFIG["order"] + 1000 * epoch))
    return order[i * size : (i + 1) * size]


def batch(step):
    rows = rows_at(step)
    return {"x": DATA["x"][rows], "y": DATA["y"][rows], "ids": rows}


def loss(model, batch, reduction="mean"):
    out, y = model(batch["x"]), batch["y"]
    formula = CONFIG.get("formula")
    if CONFIG["task"] == "text":
        known = (y >= 0).float()
        each = F.cross_entropy(out.flatten(0, 1), y.clamp(min=0).flatten(), reduction="none").view(y.shape)
        rows = (each * known).sum(1) / known.sum(1)
    elif CONFIG["task"] == "regression":
        rows = (out[:, 0] - y) ** 2
    elif formula == "log of a probability":
        rows = -(F.softmax(out, 1)[torch.arange(len(y), device=y.device), y]).log() - (1 - F.softmax(out, 1).amax(1)).log() * 1e-3
    else:
        rows = F.cross_entropy(out, y, reduction="none")
    return rows if reduction == "none" else rows.mean()


def train_step(model, optimizer, scheduler, batch):
    optimizer.zero_grad(set_to_none=True)
    value = loss(model, batch)
    scale = CONFIG.get("scale", 1.0)
    (value * scale).backward()
    if scale != 1.0:
        for p in model.parameters():
            p.grad.div_(scale)
    norm = torch.nn.utils.clip_grad_norm_(model.parameters(), CONFIG.get("clip") or math.inf)
    if scheduler.last_epoch == CONFIG.get("bug_at"):
        with torch.no_grad():  # a callback that initializes a layer once more
            last = model.head if hasattr(model, "head") else model[-1]
            last.weight.mul_(-CONFIG.get("bug_size", 1.0))
    optimizer.step()
    scheduler.step()
    return float(value.detach()), float(norm)


def save(model, optimizer, scheduler, step):
    (HERE / "checkpoints").mkdir(exist_ok=True)
    state = {k: v for k, v in scheduler.state_dict().items() if k != "lr_lambdas"}
    torch.save(
        {"step": step, "model": model.state_dict(), "optimizer": optimizer.state_dict(), "scheduler": state, "rng": torch.get_rng_state()},
        HERE / "checkpoints" / f"step_{step}.pt",
    )
