"""Trackers: a real MLflow server and a real trackio store (in an environment of their own), and what the wandb package asks."""

from __future__ import annotations

import json
import math
import os
import shutil
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import fake_wandb
import pytest
from click.testing import CliRunner

import forensics
from forensics import at_path, audits, services
from forensics.cli import main
from forensics.errors import ForensicsError
from forensics.services import wandb as wandb_service
from forensics.services import web

SERVERS = Path(os.environ.get("FORENSICS_TEST_SERVERS") or Path(sys.prefix) / "servers") / "bin"
WHY = "the trackers' own servers are not installed: make servers"
SECRET = "sk-proj-Ab1Cd2Ef3Gh4Ij5Kl6Mn7Op8Qr9"
PAGE = audits.Outputs(lambda *_: "", lambda *_: "", lambda *_: "")


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in [n for n in os.environ if n.startswith(("WANDB_", "MLFLOW_", "TRACKIO_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("FORENSICS_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path / "cache"


def values(run: Any, tag: str) -> list[tuple[int, float]]:
    table = run.tables["metrics"]
    rows = zip(table["tag"].to_pylist(), table["step"].to_pylist(), table["value"].to_pylist(), strict=True)
    return [(step, value) for name, step, value in rows if name == tag]


def config(run: Any) -> dict[str, str]:
    return dict(zip(*[run.tables["config"][c].to_pylist() for c in ("key", "value")], strict=True))


def test_a_local_run_imports_nothing_for_services() -> None:
    code = "import sys, forensics; from forensics import at_path; print([m for m in ('wandb', 'fsspec', 'requests', 'urllib.request', 'sqlite3') if m in sys.modules])"
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert told.strip() == "[]"


def test_names_and_pages_are_told_from_paths() -> None:
    names = {
        "wandb:e/p/r": "wandb", "https://wandb.ai/e/p/runs/r": "wandb", "https://wandb.ai/e/p/runs/r/overview?x=1": "wandb", "https://forge.coreweave.com/wandb/e/p": "wandb",
        "mlflow:http://h:5000": "mlflow", "http://h:5000/#/experiments/1": "mlflow", "trackio:p": "trackio",
    }  # fmt: skip
    assert {n: s and s.__name__.rpartition(".")[2] for n in names if (s := services.of(n))} == names
    assert [n for n in ("runs/xyz", "s3://b/x", "https://h/x.zip", "C:/x", "hf://u/r", "/mlflow:x", "http://h/y") if services.of(n)] == []


# --- MLflow


@pytest.fixture(scope="module")
def mlflow(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    if not (SERVERS / "mlflow").exists():
        pytest.skip(WHY)
    folder = tmp_path_factory.mktemp("mlflow")
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    command = [SERVERS / "mlflow", "server", "--backend-store-uri", f"sqlite:///{folder}/m.db", "--artifacts-destination", folder / "a"]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen([*map(str, command), "--host", "127.0.0.1", "--port", str(port), "--workers", "1"], stdout=log, stderr=log, start_new_session=True)  # fmt: skip
    url = f"http://127.0.0.1:{port}"
    try:
        _answers(f"{url}/health", process)
        yield url
    finally:
        os.killpg(process.pid, 15)
        process.wait()


def _answers(url: str, process: subprocess.Popen[bytes]) -> None:
    for _ in range(600):
        assert process.poll() is None
        try:
            urllib.request.urlopen(url, timeout=5).close()
            return
        except OSError:
            time.sleep(0.5)
    raise AssertionError("no answer")


LOGGED = """
import mlflow, sys
mlflow.set_tracking_uri(sys.argv[1])
mlflow.set_experiment("exp")
for name, lr in (("good", 0.1), ("bad", 9.0)):
    with mlflow.start_run(run_name=name) as run:
        mlflow.log_params({"lr": lr, "api_key": sys.argv[2]})
        mlflow.log_text("optimizer: adamw", "config.yaml")
        batch = [mlflow.entities.Metric("train/loss", 2 - i / 300, 1_700_000_000_000 + 1000 * i, i) for i in range(300)]
        mlflow.MlflowClient().log_batch(run.info.run_id, batch)
        if name == "bad":
            for i, x in enumerate((float("nan"), float("inf"), float("-inf"))):
                mlflow.log_metric("train/loss", x, step=300 + i)
        print(run.info.run_id)
"""


@pytest.fixture(scope="module")
def logged(mlflow: str) -> tuple[str, str, str]:
    told = subprocess.run([SERVERS / "python", "-c", LOGGED, mlflow, SECRET], capture_output=True, text=True, check=True).stdout
    good, bad = [line for line in told.splitlines() if len(line) == 32]
    return mlflow, good, bad


def test_an_mlflow_run_is_read_whole_over_http(logged: tuple[str, str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    url, good, bad = logged
    monkeypatch.setattr("forensics.services.mlflow.PAGE", 100)
    run = at_path.read(f"mlflow:{url}/{bad}")
    found = values(run, "train/loss")
    assert found[:300] == [(i, pytest.approx(2 - i / 300)) for i in range(300)]
    assert [s for s, _ in found[300:]] == [300, 301, 302]
    assert math.isnan(found[300][1]) and found[301][1] == math.inf and found[302][1] == -math.inf
    assert any("2 values of +-1.79" in s.note for s in run.sources), "what was clamped is said"
    assert config(run)["lr"] == '"9.0"' and config(run)["optimizer"] == '"adamw"'
    assert SECRET not in json.dumps(config(run))
    assert (run.id, run.path) == (bad, f"mlflow:{url}/{bad}")
    page = at_path.read(f"{url}/#/experiments/1/runs/{good}")
    assert page.id == good and len(values(page, "train/loss")) == 300


def test_what_is_in_the_cache_is_not_asked_again(logged: tuple[str, str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    url, good, _ = logged
    asked: list[str] = []
    plain = web.raw

    def counted(address: str, *rest: Any) -> bytes:
        asked.append(address.partition("/mlflow/")[2].partition("?")[0])
        return plain(address, *rest)

    monkeypatch.setattr(web, "raw", counted)
    at_path.read(f"mlflow:{url}/{good}")
    assert "metrics/get-history" in asked
    asked.clear()
    assert len(values(at_path.read(f"mlflow:{url}/{good}"), "train/loss")) == 300
    assert asked == ["runs/get"]


def test_an_audit_of_an_mlflow_server_and_since(logged: tuple[str, str, str], tmp_path: Path) -> None:
    url, good, bad = logged
    first = audits.audit([f"mlflow:{url}"], str(tmp_path / "one"), PAGE, audits.Options(jobs=1))
    assert {r["id"]: r["path"] for r in first["rows"]} == {id: f"mlflow:{url}/{id}" for id in (good, bad)}
    assert {r["id"]: r["verdict"] for r in first["rows"]}[bad] == "unhealthy"
    again = audits.audit([f"mlflow:{url}"], str(tmp_path / "two"), PAGE, audits.Options(jobs=1, since=str(tmp_path / "one"), limit=1))
    assert len(again["rows"]) == 1


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("{url}/" + "f" * 32, "not found"), ("{url}/#/experiments/99", "no run in"), ("http://127.0.0.1:1", "cannot be reached: .*refused"),
        ("http://nowhere.invalid", "cannot be reached"), ("sqlite:///m.db", "no address of an MLflow server"), ("", "MLFLOW_TRACKING_URI is not set"),
    ],
)  # fmt: skip
def test_what_goes_wrong_with_mlflow_is_one_sentence(name: str, says: str, request: pytest.FixtureRequest) -> None:
    url = request.getfixturevalue("mlflow") if "{url}" in name else ""
    with pytest.raises(ForensicsError, match=says):
        at_path.read(f"mlflow:{name.format(url=url)}")


def test_a_password_in_an_address_is_sent_and_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[dict[str, str]] = []

    def answer(url: str, body: Any = None, headers: Any = None, insecure: bool = False) -> Any:
        sent.append(headers)
        return {"run": {"info": {"run_id": "a" * 32, "status": "FINISHED"}, "data": {}}}

    monkeypatch.setattr(web, "ask", answer)
    (found,) = services.of("mlflow:").runs(f"mlflow:https://jane:{SECRET}@host/{'a' * 32}")  # type: ignore[union-attr]
    assert sent[0]["Authorization"].startswith("Basic ") and SECRET not in f"{found}"
    assert found.text == f"mlflow:https://host/{'a' * 32}"


# --- W&B


def history(n: int) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = [{"_step": i, "_timestamp": 1.7e9 + i, "train/loss": 2 - i / 2500} for i in range(n)]
    rows[1500]["train/loss"] = 50.0  # one step, which sampled history would lose
    return rows


@pytest.fixture
def wandb(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[fake_wandb.Project]:
    pytest.importorskip("wandb")
    files = {
        "wandb-metadata.json": json.dumps({"program": "train.py"}),
        "media/table.json": "{}",
        "model.ckpt": "x",
        "config.yaml": "lr:\n    value: 0.5\n",
    }
    crashed = fake_wandb.Run([*history(2400), {"_step": 2400, "train/loss": "NaN"}], "crashed", {"lr": 0.5}, [{"_timestamp": 1.7e9, "system.gpu.0.temp": 61}], files, ["step 2400", "Traceback (most recent call last):", '  File "train.py", line 3, in <module>', "ValueError: broken"], exported=2000)  # fmt: skip
    project = fake_wandb.Project({"abc": crashed, "def": fake_wandb.Run(history(1600), config={"lr": 0.1})})
    with fake_wandb.served(project) as url:
        for name, value in {
            "BASE_URL": url,
            "API_KEY": fake_wandb.KEY,
            "CACHE_DIR": tmp_path / "wc",
            "DIR": tmp_path,
            "SILENT": "true",
        }.items():
            monkeypatch.setenv(f"WANDB_{name}", str(value))
        yield project


def test_a_wandb_run_is_scanned_not_sampled(wandb: fake_wandb.Project, cache: Path) -> None:
    run = at_path.read("wandb:me/proj/abc")
    found = values(run, "train/loss")
    assert len(found) == 2401 and found[1500] == (1500, 50.0) and math.isnan(found[2400][1])
    assert values(run, "system.gpu.0.temp")[0][1] == 61
    assert config(run)["lr"] == "0.5" and config(run)["wandb.program"] == '"train.py"'
    assert "W&B state crashed" in run.tables["events"]["text"].to_pylist()
    assert any("ValueError: broken" in text for text in run.tables["events"]["text"].to_pylist()), (
        "the console, where no output.log was saved"
    )
    assert (run.id, run.path) == ("abc", "wandb:me/proj/abc")
    assert not [p for p in cache.rglob("*") if p.name in ("table.json", "model.ckpt")], "media and models are left there"
    assert not any(
        "samples" in given for query, given in wandb.asked if "events(" not in query and "history(" in query and "minStep" not in query
    )


def test_a_run_that_grew_is_asked_only_for_what_is_new(wandb: fake_wandb.Project) -> None:
    at_path.read("wandb:me/proj/def")
    wandb.runs["def"].history += [{"_step": 1600 + i, "train/loss": 1.0} for i in range(10)]
    wandb.asked.clear()
    assert len(values(at_path.read("wandb:me/proj/def"), "train/loss")) == 1610
    assert [given["minStep"] for query, given in wandb.asked if "minStep" in query] == [1600]


def test_a_history_that_was_cut_off_goes_on_where_it_ended(tmp_path: Path) -> None:
    path = tmp_path / "h.jsonl"
    assert wandb_service._next_step(path) == 0
    path.write_text('{"_step": 3}\n{"_step": 4}\n{"_st')
    assert wandb_service._next_step(path) == 5 and path.read_text() == '{"_step": 3}\n{"_step": 4}\n'


def test_a_whole_wandb_project_is_audited(wandb: fake_wandb.Project, tmp_path: Path) -> None:
    wandb.busy = 1  # the package waits and asks again
    told = audits.audit(["wandb:me/proj"], str(tmp_path / "a"), PAGE, audits.Options(jobs=1))
    assert {r["id"]: (r["path"], r["scalars"] > 1000) for r in told["rows"]} == {id: (f"wandb:me/proj/{id}", True) for id in ("abc", "def")}


@pytest.mark.parametrize(
    ("name", "says"), [("me/proj/nope", "Could not find run"), ("me/nope", "Could not find project"), ("me", "names no run of W&B")]
)
def test_what_goes_wrong_with_wandb_is_one_sentence(wandb: fake_wandb.Project, name: str, says: str) -> None:
    told = CliRunner().invoke(main, ["analyze", f"wandb:{name}"])
    assert told.exit_code == 1 and says in told.output and "Traceback" not in told.output and fake_wandb.KEY not in told.output


def test_without_a_key_nobody_is_asked_for_one(wandb: fake_wandb.Project, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("WANDB_API_KEY")
    with pytest.raises(ForensicsError, match="there is no key for W&B"):
        at_path.read("wandb:me/proj/abc")
    (tmp_path / "netrc").write_text(f"machine api.wandb.ai login user password {fake_wandb.KEY}\nmachine mine login user password x\n")
    hosts = ("api.wandb.ai", "api.forge.coreweave.com", "mine", "other")
    assert [wandb_service._key(host) for host in hosts] == [fake_wandb.KEY, fake_wandb.KEY, "x", ""]


# --- trackio


def test_a_trackio_run_is_found_by_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if not shutil.which("trackio", path=str(SERVERS)):
        pytest.skip(WHY)
    monkeypatch.setenv("TRACKIO_DIR", str(tmp_path / "store"))
    code = (
        "import trackio\nfor name in ('one', 'two'):\n    trackio.init(project='p q', name=name, config={'lr': 0.5}, embed=False)\n"
        "    for i in range(60): trackio.log({'loss': float('nan') if i == 50 else 2 - i / 60})\n    trackio.finish()\n"
    )
    subprocess.run([SERVERS / "python", "-c", code], capture_output=True, check=True, cwd=tmp_path)
    run = at_path.read("trackio:p q/two")
    assert (run.id, run.path) == ("two", "trackio:p q/two") and config(run)["lr"] == "0.5"
    found = values(run, "loss")
    assert len(found) == 60 and math.isnan(found[50][1])
    assert {r.id for r in at_path.read_runs("trackio:p q")} == {"one", "two"}
    with pytest.raises(ForensicsError, match="no run three in trackio:p q"):
        at_path.read("trackio:p q/three")
    with pytest.raises(ForensicsError, match="there is no project nope"):
        forensics.analyze("trackio:nope")


# --- what a server may answer


@pytest.fixture
def odd(request: pytest.FixtureRequest) -> Iterator[tuple[str, list[float]]]:
    """A server that turns the first requests down, and then answers with the text that a test asks for."""
    refusals, text = request.param
    asked: list[float] = []

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *_: Any) -> None: ...

        def do_GET(self) -> None:
            asked.append(time.monotonic())
            self.send_response(429 if len(asked) <= refusals else 200)
            self.send_header("Retry-After", "0")
            self.end_headers()
            self.wfile.write(text.encode())

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}", asked
    server.shutdown()


RUN = {"info": {"run_id": "a" * 32, "status": "FINISHED"}, "data": {"params": [{"key": "lr", "value": "1"}]}}


@pytest.mark.parametrize(
    ("odd", "says", "asked"),
    [
        ((0, "<html>"), "does not answer with JSON", 1), ((0, "[]"), "an answer that is not understood", 1),
        ((0, '{"run": {"info": {}}}'), "an answer that is not understood", 1), ((99, "{}"), "answers 429", web.TRIES),
    ],
    indirect=["odd"],
)  # fmt: skip
def test_an_odd_answer_is_one_sentence(odd: tuple[str, list[float]], says: str, asked: int) -> None:
    with pytest.raises(ForensicsError, match=says):
        at_path.read(f"mlflow:{odd[0]}/{'a' * 32}")
    assert len(odd[1]) == asked


@pytest.mark.parametrize("odd", [(2, json.dumps({"run": RUN}))], indirect=True)
def test_a_server_that_is_asked_too_much_is_asked_again(odd: tuple[str, list[float]]) -> None:
    assert config(at_path.read(f"mlflow:{odd[0]}/{'a' * 32}"))["lr"] == '"1"'


LEADS_OUT = {"run": {"info": {"run_id": "../../../x", "experiment_id": "/etc"}}, "files": [{"path": "../y.json"}]}


@pytest.mark.parametrize("odd", [(0, json.dumps(LEADS_OUT))], indirect=True)
def test_names_of_a_server_lead_nowhere(odd: tuple[str, list[float]], cache: Path) -> None:
    at_path.read(f"mlflow:{odd[0]}/{'a' * 32}")
    assert [p.name for p in cache.rglob("*.db")] == ["mlflow.db"]
    assert not [p for p in cache.parent.rglob("*") if p.is_file() and not p.is_relative_to(cache)]
