"""Small tasks from generated data or data that ships inside packages, and the data faults."""

import glob
import os
import sysconfig

import numpy as np

CHARS = "\n" + "".join(chr(i) for i in range(32, 127))
_text = None


def text():
    """Python's standard library source as text."""
    global _text
    if _text is None:
        fs = sorted(glob.glob(os.path.join(sysconfig.get_paths()["stdlib"], "*.py")))[:60]
        s = "".join(open(f, errors="ignore").read() for f in fs)
        m = {c: i for i, c in enumerate(CHARS)}
        _text = np.array([m[c] for c in s if c in m], dtype=np.int64)
    return _text


def lm(n, rng, t=33):
    x = text()
    cut = int(len(x) * 0.9)
    i = rng.integers(0, cut - t, n)
    j = np.random.default_rng(7).integers(cut, len(x) - t, 128)
    return np.stack([x[k : k + t] for k in i]), np.zeros(n, np.int64), np.stack([x[k : k + t] for k in j]), np.zeros(128, np.int64)


def digits(n, rng, flat=False):
    from sklearn.datasets import load_digits

    d = load_digits()
    x = (d.data / 16.0).astype(np.float32)
    if not flat:
        x = x.reshape(-1, 1, 8, 8)
    p = np.random.default_rng(7).permutation(len(x))
    tr, te = p[:1400], p[1400:]
    i = rng.integers(0, len(tr), n)
    return x[tr][i], d.target[tr][i].astype(np.int64), x[te], d.target[te].astype(np.int64)


def seqcls(n, rng, t=20, v=30):
    """Class: which of four marker tokens is the most frequent."""

    def gen(k, r):
        y = r.integers(0, 4, k)
        x = r.integers(6, v, (k, t))
        for i in range(k):
            pos = r.permutation(t)[:7]
            x[i, pos] = 1 + r.integers(0, 4, 7)
            x[i, pos[:4]] = 1 + y[i]
        return x, y.astype(np.int64)

    a, b = gen(n, rng)
    c, d = gen(256, np.random.default_rng(7))
    return a, b, c, d


def reverse(n, rng, t=5):
    """Sequence to sequence: the digits backwards (2..11; 0 padding, 1 end)."""

    def gen(k, r):
        x = r.integers(2, 12, (k, t))
        return np.concatenate([x, np.ones((k, 1), int)], 1), np.concatenate([x[:, ::-1], np.ones((k, 1), int)], 1).copy()

    a, b = gen(n, rng)
    c, d = gen(128, np.random.default_rng(7))
    return a, b, c, d


def regression(n, rng, noise=0.3, k=10):
    def gen(m, r):
        x = r.normal(size=(m, k)).astype(np.float32)
        y = np.sin(2 * x[:, 0]) + x[:, 1] * x[:, 2] + 0.5 * x[:, 3] + noise * r.normal(size=m)
        return x, y.astype(np.float32)[:, None]

    a, b = gen(n, rng)
    c, d = gen(400, np.random.default_rng(7))
    return a, b, c, d


def tabular(n, rng, k=16, classes=3):
    r7 = np.random.default_rng(5)
    w, c = r7.normal(size=(k, 24)), r7.normal(size=(24, classes))

    def gen(m, r):
        x = r.normal(size=(m, k)).astype(np.float32)
        return x, np.argmax(np.tanh(x @ w) @ c + 0.6 * r.normal(size=(m, classes)), 1).astype(np.int64)

    return *gen(n, rng), *gen(400, np.random.default_rng(7))


def blobs(n, rng):
    """A bright blob of one of three sizes in a 12x12 image: find its class and centre."""

    def gen(m, r):
        c, s = r.uniform(2, 10, (m, 2)), r.integers(0, 3, m)
        g = np.arange(12)
        d = (g[None, :, None] - c[:, 0, None, None]) ** 2 + (g[None, None, :] - c[:, 1, None, None]) ** 2
        x = np.exp(-d / (2 * (0.6 + 0.7 * s[:, None, None]) ** 2)) + 0.1 * r.normal(size=(m, 12, 12))
        return x[:, None].astype(np.float32), np.concatenate([s[:, None], c / 12], 1).astype(np.float32)

    return *gen(n, rng), *gen(300, np.random.default_rng(7))


def points(n, rng):
    """Two moons: a density with entropy below zero, so a good negative log-likelihood is negative."""

    def gen(m, r):
        a, s = r.uniform(0, np.pi, m), r.integers(0, 2, m)
        x = np.stack([np.cos(a) * (1 - 2 * s) + s, np.sin(a) * (1 - 2 * s) + 0.5 * s], 1) * 0.5
        return (x + 0.03 * r.normal(size=(m, 2))).astype(np.float32), s.astype(np.int64)

    return *gen(n, rng), *gen(400, np.random.default_rng(7))


TASKS = {k: v for k, v in globals().items() if k in ("lm", "digits", "seqcls", "reverse", "regression", "tabular", "blobs", "points")}


def stream(task, cfg, f, seed):
    """The training stream in order (steps * batch samples) and the held-out set, with the data faults applied."""
    rng = np.random.default_rng(seed)
    bs, n = cfg["bs"], cfg["steps"] * cfg["bs"]
    pool = cfg.get("pool")
    x, y, xe, ye = TASKS[task](pool or n, rng)
    if pool:  # epochs over a finite set
        k = -(-n // pool)
        idx = np.concatenate([rng.permutation(pool) for _ in range(k)])[:n]
        if f.get("leak"):
            xe, ye = x[: len(xe)].copy(), y[: len(ye)].copy()
        x, y = x[idx], y[idx]
    tokens = x.dtype.kind == "i"

    def spoil(a, b, how, q=1.0):
        s = slice(a * bs, b * bs)
        m = rng.random(len(x[s])) < q
        if how == "labels":
            if y[s].ndim > 1 and y.dtype.kind == "f":
                y[s][m] = y[s][m][rng.permutation(int(m.sum()))]
            else:
                y[s][m] = rng.permuted(y[s][m], axis=0) if y.ndim == 1 else rng.permuted(y[s][m], axis=1)
        elif tokens:
            x[s][m] = rng.integers(1, x.max(), x[s][m].shape)
        else:
            x[s][m] = rng.normal(0, f.get("scale", 3), x[s][m].shape).astype(x.dtype)

    for s in f.get("bad_batches", ()):
        spoil(s, s + 1, "x")
        if task not in ("lm", "points"):
            spoil(s, s + 1, "labels")
    if "pocket" in f:
        spoil(*f["pocket"], "labels" if task not in ("lm", "points") else "x")
    if "labels" in f:
        spoil(0, cfg["steps"], "labels", f["labels"])
    if "shift" in f:  # another kind of data from here on, for good
        s = slice(f["shift"] * bs, None)
        x[s] = (x[s] * 7 + 3) % (x.max() + 1) if tokens else (-x[s] + 0.5)[..., ::-1]
    if "nan_at" in f:
        x[f["nan_at"] * bs + 1].reshape(-1)[3] = np.nan
    return x, y, xe, ye
