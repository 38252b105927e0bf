"""Names are hidden only where they leave: what differs only in a secret stays two, and its files are still found."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

import parsers
from forensics import at_path, pipeline
from forensics.checkpoints import run_saves
from parsers import secrets
from parsers.tables import Run

ROOT = Path(__file__).resolve().parents[2]
ONE, TWO = "hf_" + "Ab1" * 11, "r8_" + "Cd2" * 12


def log(folder: Path, tag: str = "loss", shift: float = 0.0) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    rows = [json.dumps({"step": s, tag: 3.0 / (1 + s) + shift * (s % 7)}) for s in range(60)]
    (folder / "log.jsonl").write_text("\n".join(rows))


def told(run: Run) -> str:
    return str([t.to_pydict() for t in run.tables.values()]) + str(run.sources) + str(run.gaps) + str(run.meanings) + run.id


def test_two_tags_stay_two_series(tmp_path: Path) -> None:
    rows = [json.dumps({"step": s, f"a/{ONE}": s, f"a/{TWO}": -s, "loss": 1.0}) for s in range(20)]
    (tmp_path / "log.jsonl").write_text("\n".join(rows))
    run = parsers.read(tmp_path)
    metrics = run.tables["metrics"].to_pylist()
    tags = {row["tag"] for row in metrics} - {"loss"}
    assert len(tags) == 2 and all(tag.startswith("a/***") for tag in tags)
    assert len({row["name"] for row in metrics}) == 3
    assert {(s, t) for s, t in run.meanings} >= {("log.jsonl", tag) for tag in tags}
    assert ONE not in told(run) and TWO not in told(run)


def test_two_folders_stay_two_runs_and_can_be_opened(tmp_path: Path) -> None:
    log(tmp_path / f"run-{ONE}")
    log(tmp_path / f"run-{TWO}", shift=0.4)
    runs = parsers.read_all(tmp_path)
    assert len(runs) == 2
    assert len({r.id for r in runs}) == 2 and not any(secret in r.id for r in runs for secret in (ONE, TWO))
    for r in runs:
        assert parsers.read(r.path).tables["metrics"].num_rows == 60
        assert r.file(r.sources[0].path).is_file()
        document = json.dumps(pipeline.analyze_run(r).to_json())
        assert ONE not in document and TWO not in document
        plain = json.loads(document)
        assert all(source["sha256"] for source in plain["sources"])
    of_two = pipeline.analyze_run(at_path.choose(runs, str(tmp_path))).to_json()["run"]
    (other,) = of_two["siblings"]
    assert of_two["path"] != other["path"] and ONE not in str(other) and TWO not in str(other)
    assert other["command"].endswith(f"--run '{other['id']}'") and at_path.named(runs, other["id"], "").id == other["id"]


def test_two_files_stay_two_sources(tmp_path: Path) -> None:
    for secret, tag in ((ONE, "loss"), (TWO, "grad_norm")):
        (tmp_path / f"{secret}.csv").write_text(f"step,{tag}\n" + "".join(f"{s},{s * 0.5}\n" for s in range(30)))
    (tmp_path / f"{ONE}.bin").write_bytes(b"\0\1")
    (tmp_path / f"link-{TWO}").symlink_to(tmp_path / "nowhere")
    run = parsers.read(tmp_path)
    paths = [s.path for s in run.sources]
    assert len(set(paths)) == len(paths) == 4
    assert set(run.tables["metrics"]["source"].to_pylist()) <= set(paths)
    assert ONE not in told(run) and TWO not in told(run)
    assert sorted(run.file(p).name for p in paths if p.endswith(".csv")) == sorted([f"{ONE}.csv", f"{TWO}.csv"])


def test_checkpoints_in_hidden_folders_are_opened(tmp_path: Path) -> None:
    log(tmp_path)
    for secret in (ONE, TWO):
        (tmp_path / secret / "checkpoint-10").mkdir(parents=True)
        header = json.dumps({"w": {"dtype": "F32", "shape": [4], "data_offsets": [0, 16]}}).encode()
        data = len(header).to_bytes(8, "little") + header + np.ones(4, np.float32).tobytes()
        (tmp_path / secret / "checkpoint-10" / "model.safetensors").write_bytes(data)
    run = parsers.read(tmp_path)
    found = run_saves.tensors(run)
    assert len(found) == 2
    names = {run_saves.name(c, run) for c in found}
    assert names == {"***/checkpoint-10", "***~2/checkpoint-10"}
    assert ONE not in told(run) and TWO not in told(run)


def test_a_name_of_odd_bytes_is_found(tmp_path: Path) -> None:
    log(tmp_path)
    odd = tmp_path / b"notes-\xff.csv".decode("utf-8", "surrogateescape")
    odd.write_text("step,acc\n1,2\n2,3\n")
    run = parsers.read(tmp_path)
    (source,) = (s.path for s in run.sources if "notes" in s.path)
    assert run.file(source).is_file()


def test_progress_tells_no_secret(tmp_path: Path) -> None:
    log(tmp_path / ONE)
    said: list[str] = []
    runs = parsers.read_all(tmp_path, progress=lambda what, done, total: said.append(what))
    assert said and not any(ONE in x for x in said)
    assert secrets.MASK in said[0] and runs[0].sources[0].path == "***/log.jsonl"


def test_an_audit_keeps_both_of_two_folders(tmp_path: Path) -> None:
    log(tmp_path / "runs" / f"run-{ONE}")
    log(tmp_path / "runs" / f"run-{TWO}", shift=0.4)
    command = [sys.executable, "-m", "forensics", "audit", "runs", "--out", "out", "--jobs", "1"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, env=os.environ | {"PYTHONPATH": str(ROOT)}, timeout=120)
    rows = pq.read_table(tmp_path / "out" / "audit.parquet").to_pylist()
    assert len({r["id"] for r in rows}) == len({r["path"] for r in rows}) == 2
    written = "".join(
        p.read_bytes().decode("utf-8", "replace") + str(p.relative_to(tmp_path)) for p in (tmp_path / "out").rglob("*") if p.is_file()
    )
    assert not any(secret in text for secret in (ONE, TWO) for text in (written, str(rows), done.stdout, done.stderr))
