"""Simulated loss curves with spikes at known places, for fitting and for tests: every noise, smoothing and interval.

A curve is a falling power law with a floor; noise on the log scale is Gaussian, heavy-tailed, one-sided or of
two sorts of batches; spikes last one value or decay, or climb before they peak; the logger may average, smooth
or take medians.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Curve:
    """Logged values and the planted spikes: (first value, peak, height in local sigmas, height in ln)."""

    value: Floats
    planted: list[tuple[int, int, float, float]]


def curve(rng: np.random.Generator) -> Curve:
    n = int(np.exp(rng.uniform(np.log(120), np.log(2500))))
    every = int(rng.choice([1, 1, 1, 5, 10, 20]))
    t = np.arange(n * every)
    clean = np.log(rng.uniform(0.05, 3) + rng.uniform(1, 8) * (1 + t / rng.uniform(2, 200)) ** -rng.uniform(0.2, 1.0))
    sigma = float(np.exp(rng.uniform(np.log(0.003), np.log(0.2))))
    noise = _noise(rng, len(t)) * sigma
    bump, places = np.zeros(len(t)), []
    for _ in range(int(rng.choice([0, 0, 1, 1, 2, 4, 8]))):
        at = int(rng.integers(len(t) // 12, len(t) - 3))
        height = max(sigma * float(np.exp(rng.uniform(np.log(4), np.log(150)))), 0.02) * every**0.5
        bump += _shape(rng, len(t), at, every) * height
        places.append(at)
    raw, smooth = np.exp(clean + noise + bump), np.exp(clean + noise)
    how = str(rng.choice(["point", "mean", "ema", "median"], p=[0.5, 0.25, 0.15, 0.1]))
    logged, quiet = _logged(raw, every, how), _logged(smooth, every, how)
    return Curve(logged, _visible(np.log(logged), np.log(quiet), [p // every for p in places]))


def _noise(rng: np.random.Generator, n: int) -> Floats:
    kind = rng.choice(["normal", "student", "one-sided", "two sorts"], p=[0.45, 0.25, 0.2, 0.1])
    if kind == "normal":
        x = rng.standard_normal(n)
    elif kind == "student":
        x = rng.standard_t(rng.uniform(2.5, 6), n)
    elif kind == "one-sided":
        x = rng.gamma(1.5, 1.0, n)
    else:
        x = rng.standard_normal(n) * 0.4 + rng.choice([0.0, 4.0], n, p=[0.7, 0.3])
    x -= np.median(x)
    return np.asarray(x / max(1.4826 * float(np.median(np.abs(x))), 1e-9))


def _shape(rng: np.random.Generator, n: int, at: int, every: int) -> Floats:
    """Height 1 at its peak: one value, an exponential decay, or a climb and a decay."""
    t = np.arange(n) - at
    tau = float(np.exp(rng.uniform(np.log(0.3), np.log(60)))) * every
    rise = float(rng.choice([0.0, 0.0, 1.0, 4.0])) * every
    down = np.where(t >= 0, np.exp(-np.maximum(t, 0) / tau), 0.0)
    up = np.where((t < 0) & (t >= -rise), 1 + t / max(rise, 1.0), 0.0)
    return np.asarray(np.maximum(down, up))


def _logged(x: Floats, every: int, how: str) -> Floats:
    blocks = x[: len(x) // every * every].reshape(-1, every)
    if how == "mean":
        return np.asarray(blocks.mean(axis=1))
    if how == "median":
        return np.asarray(
            np.median(np.lib.stride_tricks.sliding_window_view(np.concatenate([np.full(4, blocks[0, -1]), blocks[:, -1]]), 5), axis=1)
        )
    out = blocks[:, -1].copy()
    if how == "ema":
        for i in range(1, len(out)):
            out[i] = 0.9 * out[i - 1] + 0.1 * out[i]
    return np.asarray(out)


def _visible(y: Floats, quiet: Floats, places: list[int]) -> list[tuple[int, int, float, float]]:
    found = []
    excess = y - quiet
    for p in sorted(set(places)):
        lo, hi = max(p - 6, 0), min(p + 40, len(y))
        peak = lo + int(np.argmax(excess[lo:hi]))
        around = quiet[max(peak - 60, 0) : peak + 60]
        sigma = 1.4826 * float(np.median(np.abs(np.diff(around)))) / 2**0.5
        spread = 1.4826 * float(np.median(np.abs(around - np.median(around))))
        found.append((min(p, peak), peak, float(excess[peak]) / max(sigma, 0.3 * spread, 1e-9), float(excess[peak])))
    return found
