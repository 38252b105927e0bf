"""Runs of an MLflow tracking server, over its REST API, as the ``mlflow.db`` that MLflow itself would keep.

``mlflow:http://host:5000`` (all experiments), ``mlflow:`` (MLFLOW_TRACKING_URI), and pages: ``http://host/#/experiments/1/runs/<id>``;
the id of a run may also be the last part. Source: the REST API of MLflow 3 (``/api/2.0/mlflow``).

- ``metrics/get-history`` has every value, in pages; the bulk one is sampled and is not asked.
- NaN comes as the string "NaN"; infinities as the largest double where the server keeps a database: the parser maps both back, and says so.
- Values come in the order of their times, so what was logged twice stands side by side.
- The key is in MLFLOW_TRACKING_TOKEN, or MLFLOW_TRACKING_USERNAME and MLFLOW_TRACKING_PASSWORD; MLflow's settings of TLS count.
"""

from __future__ import annotations

import base64
import os
import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import unquote, urlencode

from forensics.errors import ForensicsError
from forensics.services import Found, web
from parsers.lazy_regex import lazy_re

PAGE = 25_000  # values of one answer: the server's limit
RUNS, EXPERIMENTS = 1000, 100  # runs of one answer, experiments of one question
FILES, BYTES = 100, 1 << 20  # artifacts that are fetched, and the size of each: configs and logs
_TEXT = {".yaml", ".yml", ".json", ".jsonl", ".txt", ".log", ".csv", ".toml", ".out", ".err"}
_RUN = lazy_re(r"(?:/runs)?/([0-9a-f]{32})/?$")
_EXPERIMENT = lazy_re(r"/experiments/(\d+)")
_LARGEST = 1.7976931348623157e308
_WORDS = {"NaN": (0.0, 1), "Infinity": (_LARGEST, 0), "-Infinity": (-_LARGEST, 0)}
_TABLES = (
    "CREATE TABLE IF NOT EXISTS runs (run_uuid TEXT PRIMARY KEY, name TEXT, status TEXT, start_time INT, end_time INT, lifecycle_stage TEXT)",
    "CREATE TABLE IF NOT EXISTS metrics (key TEXT, value REAL, timestamp INT, run_uuid TEXT, step INT, is_nan INT)",
    "CREATE TABLE IF NOT EXISTS params (key TEXT, value TEXT, run_uuid TEXT)",
    "CREATE TABLE IF NOT EXISTS tags (key TEXT, value TEXT, run_uuid TEXT)",
    "CREATE TABLE IF NOT EXISTS fetched (key TEXT PRIMARY KEY, latest TEXT)",  # ours: which histories are here, and up to where
)


@dataclass(frozen=True)
class Server:
    """Where a server is and how it is asked."""

    base: str
    headers: dict[str, str] = field(repr=False)

    def ask(self, what: str, body: Any = None, **query: Any) -> Any:
        url = f"{self.base}/api/2.0/mlflow/{what}" + (f"?{urlencode(query)}" if query else "")
        return web.ask(url, body, self.headers, _insecure())

    def file(self, run: str, path: str) -> bytes:
        return web.raw(f"{self.base}/get-artifact?{urlencode({'path': path, 'run_uuid': run})}", None, self.headers, _insecure())


def claims(text: str) -> bool:
    return text.startswith("mlflow:") or "/#/experiments/" in text


def runs(text: str) -> Iterator[Found]:
    """Of an address: one run, those of an experiment, or all that were not deleted."""
    server, place = _address(text)
    if run := _RUN.search(place):
        yield _found(server, server.ask("runs/get", run_id=run[1])["run"])
        return
    known = [m[1]] if (m := _EXPERIMENT.search(place)) else _experiments(server)
    for i in range(0, len(known), EXPERIMENTS):
        for page in _pages(server, "runs/search", {"experiment_ids": known[i : i + EXPERIMENTS], "max_results": RUNS}):
            yield from (_found(server, run) for run in page.get("runs", []))


def _address(text: str) -> tuple[Server, str]:
    """The server, and what of it is meant. Raises ForensicsError."""
    uri = text.removeprefix("mlflow:") or os.environ.get("MLFLOW_TRACKING_URI", "")
    if not uri:
        raise ForensicsError("mlflow: names no server, and MLFLOW_TRACKING_URI is not set", "Give mlflow:http://host:5000.")
    if not re.match(r"https?://[^/]", uri):
        raise ForensicsError(
            f"{uri.partition(':')[0]}: is no address of an MLflow server", "Give http://..., or the folder or mlflow.db itself."
        )
    base, _, page = uri.partition("/#")
    if not page and (inner := re.search(r"(?:/experiments/\d+)?(?:/runs)?/[0-9a-f]{32}/?$|/experiments/\d+/?$", base)):
        base, page = base[: inner.start()], inner[0]
    scheme, rest = base.rstrip("/").split("://", 1)
    login, _, host = rest.rpartition("@")
    return Server(f"{scheme}://{host}", _headers(login)), page


def _headers(login: str) -> dict[str, str]:
    if token := os.environ.get("MLFLOW_TRACKING_TOKEN"):
        return {"Authorization": f"Bearer {token}"}
    user, password = os.environ.get("MLFLOW_TRACKING_USERNAME"), os.environ.get("MLFLOW_TRACKING_PASSWORD", "")
    login = unquote(login) or (f"{user}:{password}" if user else "")
    return {"Authorization": f"Basic {base64.b64encode(login.encode()).decode()}"} if login else {}


def _insecure() -> bool:
    return os.environ.get("MLFLOW_TRACKING_INSECURE_TLS", "").lower() == "true"


def _experiments(server: Server) -> list[str]:
    found = _pages(server, "experiments/search", {"max_results": RUNS, "view_type": "ACTIVE_ONLY"})
    return [str(e["experiment_id"]) for page in found for e in page.get("experiments", [])]


def _pages(server: Server, what: str, body: dict[str, Any]) -> Iterator[dict[str, Any]]:
    token: str | None = ""
    while token is not None:
        page = server.ask(what, body | ({"page_token": token} if token else {}))
        yield page
        token = page.get("next_page_token") or None


def _found(server: Server, run: dict[str, Any]) -> Found:
    info, data = run["info"], run.get("data", {})
    latest = {m["key"]: f"{m.get('timestamp')} {m.get('step')} {m.get('value')}" for m in data.get("metrics", [])}
    id = str(info.get("run_id") or info["run_uuid"])
    stamp = (
        f"{info.get('status')} {info.get('end_time')} {sorted(latest.items())} {len(data.get('params', []))} {len(data.get('tags', []))}"
    )
    place = ("mlflow", server.base.partition("://")[2], str(info.get("experiment_id", "")))
    return Found(id, f"mlflow:{server.base}/{id}", place, stamp, partial(_fetch, server, run, latest, id))


def _fetch(server: Server, run: dict[str, Any], latest: dict[str, str], id: str, folder: Path) -> None:
    with closing(sqlite3.connect(folder / "mlflow.db")) as database:
        for table in _TABLES:
            database.execute(table)
        _describe(database, run, id)
        known = dict(database.execute("SELECT key, latest FROM fetched"))
        for key in [k for k in latest if known.get(k) != latest[k]]:
            values = list(_history(server, id, key))
            with database:  # a history is whole, or fetched again
                database.execute("DELETE FROM metrics WHERE key = ?", [key])
                database.executemany("INSERT INTO metrics VALUES (?, ?, ?, ?, ?, ?)", values)
                database.execute("INSERT OR REPLACE INTO fetched VALUES (?, ?)", [key, latest[key]])
    for path in _artifacts(server, id):
        target = folder / "artifacts" / path
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            target.write_bytes(server.file(id, path))
        except web.Refused:
            continue  # listed, and not there or not served


def _describe(database: sqlite3.Connection, run: dict[str, Any], id: str) -> None:
    info, data = run["info"], run.get("data", {})
    with database:
        for table in ("runs", "params", "tags"):
            database.execute(f"DELETE FROM {table}")
        described = (
            id,
            info.get("run_name"),
            info.get("status"),
            info.get("start_time"),
            info.get("end_time"),
            info.get("lifecycle_stage"),
        )
        database.execute("INSERT INTO runs VALUES (?, ?, ?, ?, ?, ?)", described)
        for table in ("params", "tags"):
            rows = [(x["key"], x.get("value"), id) for x in data.get(table, [])]
            database.executemany(f"INSERT INTO {table} VALUES (?, ?, ?)", rows)


def _history(server: Server, id: str, key: str) -> Iterator[tuple[Any, ...]]:
    token: str | None = ""
    while token is not None:
        more = {"page_token": token} if token else {}
        page = server.ask("metrics/get-history", run_id=id, metric_key=key, max_results=PAGE, **more)
        for m in page.get("metrics", []):
            value, is_nan = _value(m.get("value"))
            yield key, value, m.get("timestamp"), id, m.get("step", 0), is_nan
        token = page.get("next_page_token") or None


def _value(value: Any) -> tuple[Any, int]:
    """A value as MLflow's database keeps it, and whether it is NaN."""
    if isinstance(value, float) and value != value:
        return 0.0, 1
    return _WORDS.get(value, (value, 0)) if isinstance(value, str) else (value, 0)


def _artifacts(server: Server, id: str) -> Iterator[str]:
    """The small texts among the artifacts: settings, logs, tables."""
    waiting, listed, found = [""], 0, 0
    while waiting and listed < FILES:
        listed += 1
        try:
            files = server.ask("artifacts/list", run_id=id, **({"path": p} if (p := waiting.pop()) else {})).get("files", [])
        except web.Refused:
            return  # a store that the server cannot reach; what was logged stands
        for f in files:
            path = PurePosixPath(str(f["path"]))
            if path.is_absolute() or ".." in path.parts or "\0" in str(path):
                continue
            if f.get("is_dir"):
                waiting.append(str(path))
            elif path.suffix in _TEXT and int(f.get("file_size") or 0) <= BYTES and found < FILES:
                found += 1
                yield str(path)
