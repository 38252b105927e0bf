"""The makers of runs with known faults: a plan of the plain loops trains, and gives a run and its truth."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch")
MAKE = Path(__file__).resolve().parent.parent / "benchmarks" / "makers" / "loops" / "make.py"
FAMILY = "numpy-mlpcancer-csv"
FIELDS = {"id", "family", "kind", "cause", "accept", "identifiable", "from_what", "first_fault_step", "twin"}


@pytest.mark.skipif(sys.platform != "linux", reason="the makers read /proc and limit memory as Linux does")
def test_a_plan_gives_runs_and_their_truth(tmp_path: Path) -> None:
    wanted = ["--family", FAMILY, "--healthy", "2", "--faulty", "1"]
    made = subprocess.run([sys.executable, str(MAKE), str(tmp_path), *wanted], capture_output=True, text=True, timeout=120)
    assert made.returncode == 0, made.stderr
    truth = json.loads((tmp_path / "truth.json").read_text("utf-8"))
    healthy = [t["id"] for t in truth if t["kind"] == "healthy"]
    [faulty] = [t for t in truth if t["kind"] == "faulty"]
    assert len(healthy) == 2
    assert faulty["twin"] in healthy
    assert faulty["cause"] == "inputs_not_normalized"
    for t in truth:
        assert set(t) == FIELDS
        assert t["family"] == FAMILY
        rows = (tmp_path / "runs" / t["id"] / "numpy_log.csv").read_text("utf-8").splitlines()
        assert len(rows) == 101  # a header and every fifth of 500 steps
        assert t["cause"] is None or t["cause"] not in "".join(p.read_text("utf-8") for p in (tmp_path / "runs" / t["id"]).iterdir())
