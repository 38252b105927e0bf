"""Signs of values that are not finite."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest

from forensics import pipeline
from forensics.detectors import nonfinite
from forensics.signs import calm_before_nan as calm
from forensics.signs import not_finite as signs
from forensics.signs import not_finite_at_once as at_once
from forensics.signs.sign import Sign, Symptoms
from tests.forensics.curves import run_of

T = np.arange(300)
RNG = np.random.default_rng(1)
LOSS = 1 + 2 * np.exp(-T / 60) + 0.02 * RNG.standard_normal(300)
NORM = 0.5 + 0.05 * RNG.standard_normal(300)


def bad(x: Any, where: slice | list[int], value: float = np.nan) -> Any:
    x = x.copy()
    x[where] = value
    return x


DEAD = bad(LOSS, slice(200, None))
ONCE = bad(LOSS, [200])
OFTEN = bad(LOSS, [100, 150, 200, 220, 250])
FROM_START = bad(LOSS, slice(0, None))
EXPLODES = bad(NORM * np.where(T > 190, 10.0 ** ((T - 190) / 3).clip(0, 20), 1.0), slice(200, None))
CLIMBS = bad(LOSS + np.where(T > 180, (T - 180) / 2, 0), slice(200, None))
FADES = bad(np.exp(-T / 20), slice(200, None))
BEFORE = bad(NORM, slice(195, None))
INFINITE = bad(NORM, [200], np.inf)
GREW = bad(EXPLODES, [200], np.inf)

SECOND = bad(LOSS, slice(1, None))
NO_NORM = bad(NORM, slice(0, None))

CASES: list[tuple[Callable[[Symptoms], Sign], str, Mapping[str, Any], Mapping[str, Any]]] = [
    (signs.nan_stays, "seen", {"rl.loss_policy": bad(NORM, slice(200, None)), "rl.reward": T / 10.0}, {}),
    (signs.nan_stays, "seen", {"loss.train": DEAD}, {}),
    (signs.nan_stays, "absent", {"loss.train": ONCE}, {}),
    (signs.nan_stays, "absent", {"loss.train": LOSS}, {}),
    (signs.nan_stays, "cannot tell", {"grad.norm": NORM}, {}),
    (signs.nan_stays, "cannot tell", {"loss.train": LOSS}, {"framework": "hf-trainer"}),
    (signs.nan_stays, "absent", {"loss.train": LOSS}, {"framework": "hf-trainer", "config": {"logging_nan_inf_filter": False}}),
    (signs.nan_passes, "seen", {"loss.train": ONCE}, {}),
    (signs.nan_passes, "absent", {"loss.train": OFTEN}, {}),
    (signs.nan_comes_and_goes, "seen", {"loss.train": OFTEN}, {}),
    (signs.nan_comes_and_goes, "absent", {"loss.train": ONCE}, {}),
    (signs.nan_from_first_value, "seen", {"loss.train": FROM_START}, {}),
    (signs.nan_from_first_value, "absent", {"loss.train": DEAD}, {}),
    (signs.nan_from_first_value, "cannot tell", {"loss.train": LOSS}, {}),
    (calm.nan_out_of_calm_gradient, "seen", {"loss.train": DEAD, "grad.norm": bad(NORM, slice(200, None))}, {}),
    (calm.nan_out_of_calm_gradient, "absent", {"loss.train": DEAD, "grad.norm": EXPLODES}, {}),
    (calm.nan_out_of_calm_gradient, "cannot tell", {"loss.train": DEAD}, {}),
    (calm.nan_out_of_calm_loss, "seen", {"loss.train": DEAD}, {}),
    (calm.nan_out_of_calm_loss, "absent", {"loss.train": CLIMBS}, {}),
    (calm.nan_out_of_calm_loss, "cannot tell", {"loss.train": LOSS}, {}),
    (calm.nan_out_of_calm_loss, "absent", {"loss.train": bad(np.r_[4.6, 4.4, 24.6, LOSS[3:]], slice(3, None))}, {}),  # as in two values
    (calm.nan_out_of_calm_loss, "cannot tell", {"loss.train": bad(np.r_[4.6, 4.4, 4.6, LOSS[3:]], slice(3, None))}, {}),
    (signs.gradient_nan_before_loss, "seen", {"loss.train": DEAD, "grad.norm": BEFORE}, {}),
    (signs.gradient_nan_before_loss, "absent", {"loss.train": DEAD, "grad.norm": NORM}, {}),
    (signs.gradient_nan_before_loss, "cannot tell", {"loss.train": DEAD, "grad.norm": BEFORE}, {"config": {"precision": "fp16"}}),
    (signs.gradient_infinite_loss_finite, "seen", {"loss.train": LOSS, "grad.norm": INFINITE}, {}),
    (signs.gradient_infinite_loss_finite, "absent", {"loss.train": LOSS, "grad.norm": GREW}, {}),
    (signs.gradient_infinite_loss_finite, "absent", {"loss.train": LOSS, "grad.norm": NORM}, {}),
    (signs.gradient_infinite_loss_finite, "cannot tell", {"loss.train": LOSS}, {}),
    (signs.gradient_nan_loss_finite, "seen", {"loss.train": LOSS, "grad.norm": BEFORE}, {}),
    (signs.gradient_nan_loss_finite, "absent", {"loss.train": DEAD, "grad.norm": bad(NORM, slice(200, None))}, {}),
    (signs.gradient_nan_loss_finite, "cannot tell", {"loss.train": LOSS}, {}),
    (signs.falls_to_zero_before_nan, "seen", {"loss.train": FADES}, {}),
    (signs.falls_to_zero_before_nan, "absent", {"loss.train": DEAD}, {}),
    (signs.falls_to_zero_before_nan, "cannot tell", {"loss.train": LOSS}, {}),
    (signs.nan_guard_raised, "cannot tell", {"loss.train": LOSS}, {}),
    (at_once.nan_in_first_updates, "seen", {"loss.train": FROM_START}, {}),
    (at_once.nan_in_first_updates, "seen", {"loss.train": FROM_START}, {"steps": range(10, 3010, 10)}),
    (at_once.nan_in_first_updates, "seen", {"loss.train": SECOND, "grad.norm": NO_NORM}, {}),
    (at_once.nan_in_first_updates, "absent", {"loss.train": FROM_START}, {"steps": range(500, 150500, 500)}),
    (at_once.nan_in_first_updates, "cannot tell", {"loss.train": FROM_START, "epoch": T + 1.0}, {"steps": range(1, 301)}),
    (at_once.nan_in_first_updates, "absent", {"loss.train": DEAD}, {}),
    (at_once.nan_in_first_updates, "cannot tell", {"loss.train": LOSS, "loss.aux": FROM_START}, {}),
    (at_once.nan_in_first_updates, "cannot tell", {"loss.train": LOSS, "grad.norm": NO_NORM, "loss_scale": T + 1.0}, {}),
    (at_once.gradient_nan_at_first_step, "seen", {"loss.train": SECOND, "grad.norm": NO_NORM}, {}),
    (at_once.gradient_nan_at_first_step, "absent", {"loss.train": LOSS, "grad.norm": bad(NORM, slice(0, 4), np.inf)}, {}),
    (at_once.gradient_nan_at_first_step, "absent", {"loss.train": FROM_START, "grad.norm": NO_NORM}, {}),
    (at_once.gradient_nan_at_first_step, "absent", {"loss.train": DEAD, "grad.norm": NORM}, {}),
    (at_once.gradient_nan_at_first_step, "cannot tell", {"loss.train": SECOND, "grad.norm": NO_NORM}, {"config": {"precision": "fp16"}}),
    (at_once.weights_outlive_nan, "seen", {"loss.train": DEAD, "loss.eval": LOSS}, {}),
    (at_once.weights_outlive_nan, "seen", {"loss.train": FROM_START, "loss.eval": LOSS}, {}),
    (at_once.weights_outlive_nan, "absent", {"loss.train": DEAD, "loss.eval": DEAD}, {}),
    (at_once.weights_outlive_nan, "cannot tell", {"loss.train": DEAD, "loss.eval": LOSS[:202]}, {}),  # of the first update alone
    (at_once.weights_outlive_nan, "cannot tell", {"loss.train": ONCE, "loss.eval": LOSS}, {}),
]


@pytest.mark.parametrize(("sign", "state", "metrics", "more"), CASES, ids=lambda v: getattr(v, "__name__", v if isinstance(v, str) else ""))
def test_what_is_not_finite(sign: Callable[[Symptoms], Sign], state: str, metrics: Mapping[str, Any], more: Mapping[str, Any]) -> None:
    run = run_of(metrics, **more)
    found = sign(Symptoms(run, tuple(pipeline.detect(run)[0])))
    assert found.state == state, found.text
    assert state != "seen" or {"first", "last"} <= found.numbers.keys()


@pytest.mark.parametrize(
    ("says", "state"), [("ValueError: loss is NaN at step 7", "seen"), ("KeyError: 'val'", "absent"), ("exit code 1", "cannot tell")]
)
def test_a_guard_is_told_from_other_exceptions(says: str, state: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from forensics.run.how_it_ended import Ending

    monkeypatch.setattr(signs, "ending", lambda run: Ending("exception", says, "train.log line 9"))
    found = signs.nan_guard_raised(Symptoms(run_of({"loss.train": LOSS}), ()))
    assert found.state == state and (state == "cannot tell" or found.place == "train.log line 9")


@pytest.mark.parametrize(
    ("says", "state"),
    [
        ("ValueError: Input X contains NaN.", "seen"),
        ("XGBoostError: Check failed: valid: Label contains NaN, infinity or a value too large.", "seen"),
        ("ValueError: loss is NaN at step 7", "absent"),
        ("ValueError: Expected parameter logits to satisfy the constraint, but found invalid values: tensor([[nan]])", "absent"),
        ("exit code 1", "cannot tell"),
    ],
)
def test_a_check_of_the_data_is_told_from_a_guard(says: str, state: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from forensics.run.how_it_ended import Ending

    monkeypatch.setattr(signs, "ending", lambda run: Ending("exception", says, "train.log line 9"))
    assert signs.data_check_raised(Symptoms(run_of({}), ())).state == state


def test_a_nan_that_the_spikes_also_tell_of_is_one_event() -> None:
    run = run_of({"loss.train": DEAD})
    s = Symptoms(run, tuple(pipeline.detect(run)[0]))
    assert {f.kind for f in signs.nan_stays(s).findings} == {"nonfinite", "loss_spike"}


@pytest.mark.parametrize(("where", "severity"), [([1, 2, 200], "info"), (slice(200, None), "warning"), (slice(0, None, 3), "warning")])
def test_a_gradient_norm_that_is_finite_again_was_a_skipped_step(where: Any, severity: str) -> None:
    (found,) = nonfinite.detect(run_of({"loss.train": LOSS, "grad.norm": bad(NORM, where)}))
    assert found.severity == severity


@pytest.mark.parametrize(("where", "count"), [(slice(None, 30), 0), ([0, 1, 200], 1), (slice(None), 1)])
def test_nan_before_the_first_finite_value_was_not_computed_yet(where: Any, count: int) -> None:
    assert len(list(nonfinite.detect(run_of({"loss.train": bad(LOSS, where)})))) == count


@pytest.mark.parametrize(
    ("rate", "count"), [(np.linspace(0, 1e-3, len(LOSS)), 1), (np.full(len(LOSS), 1e-3), 0)], ids=["warms up", "constant"]
)
def test_nan_while_the_rate_warms_up_is_of_updates(rate: Any, count: int) -> None:
    assert len(list(nonfinite.detect(run_of({"loss.train": bad(LOSS, slice(None, 30)), "lr": rate})))) == count


def test_a_launch_that_was_nan_from_its_first_value_is_told_after_a_new_one() -> None:
    run = run_of({"loss.train": bad(LOSS, slice(None, 30))}, attempts=[0] * 30 + [1] * (len(LOSS) - 30))
    assert [f.facts.count for f in nonfinite.detect(run)] == [30]


@pytest.mark.parametrize(("score", "severity"), [(0.1 + T / 400, "info"), (0.1 + 0 * T, "critical"), (None, "critical")])
def test_an_evaluation_loss_that_is_no_number_while_its_scores_get_better_is_computed_wrong(score: Any, severity: str) -> None:
    run = run_of({"loss.train": LOSS, "loss.eval": 0 * LOSS + np.inf, **({} if score is None else {"other/val_map": score})})
    assert [f.severity for f in nonfinite.detect(run)] == [severity]
