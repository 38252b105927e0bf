"""Ranks in names, and what two stretches of log are to each other: one attempt, a restart, or neither."""

from __future__ import annotations

import pytest

from parsers import rank_names
from parsers.runs.homes import home
from parsers.runs.spans import Span, at_once, goes_on, joined, shared_steps


@pytest.mark.parametrize(
    ("a", "b", "one_job"),
    [
        ("log/rank_0.jsonl", "log/rank_1.jsonl", True),
        ("worker-0/events", "worker-1/events", True),
        ("global_rank3.log", "global_rank12.log", True),
        ("node0/train.csv", "node1/train.csv", True),
        ("rank_0.jsonl", "rank_0.jsonl", False),
        ("run1/log.jsonl", "run2/log.jsonl", False),
        ("seed_0/rank0.jsonl", "seed_1/rank0.jsonl", False),
    ],
)
def test_files_of_one_job_differ_in_the_rank_alone(a: str, b: str, one_job: bool) -> None:
    assert rank_names.of_one_job(a, b) is one_job


def test_only_a_rank_is_a_number_of_the_process() -> None:
    named = ("metrics_rank3", "rank-12", "log/workerlog.2", "node4", "gpu0", "log")
    assert [rank_names.number(n) for n in named] == [3, 12, 2, None, None, None]


def test_shards_of_a_checkpoint_are_known_by_their_first_rank() -> None:
    names = ["zero_pp_rank_0_mp_rank_01_optim_states.pt", "consolidated.00.pth", "x-model_01.pt", "model.pt"]
    other = ["zero_pp_rank_3_mp_rank_01_optim_states.pt", "consolidated.07.pth", "x-model_02.pt", "model.pt"]
    assert [rank_names.shard_of(n) for n in names] == [rank_names.shard_of(n) for n in other]
    assert rank_names.shard_of(names[0]) != rank_names.shard_of("zero_pp_rank_0_mp_rank_02_optim_states.pt")
    assert rank_names.shard_of("model.pt") is None


def test_a_restart_begins_within_the_steps_or_right_after_them_and_later() -> None:
    a = Span(0, 1000, (0.0, 100.0))
    assert goes_on(a, Span(500, 900)) and goes_on(a, Span(1001, 2000, (100.0, 200.0))) and goes_on(a, Span(1250, 2000))
    assert not goes_on(a, Span(0, 1000, (200.0, 300.0)))  # both begin at the beginning: another run
    assert not goes_on(a, Span(1300, 2000))  # too much between them
    assert not goes_on(a, Span(500, 900, (-50.0, -10.0)))  # begun before it
    assert not goes_on(Span(0, 100, interval=10), Span(10, 100))  # the first row that a log each ten steps has


def test_one_attempt_is_told_by_its_clock_else_by_its_steps() -> None:
    a = Span(0, 100, (0.0, 100.0))
    assert at_once(a, Span(0, 10, (50.0, 120.0))) and not at_once(a, Span(0, 10, (95.0, 300.0))) and not at_once(a, Span(0, 10))
    assert shared_steps(a, Span(50, 59)) == 1 and shared_steps(a, Span(200, 300)) < 0
    assert joined([a, Span(90, 200), Span(5, 6, (150.0, 160.0))]) == Span(0, 200, (0.0, 160.0))


def test_a_run_attempts_above_its_parts() -> None:
    assert home("exp/train/events.out") == home("exp/checkpoint-500/trainer_state.json") == home("exp/x.jsonl") == "exp"
    assert home("exp/wandb/run-20240101_000000-abcd/files/a.json") == home("exp/wandb/run-20240102_000000-abcd/b.wandb")
