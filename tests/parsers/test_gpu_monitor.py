"""What nvidia-smi wrote beside a training, with and without units; and tables that only look like it."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import forensics

BEGIN = 1_780_000_000
HEAD = "timestamp, index, name, utilization.gpu [%], memory.used [MiB], temperature.gpu, power.draw [W], clocks.current.sm [MHz]\n"


def monitor(folder: Path, *, hot: bool, units: bool = True) -> Path:
    folder.mkdir()
    steps = [json.dumps({"step": i, "loss": 3 - i / 200, "time": BEGIN + i * 10}) for i in range(1, 201)]
    (folder / "log.jsonl").write_text("\n".join(steps) + "\n")
    lines = []
    for i in range(200):
        when = datetime.fromtimestamp(BEGIN + 10 + i * 10, UTC).strftime("%Y/%m/%d %H:%M:%S.123")
        warm = hot and i >= 100
        u = ("%", "MiB", "W", "MHz") if units else ("",) * 4
        lines.append(
            f"{when}, 0, NVIDIA A100, {95 + i % 3} {u[0]}, 40000 {u[1]}, {86 if warm else 60}, [N/A], {900 if warm else 1410} {u[3]}\n"
        )
    (folder / "gpu.csv").write_text(HEAD + "".join(lines[:50]) + HEAD + "".join(lines[50:]) + "2026/03/0")
    return folder


def test_a_device_that_throttles_is_told_and_a_cool_one_is_not(tmp_path: Path) -> None:
    for name, hot, units in (("hot", True, True), ("bare", True, False), ("cool", False, True)):
        told = forensics.analyze(str(monitor(tmp_path / name, hot=hot, units=units))).to_json()
        assert any("throttles" in f["title"] for f in told["findings"]) == hot and told["verdict"] == "healthy"
        assert told["run"]["metrics"]["loss.train"]["points"] == 200


def test_rows_have_a_clock_and_no_step(tmp_path: Path) -> None:
    run = forensics.read(str(monitor(tmp_path / "x", hot=False)))
    rows = [r for r in run.tables["metrics"].to_pylist() if r["source"] == "gpu.csv"]
    assert {r["name"] for r in rows} == {"gpu.util", "gpu.mem", "gpu.temp", "gpu.clock"} and {r["step"] for r in rows} == {None}
    assert rows[0]["time"] == BEGIN + 10.123 and rows[0]["at"] == 2
    assert [g.lost for g in run.gaps] == [1]


def test_other_tables_with_a_timestamp_stay_logs(tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_text("timestamp,step,loss\n" + "".join(f"2026-03-04T05:06:{i:02d},{i},{3 - i / 60}\n" for i in range(60)))
    assert forensics.read(str(tmp_path)).tables["metrics"].num_rows == 60
