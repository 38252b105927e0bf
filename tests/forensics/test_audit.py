"""The audit: what it writes, nothing lost by a death. test_audit_places.py has how runs are found, test_engines.py what does the work."""

from __future__ import annotations

import json
import subprocess
import time
from pathlib import Path

import pytest

from forensics import audits
from forensics.audits import kept, suppressions
from forensics.errors import ForensicsError
from reports import audit_page as drawn
from reports import html
from tests.forensics import sabotage
from tests.forensics.many_runs import COMMAND, TEXT, forensics, put, six, table

CONTRACT = ["id", "path", "framework", "status", "verdict", "top_cause", "probability", "second_cause", "spikes_fast", "spikes_slow",
            "spikes_non_recovering", "first_bad_step", "attempts", "steps", "scalars", "lost", "seconds"]  # fmt: skip


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return six(tmp_path / "runs")


# --- what is written ------------------------------------------------------------------------------------------------


def test_outputs_are_those_of_the_contract(root: Path, tmp_path: Path) -> None:
    p = forensics("audit", root, "--out", "o", "--jobs", 2, cwd=tmp_path)
    assert p.returncode == 0, p.stderr
    assert p.stderr == "" and "3 of 6 runs went wrong" in p.stdout
    rows = {r["id"]: r for r in table(tmp_path / "o")}
    assert set(CONTRACT) <= set(rows["r1"])
    assert rows["r1"]["verdict"] == "unhealthy" and rows["r1"]["spikes_fast"] == 1 and rows["r1"]["first_bad_step"] == 150
    assert rows["r0"]["verdict"] == "healthy" and rows["r0"]["top_cause"] is None
    assert (rows["r0"]["steps"], rows["r0"]["scalars"], rows["r0"]["seconds"]) == (299, 300, 299.0)
    told = json.loads((tmp_path / "o" / "audit.json").read_text())
    assert told["schema"] == 1 and told["runs"] == 6
    assert {"shared_batches", "shared_causes", "seed_groups", "duplicates"} <= set(told)
    (row,) = [g for g in told["guards"] if g["guard"] == "loss_mad"]
    assert (row["runs"], row["healthy"], row["alarmed"]) == (6, 3, 0)
    for id in ("r1", "r3", "r5"):
        case = json.loads((tmp_path / "o" / "runs" / f"{id}.case.json").read_text())
        assert case["run"]["id"] == id and case["verdict"] == "unhealthy"
        assert (tmp_path / "o" / "runs" / f"{id}.html").read_text().startswith("<!doctype html>")
    assert sorted(x.name for x in (tmp_path / "o" / "runs").iterdir()) == sorted(
        f"r{i}.{k}" for i in (1, 3, 5) for k in ("html", "case.json")
    )
    assert (tmp_path / "o" / "summary.md").read_text().startswith("# 3 of 6 runs")


def test_a_bad_batch_is_found_through_shifted_counters(tmp_path: Path) -> None:
    for i in range(12):
        shift = 7 if i % 3 == 0 else 0
        put(tmp_path / "runs" / f"r{i}", i, (110 + shift, 220 + shift))
    told = audits.audit([str(tmp_path / "runs")], str(tmp_path / "o"), TEXT, audits.Options(pages=0))["shared_batches"]
    assert sorted(b["runs"] for b in told) == [12, 12]
    for b, at in zip(sorted(told, key=lambda b: b["first"]), (110, 220), strict=True):
        assert b["steps"] == {f"r{i}": at + (7 if i % 3 == 0 else 0) for i in range(12)}
        assert [(g["offset"], len(g["runs"])) for g in b["offset_groups"]] == [(0, 8), (7, 4)]
        assert b["p"] < 1e-4


def test_exit_codes_and_existing_outputs(root: Path, tmp_path: Path) -> None:
    assert forensics("audit", tmp_path / "nowhere", cwd=tmp_path).returncode == 1
    assert forensics("audit", cwd=tmp_path).returncode == 2
    assert forensics("audit", root, "--out", "o", "--fail-on", "unhealthy", cwd=tmp_path).returncode == 3
    p = forensics("audit", root, "--out", "o", cwd=tmp_path)
    assert p.returncode == 1 and "--resume" in p.stderr and "Traceback" not in p.stderr
    assert forensics("audit", root, "--out", "o", "--limit", 1, "--fail-on", "unhealthy", "--force", cwd=tmp_path).returncode == 0
    assert len(table(tmp_path / "o")) == 1
    assert list((tmp_path / "o" / "runs").iterdir()) == []


def test_known_findings_count_no_more(root: Path, tmp_path: Path) -> None:
    (tmp_path / "known").write_text("# judged\nr1 loss_spike-150 the shard is broken\nr[35] * all of it\n")
    p = forensics("audit", root, "--out", "o", "--known", "known", "--fail-on", "unhealthy", cwd=tmp_path)
    assert p.returncode == 0, p.stderr
    assert {r["id"]: r["known"] for r in table(tmp_path / "o") if r["known"]} == {"r1": 1, "r3": 1, "r5": 1}
    (tmp_path / "known").write_text("r1\n")
    with pytest.raises(ForensicsError, match="line 1"):
        suppressions.read_known(str(tmp_path / "known"))


HIDDEN = ("jane", "gpu-node-17", "gpu-node-18", "example.com", "/scratch")


def private(folder: Path) -> Path:
    """Six runs of two hosts in folders named after them; the home, the mail address and the data are in the configs."""
    for i in range(6):
        host = f"gpu-node-{17 + i % 2}"
        data = f"/scratch/jane/{host}/train.bin"
        put(
            folder / "home" / "jane" / "runs" / host / f"r{i}",
            i,
            (150,) if i % 2 else (),
            hostname=host,
            owner="jane@example.com",
            data=data,
        )
    return folder / "home" / "jane" / "runs"


def said(out: Path) -> str:
    """All that an audit wrote, names of files included."""
    files = [p for p in sorted(out.rglob("*")) if p.is_file()]
    texts = [str(table(out)) if p.suffix == ".parquet" else p.read_text() for p in files]
    return "\n".join([*(p.relative_to(out).as_posix() for p in files), *texts])


def test_redact_hides_people_and_places_in_every_output(tmp_path: Path) -> None:
    root = private(tmp_path)
    outputs = audits.Outputs(html.render, drawn.render, drawn.markdown)
    for out, redact in (("plain", False), ("hidden", True), ("plain", True)):
        document = audits.audit([str(root)], str(tmp_path / out), outputs, audits.Options(jobs=2, redact=redact))
        told = said(tmp_path / out) + drawn.terminal(document)
        for secret in (*HIDDEN, str(tmp_path)):
            assert (secret in told) == (not redact), secret
    rows = table(tmp_path / "hidden")
    assert {(r["id"], r["host"]) for r in rows} == {(f"host-{1 + i % 2}__r{i}", f"<host-{1 + i % 2}>") for i in range(6)}
    assert {r["path"] for r in rows if r["verdict"] == "unhealthy"} == {f"<path>/runs/<host-2>/r{i}" for i in (1, 3, 5)}
    assert {x.name for x in (tmp_path / "hidden" / "runs").glob("*.html")} == {f"host-2__r{i}.html" for i in (1, 3, 5)}
    case = json.loads((tmp_path / "hidden" / "runs" / "host-2__r1.case.json").read_text())
    assert (case["run"]["id"], case["run"]["path"]) == ("host-2__r1", "<path>/runs/<host-2>/r1")


def test_since_an_earlier_audit(root: Path, tmp_path: Path) -> None:
    audits.audit([str(root)], str(tmp_path / "one"), TEXT)
    put(root / "r0", 0, (100, 200))
    put(root / "r1", 1)
    put(root / "r9", 9)
    (root / "r2" / "metrics.jsonl").unlink()
    (root / "r2" / "config.json").unlink()
    told = audits.audit([str(root)], str(tmp_path / "two"), TEXT, audits.Options(since=str(tmp_path / "one")))["since"]
    assert {k: [c["id"] for c in v] for k, v in told.items()} == {
        "new": ["r9"],
        "gone": ["r2"],
        "worse": ["r0"],
        "better": ["r1"],
        "other_cause": [],
    }
    with pytest.raises(ForensicsError, match="no audit"):
        audits.audit([str(root)], str(tmp_path / "three"), TEXT, audits.Options(since=str(tmp_path / "nowhere")))


def test_roots_and_outputs_behind_urls(root: Path, tmp_path: Path) -> None:
    audits.audit([str(root)], str(tmp_path / "here"), TEXT)
    audits.audit([root.as_uri()], (tmp_path / "there").as_uri(), TEXT)
    here, there = table(tmp_path / "here"), table(tmp_path / "there")
    assert [{**r, "path": ""} for r in here] == [{**r, "path": ""} for r in there]
    assert there[0]["path"] == f"{root}/r0"  # a folder here is read as a folder here


def test_memory_file_system(root: Path) -> None:
    import fsspec

    fs = fsspec.filesystem("memory")
    fs.put(str(root), "/audited", recursive=True)
    told = audits.audit(["memory://audited"], "memory://audit-out", TEXT)
    assert told["runs"] == 6 and fs.exists("/audit-out/audit.parquet") and fs.exists("/audit-out/runs/r1.html")


def test_several_roots_tell_their_runs_apart(root: Path, tmp_path: Path) -> None:
    put(tmp_path / "more" / "r0", 5)
    told = audits.audit([str(root), str(tmp_path / "more")], str(tmp_path / "o"), TEXT)
    ids = [r["id"] for r in told["rows"]]
    assert len(set(ids)) == 7 and {"runs__r0", "more__r0"} <= set(ids)


# --- what goes wrong ------------------------------------------------------------------------------------------------


def test_a_bad_run_costs_itself_only(root: Path, tmp_path: Path) -> None:
    for i, mark in ((0, "KILL"), (2, "HANG"), (4, "BREAK")):
        (root / f"r{i}" / mark).write_text("")
    told = audits.audit([str(root)], str(tmp_path / "o"), TEXT, audits.Options(jobs=2, timeout=20, prepare=sabotage.begin))
    rows = {r["id"]: r for r in told["rows"]}
    assert [rows[f"r{i}"]["verdict"] for i in (1, 3, 5)] == ["unhealthy"] * 3
    assert "died" in rows["r0"]["error"] and "too long" in rows["r2"]["error"] and "broken on purpose" in rows["r4"]["error"]
    assert {r["verdict"] for r in (rows["r0"], rows["r2"], rows["r4"])} == {"inconclusive"}


def test_resume_does_nothing_twice_and_redoes_what_changed(root: Path, tmp_path: Path) -> None:
    out = tmp_path / "o"
    first = audits.audit([str(root)], str(out), TEXT)
    before = {p.name: p.stat().st_mtime_ns for p in (out / kept.ROWS).iterdir()}
    second = audits.audit([str(root)], str(out), TEXT, audits.Options(resume=True))
    assert {p.name: p.stat().st_mtime_ns for p in (out / kept.ROWS).iterdir()} == before
    assert list(first["rows"]) == list(second["rows"]) and first["shared_batches"] == second["shared_batches"]
    put(root / "r0", 0, (100,))
    third = {r["id"]: r for r in audits.audit([str(root)], str(out), TEXT, audits.Options(resume=True))["rows"]}
    assert third["r0"]["verdict"] == "unhealthy" and third["r0"]["page"] == "runs/r0.html"


def test_killed_and_resumed_gives_the_same_table(tmp_path: Path) -> None:
    for i in range(40):
        put(tmp_path / "runs" / f"r{i:02d}", i, (150,) if i % 4 == 0 else ())
    assert forensics("audit", "runs", "--out", "whole", "--jobs", 2, cwd=tmp_path).returncode == 0
    for enough in (1, 12):
        p = subprocess.Popen([*COMMAND, "audit", "runs", "--out", "o", "--jobs", "2", "--resume"], cwd=tmp_path)
        parts = tmp_path / "o" / kept.ROWS
        while p.poll() is None and sum(len(part.read_bytes().splitlines()) for part in parts.glob("*.jsonl")) < enough:
            time.sleep(0.02)
        p.kill()
        p.wait()
    assert forensics("audit", "runs", "--out", "o", "--jobs", 2, "--resume", cwd=tmp_path).returncode == 0
    assert table(tmp_path / "o") == table(tmp_path / "whole")
    assert (tmp_path / "o" / "audit.json").read_bytes() == (tmp_path / "whole" / "audit.json").read_bytes()
    assert (tmp_path / "o" / "index.html").read_bytes() == (tmp_path / "whole" / "index.html").read_bytes()
