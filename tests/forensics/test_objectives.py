"""Runs that log no loss: an error, an ELBO, a score or a reward is judged in its own direction."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from runs import make

import forensics
import parsers
from forensics.detectors import divergence, initial_loss, plateau
from forensics.errors import CannotTell
from forensics.run import inputs
from forensics.run.series import series
from forensics.signs.policies import policy_kl_ran_away
from forensics.signs.sign import Symptoms
from parsers.objectives import objective
from tests.forensics.curves import run_of
from tests.forensics.curves_in_logs import N, learns, noise, rows, run


def falls_back(high: float, low: float, seed: int = 1) -> Callable[[int], float]:
    """It learns, and from step 120 on loses all of it again."""
    good = learns(high, low, seed)
    return lambda i: good(i) + (high - low) * min(max(i - 120, 0) / 40, 1.0)


@pytest.mark.parametrize(
    ("tag", "side", "rises"),
    [
        ("mse", "train", False),
        ("val_mse", "eval", False),
        ("hr10", "eval", True),
        ("hit_10", "eval", True),
        ("ndcg10", "eval", True),
        ("training's l2", "train", False),
        ("valid_1's multi_logloss", "eval", False),
        ("validation_0-rmse", "eval", False),
        ("train-mlogloss", "train", False),
        ("bpr", "train", False),
        ("val/infonce", "eval", False),
        ("sampled_softmax", "train", False),
        ("learn/Logloss", "train", False),
        ("test/bpd", "eval", False),
        ("elbo", "train", True),
        ("neg_elbo", "train", False),
        ("val/log_likelihood", "eval", True),
        ("valid_0's auc", "eval", True),
        ("val_rank_ic", "eval", True),
        ("valid_0's ndcg@10", "eval", True),
        ("train/success_rate", "train", True),
        ("test/success_rate", "eval", True),
        ("Mean Fitness", "train", True),
        ("test/MultiClass", "eval", False),
        ("val/jaccard", "eval", True),
    ],
)
def test_words_of_an_objective(tag: str, side: str, rises: bool) -> None:
    told = objective(tag)
    assert told is not None
    assert (told.side, told.rises) == (side, rises)


@pytest.mark.parametrize(
    "tag", ["total_cost_usd", "score_threshold", "error_count", "mse_weight", "lr", "time", "l2_norm/grad", "epoch", "ic"]
)
def test_words_of_none(tag: str) -> None:
    assert objective(tag) is None


def test_an_error_is_no_cross_entropy(tmp_path: Path) -> None:
    r = run(tmp_path, {"num_classes": 10}, mse=learns(100, 2.3))
    with pytest.raises(CannotTell, match="unit of mse is unknown"):
        list(initial_loss.detect(r))
    assert [f.title for f in plateau.detect(r)] == []


@pytest.mark.parametrize(
    ("tag", "high", "low"), [("elbo", -180.0, -90.0), ("ep_rew_mean", 15.0, 300.0), ("auc", 0.5, 0.93), ("c_index", 0.5, 0.79)]
)
def test_what_rises_is_healthy_where_it_rises_and_told_where_it_falls(tmp_path: Path, tag: str, high: float, low: float) -> None:
    good, bad = run(tmp_path / "good", **{tag: learns(high, low)}), run(tmp_path / "bad", **{tag: falls_back(high, low)})
    assert list(divergence.detect(good)) == []
    assert forensics.analyze(str(tmp_path / "good")).verdict == "healthy"
    (found,) = divergence.detect(bad)
    assert tag in found.title
    assert "falls" in found.title
    assert found.facts.final == pytest.approx(high, abs=0.1 * abs(high - low))  # as logged, not negated
    assert found.facts.best == pytest.approx(low, abs=0.1 * abs(high - low))


def test_a_fitness_that_falls_may_be_an_error(tmp_path: Path) -> None:
    assert inputs.objective(run(tmp_path / "a", Mean__Fitness=learns(1, 80))).rises
    with pytest.raises(CannotTell, match="rise or to fall"):
        inputs.objective(run(tmp_path / "b", best__fitness=learns(80, 1)))


def test_a_cost_below_zero_was_logged_with_the_other_sign(tmp_path: Path) -> None:
    r = run(tmp_path / "a", MultiClass=learns(-1.94, -0.13))
    assert inputs.objective(r).rises and not list(plateau.detect(r)) and not list(divergence.detect(r))
    assert not inputs.objective(run(tmp_path / "b", MultiClass=learns(1.94, 0.13))).rises
    with pytest.raises(CannotTell, match="other sign"):
        inputs.loss_of(r)


def test_a_likelihood_above_zero_may_be_a_loss(tmp_path: Path) -> None:
    r = run(tmp_path, elbo=learns(180, 90))
    with pytest.raises(CannotTell, match="to rise or to fall"):
        inputs.objective(r)


@pytest.mark.parametrize("level", [20.0, 0.0])
def test_a_reward_that_never_rises_is_not_called_healthy(level: float, tmp_path: Path) -> None:
    n = noise(3, 2.0)
    make(tmp_path, rows({"ep_rew_mean": lambda i: level + n(i)}))
    assert forensics.analyze(str(tmp_path)).verdict != "healthy"


@pytest.mark.parametrize(("goal", "verdict"), [(0.0, "inconclusive"), (1.0, "healthy")])
def test_a_reward_of_zero_throughout_is_not_called_healthy(goal: float, verdict: str, tmp_path: Path) -> None:
    make(tmp_path, rows({"ep_rew_mean": lambda i: goal * min(i // 20, 5) - 0.1 * (i % 5 == 0)}))
    assert forensics.analyze(str(tmp_path)).verdict == verdict


def surrogate(i: int) -> float:
    """As GRPO's: it begins at zero and grows with the KL term; not a number from step 150 on, if asked."""
    return 0.0004 * i + noise(7, 0.001)(i)


@pytest.mark.parametrize(("first", "last", "verdict"), [(0.7, 1.2, "healthy"), (1.2, 0.3, "unhealthy")])
def test_beside_a_reward_the_loss_is_a_surrogate(first: float, last: float, verdict: str, tmp_path: Path) -> None:
    told = forensics.analyze(run(tmp_path, loss=surrogate, reward=lambda i: first + (last - first) * i / N + noise(3, 0.01)(i)).root)
    assert told.verdict == verdict


@pytest.mark.parametrize(("last", "verdict"), [(0.2, "healthy"), (math.log(2), "unhealthy")])
def test_where_answers_are_compared_in_pairs_the_loss_is_the_objective(last: float, verdict: str, tmp_path: Path) -> None:
    """DPO: what it logs as rewards are differences of log-probabilities, which may fall while it learns."""
    columns = {
        "dpo_loss": lambda i: math.log(2) + (last - math.log(2)) * i / N + 1e-5 * (i % 3),
        "rewards/margins": lambda i: 0.01 * i,
        "rewards/chosen": lambda i: -0.01 * i,
        "reward_mean": lambda i: 1e-6 * (7 * i % 5) - 1e-5 * i,
    }
    document = forensics.analyze(str(make(tmp_path, rows(columns)))).to_json()
    assert document["verdict"] == verdict, document["answer"]
    assert verdict == "healthy" or document["answer"].startswith("Loss does not fall")


def test_a_surrogate_that_is_nan_is_still_told(tmp_path: Path) -> None:
    made = run(tmp_path, loss=lambda i: math.nan if i > 150 else surrogate(i), reward=lambda i: 0.7 + 0.003 * i + noise(3, 0.01)(i))
    assert [f.kind for f in forensics.analyze(made.root).findings if f.severity == "critical"] == ["nonfinite"]


@pytest.mark.parametrize(("box", "state"), [(0.9, "sum"), (0.01, "too high")])
def test_a_term_that_explains_the_excess_over_guessing(box: float, state: str, tmp_path: Path) -> None:
    terms = {
        "loss": learns(1.5 + box + (1.0 if state == "too high" else 0.0), 0.3),
        "loss_bbox": learns(box, box / 9),
        "ce_loss": learns(2.5, 0.3),
    }
    made = run(tmp_path, {"num_classes": 4}, **terms)
    if state == "sum":
        with pytest.raises(CannotTell, match="is a sum with loss_bbox"):
            list(initial_loss.detect(made))
    else:
        assert [f.severity for f in initial_loss.detect(made)] == ["warning"]


@pytest.mark.parametrize(("falls_on", "noise", "said"), [(0.0, 0.01, True), (0.002, 0.01, False), (0.0, 1.5, False)])
def test_since_when_a_loss_that_learned_has_stood_still(falls_on: float, noise: float, said: bool, tmp_path: Path) -> None:
    """Told for information, and neither of a loss that falls on nor where noise may hide a fall of 15 %."""
    r = run(tmp_path, loss=lambda i: 3 + 3 * math.exp(-i / 10) - falls_on * i + noise * math.sin(i * i * 0.37))
    found = list(plateau.detect(r))
    assert bool(found) == said
    if said:
        (told,) = found
        assert isinstance(told.facts, plateau.StoodStill) and told.severity == "info" and 20 <= told.facts.since <= 80
        assert forensics.analyze(str(tmp_path)).verdict == "healthy"


@pytest.mark.parametrize(("waits", "pace", "said"), [(70, 0.002, True), (15, 0.002, False), (0, 0.0034, False)])
def test_until_when_a_loss_had_learnt_nothing(waits: int, pace: float, said: bool, tmp_path: Path) -> None:
    """A loss that falls to nearly nothing leaves room at its end, and none at its beginning."""
    n = noise(2, 0.002)
    falls = lambda i: 0.693 - pace * max(i - waits, 0) + n(i)  # noqa: E731
    found = list(plateau.detect(run(tmp_path, loss=falls)))
    assert [(f.severity, f.title.split(" until ")[0]) for f in found] == [("info", "The loss learns nothing")] * said
    assert not said or 60 <= (found[0].last_step or 0) <= 80


@pytest.mark.parametrize("tag", ["val_elbo", "val/log_likelihood"])
def test_an_evaluation_whose_sign_is_open_turns_no_way(tag: str, tmp_path: Path) -> None:
    """A negated ELBO falls as the model learns, and is called an ELBO all the same."""
    falls = {"train_loss": lambda i: 25 + 15 * math.exp(-i / 40), tag: lambda i: 25 + 9 * math.exp(-i / 40)}
    assert forensics.analyze(str(make(tmp_path, rows(falls)))).verdict == "healthy"


@pytest.mark.parametrize(("terms", "told"), [(4, False), (0, True)])
def test_a_sum_of_losses_is_not_bounded_by_a_guess(tmp_path: Path, terms: int, told: bool) -> None:
    falls = learns(6.8, 1.0)
    made = run(tmp_path, loss=lambda i: 3.7 * falls(i), accuracy=lambda i: i / N, **{f"train__ploss_{i}": falls for i in range(terms)})
    if told:
        assert [f.facts.first > 20 for f in initial_loss.detect(made)] == [True]
    else:
        with pytest.raises(CannotTell, match="is made of train/ploss_0"):
            list(initial_loss.detect(made))


@pytest.mark.parametrize(("nats", "state"), [(20.0, "seen"), (3.5, "absent")])
def test_chosen_answers_grow_less_likely_in_sound_training_too(tmp_path: Path, nats: float, state: str) -> None:
    """From -1.2 nats to -4.7 they lie four times as far from zero, which is little for an answer."""
    made = run(tmp_path, loss=learns(0.69, 0.2), logps__chosen=lambda i: -1.2 - nats * i / N, rewards__margins=lambda i: 4 * i / N)
    assert policy_kl_ran_away(Symptoms(made, ())).state == state


@pytest.mark.parametrize("perplexity", [True, False])
def test_a_loss_of_a_token_that_stays_above_any_guess(tmp_path: Path, perplexity: bool) -> None:
    beside = {"ppl": lambda i: math.exp(18 + noise(2, 0.1)(i))} if perplexity else {}
    made = run(tmp_path, loss=lambda i: 18 + noise(2, 0.1)(i), **beside)
    assert [f.severity for f in initial_loss.detect(made)] == ["warning"] * perplexity


@pytest.mark.parametrize(("beside", "told"), [("loss_ctc", False), ("valid_cer", False), ("loss_a", True)])
def test_a_loss_of_whole_sequences_is_not_bounded_by_a_guess(tmp_path: Path, beside: str, told: bool) -> None:
    falls = learns(30, 1.0)
    made = run(tmp_path, loss=falls, accuracy=lambda i: i / N, **{beside: falls})
    if told:
        assert [f.facts.first > 20 for f in initial_loss.detect(made)] == [True]
    else:
        with pytest.raises(CannotTell, match=f"beside {beside}"):
            list(initial_loss.detect(made))


def test_a_set_without_a_metric_is_of_the_loss_that_its_evaluation_names(tmp_path: Path) -> None:
    rows = "".join(
        f"it {10 * i} train {3 - i / 20:.3f} lr 0.001\n" + (f"it {10 * i} val loss {3.1 - i / 20:.3f}\n" if i % 10 == 0 else "")
        for i in range(1, 41)
    )
    (tmp_path / "train.log").write_text(rows)
    s = series(parsers.read(tmp_path), "loss.train")
    assert s is not None and s.tag == "train"


@pytest.mark.parametrize(
    ("tags", "judged"), [(["val/logloss"], "val/logloss"), (["val/logloss", "test/logloss"], None), (["val/mse"], None)]
)
def test_a_cross_entropy_by_name_is_the_loss_of_an_evaluation(tmp_path: Path, tags: list[str], judged: str | None) -> None:
    """Beside a loss that only the training has; of two sets, or of an error that config does not name, nobody says which."""
    lines = [{"step": i, "train/loss": 0.7 - i / 100} | (dict.fromkeys(tags, 0.71 - i / 100) if i % 5 == 0 else {}) for i in range(40)]
    (tmp_path / "metrics.jsonl").write_text("".join(json.dumps(x) + "\n" for x in lines))
    s = series(parsers.read(tmp_path), "loss.eval")
    assert (s.tag if s is not None else None) == judged


@pytest.mark.parametrize(("top", "told"), [(300.0, ["warning"]), (8.0, [])])
def test_a_loss_that_the_first_updates_drove_far_above_its_first_value(tmp_path: Path, top: float, told: list[str]) -> None:
    """The median of three first values would take the climb for the level that it began at."""
    climb = [3.6, 0.06 * top, top, 0.6 * top, 0.06 * top, 0.05 * top, 0.16 * top]
    run(tmp_path, loss=lambda i: climb[i - 1] if i <= len(climb) else 1 + 0.01 * math.sin(i))
    assert [f["severity"] for f in forensics.analyze(str(tmp_path)).to_json()["findings"] if "above its first level" in f["title"]] == told


def _named(tmp_path: Path, columns: dict[str, Any]) -> dict[str, str]:
    rows = zip(*columns.values(), strict=True)
    (tmp_path / "metrics.csv").write_text(
        ",".join(["step", *columns]) + "\n" + "".join(",".join(map(str, (i, *r))) + "\n" for i, r in enumerate(rows))
    )
    return {tag: name for name, m in forensics.analyze(str(tmp_path)).to_json()["run"]["metrics"].items() for tag in [m["tag"]]}


def test_the_one_error_of_training_beside_that_of_held_out_data(tmp_path: Path) -> None:
    falls = np.exp(-np.arange(40) / 9) + 0.2
    assert _named(tmp_path, {"train/rating_mse": falls, "test/rmse": falls + 0.1}) == {
        "train/rating_mse": "loss.train",
        "test/rmse": "loss.eval",
    }
    told = _named(tmp_path, {"train/rating_mse": falls, "train/price_mse": falls, "test/rmse": falls + 0.1})
    assert told["train/rating_mse"] == "other/train/rating_mse"  # of two nobody knows


def test_an_error_of_held_out_data_that_is_called_a_loss_steps_as_any_other(tmp_path: Path) -> None:
    falls = 0.2 + np.exp(-np.arange(40) / 5)
    held = 0.25 + 0.01 * np.sin(np.arange(40)) + np.where(np.arange(40) >= 25, 0.25, 0)
    _named(tmp_path, {"Loss/train_step": falls, "Loss/val_mae": held})
    case = forensics.analyze(str(tmp_path)).to_json()
    assert [f["steps"][0] for f in case["findings"] if f["kind"] == "eval_jump"] == [25] and case["verdict"] == "unhealthy"


@pytest.mark.parametrize(("values", "name"), [("percent", "acc.train"), ("count", "other/Correct")])
def test_what_is_correct_is_a_share_or_a_number(tmp_path: Path, values: str, name: str) -> None:
    share = 1 - np.exp(-np.arange(1, 41) / 9)
    assert _named(tmp_path, {"Correct": np.round(100 * share, 2) if values == "percent" else np.round(5000 * share)})["Correct"] == name


@pytest.mark.parametrize(("high", "name"), [(0.2, "lr"), (2000, "other/fit/step_size")])
def test_a_size_of_steps_is_a_rate_or_a_number(tmp_path: Path, high: float, name: str) -> None:
    falls = np.exp(-np.arange(40) / 9) + 0.2
    assert _named(tmp_path, {"loss": falls, "fit/step_size": np.where(np.arange(40) < 20, high / 100, high)})["fit/step_size"] == name


@pytest.mark.parametrize(("falls", "name"), [(False, "time.total"), (True, "other/sec")])
def test_seconds_that_never_fall_are_those_since_the_start(tmp_path: Path, falls: bool, name: str) -> None:
    seconds = np.round(np.cumsum(np.full(40, 0.26)), 1)
    seconds[20] = 0.3 if falls else seconds[20]
    assert _named(tmp_path, {"loss": np.exp(-np.arange(40) / 9) + 0.2, "sec": seconds})["sec"] == name


@pytest.mark.parametrize(("hits", "severity"), [(0.5, "warning"), (0.999, "info")])
def test_a_loss_below_what_its_misses_cost_is_no_trained_model(hits: float, severity: str) -> None:
    """A mean over the batches of a sum over other things: that half of the answers are wrong shows that its size tells nothing."""
    t = np.arange(60)
    logged = run_of({"loss.train": 0.0032 + 1e-6 * np.sin(t), "acc.train": hits + 1e-5 * np.cos(t)})
    assert [f.severity for f in plateau.detect(logged) if f.title.startswith("Loss does not fall")] == [severity]
