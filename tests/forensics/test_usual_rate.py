"""Which optimizer a config means that does not name one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from forensics.detectors import peak_rate
from forensics.errors import CannotTell
from forensics.run.recipe import recipe
from forensics.run.usual_rate import family, usual
from tests.forensics.curves import noisy, run_of


@pytest.mark.parametrize(
    ("config", "kind"),
    [
        ({"betas": [0.9, 0.999]}, "adam"),
        ({"b1": 0.9, "b2": 0.999, "eps": 1e-8}, "adam"),
        ({"optimizer": "sgd", "b2": 0.999}, "sgd"),
        ({"b1": 0.02, "b2": 0.01}, None),  # biases
        ({"b2": "bf16"}, None),
        ({"lr": 0.1}, None),
    ],
)
def test_settings_that_only_adam_has_name_it(config: dict[str, Any], kind: str | None) -> None:
    assert family(run_of({"loss.train": noisy(20, 0.01)}, config=config)) == kind


def test_a_mixer_has_no_attention() -> None:
    found = usual(run_of({"loss.train": noisy(20, 0.01)}, config={"b2": 0.999, "model": "mixer_s"}))
    assert found.low == found.high == 1e-3


@pytest.mark.parametrize(("clip", "norm", "high"), [(0.02, 0.4, 2.0), (1.0, 0.4, 0.1), (None, 0.4, 0.1)])
def test_a_clip_below_the_gradient_raises_what_is_usual_for_sgd(clip: float | None, norm: float, high: float) -> None:
    config = {"optimizer": "sgd", **({"clip": clip} if clip else {})}
    found = usual(run_of({"loss.train": noisy(20, 0.01), "grad.norm": np.full(20, norm)}, config=config))
    assert found.low == 0.1
    assert found.high == pytest.approx(high)


@pytest.mark.parametrize(("clip", "known"), [(0.25, False), (0, True)])
def test_no_rate_of_sgd_is_usual_where_gradients_of_unknown_norm_are_clipped(clip: float, known: bool) -> None:
    run = run_of({"loss.train": noisy(20, 0.01)}, config={"optimizer": "sgd", "lr": 20.0, "grad_clip": clip})
    assert (usual(run).high is not None) == known
    assert (recipe(run).ratio is not None) == known
    if known:
        assert [f.facts.ratio for f in peak_rate.detect(run)] == [pytest.approx(200)]
    else:
        with pytest.raises(CannotTell, match="gradients are clipped"):
            list(peak_rate.detect(run))
