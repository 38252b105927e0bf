"""`forensics mcp` as an agent meets it: over stdio, with the SDK's own client."""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from forensics.agents import lookups
from forensics.agents.kept_runs import KeptRuns
from forensics.errors import ForensicsError
from forensics.verbs import mcp_tools
from reports import agent_text

pytest.importorskip("mcp")
TOKEN = "hf_" + "aB3dE5fG7hJ9kL1mN3pQ5rS7tU9vW1xY3z"
Answer = tuple[bool, str]


def write_run(folder: Path, rows: int = 300) -> Path:
    """A loss with one spike at step 150, and a log with a secret in it."""
    folder.mkdir(parents=True)
    with (folder / "metrics.jsonl").open("w") as f:
        for i in range(rows):
            loss = 2.5 - i * 1e-3 + 0.01 * ((i * 7919) % 13 - 6) / 6 + (3.0 if i == 150 else 0.0)
            f.write(json.dumps({"step": i, "loss": loss}) + "\n")
    (folder / "train.log").write_text(f"starting\nHF_TOKEN={TOKEN}\nstep 1 loss 2.5\n")
    return folder


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    base = tmp_path_factory.mktemp("agents")
    write_run(base / "root" / "runs" / "xyz")
    write_run(base / "root" / "runs" / "other", rows=200)
    write_run(base / "outside")
    (base / "root" / "way_out").symlink_to(base / "outside")
    return base / "root"


def asked(root: Path, *questions: tuple[str, dict[str, Any]]) -> tuple[list[Any], list[Answer]]:
    """The tools of a server over `root`, and what it answers."""
    from mcp import Client, StdioServerParameters, stdio_client

    async def talk() -> tuple[list[Any], list[Answer]]:
        command = StdioServerParameters(command=sys.executable, args=["-m", "forensics", "mcp", "--root", str(root)])
        async with Client(stdio_client(command)) as client:
            tools = (await client.list_tools()).tools
            found = [await client.call_tool(name, given) for name, given in questions]
            return tools, [(bool(r.is_error), r.content[0].text) for r in found]

    with ThreadPoolExecutor(1) as thread:  # the browser's tests leave a loop running in this one
        return thread.submit(asyncio.run, talk()).result()


RUN = {"run": "runs/xyz"}
QUESTIONS = {
    "list": ("list_runs", {}),
    "analyze": ("analyze", RUN),
    "findings": ("findings", RUN),
    "finding": ("finding", RUN | {"id": "loss_spike-150"}),
    "cause": ("cause", RUN | {"id": "bad_data_batch"}),
    "metrics": ("series", RUN),
    "series": ("series", RUN | {"metric": "loss", "step": 150, "points": 12}),
    "lines": ("log_lines", RUN | {"place": "train.log line 2"}),
    "batch": ("batch", RUN | {"step": 150}),
    "compare": ("compare", {"run_a": "runs/xyz", "run_b": "runs/other"}),
    "index": ("explain", {}),
    "explain": ("explain", {"id": "loss_spike"}),
    "replay": ("replay_check", RUN | {"adapter": "my train.py"}),
    "outside": ("analyze", {"run": "../outside"}),
    "absolute": ("log_lines", {"run": "/etc", "place": "passwd line 1"}),
    "link": ("analyze", {"run": "way_out"}),
    "url": ("analyze", {"run": "memory://runs"}),
    "nothing": ("analyze", {"run": "runs/none"}),
    "no finding": ("finding", RUN | {"id": "loss_spike-7"}),
    "no metric": ("series", RUN | {"metric": "losss"}),
    "no line": ("log_lines", RUN | {"place": "train.log line 4000"}),
    "climbing": ("log_lines", RUN | {"place": "../other/train.log line 1"}),
    "no place": ("log_lines", RUN | {"place": "somewhere"}),
    "no topic": ("explain", {"id": "losss_spike"}),
}


@pytest.fixture(scope="module")
def answers(root: Path) -> dict[str, Answer]:
    before = tree(root)
    tools, found = asked(root, *QUESTIONS.values())
    assert {t.name for t in tools} == set(mcp_tools.NAMES) == {name for name, _ in QUESTIONS.values()}
    assert all(t.description and t.annotations.read_only_hint for t in tools)
    assert tree(root) == before, "something was written"
    return dict(zip(QUESTIONS, found, strict=True))


def tree(root: Path) -> list[tuple[str, int]]:
    return sorted((str(p), p.lstat().st_mtime_ns) for p in root.rglob("*"))


REFUSED = ("outside", "absolute", "link", "url", "nothing", "no finding", "no metric", "no line", "climbing", "no place", "no topic")


def test_answers_are_right_and_a_few_hundred_tokens(answers: dict[str, Answer]) -> None:
    assert {what for what, (failed, _) in answers.items() if failed} == set(REFUSED)
    assert max(len(text) for _, text in answers.values()) <= agent_text.LONGEST
    said = {what: text for what, (_, text) in answers.items()}
    assert "runs/xyz" in said["list"] and "runs/other" in said["list"]
    assert "unhealthy" in said["analyze"] and "loss_spike-150" in said["analyze"] and "bad_data_batch" in said["analyze"]
    assert "metrics.jsonl line 151" in said["finding"] and "bad_data_batch" in said["finding"]
    assert "what settles it" in said["cause"] and "[loss_spike-150]" in said["cause"]
    assert "loss.train" in said["metrics"]
    assert "\n150 5.3" in said["series"] and len(said["series"].splitlines()) < 20
    assert "> 2: HF_TOKEN=***" in said["lines"]
    assert "unknown" in said["batch"]
    assert "losses are equal" in said["compare"].lower()
    assert "[part 1 of" in said["index"] and "How it decides" in said["explain"]
    assert "forensics replay runs/xyz --adapter 'my train.py' --check" in said["replay"]


@pytest.mark.parametrize("what", REFUSED)
def test_what_cannot_be_answered_is_a_sentence(what: str, answers: dict[str, Answer], root: Path) -> None:
    _, text = answers[what]
    assert len(text) < 500 and "Traceback" not in text and "bug" not in text
    assert (
        "Give " in text or "It has: " in text or "Logged: " in text or "Files with lines: " in text or "Near: " in text or "changed" in text
    )
    assert "root:" not in text and TOKEN not in text


def test_no_secret_leaves(answers: dict[str, Answer]) -> None:
    assert not [what for what, (_, text) in answers.items() if TOKEN in text]


@pytest.fixture
def kept(root: Path, monkeypatch: pytest.MonkeyPatch) -> KeptRuns:
    monkeypatch.chdir(root)
    return KeptRuns(Path("."))


@pytest.mark.parametrize(
    "path", ["..", "../outside", "/", "way_out", "way_out/metrics.jsonl", "runs/../../outside", "a\0b", "s3://bucket/run"]
)
def test_nothing_outside_the_root_is_opened(path: str, kept: KeptRuns) -> None:
    with pytest.raises(ForensicsError):
        kept.run(path)


def test_a_run_is_read_once_and_again_when_it_grows(kept: KeptRuns, root: Path) -> None:
    folder = write_run(root / "grows", rows=100)
    first = kept.run("grows")
    assert kept.run("grows") is first
    assert kept.case("grows") is kept.case("grows")
    with (folder / "metrics.jsonl").open("a") as f:
        f.write('{"step": 100, "loss": 2.4}\n')
    assert kept.run("grows").tables["metrics"].num_rows == first.tables["metrics"].num_rows + 1


def test_a_saved_case_answers_without_its_run(kept: KeptRuns, root: Path) -> None:
    from forensics import output

    (root / "saved.case.json").write_text(output.case_json(kept.case("runs/xyz")))
    assert agent_text.analysis(kept.case("saved.case.json")) == agent_text.analysis(kept.case("runs/xyz"))


@pytest.mark.parametrize("points", [1, 8, 60, 10_000])
def test_a_thinned_series_keeps_its_extremes_and_says_where_they_are(points: int, kept: KeptRuns) -> None:
    found = lookups.around(kept.run("runs/xyz"), "loss.train", points=points)
    assert found.logged == 300 and len(found.points) <= max(min(points, lookups.MOST_POINTS), 4)
    assert found.highest is not None and found.highest[0] == 150 and found.highest[2] == "metrics.jsonl line 151"
    assert 150 in [step for step, _ in found.points]


def test_of_several_runs_the_others_are_named_as_the_argument_takes_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    logs = [write_run(tmp_path / name) / "metrics.jsonl" for name in ("one", "two")]
    logs[1].write_text(re.sub('"loss": [25]', '"loss": 7', logs[0].read_text()))
    kept = KeptRuns(tmp_path)
    (other,) = kept.case(".")["run"]["siblings"]
    assert f"by `name`: {other['id']} ({other['verdict']})" in agent_text.analysis(kept.case("."))
    assert kept.case(".", other["id"])["run"]["id"] == other["id"]


def test_values_that_are_not_finite_are_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "log.jsonl").write_text("".join(json.dumps({"step": i, "loss": 2.0 if i < 30 else float("nan")}) + "\n" for i in range(40)))
    found = lookups.around(KeptRuns(tmp_path).run("log.jsonl"), "loss.train", step=30, points=20)
    assert found.nonfinite == 10
    assert "not finite: 10" in agent_text.series(vars(found))


def test_a_private_key_that_began_above_the_window_is_masked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    body = ["MIIEpAIBAAKCAQEAx" + f"{i:02d}" + "b7Qk3Zt9Lr2Wn5Vd8Xs1Cf4Hj6Pm0Ya" for i in range(12)]
    log = ["step 1 loss 2.0", "-----BEGIN RSA PRIVATE KEY-----", *body, "-----END RSA PRIVATE KEY-----", "step 2 loss 1.9"]
    (tmp_path / "train.log").write_text("\n".join(log) + "\n")
    shown = lookups.lines(KeptRuns(tmp_path).run("."), "train.log line 9", 1)
    assert len(shown.lines) == 3 and not [text for _, text in shown.lines if "MIIE" in text]


@pytest.mark.parametrize(
    "ask",
    [
        agent_text.analysis,
        agent_text.findings,
        agent_text.metrics,
        lambda c: agent_text.finding(c, "x"),
        lambda c: agent_text.cause(c, "x"),
    ],
)
def test_no_case_makes_an_answer_long_or_breaks_it(ask: Callable[[Any], str | None]) -> None:
    huge = "word " * 5000
    evidence = [{"kind": "text", "title": huge, "where": "a.log line 1", "data": {"lines": [huge] * 50, "rows": [[huge] * 9] * 50}}]
    case = {
        "verdict": "unhealthy", "answer": huge, "run": {"id": huge, "path": huge, "metrics": {huge + str(i): {"tag": huge} for i in range(99)}},
        "findings": [{"id": "x", "title": huge, "facts": {str(i): huge for i in range(99)}, "evidence": evidence}] * 99,
        "hypotheses": [{"id": "x", "title": huge, "probability": 0.5, "settle": huge, "interventions": [huge] * 99, "clues": [{"text": huge, "weight": 1.0}] * 99}] * 99,
        "blind_spots": [{"what": huge, "would_tell": huge}] * 99,
    }  # fmt: skip
    for each in (case, {}, {"findings": 3, "run": []}):
        assert len(agent_text.bounded(ask(each) or "")) <= agent_text.LONGEST


def test_the_parts_of_a_long_text_are_the_text() -> None:
    text = "\n".join(f"line {i}" for i in range(2000)) + "\n" + "x" * 9000
    parts, n = [], 1
    while "There is no part" not in (part := agent_text.bounded(text, n)):
        assert len(part) <= agent_text.LONGEST
        parts.append(part.rpartition("[part")[0])
        n += 1
    assert "".join(parts).replace("\n", "") == text.replace("\n", "")


def test_without_the_sdk_the_command_says_what_to_install(tmp_path: Path) -> None:
    code = "import sys; sys.modules['mcp'] = None; from forensics.cli import main; sys.argv[1:] = ['mcp']; main()"
    p = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, env={**os.environ, "NO_COLOR": "1"})
    assert p.returncode == 1 and "run-forensics[mcp]" in p.stderr and "Traceback" not in p.stderr
