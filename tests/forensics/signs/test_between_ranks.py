"""Signs between ranks: equal numbers that part, one that leaves, drift, checksums of the weights."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from runs import loss, read

from forensics.detectors import rank_disagreement
from forensics.errors import CannotTell
from forensics.signs import between_ranks
from forensics.signs.sign import ABSENT, CANNOT_TELL, SEEN, Sign, Symptoms

N, AT = 300, 151
Value = Callable[[int, int], float]


def looked(sign: str, folder: Path, ranks: int, **metrics: Value) -> Sign:
    """`metrics`: functions of step and rank."""
    for rank in range(ranks):
        rows = [{"step": i, "loss": local(i, rank)} | {k: f(i, rank) for k, f in metrics.items()} for i in range(1, N + 1)]
        (folder / f"rank{rank}.jsonl").write_text("".join(json.dumps(r) + "\n" for r in rows))
    run = read(folder)
    try:
        findings = tuple(rank_disagreement.detect(run))
    except CannotTell:
        findings = ()
    found: Sign = getattr(between_ranks, sign)(Symptoms(run, findings))
    assert found.text.endswith("."), found
    return found


def local(i: int, rank: int) -> float:
    return float(loss(i) * np.exp(0.03 * np.random.default_rng(1000 * rank + i).standard_normal()))


def shared(i: int, rank: int) -> float:
    return 1 + 0.1 * float(np.sin(i * i))


def one_leaves(i: int, rank: int) -> float:
    return shared(i, rank) * (1 + 0.3 * (i >= AT and rank == 2))


def all_leave(i: int, rank: int) -> float:
    return shared(i, rank) * (1 + 0.1 * (i >= AT) * rank * (2 + float(np.cos(i * (rank + 1)))))


def norm_of_shards(i: int, rank: int) -> float:
    return 10.0 + rank


def norm_of_strangers(i: int, rank: int) -> float:
    return 10.0 + 0.03 * rank + i / 100


@pytest.mark.parametrize(("sign", "ranks", "norm", "state"), [
    ("ranks_part", 4, all_leave, SEEN),
    ("ranks_part", 4, shared, ABSENT),
    ("ranks_part", 1, shared, CANNOT_TELL),
    ("one_rank_jumps_alone", 4, one_leaves, SEEN),
    ("one_rank_jumps_alone", 4, shared, ABSENT),
    ("one_rank_jumps_alone", 4, all_leave, ABSENT),
    ("all_ranks_apart_at_once", 4, all_leave, SEEN),
    ("all_ranks_apart_at_once", 4, one_leaves, ABSENT),
    ("all_ranks_apart_at_once", 2, all_leave, CANNOT_TELL),
    ("all_ranks_apart_at_once", 4, shared, CANNOT_TELL),
    ("one_rank_apart_throughout", 4, shared, ABSENT),
    ("one_rank_spikes_alone", 4, shared, ABSENT),
    ("ranks_drift", 4, shared, ABSENT),
])  # fmt: skip
def test_gradient_norm_by_rank(tmp_path: Path, sign: str, ranks: int, norm: Value, state: str) -> None:
    found = looked(sign, tmp_path, ranks, grad_norm=norm)
    assert found.state == state, found
    assert state != SEEN or found.numbers["first"] == AT


def test_ranks_that_drift(tmp_path: Path) -> None:
    found = looked("ranks_drift", tmp_path, 4, grad_norm=lambda i, r: float(np.exp(0.002 * i * (r - 1.5)) * local(i, r)))
    assert found.state == SEEN, found


@pytest.mark.parametrize(("tag", "values", "state"), [
    ("param_checksum", all_leave, SEEN),
    ("param_checksum", norm_of_shards, SEEN),
    ("param_checksum", shared, ABSENT),
    ("param_l1", all_leave, SEEN),
    ("theta_l1", all_leave, SEEN),
    ("theta_l1", shared, ABSENT),
    ("psum", norm_of_shards, SEEN),
    ("psum", shared, ABSENT),
    ("w_sum", all_leave, SEEN),
    ("step_sum", all_leave, CANNOT_TELL),
    ("weight_std", all_leave, SEEN),
    ("params_l2", norm_of_shards, CANNOT_TELL),
    ("param_norm", norm_of_shards, CANNOT_TELL),
    ("other_number", all_leave, CANNOT_TELL),
])  # fmt: skip
def test_weights_by_rank(tmp_path: Path, tag: str, values: Value, state: str) -> None:
    found = looked("weights_checksum_differs", tmp_path, 3, **{tag: values})
    assert found.state == state, found
    assert state != SEEN or found.where.startswith("rank")


@pytest.mark.parametrize(("log", "norm", "state"), [
    ("world=3 backend=gloo", norm_of_strangers, SEEN),
    ("world=3 backend=gloo", norm_of_shards, CANNOT_TELL),
    ("world=3 backend=gloo", shared, ABSENT),
    ("wrapping the model with FullyShardedDataParallel", norm_of_strangers, CANNOT_TELL),
    ("ZeRO stage 2", norm_of_strangers, CANNOT_TELL),
    ("world_size=3 shard=1800 batch_per_rank=16", norm_of_strangers, SEEN),
    ("reading 12 shards of the data", norm_of_strangers, SEEN),
    ("sharding_strategy: full", norm_of_strangers, CANNOT_TELL),
    ("parameters are sharded over 3 ranks", norm_of_strangers, CANNOT_TELL),
    ("zero_stage=3", norm_of_strangers, CANNOT_TELL),
    ("pipeline-parallel size: 3", norm_of_strangers, CANNOT_TELL),
    ("DiLoCo, 100 inner steps", norm_of_strangers, CANNOT_TELL),
])  # fmt: skip
def test_norms_of_weights_that_differ_from_the_first_step(tmp_path: Path, log: str, norm: Value, state: str) -> None:
    (tmp_path / "train.log").write_text(f"{log}\n" + "".join(f"step {i} loss {loss(i):.4f}\n" for i in range(1, 100)))
    found = looked("weights_checksum_differs", tmp_path, 3, param_norm=norm, grad_norm=shared)
    assert found.state == state, found


@pytest.mark.parametrize(("train", "grad", "state"), [
    (local, shared, SEEN),
    (local, local, SEEN),  # an own batch each, and gradients that nobody averages
    (lambda i, rank: loss(i), shared, SEEN),
    (lambda i, rank: loss(i), local, CANNOT_TELL),  # one loss for all: a model in parts would log the same
])  # fmt: skip
def test_what_says_that_the_ranks_train_one_model(tmp_path: Path, train: Value, grad: Value, state: str) -> None:
    found = looked("weights_checksum_differs", tmp_path, 3, param_norm=norm_of_strangers, grad_norm=grad, loss=train)
    assert found.state == state, found


@pytest.mark.parametrize(("values", "state"), [(all_leave, SEEN), (shared, ABSENT)])
def test_one_process_logs_what_it_gathered_of_each_rank(tmp_path: Path, values: Value, state: str) -> None:
    rows = [{"step": i, "train/loss": local(i, 0)} | {f"rank{r}/param_norm": values(i, r) for r in range(2)} for i in range(1, N + 1)]
    (tmp_path / "log.jsonl").write_text("".join(json.dumps(r) + "\n" for r in rows))
    run = read(tmp_path)
    assert between_ranks.ranks_part(Symptoms(run, tuple(rank_disagreement.detect(run)))).state == state


def twice(i: int, rank: int) -> float:
    return local(i, rank) * (1 + rank)


@pytest.mark.parametrize(("norm", "state"), [(shared, SEEN), (one_leaves, ABSENT), (all_leave, ABSENT)])
def test_ranks_that_share_weights_and_read_other_data(tmp_path: Path, norm: Value, state: str) -> None:
    assert looked("ranks_share_weights", tmp_path, 3, grad_norm=norm).state == state


@pytest.mark.parametrize(("train", "state"), [(twice, SEEN), (local, ABSENT)])
def test_of_two_ranks_the_one_that_always_costs_half_as_much_again(tmp_path: Path, train: Value, state: str) -> None:
    assert looked("one_rank_apart_throughout", tmp_path, 2, loss=train).state == state
