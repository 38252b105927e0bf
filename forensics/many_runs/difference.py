"""The difference of two runs over the steps: a curve to lie beneath the two."""

from __future__ import annotations

from typing import Any

import numpy as np

from forensics.many_runs import parting
from forensics.run.downsample import m4
from forensics.run.series import Series, series
from forensics.spikes import medians
from parsers.tables import Run

COLUMNS = 200
FAR = 2.0  # unit: beyond it "150 % higher" reads worse than "2.5 times as high"
SHARE = 0.9  # unit: of the steps; one spike does not make a ratio of the whole
WINDOW = 9  # unit: values; the running median that parting takes the noise about


def between(a: Series, b: Series) -> dict[str, Any] | None:
    """``{"unit", "points", "level", "noise", "parts"}``: B less A at the steps that both logged, and its running median: in percent of A where
    all values are positive, and where the level lies beyond a factor of `FAR`, as B over A ("times"; the noise is its factor less 1). None
    where too few steps are common."""
    found = parting.find(a, b)
    if found is None:
        return None
    step, x, y = parting.common(a, b)
    with np.errstate(all="ignore"):
        d = np.log(y / x) if found.log else y - x
    both = np.isfinite(d)
    d, level = d[both], medians.centred_median(d[both], WINDOW)
    unit, noise = a.unit, found.sigma
    if found.log:
        far = float(np.quantile(np.abs(level), SHARE)) > float(np.log(FAR))
        unit, noise = ("times", float(np.expm1(noise))) if far else ("%", 100 * float(np.expm1(noise)))
        d, level = (np.exp(d), np.exp(level)) if far else (100 * np.expm1(d), 100 * np.expm1(level))
    return {"unit": unit, "points": m4(step[both], d, COLUMNS), "level": m4(step[both], level, COLUMNS),
            "noise": float(f"{noise:.4g}"), "parts": found.level}  # fmt: skip


def beside(base: Run, run: Run) -> dict[str, Any] | None:
    """The keys of `pictures.baseline`: the training loss of a known good run under that of the run in question, and the difference."""
    one, two = series(base, "loss.train"), series(run, "loss.train")
    found = between(one, two) if one is not None and two is not None else None
    if one is None or two is None or found is None:
        return None
    curves = {name: m4(s.step[s.alive], s.value[s.alive], COLUMNS) for name, s in (("baseline", one), ("run", two))}
    scale = "log" if one.scale == two.scale == "log" else "linear"
    return {"path": base.path, "metric": two.name, "unit": two.unit, "scale": scale, **curves, "difference": found}
