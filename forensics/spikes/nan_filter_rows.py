"""The rows of a loss that the NaN filter of Hugging Face's Trainer made (`forensics.run.nan_filter`)."""

from __future__ import annotations

import numpy as np

from forensics.run import nan_filter, settings
from forensics.run.series import Series, series
from forensics.spikes import excursions, medians
from parsers.tables import Run

OFF = 4.0  # sigmas that a filtered value must be off its level; statistical: once in 16,000, and the row's gradient norm is NaN besides


def rows_made(run: Run, s: Series) -> dict[int, nan_filter.Match | None]:
    """Rows of the loss that the Trainer's NaN filter made, with the way it made each (None: cannot be told)."""
    if s.name != "loss.train" or run.framework != "hf-trainer" or not _filter_on(run):
        return {}
    y, logs = excursions.scaled(np.where(s.value == 0, np.nan, s.value))
    if not logs or len(y) < excursions.WARMUP:
        return {}
    level = excursions.before(medians.rolling_median(y, excursions.LEVEL))
    sigma = excursions.local_noise(y)
    nan_at = _nan_steps(run)
    k, a = max(s.interval, 1), int(settings.number(run, "accumulation") or 1)
    found: dict[int, nan_filter.Match | None] = {}
    for i in np.flatnonzero(
        (np.abs(y - level) > OFF * sigma) & (np.abs(np.expm1(y - level)) > 0.01) & np.isfinite(s.value) & (s.value != 0)
    ):
        zeros_next = i + 1 < len(s) and s.value[i + 1] == 0
        if i >= excursions.WARMUP and (int(s.step[i]) in nan_at or zeros_next):
            base = float(np.exp(level[i]))
            found[int(i)] = nan_filter.explain(
                float(s.value[i]), base, base * float(sigma[i]), k, a, forever=bool(zeros_next), at_end=int(s.step[i]) in nan_at
            )
    return found


def _filter_on(run: Run) -> bool:
    rows = run.tables["config"].select(["key", "value"]).to_pylist()
    said = [r["value"] for r in rows if r["key"].rsplit(".", 1)[-1] == "logging_nan_inf_filter"]
    return not said or str(said[-1]).lower() != "false"


def _nan_steps(run: Run) -> set[int]:
    g = series(run, "grad.norm")
    return {int(x) for x in g.step[~np.isfinite(g.value)]} if g is not None else set()
