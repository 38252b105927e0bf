"""The experiment that separates the first two causes, and what causes say of experiments."""

from __future__ import annotations

from pathlib import Path

import parsers
from forensics import experiments, ranking
from forensics.case import Clue, Hypothesis
from forensics.case_parts.blind_spots import blind_spots
from forensics.causes.files import causes
from forensics.replays import arms, extra_arms, verdict


def cause(name: str, score: float, title: str = "A cause") -> Hypothesis:
    return Hypothesis(name, title, (Clue("because", score),), settle=f"what settles {name} alone")


def test_causes_expect_outcomes_that_experiments_have() -> None:
    known = {e.id: e.outcomes for e in experiments.EXPERIMENTS}
    for cause in causes().values():
        assert all(outcome in known[name] for name, outcome in cause.expects.items()), cause.id
    predicted = {f"{name}:{outcome}" for cause in causes().values() for name, outcome in cause.expects.items()}
    assert {f"{e.id}:{o}" for e in experiments.EXPERIMENTS for o in e.outcomes} == predicted


def test_causes_ask_for_arms_and_weigh_outcomes_that_there_are() -> None:
    general = {*arms.GENERAL, *extra_arms.ALL}
    assert {a for cause in causes().values() for a in cause.arms} <= general
    words = {w for _, w in (verdict.FURTHER | verdict.ONLY_OPEN).values()} | {"samples: unlike", "samples: alike"}
    words |= {*arms.GENERAL, *verdict.EXPLAINED.values(), *verdict.OTHERS, *verdict.FINER}
    assert {w for cause in causes().values() for w in cause.outcomes} <= words


def test_causes_need_what_can_be_missing(tmp_path: Path) -> None:
    (tmp_path / "log.jsonl").write_text('{"step": 1, "x": 1}\n')
    missing = {spot["what"] for spot in blind_spots(parsers.read(tmp_path), ())}
    assert {n for cause in causes().values() for n in cause.needs} <= missing


def test_neighbours_of_the_contract_are_told_apart() -> None:
    neighbours = [
        ("bad_data_batch", "bad_data_pocket"), ("bad_data_pocket", "data_distribution_shift"),
        ("gradient_clipping_missing", "lr_too_high"), ("warmup_too_short", "lr_too_high"),
        ("attention_logit_growth", "lr_too_high"), ("nan_from_sample", "nan_from_layer"),
        ("lr_jump", "schedule_wrong_units"), ("lr_jump", "config_changed"), ("lr_schedule_reset", "config_changed"),
        ("optimizer_state_lost", "data_order_restarted"), ("crash_and_restart", "optimizer_state_lost"),
        ("throughput_collapse", "hang"), ("hang", "out_of_memory"), ("overfitting", "train_eval_leakage"),
        ("eval_changed", "overfitting"), ("dead_or_saturated_units", "frozen_parameters"),
        ("silent_data_corruption", "bad_data_batch"), ("labels_wrong", "lr_too_low"),
    ]  # fmt: skip
    for a, b in neighbours:
        one, other = experiments.separating(a, b), experiments.separating(b, a)
        assert one is not None and other is not None, (a, b)
        assert (one[1], one[2]) == (other[2], other[1])


def test_the_first_two_name_one_experiment_and_what_each_outcome_means() -> None:
    first, second, *_ = ranking.rank([
        cause("lr_too_high", 6, "Learning rate too high"),
        cause("gradient_clipping_missing", 8, "Gradient clipping missing"),
    ])  # fmt: skip
    assert first.id == "gradient_clipping_missing"
    assert first.settle.startswith(
        "Replay from the checkpoint before the trouble with the gradient clipped at 1.0. If it stays away: gradient"
    )
    assert "If it comes back: learning rate too high" in second.settle


def test_a_cause_without_a_rival_keeps_what_settles_it_alone() -> None:
    alone = ranking.rank([cause("lr_too_high", 20), cause("bad_data_batch", -20)])
    assert alone[0].settle == "what settles lr_too_high alone"


def test_titles_keep_their_abbreviations_inside_a_sentence() -> None:
    ranked = ranking.rank([cause("nan_from_sample", 5, "NaN from a sample"), cause("nan_from_layer", 5, "NaN from a layer")])
    assert "naN" not in ranked[0].settle and "NaN from a sample" in ranked[0].settle
