"""Exact probabilities for small tables: how surprising a coincidence between runs is.

Only the few that the modules here need, in numpy and the standard library: loading a statistics package takes longer
than most audits.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np


def strata_tail(hits: int, strata: Sequence[tuple[int, int, int]]) -> float:
    """P(at least `hits` marked among the drawn) over several (drawn, marked, total), each kept apart: Fisher's exact test, one-sided.

    Exact, by convolution. What differs between the strata (projects, say) can then not look like an effect of what is drawn.
    """
    whole = np.ones(1)
    for drawn, marked, total in strata:
        base = _choose(total, drawn)
        terms = [_choose(marked, k) + _choose(total - marked, drawn - k) - base for k in range(min(drawn, marked) + 1)]
        whole = np.convolve(whole, np.exp(terms))
    return float(min(whole[hits:].sum(), 1.0))


def _choose(n: int, k: int) -> float:
    """ln of n over k; minus infinity where there is no way."""
    if k < 0 or k > n:
        return -math.inf
    return math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)


def some_tail(chances: Sequence[float], hits: int) -> float:
    """P(at least `hits` of independent events with these chances happen): the Poisson binomial tail, exact.

    The tail itself is summed (not one minus the rest), so that 1e-40 stays 1e-40.
    """
    if hits <= 0:
        return 1.0
    if hits > len(chances):
        return 0.0
    state = np.zeros(hits + 1)  # of 0, 1, ... events; the last: `hits` or more
    state[0] = 1.0
    for p in chances:
        full = state[-1] + state[-2] * p
        state[1:-1] = state[1:-1] * (1 - p) + state[:-2] * p
        state[0] *= 1 - p
        state[-1] = full
    return float(min(state[-1], 1.0))


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
