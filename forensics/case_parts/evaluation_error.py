"""Evaluations with their error: which of them stand out from the best by more than chance."""

from __future__ import annotations

from typing import Any

import numpy as np

from forensics.detectors import eval_noise
from forensics.errors import CannotTell
from forensics.run.downsample import significant
from forensics.run.evaluation_noise import noise_of
from forensics.run.metric_columns import arrays
from forensics.run.series import Series, parts
from parsers.tables import Run

MOST = 400  # unit: evaluations in the picture
DIGITS = 4  # unit: significant ones of an error; no error is known better
APART = 2.0  # statistical: standard errors of a difference; chance does it once in 22
ERRORS = ("_stderr", "_std_err", "_standard_error", "_se", "_sem")


def evaluation(run: Run) -> dict[str, Any] | None:
    """The keys of `pictures.evaluation`; None where the error of an evaluation is neither logged nor seen in how they scatter."""
    try:
        s, x, rows = eval_noise.values(run)
        scatter, how = noise_of(x), f"from the scatter of {len(x)} evaluations"
    except CannotTell:
        return None
    step = s.step[rows]
    error = np.full(len(x), scatter)
    if (logged := _logged(run, s)) is not None:
        error, how = np.interp(step, logged.step[logged.usable], logged.value[logged.usable]), f"logged as {logged.tag}"
    if not (error > 0).any():
        return None
    sign = 1.0 if s.name.startswith(("loss", "ppl")) else -1.0
    best = int(np.argmin(sign * x))
    alike = sign * (x - x[best]) <= APART * np.hypot(error, error[best])
    kept = np.unique(np.r_[np.linspace(0, len(x) - 1, min(len(x), MOST)).astype(int), best])
    points = [list(p) for p in zip(step[kept].tolist(), x[kept].tolist(), significant(error[kept], DIGITS).tolist(), strict=True)]
    return {"metric": s.name, "tag": s.tag, "unit": s.unit, "how": how, "points": points, "best": int(step[best]),
            "alike": int(alike.sum()) - 1, "alike_last": bool(alike[-1]), "alike_from": int(step[alike].min())}  # fmt: skip


def _logged(run: Run, s: Series) -> Series | None:
    """What was logged of its standard error, under the name of the evaluation's own tag."""
    wanted = {(s.tag + end).lower() for end in ERRORS}
    columns = arrays(run)
    for code in [i for i, tag in enumerate(columns["tags"]) if tag.lower() in wanted]:
        name = columns["names"][int(columns["name"][np.argmax(columns["tag"] == code)])]
        found = next((part for part in parts(run, name) if part.tag == columns["tags"][code]), None)
        if found is not None and found.usable.any() and (found.value[found.usable] >= 0).all():
            return found
    return None
