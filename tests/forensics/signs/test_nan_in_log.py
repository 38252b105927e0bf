"""NaN that the log alone has, beside NaN that the training had."""

from __future__ import annotations

import numpy as np
import pytest

from forensics import pipeline
from forensics.detectors import nonfinite
from forensics.run.series import Floats
from forensics.signs.nan_in_log import nan_beside_ordinary_gradient
from forensics.signs.sign import Symptoms
from tests.forensics.curves import noisy, run_of

N = 200
NORM = noisy(N, 0.1, seed=1)
LOST = np.where(np.isin(np.arange(N), (60, 120)), np.nan, noisy(N, 0.02))


def at(*rows: int, value: float) -> Floats:
    return np.where(np.isin(np.arange(N), rows), value, NORM)


@pytest.mark.parametrize(
    ("metrics", "config", "state"),
    [
        ({"loss.train": LOST, "grad.norm": NORM}, {}, "seen"),
        ({"rl.loss_value": LOST, "rl.reward": noisy(N, 0.02), "grad.norm": NORM}, {}, "seen"),
        ({"loss.train": LOST, "grad.norm": at(60, 120, value=np.nan)}, {}, "absent"),  # the training had it
        ({"loss.train": LOST, "grad.norm": at(120, value=900.0)}, {}, "absent"),  # a mean over good and bad micro-batches
        ({"loss.train": LOST, "grad.norm": at(60, 120, value=0.0)}, {}, "absent"),  # a step that was skipped
        ({"loss.train": LOST, "grad.norm": at(60, value=float(NORM[59]))}, {}, "absent"),  # left from the step before the skipped one
        ({"loss.train": np.where(np.arange(N) % 4, LOST, np.nan), "grad.norm": NORM}, {}, "absent"),  # too often for a slip
        ({"loss.train": np.where(np.arange(N) < 195, LOST, np.nan), "grad.norm": NORM}, {}, "absent"),  # it stays
        ({"loss.train": LOST, "grad.norm": NORM}, {"fp16": True}, "cannot tell"),
        ({"loss.train": LOST}, {}, "cannot tell"),
        ({"loss.train": noisy(N, 0.02), "grad.norm": NORM}, {}, "cannot tell"),
    ],
)
def test_a_loss_that_only_the_log_lost(metrics: dict[str, Floats], config: dict[str, bool], state: str) -> None:
    run = run_of(metrics, config=config)
    found = nan_beside_ordinary_gradient(Symptoms(run, tuple(nonfinite.detect(run))))
    assert found.state == state, found.text


@pytest.mark.parametrize(("norm", "top"), [(NORM, "logger_artefact"), (at(60, 120, value=np.nan), "nan_from_sample")])
def test_what_the_training_never_had_is_no_sample(norm: Floats, top: str) -> None:
    case = pipeline.analyze_run(run_of({"loss.train": LOST * np.linspace(1, 0.3, N), "grad.norm": norm}))
    named = [h.id for h in case.hypotheses if h.id != "unknown"]
    assert named[0] == top
    assert ("nan_from_sample" in named) == (top == "nan_from_sample")
