"""Checks of a run against its healthy twin.

A record holds init and final (held-out loss, lower is better), train and evals [(step, loss)] and dts, the seconds of each step.
"""

import math

import numpy as np


def frac(r, t):
    """0: as good as the healthy twin, 1: learned nothing, above 1: worse than untrained."""
    a, b, c = r.get("final"), t["final"], t["init"]
    if a is None or not math.isfinite(a):
        return 99.0
    return (a - b) / max(abs(c - b), 1e-9)


def bump(r, t, width=1):
    """Largest lasting difference to the twin's training loss at the same steps, in units of the twin's whole gain."""
    d, tt, best = [], dict(t["train"]), 0.0
    for s, v in r["train"]:
        if s in tt:
            d.append(v - tt[s] if math.isfinite(v) else 1e9)
    for i in range(len(d) - width + 1):
        best = max(best, sum(d[i : i + width]) / width)
    return best / max(abs(t["init"] - t["final"]), 1e-9)


def split(name):
    n, _, x = name.partition(":")
    return n, float(x) if x else None


def judge(check, r, t):
    """Returns (passes, note)."""
    if callable(check):
        return bool(check(r, t)), "own check"
    n, x = split(check)
    crashed = r.get("rc") != 0
    if n == "crash":
        return crashed, f"rc {r.get('rc')}"
    if crashed:
        return False, f"rc {r.get('rc')} {r.get('error', '')[-300:]}"
    fr = frac(r, t)
    if n == "fine":
        return fr <= (x or 0.12), f"frac {fr:.2f}"
    if n == "worse":
        return fr >= (x or 0.15), f"frac {fr:.2f}"
    if n == "better":  # leakage: the logged evaluation is better than the twin's
        return r["evals"][-1][1] < t["final"] - (x or 0.1) * abs(
            t["init"] - t["final"]
        ), f"eval {r['evals'][-1][1]:.3f} twin {t['final']:.3f}"
    if n == "bump":
        return bump(r, t) >= (x or 0.25), f"bump {bump(r, t):.2f}"
    if n == "pocket":
        return bump(r, t, 8) >= (x or 0.15), f"bump8 {bump(r, t, 8):.2f}"
    if n == "nan":
        return any(not math.isfinite(v) for _, v in r["train"]) or fr == 99.0, "nan"
    if n == "slow":
        d = r["dts"]
        k = max(5, len(d) // 5)
        q = np.median(d[-k:]) / np.median(d[5 : 5 + k])
        return q >= (x or 2), f"slower x{q:.1f}"
    if n == "overfit":
        e = [v for _, v in r["evals"]]
        i = int(np.argmin(e))
        return i < 0.7 * len(e) and e[-1] > e[i] + (x or 0.08) * abs(t["init"] - e[i]), f"best {e[i]:.3f} at {i}/{len(e)} last {e[-1]:.3f}"
    if n == "own":  # evaluation done in training mode: worse than the clean loss of the same weights
        return r["evals"][-1][1] > r["final"] + 0.1 * abs(t["init"] - t["final"]), f"eval {r['evals'][-1][1]:.3f} clean {r['final']:.3f}"
    if n == "own_eval":  # the evaluation, not the model, gets worse
        return r["evals"][-1][1] > t["evals"][-1][1] + 0.2 * abs(t["init"] - t["final"]) and fr < 0.1, f"eval {r['evals'][-1][1]:.3f}"
    if n == "always":
        return True, f"frac {fr:.2f}"
    raise ValueError(check)
