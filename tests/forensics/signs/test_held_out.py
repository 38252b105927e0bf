"""Signs of the evaluation, beside training."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import forensics
from forensics.detectors import dataset_loss, eval_jump, eval_noise, eval_shadow, loss_spike, train_eval_gap
from forensics.errors import CannotTell
from forensics.evidence import found as finding
from forensics.pipeline import examined
from forensics.signs import held_out as H
from forensics.signs import held_out_chance as C
from forensics.signs import held_out_first_passes as P
from forensics.signs import held_out_level as L
from forensics.signs.sign import Sign, Symptoms
from tests.forensics.curves import run_of

T = np.arange(60)
RNG = np.random.default_rng(2)
FALLS = 0.5 + 2 * np.exp(-T / 20) + 0.005 * RNG.standard_normal(60)
TURNS = np.where(T < 20, FALLS, FALLS[20] + (T - 20) / 40)
STEPS = FALLS + np.where(T >= 30, 1.0, 0)
FLAT = 2.3 + 0.001 * RNG.standard_normal(60)
ROTE = 2.3 * np.exp(-T / 12)
FIRST = np.where(T < 10, 10.8 * np.exp(-T / 7), 2.7 * np.exp(-(T - 9) / 12))
JUMPS = FALLS + np.where((T >= 21) & (T < 45), 6.0 - (T - 20) / 5, 0)
ACC = np.linspace(0.3, 0.7, 60)
CLASSES: dict[str, Any] = {"config": {"num_classes": 10, "a": 1}}
EPOCHS = T * 0.5
LEARNT = 3 * np.exp(-T / 8) + 0.05


def rarely(x: Any) -> Any:
    """Every sixth value."""
    return np.where(T % 6 == 5, x, np.nan)


def symptoms(metrics: Mapping[str, Any], more: Mapping[str, Any]) -> Symptoms:
    run = run_of(metrics, **{k: v for k, v in more.items() if k != "findings"})
    out = list(more.get("findings", ()))
    for detector in (dataset_loss, eval_jump, eval_noise, eval_shadow, loss_spike, train_eval_gap):
        try:
            out += detector.detect(run)
        except CannotTell:
            continue
    return Symptoms(run, tuple(out))


def both(train: Any, held: Any) -> dict[str, Any]:
    return {"loss.train": train, "loss.eval": held}


ALONE = eval_jump.Facts(30, 0.5, 0.8, 0.3, "acc.eval", True)
HITS = {"findings": [finding(ALONE, "acc steps from 0.5 to 0.8 at step 30", (30, 59), "info")]}
OTHER = {"findings": [finding(eval_shadow.Facts(None, None, 0.1, other=3.0), "test/loss is 3", (0, 59), "warning")]}

AT_ONCE = 1.5 + T / 40
SUDDEN = AT_ONCE + np.where(T >= 10, 0.5, 0)
DROPPED: dict[str, Any] = {"config": {"dropout": 0.5}}
FIRST_PASS = {"epoch": T / 60}

CASES: list[tuple[Callable[[Symptoms], Sign], str, Mapping[str, Any], Mapping[str, Any]]] = [
    (P.eval_like_training_with_dropout, "seen", both(FALLS, FALLS) | FIRST_PASS, DROPPED),
    (P.eval_like_training_with_dropout, "absent", both(FALLS, 0.9 * FALLS) | FIRST_PASS, DROPPED),
    (P.eval_like_training_with_dropout, "absent", both(FALLS, 1.2 * FALLS) | FIRST_PASS, DROPPED),  # another distribution
    (P.eval_like_training_with_dropout, "cannot tell", both(FALLS, FALLS) | FIRST_PASS, {"config": {"dropout": 0.1}}),
    (P.eval_like_training_with_dropout, "cannot tell", both(FALLS, FALLS) | FIRST_PASS, {}),
    (P.eval_like_training_with_dropout, "cannot tell", both(FALLS, FALLS), DROPPED),
    (P.eval_like_training_with_dropout, "cannot tell", both(FALLS, FALLS) | {"epoch": T}, DROPPED),  # one evaluation in the first pass
    (H.eval_turned_up, "seen", both(FALLS, TURNS), {}),
    (H.eval_turned_up, "absent", both(FALLS, FALLS), {}),
    (H.eval_turned_up, "absent", both(TURNS, TURNS), {}),
    (H.eval_turned_up, "cannot tell", {"loss.train": FALLS}, {}),
    (H.eval_turned_up, "cannot tell", both(FALLS[:4], TURNS[:4]), {}),
    (H.train_falls_on, "seen", both(FALLS, TURNS), {}),
    (H.train_falls_on, "absent", both(np.where(T < 30, 1, 2), TURNS), {}),
    (H.train_falls_on, "cannot tell", both(FALLS, FALLS), {}),
    (C.eval_never_better, "seen", both(ROTE, FLAT), {}),
    (C.eval_never_better, "absent", both(FALLS, FALLS), {}),
    (C.eval_never_better, "cannot tell", both(FLAT, FLAT), {}),
    (C.eval_never_better, "seen", {"loss.train": ROTE, "other/val_ndcg": 0.2 + FLAT / 1000}, {}),
    (C.eval_never_better, "cannot tell", {"loss.train": ROTE, "other/val_psnr": 26 + ACC}, {}),  # half a decibel is not 2 % of anything
    (
        C.eval_never_better,
        "cannot tell",
        both(ROTE, np.where(T >= 40, 2.5 + T / 60, np.nan)),
        {},
    ),  # evaluated when all had been learnt by heart
    (C.eval_never_better, "cannot tell", both(ROTE, AT_ONCE), {}),  # it had learnt what holds for other data by then
    (H.eval_turned_up, "seen", both(ROTE, AT_ONCE), {}),
    (H.eval_turned_up, "absent", both(ROTE, AT_ONCE + 1.2), {}),  # never below what training began at
    (H.eval_turned_up, "seen", both(ROTE, SUDDEN), {}),  # the jump makes less than half of the rise
    (L.accuracy_is_one_class, "absent", both(ROTE, AT_ONCE) | {"acc.eval": np.full(60, 0.713)}, {}),  # a constant learns nothing by heart
    (C.eval_at_chance_throughout, "seen", both(ROTE, FLAT), CLASSES),
    (C.eval_at_chance_throughout, "seen", {"acc.eval": np.full(60, 0.101)}, CLASSES),
    (C.eval_at_chance_throughout, "seen", {"acc.eval": 0.1 + 0.01 * np.sin(T) + 0.03 * (T == 20)}, CLASSES),  # the best of many is luck
    (C.eval_at_chance_throughout, "absent", {"acc.eval": np.linspace(0.1, 0.135, 60)}, CLASSES),
    (C.eval_at_chance_throughout, "absent", both(FALLS, FALLS), CLASSES),
    (C.eval_at_chance_throughout, "cannot tell", both(FALLS, FLAT), {}),
    (
        C.eval_at_chance_throughout,
        "seen",
        {"loss.eval": 2.28 + 0.01 * np.arange(6), "acc.eval": np.array([0.14, 0.15, 0.14, 0.08, 0.09, 0.1])},
        {},
    ),
    (C.eval_at_chance_throughout, "cannot tell", {"loss.eval": 2.28 + 0.01 * np.arange(6), "acc.eval": np.full(6, 0.3)}, {}),
    (
        C.eval_at_chance_throughout,
        "cannot tell",
        {"loss.eval": 0.3 + 0.01 * np.arange(6), "acc.eval": np.full(6, 0.47)},
        {},
    ),  # of something else
    # ln 2 at best and half of the answers right: two classes, whatever config names
    (C.eval_at_chance_throughout, "seen", {"loss.eval": 0.693 + 0.3 * np.exp(-T / 9), "acc.eval": 0.5 + 0.01 * np.sin(T)}, {}),
    (
        C.eval_at_chance_throughout,
        "seen",
        {"loss.eval": 0.8 + 0.3 * np.exp(-T / 9), "acc.eval": 0.5 + 0.01 * np.sin(T)},
        {},
    ),  # worse than a coin
    (C.eval_at_chance_throughout, "cannot tell", {"loss.eval": 1.8 + 0.3 * np.exp(-T / 9), "acc.eval": 0.47 + 0.01 * np.sin(T)}, {}),
    (C.eval_at_chance_throughout, "cannot tell", {"loss.eval": 0.693 + 0.3 * np.exp(-T / 9), "acc.eval": 0.6 + 0.01 * np.sin(T)}, {}),
    (C.eval_at_chance_throughout, "cannot tell", {"loss.eval": 0.62 + 0.3 * np.exp(-T / 9), "acc.eval": 0.5 + 0.01 * np.sin(T)}, {}),
    (H.eval_jumped, "seen", both(FALLS, STEPS), {}),
    (H.eval_jumped, "absent", both(FALLS, FALLS), {}),
    (H.eval_jumped, "cannot tell", {"loss.train": FALLS}, {}),
    (L.evaluation_beyond_training, "seen", both(FALLS, 66 + 20 * T), {}),  # from the first one on
    (L.evaluation_beyond_training, "absent", both(FALLS, 60 * FALLS), {}),  # a sum where training logs a mean
    (L.evaluation_beyond_training, "absent", both(ROTE, 2.3 + T), {}),  # learnt by heart
    (L.evaluation_beyond_training, "cannot tell", {"loss.train": FALLS}, {}),
    (C.score_at_chance_beside_loss, "seen", both(FALLS, FALLS) | {"other/val_map": 0 * T}, {}),
    (C.score_at_chance_beside_loss, "cannot tell", both(FALLS, FALLS) | {"other/val_map": ACC}, {}),
    (C.score_at_chance_beside_loss, "absent", both(FALLS, FALLS) | {"other/val_auc": 0.5 + ACC / 2}, {}),
    (C.score_at_chance_beside_loss, "absent", both(FALLS, FLAT) | {"other/val_map": 0 * T}, {}),
    (C.score_at_chance_beside_loss, "cannot tell", {"other/val_map": 0 * T}, {}),
    (C.training_score_at_chance, "seen", {"loss.train": FALLS, "other/auc": 0.5 + 0 * T}, {}),  # of data that nobody names
    (C.training_score_at_chance, "absent", {"loss.train": FALLS, "other/auc": 0.5 + ACC / 2}, {}),
    (C.training_score_at_chance, "cannot tell", {"loss.train": FALLS, "other/auc": np.where(T < 3, 0.5, np.nan)}, {}),
    (L.training_learnt_by_heart, "absent", {"loss.train": np.where(T < 40, FALLS, -1e12)}, {}),  # it has no floor
    (H.hits_jumped_alone, "seen", both(FALLS, FALLS), HITS),
    (H.hits_jumped_alone, "absent", both(FALLS, STEPS) | {"acc.eval": ACC}, {}),
    (H.hits_jumped_alone, "cannot tell", both(FALLS, FALLS), {}),
    (H.training_moved_near_eval_jump, "absent", both(FALLS, STEPS), {}),
    (H.training_moved_near_eval_jump, "cannot tell", both(FALLS, FALLS), {}),
    (H.eval_turned_where_training_jumped, "seen", both(JUMPS, TURNS), {}),
    (H.eval_turned_where_training_jumped, "absent", both(FALLS, TURNS), {}),
    (H.eval_turned_where_training_jumped, "cannot tell", both(FALLS, FALLS), {}),
    (H.eval_follows_training, "absent", both(ROTE, 0.9 * ROTE) | {"epoch": EPOCHS}, {"config": {"lr": 0.1}}),  # it may be learnt exactly
    (
        H.eval_follows_training,
        "absent",
        both(ROTE, ROTE) | {"epoch": EPOCHS, "acc.eval": ACC},
        {"config": {"vocab_size": 128}},
    ),  # classes of text
    (H.eval_follows_training, "absent", both(ROTE, ROTE) | {"epoch": EPOCHS}, {"config": {"dropout": 0.1}}),
    (H.eval_follows_training, "absent", both(ROTE, ROTE) | {"epoch": EPOCHS}, {}),
    (H.eval_follows_training, "absent", both(ROTE, FLAT) | {"epoch": EPOCHS}, {}),
    (H.eval_follows_training, "seen", both(ROTE, ROTE) | {"epoch": T / 10}, {"config": {"vocab_size": 128}}),
    (H.eval_follows_training, "absent", both(ROTE**4, ROTE**4) | {"epoch": T / 10}, {"config": {"vocab_size": 128}}),  # learnt in one pass
    (H.eval_follows_training, "seen", both(FIRST, FIRST) | {"epoch": T / 10}, {"config": {"vocab_size": 128}}),  # a language, then by heart
    (H.eval_follows_training, "cannot tell", both(ROTE, ROTE), {}),
    (H.other_evaluation_far_higher, "seen", both(ROTE, ROTE), OTHER),
    (H.other_evaluation_far_higher, "cannot tell", both(ROTE, ROTE), {}),
    (L.training_learnt_by_heart, "seen", {"loss.train": ROTE}, {}),
    (L.next_token_certain, "seen", both(4.1 * np.exp(-T / 8), 4.2 * np.exp(-T / 8)) | {"tokens.seen": 1000 * T}, {}),
    (L.next_token_certain, "absent", both(4.1 * np.exp(-T / 8), 1.5 + 2.6 * np.exp(-T / 8)) | {"tokens.seen": 1000 * T}, {}),
    (L.next_token_certain, "absent", both(0.9 * np.exp(-T / 8), 0.9 * np.exp(-T / 8)) | {"tokens.seen": 1000 * T}, {}),  # it knew them
    (L.next_token_certain, "cannot tell", both(4.1 * np.exp(-T / 8), 4.2 * np.exp(-T / 8)), {}),  # of whatever
    (L.training_learnt_by_heart, "absent", {"loss.train": FALLS}, {}),
    (L.training_learnt_by_heart, "seen", {"loss.train": 2 * np.exp(-T[:12] / 3)}, {}),  # a mean an epoch
    (L.training_learnt_by_heart, "cannot tell", {"loss.train": 2 * np.exp(-T[:9] / 2)}, {}),
    (L.eval_left_behind, "seen", both(ROTE, np.where(T % 15 == 14, 3.0 + T / 100, np.nan)), {}),  # four evaluations
    (
        L.eval_left_behind,
        "absent",
        both(ROTE, 3.0 + T / 100) | {"other/eval_wer": 10 + 5 * np.exp(-T / 30)},
        {},
    ),  # ever fewer words are wrong
    (L.eval_left_behind, "absent", both(ROTE, 3.0 + T / 100) | {"acc.eval": 0.9 - 0.3 * np.exp(-T / 30)}, {}),
    (
        L.eval_left_behind,
        "absent",
        both(ROTE, 3.0 + T / 100) | {"acc.eval": np.full(60, 60.0), "other/val_f1": 0.9 - 0.3 * np.exp(-T / 30)},
        {},
    ),
    (L.eval_left_behind, "seen", both(ROTE, 3.0 + T / 100) | {"acc.eval": 90 - 30 * np.exp(-T / 30), "other/val_f1": 0.9 - T / 300}, {}),
    (L.eval_left_behind, "seen", both(ROTE, 3.0 + T / 100) | {"acc.eval": 0.6 - 0.1 * np.exp(-T / 5)}, {}),  # it stood still before
    (L.eval_left_behind, "seen", both(ROTE, 3.0 + T / 100) | {"acc.eval": 0.9 - 0.3 * np.exp(-T / 30), "other/eval_wer": 10 + T / 9}, {}),
    (L.eval_left_behind, "cannot tell", both(ROTE, np.where(T % 20 == 19, 3.0 + T / 100, np.nan)), {}),
    (L.training_learnt_by_heart, "cannot tell", {"loss.eval": FALLS}, {}),
    (L.eval_improves_to_end, "seen", both(FALLS, 3 - T / 30), {}),
    (L.eval_improves_to_end, "absent", both(FALLS, TURNS), {}),
    (L.eval_improves_to_end, "cannot tell", {"loss.train": FALLS}, {}),
    (L.eval_below_training, "seen", both(FALLS, FALLS - 0.2), {}),
    (L.eval_below_training, "absent", both(FALLS, FALLS + 0.2), {}),
    (L.eval_below_training, "cannot tell", {"loss.eval": FALLS}, {}),
    (L.accuracy_is_one_class, "seen", both(FALLS, FALLS) | {"acc.eval": np.full(60, 0.113)}, {}),
    (L.accuracy_is_one_class, "absent", both(FALLS, FALLS) | {"acc.eval": ACC}, {}),
    (L.accuracy_is_one_class, "cannot tell", both(FALLS, FALLS) | {"acc.eval": np.full(60, 0.93), "pref.margin": ACC}, {}),  # of pairs
    (
        L.accuracy_is_one_class,
        "absent",
        both(np.where(np.arange(60) < 30, FALLS, np.nan), FALLS) | {"acc.eval": np.where(np.arange(60) < 30, ACC, 0.1)},
        {},
    ),  # of NaN
    (L.accuracy_is_one_class, "absent", both(FALLS, FALLS) | {"acc.eval": np.ones(60)}, {}),
    (L.accuracy_is_one_class, "absent", both(FALLS, FALLS) | {"acc.eval": np.full(60, 0.79), "acc.train": 0.92 + T / 6000}, {}),
    (L.accuracy_is_one_class, "seen", both(FALLS, FALLS) | {"acc.eval": np.full(60, 0.2), "acc.train": np.full(60, 0.94)}, {}),
    (L.accuracy_is_one_class, "seen", both(FALLS, FALLS) | {"acc.eval": np.r_[np.arange(22) % 5 + 17, np.full(38, 21)] / 24}, {}),
    (L.accuracy_is_one_class, "cannot tell", both(FALLS, FALLS), {}),
    (L.eval_noisy, "seen", both(FALLS, 1.5 + 2 * np.exp(-T / 4) + 0.02 * np.sin(T * T * 0.37)), {}),
    (L.eval_noisy, "absent", both(FALLS, 3 - T / 30), {}),
    (L.eval_noisy, "cannot tell", {"loss.train": FALLS}, {}),
]


@pytest.mark.parametrize(("look", "state", "metrics", "more"), CASES, ids=[f"{c[0].__name__}-{c[1]}" for c in CASES])
def test_each_state(look: Callable[[Symptoms], Sign], state: str, metrics: Mapping[str, Any], more: Mapping[str, Any]) -> None:
    found = look(symptoms(metrics, more))
    assert found.state == state, found.text
    assert found.text.endswith(".")


def test_training_that_moves_with_the_evaluation_is_named() -> None:
    spike = FALLS + np.where(T == 28, 8.0, 0)
    s = symptoms(both(spike, STEPS), {"interval": 10})
    found = H.training_moved_near_eval_jump(s)
    assert found.state == "seen", found.text
    assert found.numbers["first"] == 280


@pytest.mark.parametrize(
    ("one", "other", "state"), [("eval/base/loss", "eval/new/loss", "absent"), ("eval/loss", "eval/train_loss", "seen")]
)
def test_one_set_of_several_that_gets_worse_is_no_evaluation_that_turns_up(tmp_path: Path, one: str, other: str, state: str) -> None:
    rows = [{"step": i, "train/loss": FALLS[i], one: TURNS[i], other: FALLS[i] + 0.1} for i in range(60)]
    (tmp_path / "log.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    found = examined(forensics.read(str(tmp_path)))[2]["eval_turned_up"]
    assert found.state == state, found.text


LOOKS = [f for m in (H, L) for n, f in vars(m).items() if callable(f) and getattr(f, "__module__", "") == m.__name__ and n[0] != "_"]


@pytest.mark.parametrize("look", LOOKS, ids=[f.__name__ for f in LOOKS])
@pytest.mark.parametrize("x", [np.zeros(0), np.array([1.0]), np.full(30, np.nan), np.zeros(30)], ids=["empty", "one", "nan", "zero"])
def test_odd_runs_raise_nothing(look: Callable[[Symptoms], Sign], x: Any) -> None:
    run = run_of({"loss.train": x, "loss.eval": x, "acc.eval": x, "epoch": x}, **CLASSES)
    assert look(Symptoms(run, ())).state in ("absent", "cannot tell", "seen")


NDCG = 0.02 + 0.3 * (1 - np.exp(-T / 8))
GUESS = 0.5 + 0.02 * RNG.standard_normal(60)
SINKS = np.where(T < 8, NDCG, NDCG[8] - (T - 8) / 400)
OF_SCORES: list[tuple[Callable[[Symptoms], Sign], str, Mapping[str, Any]]] = [
    (C.eval_at_chance_throughout, "seen", {"loss.train": ROTE, "other/valid-auc": GUESS}),
    (C.eval_at_chance_throughout, "absent", {"loss.train": ROTE, "other/valid-auc": 0.4 + NDCG}),
    (C.eval_at_chance_throughout, "seen", {"loss.train": ROTE, "other/val_r2": -0.1 - T / 600}),
    (C.eval_at_chance_throughout, "absent", {"loss.train": ROTE, "other/val_r2": NDCG}),
    (C.eval_at_chance_throughout, "seen", {"loss.train": ROTE, "other/val/bbox_mAP": 0 * T}),
    (C.eval_at_chance_throughout, "cannot tell", {"loss.train": ROTE, "other/val/bbox_mAP": NDCG / 10}),
    (C.eval_never_better, "seen", {"loss.train": ROTE, "other/ndcg@10": 0.05 - T / 1500}),
    (C.eval_never_better, "absent", {"loss.train": ROTE, "other/ndcg@10": NDCG}),
    (C.eval_never_better, "absent", {"loss.train": ROTE, "other/val/recall": 0.976 + NDCG / 15}),  # near the top from the start
    (C.eval_never_better, "seen", {"loss.train": ROTE, "other/val/recall": 0.6 + 0 * T}),
    (C.eval_never_better, "cannot tell", {"loss.train": ROTE / 3, "loss.eval": 2.3 + T / 50}),  # by heart before the first evaluation
    (C.eval_never_better, "seen", {"loss.train": ROTE, "loss.eval": 2.3 + T / 500 - 0.2 * (T == 40)}),  # one lucky value
    (C.eval_never_better, "absent", {"loss.train": ROTE, "loss.eval": 2.3 + T / 500 - 0.2 * (abs(T - 40) < 3)}),
    (C.eval_never_better, "seen", {"loss.train": 1.03 - 0.03 * T[:6], "other/val_rmse": 1 + T[:6] / 200}),  # squared it fell by a fourth
    (C.eval_never_better, "cannot tell", {"loss.train": 1.03 - 0.03 * T[:6], "other/val_mse": 1 + T[:6] / 200}),
    (H.eval_turned_up, "seen", {"loss.train": ROTE, "other/val_rmse": 1 + abs(T - 20) / 1000}),
    (H.eval_turned_up, "absent", {"loss.train": ROTE, "other/val_mse": 1 + abs(T - 20) / 1000}),
    (H.eval_turned_up, "seen", {"loss.train": ROTE, "other/ndcg@10": SINKS}),
    (H.eval_turned_up, "absent", {"loss.train": ROTE, "other/ndcg@10": NDCG}),
    (H.eval_jumped, "seen", {"loss.train": FALLS, "other/ndcg@10": NDCG + np.where(T >= 40, 0.3, 0) + 0.002 * RNG.standard_normal(60)}),
    (H.eval_jumped, "absent", {"loss.train": FALLS, "other/ndcg@10": NDCG}),
    (H.eval_follows_training, "cannot tell", {"loss.train": ROTE, "loss.eval": 1.1 * ROTE}),
]


@pytest.mark.parametrize(("look", "state", "metrics"), OF_SCORES)
def test_scores_of_held_out_data(look: Callable[[Symptoms], Sign], state: str, metrics: Mapping[str, Any]) -> None:
    sign = look(symptoms(metrics, {}))
    assert sign.state == state, sign.text


@pytest.mark.parametrize(("answers", "state"), [(24, "absent"), (2400, "seen")])
def test_of_few_answers_as_many_are_right_by_chance(answers: int, state: str) -> None:
    """Four of eight evaluations alike: of 24 answers that happens to a model that learns."""
    hits = np.round(
        np.array([0.7917, 0.875, 0.875, 0.8333, 0.875, 0.875, 0.875, 0.875]) * answers + (answers > 24) * np.array([1, 2, 0, 3, 0, 0, 0, 0])
    )
    run = run_of({"loss.train": FALLS, "loss.eval": FALLS[:8], "acc.eval": hits / answers})
    assert L.accuracy_is_one_class(Symptoms(run, ())).state == state


@pytest.mark.parametrize(
    ("held", "state"),
    [
        (2.4 + np.exp(-np.arange(60) / 3), "seen"),  # gains a quarter in its first passes, and no more
        (0.9 + 2.2 * np.exp(-np.arange(60) / 8), "absent"),  # learns for others, too
        (0.4 + 0 * LEARNT, "absent"),  # near what training comes to
    ],
)
def test_an_evaluation_that_stands_while_training_is_learnt_by_heart(held: Any, state: str) -> None:
    found = L.eval_left_behind(Symptoms(run_of({"loss.train": LEARNT, "loss.eval": held}), ()))
    assert found.state == state, found.text
