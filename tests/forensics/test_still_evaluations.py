"""Rewards and scores that do not rise: told for information, beside whatever else can be said of the run."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
from runs import case, write

from tests.forensics.curves_in_logs import N, learns, noise, run


def told(folder: Path, kind: str = "plateau") -> list[tuple[str, str]]:
    return [(f["severity"], f["title"]) for f in case(folder)["findings"] if f["id"].startswith(kind)]


def test_a_reward_that_stays_is_told_though_nobody_knows_what_there_was_to_reach(tmp_path: Path) -> None:
    run(tmp_path, reward=lambda i: -50 + noise(1, 1.0)(i))
    found = case(tmp_path)
    assert [f["title"].split(":")[0] for f in found["findings"]] == ["reward does not rise"]
    assert found["verdict"] == "inconclusive"
    assert next(c["status"] for c in found["checks"] if c["id"] == "plateau") == "cannot_tell"


def test_a_reward_that_rises_has_no_plateau(tmp_path: Path) -> None:
    run(tmp_path, reward=learns(-50, 20))
    assert told(tmp_path) == []


def evaluated(folder: Path, n: int = 8, **scores: Any) -> list[tuple[str, str]]:
    every = {name: lambda i, f=f: f(i * n // N) if i % (N // n) == 0 else None for name, f in scores.items()}
    write(folder, N, **every)
    return told(folder)


@pytest.mark.parametrize(("end", "severity"), [(1.6, "info"), (0.4, "warning")])
def test_a_training_loss_that_falls_beside_scores_that_do_not_rise_is_learnt_by_heart(end: float, severity: str, tmp_path: Path) -> None:
    write(tmp_path, N, loss=learns(2.0, end), val_mrr=lambda i: None if i % 25 else (0.03, 0.02, 0.025)[i // 25 % 3])
    [(said, title)] = [x for x in told(tmp_path) if "val_mrr" in x[1]]
    assert said == severity
    assert ("while the training loss falls by" in title) == (severity == "warning")


@pytest.mark.parametrize(("end", "severity"), [(6.2, "warning"), (5.0, "info")])
def test_next_to_nothing_right_after_all_planned_steps_and_no_better_loss(end: float, severity: str, tmp_path: Path) -> None:
    held = learns(5.8, end)
    rarely = {"val_loss": lambda i: held(i) if i % 25 == 0 else None, "val_recall": lambda i: None if i % 25 else 0.004}
    write(tmp_path, N, config={"max_steps": N - 1}, loss=learns(4.2, 3.8), **rarely)
    assert {said for said, title in told(tmp_path) if "next to nothing is right" in title} == {severity}


@pytest.mark.parametrize(
    ("scores", "said"),
    [
        ({"val_dice": lambda i: 0.001 * i / 8}, "val_dice is 0.001 at the best of 8 evaluations: next to nothing is right"),
        (
            {"val_f1": lambda i: (0.13, 0.12, 0.14)[i % 3]},
            "val_f1 does not rise: 0.13 over the first third of 8 evaluations, 0.13 over the last",
        ),
        ({"val_f1": lambda i: 0.13, "val_dice": lambda i: 0.05 * i}, ""),  # one that learns is enough
        ({"val_f1": lambda i: 0.13 + 0.02 * i}, ""),
        ({"val_f1": lambda i: 0.83}, ""),  # as much as there is to have, for all that is known
        ({"val_psnr": lambda i: 26.4}, ""),  # no share of anything
    ],
)
def test_scores_of_held_out_data(tmp_path: Path, scores: dict[str, Any], said: str) -> None:
    assert evaluated(tmp_path, **scores) == ([("warning", f"{said}, while the training loss falls by 56%")] if said else [])


def test_what_the_first_steps_learn_is_all(tmp_path: Path) -> None:
    """Evaluations that stand from the second one on, beside a score that does not rise; and a contrastive loss at what guessing costs."""
    every, n = N // 8, noise(3, 0.01)
    for name, loss in {"stands": lambda i: 0.56 + 0.1 * math.exp(-i / 12) + n(i), "falls": learns(0.66, 0.3)}.items():

        def held_out(i: int, loss: Any = loss, stands: bool = name == "stands") -> float | None:
            return None if i % every else 0.555 + 0.1 * (i == every) if stands else loss(i)

        write(tmp_path / name, N, loss=loss, val_f1=lambda i: None if i % every else 0.0, val_loss=held_out)
    assert any(s == "warning" and "Nothing is learnt" in title for s, title in told(tmp_path / "stands"))
    assert {s for s, _ in told(tmp_path / "falls")} == {"info"}
    for batch in (32, 64):
        run(tmp_path / str(batch), {"batch_size": batch}, loss__contrastive=lambda i: 3.466 + math.exp(-i / 12) + noise(2, 0.02)(i))
        assert any("guessing the partner" in title for _, title in told(tmp_path / str(batch))) == (batch == 32)


def test_a_score_of_unnamed_data_that_sinks_tells_the_best_checkpoint(tmp_path: Path) -> None:
    """Clustering, for instance, whose accuracy is taken every few epochs of the data that it learns from."""
    write(tmp_path / "a", N, acc=lambda i: 0.92 - i / 4000 if i % 10 == 0 else None)
    assert [s for s, _ in told(tmp_path / "a", "train_eval_gap")] == ["info"]
    write(tmp_path / "b", N, acc=lambda i: 0.92 - i / 4000)  # of the batches
    assert told(tmp_path / "b", "train_eval_gap") == []


@pytest.mark.parametrize(
    ("config", "severity"),
    [({}, "warning"), ({"init_checkpoint": "checkpoints/best.pt"}, "info"), ({"init_checkpoint": "none"}, "warning")],
)
def test_a_run_that_begins_from_the_weights_of_a_model_has_little_left_to_learn(
    config: dict[str, str], severity: str, tmp_path: Path
) -> None:
    write(tmp_path, N, config=config, loss=lambda i: 0.9 + noise(4, 0.005)(i))
    assert [s for s, title in told(tmp_path) if title.startswith("Loss does not fall")] == [severity]
