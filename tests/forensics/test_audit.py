"""The audit: every run found once, nothing lost by a death. test_engines.py has what does the work."""

from __future__ import annotations

import cProfile
import json
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from forensics import audits
from forensics.audits import discover, kept, listing, suppressions
from forensics.errors import ForensicsError
from parsers.tables import Gap
from reports import audit_page as drawn
from reports import html
from tests.forensics import sabotage
from tests.forensics.many_runs import curve, put

COMMAND = [sys.executable, "-c", "import sys; from forensics.cli import main; sys.argv[0] = 'forensics'; main()"]
CONTRACT = ["id", "path", "framework", "status", "verdict", "top_cause", "probability", "second_cause", "spikes_fast", "spikes_slow",
            "spikes_non_recovering", "first_bad_step", "attempts", "steps", "scalars", "lost", "seconds"]  # fmt: skip
TEXT = audits.Outputs(html.render, str, str)  # a page that an audit finds again has to be one


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for i in range(6):
        put(tmp_path / "runs" / f"r{i}", i, (150,) if i % 2 else ())
    return tmp_path / "runs"


def forensics(*args: object, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*COMMAND, *map(str, args)], cwd=cwd, capture_output=True, text=True)


def table(out: Path) -> list[dict[str, Any]]:
    return pl.read_parquet(out / "audit.parquet").to_dicts()


# --- where runs lie -------------------------------------------------------------------------------------------------


def names(root: Path) -> list[str]:
    return [p.name for p in discover.find([str(root)], "/nowhere")]


def test_what_cannot_be_opened_is_a_place_with_the_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(tmp_path / "sound", 1)
    (tmp_path / "shut").mkdir()
    (tmp_path / "shut" / "train.log").write_text("step 1 loss 2\n")
    whole, opened = listing.walk, Path.open

    def walk(root: Path, most: int) -> Iterator[Any]:
        yield from whole(root, most)
        yield Gap("byte 0", "folder cannot be opened: Permission denied", None, "locked")

    def refuses(self: Path, *args: Any, **how: Any) -> Any:
        if self.name == "train.log":
            raise PermissionError(13, "Permission denied")
        return opened(self, *args, **how)

    monkeypatch.setattr(listing, "walk", walk)
    monkeypatch.setattr(Path, "open", refuses)
    told = {p.name: p.refused for p in discover.find([str(tmp_path)], "/nowhere")}
    assert told == {"sound": "", "shut": "shut/train.log cannot be opened", "locked": "folder cannot be opened: Permission denied"}


def test_every_nesting(tmp_path: Path) -> None:
    put(tmp_path / "plain", 1)
    put(tmp_path / "sweep" / "trial_1", 2)
    put(tmp_path / "sweep" / "deep" / "er" / "trial_2", 3)
    for version in range(2):
        put(tmp_path / "lightning_logs" / f"version_{version}", 4 + version)
    hf = tmp_path / "hf" / "checkpoint-100"
    hf.mkdir(parents=True)
    (hf / "trainer_state.json").write_text(
        json.dumps({"log_history": [{"step": i, "loss": 2.0} for i in range(9)], "global_step": 9, "max_steps": 9})
    )
    mlflow = tmp_path / "mlruns" / "0" / ("a1" * 16)
    (mlflow / "metrics" / "train").mkdir(parents=True)
    (mlflow / "metrics" / "train" / "loss").write_text("".join(f"{1700000000000 + i} {2.0} {i}\n" for i in range(9)))
    (mlflow / "meta.yaml").write_text(f"artifact_uri: x\nlifecycle_stage: active\nrun_id: {'a1' * 16}\nstatus: 3\n")
    wandb = tmp_path / "exp" / "wandb" / "run-20240101_000000-abcd1234" / "files"
    wandb.mkdir(parents=True)
    (wandb / "wandb-summary.json").write_text('{"loss": 1.0, "_step": 9}')
    logs = tmp_path / "logs"
    logs.mkdir()
    for i in range(20):
        (logs / f"job{i:02d}.jsonl").write_text(curve(i, steps=20))
    found = names(tmp_path)
    assert [n for n in found if n.startswith("logs")] == [f"logs/job{i:02d}.jsonl" for i in range(20)]
    assert {n for n in found if not n.startswith("logs/")} == {
        "exp/wandb/abcd1234", "hf", "lightning_logs/version_0", "lightning_logs/version_1", f"mlruns/0/{'a1' * 16}", "plain",
        "sweep/deep/er/trial_2", "sweep/trial_1",
    }  # fmt: skip


def test_a_config_above_goes_with_every_run_and_what_an_audit_wrote_with_none(root: Path) -> None:
    (root / "common.yaml").write_text("optimizer: adam\nclip: 1.0\n")
    audits.audit([str(root)], str(root / "out"), TEXT)
    found = discover.find([str(root)], "/nowhere")
    assert [p.name for p in found] == [f"r{i}" for i in range(6)]
    assert all("common.yaml" in p.files for p in found)


def test_twice_the_folders_are_twice_the_work() -> None:
    """Counted, not timed: calls of functions while the folders of a sweep are told apart."""

    def calls(folders: int) -> int:
        found = [listing.Found("sweep.yaml", 9, 0.0, "config")]
        found += [
            listing.Found(f"sweep/{i}/{name}", 9, 0.0, kind)
            for i in range(folders)
            for name, kind in (("log.csv", "csv_log"), ("a.yaml", "config"))
        ]
        profile = cProfile.Profile()
        places = profile.runcall(discover._below, "/nowhere", "", found)
        assert len(places) == folders and {f for p in places for f in p.files} >= {f.path for f in found}
        return sum(entry.callcount for entry in profile.getstats())

    assert calls(800) < 2.5 * calls(400)


def test_several_runs_in_one_folder_are_rows_of_their_own(tmp_path: Path) -> None:
    (tmp_path / "x").mkdir()
    for i in range(3):
        (tmp_path / "x" / f"run{i}.jsonl").write_text(curve(i))
    audits.audit([str(tmp_path / "x")], str(tmp_path / "out"), TEXT)
    assert sorted(r["id"] for r in table(tmp_path / "out")) == ["run0.jsonl", "run1.jsonl", "run2.jsonl"]


def test_runs_of_one_database_are_rows_of_their_own(tmp_path: Path) -> None:
    """Tables as of MLflow 2 and 3, as far as they hold a run; a server's store has the runs of a whole team."""
    (tmp_path / "store").mkdir()
    db = sqlite3.connect(tmp_path / "store" / "mlflow.db")
    db.executescript("""
        CREATE TABLE runs (run_uuid TEXT PRIMARY KEY, name TEXT, status TEXT, start_time BIGINT, end_time BIGINT, lifecycle_stage TEXT);
        CREATE TABLE metrics (key TEXT, value FLOAT, timestamp BIGINT, run_uuid TEXT, step BIGINT, is_nan BOOLEAN);
        CREATE TABLE params (key TEXT, value TEXT, run_uuid TEXT);
        CREATE TABLE tags (key TEXT, value TEXT, run_uuid TEXT);
        CREATE TABLE latest_metrics (key TEXT, value FLOAT, run_uuid TEXT);
    """)
    for i, name in enumerate(("fine", "spiky", "fine-too")):
        run = f"{i}" * 32
        db.execute("INSERT INTO runs VALUES (?, ?, 'FINISHED', 1700000000000, NULL, 'active')", [run, name])
        logged = [json.loads(line) for line in curve(i, (150,) if name == "spiky" else ()).splitlines()]
        db.executemany(
            "INSERT INTO metrics VALUES ('loss', ?, ?, ?, ?, 0)", [(x["loss"], x["time"] * 1000, run, x["step"]) for x in logged]
        )
        db.execute("INSERT INTO params VALUES ('lr', '0.001', ?)", [run])
    db.commit()
    db.close()
    audits.audit([str(tmp_path / "store")], str(tmp_path / "o"), TEXT, audits.Options(jobs=2))
    rows = {r["id"]: r for r in table(tmp_path / "o")}
    assert {i: (r["verdict"], r["first_bad_step"], r["scalars"]) for i, r in rows.items()} == {
        "mlflow.db__fine": ("healthy", None, 300), "mlflow.db__fine-too": ("healthy", None, 300), "mlflow.db__spiky": ("unhealthy", 150, 300),
    }  # fmt: skip
    p = forensics("analyze", rows["mlflow.db__spiky"]["path"], "--fail-on", "unhealthy", cwd=tmp_path)
    assert p.returncode == 3 and (tmp_path / "spiky.html").exists(), p.stderr


def test_a_run_that_goes_on_in_another_folder_is_one_row(tmp_path: Path) -> None:
    for name, first, seed in (("a", 0, 1), ("b", 300, 1), ("c", 0, 7)):
        folder = put(tmp_path / "runs" / name, seed)
        (folder / "metrics.jsonl").write_text(curve(seed, first=first))
        (folder / "config.json").write_text(json.dumps({"lr": 1e-3, "batch_size": 8, "seed": seed, "warmup_steps": 10}))
    audits.audit([str(tmp_path / "runs")], str(tmp_path / "out"), TEXT)
    assert {r["id"]: (r["first_step"], r["steps"]) for r in table(tmp_path / "out")} == {"a": (0, 599), "c": (0, 299)}


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
    assert first["rows"] == second["rows"] and first["shared_batches"] == second["shared_batches"]
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
