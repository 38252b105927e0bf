"""Dumps of torch's Flight Recorder and of py-spy beside a log that just ends: which rank waits, which one never came, and where it is instead."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import pytest

import forensics
import parsers

BEGIN = 1_795_600_000
FRAMES = [
    {"name": "all_reduce", "filename": "/opt/site-packages/torch/distributed/distributed_c10d.py", "line": 2800},
    {"name": "train_step", "filename": "/home/me/train.py", "line": 57},
]


def dump(rank: int, last: int, done: int) -> dict[str, Any]:
    """What schema 2.10 has of a rank that enqueued collectives up to `last` and saw them done up to `done`."""
    entries = [
        {
            "frames": FRAMES, "record_id": n, "pg_id": 0, "process_group": ("0", "default_pg"), "collective_seq_id": n, "profiling_name": "nccl:all_reduce",
            "time_created_ns": int((BEGIN + 2 * n) * 1e9), "time_discovered_completed_ns": 5 if n <= done else None, "input_sizes": [[32, 32]],
            "state": "completed" if n <= done else "started", "timeout_ms": 600000, "is_p2p": False, "retired": n <= done,
        }
        for n in range(max(last - 20, 1), last + 1)
    ]  # fmt: skip
    return {"version": "2.10", "pg_config": {"0": {"desc": "default_pg", "ranks": "[0, 1]"}}, "entries": entries}


def log(folder: Path, steps: int = 300) -> None:
    lines = [json.dumps({"step": i, "loss": 1 + 2 / (1 + i / 30) + (i * 37 % 11) / 500, "time": BEGIN + 2 * i}) for i in range(steps)]
    (folder / "log.jsonl").write_text("\n".join(lines) + "\n")


@pytest.mark.parametrize("form", ["pickle", "json"])
def test_the_rank_that_is_behind_is_named_with_its_stack(tmp_path: Path, form: str) -> None:
    log(tmp_path)
    for rank in range(4):
        made = dump(rank, 299 if rank == 1 else 300, 299)
        path = tmp_path / f"nccl_trace_rank_{rank}"
        path.write_bytes(pickle.dumps(made) if form == "pickle" else json.dumps(made).encode())
    case = forensics.analyze(str(tmp_path)).to_json()
    assert case["run"]["ending"]["kind"] == "hang" and case["verdict"] == "unhealthy"
    top = case["hypotheses"][0]
    assert top["id"] == "hang" and "rank 1 fell behind the others" in case["answer"]
    assert "Its last one was called by train_step (train.py:57)" in json.dumps(case)


def test_ranks_in_different_collectives(tmp_path: Path) -> None:
    log(tmp_path)
    for rank, name in enumerate(("nccl:all_reduce", "nccl:broadcast")):
        made = dump(rank, 300, 299)
        made["entries"][-1]["profiling_name"] = name
        (tmp_path / f"nccl_trace_rank_{rank}").write_bytes(pickle.dumps(made))
    assert "rank 0 waits in ALLREDUCE of 1024 numbers and rank 1 in BROADCAST" in json.dumps(forensics.analyze(str(tmp_path)).to_json())


def test_a_dump_that_the_run_outlived_is_no_end(tmp_path: Path) -> None:
    log(tmp_path, steps=2000)
    (tmp_path / "nccl_trace_rank_0").write_bytes(pickle.dumps(dump(0, 300, 299)))
    case = forensics.analyze(str(tmp_path)).to_json()
    assert case["run"]["ending"]["kind"] != "hang" and case["verdict"] == "healthy"


class Evil:
    def __reduce__(self) -> tuple[Any, ...]:
        return (Path.touch, (Path("made"),))


def test_nothing_in_a_dump_is_run_and_a_torn_one_gives_what_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    made = dump(0, 300, 299)
    (tmp_path / "nccl_trace_rank_0").write_bytes(pickle.dumps(made | {"more": Evil()}))
    (tmp_path / "nccl_trace_rank_1").write_bytes(pickle.dumps(made)[:-400])
    (tmp_path / "nccl_trace_rank_2").write_bytes(b"\x80\x04pg_config entries" + b"\xff" * 50)
    run = parsers.read(tmp_path)
    assert not (tmp_path / "made").exists()
    assert sorted(e["rank"] for e in run.tables["events"].to_pylist()) == [0, 1]
    assert [(g.path, g.what[:52]) for g in run.gaps] == [
        ("nccl_trace_rank_2", "a dump of the Flight Recorder that cannot be read: ")
    ] or len(run.gaps) == 1


STACKS = """Process {pid}: python -u train.py
Python v3.11.7 (/usr/bin/python3.11)

Thread {pid} (idle): "MainThread"
{frames}
Thread 77 (idle): "Thread-1 (_pin_memory_loop)"
    select (selectors.py:415)
"""
REDUCES = [("wait", "threading.py", 331), ("all_reduce", "torch/distributed/distributed_c10d.py", 2800), ("main", "train.py", 57)]
LOADS = [("get", "queue.py", 180), ("_next_data", "torch/utils/data/dataloader.py", 1445), ("main", "train.py", 84)]


def as_json(pid: int, frames: list[tuple[str, str, int]]) -> str:
    return json.dumps([{"pid": pid, "thread_id": pid, "thread_name": "MainThread", "active": False,
                        "frames": [{"name": n, "filename": f"/x/{f}", "short_filename": f, "line": at} for n, f, at in frames]}])  # fmt: skip


@pytest.mark.parametrize("form", ["text", "json"])
def test_main_threads_of_a_run_that_stopped(tmp_path: Path, form: str) -> None:
    log(tmp_path)
    for rank, frames in enumerate((REDUCES, LOADS)):
        lines = "".join(f"    {name} ({file}:{at})\n" for name, file, at in frames)
        text = STACKS.format(pid=42 + rank, frames=lines) if form == "text" else as_json(42 + rank, frames)
        (tmp_path / f"pyspy_rank{rank}.{'txt' if form == 'text' else 'json'}").write_text(text)
    run = parsers.read(tmp_path)
    said = [(e["rank"], e["kind"], e["text"]) for e in run.tables["events"].to_pylist()]
    assert said[0][:2] == (0, "hang") and "in all_reduce (torch/distributed/distributed_c10d.py:2800) < main (train.py:57)" in said[0][2]
    assert said[1][:2] == (1, "warning") and "in _next_data (torch/utils/data/dataloader.py:1445) < main (train.py:84)" in said[1][2]
    answer = forensics.analyze(str(tmp_path)).to_json()["answer"]
    assert "the data loader's workers are stuck" in answer
