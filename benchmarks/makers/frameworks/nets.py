"""Small torch networks, one per task. loss(x, y, f) -> (loss to train on, values to log); f holds code faults."""

import math

import torch
import torch.nn as nn
import torch.nn.functional as F


def ce(logits, y, f, smooth=0.0):
    if f.get("double_softmax"):
        logits = logits.softmax(-1)
    return F.cross_entropy(logits, y, reduction="sum" if f.get("sum_loss") else "mean", label_smoothing=smooth)


class CNN(nn.Module):
    def __init__(self, c, f):
        super().__init__()
        w = c.get("width", 16)
        self.c1, self.b1 = nn.Conv2d(1, w, 3, padding=1), nn.BatchNorm2d(w)
        self.c2, self.b2 = nn.Conv2d(w, 2 * w, 3, padding=1, stride=2), nn.BatchNorm2d(2 * w)
        self.fc, self.drop = nn.Linear(2 * w * 16, 10), nn.Dropout(c.get("dropout", 0.1))
        self.c = c
        if f.get("dead"):
            with torch.no_grad():
                self.c2.bias -= 40
                self.b2 = nn.Identity()
        if c.get("init_std"):
            nn.init.normal_(self.fc.weight, std=c["init_std"])

    def features(self, x):
        return F.relu(self.b2(self.c2(F.relu(self.b1(self.c1(x)))))).flatten(1)

    def forward(self, x):
        return self.fc(self.drop(self.features(x)))

    def loss(self, x, y, f):
        z = self(x * (255 if f.get("raw") else 1))
        loss = ce(z, y, f, self.c.get("smooth", 0.0) if self.training else 0.0)
        return loss, {"acc": (z.argmax(-1) == y).float().mean().item()}


class Seq2Seq(nn.Module):
    def __init__(self, c, f):
        super().__init__()
        d = 40
        self.emb, self.pos = nn.Embedding(12, d), nn.Parameter(torch.randn(8, d) * 0.1)
        self.enc = nn.TransformerEncoderLayer(d, 2, 80, dropout=c.get("dropout", 0.0), batch_first=True, norm_first=True)
        self.dec = nn.TransformerDecoderLayer(d, 2, 80, dropout=c.get("dropout", 0.0), batch_first=True, norm_first=True)
        self.head, self.c = nn.Linear(d, 12), c
        if c.get("init_std"):
            for p in self.parameters():
                if p.dim() > 1:
                    nn.init.normal_(p, std=c["init_std"])

    def loss(self, x, y, f):
        src = self.emb(x) + self.pos[: x.shape[1]]
        inp = torch.cat([torch.zeros_like(y[:, :1]), y[:, :-1]], 1)
        m = torch.triu(torch.full((y.shape[1],) * 2, float("-inf")), 1)
        z = self.head(self.dec(self.emb(inp) + self.pos[: y.shape[1]], self.enc(src), tgt_mask=m))
        loss = ce(z.flatten(0, 1), y.flatten(), f, self.c.get("smooth", 0.0) if self.training else 0.0)
        return loss, {"nll_loss": F.cross_entropy(z.flatten(0, 1), y.flatten()).item()}


class MLP(nn.Module):
    def __init__(self, c, f, i=10, o=1):
        super().__init__()
        w = c.get("width", 64)
        act = {"relu": nn.ReLU, "sigmoid": nn.Sigmoid, "tanh": nn.Tanh}[c.get("act", "relu")]
        self.net = nn.Sequential(nn.Linear(i, w), act(), nn.Dropout(c.get("dropout", 0.0)), nn.Linear(w, w), act(), nn.Linear(w, o))
        self.o, self.c = o, c
        for layer in self.net:
            if isinstance(layer, nn.Linear) and c.get("init_std"):
                nn.init.normal_(layer.weight, std=c["init_std"])
        if f.get("dead"):
            with torch.no_grad():
                self.net[3].bias -= 60

    def loss(self, x, y, f):
        if f.get("raw"):
            x = x * torch.logspace(0, 3.5, x.shape[1])
        z = self.net(x)
        if self.o > 1:
            loss = ce(z, y, f, self.c.get("smooth", 0.0) if self.training else 0.0)
            return loss, {"acc": (z.argmax(-1) == y).float().mean().item()}
        e = (z - y) ** 2
        loss = e.sum() if f.get("sum_loss") else e.mean()
        return loss, {"mae": (z - y).abs().mean().item()}


class Detector(nn.Module):
    def __init__(self, c, f):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(1, 12, 3, padding=1),
            nn.BatchNorm2d(12),
            nn.ReLU(),
            nn.Conv2d(12, 24, 3, stride=2, padding=1),
            nn.BatchNorm2d(24),
            nn.ReLU(),
            nn.Flatten(),
            nn.Linear(24 * 36, 48),
            nn.ReLU(),
        )
        self.cls, self.box, self.c = nn.Linear(48, 3), nn.Linear(48, 2), c

    def loss(self, x, y, f):
        h = self.body(x * (255 if f.get("raw") else 1))
        z = self.cls(h)
        lc = ce(z, y[:, 0].long(), f)
        lb = F.l1_loss(self.box(h), y[:, 1:]) * 5
        return lc + lb, {"loss_cls": lc.item(), "loss_bbox": lb.item(), "acc": (z.argmax(-1) == y[:, 0]).float().mean().item() * 100}


class Density(nn.Module):
    """Affine coupling flow on points in the plane; its loss goes below zero."""

    def __init__(self, c, f):
        super().__init__()
        self.nets, self.c, self.n = nn.ModuleList(nn.Sequential(nn.Linear(1, 32), nn.ReLU(), nn.Linear(32, 2)) for _ in range(6)), c, 0

    def loss(self, x, y, f):
        ld = 0.0
        if "drift" in f and self.training:
            self.n += 1
        for i, n in enumerate(self.nets):
            a, b = (x[:, :1], x[:, 1:]) if i % 2 else (x[:, 1:], x[:, :1])
            s, t = n(a).chunk(2, -1)
            s = s + f["drift"] * self.n if "drift" in f else 3 * torch.tanh(s)
            b, ld = b * s.exp() + t, ld + s.sum(-1)
            x = torch.cat([a, b] if i % 2 else [b, a], 1)
        loss = 0.5 * (x * x).sum(-1) + math.log(2 * math.pi) - ld
        return loss.sum() if f.get("sum_loss") else loss.mean(), {}


NETS = {
    "digits": CNN,
    "reverse": Seq2Seq,
    "regression": MLP,
    "tabular": lambda c, f: MLP(c, f, 16, 3),
    "blobs": Detector,
    "points": Density,
}


def clean_loss(net, xe, ye):
    was = net.training
    net.eval()
    with torch.no_grad():
        loss = net.loss(torch.from_numpy(xe), torch.from_numpy(ye), {})[0].item()
    net.train(was)
    return loss


def final_loss(net, xe, ye, f):
    """Of a net that was trained on raw inputs: on these."""
    return net.loss(torch.from_numpy(xe), torch.from_numpy(ye), {"raw": 1})[0].item() if f.get("raw") else clean_loss(net, xe, ye)
