"""One class for every input, told by what was logged of each class."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from forensics.pipeline import judge
from forensics.run.scores import scores
from forensics.signs.one_class import one_class_gets_all
from forensics.signs.sign import Symptoms
from tests.forensics.curves import run_of

N = 12
ALL, NONE, MIXED = np.full(N, 1.0), np.zeros(N), np.linspace(0.2, 0.7, N)
SETTLES = np.where(np.arange(N) < 5, MIXED, 0.0)


@pytest.mark.parametrize(
    ("metrics", "state"),
    [
        ({"other/val_recall_0": ALL, "other/val_recall_1": NONE}, "seen"),
        ({"other/val_recall_0": ALL, "other/val_recall_1": SETTLES, "other/val_recall_2": NONE}, "seen"),
        ({"other/val_recall_0": ALL, "other/val_recall_1": MIXED}, "absent"),
        ({"other/val_recall_0": NONE, "other/val_recall_1": NONE}, "absent"),  # nothing is found at all: another matter
        ({"other/val_recall_5": ALL, "other/val_recall_10": NONE}, "cannot tell"),  # of the best five and ten
        ({"acc.eval": ALL - 0.1, "other/val_macro_f1": 2 * 0.9 / 1.9 / 4 * ALL}, "seen"),  # of four classes one is named
        ({"acc.eval": MIXED, "other/val_macro_f1": 2 * MIXED / (1 + MIXED) / 3}, "seen"),
        ({"acc.eval": ALL - 0.1, "other/val_f1": 2 * 0.9 / 1.9 * ALL}, "cannot tell"),  # of the positives
        ({"acc.eval": MIXED, "other/val_macro_f1": MIXED - 0.02}, "cannot tell"),
        ({"other/val_n_pred_families": np.ones_like(ALL)}, "seen"),
        ({"other/val/unique_preds": np.where(np.arange(len(ALL)) < 3, 2.0, 1.0)}, "seen"),
        ({"other/val_n_pred_families": np.ones_like(ALL) + np.arange(len(ALL)) % 2}, "cannot tell"),
        ({"other/val_n_pred_rate": np.ones_like(ALL)}, "cannot tell"),
        ({"other/val_pred_pos_rate": NONE}, "seen"),
        ({"other/val_pred_pos_rate": MIXED}, "absent"),
        ({"other/val_pos_rate": NONE}, "seen"),
        ({"other/pos_rate": NONE}, "cannot tell"),  # of whatever data
        ({"other/val_macro_f1": np.r_[0.02, NONE[1:]], "loss.eval": np.linspace(0.6, 0.2, N)}, "seen"),
        ({"other/val_macro_f1": np.r_[0.02, NONE[1:]], "loss.eval": np.linspace(0.6, 0.4, N)}, "cannot tell"),
        ({"other/val_pred_fg_frac": np.full(N, 0.014), "other/val_dice": ALL - 0.1}, "absent"),  # a rare class, all found
        ({"other/val_pred_fg_frac": np.full(N, 0.014)}, "seen"),
        ({"other/Pseudo dice/0": NONE, "other/Pseudo dice/1": SETTLES}, "seen"),
        ({"other/Pseudo dice/0": MIXED, "other/Pseudo dice/1": NONE}, "absent"),  # a class that is hard, or rare
        ({"other/val/iou_dent": NONE, "other/val/iou_scratch": NONE, "other/val/miou": MIXED}, "seen"),
        ({"other/val/iou_dent": NONE, "other/val/iou_background": ALL, "other/val/iou_mean": MIXED}, "cannot tell"),
        ({"other/current mean dice": SETTLES, "other/best mean dice": ALL}, "seen"),
        ({"other/val_iou": SETTLES}, "seen"),
        ({"other/iou of car": SETTLES}, "cannot tell"),  # of one class of several
        ({"other/current mean dice": MIXED}, "cannot tell"),
        ({"other/current mean dice": NONE}, "cannot tell"),  # answers and labels that do not fit, or nothing learnt
        ({"other/val/iou_dent": NONE, "other/val/iou_scratch": MIXED}, "absent"),
        ({"other/pred_fg": NONE, "other/gt_fg": MIXED}, "seen"),
        ({"other/recall": NONE, "acc.eval": ALL * 0.97}, "seen"),  # of few positives none is found
        (
            {"other/val_recall": NONE, "other/recall": np.r_[0.02, NONE[1:]], "acc.eval": ALL * 0.97},
            "seen",
        ),  # of training: a mean with the first steps
        ({"other/val_recall": MIXED, "other/recall": NONE, "acc.eval": ALL * 0.97}, "cannot tell"),
        ({"other/recall": NONE, "acc.eval": 0.6 + 0.3 * MIXED}, "cannot tell"),  # where no answer is positive, as many are right each time
        ({"other/val_auc": 0.5 * ALL}, "seen"),
        ({"other/val_auc": 0.5 + 0.004 * (np.arange(N) % 3 - 1)}, "cannot tell"),  # an order, and by chance
        ({"other/recall": NONE, "acc.eval": ALL * 0.03}, "cannot tell"),  # nothing is right: another matter
        ({"other/recall": MIXED, "acc.eval": ALL * 0.97}, "cannot tell"),
        ({"other/val/P_recall": NONE, "other/val/S_recall": MIXED, "loss.eval": 1.1 - MIXED}, "seen"),  # of one kind none
        ({"other/val/P_recall": NONE, "loss.eval": 2 - MIXED}, "cannot tell"),  # the loss hardly moves: it may be the beginning
        ({"other/val/P_recall": SETTLES, "loss.eval": 1.1 - MIXED}, "cannot tell"),
        ({"other/recall_at_10": NONE, "acc.eval": ALL * 0.97}, "cannot tell"),
        ({"loss.train": MIXED}, "cannot tell"),
    ],
)
def test_each_state(metrics: dict[str, Any], state: str) -> None:
    assert one_class_gets_all(Symptoms(run_of(metrics), ())).state == state


def test_the_hits_of_a_class_are_no_score_of_the_model() -> None:
    assert not scores(run_of({"other/val_recall_0": ALL, "other/val_recall_1": NONE}))
    assert [s.tag for s in scores(run_of({"other/val_recall_10": MIXED}))] == ["val_recall_10"]


@pytest.mark.parametrize(("recall", "overfits"), [(NONE, False), (MIXED, True)])
def test_a_constant_answer_is_nothing_learnt_by_heart(recall: Any, overfits: bool) -> None:
    """However the evaluation loss of it turns up."""
    t = np.arange(N)
    held_out = {"loss.eval": 0.13 + 0.03 * np.abs(t - 1) ** 0.5, "acc.eval": ALL * 0.975, "other/val_recall": recall}
    case = judge(run_of({"loss.train": 6 * np.exp(-t / 2) + 0.05, **held_out}, interval=43))
    assert any(h.id == "overfitting" for h in case.hypotheses) == overfits
