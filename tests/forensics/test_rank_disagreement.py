"""Ranks that part, jump, drift, lag or stand at different steps; and ranks that only differ by noise."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from runs import START, case, read, top

from forensics.case import Finding
from forensics.detectors import rank_disagreement
from forensics.errors import CannotTell
from forensics.run import rank_shapes

N = 300
Value = Callable[[int, int, np.random.Generator], float]


def ranked(folder: Path, ranks: int = 4, *, until: Callable[[int], int] = lambda rank: N, **metrics: Value) -> Path:
    """Files of `ranks` ranks; a metric is a function of step, rank and a generator of that rank's own."""
    folder.mkdir(parents=True)
    for rank in range(ranks):
        rng = np.random.default_rng(rank)
        rows = [{"step": s, "time": START + s} | {k: f(s, rank, rng) for k, f in metrics.items()} for s in range(1, until(rank) + 1)]
        (folder / f"rank{rank}.jsonl").write_text("".join(json.dumps(r) + "\n" for r in rows))
    return folder


def curve(s: int) -> float:
    return float(1.5 + 2.5 * np.exp(-s / 80))


def local(s: int, rank: int, rng: np.random.Generator) -> float:
    return float(curve(s) * np.exp(0.04 * rng.standard_normal()))


def found(folder: Path) -> list[Finding]:
    return list(rank_disagreement.detect(read(folder)))


@pytest.mark.parametrize("ranks", [2, 4, 8])
def test_noise_between_ranks_is_no_disagreement(tmp_path: Path, ranks: int) -> None:
    same = [1 + 0.1 * float(np.sin(s * s)) for s in range(N + 1)]
    assert not found(
        ranked(
            tmp_path / "r", ranks, loss=local, grad_norm=lambda s, r, g: same[s], step_time=lambda s, r, g: float(0.5 + 0.02 * g.random())
        )
    )


def test_batches_that_scatter_more_as_the_loss_falls_are_no_drift(tmp_path: Path) -> None:
    assert not found(ranked(tmp_path / "r", 2, loss=lambda s, r, g: curve(s) * float(np.exp(0.003 * s * g.standard_normal()))))


@pytest.mark.parametrize("seed", range(8))
def test_two_ranks_of_which_the_loss_comes_near_zero(seed: int) -> None:
    """What their batches differ by grows, as a share, with a loss that all but vanishes."""
    g = np.random.default_rng(seed)
    level = 3 * np.exp(-np.arange(60) / 12) + 0.004
    share = np.where(np.arange(60) < 20, 0.02, 0.25)
    assert rank_shapes.one_apart(level[:, None] * np.exp(share[:, None] * g.standard_normal((60, 2))), 0.05) is None


def test_slow_noise_between_ranks_is_none_either() -> None:
    fired = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        own = np.zeros((400, 4))
        for i in range(1, 400):
            own[i] = 0.95 * own[i - 1] + 0.05 * np.sqrt(1 - 0.95**2) * rng.standard_normal(4)
        x = np.exp(own) * np.array([[curve(s)] for s in range(400)])
        fired += rank_shapes.one_apart(x, 0.05) is not None or rank_shapes.drift(x, 0.05) is not None
    assert fired <= 1


def test_one_rank_that_leaves_at_a_step(tmp_path: Path) -> None:
    one = found(ranked(tmp_path / "r", loss=lambda s, r, g: local(s, r, g) * (1.4 if r == 2 and s > 200 else 1)))[0]
    assert (one.facts.pattern, one.facts.rank, one.severity) == ("jump", 2, "warning")
    assert abs(one.facts.step - 201) <= 2
    assert one.facts.relative == pytest.approx(0.4, abs=0.08)
    pair = found(ranked(tmp_path / "s", 2, loss=lambda s, r, g: local(s, r, g) * (1.6 if r == 1 and s > 200 else 1)))[0]
    assert (pair.facts.pattern, pair.facts.rank) == ("jump", 1)


def test_numbers_that_an_all_reduce_made_equal(tmp_path: Path) -> None:
    def norm(s: int, rank: int, rng: np.random.Generator) -> float:
        return float(1 + 0.1 * np.sin(s * s) + (0.01 * rank * rng.random() if s > 150 else 0))

    got = case(ranked(tmp_path / "r", loss=local, grad_norm=norm))
    first = next(f for f in got["findings"] if f["kind"] == "rank_disagreement")
    assert (first["facts"]["pattern"], first["steps"][0]) == ("parts", 151)
    assert top(got)["id"] == "rank_divergence"


def test_replicas_that_drift_apart(tmp_path: Path) -> None:
    drift = found(ranked(tmp_path / "r", 4, param_norm=lambda s, r, g: 50 * (1 + (r - 1.5) * 1e-4 * s) + 0.01 * float(g.random())))[0]
    assert drift.facts.pattern in ("drift", "jump")
    spread = found(ranked(tmp_path / "s", 8, loss=lambda s, r, g: local(s, r, g) * float(np.exp(0.002 * s * np.sin(7.0 * r)))))[0]
    assert spread.severity == "warning"


@pytest.mark.parametrize(("ranks", "slow"), [(4, 3), (2, 0), (2, 1)])
def test_a_straggler_feeds_the_throughput(tmp_path: Path, ranks: int, slow: int) -> None:
    folder = ranked(
        tmp_path / "r", ranks, loss=local, step_time=lambda s, r, g: float(0.5 + 0.01 * g.random()) * (1.5 if r == slow and s > 120 else 1)
    )
    one = found(folder)[0]
    assert (one.facts.pattern, one.facts.rank) == ("straggler", slow)
    got = case(folder)
    lead = next(h for h in got["hypotheses"] if h["id"] != "unknown")
    assert lead["id"] == "throughput_collapse" and f"rank {slow} is slower" in lead["title"]


def test_ranks_at_different_steps_feed_the_hang(tmp_path: Path) -> None:
    folder = ranked(tmp_path / "r", until=lambda rank: N - 40 if rank == 1 else N, loss=local)
    (folder / "train.log").write_text("slurmstepd: error: *** JOB 12 ON n1 CANCELLED AT 2026-06-06T13:49:25 DUE TO TIME LIMIT ***\n")
    got = case(folder)
    steps = next(f for f in got["findings"] if f["kind"] == "rank_disagreement")
    assert (steps["facts"]["pattern"], steps["facts"]["behind"]) == ("steps", [1])
    assert top(got)["id"] == "hang"
    assert top(got)["title"] == "Hang: rank 1 stopped earlier than the others"


def test_apart_from_the_start_is_for_information_unless_far(tmp_path: Path) -> None:
    near = found(
        ranked(tmp_path / "r", loss=lambda s, r, g: curve(s) * float(np.exp(0.02 * g.standard_normal())) * (1.12 if r == 0 else 1))
    )[0]
    assert (near.facts.pattern, near.facts.rank, near.severity) == ("apart", 0, "info")
    far = found(ranked(tmp_path / "s", loss=lambda s, r, g: local(s, r, g) * (1.6 if r == 0 else 1)))[0]
    assert (far.facts.pattern, far.severity) == ("apart", "warning")


def test_stages_that_log_zeros_are_left_out(tmp_path: Path) -> None:
    assert not found(ranked(tmp_path / "r", loss=lambda s, r, g: local(s, r, g) if r >= 2 else 0.0))


def test_one_rank_alone_cannot_tell(tmp_path: Path) -> None:
    with pytest.raises(CannotTell, match="only one rank"):
        found(ranked(tmp_path / "r", 1, loss=local))
    assert found(ranked(tmp_path / "s", 2, until=lambda rank: 20, loss=local)) == []  # too short to compare, but both came as far
