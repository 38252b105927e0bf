"""The logs of two ranks, each with losses of its own batches, beside what a tracker keeps of the first."""

from __future__ import annotations

import json
from pathlib import Path

import parsers


def loss(rank: int, step: int) -> float:
    return round(4 / (1 + step / 50) + 0.01 * ((step * 7919 + 31 * rank) % 13), 4)


def test_they_are_one_run(tmp_path: Path) -> None:
    for rank in (0, 1):
        lines = [f"[2026-11-29 16:10:{s // 10:02d},000][rank{rank}][INFO] step {s} loss={loss(rank, s)} lr=0.003" for s in range(0, 300, 5)]
        (tmp_path / f"rank{rank}.log").write_text("\n".join(lines) + "\n")
    (store := tmp_path / "mlruns" / "0" / "5cf4aac186564e29b068e75a07edd47e" / "metrics").mkdir(parents=True)
    (store / "loss").write_text("".join(f"{1_795_795_800_000 + 100 * s} {loss(0, s)} {s}\n" for s in range(0, 300, 5)))
    (tmp_path / "metrics.jsonl").write_text("".join(json.dumps({"step": s, "loss": loss(0, s)}) + "\n" for s in range(0, 300, 5)))
    (run,) = parsers.read_all(tmp_path)
    assert {s.path for s in run.sources} >= {"rank0.log", "rank1.log", "metrics.jsonl"}
    assert {r["rank"] for r in run.tables["metrics"].to_pylist()} >= {0, 1}


def test_the_second_rank_may_come_first(tmp_path: Path) -> None:
    """Its log and the tracker's are sorted by their clocks, and neither tells of the other until the first rank's does."""
    (tmp_path / "logs").mkdir()
    for rank, begin in ((0, 2), (1, 0)):
        lines = [f"11-29 16:10:{begin + s // 10:02d} [rank{rank}] step {s} ce {loss(rank, s)} |g| 1.5" for s in range(0, 300, 5)]
        (tmp_path / "logs" / f"rank{rank}.log").write_text("\n".join(lines) + "\n")
    (store := tmp_path / "mlruns" / "0" / "5cf4aac186564e29b068e75a07edd47e" / "metrics" / "train").mkdir(parents=True)
    (store / "ce").write_text("".join(f"{1_795_968_601_000 + 100 * s} {loss(0, s)} {s}\n" for s in range(0, 300, 5)))
    (run,) = parsers.read_all(tmp_path)
    assert {s.path for s in run.sources} >= {"logs/rank0.log", "logs/rank1.log"}
