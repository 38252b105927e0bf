"""Exact probabilities for small tables: how surprising a coincidence between runs is.

Only the few that the modules here need, in numpy and the standard library: loading a statistics package takes longer
than most audits.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache

import numpy as np

FEW = 500  # events whose tail is worked out one by one: up to here that takes milliseconds
STEADY = 0.25  # each term of the recursion is at most this share of the one before: then the alternating sum loses no digits
NEVER = 745.2  # ln of the smallest float, negative


def strata_tail(hits: int, strata: Sequence[tuple[int, int, int]]) -> float:
    """P(at least `hits` marked among the drawn) over several (drawn, marked, total), each kept apart: Fisher's exact test, one-sided.

    Exact, by convolution. What differs between the strata (projects, say) can then not look like an effect of what is drawn.
    """
    whole = np.ones(1)
    for drawn, marked, total in strata:
        if drawn and marked:
            k = np.arange(min(drawn, marked) + 1)
            ways = _ln_choose(marked, k) + _ln_choose(total - marked, drawn - k) - _ln_choose(total, np.array(drawn))
            whole = np.convolve(whole, np.exp(ways))
    return float(min(whole[hits:].sum(), 1.0))


def _ln_choose(n: int, k: np.ndarray) -> np.ndarray:
    """ln of n over k; minus infinity where there is no way."""
    known, possible = _ln_factorials(n.bit_length()), np.clip(k, 0, n)
    out: np.ndarray = np.where(k == possible, known[n] - known[possible] - known[n - possible], -np.inf)
    return out


@cache
def _ln_factorials(bits: int) -> np.ndarray:
    return np.array([math.lgamma(i + 1) for i in range(1 << bits)])


def rare_tail(chances: np.ndarray, hits: int) -> float:
    """`some_tail` where more happened than was to be expected; else 1. (The median lies within one event of the mean, Jogdeo and
    Samuels 1968: up to the mean the tail is at least a half.)"""
    return some_tail(chances, hits) if hits > chances.sum() else 1.0


def some_tail(chances: Sequence[float] | np.ndarray, hits: int) -> float:
    """P(at least `hits` of independent events with these chances happen): the Poisson binomial tail, exact.

    The tail itself is summed (not one minus the rest), so that 1e-40 stays 1e-40.
    """
    p = np.asarray(chances, np.float64)
    if hits <= 0:
        return 1.0
    if hits > len(p) or _never(p, hits):
        return 0.0
    state, scale = np.zeros(hits + 1), 0.0  # of 0, 1, ... events; the last: `hits` or more
    state[0] = 1.0
    if len(p) > FEW:
        state, scale, p = _of_small(p, hits)
    for x in p.tolist():
        full = state[-1] + state[-2] * x
        state[1:-1] = state[1:-1] * (1 - x) + state[:-2] * x
        state[0] *= 1 - x
        state[-1] = full
    return float(min(state[-1] * math.exp(scale), 1.0))


def _never(p: np.ndarray, hits: int) -> bool:
    """Whether the tail is less than any float, by Hoeffding's bound (1963): exp(-n KL(hits / n, mean chance))."""
    n, mean = len(p), float(p.mean())
    share = hits / n
    if share <= mean or mean <= 0 or len(p) <= FEW:
        return False
    apart = share * math.log(share / mean) + ((1 - share) * math.log((1 - share) / (1 - mean)) if share < 1 else 0.0)
    return n * apart > NEVER


def _of_small(p: np.ndarray, hits: int) -> tuple[np.ndarray, float, np.ndarray]:
    """(the states of the events with small chances, the ln that they are to be scaled with, the chances of the others).

    By the recursion over power sums of the odds (Chen, Dempster and Liu 1994): k P(k) = sum over i of (-1)^(i-1) T(i) P(k-i). It
    takes steps for each number of events instead of each event, and loses no digits while the terms fall fast.
    """
    odds = p / np.maximum(1 - p, 1e-300)
    most = (far := max(hits, float(p.sum()))) + 20 * math.sqrt(far) + 40  # as far as the sum of the tail goes
    small = np.ones(len(p), bool)
    for _ in range(3):  # without the large ones the limit is lower
        small &= odds <= STEADY * odds[small].sum() / most
    if small.sum() < len(p) / 2:
        state = np.zeros(hits + 1)
        state[0] = 1.0
        return state, 0.0, p
    w = odds[small]
    power = np.array([(-1) ** i * float((w ** (i + 1)).sum()) for i in range(30)])[::-1]
    known, scale = np.zeros(int(most) + 31), float(np.log1p(-p[small]).sum())
    known[30] = 1.0  # P(0); before it nothing
    for k in range(1, int(most) + 1):
        known[30 + k] = max(float(power @ known[k : 30 + k]) / k, 0.0)
        if known[30 + k] > 1e200:
            known *= 1e-200
            scale += 200 * math.log(10)
    pmf = known[30:]
    return np.append(pmf[:hits], pmf[hits:].sum()), scale, p[~small]


def t_tail(t: float, freedom: float) -> float:
    """P(|T| >= |t|) of Student's distribution, two-sided."""
    if not math.isfinite(t):
        return 0.0
    return _beta_share(freedom / (freedom + t * t), freedom / 2, 0.5)


def t_limit(outside: float, freedom: float) -> float:
    """The t whose two-sided tail is `outside`."""
    low, high = 0.0, 1.0
    while t_tail(high, freedom) > outside and high < 1e12:
        high *= 2
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if t_tail(middle, freedom) > outside else (low, middle)
    return high


def _beta_share(x: float, a: float, b: float) -> float:
    """The regularized incomplete beta function, by its continued fraction (DLMF 8.17.22), evaluated by Lentz's method."""
    if x <= 0 or x >= 1:
        return float(x > 0)
    if x > (a + 1) / (a + b + 2):
        return 1 - _beta_share(1 - x, b, a)
    front = math.exp(math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x)) / a
    tiny = 1e-300
    value, c, d = 1.0, 1.0, 0.0
    for i in range(400):
        m = i // 2
        if i == 0:
            step = 1.0
        elif i % 2:
            step = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        else:
            step = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        d = 1 / ((1 + step * d) or tiny)
        c = (1 + step / c) or tiny
        value *= c * d
        if abs(1 - c * d) < 1e-15:
            break
    return front * (value - 1)
