"""Where runs lie below the roots of an audit: every run found once, as one place, in work that grows with the folders."""

from __future__ import annotations

import cProfile
import json
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from forensics import audits
from forensics.audits import discover, listing
from parsers.tables import Gap
from tests.forensics.many_runs import TEXT, curve, forensics, put, six, table


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


def test_a_config_above_goes_with_every_run_and_what_an_audit_wrote_with_none(tmp_path: Path) -> None:
    root = six(tmp_path / "runs")
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
