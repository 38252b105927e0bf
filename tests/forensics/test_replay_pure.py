"""Replay's pure parts: delta debugging, verdicts, weights, laying a replay over a log."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from runs import read, write

from forensics.replays import verdict
from forensics.replays.agreement import View
from forensics.replays.delta_debugging import OutOfBudget, minimal
from forensics.replays.numerics import grew_first
from forensics.replays.one_process import caveat
from forensics.replays.reproduce import overlay
from forensics.replays.runner import Effect, Trace
from forensics.replays.samples import _above_gap, _until_ordinary
from forensics.replays.targets import Logged
from forensics.replays.verdict import Outcomes, decide


@given(st.integers(1, 64), st.sets(st.integers(0, 63), min_size=1, max_size=4), st.randoms())
def test_the_minimal_set_is_found_whatever_the_order(n: int, wanted: set[int], random: object) -> None:
    culprits = {c % n for c in wanted}
    order = list(range(n))
    random.shuffle(order)  # type: ignore[attr-defined]
    assert set(minimal(order, lambda some: culprits <= set(some))) == culprits


@given(st.integers(2, 256), st.integers(0, 255))
def test_one_culprit_ranked_first_costs_one_question(n: int, culprit: int) -> None:
    first = culprit % n
    asked: list[list[int]] = []

    def suffices(some: list[int]) -> bool:
        asked.append(some)
        return first in some

    assert minimal([first, *[i for i in range(n) if i != first]], suffices) == [first]
    assert len(asked) == 1


@given(st.integers(4, 256), st.integers(0, 255))
def test_one_culprit_ranked_last_costs_a_logarithm(n: int, culprit: int) -> None:
    asked: list[list[int]] = []

    def suffices(some: list[int]) -> bool:
        asked.append(some)
        return culprit % n in some

    assert minimal(range(n), suffices) == [culprit % n]
    assert len(asked) <= 3 * math.log2(n) + 6


def test_a_spent_budget_gives_the_smallest_set_known() -> None:
    left = [2]

    def suffices(some: list[int]) -> bool:
        if not left[0]:
            raise OutOfBudget("spent")
        left[0] -= 1
        return {5, 6} <= set(some)

    with pytest.raises(OutOfBudget) as e:
        minimal([5, 6, *range(5)], suffices, most=1)
    assert e.value.best == [5, 6]


HERE = {"reproduced": 3, "times": 3}


@pytest.mark.parametrize(
    ("outcomes", "word"),
    [
        (Outcomes(**HERE, needed=1, other_batch=("no spike",), alone=("spike",), elsewhere=("spike", "spike", "no spike")), "data"),
        (Outcomes(**HERE, needed=1, other_batch=("no spike",), alone=("spike",), elsewhere=("no spike", "no spike")), "state x data"),
        (Outcomes(**HERE, needed=1, other_batch=("no spike",), alone=("no spike",), elsewhere=("no spike",), optimizer={"rate x 0.1": "no spike"}), "optimizer-hyperparameter"),
        (Outcomes(**HERE, needed=0, optimizer={"rate x 0.1": "no spike", "clipping on": "spike"}), "optimizer-hyperparameter"),
        (Outcomes(**HERE, needed=0, optimizer={"rate x 0.1": "spike"}), "deterministic code"),
        (Outcomes(**HERE, needed=0, nonfinite=True, guarded="no spike"), "numerics"),
        (Outcomes(**HERE, needed=1, other_batch=("no spike",), elsewhere=("no spike",), precision={"fp64": "no spike"}, nonfinite=True), "numerics"),
        (Outcomes(**HERE, needed=1, other_batch=("no spike",), elsewhere=("nan",), precision={"fp64": "nan"}, nonfinite=True, batch_nonfinite=True), "data"),
        (Outcomes(**HERE, needed=1, other_batch=("no spike",), elsewhere=()), "undecided"),
        (Outcomes(**HERE), "undecided"),
        (Outcomes(1, 3), "undecided"),
        (Outcomes(0, 3, agreed=40, parts_near=True, why_parts="grad.norm"), "transient hardware"),
        (Outcomes(0, 3, agreed=40, parts_near=True, further={"device": "no spike", "kernels": "no spike"}), "transient hardware"),
        (Outcomes(0, 3, agreed=40, parts_near=True, further={"device": "nan"}), "numerics"),
        (Outcomes(0, 3, agreed=40, parts_near=True, further={"device": "spike"}), "cannot reproduce"),
        (Outcomes(0, 3, agreed=40, parts_near=True, explained="moments reset at step 300"), "optimizer-hyperparameter"),
        (Outcomes(0, 3, agreed=40), "cannot reproduce"),
        (Outcomes(0, 3), "cannot reproduce"),
    ],
)  # fmt: skip
def test_outcomes_give_the_verdict_of_the_contract(outcomes: Outcomes, word: str) -> None:
    said, why = decide(outcomes)
    assert said == word
    assert why.endswith(".")


def test_weights_follow_what_was_shown() -> None:
    lost = Outcomes(0, 3, agreed=9, explained="moments reset at step 3")
    assert verdict.weights("optimizer-hyperparameter", lost, False)[0]["optimizer_state_lost"] > 20
    nan = Outcomes(3, 3, needed=1, nonfinite=True)
    named, others = verdict.weights("data", nan, False)
    assert "nan_from_sample" in named
    assert "bad_data_batch" not in named
    assert others is not None
    assert others < 0
    assert verdict.weights("undecided", nan, False) == ({}, None)


def trace(values: list[float], first: int = 0) -> Trace:
    return Trace(first, tuple(values), (None,) * len(values), (0.1,) * len(values))


def log(values: dict[int, float], interval: int = 1) -> Logged:
    return Logged(values, {}, {}, interval, ())


VALUES = [3.0 - 0.05 * i + 0.3 * math.sin(7 * i) for i in range(40)]


def test_the_overlay_says_where_they_part_and_not_within_noise() -> None:
    printed = {i: v + (0.5 if i >= 25 else 0.0) for i, v in enumerate(VALUES)}
    assert overlay((trace(VALUES),), (0.0,) * 40, 0.0, log(printed), View(0), 99).parts == 25
    assert overlay((trace(VALUES),), (0.1,) * 40, 0.0, log(printed), View(0), 99).parts is None


def test_no_effect_below_the_noise_is_claimed() -> None:
    effect = Effect(level=2.0, height=2.0, threshold=3.0, sigma=0.1, nonfinite=False, floor=0.5)
    assert effect.of([2.1, 2.6]) == "no spike"
    assert effect.of([2.1, 2.9]) == "undecided"
    assert effect.of([2.1, 3.1]) == "spike"
    assert effect.of([2.1, math.nan]) == "nan"
    assert effect.elsewhere([2.3, 2.4], [2.0, 2.1]) == "no spike"
    assert effect.elsewhere([3.9, 2.0], [2.0, 2.1]) == "spike"
    assert effect.elsewhere([3.9, 3.9], [3.5, 3.5]) == "undecided"  # there the ordinary loss is as high as the effect


def test_samples_stand_out_by_a_gap_not_by_a_tail() -> None:
    control = [2.0 + 0.4 * math.sin(13 * i) for i in range(128)]
    width, rows = _above_gap([2.1, 6.0, 2.3, 5.5, 1.9, 2.2], control)
    assert sorted(rows) == [1, 3]
    assert width > 2
    assert _above_gap([2.1, 2.5, 2.3, 2.2, 1.9, 2.2], control) == (0.0, [])
    assert sorted(_until_ordinary([2.1, 6.0, 2.3, 5.5, 1.9, 2.2], [control])) == [1, 3]


def test_the_layer_that_grew_first_is_named_only_where_one_did() -> None:
    calm = [{"a": 1.0, "b": 2.0}] * 6
    assert grew_first([*calm, {"a": 1.1, "b": 9.0}, {"a": 50.0, "b": 90.0}], 6) == "b"
    assert grew_first([*calm, {"a": 1.1, "b": math.nan}], 6) == "b"
    assert grew_first([*calm, {"a": math.nan, "b": math.inf}], 6) is None  # the loss was not finite, and with it all of them
    assert grew_first([*calm, {"a": 2.0, "b": 3.0}], 6) is None
    assert grew_first(calm, 6) is None


def test_what_one_process_hides_is_said_of_a_run_of_several(tmp_path: Path) -> None:
    several = read(write(tmp_path / "several", config={"world_size": 8, "num_workers": 4}))
    one = read(write(tmp_path / "one", config={"world_size": 1, "num_workers": 0}))
    assert "8 devices and 4 loader workers" in caveat(several, verdict.NOT)
    assert caveat(one, verdict.NOT) == caveat(several, verdict.DATA) == ""


def test_hardware_is_not_named_where_a_restart_may_have_changed_something() -> None:
    silent = Outcomes(0, 3, agreed=40, parts_near=True, why_parts="loss")
    assert decide(silent)[0] == verdict.HARDWARE
    word, why = decide(Outcomes(0, 3, agreed=40, parts_near=True, why_parts="loss", changed="the run was started again at step 40"))
    assert word == verdict.NOT and "started again at step 40" in why


def test_settings_of_a_later_checkpoint_that_meet_the_log_say_that_they_were_changed() -> None:
    o = Outcomes(0, 3, agreed=40, explained="settings of the checkpoint of step 80 from step 41 on (weight_decay 10 for 0.01)")
    word, why = decide(o)
    assert word == verdict.OPTIMIZER and "weight_decay 10 for 0.01" in why
    named, _ = verdict.weights(word, o, low_precision=False)
    assert max(named, key=named.__getitem__) == "config_changed"


def test_a_lasting_change_of_the_data_accuses_no_batch() -> None:
    needed = {"needed": 3, "other_batch": ("no spike", "no spike"), "alone": ("spike",), "elsewhere": ("spike", "spike")}
    assert decide(Outcomes(3, 3, **needed))[0] == verdict.DATA  # type: ignore[arg-type]
    word, why = decide(Outcomes(3, 3, further={"lasting": "spike"}, **needed))  # type: ignore[arg-type]
    assert word == verdict.UNDECIDED and "no batch is accused" in why
    assert verdict.more(word, {"lasting": "spike"})[0][1] == {"data_distribution_shift": 24.0, "bad_data_pocket": 10.0}


def test_a_gpu_for_each_rank_or_the_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch")
    from forensics.replays.training import adapter, commands, shares

    assert [commands.chosen("auto", 1), commands.chosen("cuda", 1), commands.chosen("cpu", 1), commands.chosen("auto", 0)] == [
        "cuda",
        "cuda",
        "cpu",
        "cpu",
    ]
    monkeypatch.setattr(shares, "WORLD", 2)
    assert [commands.chosen("auto", 2), commands.chosen("auto", 1)] == ["cuda", "cpu"]
    for cards, told in ((1, "2 processes need as many GPUs, and 1 was found"), (0, "no CUDA device was found")):
        with pytest.raises(adapter.Wrong, match=told):
            commands.chosen("cuda", cards)
