"""Where two series part: the last equal value, the first excursion of one alone, the step from which their level differs.

How it decides
    The values at common steps are compared on the log scale, where they are all positive. *Equal* is equal to six digits, or to
    the digits that were printed. The noise is that of the difference itself: 1.4826 x the median absolute deviation from its running median of
    9, so that what both runs feel of a hard batch cancels. An *excursion* is a difference of 8 sigma at a step. The *level* parts
    where the median difference of a window leaves zero by 5 standard errors (doubled, because neighbouring values of a loss
    depend on each other) and 0.3 %, and four fifths of the next three windows agree.

Cannot tell
    With fewer than `LEAST` common steps. Seeds differ by more than the noise inside a run: what is found between two seeds may be
    the seed, and only a group of seeds (`forensics audit`) can tell.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from forensics.run.robust import median, robust_sigma
from forensics.run.series import Series
from forensics.spikes import excursions, medians

LEAST = 20
ALIKE = 2e-6
EXCURSION, LEVEL, DEPENDENT, SMALLEST, AGREE = 8.0, 5.0, 2.0, 0.003, 0.8
LEAST_EXCURSION = 0.01
MOST_LAG, LAG_SIGMA, LAG_LEAST, LAG_VALUES = 200, 7.0, 0.25, 100

Floats = excursions.Floats


@dataclass(frozen=True)
class Parting:
    """Steps are labels of the runs; None: it did not happen. Differences are B - A, in ln where `log`."""

    common: int  # steps that both logged
    log: bool
    equal: int  # values that are equal from the beginning on
    last_equal: int | None
    first_unequal: int | None
    excursion: int | None
    excursion_height: float | None
    excursion_by: str | None  # "A" or "B": the run that leaves its own level there
    excursion_way: str | None  # jumps, drops, or is not finite
    level: int | None
    sigma: float  # noise of the difference
    last_difference: float  # median over the last tenth


def find(a: Series, b: Series) -> Parting | None:
    """None where too little is common."""
    step, x, y = common(a, b)
    if len(step) < LEAST:
        return None
    log = bool((x[np.isfinite(x)] > 0).all() and (y[np.isfinite(y)] > 0).all())
    with np.errstate(all="ignore"):
        d = np.log(y) - np.log(x) if log else y - x
    same = (np.abs(y - x) <= ALIKE * np.maximum(np.abs(x), np.abs(y))) | (np.isnan(x) & np.isnan(y))
    equal = int(np.argmin(same)) if not same.all() else len(same)
    both = np.isfinite(d)
    rest = np.where(both, d, 0.0)
    sigma = _noise(rest[equal:])
    jumps = np.flatnonzero((np.abs(rest - _level(rest)) > max(EXCURSION * sigma, LEAST_EXCURSION)) | (np.isfinite(x) != np.isfinite(y)))
    jumps = jumps[jumps >= equal]
    by, way = _whose(x, y, int(jumps[0]), log) if len(jumps) else (None, None)
    part = _part(rest, sigma, equal)
    last = rest[-max(len(rest) // 10, 5) :]
    return Parting(
        common=len(step),
        log=log,
        equal=equal,
        last_equal=int(step[equal - 1]) if equal else None,
        first_unequal=int(step[equal]) if equal < len(step) else None,
        excursion=int(step[jumps[0]]) if len(jumps) else None,
        excursion_height=float(d[jumps[0]]) if len(jumps) else None,
        excursion_by=by,
        excursion_way=way,
        level=int(step[part]) if part is not None else None,
        sigma=sigma,
        last_difference=median(last),
    )


def _whose(x: Floats, y: Floats, row: int, log: bool) -> tuple[str, str]:
    """Which run leaves its own level at a row, and how: a difference alone does not say which of the two moved."""
    if np.isfinite(x[row]) != np.isfinite(y[row]):
        return "B" if np.isfinite(x[row]) else "A", "is not finite"
    moved = []
    for values in (x, y):
        near = values[max(row - 4, 0) : row + 5]
        near, here = (np.log(near), np.log(values[row])) if log else (near, values[row])
        moved.append(float(here - np.median(near[np.isfinite(near)])))
    most = int(abs(moved[1]) >= abs(moved[0]))
    return "AB"[most], "jumps" if moved[most] > 0 else "drops"


def common(a: Series, b: Series) -> tuple[np.ndarray, Floats, Floats]:
    """The surviving values at the steps that both logged; of several at one step the last."""
    one, two = (_last(s) for s in (a, b))
    step, i, j = np.intersect1d(one[0], two[0], return_indices=True)
    return step, one[1][i], two[1][j]


def _last(s: Series) -> tuple[np.ndarray, Floats]:
    step, value = s.step[s.alive], s.value[s.alive]
    kept, first = np.unique(step[::-1], return_index=True)
    return kept, value[::-1][first]


def _level(d: Floats) -> Floats:
    return medians.centred_median(d, 9)


def _noise(d: Floats) -> float:
    if len(d) < 5:
        return 1e-6
    return max(robust_sigma(d, _level(d)), 1e-6)


def _part(d: Floats, sigma: float, equal: int) -> int | None:
    """The first row from which the level differs for good: by a short window, which says best where, else by a long one."""
    short, long = int(np.clip(len(d) // 50, 5, 50)), int(np.clip(len(d) // 8, 5, 400))
    found = _part_by(d, sigma, equal, short)
    return found if found is not None or long <= short else _part_by(d, sigma, equal, long)


def _part_by(d: Floats, sigma: float, equal: int, w: int) -> int | None:
    if len(d) < 2 * w:
        return None
    windows = np.lib.stride_tricks.sliding_window_view(d, w)
    middle = np.median(windows, axis=1)
    limit = max(LEVEL * DEPENDENT * 1.2533 * sigma / np.sqrt(w), SMALLEST)
    off = np.where(np.abs(middle) > limit, np.sign(middle), 0.0)
    for t in np.flatnonzero(off):
        after = off[t : t + 3 * w + 1]
        if len(after) >= min(w, len(off) - int(t)) and float((after == off[t]).mean()) >= AGREE:
            inside = np.flatnonzero(d[t : t + w] * off[t] > limit)
            return max(int(t) + (int(inside[0]) if len(inside) else 0), equal)
    return None


def shared_noise(a: Series, b: Series) -> tuple[int, float, float] | None:
    """(lag, correlation, its standard error) of what the batches do to both losses: near 1 where they read the same data in the same
    order; at a lag where one counts its steps later. None where too little was logged at every step."""
    one, two = (_last(s) for s in (a, b))
    if any(len(s[0]) < LAG_VALUES or np.median(np.diff(s[0])) != 1 for s in (one, two)):
        return None
    first, last = max(one[0][0], two[0][0]), min(one[0][-1], two[0][-1])
    if last - first + 1 < LAG_VALUES:
        return None
    span = np.arange(first, last + 1)
    r = [_residual(s, span) for s in (one, two)]
    n = len(span)
    reach = min(MOST_LAG, n // 3)
    lags = np.arange(-reach, reach + 1)
    found = np.array([_correlation(r[0], r[1], int(k)) for k in lags])
    best = int(np.argmax(found))
    return int(lags[best]), float(found[best]), float(1 / np.sqrt(n - abs(int(lags[best]))))


def _residual(s: tuple[np.ndarray, Floats], span: np.ndarray) -> Floats:
    """The value at each step without its level, in units of its noise, and never more than 4 of them."""
    value = np.interp(span, s[0], np.where(np.isfinite(s[1]), s[1], np.nanmedian(s[1])))
    r = value - medians.centred_median(value, 9)
    out: Floats = np.clip(r / (robust_sigma(r, 0.0) or 1.0), -4, 4)
    return out


def _correlation(x: Floats, y: Floats, lag: int) -> float:
    """Of x at t with y at t + lag."""
    u, v = (x[: len(x) - lag], y[lag:]) if lag >= 0 else (x[-lag:], y[:lag])
    spread = float(u.std() * v.std())
    return float(((u - u.mean()) * (v - v.mean())).mean() / spread) if spread > 0 else 0.0
