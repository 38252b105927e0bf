"""What nvidia-smi wrote beside a training, with and without units; and tables that only look like it."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

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


DMON = """#Date       Time        gpu    pwr  gtemp  mtemp     sm    mem   mclk   pclk
#YYYYMMDD   HH:MM:SS    Idx      W      C      C      %      %    MHz    MHz
 20260301   10:00:00      0    250     60      -     98     40   1593   1410
 20260301   10:00:01      1    251     61      -     97     40   1593   1400
#Date       Time        gpu    pwr  gtemp  mtemp     sm    mem   mclk   pclk
 20260301   10:00:02      0    250     60
"""
DCGM = """#Entity   GPUTL     POWER    TMPTR     SMCLK   XIDER
ID
GPU 0     98        250.1    60        1410    0
GPU 1     97        N/A      61        1410    0
GPU 1     97        251.9    61        1410    79
GPU 1     97        251.9    61        1410    79
"""


@pytest.mark.parametrize("name", ["dmon.log", "dmon.txt", "dmon"])
def test_dmon_of_nvidia_smi(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text(DMON)
    run = forensics.read(str(tmp_path))
    rows = {(r["tag"], r["at"]): r["value"] for r in run.tables["metrics"].to_pylist()}
    assert rows["system.gpu.0.util", 3] == 98 and rows["system.gpu.1.clock", 4] == 1400 and len(rows) == 8
    assert run.tables["metrics"]["time"].to_pylist()[0] == datetime(2026, 3, 1, 10, tzinfo=UTC).timestamp() and [
        g.lost for g in run.gaps
    ] == [1]


def test_dmon_of_dcgm_and_its_xid(tmp_path: Path) -> None:
    (tmp_path / "dcgm.log").write_text(DCGM)
    run = forensics.read(str(tmp_path))
    assert {r["name"] for r in run.tables["metrics"].to_pylist()} == {"gpu.util", "gpu.temp", "gpu.power", "gpu.clock"}
    assert [(e["kind"], e["level"], e["text"], e["at"]) for e in run.tables["events"].to_pylist()] == [
        ("hardware", "error", "GPU 1 reported Xid 79", 5)
    ]
    assert run.gaps == []
