"""The history of many nights: what is new since the last, what a damaged part costs, and weeks."""

from __future__ import annotations

import json
import random
import threading
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from forensics import audits
from forensics.audits import history, trends
from forensics.audits.history import Mark, Past
from forensics.audits.row_columns import COLUMNS
from forensics.cli import main
from forensics.errors import ForensicsError
from reports import audit_page, html, slack

DRAWN = audits.Outputs(html.render, audit_page.render, audit_page.markdown)
CRASH = 'Traceback (most recent call last):\n  File "train.py", line 9, in <module>\n    step()\nRuntimeError: shapes differ\n'


def put(folder: Path, seed: int, spikes: tuple[int, ...] = (), log: str = "", steps: int = 300) -> None:
    """A run of two GPUs, a step a second, finished."""
    rng = random.Random(seed)
    folder.mkdir(parents=True, exist_ok=True)
    told = []
    for i in range(steps):
        loss = 1.0 + 2.0 * 0.5 ** (i / 150) + 0.01 * rng.gauss(0, 1) + (3.0 if i in spikes else 0.0)
        told.append(json.dumps({"step": i, "loss": loss, "time": 1.7e9 + seed * 1e5 + i}) + "\n")
    (folder / "metrics.jsonl").write_text("".join(told))
    config = {"lr": 1e-3, "batch_size": 8, "seed": seed, "warmup_steps": 10, "world_size": 2, "max_steps": 300, "user": "ada"}
    (folder / "config.json").write_text(json.dumps(config))
    if log:
        (folder / "train.log").write_text(log)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for i in range(4):
        put(tmp_path / "runs" / f"r{i}", i, (150,) if i == 1 else ())
    return tmp_path / "runs"


def night(root: Path, tmp_path: Path, name: str, **options: Any) -> dict[str, Any]:
    told = audits.Options(jobs=1, pages=0, history=str(tmp_path / "history"), **options)
    return audits.audit([str(root)], str(tmp_path / name), DRAWN, told)


def new(document: dict[str, Any]) -> dict[str, list[str]]:
    return {n["id"]: n["findings"] for n in document["history"]["new"]}


def test_two_nights_with_one_new_failure(root: Path, tmp_path: Path) -> None:
    first = night(root, tmp_path, "one")["history"]
    assert (first["nights"], first["last"], first["new"], first["notices"]) == (0, None, [], [])
    put(root / "r2", 2, log=CRASH, steps=200)
    second = night(root, tmp_path, "two")
    assert new(second) == {"r2": ["ending-exception@199"]}
    told = second["history"]["new"][0]
    assert (told["owner"], told["was"], told["rerun"]) == (
        "ada",
        "healthy",
        "yes, from the start: fix the line that the traceback names (train.log line 1)",
    )
    assert new(night(root, tmp_path, "three")) == {}
    assert len(list((tmp_path / "history").iterdir())) == 3
    text = (tmp_path / "two" / "summary.md").read_text()
    assert "## New since" in text and "`r2`" in text.partition("## New since")[2].partition("##")[0]
    assert "Nothing new since" in (tmp_path / "three" / "summary.md").read_text()
    assert "  new since " in audit_page.terminal(second) and audit_page.terminal(second).splitlines()[-1].endswith(": r2")
    payload = json.loads(slack.audit(second))
    news = payload["blocks"][2]["text"]["text"]
    assert (
        news.startswith("New since ") and "r2 (ada): Died after step 199: RuntimeError" in news and "Run again: yes, from the start" in news
    )
    assert 'id="new"' in (tmp_path / "two" / "index.html").read_text()


def test_a_part_is_the_whole_table_and_what_the_next_night_needs(root: Path, tmp_path: Path) -> None:
    night(root, tmp_path, "one")
    (part,) = (tmp_path / "history").iterdir()
    rows = pl.read_parquet(part).to_dicts()
    table = pl.read_parquet(tmp_path / "one" / "audit.parquet").to_dicts()
    assert [{c: r[c] for c in COLUMNS} for r in rows] == table
    assert {r["id"]: (r["findings"], r["judged"]) for r in rows}["r1"] == (["loss_spike-150"], [])
    assert pq.read_schema(part).metadata[b"history"] == b"1"
    again = night(tmp_path, tmp_path, "two")  # a history below the root is no log to read
    assert [r["id"].rpartition("__")[2] for r in again["rows"]] == ["r0", "r1", "r2", "r3"]


def test_a_run_that_grew_is_the_same_and_one_written_over_it_another(root: Path, tmp_path: Path) -> None:
    night(root, tmp_path, "one")
    put(root / "r1", 1, (150, 250))
    assert new(night(root, tmp_path, "two")) == {"r1": ["loss_spike-250"]}
    (root / "r1" / "errors.log").write_text("a log that comes before the others\n")
    assert new(night(root, tmp_path, "errors")) == {}
    put(root / "r1", 77, (150, 250))
    (root / "r1" / "errors.log").unlink()
    third = night(root, tmp_path, "three")
    assert new(third) == {"r1": ["loss_spike-150", "loss_spike-250"]} and third["history"]["new"][0]["was"] is None
    put(root / "r1", 77)
    assert new(night(root, tmp_path, "four")) == {}
    put(root / "r1", 77, (150,))
    assert new(night(root, tmp_path, "five")) == {"r1": ["loss_spike-150"]}  # it had been healthy in between


def test_what_was_judged_stays_judged(root: Path, tmp_path: Path) -> None:
    night(root, tmp_path, "one")
    put(root / "r3", 3, (150,))
    (tmp_path / "known.txt").write_text("r3 loss_spike-150 a broken shard, reported\n")
    assert new(night(root, tmp_path, "two", known=str(tmp_path / "known.txt"))) == {}
    assert new(night(root, tmp_path, "three")) == {}  # also without the file: the last night knew it


def test_a_damaged_part_costs_only_itself(root: Path, tmp_path: Path) -> None:
    night(root, tmp_path, "one")
    put(root / "r2", 2, (100,))
    night(root, tmp_path, "two")
    _, second = sorted((tmp_path / "history").iterdir())
    second.write_bytes(second.read_bytes()[:-200])
    (tmp_path / "history" / "notes.txt").write_text("not ours")
    third = night(root, tmp_path, "three")
    assert new(third) == {"r2": ["loss_spike-100"]} and third["history"]["nights"] == 1  # against the night before
    assert len(third["history"]["notices"]) == 1 and third["history"]["notices"][0].startswith(
        f"{second.name} of the history cannot be read"
    )
    assert (
        second.name in (tmp_path / "three" / "index.html").read_text()
        and second.name[:15] in (tmp_path / "three" / "summary.md").read_text()
    )
    for part in (tmp_path / "history").glob("*.parquet"):
        part.write_bytes(b"PAR1")
    assert night(root, tmp_path, "four")["history"]["nights"] == 0
    assert len(history.read(str(tmp_path / "history")).notices) == 3


@pytest.mark.parametrize("change", ["fewer columns", "more columns", "another type", "no names", "newer", "foreign"])
def test_parts_of_other_versions(root: Path, tmp_path: Path, change: str) -> None:
    night(root, tmp_path, "one")
    (part,) = (tmp_path / "history").iterdir()
    table = pq.read_table(part)
    if change == "fewer columns":
        table = table.drop(["lost_gpu_hours", "judged", "status"])
    if change == "more columns":
        table = table.append_column("later", table["id"])
    if change == "another type":
        table = table.set_column(table.column_names.index("seconds"), "seconds", table["id"])
    if change == "no names":
        table = table.drop(["fingerprint"])
    if change == "newer":
        table = table.replace_schema_metadata({"history": "2"})
    if change == "foreign":
        table = table.replace_schema_metadata(None)
    pq.write_table(table, part)
    past = history.read(str(tmp_path / "history"))
    fine = change in ("fewer columns", "more columns")
    assert (past.nights, len(past.runs), len(past.notices)) == ((1, 4, 0) if fine else (0, 0, 1))
    if change == "newer":
        assert "its schema is 2, this version knows 1" in past.notices[0]
    if fine:
        assert new(night(root, tmp_path, "two")) == {}


def test_runs_of_one_log_and_runs_that_failed_are_told_apart() -> None:
    marks = history.told_apart([Mark("a.b d.e", ("x",)), Mark("a.b d.e", ("y",)), Mark("", ()), Mark("", ())])
    assert [m.fingerprint for m in marks] == ["a.b d.e", "a.b+2 d.e+2", "", ""]
    past = Past()
    past.add([{"fingerprint": m.fingerprint, "path": p} for m, p in zip(marks, "pqrs", strict=True)])
    assert [
        past.find(f, p)["path"] if past.find(f, p) else None
        for f, p in (("a.b.c", "z"), ("n.m d.e.f", "z"), ("a.b.c+2", "z"), ("a.x", "p"), ("c", "r"), ("", "p"))
    ] == ["p", "p", "q", None, "r", "p"]  # type: ignore[index]
    past.add([{"fingerprint": "a.b.c", "path": "p"}])  # an older night has it, too
    assert len(past.runs) == 4


def test_a_history_behind_a_url(root: Path, tmp_path: Path) -> None:
    for name in ("one", "two"):
        told = audits.audit([str(root)], str(tmp_path / name), DRAWN, audits.Options(jobs=1, pages=0, history=(tmp_path / "h").as_uri()))
    assert told["history"]["nights"] == 1 and len(list((tmp_path / "h").glob("*.parquet"))) == 2
    with pytest.raises(ForensicsError, match="keeps the names"):
        night(root, tmp_path, "three", redact=True)


def test_weeks() -> None:
    now = datetime(2026, 1, 20, tzinfo=UTC)
    row = {"status": "finished", "started": "2026-01-04T23:00:00Z", "seconds": 7200.0, "gpu_hours": 4.0, "lost_gpu_hours": 1.0}
    rows = [
        row,  # it ended on Monday the 5th
        row | {"started": "2026-01-05T00:00:00Z", "status": "crashed", "gpu_hours": None, "lost_gpu_hours": None},
        row | {"started": "2026-01-19T00:00:00Z", "status": "stopped", "seconds": None},
        row | {"started": None},
        row | {"started": "2030-01-01T00:00:00Z"},
        row | {"started": "1990-01-01T00:00:00Z"},
        row | {"started": "yesterday"},
    ]
    weeks, undated = trends.weeks(rows, now)
    assert undated == 4
    assert weeks == [
        {"week": "2026-W02", "from": "2026-01-05", "runs": 2, "died": 1, "costed": 1, "gpu_hours": 4.0, "lost_gpu_hours": 1.0},
        {"week": "2026-W03", "from": "2026-01-12", "runs": 0, "died": 0, "costed": 0, "gpu_hours": 0.0, "lost_gpu_hours": 0.0},
        {"week": "2026-W04", "from": "2026-01-19", "runs": 1, "died": 1, "costed": 1, "gpu_hours": 4.0, "lost_gpu_hours": 1.0},
    ]
    assert trends.weeks([row | {"started": None}], now) == ([], 1)


def test_runs_that_are_gone_stay_in_their_weeks(root: Path, tmp_path: Path) -> None:
    before = night(root, tmp_path, "one")["history"]["weeks"]
    for name in ("metrics.jsonl", "config.json"):
        (root / "r0" / name).unlink()
    assert night(root, tmp_path, "two")["history"]["weeks"] == before
    assert sum(w["runs"] for w in before) == 4 and sum(w["gpu_hours"] for w in before) == pytest.approx(4 * 2 * 299 / 3600, abs=0.01)


# --- the command ----------------------------------------------------------------------------------------------------


def run(root: Path, tmp_path: Path, *args: str) -> Any:
    words = [
        "audit",
        str(root),
        "--out",
        str(tmp_path / "o"),
        "--force",
        "--jobs",
        "1",
        "--pages",
        "0",
        "-q",
        "--history",
        str(tmp_path / "h"),
        *args,
    ]
    return CliRunner().invoke(main, words)


def test_fail_on_new(root: Path, tmp_path: Path) -> None:
    first = run(root, tmp_path, "--fail-on", "new")
    assert first.exit_code == 0, first.output
    assert run(root, tmp_path, "--fail-on", "new").exit_code == 0
    put(root / "r3", 3, (200,))
    assert run(root, tmp_path, "--fail-on", "new").exit_code == 3
    assert run(root, tmp_path, "--fail-on", "new").exit_code == 0
    assert run(root, tmp_path, "--fail-on", "unhealthy").exit_code == 3
    for part in (tmp_path / "h").iterdir():
        part.write_bytes(b"")
    broken = run(root, tmp_path, "--fail-on", "new")
    assert broken.exit_code == 1 and "cannot tell what is new" in broken.output and (tmp_path / "o" / "index.html").exists()
    assert CliRunner().invoke(main, ["audit", str(root), "--fail-on", "new"]).exit_code == 2
    assert CliRunner().invoke(main, ["audit", str(root), "--webhook", "https://example.com"]).exit_code == 2


def test_json_and_the_webhook_tell_what_is_new(root: Path, tmp_path: Path) -> None:
    taken: list[dict[str, Any]] = []

    class Hook(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            taken.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *args: Any) -> None: ...

    server = HTTPServer(("127.0.0.1", 0), Hook)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    hook = f"http://127.0.0.1:{server.server_port}/secret"
    assert run(root, tmp_path, "--webhook", hook).exit_code == 0 and taken == []
    put(root / "r3", 3, (200,))
    told = run(root, tmp_path, "--webhook", hook, "--format", "json")
    server.shutdown()
    server.server_close()
    assert len(taken) == 1 and "r3 (ada)" in taken[0]["blocks"][2]["text"]["text"]
    document = json.loads(told.stdout)
    assert [n["id"] for n in document["history"]["new"]] == ["r3"] and "rows" not in document
    assert document == json.loads((tmp_path / "o" / "audit.json").read_text())
    put(root / "r2", 2, (200,))
    refused = run(root, tmp_path, "--webhook", hook)
    assert refused.exit_code == 0 and "127.0.0.1 did not take it" in refused.output and "secret" not in refused.output
