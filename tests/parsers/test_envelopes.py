"""Logs whose lines stand in records of docker, Kubernetes, a cloud, the journal or a logging library: the line is read as ever, with the record's clock."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

import parsers
from parsers.console_format import envelopes

BEGIN = datetime(2026, 3, 1, 10, 0, tzinfo=UTC)
LINES = [
    "starting up",
    *(f"step {i} loss {3 - i / 40} lr 0.001" for i in range(60)),
    "Traceback (most recent call last):",
    '  File "train.py", line 10, in <module>',
    "RuntimeError: boom",
]


def iso(i: int) -> str:
    return (BEGIN + timedelta(seconds=i)).strftime("%Y-%m-%dT%H:%M:%S.%f") + "789Z"


def ms(i: int) -> int:
    return int((BEGIN + timedelta(seconds=i)).timestamp() * 1000)


def lines(record: Callable[[int, str], dict[str, object]]) -> str:
    return "".join(json.dumps(record(i, s)) + "\n" for i, s in enumerate(LINES))


def docker() -> str:
    """A long line comes in pieces, of which the last ends with a line end."""
    rows = [{"log": s + "\n", "stream": "stdout", "time": iso(i)} for i, s in enumerate(LINES)]
    rows[5:6] = [{**rows[5], "log": LINES[5][:9]}, {**rows[5], "log": LINES[5][9:] + "\n"}]
    return "".join(json.dumps(r) + "\n" for r in rows)


def cri() -> str:
    found = [f"{iso(i)} stdout F {s}" for i, s in enumerate(LINES)]
    found[5:6] = [f"{iso(5)} stdout P {LINES[5][:9]}", f"{iso(5)} stdout F {LINES[5][9:]}"]
    return "\n".join(found) + "\n"


def insights() -> str:
    out = io.StringIO()
    rows = [[iso(i)[:23].replace("T", " "), s, "job/algo-1"] for i, s in enumerate(LINES)]
    csv.writer(out).writerows([["@timestamp", "@message", "@logStream"], *reversed(rows)])
    return out.getvalue()


def cloud_array() -> str:
    rows = [{"insertId": f"x{i}", "textPayload": s, "timestamp": iso(i), "logName": "projects/p/logs/w"} for i, s in enumerate(LINES)]
    return json.dumps(rows[::-1], indent=2)


WRITTEN = {
    "0a1b-json.log": docker,
    "pod.log": cri,
    "downloaded.jsonl": lambda: lines(
        lambda i, s: {
            "insertId": f"x{i}",
            "logName": "projects/p/logs/w",
            "jsonPayload": {"message": s, "levelname": "INFO"},
            "severity": "INFO",
            "timestamp": iso(i),
        }
    ),
    "downloaded.json": cloud_array,
    "get-log-events.json": lambda: json.dumps(
        {
            "events": [
                {"timestamp": ms(i), "message": f"[1,mpirank:0,algo-1]<stdout>:{s}", "ingestionTime": ms(i) + 5}
                for i, s in enumerate(LINES)
            ]
        },
        indent=4,
    ),
    "logs-insights-results.csv": insights,
    "journal.json": lambda: lines(lambda i, s: {"__REALTIME_TIMESTAMP": str(ms(i) * 1000), "PRIORITY": "6", "_PID": "12", "MESSAGE": s}),
    "logcli.jsonl": lambda: lines(lambda i, s: {"labels": {"pod": "a"}, "line": s, "timestamp": iso(i)}),
    "det.jsonl": lambda: lines(lambda i, s: {"trial_id": 7, "log": s + "\n", "timestamp": iso(i), "rank_id": 0, "level": "INFO"}),
    "app.log": lambda: lines(lambda i, s: {"asctime": iso(i)[:23], "levelname": "INFO", "name": "root", "message": s, "lineno": 3}),
}


@pytest.mark.parametrize("name", WRITTEN)
def test_every_line_is_read_with_the_clock_of_its_record(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_text(WRITTEN[name]())
    assert [parsers.name_of(p) for p in parsers.claimants(path, path.read_bytes()[:8192])] == ["console"]
    run = parsers.read(path)
    rows = [r for r in run.tables["metrics"].to_pylist() if r["tag"] == "loss"]
    assert [(r["step"], r["value"]) for r in rows] == [(i, 3 - i / 40) for i in range(60)]
    assert [round(r["time"] - BEGIN.timestamp(), 2) for r in rows] == [i + 1 for i in range(60)]
    assert [e["text"] for e in run.tables["events"].to_pylist() if e["kind"] == "traceback"] == [
        "RuntimeError: boom  [train.py:10 in <module>]"
    ]
    assert run.gaps == []


def test_rank_of_the_record(tmp_path: Path) -> None:
    rows = [{"trial_id": 7, "log": f"step {i} loss {i / 7}\n", "timestamp": iso(i), "rank_id": i % 2} for i in range(20)]
    (tmp_path / "logs.jsonl").write_text("".join(json.dumps(r) + "\n" for r in rows))
    assert [(r["step"], r["rank"]) for r in parsers.read(tmp_path).tables["metrics"].to_pylist()] == [(i, i % 2) for i in range(20)]


def test_a_damaged_record_costs_itself(tmp_path: Path) -> None:
    told = cri().splitlines()
    told[20] = "\x00" * 40
    told[21] = told[21][:11]
    (tmp_path / "pod.log").write_text("\n".join(told))
    run = parsers.read(tmp_path)
    assert run.tables["metrics"].num_rows == 2 * 58 and [(g.at, g.lost) for g in run.gaps] == [("line 22", 1)]


@pytest.mark.parametrize(
    "row",
    [
        {"message": "epoch done", "time": "2026-03-01T10:00:00Z", "step": 3, "loss": 2.5},  # it measured something
        {"message": "a chat of two", "time": "2026-03-01T10:00:00Z"},  # no text of a training
        {"log": "step 1 loss 2.0", "stream": "stdout"},  # no clock
        {"prompt": "step 1 loss 2.0", "timestamp": "2026-03-01T10:00:00Z"},
    ],
)
def test_other_rows_stay_rows(tmp_path: Path, row: dict[str, object]) -> None:
    head = (json.dumps(row) + "\n").encode() * 30
    assert envelopes.kind_of(tmp_path / "a.jsonl", head) == ""


def test_determined_puts_trial_rank_and_logger_in_front_of_a_line(tmp_path: Path) -> None:
    said = [f"[{iso(i)[:26]}Z] 8f0a1b2c [rank=1] || INFO: [123] root: step {i} loss {i / 7}\n" for i in range(9)]
    (tmp_path / "trial_1.log").write_text("".join(said))
    rows = parsers.read(tmp_path).tables["metrics"].to_pylist()
    assert {r["tag"] for r in rows} == {"loss"} and {r["rank"] for r in rows} == {1} and [r["step"] for r in rows] == list(range(9))


def test_a_number_that_the_end_of_the_file_may_have_cut_is_left_out(tmp_path: Path) -> None:
    (tmp_path / "pod.log").write_text("".join(f"{iso(i)} stdout F step {i} loss {2.125}\n" for i in range(9))[:-3])
    run = parsers.read(tmp_path)
    assert run.tables["metrics"]["value"].to_pylist() == [2.125] * 8 and [(g.at, g.lost) for g in run.gaps] == [("line 9", 1)]


def test_the_newest_record_may_stand_first_in_lines_as_well(tmp_path: Path) -> None:
    rows = [{"labels": {}, "line": s, "timestamp": iso(i)} for i, s in enumerate(LINES)]
    (tmp_path / "logcli.jsonl").write_text("".join(json.dumps(r) + "\n" for r in reversed(rows)))
    run = parsers.read(tmp_path)
    assert run.tables["metrics"]["step"].to_pylist()[::2] == list(range(60))
    assert run.tables["events"].to_pylist()[0]["text"] == "RuntimeError: boom  [train.py:10 in <module>]"
