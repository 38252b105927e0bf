"""The engines of an audit: the same files by each, and what is told where one dies, or a worker cannot do the work. The clusters are real."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from forensics import audits
from forensics.audits import discover, one_place
from forensics.audits.engines import cluster, probe
from forensics.audits.engines.team import Team
from forensics.errors import Cluster, ForensicsError
from reports import html
from tests.forensics import sabotage
from tests.forensics.many_runs import put

ROOT = Path(__file__).resolve().parents[2]
TEXT = audits.Outputs(html.render, str, str)
FILES = ("audit.json", "audit.parquet", "index.html")
# the command, with workers that are sabotaged and less patience for a lost cluster
AUDIT = """
import sys
from forensics.audits.engines import cluster
from forensics.cli import main
from forensics.verbs import audit
from tests.forensics import sabotage
cluster.PATIENCE = cluster.UNSTAFFED = 6.0
audit._prepare = sabotage.begin
main(sys.argv[1:])
"""
# a machine that has the folder BLIND not mounted
BLIND = """
import os, sys
def see(event, args):
    if event == "open" and str(args[0]).startswith(os.environ["BLIND"]):
        raise FileNotFoundError(2, "No such file or directory", args[0])
sys.addaudithook(see)
"""


@pytest.fixture
def gate(tmp_path: Path) -> Path:
    """Eight runs, of which one waits at the gate; beside them a worker's environment that cannot see them."""
    (tmp_path / "gate").mkdir()
    (tmp_path / "blind").mkdir()
    (tmp_path / "blind/sitecustomize.py").write_text(BLIND)
    for i in range(8):
        put(tmp_path / "runs" / f"r{i}", i, (150,) if i % 2 else ())
    (tmp_path / "runs/r5/GATE").write_text(str(tmp_path / "gate"))
    return tmp_path / "gate"


@pytest.fixture
def processes() -> Iterator[list[subprocess.Popen[str]]]:
    """What is started in it ends with the test, with all that it started."""
    started: list[subprocess.Popen[str]] = []
    yield started
    for p in started:
        end(p)


def end(process: subprocess.Popen[str]) -> None:
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    process.wait()


def start(processes: list[subprocess.Popen[str]], *command: object, cwd: Path, **env: str) -> subprocess.Popen[str]:
    path = os.pathsep.join(filter(None, [env.pop("FIRST", ""), str(ROOT)]))
    known = {k: v for k, v in os.environ.items() if not k.startswith(("RAY_", "DASK_"))}
    process = subprocess.Popen([sys.executable, *map(str, command)], cwd=cwd, env={**known, "PYTHONPATH": path, "RAY_AUTH_MODE": "disabled", **env},
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True)  # fmt: skip
    processes.append(process)
    return process


def until(there: Callable[[], Any], process: subprocess.Popen[str]) -> Any:
    """What is there at last; fails where the process ends before."""
    while not (found := there()):
        assert process.poll() is None, process.communicate()
        time.sleep(0.05)
    return found


def at_gate(gate: Path, process: subprocess.Popen[str], *before: int) -> int:
    """The process that waits at the gate, another than before."""
    found: int = until(lambda: (pid := _noted(gate / "REACHED")) not in before and pid, process)
    return found


def _noted(path: Path) -> int:
    return int(path.read_text()) if path.exists() else 0


def as_local(processes: list[subprocess.Popen[str]], folder: Path, out: str, *options: str) -> bool:
    """Whether the files are those of an audit by processes here."""
    (folder / "gate/OPEN").touch()
    done = start(processes, "-c", AUDIT, "audit", "runs", "--out", "local", "--jobs", 2, cwd=folder)
    assert done.wait() == 0, done.communicate()
    return all((folder / "local" / f).read_bytes() == (folder / out / f).read_bytes() for f in FILES)


@pytest.mark.parametrize("engine", ["dask", "ray"])
def test_engines_give_the_same_table_and_give_up_what_kills_their_workers(
    engine: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip({"dask": "distributed", "ray": "ray"}[engine])
    for i in range(6):
        put(tmp_path / "runs" / f"r{i}", i, (150,) if i % 2 else ())
    (tmp_path / "runs/r2/KILL").touch()
    monkeypatch.chdir(tmp_path)
    for name in ("local", engine):
        audits.audit(["runs"], name, TEXT, audits.Options(jobs=2, engine=name, prepare=sabotage.begin))
    rows, there = (pl.read_parquet(tmp_path / name / "audit.parquet").to_dicts() for name in ("local", engine))
    said, said_there = (re.sub(r"died \(\w+\)", "died", repr(r)) for r in (rows, there))  # each engine has a name of its own for it
    assert said == said_there and [r["id"] for r in rows if r["error"]] == ["r2"] and "worked at it died" in rows[2]["error"]


# --- Dask -----------------------------------------------------------------------------------------------------------


@pytest.fixture
def dask(gate: Path, processes: list[subprocess.Popen[str]]) -> tuple[subprocess.Popen[str], dict[str, str]]:
    """A scheduler with three workers, one of which cannot see the runs; and the environment that names it."""
    pytest.importorskip("distributed")
    folder = gate.parent
    scheduler = start(
        processes, "-m", "distributed.cli.dask_scheduler", "--port", 0, "--no-dashboard", "--scheduler-file", "scheduler.json", cwd=folder
    )
    worker = [
        "-m",
        "distributed.cli.dask_worker",
        "--scheduler-file",
        folder / "scheduler.json",
        "--nthreads",
        1,
        "--no-dashboard",
        "--no-nanny",
    ]
    for n in range(3):
        (elsewhere := folder / f"worker{n}").mkdir()
        blind = {"FIRST": str(folder / "blind"), "BLIND": str(folder / "runs")} if n == 0 else {}
        start(processes, *worker, cwd=elsewhere, **blind)
    until((folder / "scheduler.json").exists, scheduler)
    address = json.loads((folder / "scheduler.json").read_text())["address"]
    from distributed import Client

    with Client(address, set_as_default=False) as client:
        client.wait_for_workers(3)
    return scheduler, {"DASK_SCHEDULER_ADDRESS": address}


def test_on_dask_a_worker_that_cannot_see_the_runs_is_left_out_and_one_that_dies_costs_nothing(
    gate: Path, dask: tuple[subprocess.Popen[str], dict[str, str]], processes: list[subprocess.Popen[str]]
) -> None:
    audit = start(processes, "-c", AUDIT, "audit", "runs", "--out", "o", "--engine", "dask", cwd=gate.parent, **dask[1])
    os.kill(first := at_gate(gate, audit), signal.SIGKILL)
    at_gate(gate, audit, first)
    (gate / "OPEN").touch()
    told = audit.communicate()[1]
    assert audit.returncode == 0, told
    assert f"Cluster: 1 of 3 Dask workers cannot read {gate.parent / 'runs'} (No such file or directory)" in told
    assert as_local(processes, gate.parent, "o")


@pytest.mark.parametrize("lost", ["scheduler", "workers"])
def test_on_dask_a_lost_cluster_ends_the_audit_and_resume_goes_on(
    lost: str, gate: Path, dask: tuple[subprocess.Popen[str], dict[str, str]], processes: list[subprocess.Popen[str]]
) -> None:
    audit = start(processes, "-c", AUDIT, "audit", "runs", "--out", "o", "--engine", "dask", "--jobs", "1", cwd=gate.parent, **dask[1])
    first = at_gate(gate, audit)
    if lost == "scheduler":
        end(dask[0])
    else:
        os.kill(first, signal.SIGKILL)
        os.kill(at_gate(gate, audit, first), signal.SIGKILL)
    told = audit.communicate()[1]
    sentence = {"scheduler": "lost the Dask cluster at tcp://", "workers": "has had no worker for 6 s that can do the work"}[lost]
    assert audit.returncode == 1 and sentence in told and "--resume" in told and "Traceback" not in told
    kept = {p.name: p.stat().st_mtime_ns for p in (gate.parent / "o" / one_place.ROWS).iterdir()}
    assert 0 < len(kept) < 8  # what is proven, and no row that says a run had killed its worker
    (gate / "OPEN").touch()
    again = start(processes, "-c", AUDIT, "audit", "runs", "--out", "o", "--resume", "--jobs", "2", cwd=gate.parent)
    assert again.wait() == 0, again.communicate()
    assert kept.items() <= {p.name: p.stat().st_mtime_ns for p in (gate.parent / "o" / one_place.ROWS).iterdir()}.items()
    assert as_local(processes, gate.parent, "o")


# --- Ray ------------------------------------------------------------------------------------------------------------


def test_on_ray_a_blind_node_is_left_out_a_death_costs_nothing_and_a_lost_head_ends_the_audit(
    gate: Path, processes: list[subprocess.Popen[str]]
) -> None:
    pytest.importorskip("ray")
    folder, short = gate.parent, tempfile.mkdtemp(prefix="ray-")  # the name of a socket has 107 bytes at most
    ports = [x for p in ("min-worker", "max-worker", "dashboard-agent-listen", "dashboard-agent-grpc") for x in (f"--{p}-port", "0")]
    ray = ["-m", "ray.scripts.scripts", "start", "--block", "--disable-usage-stats", *ports]
    start_head = ["--head", "--port", 0, "--include-dashboard", "false", "--num-cpus", 2]
    head = start(processes, *ray, *start_head, cwd=folder, RAY_TMPDIR=short)
    assert head.stdout is not None
    address = next(m[1] for line in head.stdout if (m := re.search(r"--address='([^']+)'", line)))
    blind = {"FIRST": str(folder / "blind"), "BLIND": str(folder / "runs"), "RAY_TMPDIR": short}
    node = start(processes, *ray, "--address", address, "--num-cpus", 3, cwd=folder / "blind", **blind)
    assert node.stdout is not None
    assert any("Ray runtime started" in line for line in node.stdout)
    env = {"RAY_ADDRESS": address, "RAY_TMPDIR": short}

    audit = start(processes, "-c", AUDIT, "audit", "runs", "--out", "o", "--engine", "ray", cwd=folder, **env)
    os.kill(first := at_gate(gate, audit), signal.SIGKILL)
    at_gate(gate, audit, first)  # once more, alone
    (gate / "OPEN").touch()
    told = audit.communicate()[1]
    assert audit.returncode == 0, told
    assert f"Cluster: 1 of 2 Ray nodes cannot read {folder / 'runs'} (No such file or directory)" in told
    assert as_local(processes, folder, "o")

    for mark in gate.iterdir():
        mark.unlink()
    audit = start(processes, "-c", AUDIT, "audit", "runs", "--out", "lost", "--engine", "ray", "--jobs", "1", cwd=folder, **env)
    at_gate(gate, audit)
    end(head)
    told = audit.communicate()[1]
    assert audit.returncode == 1 and f"lost the Ray cluster at {address}" in told and "Traceback" not in told
    kept = {p.name: p.stat().st_mtime_ns for p in (folder / "lost" / one_place.ROWS).iterdir()}
    assert 0 < len(kept) < 8
    (gate / "OPEN").touch()
    again = start(processes, "-c", AUDIT, "audit", "runs", "--out", "lost", "--resume", "--jobs", "2", cwd=folder)
    assert again.wait() == 0, again.communicate()
    assert all((folder / "lost" / f).read_bytes() == (folder / "o" / f).read_bytes() for f in FILES)
