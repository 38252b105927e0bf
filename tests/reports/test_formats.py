"""What CI and chat are given: SARIF, JUnit and Slack, valid whatever the case holds."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from xml.etree import ElementTree

import cases
import pytest
from click.testing import CliRunner

from forensics.cli import main
from reports import junit, sarif, slack

Case = dict[str, Any]
FULL = {
    "schema": 1,
    "tool": {"name": "forensics", "version": "1.2"},
    "run": {"id": "xyz", "path": "runs/my run", "status": "finished", "steps": [0, 600]},
    "verdict": "unhealthy",
    "answer": "Loss jumps at step 418.",
    "hypotheses": cases.ranked(cases.cause("bad_data_batch", "Bad data batch", 0.9, [], [418, 431]), cases.unknown(0.1)),
    "findings": [
        cases.finding("loss_spike-418", "Loss jumps", [418, 431], "warning", cases.window("loss", "train log.jsonl line 419", 400, 440)),
        cases.finding("nonfinite-500", "Loss is NaN", [500, 500], "critical", cases.window("loss", "events byte 77", 400, 440)),
        cases.finding("restart-0", "Restarted", [None, None], "info"),
    ],
    "checks": [
        cases.check("loss_spike", "fired", "1 found") | {"rule": "A rule."},
        cases.check("nonfinite", "fired"),
        cases.check("restart", "fired"),
        cases.check("plateau", "clear"),
        cases.check("loss_scale", "cannot_tell", "loss_scale was not logged"),
        cases.check("stall", "error", "ValueError: x"),
    ],
}
BAD = cases.HOSTILE + "\x00\x0b\ufffe\ud800 ]]> <!channel> @here"
HOSTILE = FULL | {
    "answer": BAD,
    "run": {"id": BAD, "path": BAD},
    "findings": [cases.finding(f"a-{BAD}", BAD, [1, 2], "critical", cases.window("x", f"{BAD} line 3", 0, 1))],
    "checks": [cases.check("a", "fired") | {"rule": BAD}, cases.check(BAD, "cannot_tell", BAD)],
}
ALL = [
    FULL,
    HOSTILE,
    {},
    {"findings": 3, "run": [], "checks": {}},
    FULL | {"verdict": "healthy", "findings": []},
    FULL | {"verdict": "inconclusive"},
]


def row(id: str, verdict: str, **more: Any) -> Case:
    plain = {"id": id, "path": f"runs/{id}", "verdict": verdict, "answer": f"What {id} did.", "top_cause": "bad_data_batch", "error": None}
    return plain | more


AUDIT = {
    "tool": {"version": "1.2"}, "runs": 4, "rows": [row("a", "unhealthy"), row("b", "healthy"), row("c", "inconclusive"), row("d", "inconclusive", error="cut")],
    "verdicts": {"unhealthy": 1, "healthy": 1, "inconclusive": 2}, "causes": [{"cause": "bad_data_batch", "title": "Bad data batch", "runs": 1}],
    "failed": [{"id": "d", "path": "runs/d", "error": "cut"}], "shared_batches": [], "history": None, "costs": {"lost_gpu_hours": None}, "since": {"new": [{"id": "a", "why": "", "verdict": "unhealthy"}], "worse": []},
}  # fmt: skip


def checked(text: str) -> Case:
    """The essential structure of SARIF 2.1.0: what the schema requires, and what indexes point to."""
    log = json.loads(text)
    assert text.isascii() and log["version"] == "2.1.0" and log["$schema"].endswith("sarif-schema-2.1.0.json")
    (run,) = log["runs"]
    driver = run["tool"]["driver"]
    assert driver["name"] == "forensics" and isinstance(driver["version"], str)
    assert len({r["id"] for r in driver["rules"]}) == len(driver["rules"])
    for r in run["results"]:
        assert isinstance(r["message"]["text"], str) and r["level"] in ("error", "warning", "note")
        assert driver["rules"][r["ruleIndex"]]["id"] == r["ruleId"]
        assert r["locations"], "code scanning shows no result without a place"
        for place in [*r["locations"], *r.get("relatedLocations", [])]:
            physical = place["physicalLocation"]
            uri = physical["artifactLocation"]["uri"]
            assert re.fullmatch(r"[\w\-.~!$&'()*+,;=:@/%]+", uri) and urlsplit(uri).scheme in ("", "file", "s3")
            region = physical.get("region", {"startLine": 1})
            assert region.get("startLine", 1) >= 1 and region.get("byteOffset", 0) >= 0
        assert all(isinstance(v, str) for v in r["partialFingerprints"].values())
    assert all(isinstance(i["executionSuccessful"], bool) for i in run["invocations"])
    return dict(run)


@pytest.mark.parametrize("case", ALL)
def test_sarif_is_valid(case: Case) -> None:
    checked(sarif.render(case))


def test_sarif_has_each_finding_with_its_place() -> None:
    run = checked(sarif.render(FULL))
    told = {r["ruleId"]: (r["level"], r["locations"][0]["physicalLocation"]) for r in run["results"]}
    assert told["loss_spike"] == ("warning", {"artifactLocation": {"uri": "runs/my%20run/train%20log.jsonl"}, "region": {"startLine": 419}})
    assert told["nonfinite"][0] == "error" and told["nonfinite"][1]["region"] == {"byteOffset": 77, "byteLength": 0}
    assert told["restart"] == ("note", {"artifactLocation": {"uri": "runs/my%20run"}})
    assert run["properties"]["verdict"] == "unhealthy" and run["properties"]["causes"][0]["id"] == "bad_data_batch"
    unsure = run["invocations"][0]["toolExecutionNotifications"]
    assert ["loss_scale could not be checked: loss_scale was not logged" in n["message"]["text"] for n in unsure] == [True, False]


@pytest.mark.parametrize(("path", "place", "uri"), [
    ("logs/a.jsonl", "a.jsonl line 3", "logs/a.jsonl"), ("a.jsonl", "a.jsonl line 3", "a.jsonl"), (".", "a/b.log line 3", "a/b.log"),
    ("/data/r 1/", "b.log line 3", "file:///data/r%201/b.log"), ("s3://team/r", "b.log line 3", "s3://team/r/b.log"), ("r", "b.log line 0", "r/b.log"),
])  # fmt: skip
def test_a_place_is_below_the_path_of_the_run(path: str, place: str, uri: str) -> None:
    evidence = cases.window("loss", place, 0, 1)
    run = checked(
        sarif.render(FULL | {"run": {"id": "r", "path": path}, "findings": [cases.finding("a-1", "t", [1, 1], "info", evidence)]})
    )
    assert run["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == uri


@pytest.mark.parametrize("case", ALL)
def test_junit_is_xml_whose_counts_are_true(case: Case) -> None:
    top = ElementTree.fromstring(junit.render(case).encode())
    tests = top.findall("testsuite/testcase")
    for what, kind in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
        assert int(top.attrib[what]) == len(top.findall(f".//{kind}"))
    assert int(top.attrib["tests"]) == len(tests) and tests[0].attrib["name"] == "verdict"


def test_junit_fails_what_is_a_reason_to_act_and_skips_what_could_not_tell() -> None:
    top = ElementTree.fromstring(junit.render(FULL).encode())
    became = {t.attrib["name"]: [c.tag for c in t] for t in top.iter("testcase")}
    assert became == {
        "verdict": ["failure"], "loss_spike": ["failure"], "nonfinite": ["failure"], "restart": ["system-out"], "plateau": [],
        "loss_scale": ["skipped"], "stall": ["error"],
    }  # fmt: skip
    assert "train log.jsonl line 419" in (top.findtext(".//testcase[@name='loss_spike']/failure") or "")


@pytest.mark.parametrize("case", ALL)
def test_slack_is_plain_text_within_its_limits(case: Case) -> None:
    message = json.loads(slack.render(case))
    assert message["text"] and "<" not in message["text"] and 1 <= len(message["blocks"]) <= 50
    for block in message["blocks"]:
        text = block["text"]
        assert text["type"] == "plain_text" and 1 <= len(text["text"]) <= {"header": 150, "section": 3000}[block["type"]]


def test_slack_says_what_happened_why_and_what_to_do() -> None:
    said = slack.render(FULL)
    assert "xyz: unhealthy" in said and "Loss jumps at step 418." in said and "Why: Bad data batch" in said


def test_an_audit_in_each_format() -> None:
    run = checked(sarif.audit(AUDIT))
    assert [r["ruleId"] for r in run["results"]] == ["bad_data_batch"]
    assert run["invocations"][0]["toolExecutionNotifications"][0]["message"]["text"] == "d: cut"
    top = ElementTree.fromstring(junit.audit(AUDIT).encode())
    assert {t.attrib["name"]: [c.tag for c in t] for t in top.iter("testcase")} == {
        "a": ["failure"],
        "b": [],
        "c": ["skipped"],
        "d": ["error"],
    }
    said = slack.audit(AUDIT)
    assert "1 of 4 runs went wrong" in said and "new: a" in said and "What a did." in said and "New since" not in said
    news = [{"id": f"n{i}", "owner": None, "answer": "It died.", "lost_gpu_hours": 1.25, "rerun": "no: why"} for i in range(12)]
    history = {"history": {"last": "2026-01-05T06:15:00Z", "new": news}}
    told = json.loads(slack.audit(AUDIT | history))["blocks"][2]["text"]["text"].splitlines()
    assert told[:2] == ["New since 2026-01-05 06:15:00 UTC:", "n0: It died. 1.25 GPU-hours lost."] and told[11:13] == [
        "and 2 more",
        "new: a, unhealthy",
    ]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "runs").mkdir()
    rows = [
        json.dumps({"step": i, "loss": 2.5 - i * 1e-3 + (3.0 if i == 150 else 0.0) + 0.01 * ((i * 7919) % 13 - 6) / 6}) for i in range(300)
    ]
    (tmp_path / "runs" / "log.jsonl").write_text("\n".join(rows) + "\n")
    return tmp_path


def test_the_command_prints_or_writes_the_document_alone(folder: Path) -> None:
    p = CliRunner().invoke(main, ["analyze", "runs", "--format", "sarif", "--fail-on", "unhealthy", "--json", "case.json"])
    assert p.exit_code == 3
    assert [r["ruleId"] for r in checked(p.stdout)["results"] if r["level"] != "note"] == ["loss_spike"]
    assert sorted(x.name for x in folder.iterdir()) == ["case.json", "runs"]
    assert CliRunner().invoke(main, ["render", "case.json", "--format", "sarif"]).stdout == p.stdout
    written = CliRunner().invoke(main, ["render", "case.json", "--format", "junit", "--out", "runs/junit.xml"])
    assert written.exit_code == 0 and written.stdout.strip() == "runs/junit.xml"
    assert CliRunner().invoke(main, ["analyze", "runs", "--format", "sarif", "--out", "runs/r.sarif"]).exit_code == 0
    again = CliRunner().invoke(main, ["analyze", "runs", "--format", "sarif", "--out", "runs/r.sarif"])
    assert again.exit_code == 1 and "already exists" in again.stderr
    assert CliRunner().invoke(main, ["analyze", "runs", "--format", "slack"]).exit_code == 0
    assert CliRunner().invoke(main, ["analyze", "runs", "--format", "pdf"]).exit_code == 2


def test_documents_in_the_folder_of_a_run_are_no_part_of_it(folder: Path) -> None:
    from parsers.unclaimed import is_report

    for name, text in (("r.sarif", sarif.render(FULL)), ("junit.xml", junit.render(FULL))):
        assert is_report(text.encode()), name


def test_redact_holds_in_every_format(folder: Path) -> None:
    for name in ("sarif", "junit", "md", "slack"):
        p = CliRunner().invoke(main, ["analyze", str(folder / "runs"), "--format", name, "--redact"])
        assert p.exit_code == 0 and str(folder) not in p.stdout, name
