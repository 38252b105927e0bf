"""Signs of the first passes over the data, in which the training loss is one of held-out data."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest

from forensics.signs import held_out_first_passes as F
from forensics.signs.sign import Sign, Symptoms
from tests.forensics.curves import run_of

T = np.arange(60)
FALLS = 2.3 * np.exp(-T / 12)
FLAT = 2.3 + 0.001 * np.sin(T)
LATE = np.where(T < 20, 2.3, 2.3 * np.exp(-(T - 19) / 6))  # nothing is learnt before the second pass
PASS, PASSES = {"epoch": T / 60}, {"epoch": T / 20}
CLASSES: dict[str, Any] = {"config": {"num_classes": 10, "a": 1}}


def both(train: Any, held: Any) -> dict[str, Any]:
    return {"loss.train": train, "loss.eval": held}


CASES: list[tuple[Callable[[Symptoms], Sign], str, Mapping[str, Any], Mapping[str, Any]]] = [
    (F.first_pass_learnt_evaluation_not, "seen", both(FALLS, FLAT) | PASS, CLASSES),
    (F.first_pass_learnt_evaluation_not, "seen", both(FALLS, FLAT / 2) | PASS, CLASSES),  # known at once, and no more later
    (F.first_pass_learnt_evaluation_not, "absent", both(FALLS, FALLS) | PASS, CLASSES),
    (F.first_pass_learnt_evaluation_not, "absent", both(FLAT, FLAT) | PASS, CLASSES),
    (F.first_pass_learnt_evaluation_not, "cannot tell", both(FALLS, FLAT) | {"epoch": T / 3}, CLASSES),  # by heart
    (F.first_pass_learnt_evaluation_not, "cannot tell", both(FALLS, FLAT), CLASSES),
    (F.evaluation_apart_from_first_pass, "seen", both(FALLS, FLAT / 2) | PASS, {}),
    (F.evaluation_apart_from_first_pass, "absent", both(FALLS, FALLS + 0.3) | PASS, {}),  # somewhat harder
    (F.evaluation_apart_from_first_pass, "absent", both(FALLS, 3 * FALLS) | PASS, {}),  # a sum over more: it falls, too
    (F.evaluation_apart_from_first_pass, "absent", both(FALLS, np.where(T < 40, FLAT / 2, FALLS)) | PASS, {}),  # harder samples come later
    (F.evaluation_apart_from_first_pass, "seen", both(LATE, FLAT) | PASSES, {}),
    (F.evaluation_apart_from_first_pass, "absent", both(LATE, FLAT) | PASSES, {"config": {"pretrained": "base"}}),  # knows by heart sooner
    (F.evaluation_apart_from_first_pass, "absent", both(FALLS, np.where(T < 20, FALLS, FALLS[20])) | PASSES, {}),  # overfits from then on
    (F.evaluation_apart_from_first_pass, "cannot tell", both(FALLS, FLAT), {}),
    (F.evaluation_apart_from_first_pass, "cannot tell", {"loss.train": FALLS} | PASS, {}),
    (F.answers_permuted, "seen", {"loss.train": FALLS, "acc.eval": 0.03 + T / 6000}, CLASSES),
    (F.answers_permuted, "seen", {"loss.train": FALLS, "acc.eval": np.where(T < 20, T / 100, 0.114)}, CLASSES),
    (F.answers_permuted, "absent", {"loss.train": FALLS, "acc.eval": 0.28 + T / 6000}, CLASSES),
    (F.answers_permuted, "cannot tell", {"loss.train": FLAT, "acc.eval": 0 * T}, CLASSES),
    (F.tokens_of_a_vocabulary, "seen", {"loss.train": FALLS}, {"config": {"vocab_size": 128}}),
    (F.tokens_of_a_vocabulary, "cannot tell", {"loss.train": FALLS}, CLASSES),
]


@pytest.mark.parametrize(("look", "state", "metrics", "more"), CASES, ids=[f"{c[0].__name__}-{c[1]}" for c in CASES])
def test_each_state(look: Callable[[Symptoms], Sign], state: str, metrics: Mapping[str, Any], more: Mapping[str, Any]) -> None:
    found = look(Symptoms(run_of(metrics, **more), ()))
    assert found.state == state, found.text
    assert found.text.endswith(".")


LOOKS = [F.first_pass_learnt_evaluation_not, F.evaluation_apart_from_first_pass, F.answers_permuted, F.tokens_of_a_vocabulary]


@pytest.mark.parametrize("look", LOOKS)
@pytest.mark.parametrize("x", [np.zeros(0), np.array([1.0]), np.full(30, np.nan), np.zeros(30)], ids=["empty", "one", "nan", "zero"])
def test_odd_runs_raise_nothing(look: Callable[[Symptoms], Sign], x: Any) -> None:
    run = run_of({"loss.train": x, "loss.eval": x, "acc.eval": x, "epoch": x}, **CLASSES)
    assert look(Symptoms(run, ())).state in ("absent", "cannot tell", "seen")
