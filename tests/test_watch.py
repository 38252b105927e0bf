"""`forensics watch`: news of a growing run, told once, at little cost."""

from __future__ import annotations

import json
import math
import os
import random
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from forensics import at_path
from forensics.cli import main
from forensics.watching import budget, news
from forensics.watching.growth import Growth
from forensics.watching.told import Told
from parsers import appended

ROOT = Path(__file__).resolve().parent.parent
COMMAND = [sys.executable, "-m", "forensics", "watch"]
RNG = random.Random(0)


def rows(first: int, last: int, spike: int = -1) -> str:
    return "".join(
        json.dumps({"step": s, "loss": 0.5 + 2 * math.exp(-s / 200) + RNG.gauss(0, 0.01) + (5.0 if s == spike else 0.0)}) + "\n"
        for s in range(first, last)
    )


def append(path: Path, text: str) -> None:
    with path.open("a") as f:
        f.write(text)


def watch(*args: object, cwd: Path, **env: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), **env}
    return subprocess.run([*COMMAND, *map(str, args)], cwd=cwd, capture_output=True, text=True, env=environment, timeout=120)


def follow(*args: object, cwd: Path) -> subprocess.Popen[str]:
    """A watch that goes on, and is killed should it never end."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    p = subprocess.Popen([*COMMAND, *map(str, args)], cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)
    timer = threading.Timer(120, p.kill)
    timer.daemon = True
    timer.start()
    return p


@pytest.fixture
def log(tmp_path: Path) -> Path:
    (tmp_path / "exp").mkdir()
    (tmp_path / "exp" / "log.jsonl").write_text(rows(0, 300))
    return tmp_path / "exp" / "log.jsonl"


@pytest.fixture
def posted() -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """An address, and what was posted there."""
    found: list[dict[str, Any]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            found.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(204 if self.path == "/ok/token" else 500)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}", found
    server.shutdown()


def test_a_new_finding_is_told_once_to_person_command_and_address(log: Path, tmp_path: Path, posted: tuple[str, list[Any]]) -> None:
    url, heard = posted
    (tmp_path / "hook").write_text('#!/bin/sh\necho "$FORENSICS_FINDING|$FORENSICS_SEVERITY|$FORENSICS_STEP|$FORENSICS_CASE" >> told\n')
    (tmp_path / "hook").chmod(0o700)
    options = ("--once", "--exec", f"{tmp_path}/hook", "--webhook", f"{url}/ok/token", "--no-config")
    first = watch("exp", *options, cwd=tmp_path)
    assert first.returncode == 0 and "healthy at step 299" in first.stdout and not heard and not (tmp_path / "told").exists()
    append(log, rows(300, 400, spike=350))
    second = watch("exp", *options, cwd=tmp_path)
    assert "loss_spike-350" in second.stdout and second.stderr == ""
    assert (tmp_path / "told").read_text() == f"loss_spike-350|{heard[0]['severity']}|350|{tmp_path}/exp.case.json\n"
    assert [h["finding"] for h in heard] == ["loss_spike-350"] and "exp" in heard[0]["text"] and heard[0]["verdict"] == "unhealthy"
    append(log, rows(400, 420))
    third = watch("exp", *options, cwd=tmp_path)
    assert (third.returncode, third.stdout, len(heard)) == (0, "", 1)
    page, saved = (tmp_path / "exp.html").read_text(), (tmp_path / "exp.case.json").read_text()
    assert page.startswith("<!doctype html>") and "ok/token" not in page + saved


def test_a_second_look_that_finds_the_same_says_nothing(log: Path, tmp_path: Path) -> None:
    first, second = (watch("exp", "--once", "--no-config", cwd=tmp_path) for _ in range(2))
    assert first.returncode == second.returncode == 0
    assert first.stdout and not second.stdout and not second.stderr


def test_a_run_is_followed_to_its_end(log: Path, tmp_path: Path) -> None:
    """The alarm of a live guard brings the look forward; the end is known by the run's own words."""
    p = follow("exp", "--every", "0.2", cwd=tmp_path)
    assert p.stdout is not None
    assert "healthy at step 299" in p.stdout.readline()
    append(log, rows(300, 330, spike=310))
    assert "loss_spike-310" in "".join(p.stdout.readline() for _ in range(2))
    (log.parent / "train.log").write_text(
        'Traceback (most recent call last):\n  File "train.py", line 3, in <module>\n    f()\nRuntimeError: CUDA error: device-side assert triggered\n'
    )
    out, err = p.communicate(timeout=100)
    assert p.returncode == 0 and "the run has ended: crashed: RuntimeError" in out, (out, err)
    assert len(err.splitlines()) == 1 and " looks; " in err and "of CPU" in err


def test_ctrl_c_ends_it_with_one_line(log: Path, tmp_path: Path) -> None:
    p = follow("exp", cwd=tmp_path)
    assert p.stdout is not None
    p.stdout.readline()
    p.send_signal(signal.SIGINT)
    _, err = p.communicate(timeout=60)
    assert p.returncode == 130 and err.startswith("stopped: ") and len(err.splitlines()) == 1


def test_a_folder_without_a_log_is_waited_for_and_one_that_is_not_there_is_a_mistake(tmp_path: Path) -> None:
    for path, said in (("nowhere", "no such file or folder"), ("s3://x/y", "files on this machine"), ("-", "files on this machine")):
        done = watch(path, cwd=tmp_path)
        assert done.returncode == 2 and said in done.stderr
    (tmp_path / "exp").mkdir()
    assert watch("exp", "--once", cwd=tmp_path).returncode == 1
    p = follow("exp", "--every", "0.2", cwd=tmp_path)
    assert p.stderr is not None and "nothing readable" in p.stderr.readline()
    (tmp_path / "exp" / "train.log").write_text("".join(f"step {s} loss {2 - s / 100:.3f}\n" for s in range(60)) + "Training completed.\n")
    out, _ = p.communicate(timeout=100)
    assert p.returncode == 0 and "the run has ended: finished" in out


def test_a_page_inside_the_run_is_no_news_of_it(log: Path) -> None:
    growth = Growth(log.parent)
    (log.parent / "exp.html").write_text("a")
    growth.ours = {str((log.parent / "exp.html").resolve())}
    assert growth.changed() and not growth.changed()
    (log.parent / "exp.html").write_text("another")
    assert not growth.changed()
    append(log, rows(300, 301))
    assert growth.changed()


def facts(**more: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    finding = {"id": "nonfinite-7", "kind": "nonfinite", "severity": "critical", "title": "loss is NaN", "steps": [7, None]} | more
    return {"run": {"id": "exp", "path": "exp"}, "verdict": "unhealthy", "answer": "NaN at step 7"}, finding


def test_words_of_the_run_reach_no_shell_and_a_failure_is_one_line(tmp_path: Path, posted: tuple[str, list[Any]]) -> None:
    said: list[str] = []
    evil = "$(touch pwned); `touch pwned` \x1b[2J\0"
    script = tmp_path / "hook"
    script.write_text(f"#!{sys.executable}\nimport os\nopen({str(tmp_path / 'title')!r}, 'w').write(os.environ['FORENSICS_TITLE'])\n")
    script.chmod(0o700)

    def visible(text: str) -> str:
        return text.replace("\x1b", "<ESC>").replace("\0", "<NUL>")

    for command, webhook in ((str(script), None), ("false", None), ("/no/such/command", None), (None, f"{posted[0]}/secret-token"), (None, "http://127.0.0.1:1/secret-token")):  # fmt: skip
        Told(command, webhook, said.append, visible).of(*facts(title=evil), "c.json", "p.html")
    assert (tmp_path / "title").read_text() == visible(evil) and not list(tmp_path.glob("pwned"))
    assert len(said) == 4 and not any("secret-token" in line for line in said), said
    assert "ended with 1" in said[0] and "500" in said[2]


def test_a_webhook_is_an_address_on_the_web(tmp_path: Path) -> None:
    assert watch("x", "--webhook", "file:///etc/passwd", cwd=tmp_path).returncode == 2


def case(*findings: tuple[str, int, int | None, str], verdict: str = "unhealthy", last: int = 100) -> dict[str, Any]:
    found = [{"id": f"{k}-{a}", "kind": k, "title": k, "steps": [a, b], "severity": s} for k, a, b, s in findings]
    run = {"step_unit": "step", "steps": [0, last], "attempts": [{"why": ""}], "status": "running"}
    return {"run": run, "verdict": verdict, "answer": "as it is.", "findings": found}


def test_a_warning_is_told_when_two_looks_in_a_row_see_it_and_a_critical_one_at_once() -> None:
    heard = news.News()
    told = [heard.of(c, None) for c in (
        case(verdict="healthy"),
        case(("plateau", 0, 40, "warning"), ("nonfinite", 30, None, "critical"), ("restart", 3, 3, "info")),
        case(("plateau", 10, 60, "warning"), ("nonfinite", 30, None, "critical")),
        case(("plateau", 12, 80, "warning")),
        case(verdict="healthy"), case(("nonfinite", 30, None, "critical")), case(verdict="healthy"), case(verdict="healthy"),
    )]  # fmt: skip
    assert [[f["id"] for f in found] for _, found in told] == [[], ["nonfinite-30"], ["plateau-10"], [], [], [], [], []]
    assert [len(lines) for lines, _ in told] == [1, 2, 2, 0, 0, 0, 0, 1]


def test_what_the_case_said_before_is_no_news() -> None:
    before = case(("loss_spike", 50, 55, "critical"))
    _, found = news.News().of(case(("loss_spike", 50, 52, "critical"), ("loss_spike", 70, 71, "critical")), before)
    assert [f["id"] for f in found] == ["loss_spike-70"]


@pytest.mark.parametrize(
    ("status", "how", "ended"),
    [("finished", "said", True), ("finished", "guess", False), ("crashed", "", True), ("hung", "", False), ("running", "", False)],
)
def test_a_run_has_ended_where_it_says_so(status: str, how: str, ended: bool) -> None:
    assert bool(news.over({"run": {"status": status, "ending": {"how": how, "says": "x"}}})) == ended


def test_the_pause_after_a_look_grows_with_its_cost(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr(budget.time, "monotonic", lambda: now[0])
    b = budget.Budget()
    assert b.due(alarm=False)
    b.paid(1.0)
    b.paid(1.0)  # the first one is the start
    now[0] = 11.0
    assert b.due(alarm=True) and not b.due(alarm=False)
    b.paid(1.0)
    now[0] = 2 / budget.SHARE
    assert not b.due(alarm=False)  # what the alarm took is saved
    now[0] = 11 + 2 / budget.SHARE
    assert b.due(alarm=False)
    assert budget.pause(5, 0.001) == 5 and budget.pause(5, 1.0) == 1.0 / budget.STAT


@pytest.mark.parametrize("kind", ["jsonl", "csv", "console"])
def test_the_new_end_of_a_log_raises_an_alarm(tmp_path: Path, kind: str) -> None:
    def line(step: int, loss: str) -> str:
        return {"jsonl": f'{{"step": {step}, "loss": {loss}}}\n', "csv": f"{step},{loss}\n", "console": f"step {step} loss {loss}\n"}[kind]

    path = tmp_path / {"jsonl": "log.jsonl", "csv": "log.csv", "console": "train.log"}[kind]
    path.write_text(("step,loss\n" if kind == "csv" else "") + "".join(line(s, f"{2 - s / 100:.4f}") for s in range(60)))
    growth = Growth(tmp_path)
    assert growth.changed()
    growth.learn(at_path.read_runs(str(tmp_path)))
    assert growth.alarms() == []
    append(path, line(60, "1.4") + line(61, "NaN")[:-3])  # cut: the rest of the line is to come
    assert growth.changed() and growth.alarms() == []
    append(path, line(61, "NaN")[-3:])
    assert growth.changed() and growth.alarms() == ["loss_nonfinite at step 61"]
    append(path, line(62, "NaN"))
    assert growth.changed() and growth.alarms() == []  # told before


def test_only_whole_records_of_an_event_file_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = next((ROOT / "samples" / "healthy_tensorboard" / "tb").rglob("events*"))
    whole, path = source.read_bytes(), tmp_path / source.name
    path.write_bytes(whole[:2001])
    first, end = appended.read(path, "records", 0)
    path.write_bytes(whole)
    second, last = appended.read(path, "records", end)
    assert first is not None and second is not None and end <= 2001 and last == len(whole)
    everything, _ = appended.read(path, "records", 0)
    assert everything is not None
    count = [sum(b.num_rows for b in f.batches["metrics"]) for f in (first, second, everything)]
    monkeypatch.setattr(appended, "MOST", 64)  # the second record is larger: its turn goes by
    begin = 0
    for _ in range(3):
        _, begin = appended.read(path, "records", begin)
    assert 64 < begin < len(whole)
    assert count[0] + count[1] == count[2] > 0 and first.gaps == second.gaps == []


def test_a_file_that_is_written_anew_is_read_from_its_beginning_and_of_a_large_one_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "log.jsonl"
    path.write_text(rows(0, 5))
    new, _ = appended.read(path, "lines", 10**6)
    assert new is not None and new.source.records == 5
    monkeypatch.setattr(appended, "MOST", 100)
    new, end = appended.read(path, "lines", 0)
    assert new is not None and new.source.records < 5 and end == path.stat().st_size


def test_a_second_look_replaces_the_report_that_the_first_one_was_told_to_write(tmp_path: Path) -> None:
    (tmp_path / "r").mkdir()
    (tmp_path / "r/log.jsonl").write_text("".join(json.dumps({"step": s, "loss": 2.0 - s / 100}) + "\n" for s in range(60)))
    for _ in range(2):
        got = CliRunner().invoke(main, ["watch", str(tmp_path / "r"), "--once", "--out", str(tmp_path / "x.html")])
        assert got.exit_code == 0, got.output
    assert sorted(p.name for p in tmp_path.iterdir()) == ["r", "x.case.json", "x.html"]
