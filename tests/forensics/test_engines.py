"""The engines of an audit: the same files by each, and what is told where one dies, or a worker cannot do the work. The clusters are real."""

from __future__ import annotations

import contextlib
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
from forensics.audits import discover, kept, one_place
from forensics.audits.engines import cluster, probe
from forensics.audits.engines import dask as engines_dask
from forensics.audits.engines.team import Team
from forensics.errors import Cluster, ForensicsError
from reports import audit_page as drawn
from reports import html
from tests.forensics import sabotage
from tests.forensics.many_runs import put

ROOT = Path(__file__).resolve().parents[2]
DRAWN = audits.Outputs(html.render, drawn.render, drawn.markdown)
FILES = ("audit.json", "audit.parquet", "index.html")
# the command, with workers that are sabotaged and less patience for a lost cluster
AUDIT = """
import sys
from forensics.audits.engines import cluster
from forensics.cli import main
from forensics.verbs import audit
from tests.forensics import sabotage
cluster.PATIENCE = cluster.UNSTAFFED = 8.0
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
def gate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Eight runs below the current folder, of which one waits at the gate."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "gate").mkdir()
    (tmp_path / "blind").mkdir()
    (tmp_path / "blind/sitecustomize.py").write_text(BLIND)
    for i in range(8):
        put(tmp_path / "runs" / f"r{i}", i, (150,) if i % 2 else ())
    (tmp_path / "runs/r5/GATE").write_text(str(tmp_path / "gate"))
    return tmp_path / "gate"


def blind(folder: Path) -> dict[str, str]:
    """The environment of a worker that cannot see the runs."""
    return {"FIRST": str(folder / "blind"), "BLIND": str(folder / "runs")}


@pytest.fixture
def processes() -> Iterator[list[subprocess.Popen[str]]]:
    """What is started in it ends with the test, with all that it started."""
    started: list[subprocess.Popen[str]] = []
    yield started
    for p in started:
        end(p)


def end(process: subprocess.Popen[str]) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
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


def resumed(folder: Path, out: str) -> None:
    """Goes on with an audit by processes here."""
    (folder / "gate/OPEN").touch()
    audits.audit(["runs"], str(folder / out), DRAWN, audits.Options(jobs=2, resume=True, prepare=sabotage.begin))


def as_local(folder: Path, out: str) -> bool:
    """Whether the files are those of an audit by processes here."""
    resumed(folder, "local")
    return all((folder / "local" / f).read_bytes() == (folder / out / f).read_bytes() for f in FILES)


def rows_of(folder: Path, out: str) -> dict[str, str]:
    """What is kept of each place, by its key."""
    lines = [x for p in (folder / out / kept.ROWS).iterdir() for x in p.read_text("utf-8").splitlines()]
    return {json.loads(x)["key"]: x for x in lines}


@pytest.mark.parametrize("engine", ["dask", "ray"])
def test_engines_give_the_same_table_and_give_up_what_kills_their_workers(
    engine: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip({"dask": "distributed", "ray": "ray"}[engine])
    for i in range(6):
        put(tmp_path / "runs" / f"r{i}", i, (150,) if i % 2 else ())
    (tmp_path / "runs/r2/KILL").touch()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    for name in ("local", engine):
        audits.audit(["runs"], name, DRAWN, audits.Options(jobs=2, engine=name, prepare=sabotage.begin))
    rows, there = (pl.read_parquet(tmp_path / name / "audit.parquet").to_dicts() for name in ("local", engine))
    said, said_there = (re.sub(r"died \(\w+\)", "died", repr(r)) for r in (rows, there))  # each engine has a name of its own for it
    assert said == said_there and [r["id"] for r in rows if r["error"]] == ["r2"] and "worked at it died" in rows[2]["error"]


# --- Dask -----------------------------------------------------------------------------------------------------------


Dask = tuple[subprocess.Popen[str], dict[str, str]]  # the scheduler, and the environment that names it


def dask_of(processes: list[subprocess.Popen[str]], folder: Path, *environments: dict[str, str]) -> Dask:
    """A scheduler with a worker for each environment, of one thread and in a folder of its own."""
    distributed = pytest.importorskip("distributed")
    file = folder / "scheduler.json"
    scheduler = start(
        processes, "-m", "distributed.cli.dask_scheduler", "--port", 0, "--no-dashboard", "--scheduler-file", file, cwd=folder
    )
    worker = ["-m", "distributed.cli.dask_worker", "--scheduler-file", file, "--nthreads", 1, "--no-dashboard", "--no-nanny"]
    for n, env in enumerate(environments):
        (elsewhere := folder / f"worker{n}").mkdir()
        start(processes, *worker, cwd=elsewhere, **env)
    written = until(
        lambda: file.exists() and (text := file.read_text()).endswith("\n}") and text, scheduler
    )  # it is there before its content
    address = json.loads(written)["address"]
    with distributed.Client(address, set_as_default=False) as client:
        client.wait_for_workers(len(environments))
    return scheduler, {"DASK_SCHEDULER_ADDRESS": address}


@pytest.fixture
def dask(gate: Path, processes: list[subprocess.Popen[str]]) -> Dask:
    """Three workers, one of which cannot see the runs."""
    return dask_of(processes, gate.parent, blind(gate.parent), {}, {})


def test_on_dask_a_worker_that_cannot_see_the_runs_is_left_out_and_one_that_dies_costs_nothing(
    gate: Path, dask: Dask, processes: list[subprocess.Popen[str]]
) -> None:
    audit = start(processes, "-c", AUDIT, "audit", "runs", "--out", "o", "--engine", "dask", cwd=gate.parent, **dask[1])
    os.kill(first := at_gate(gate, audit), signal.SIGKILL)
    at_gate(gate, audit, first)
    (gate / "OPEN").touch()
    told = audit.communicate()[1]
    assert audit.returncode == 0, told
    assert re.search(rf"Cluster: 1 of 3 Dask workers \(.+\) cannot read {gate.parent / 'runs'}: No such file or directory; left out", told)
    assert as_local(gate.parent, "o")


def test_on_dask_a_result_that_its_worker_takes_along_is_not_the_loss_of_the_cluster() -> None:
    distributed = pytest.importorskip("distributed")
    with engines_dask.opened(None, 1) as here:
        future = here.submit(cluster._nothing, "r0", None)
        assert future.result() == "r0" and here.why(future) == ""
        (worker,) = distributed.get_client().run(os.getpid).values()
        os.kill(worker, signal.SIGKILL)
        while not (why := here.why(future)):
            time.sleep(0.01)  # the scheduler has not missed the worker yet
        assert why == "the worker that held its result ended"


@pytest.mark.parametrize("lost", ["scheduler", "workers"])
def test_on_dask_a_lost_cluster_ends_the_audit_and_resume_goes_on(
    lost: str, gate: Path, dask: Dask, processes: list[subprocess.Popen[str]]
) -> None:
    audit = start(processes, "-c", AUDIT, "audit", "runs", "--out", "o", "--engine", "dask", "--jobs", "1", cwd=gate.parent, **dask[1])
    first = at_gate(gate, audit)
    if lost == "scheduler":
        end(dask[0])
    else:
        os.kill(first, signal.SIGKILL)
        os.kill(at_gate(gate, audit, first), signal.SIGKILL)
    told = audit.communicate()[1]
    sentence = {"scheduler": "lost the Dask cluster at tcp://", "workers": "has had no worker for 8 s that can do the work"}[lost]
    assert audit.returncode == 1 and sentence in told and "--resume" in told and "Traceback" not in told
    proven = rows_of(gate.parent, "o")
    assert 0 < len(proven) < 8  # what is proven, and no row that says a run had killed its worker
    resumed(gate.parent, "o")
    assert proven.items() <= rows_of(gate.parent, "o").items()
    assert as_local(gate.parent, "o")


def test_on_dask_a_worker_without_credentials_is_left_out(
    s3: dict[str, str], processes: list[subprocess.Popen[str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import fsspec

    for key, value in s3.items():
        monkeypatch.setenv(key, value)
    fs = fsspec.filesystem("s3", skip_instance_cache=True)
    fs.mkdir("sweep")
    for i in range(3):
        fs.put(str(put(tmp_path / f"r{i}", i)) + "/", f"sweep/r{i}/", recursive=True)
    without = dict.fromkeys(s3, "") | {"AWS_ENDPOINT_URL": s3["AWS_ENDPOINT_URL"], "AWS_EC2_METADATA_DISABLED": "true"}
    _, env = dask_of(processes, tmp_path, without, {})
    audit = start(processes, "-c", AUDIT, "audit", "s3://sweep", "--out", "o", "--engine", "dask", cwd=tmp_path, **env)
    told = audit.communicate()[1]
    assert audit.returncode == 0 and re.search(
        r"Cluster: 1 of 2 Dask workers \(.+\) cannot read s3://sweep: .*NoCredentials.*; left out", told
    ), told
    assert pl.read_parquet(tmp_path / "o/audit.parquet")["error"].to_list() == [None] * 3


# --- Ray ------------------------------------------------------------------------------------------------------------


@pytest.fixture
def short() -> Iterator[str]:
    """A folder for Ray: the name of a socket has 107 bytes at most."""
    with tempfile.TemporaryDirectory(prefix="ray-", ignore_cleanup_errors=True) as name:
        yield name


def test_on_ray_a_blind_node_is_left_out_a_death_costs_nothing_and_a_lost_head_ends_the_audit(
    gate: Path, short: str, processes: list[subprocess.Popen[str]]
) -> None:
    pytest.importorskip("ray")
    folder = gate.parent
    ports = [x for p in ("min-worker", "max-worker", "dashboard-agent-listen", "dashboard-agent-grpc") for x in (f"--{p}-port", "0")]
    ray = ["-m", "ray.scripts.scripts", "start", "--block", "--disable-usage-stats", *ports]
    start_head = ["--head", "--port", 0, "--include-dashboard", "false", "--num-cpus", 2]
    head = start(processes, *ray, *start_head, cwd=folder, RAY_TMPDIR=short)
    assert head.stdout is not None
    address = next(m[1] for line in head.stdout if (m := re.search(r"--address='([^']+)'", line)))
    node = start(processes, *ray, "--address", address, "--num-cpus", 3, cwd=folder / "blind", **blind(folder), RAY_TMPDIR=short)
    assert node.stdout is not None
    assert any("Ray runtime started" in line for line in node.stdout)
    env = {"RAY_ADDRESS": address, "RAY_TMPDIR": short}

    audit = start(processes, "-c", AUDIT, "audit", "runs", "--out", "o", "--engine", "ray", cwd=folder, **env)
    os.kill(first := at_gate(gate, audit), signal.SIGKILL)
    at_gate(gate, audit, first)  # once more, alone
    (gate / "OPEN").touch()
    told = audit.communicate()[1]
    assert audit.returncode == 0, told
    assert re.search(rf"Cluster: 1 of 2 Ray nodes \(.+\) cannot read {folder / 'runs'}: No such file or directory; left out", told)
    assert as_local(folder, "o")

    for mark in gate.iterdir():
        mark.unlink()
    audit = start(processes, "-c", AUDIT, "audit", "runs", "--out", "lost", "--engine", "ray", "--jobs", "1", cwd=folder, **env)
    at_gate(gate, audit)
    end(head)
    told = audit.communicate()[1]
    assert audit.returncode == 1 and f"lost the Ray cluster at {address}" in told and "Traceback" not in told
    assert 0 < len(rows_of(folder, "lost")) < 8
    resumed(folder, "lost")
    assert as_local(folder, "lost")


# --- which workers ---------------------------------------------------------------------------------------------------


def ready(said: Any) -> Future[Any]:
    answer: Future[Any] = Future()
    answer.set_exception(said) if isinstance(said, Exception) else answer.set_result(said)
    return answer


@pytest.fixture
def asked(tmp_path: Path) -> probe.Probe:
    put(tmp_path / "runs/r0", 0)
    return probe.of(discover.find([str(tmp_path / "runs")], "/nowhere"), str(tmp_path), "/")


def test_workers_of_other_versions_are_told(asked: probe.Probe, recwarn: pytest.WarningsRecorder) -> None:
    ours = asked()
    said = {"a": ours, "b": replace(ours, forensics="0.0.1", host="old"), "c": ModuleNotFoundError("forensics"),
            "d": replace(ours, pyarrow="1.0", host="odd"), "e": replace(ours, forensics="0.0.1", host="older")}  # fmt: skip
    team = Team(lambda probe, worker: ready(said[worker]), asked, "Ray nodes")
    assert team.able(said) == {"a", "d"} and team.able(["d"]) == {"d"}
    team.tell()
    team.tell()  # once
    told = [str(w.message) for w in recwarn if w.category is Cluster]
    assert told == [
        f"1 of 5 Ray nodes (c) cannot load forensics {ours.forensics} (ModuleNotFoundError); left out",
        f"2 of 5 Ray nodes (old, older) have forensics 0.0.1, not {ours.forensics}; left out",
        f"1 of 5 Ray nodes (odd) have Python {ours.python} and pyarrow 1.0, not {ours.python} and {ours.pyarrow} as here",
    ]


def test_an_audit_does_not_begin_where_no_worker_can_do_the_work(asked: probe.Probe, tmp_path: Path) -> None:
    blind = replace(asked, samples=((str(tmp_path / "gone"), "x"),))()
    fake: Any = cluster.Cluster(
        "the cluster", "workers", None, lambda: {"a": 4}, lambda probe, worker: ready(blind), None, None, lambda futures: None
    )  # type: ignore[arg-type]
    with pytest.raises(
        ForensicsError, match=r"no worker of the cluster can do the work: 1 of 1 workers \(.+\) cannot read .*/gone: No such file"
    ):
        cluster.Pulse(fake, Team(fake.ask, asked, fake.kind)).begin()


def test_a_worker_that_does_not_see_the_results_is_of_no_use(asked: probe.Probe, tmp_path: Path) -> None:
    assert asked().trouble == ""
    (tmp_path / ".audit").mkdir(exist_ok=True)
    (tmp_path / ".audit/manifest.json").write_text("[]\n")  # of this machine; the worker asked has none
    assert asked().trouble == f"cannot see {tmp_path}, where the results go"


@pytest.mark.parametrize(("most", "room"), [(None, 24), (4, 4), (9, 24)])
def test_the_cluster_says_how_much_is_in_flight_and_the_user_at_most(most: int | None, room: int) -> None:
    fake: Any = type("Fake", (), {"most": most, "usable": {"a": 4, "b": 2}})
    assert cluster._room(fake, fake) == room


def test_what_is_out_of_reach_of_a_worker_is_tried_again(tmp_path: Path) -> None:
    for i in range(3):
        put(tmp_path / "runs" / f"r{i}", i)
    root, out = tmp_path / "runs", str(tmp_path / "o")
    job, records = one_place.Job(out, str(tmp_path / "none"), 300, os.getpid(), "/"), kept.Kept(out, tmp_path)
    for place, lost in zip(
        discover.find([str(root)], out), (["metrics.jsonl", "config.json"], ["config.json"], ["metrics.jsonl"]), strict=True
    ):
        for name in lost:
            (root / place.home / name).rename(tmp_path / f"{place.home}-{name}")
        records.add(one_place.do(place, job))
        for name in lost:
            (tmp_path / f"{place.home}-{name}").rename(root / place.home / name)
    before = [r["row"]["error"] for p in discover.find([str(root)], out) for r in records.of(p) or []]
    records.flush()
    assert "none of its files" in before[0] and before[1] is None and "some of its files are out of reach" in before[2]
    rows = audits.audit([str(root)], out, DRAWN, audits.Options(resume=True, jobs=2))["rows"]
    assert [r["error"] for r in rows] == [None] * 3
    assert list(rows) == list(audits.audit([str(root)], str(tmp_path / "whole"), DRAWN, audits.Options(jobs=2))["rows"])
