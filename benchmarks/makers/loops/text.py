"""Text, a small GPT and its task: language modelling on the source text of the standard library."""

import pathlib
import sysconfig

import torch
import torch.nn as nn
import torch.nn.functional as F_
from loop import Task

MODULES = [
    "argparse",
    "ast",
    "calendar",
    "cmd",
    "codecs",
    "configparser",
    "copy",
    "csv",
    "datetime",
    "decimal",
    "difflib",
    "dis",
    "doctest",
    "enum",
    "fractions",
    "ftplib",
    "functools",
    "gettext",
]


def source(names=MODULES):
    lib = pathlib.Path(sysconfig.get_paths()["stdlib"])
    return [(n, (lib / f"{n}.py").read_text(errors="ignore")[:40000]) for n in names if (lib / f"{n}.py").exists()]


class Attention(nn.Module):
    def __init__(self, d, heads, causal):
        super().__init__()
        self.q, self.k, self.v, self.o = (nn.Linear(d, d) for _ in range(4))
        self.heads, self.causal, self.scale, self.top = heads, causal, (d // heads) ** -0.5, 0.0

    def forward(self, x, mem=None):
        mem = x if mem is None else mem
        q, k, v = (f(t).unflatten(-1, (self.heads, -1)).transpose(1, 2) for f, t in ((self.q, x), (self.k, mem), (self.v, mem)))
        a = q @ k.transpose(-1, -2) * self.scale
        self.top = float(a.detach().abs().max())
        if self.causal:
            a = a.masked_fill(torch.ones(a.shape[-2:], dtype=torch.bool).triu(1), -1e9)
        return self.o((a.softmax(-1) @ v).transpose(1, 2).flatten(2))


class Block(nn.Module):
    def __init__(self, d, heads, drop=0.0, post=False, cross=False, causal=True):
        super().__init__()
        self.attn, self.post = Attention(d, heads, causal), post
        self.cross = Attention(d, heads, False) if cross else None
        self.mlp = nn.Sequential(nn.Linear(d, 3 * d), nn.GELU(), nn.Linear(3 * d, d))
        self.n1, self.n2, self.n3, self.drop = nn.LayerNorm(d), nn.LayerNorm(d), nn.LayerNorm(d), nn.Dropout(drop)

    def forward(self, x, mem=None):
        def add(x, norm, f):
            return norm(x + self.drop(f(x))) if self.post else x + self.drop(f(norm(x)))

        x = add(x, self.n1, self.attn)
        if self.cross:
            x = add(x, self.n3, lambda z: self.cross(z, mem))
        return add(x, self.n2, self.mlp)


class GPT(nn.Module):
    def __init__(self, vocab, d=48, layers=2, heads=4, ctx=32, drop=0.0, post=False):
        super().__init__()
        self.tok, self.pos = nn.Embedding(vocab, d), nn.Embedding(ctx, d)
        self.blocks = nn.ModuleList(Block(d, heads, drop, post) for _ in range(layers))
        self.norm, self.head = nn.LayerNorm(d), nn.Linear(d, vocab)
        nn.init.normal_(self.tok.weight, std=0.05)
        nn.init.normal_(self.pos.weight, std=0.05)

    def forward(self, x):
        x = self.tok(x) + self.pos.weight[: x.shape[1]]
        for b in self.blocks:
            x = b(x)
        return self.head(self.norm(x))


class CharLM(Task):
    """Windows over characters. shuffle=False in h reads the files one after the other."""

    ctx, post, soft_first = 32, False, False

    def __init__(self, h):
        files = source()
        text = "".join(t for _, t in files)
        chars = sorted(set(text), key=lambda c: -text.count(c))[:72]
        self.vocab = len(chars) + 1
        self.ids = {c: i + 1 for i, c in enumerate(chars)}
        tok = torch.tensor([self.ids.get(c, 0) for c in text])
        n = len(tok) // (self.ctx + 1)
        w = tok[: n * (self.ctx + 1)].view(n, -1)
        g = torch.Generator().manual_seed(5)
        pick = torch.randperm(n, generator=g)[:160]
        keep = torch.ones(n, dtype=torch.bool)
        keep[pick] = False
        self.rows = w[keep]
        self.n = len(self.rows)
        self.set_val(w[pick])
        self.model = GPT(self.vocab, h.get("n_embd", 48), h.get("n_layer", 2), 4, self.ctx, h.get("dropout", 0.0), self.post)
        self.head, self.smooth = self.model.head, h.get("label_smoothing", 0.0)

    def set_val(self, rows):
        self.val = [{"x": r[:, :-1], "y": r[:, 1:]} for r in rows.split(80)]

    def get(self, idx):
        r = self.rows[torch.as_tensor(idx)]
        return {"x": r[:, :-1], "y": r[:, 1:]}

    def loss(self, b, smooth=None):
        z = self.model(b["x"])
        z = z.softmax(-1) if self.soft_first else z
        loss = F_.cross_entropy(z.flatten(0, 1), b["y"].flatten(), label_smoothing=self.smooth if smooth is None else smooth)
        return loss, self.info()

    def forward_loss(self, b):
        return self.loss(b, 0.0)

    def info(self):
        return {"attn": max(b.attn.top for b in self.model.blocks)}


def scrambled(b):
    g = torch.Generator().manual_seed(int(b["x"][0, 0]) + 7)
    x = b["x"][:, torch.randperm(b["x"].shape[1], generator=g)]
    return {"x": x, "y": torch.roll(x, -1, 1)}
