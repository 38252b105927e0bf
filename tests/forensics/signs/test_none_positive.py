"""Nothing is called positive: scores of zero beside a good ranking, and what looks like it."""

from __future__ import annotations

import numpy as np
import pytest

from forensics.run.series import Floats
from forensics.signs.none_positive import no_answer_is_positive
from forensics.signs.sign import Symptoms
from tests.forensics.curves import run_of

N = 20
NONE, SOME = np.zeros(N), np.linspace(0, 0.6, N)
HIGH, COIN = np.linspace(0.8, 0.96, N), np.full(N, 0.5)


@pytest.mark.parametrize("tag", ["eval_f1", "val/recall", "F1", "valid_Precision", "Recall:use_weights=true", "test_sensitivity"])
@pytest.mark.parametrize("beside", ["acc.eval", "other/val_auc", "other/test/AUROC"])
@pytest.mark.parametrize(("score", "other", "state"), [(NONE, HIGH, "seen"), (SOME, HIGH, "absent"), (NONE, COIN, "absent")])
def test_scores_of_zero(tag: str, beside: str, score: Floats, other: Floats, state: str) -> None:
    assert no_answer_is_positive(Symptoms(run_of({f"other/{tag}": score, beside: other}), ())).state == state


@pytest.mark.parametrize(
    "tag", ["recall@10", "recall_0", "precision_at_5", "rouge_f1", "box_recall", "average_precision", "mixed_precision", "mAP"]
)
def test_scores_of_something_else(tag: str) -> None:
    assert no_answer_is_positive(Symptoms(run_of({f"other/{tag}": NONE, "acc.eval": HIGH}), ())).state == "cannot tell"


def test_nothing_beside_it() -> None:
    assert no_answer_is_positive(Symptoms(run_of({"other/eval_f1": NONE}), ())).state == "cannot tell"
    both = run_of({"other/eval_f1": NONE, "other/eval_recall": SOME, "acc.eval": HIGH})
    assert no_answer_is_positive(Symptoms(both, ())).state == "absent"  # one that is not zero tells that some are
    known = run_of({"other/train/f1": SOME, "other/test/f1": NONE, "acc.eval": HIGH})
    assert no_answer_is_positive(Symptoms(known, ())).state == "seen"
