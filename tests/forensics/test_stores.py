"""Runs and checkpoints in object stores: a real S3 server (moto) and memory://."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar

import fsspec
import numpy as np
import pyarrow.parquet as pq
import pytest

import forensics
from forensics import at_path, audits, outlines, remote
from forensics.checkpoints import run_saves, sick_document
from forensics.errors import Fetching, ForensicsError
from forensics.replays import start_checkpoints

torch = pytest.importorskip("torch")
save_file = pytest.importorskip("safetensors.numpy").save_file


def log(steps: int = 100) -> bytes:
    return "".join(json.dumps({"step": i, "loss": 2.0 - i / 100}) + "\n" for i in range(steps)).encode()


def saves(folder: Path, steps: tuple[int, ...] = (10, 20, 30)) -> None:
    """Checkpoints with weights of 2 MB and an optimizer's counters, one of safetensors."""
    for step in steps:
        home = folder / f"checkpoint-{step}"
        home.mkdir(parents=True)
        model = torch.nn.Linear(720, 720)
        optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
        model(torch.ones(1, 720)).sum().backward()
        optimizer.step()
        torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "step": step}, home / "state.pt")
    save_file({"w": np.ones((800, 800), np.float32)}, folder / "model_step_40.safetensors")


@pytest.fixture
def bucket(s3: dict[str, str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[str]:
    for key, value in s3.items():
        monkeypatch.setenv(key, value)
    fs = fsspec.filesystem("s3", skip_instance_cache=True)
    fs.mkdir("team")
    saves(tmp_path / "run")
    (tmp_path / "run/train.jsonl").write_bytes(log())
    (tmp_path / "run/video.mp4").write_bytes(bytes(3 << 20))
    fs.put(str(tmp_path / "run") + "/", "team/run/", recursive=True)
    yield "s3://team/run"
    fs.rm("team", recursive=True)


@pytest.fixture
def read_bytes(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many bytes each request of s3fs brought."""
    import s3fs

    sizes: list[int] = []
    plain = s3fs.S3FileSystem._call_s3

    async def counted(self: Any, method: str, *args: Any, **options: Any) -> Any:
        found = await plain(self, method, *args, **options)
        if method == "get_object":
            sizes.append(found["ContentLength"])
        return found

    monkeypatch.setattr(s3fs.S3FileSystem, "_call_s3", counted)
    return sizes


def test_of_a_large_run_in_s3_only_logs_and_headers_are_fetched(
    bucket: str, read_bytes: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outlines, "WHOLE", 4 << 20)
    monkeypatch.setattr(outlines, "BEGINNING", 64 << 10)
    monkeypatch.setattr(outlines, "SMALL", 64 << 10)
    run = at_path.read(bucket)
    whole = sum(s.bytes for s in run.sources)
    assert whole > 20_000_000 and sum(read_bytes) < whole / 5
    found = {c.step: c for c in run_saves.of_run(run)}
    assert set(found) == {10, 20, 30, 40}
    assert {t.name: t.shape for t in found[20].contents.tensors}["model.weight"] == (720, 720)
    assert found[20].contents.values["state.pt:optimizer.param_groups.0.lr"] == 0.01
    assert found[20].contents.values["state.pt:optimizer.state.0.step"] == 1.0  # a small storage, which was fetched
    assert all(run.tables["checkpoints"]["complete"].to_pylist())
    case = forensics.analyze(bucket).to_json()
    assert not [f for f in case["findings"] if f["kind"] == "checkpoint_damage"], "a hole is no damage"
    assert any("4 checkpoints were not fetched" in g["what"] for g in case["gaps"])


def test_a_small_run_in_s3_is_read_whole(bucket: str) -> None:
    run = at_path.read(bucket)
    assert not outlines.of(run)
    assert all(c.stats for c in run_saves.tensors(run))
    (tmp,) = {Path(run.root)}
    assert abs(next(tmp.glob("*.jsonl")).stat().st_mtime - time.time()) < 3600


def test_checkpoint_reads_a_file_and_a_folder_behind_a_url(bucket: str, tmp_path: Path) -> None:
    there = sick_document.report(f"{bucket}/checkpoint-10", f"{bucket}/checkpoint-20")
    here = sick_document.report(tmp_path / "run/checkpoint-10", tmp_path / "run/checkpoint-20")
    assert there["path"] == f"{bucket}/checkpoint-10" and there["path2"] == f"{bucket}/checkpoint-20"
    assert (there["tensors"], there["changed"]) == (here["tensors"], here["changed"])
    one = sick_document.report(f"{bucket}/model_step_40.safetensors")
    assert one["format"] == "safetensors" and one["tensors"][0]["mean"] == 1.0
    with pytest.raises(ForensicsError, match="nothing is there"):
        sick_document.report(f"{bucket}/checkpoint-99")
    with pytest.raises(ForensicsError, match=r"^s3://team/run/video.mp4 cannot be read"):
        sick_document.report(f"{bucket}/video.mp4")


def test_an_audit_of_a_bucket(bucket: str, tmp_path: Path) -> None:
    """In a process of its own: workers that an earlier audit has left know nothing of this server."""
    code = "import sys; from forensics.cli import main; main(sys.argv[1:])"
    done = subprocess.run([sys.executable, "-c", code, "audit", "s3://team", "--jobs", "1", "--out", str(tmp_path / "a")], capture_output=True, text=True)  # fmt: skip
    assert done.returncode == 0, done.stderr
    row = pq.read_table(tmp_path / "a/audit.parquet").to_pylist()[0]
    assert (row["id"], row["path"], row["scalars"]) == ("run", bucket, 100)


# --- the Hugging Face Hub


class Hub(BaseHTTPRequestHandler):
    """What huggingface_hub asks to list and download a repository."""

    files: ClassVar = {"logs/train.jsonl": log(), "README.md": b"# run"}

    def log_message(self, *_: Any) -> None: ...

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_GET(self) -> None:
        path = self.path.partition("?")[0]
        name = path.partition("/resolve/")[2].partition("/")[2]
        if path.startswith("/api/models/me/run/tree/"):
            listed = [{"type": "file", "path": n, "size": len(d), "oid": "a" * 40} for n, d in self.files.items()]
            self._send(json.dumps([*listed, {"type": "directory", "path": "logs", "oid": "b" * 40}]).encode())
        elif path.startswith("/api/models/me/run"):
            self._send(json.dumps({"id": "me/run", "sha": "c" * 40, "private": False, "tags": [], "siblings": []}).encode())
        elif name in self.files:
            self._send(self.files[name])
        else:
            self.send_error(404)

    def _send(self, data: bytes) -> None:
        self.send_response(200)
        for header, value in {"Content-Length": str(len(data)), "ETag": '"x"', "X-Repo-Commit": "c" * 40}.items():
            self.send_header(header, value)
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(data)


def test_a_run_on_the_hugging_face_hub_reads_like_a_folder(tmp_path: Path) -> None:
    pytest.importorskip("huggingface_hub")
    server = ThreadingHTTPServer(("127.0.0.1", 0), Hub)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    environment = {**os.environ, "HF_ENDPOINT": f"http://127.0.0.1:{server.server_address[1]}", "HF_HOME": str(tmp_path)}
    code = (
        "import sys, forensics; r = forensics.read(sys.argv[1]); print(r.path, [s.path for s in r.sources], r.tables['metrics'].num_rows)"
    )

    def read(url: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([sys.executable, "-c", code, url], capture_output=True, text=True, env=environment)

    assert read("hf://me/run").stdout.strip() == "hf://me/run ['README.md', 'logs/train.jsonl'] 100"
    assert "cannot open hf://me/other: " in read("hf://me/other").stderr
    server.shutdown()


# --- what replay does with outlines


@pytest.fixture
def outlined(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A run in memory:// whose checkpoints were too large to be fetched."""
    saves(tmp_path / "run", (10, 20, 30, 40, 50, 60))
    (tmp_path / "run/train.jsonl").write_bytes(log())
    fs = fsspec.filesystem("memory")
    fs.put(str(tmp_path / "run") + "/", "/held/run/", recursive=True)
    monkeypatch.setattr(outlines, "WHOLE", 4 << 20)
    yield at_path.read("memory://held/run")
    fs.rm("/held", recursive=True)


def test_a_hole_is_never_a_value(outlined: Any) -> None:
    for c in run_saves.tensors(outlined):
        assert not c.stats
        assert all(t.why == outlines.NOT_FETCHED for t in c.contents.tensors if t.count > 10_000)
    assert run_saves.last_healthy(outlined, []) is None


def test_an_audit_reads_headers_too(outlined: Any, tmp_path: Path) -> None:
    page = audits.Outputs(lambda *_: "", lambda *_: "", lambda *_: "")
    told = audits.audit(["memory://held"], str(tmp_path / "audit"), page)
    assert [(r["id"], r["scalars"]) for r in told["rows"]] == [("run", 100)]


def test_replay_fetches_the_states_that_it_may_begin_from_and_removes_the_other_outlines(outlined: Any) -> None:
    with pytest.warns(Fetching, match="25 MB from memory://held/run"):
        start_checkpoints.fetch(outlined, 45)
    known = start_checkpoints.good(outlined, None)
    assert [s.step for s in known] == [10, 20, 30, 50]
    for s in known:
        loaded = torch.load(f"{s.path}/state.pt", weights_only=True)
        assert loaded["step"] == s.step and float(loaded["model"]["weight"].abs().sum()) > 1
    assert not (Path(outlined.root) / "checkpoint-60/state.pt").exists()
    assert not (Path(outlined.root) / "model_step_40.safetensors").exists()


def test_large_downloads_are_told_before(outlined: Any, tmp_path: Path) -> None:
    with pytest.warns(Fetching, match=r"^6 MB from memory://held/run/checkpoint-10"):
        sick_document.report("memory://held/run/checkpoint-10")
    with warnings.catch_warnings(action="error", category=Fetching):
        at_path.read("memory://held/run")


def test_what_leads_out_of_the_folder_or_is_gone_is_a_gap(tmp_path: Path) -> None:
    members, gaps = remote.members("memory://held/nothing", ["a.log", "../b.log"])
    assert members == [] and [g.path for g in gaps] == ["a.log", "../b.log"]
    assert [g.path for g in remote.fetch("memory://held", [remote.Member("/held/x", "../x", 1, 0.0)], tmp_path)] == ["/held/x"]


def test_an_outline_that_could_not_be_written_leaves_no_file_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fs = fsspec.filesystem("memory")
    fs.pipe("/torn/model_step_1.safetensors", b"\xff" * 8 + bytes(2 << 20))
    fs.pipe("/torn/log.jsonl", log())
    monkeypatch.setattr(outlines, "WHOLE", 1 << 20)
    monkeypatch.setattr(outlines, "_outline", lambda fs, m, target, head: target.write_bytes(bytes(9)) and 1 / 0)
    run = at_path.read("memory://torn")
    assert [s.path for s in run.sources] == ["log.jsonl"] and any("ZeroDivisionError" in g.what for g in run.gaps)
