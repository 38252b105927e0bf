"""The rate that the settings ask for, step by step."""

from __future__ import annotations

import numpy as np

from forensics.run import settings
from forensics.run.plan import planned_steps
from forensics.run.series import Floats, Ints, series
from parsers.lazy_regex import lazy_re
from parsers.tables import Run

HORIZON = "lr_decay_iters lr_decay_steps decay_steps num_decay_steps t_max max_steps"
FLAT, DOWN = ("const", "fixed", "flat"), ("linear", "cosine")
AGAIN = ("cycl", "restart", "sgdr", "repeat", "triang")  # begins again by itself
ENDLESS = (*AGAIN, "wsd", "inverse", "step", "plateau")  # these have no length after which they are over, either
_ONE_CYCLE = lazy_re(r"(?:one|1)[-_ ]?cycle")  # goes up and down once (arXiv 1708.07120)
AGAIN_TIMES = 10.0  # unit: a cycle comes down by more than that, and begins again at its top
SHAPED = (*ENDLESS, "stable", "polynomial", "exp", "trapezoid", "warmup_decay")  # all whose rate is not computed here


def expected_rate(run: Run, kind: str, step: Ints, peak: float) -> Floats | None:
    """The rate that the settings name, at these steps; None where they do not name it whole, or call it by a name of their own."""
    if not any(k in kind for k in (*FLAT, *DOWN)):
        return None
    warmup = settings.number(run, "warmup_steps") or 0.0
    if any(k in kind for k in FLAT):
        return peak * np.minimum(1.0, (step + 1) / max(warmup, 1.0))
    horizons = [n for h in settings.named(run, HORIZON) if (n := settings.as_number(h.value))]
    horizon = horizons[0] if horizons else planned_steps(run)
    if not horizon or horizon <= warmup:
        return None
    least = settings.number(run, "min_lr") or 0.0
    share = np.clip((step - warmup) / (horizon - warmup), 0.0, 1.0)
    down = 0.5 * (1 + np.cos(np.pi * share)) if "cosine" in kind else 1 - share
    return np.asarray(np.where(step < warmup, peak * (step + 1) / max(warmup, 1.0), least + (peak - least) * down))


def cycles_up_to(run: Run) -> float | None:
    """The rate to which config lets a schedule return that begins again by itself, 0 where it names none; None where no such schedule is named."""
    return (settings.number(run, "lr") or 0.0) if in_cycles(run) else None


def in_cycles(run: Run) -> bool:
    """Whether config names a schedule that begins again by itself."""
    told = (_ONE_CYCLE.sub("", f"{s.key}={s.value}".lower()) for s in settings.every(run) if isinstance(s.value, str))
    return any(word in text for text in told for word in AGAIN)


def begins_again(run: Run, first: int, last: int) -> bool:
    """Whether the logged rate of such a schedule comes back up between two steps, to ten times what it was."""
    lr = series(run, "lr")
    if lr is None or not in_cycles(run):
        return False
    rows = np.flatnonzero(lr.alive & (lr.step <= last))
    low, high = lr.value[rows[lr.step[rows] < first]][-1:], lr.value[rows[lr.step[rows] >= first]]
    return len(low) > 0 and len(high) > 0 and bool(high.max() >= AGAIN_TIMES * low[0])


def is_endless(schedule: settings.Setting) -> bool:
    """Whether a schedule, as config names it, has no length after which it is over."""
    return any(word in _ONE_CYCLE.sub("", str(schedule.value).lower()) for word in ENDLESS)
