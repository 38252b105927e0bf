"""A server that answers what the wandb package asks about the runs of the project me/proj: GraphQL, and downloads of files."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

KEY = "f0" * 20
Row = dict[str, Any]


@dataclass
class Run:
    """``exported`` rows of the history come as Parquet, the others live; W&B does both for one run."""

    history: list[Row]
    state: str = "finished"
    config: Row = field(default_factory=dict)
    events: list[Row] = field(default_factory=list)
    files: dict[str, str] = field(default_factory=dict)
    console: list[str] = field(default_factory=list)
    exported: int = 0


@dataclass
class Project:
    runs: dict[str, Run]
    asked: list[tuple[str, Row]] = field(default_factory=list)  # queries and their variables
    busy: int = 0  # so many requests are turned down with 429


@contextmanager
def served(project: Project) -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, project))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()


class Handler(BaseHTTPRequestHandler):
    def __init__(self, project: Project, *args: Any) -> None:
        self.project = project
        super().__init__(*args)

    def log_message(self, *_: Any) -> None: ...

    def do_GET(self) -> None:
        _, _, id, name = self.path.split("/", 3)
        run = self.project.runs[id]
        self._send(200, _parquet(run) if name == "history.parquet" else run.files[name].encode())

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        query, given = asked["query"], asked.get("variables") or {}
        self.project.asked.append((query, given))
        if self.project.busy > 0 and "history(" in query:
            self.project.busy -= 1
            self._send(429, b"{}")
            return
        data: Row = {}
        if "viewer" in query:
            data = {"viewer": {"id": "u", "username": "me", "entity": "me", "flags": "{}", "teams": {"edges": []}}}
        elif "serverInfo" in query:
            data = {"serverInfo": {"features": []}}
        elif "project" in query:
            data = {"project": self._project(query, given)}
        self._send(200, json.dumps({"data": data}).encode())

    def _send(self, status: int, data: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def _project(self, query: str, given: Row) -> Row | None:
        if given.get("project") != "proj":
            return None
        if "runs(" in query:
            nodes = [self._run(id, run, given) for id, run in self.project.runs.items()]
            return {"internalId": "1", "runCount": len(nodes), "readOnly": True, "runs": _page(nodes)}
        id = next((str(given[k]) for k in ("name", "runName", "run") if given.get(k)), "")
        return {"internalId": "1", "run": self._run(id, self.project.runs[id], given) if id in self.project.runs else None}

    def _run(self, id: str, run: Run, given: Row) -> Row:
        base = f"http://{self.headers['Host']}/files/{id}"
        files = [
            {"id": n, "name": n, "url": f"{base}/{n}", "directUrl": f"{base}/{n}", "sizeBytes": str(len(t)), "mimetype": "text/plain"}
            | {"updatedAt": "2026-01-02T03:04:05", "md5": "x"}
            for n, t in run.files.items()
        ]
        first, last = given.get("minStep", 0), given.get("maxStep", 1 << 60)
        lines = [{"node": {"number": i, "line": t, "timestamp": "", "level": "info", "label": ""}} for i, t in enumerate(run.console)]
        return {
            "id": "id", "projectId": "1", "tags": ["t"], "name": id, "displayName": "brave-owl", "sweepName": None, "state": run.state,
            "config": json.dumps({k: {"value": v} for k, v in run.config.items()}), "group": None, "jobType": None, "commit": None,
            "readOnly": True, "createdAt": "2026-01-02T03:04:05", "heartbeatAt": "2026-01-02T04:04:05", "description": "", "notes": "",
            "systemMetrics": "{}", "summaryMetrics": "{}", "historyLineCount": len(run.history), "user": {"name": "me", "username": "me"},
            "historyKeys": {"lastStep": max((r["_step"] for r in run.history), default=-1), "keys": {}, "sets": []},
            "fileCount": len(files), "files": _page(files), "logLines": {"edges": lines, "pageInfo": {"endCursor": "", "hasNextPage": False}},
            "parquetHistory": {
                "parquetUrls": [f"{base}/history.parquet"] if run.exported else [],
                "liveData": [{"_step": r["_step"]} for r in run.history[run.exported :]],
            },
            "events": [json.dumps(r) for r in run.events],
            "history": [json.dumps(r) for r in run.history if first <= r["_step"] < last],
        }  # fmt: skip


def _page(nodes: list[Row]) -> Row:
    return {"edges": [{"node": n, "cursor": n["name"]} for n in nodes], "pageInfo": {"endCursor": "", "hasNextPage": False}}


def _parquet(run: Run) -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(pa.Table.from_pylist(run.history[: run.exported]), sink)
    return bytes(sink.getvalue())
