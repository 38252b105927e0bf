"""The benchmarks' workloads, a thousandth of their size: every reader finds the numbers that were written."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

BENCHMARKS = Path(__file__).resolve().parent.parent / "benchmarks"
SCALE = 0.001


@pytest.fixture(scope="module")
def ingest() -> Any:
    sys.path.insert(0, str(BENCHMARKS))
    try:
        yield importlib.import_module("ingest")
    finally:
        sys.path.remove(str(BENCHMARKS))


def readers(ingest: Any, workload: str) -> list[str]:
    return list(dict.fromkeys(n for t in ingest.TARGETS if t.workload == workload for n in (t.ours, t.peer)))


@pytest.mark.parametrize("workload", ["scalars 1M", "tensors 1M", "mixed", "300 runs", "wandb", "trainer_state NaN, torn",
                                      "jsonl NaN, torn", "megatron"])  # fmt: skip
def test_all_readers_find_what_was_written(workload: str, ingest: Any, tmp_path: Path) -> None:
    peers, workloads = importlib.import_module("peers"), importlib.import_module("workloads")
    truth = workloads.WORKLOADS[workload](tmp_path / "w", SCALE)
    found = {}
    for reader in readers(ingest, workload):
        count, total = getattr(peers, reader)()(tmp_path / "w")
        found[reader] = count
        ingest.agree(workload, truth, ingest.Measured(reader, count, total, 1.0, 1.0, 1.0))
    assert {"ours", "ours_megatron"} & set(found)
    assert len(found) >= 2


def test_a_reader_that_finds_something_else_ends_the_benchmark(ingest: Any) -> None:
    with pytest.raises(SystemExit, match="found 3 numbers"):
        ingest.agree("scalars 1M", (4, 10.0), ingest.Measured("ours", 3, 10.0, 1.0, 1.0, 1.0))
    with pytest.raises(SystemExit, match="sum 11"):
        ingest.agree("scalars 1M", (4, 10.0), ingest.Measured("ours", 4, 11.0, 1.0, 1.0, 1.0))


def test_workloads_are_the_same_every_time(tmp_path: Path, ingest: Any) -> None:
    workloads = importlib.import_module("workloads")
    for name in ("scalars 1M", "flipped 1M", "jsonl"):
        written = []
        for i in range(2):
            workloads.WORKLOADS[name](tmp_path / f"{name}{i}", SCALE)
            written.append([p.read_bytes() for p in sorted((tmp_path / f"{name}{i}").iterdir())])
        assert written[0] == written[1]


def test_the_command_prints_a_table_and_writes_the_page(tmp_path: Path) -> None:
    page = tmp_path / "speed.md"
    command = [sys.executable, str(BENCHMARKS / "ingest.py"), "--quick", "--only", "trainer_state NaN", "--markdown", str(page)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[0].split("|")[1].strip() == "workload"
    assert "trainer_state NaN, torn" in done.stdout
    assert "json loads" in page.read_text()
    reading = [sys.executable, str(BENCHMARKS / "ingest.py"), "--read", "json_loads", str(tmp_path / "none")]
    assert subprocess.run(reading, capture_output=True, text=True).returncode != 0
    assert json.dumps(page.read_text()).count("Machine") == 1
