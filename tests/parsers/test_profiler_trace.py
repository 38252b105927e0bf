"""Traces of torch.profiler: what a step waits for, by hand and by torch itself."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

import parsers
from parsers.records import profiler_events


def event(name: str, ts: float, dur: float, cat: str = "cpu_op") -> dict[str, Any]:
    return {"ph": "X", "cat": cat, "name": name, "pid": 1, "tid": 1, "ts": ts, "dur": dur}


def trace() -> dict[str, Any]:
    """Two steps of 1000 us: 400 on the loader, 100 in syncs, 300 of kernels, 200 of NCCL of which 150 overlap with kernels."""
    events = []
    for i in range(2):
        t = 1000.0 * i
        events += [
            event(f"ProfilerStep#{7 + i}", t, 1000, "user_annotation"),
            event("enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__", t, 400, "user_annotation"),
            event("cudaStreamSynchronize", t + 900, 100, "cuda_runtime"),
            event("aten::_local_scalar_dense", t + 900, 100),
            event("sgemm", t + 500, 300, "kernel"),
            event("ncclDevKernel_AllReduce_Sum_f32", t + 650, 200, "kernel"),
        ]
    head = {"schemaVersion": 1, "baseTimeNanoseconds": 1_790_000_000_000_000_000, "distributedInfo": {"rank": 3, "world_size": 8}}
    return {**head, "traceEvents": [{"ph": "M", "name": "process_name"}, *events]}


@pytest.mark.parametrize("packed", [False, True])
def test_shares_of_a_step(tmp_path: Path, packed: bool) -> None:
    text = json.dumps(trace()).encode()
    (tmp_path / ("a.pt.trace.json.gz" if packed else "a.pt.trace.json")).write_bytes(gzip.compress(text) if packed else text)
    run = parsers.read(tmp_path)
    rows = run.tables["metrics"].to_pylist()
    first = {r["tag"].removeprefix("profiler/"): r["value"] for r in rows if r["at"] == 1}
    assert first == pytest.approx(
        {"step ms": 1, "host syncs": 1, "loader wait %": 40, "host syncs %": 10, "exposed communication %": 5, "device idle %": 65}
    )
    assert {r["rank"] for r in rows} == {3} and {r["step"] for r in rows} == {None} and rows[0]["time"] == 1_790_000_000
    (told,) = run.tables["events"].to_pylist()
    assert told["kind"] == "profile" and "loader wait 40 %, host syncs 10 %, exposed communication 5 %" in told["text"]


def test_a_trace_of_torch(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.randn(24, 8)), batch_size=4)
    model, path = torch.nn.Linear(8, 8), tmp_path / "w.pt.trace.json"
    plan = torch.profiler.schedule(wait=1, warmup=1, active=3, repeat=1)
    ready = lambda p: p.export_chrome_trace(str(path))  # noqa: E731
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], schedule=plan, on_trace_ready=ready) as profiler:
        for (x,) in loader:
            model(x).sum().item()
            profiler.step()
    rows = parsers.read(tmp_path).tables["metrics"].to_pylist()
    waits = [r["value"] for r in rows if r["tag"] == "profiler/loader wait %"]
    assert len(waits) >= 1 and all(0 < w < 100 for w in waits) and {r["tag"] for r in rows} >= {"profiler/host syncs"}


def test_damage_and_traces_without_steps(tmp_path: Path) -> None:
    text = json.dumps(trace())
    (tmp_path / "cut.pt.trace.json").write_text(text[: len(text) // 2])
    (tmp_path / "bare.json").write_text(json.dumps({"schemaVersion": 1, "traceEvents": [event("sgemm", 1, 2, "kernel"), 7]}))
    (tmp_path / "bad.trace.json.gz").write_bytes(b"\x1f\x8b" + b"\x00" * 20)
    run = parsers.read(tmp_path)
    assert sorted((g.path, g.what[:30]) for g in run.gaps) == [
        ("bad.trace.json.gz", "a profiler's trace that cannot"),
        ("cut.pt.trace.json", "the trace is cut off here"),
    ]
    assert "without marks of steps" in next(s.note for s in run.sources if s.path == "bare.json")
    assert run.tables["metrics"].num_rows > 0


def test_spans_that_overlap_are_counted_once() -> None:
    assert profiler_events.union([(5, 7), (0, 2), (1, 3), (3, 4)]) == [(0, 4), (5, 7)]
