"""A score of averaged weights that stays where it was, beside one that follows."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from forensics.run.series import Floats
from forensics.signs.averages_apart import average_outlasts_run, average_stands_still
from forensics.signs.sign import Symptoms
from tests.forensics.curves import run_of
from tests.forensics.runs import make, read

AT = np.arange(6)
STILL, FALLS = 1150.0 + 10 * np.sin(AT), 3 + 20 * np.exp(-AT)


@pytest.mark.parametrize(
    ("metrics", "state"),
    [
        ({"other/sample_fd": STILL, "other/sample_fd_raw": FALLS}, "seen"),
        ({"other/val_mse_ema": STILL, "other/val_mse": FALLS}, "seen"),
        ({"other/sample_fd": FALLS * 0.9, "other/sample_fd_raw": FALLS}, "absent"),
        ({"other/sample_fd": 1000 * np.exp(-AT), "other/sample_fd_raw": FALLS}, "absent"),  # it follows late
        ({"other/acc_ema": 0.80 + 0.001 * np.sin(AT), "other/acc": 0.9 + 0 * AT}, "absent"),
        ({"other/sample_fd": STILL}, "cannot tell"),
        ({"other/sample_fd": STILL[:2], "other/sample_fd_raw": FALLS[:2]}, "cannot tell"),
    ],
)
def test_an_average_that_stands_still(metrics: dict[str, Floats], state: str) -> None:
    found = average_stands_still(Symptoms(run_of(metrics), ()))
    assert found.state == state, found.text
    assert found.text.endswith(".")


@pytest.mark.parametrize(
    ("decay", "last", "state"), [(0.9999, 3.9, "seen"), (0.9, 3.9, "absent"), (0.9999, 2.0, "absent"), (None, 3.9, "cannot tell")]
)
def test_an_average_that_is_longer_than_the_run(decay: float | None, last: float, state: str, tmp_path: Path) -> None:
    rows = [{"step": i, "loss": 3 - i / 100} | ({"val_loss_ema": 4 + (last - 4) * i / 180} if i % 20 == 0 else {}) for i in range(200)]
    run = read(make(tmp_path, rows, {"ema_decay": decay} if decay else None))
    found = average_outlasts_run(Symptoms(run, ()))
    assert found.state == state, found.text
    assert found.text.endswith(".")
