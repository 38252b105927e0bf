"""Clocks that leave out the year, the date or the zone: dated where the folder allows one choice, else relative."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

import forensics
from forensics.run import pace, silence
from forensics.run.series import series
from parsers.tables import DATED, Run

Clock = Callable[[datetime], str]
LAUNCH = datetime(2024, 3, 5, 10, 0, 0, tzinfo=UTC)
GLOG: Clock = lambda t: f"I{t:%m%d %H:%M:%S.%f} 123 train.py:7] "  # noqa: E731
SYSLOG: Clock = lambda t: f"{t:%b %d %H:%M:%S} node1 "  # noqa: E731
DAY_FIRST: Clock = lambda t: f"{t:%d-%b %H:%M:%S} "  # noqa: E731
DETECTRON: Clock = lambda t: f"[{t:%m/%d %H:%M:%S} d2.utils.events]: "  # noqa: E731
TIME_OF_DAY: Clock = lambda t: f"[{t:%H:%M:%S}] "  # noqa: E731
ZONELESS: Clock = lambda t: f"{t:%Y-%m-%d %H:%M:%S} INFO "  # noqa: E731


def loss(i: int) -> float:
    return round(2.0 + 3.0 / (1 + i / 20) + 0.01 * ((i * 7919) % 13), 4)


def log(path: Path, clock: Clock, start: datetime = LAUNCH, steps: Iterable[int] = range(1, 101), seconds: float = 6.0) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = [f"{clock(start + timedelta(seconds=i * seconds))}step: {i} loss: {loss(i)} lr: 0.001\n" for i in steps]
    path.write_text("".join(lines))
    os.utime(path, (LAUNCH.timestamp() + 900 * 86400,) * 2)  # a clone of years later
    return path


def jsonl(path: Path, start: datetime, steps: Iterable[int] = range(1, 101), seconds: float = 6.0, name: str = "loss") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    rows = [{"step": i, name: loss(i) if name == "loss" else loss(7 * i) / 3, "time": start.timestamp() + i * seconds} for i in steps]
    path.write_text("".join(json.dumps(r) + "\n" for r in rows))


def read(folder: Path) -> Run:
    return forensics.read(str(folder))


def times(run: Run, source: str) -> NDArray[np.float64]:
    table = run.tables["metrics"].to_pylist()
    return np.array([r["time"] for r in table if r["source"] == source and r["step"] is not None])


@pytest.mark.parametrize("clock", [GLOG, SYSLOG, DAY_FIRST, DETECTRON, TIME_OF_DAY])
def test_a_clock_alone_is_relative(tmp_path: Path, clock: Clock) -> None:
    run = read(log(tmp_path / "r" / "train.log", clock).parent)
    found = times(run, "train.log")
    assert found.max() < DATED and run.sources[0].clock == "relative" and "no dated clock" in run.sources[0].note
    s = series(run, "loss.train")
    assert s is not None and np.nanmedian(pace.pauses(s).a_step) == 6.0  # intervals hold
    assert [(a["started"], a["ended"]) for a in run.attempts] == [(None, None)]
    case = forensics.analyze(str(tmp_path / "r")).to_json()
    assert [a["started"] for a in case["run"]["attempts"]] == [None] and case["timeline"]["clock"] == []


@pytest.mark.parametrize("clock", [GLOG, SYSLOG, DAY_FIRST, DETECTRON, TIME_OF_DAY])
@pytest.mark.parametrize("beside", ["metrics.jsonl", "stamp", "config.yaml"])
def test_a_dated_clock_of_the_folder_tells_the_year(tmp_path: Path, clock: Clock, beside: str) -> None:
    name = "train_20240305-100000.log" if beside == "stamp" else "train.log"
    log(tmp_path / "r" / name, clock)
    if beside == "config.yaml":
        (tmp_path / "r" / beside).write_text("lr: 0.001\nstarted: 2024-03-05 09:59:12\n")
    elif beside != "stamp":
        jsonl(tmp_path / "r" / beside, LAUNCH + timedelta(seconds=1), name="grad_norm")
    found = times(read(tmp_path / "r"), name)
    assert found.min() == (LAUNCH + timedelta(seconds=6)).timestamp()
    assert found.max() == (LAUNCH + timedelta(seconds=600)).timestamp()


def test_a_dated_line_of_the_same_log_tells_the_year(tmp_path: Path) -> None:
    path = log(tmp_path / "r" / "train.log", SYSLOG)
    with path.open("a") as f:
        f.write("slurmstepd: error: *** JOB 77 ON node1 CANCELLED AT 2024-03-05T11:00:00 ***\n")
    assert times(read(tmp_path / "r"), "train.log").min() == (LAUNCH + timedelta(seconds=6)).timestamp()


def test_a_dated_line_that_lies_too_far_leaves_the_others_relative(tmp_path: Path) -> None:
    path = log(tmp_path / "r" / "train.log", TIME_OF_DAY)
    with path.open("a") as f:
        f.write("slurmstepd: error: *** JOB 77 ON node1 CANCELLED AT 2024-03-09T19:30:00 ***\n")
    run = read(tmp_path / "r")
    assert run.sources[0].clock == "relative" and times(run, "train.log").max() == 594.0
    assert {e["time"] for e in run.tables["events"].to_pylist()} == {None} and not silence.stalled(run)


def test_two_years_that_fit_are_none(tmp_path: Path) -> None:
    log(tmp_path / "r" / "a" / "train.log", SYSLOG)
    for year in (2023, 2024):
        jsonl(tmp_path / "r" / f"other{year}" / "metrics.jsonl", LAUNCH.replace(year=year), range(1000, 1010), name="grad_norm")
    found = [t for run in forensics.read(str(tmp_path / "r" / "a")).sources for t in [run.clock]]
    assert found == ["relative"]
    from parsers import read_all

    clocks = {s.path: s.clock for run in read_all(tmp_path / "r") for s in run.sources}
    assert clocks["a/train.log"] == "relative"


@pytest.mark.parametrize(
    ("clock", "start"), [(GLOG, datetime(2023, 12, 31, 23, 55, tzinfo=UTC)), (TIME_OF_DAY, LAUNCH.replace(hour=23, minute=55))]
)
def test_new_year_and_midnight_within_a_file(tmp_path: Path, clock: Clock, start: datetime) -> None:
    log(tmp_path / "r" / "train.log", clock, start)
    found = times(read(tmp_path / "r"), "train.log")
    assert set(np.diff(np.unique(found)).round(3)) == {6.0}
    jsonl(tmp_path / "r" / "metrics.jsonl", start, name="grad_norm")
    found = times(read(tmp_path / "r"), "train.log")
    assert found.min() == (start + timedelta(seconds=6)).timestamp() and found.max() == (start + timedelta(seconds=600)).timestamp()


def test_a_time_of_day_that_falls_is_the_next_days(tmp_path: Path) -> None:
    path = log(tmp_path / "r" / "train.log", TIME_OF_DAY)
    first = path.read_text()
    log(path, TIME_OF_DAY, LAUNCH - timedelta(hours=6) + timedelta(days=1), range(101, 201))
    path.write_text(first + path.read_text() + "slurmstepd: error: *** JOB 77 ON node1 CANCELLED AT 2024-03-06T04:20:03 ***\n")
    found = times(read(tmp_path / "r"), "train.log")
    assert (np.diff(found) >= 0).all() and found[0] == (LAUNCH + timedelta(seconds=6)).timestamp()


def test_two_clocks_of_one_file_that_disagree_are_not_mixed(tmp_path: Path) -> None:
    path = log(tmp_path / "r" / "train.log", TIME_OF_DAY)
    lines = path.read_text().splitlines(keepends=True)
    lines.insert(50, f"{GLOG(LAUNCH + timedelta(hours=5))}[rank0]: Watchdog caught collective operation timeout\n")
    path.write_text("".join(lines))
    jsonl(tmp_path / "r" / "metrics.jsonl", LAUNCH, name="grad_norm")
    run = read(tmp_path / "r")
    assert {e["time"] for e in run.tables["events"].to_pylist() if e["source"] == "train.log"} == {None}
    assert np.isfinite(times(run, "train.log").astype(float)).all()


@pytest.mark.parametrize("hours", [8, -7, 5.75])
def test_a_zone_is_found_by_equal_values(tmp_path: Path, hours: float) -> None:
    log(tmp_path / "r" / "train.log", ZONELESS, LAUNCH + timedelta(hours=hours))
    jsonl(tmp_path / "r" / "metrics.jsonl", LAUNCH)
    run = read(tmp_path / "r")
    note = next(s.note for s in run.sources if s.path == "train.log")
    assert f"{hours:+.4g} h from UTC" in note and len(run.attempts) == 1
    assert not silence.stalled(run)


def test_other_values_tell_no_zone(tmp_path: Path) -> None:
    log(tmp_path / "r" / "train.log", ZONELESS, LAUNCH + timedelta(hours=8))
    jsonl(tmp_path / "r" / "metrics.jsonl", LAUNCH, name="grad_norm")
    run = read(tmp_path / "r")
    assert {s.clock for s in run.sources} == {"local", ""}
    assert not silence.stalled(run)  # eight hours of silence are a zone


def test_a_relative_clock_is_dated_by_equal_values(tmp_path: Path) -> None:
    log(tmp_path / "r" / "train.log", TIME_OF_DAY, LAUNCH + timedelta(hours=8))
    jsonl(tmp_path / "r" / "metrics.jsonl", LAUNCH)
    run = read(tmp_path / "r")
    assert {s.clock for s in run.sources} == {""} and len(run.attempts) == 1


def test_a_clock_a_year_off_is_no_stall(tmp_path: Path) -> None:
    folder = tmp_path / "r"
    jsonl(folder / "metrics.jsonl", LAUNCH, range(1, 51))
    with (folder / "metrics.jsonl").open("a") as f:
        f.writelines(
            json.dumps({"step": i, "loss": loss(i), "time": LAUNCH.timestamp() + 366 * 86400 + i * 6}) + "\n" for i in range(51, 101)
        )
    case = forensics.analyze(str(folder)).to_json()
    assert [f["title"] for f in case["findings"] if f["kind"] in ("stall", "throughput")] == []
    assert case["run"]["goodput"]["seconds_running"] is None
