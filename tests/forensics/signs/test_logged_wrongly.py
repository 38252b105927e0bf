"""Signs of what the logging made: units, filters, values left out, sums for means."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from curves import run_of
from runs import loss, read

from forensics.detectors import logger_artefact
from forensics.run.series import Floats, series
from forensics.signs import logged_wrongly
from forensics.signs.sign import ABSENT, CANNOT_TELL, SEEN, Sign, Symptoms
from parsers.tables import Run

SAMPLES = Path(__file__).resolve().parents[3] / "samples"
N = 200
CURVE = np.array([loss(i) for i in range(N)])
FALLS = math.log(50) * np.exp(-np.arange(N) / 400) * (1 + 0.002 * (np.arange(N) % 5))
FLAT = np.linspace(0.9, 0.7, N)
LIFTED = np.where(np.arange(N) % 13 == 7, 8, 1) * CURVE
NAN_LATE = np.where(np.arange(N) < 150, CURVE, np.nan)


def looked(sign: str, run: Run) -> Sign:
    findings = tuple(logger_artefact.detect(run)) if series(run, "loss.train") is not None else ()
    found: Sign = getattr(logged_wrongly, sign)(Symptoms(run, findings))
    assert found.text.endswith("."), found
    return found


@pytest.mark.parametrize(("sign", "metrics", "config", "framework", "state"), [
    ("unit_artefact", {"loss.train": FALLS / math.log(2)}, {"vocab_size": 50}, None, SEEN),
    ("unit_artefact", {"loss.train": FALLS}, {"vocab_size": 50}, None, ABSENT),
    ("unit_artefact", {"loss.train": FALLS}, {}, None, CANNOT_TELL),
    ("loss_times_constant", {"loss.train": 32 * FALLS}, {"vocab_size": 50, "batch_size": 32}, None, SEEN),
    ("loss_times_constant", {"loss.train": 32 * FALLS, "loss.eval": FALLS}, {"global_batch": 64, "world_size": 2}, None, SEEN),
    ("loss_times_constant", {"loss.train": FALLS, "loss.eval": FALLS}, {"batch_size": 32}, None, ABSENT),
    ("loss_times_constant", {"loss.train": 16 * FALLS, "loss.eval": FALLS}, {"vocab_size": 50, "batch_size": 3}, None, SEEN),  # of both
    ("loss_times_constant", {"loss.train": 16 * FALLS, "loss.eval": 4 * FALLS}, {"vocab_size": 50, "batch_size": 3}, None, ABSENT),
    ("loss_times_constant", {"loss.train": 8 * math.log(2) * FLAT / 0.9, "pref.margin": 1 - FLAT}, {"grad_accum": 8, "vocab_size": 50}, None, SEEN),
    ("loss_times_constant", {"loss.train": math.log(2) * FLAT / 0.9, "pref.margin": 1 - FLAT}, {"grad_accum": 8, "vocab_size": 50}, None, ABSENT),
    ("loss_times_constant", {"loss.train": FALLS / 2, "loss.eval": FALLS}, {}, None, SEEN),  # divided twice
    ("loss_times_constant", {"loss.train": FALLS / np.linspace(1, 4, N), "loss.eval": FALLS}, {}, None, ABSENT),  # learnt by heart
    ("loss_times_constant", {"loss.train": FALLS / 1.5, "loss.eval": FALLS}, {}, None, ABSENT),
    ("loss_times_constant", {"loss.train": 20 * FLAT, "loss.eval": FLAT}, {"batch_size": 32}, None, ABSENT),
    ("loss_times_constant", {"loss.train": 32 * FLAT, "loss.eval": FLAT}, {}, None, CANNOT_TELL),
    ("loss_times_constant", {"loss.train": 32 * FALLS}, {"batch_size": 32}, None, CANNOT_TELL),
    ("nan_filter_made_value", {"loss.train": FALLS}, {}, None, CANNOT_TELL),
    ("nan_filter_made_value", {"loss.train": FALLS, "grad.norm": CURVE}, {}, "hf-trainer", ABSENT),
    ("trainer_filter_at_work", {"loss.train": CURVE}, {}, "hf-trainer", SEEN),
    ("trainer_filter_at_work", {"loss.train": CURVE}, {"logging_nan_inf_filter": False}, "hf-trainer", ABSENT),
    ("trainer_filter_at_work", {"loss.train": NAN_LATE}, {}, "hf-trainer", ABSENT),
    ("trainer_filter_at_work", {"loss.train": CURVE}, {}, "nanogpt", ABSENT),
    ("trainer_filter_at_work", {"loss.train": CURVE}, {}, None, CANNOT_TELL),
    ("nan_in_running_average", {"loss.train": NAN_LATE, "grad.norm": CURVE}, {}, None, SEEN),
    ("nan_in_running_average", {"loss.train": CURVE}, {}, None, ABSENT),
    ("nan_in_running_average", {"loss.train": NAN_LATE}, {}, None, CANNOT_TELL),
    ("nan_in_running_average", {"loss.train": NAN_LATE[:152], "grad.norm": CURVE[:152]}, {}, None, CANNOT_TELL),
    ("nan_in_running_average", {"loss.train": NAN_LATE, "grad.norm": NAN_LATE}, {}, None, ABSENT),
    ("nan_filter_made_value", {"grad.norm": CURVE}, {}, "hf-trainer", CANNOT_TELL),
    ("clipped_norm_logged", {"loss.train": CURVE, "grad.norm": np.minimum(CURVE, 2.0)}, {"grad_clip": 2.0}, None, SEEN),
    ("clipped_norm_logged", {"loss.train": CURVE, "grad.norm": CURVE}, {"grad_clip": 2.0}, None, ABSENT),
    ("clipped_norm_logged", {"loss.train": CURVE, "grad.norm": CURVE}, {}, None, CANNOT_TELL),
    ("run_mean_logged", {"loss.train": CURVE}, {}, None, ABSENT),
    ("loss_dips_at_even_distances", {"loss.train": np.where(np.arange(N) % 20 == 7, 0, CURVE)}, {}, None, SEEN),
    ("loss_dips_at_even_distances", {"loss.train": CURVE}, {}, None, ABSENT),
    ("loss_dips_at_even_distances", {"loss.train": CURVE[:12]}, {}, None, CANNOT_TELL),
    ("loss_dips_at_even_distances", {"loss.train": LIFTED, "grad.norm": CURVE}, {}, None, SEEN),
    ("loss_dips_at_even_distances", {"loss.train": LIFTED, "grad.norm": LIFTED}, {}, None, ABSENT),  # one batch of each epoch
    ("loss_dips_at_even_distances", {"loss.train": LIFTED, "grad.norm": 1 + 0 * CURVE}, {}, None, ABSENT),  # clipped to 1 before it was logged
    ("loss_dips_at_even_distances", {"loss.train": LIFTED}, {}, None, ABSENT),  # nothing tells them from hard batches
])  # fmt: skip
def test_numbers(sign: str, metrics: dict[str, Floats], config: dict[str, Any], framework: str | None, state: str) -> None:
    found = looked(sign, run_of(metrics, config=config, framework=framework))
    assert found.state == state, found


def test_the_factor_is_the_setting_and_has_its_place() -> None:
    found = looked("loss_times_constant", run_of({"loss.train": 32 * FALLS}, config={"vocab_size": 50, "batch_size": 32}))
    assert "batch_size is 32" in found.text and found.where == "config.json"


def test_a_value_of_the_trainers_filter() -> None:
    found = looked("nan_filter_made_value", read(SAMPLES / "phantom_spike_trainer"))
    assert found.state == SEEN and "8 of 8 micro-batches of step 480" in found.text
