"""The rate that the settings ask for, step by step."""

from __future__ import annotations

import numpy as np

from forensics.run import settings
from forensics.run.plan import planned_steps
from forensics.run.series import Floats, Ints
from parsers.lazy_regex import lazy_re
from parsers.tables import Run

HORIZON = "lr_decay_iters lr_decay_steps decay_steps num_decay_steps t_max max_steps"
_AGAIN = lazy_re(r"(?i)cycl|restart|sgdr|repeat|triang")
FLAT, DOWN = ("const", "fixed", "flat"), ("linear", "cosine")
CYCLES = (
    "restart",
    "cyclic",
    "cycle",
    "sgdr",
    "wsd",
    "stable",
    "inverse",
    "step",
    "plateau",
    "polynomial",
    "exp",
    "trapezoid",
    "warmup_decay",
)


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


def in_cycles(run: Run) -> bool:
    """Whether config names a schedule that begins again by itself."""
    return any(_AGAIN.search(f"{s.key}={s.value}") for s in settings.every(run) if isinstance(s.value, str))
