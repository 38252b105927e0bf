"""A first row that a meter divided by a whole interval, and a loss that the first update drove up."""

from pathlib import Path

import numpy as np
import pytest

import forensics


def _titles(folder: Path, first: float, norm: float, every: int) -> list[str]:
    rng = np.random.default_rng(0)
    rows = [(47700, first, norm)] + [(47700 + every * i, rng.normal(13.8, 0.2), rng.normal(0.75, 0.02)) for i in range(1, 120)]
    path = folder / "train.out"
    path.write_text("".join(f"step {s} | loss {x:.4f} | lr 1.79e-04 | grad {g:.3f}\n" for s, x, g in rows))
    return [f["title"] for f in forensics.analyze(path).to_json()["findings"] if f["kind"] == "divergence"]


@pytest.mark.parametrize(
    ("first", "norm", "every", "fires"),
    [
        (1.4684, 0.075, 10, False),  # both are a tenth of what follows, and ten steps lie between two rows
        (1.4684, 0.75, 10, True),  # the gradient norm is as it was: the loss was driven up
        (1.4684, 0.075, 50, True),  # off by another factor than a meter's
    ],
)
def test_a_first_row_of_a_part_of_an_interval_is_no_level(tmp_path: Path, first: float, norm: float, every: int, fires: bool) -> None:
    assert bool(_titles(tmp_path, first, norm, every)) is fires
