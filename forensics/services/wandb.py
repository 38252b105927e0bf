"""Runs of Weights & Biases, over its own package, as the run folder that W&B keeps on disk.

``wandb:entity/project`` (all runs), ``wandb:entity/project/run``, and pages: ``https://wandb.ai/entity/project/runs/id``. The key is where
W&B has it: WANDB_API_KEY or the netrc of ``wandb login``; WANDB_BASE_URL names a server of one's own.

- The history is scanned (``scan_history``), never sampled: a spike of one step would be lost. What is here already is not asked again.
- System metrics come sampled, in up to SAMPLES rows: W&B hands them out in no other way.
- Logs and settings are downloaded, media and models are not. Where no ``output.log`` was saved, the console lines are asked for.
- W&B's state of a run and the names of its artifacts are added to ``wandb-metadata.json``.
"""

from __future__ import annotations

import contextlib
import io
import json
import netrc
import os
import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from forensics import output
from forensics.errors import ForensicsError
from forensics.services import Found
from parsers.lazy_regex import lazy_re
from parsers.secrets import mask_text

SAMPLES = 10_000  # rows of system metrics
BYTES, FILES = 50_000_000, 200  # size of a log, and how many files of a run
LINES = 200_000  # of the console
ARTIFACTS = 200  # names
TIMEOUT = 60  # seconds that an answer may take
SAME = ("api.wandb.ai", "api.forge.coreweave.com")  # two addresses of W&B's own service (wandb/sdk/lib/urls.py of 0.31)
_PAGE = lazy_re(
    r"https?://(?P<host>[^/]+)/(?:wandb/)?(?P<entity>[\w.\-]+)/(?P<project>[\w.\-]+)(?:/(?:runs|workspace|table)(?:/(?P<run>[\w\-]+))?)?(?:[/?].*)?"
)
_NAME = lazy_re(r"wandb:/{0,2}(?P<entity>[^/]+)/(?P<project>[^/]+)(?:/(?:runs/)?(?P<run>[^/]+))?/?")
_TEXT = lazy_re(r"(?i)(?!media/|artifact/)[^\0]*\.(?:log|txt|ya?ml|json|jsonl|csv|toml|patch|out|err)")


def claims(text: str) -> bool:
    page = _PAGE.fullmatch(text)
    return text.startswith("wandb:") or (page is not None and page["host"] in ("wandb.ai", "www.wandb.ai", "forge.coreweave.com", _host()))


def runs(text: str) -> Iterator[Found]:
    """Of a name or a page: one run, or all of a project, the newest first."""
    named = _PAGE.fullmatch(text) or _NAME.fullmatch(text)
    if named is None:
        raise ForensicsError(f"{text} names no run of W&B", "Give wandb:entity/project/run, or wandb:entity/project for all of its runs.")
    project = f"{named['entity']}/{named['project']}"
    api = _api()
    with _plainly(text):
        if named["run"]:
            yield _found(api.run(f"{project}/{named['run']}"), project)
            return
        for run in api.runs(project, order="-created_at", per_page=200):
            yield _found(run, project)


def _api() -> Any:
    try:
        with _quiet():
            import wandb

            host = urlsplit(str(wandb.setup().settings.base_url)).netloc  # from its environment, or a settings file of its own
    except ImportError:
        raise ForensicsError("runs of W&B need its package", "pip install 'run-forensics[wandb]'") from None
    key = _key(host)
    if not key and not os.environ.get("WANDB_IDENTITY_TOKEN_FILE"):
        raise ForensicsError("there is no key for W&B", "Set WANDB_API_KEY, or call `wandb login` once.")
    with _plainly("W&B"):
        return wandb.Api(timeout=TIMEOUT, api_key=key or None)


def _key(host: str) -> str:
    """As W&B looks for it, without asking anybody."""
    if key := os.environ.get("WANDB_API_KEY", ""):
        return key
    files = (os.environ.get("NETRC"), Path.home() / ".netrc", Path.home() / "_netrc")
    for file in filter(None, files):
        with contextlib.suppress(OSError, netrc.NetrcParseError):
            known = netrc.netrc(str(file))
            for name in SAME if host in SAME else (host,):
                if found := known.authenticators(name):
                    return found[2] or ""
    return ""


def _host() -> str:
    return urlsplit(os.environ.get("WANDB_BASE_URL") or "https://api.wandb.ai").netloc


@contextlib.contextmanager
def _plainly(what: str) -> Iterator[None]:
    """What W&B raises, in one sentence without the key."""
    try:
        with _quiet():
            yield
    except ForensicsError:
        raise
    except Exception as e:  # its package has dozens of kinds
        said = next(iter(str(e).strip().splitlines()), "")[:300].replace(os.environ.get("WANDB_API_KEY") or "\0", "***")
        raise ForensicsError(f"{what}: {type(e).__name__}: {mask_text(said)}", "Is the name right, and may the key read it?") from e


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Without what W&B prints."""
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        yield


def _found(run: Any, project: str) -> Found:
    seen = f"{run.state} {getattr(run, 'heartbeat_at', '')} {getattr(run, 'historyLineCount', '')}"
    entity, _, name = project.partition("/")
    return Found(str(run.id), f"wandb:{project}/{run.id}", ("wandb", _host(), entity, name), seen, partial(_fetch, run))


def _fetch(run: Any, into: Path) -> None:
    stamp = re.sub(r"\D", "", str(run.created_at))[:14].ljust(14, "0")
    id = re.sub(r"\W", "_", str(run.id))
    folder = into / f"run-{stamp[:8]}_{stamp[8:]}-{id}" / "files"
    folder.mkdir(parents=True, exist_ok=True)
    with _plainly(f"wandb: {run.id}"):
        run.load_full_data()
        _history(run, folder / "wandb-history.jsonl")
        _write(folder / "wandb-events.jsonl", run.history(samples=SAMPLES, pandas=False, stream="system"))
        _files(run, folder)
        if not (folder / "output.log").exists():
            _console(run, folder / "output.log")
        if not (folder / "config.yaml").exists():
            lines = [f"{json.dumps(str(k))}:\n  value: {json.dumps(v)}\n" for k, v in run.config.items()]
            output.write(folder / "config.yaml", "".join(["wandb_version: 1\n", *lines]))
        _metadata(run, folder / "wandb-metadata.json")


def _history(run: Any, path: Path) -> None:
    """The rows that are not here yet, in the order of their steps."""
    first = _next_step(path)
    with path.open("a", encoding="utf-8") as f:
        for row in run.scan_history(min_step=first):
            f.write(json.dumps(row) + "\n")
    if not path.stat().st_size and run.lastHistoryStep >= 0:  # wandb 0.27.1 and 0.27.2 give no row of a run without a step 0
        raise ForensicsError(f"W&B says that {run.id} has steps up to {run.lastHistoryStep}, and gives none", "Update the package wandb.")


def _next_step(path: Path) -> int:
    """The step after the last row that is here; a line that was cut off goes."""
    if not path.exists():
        return 0
    whole, _, torn = path.read_text("utf-8").rpartition("\n")
    if torn:
        output.write(path, whole + "\n" if whole else "")
    last = whole.rpartition("\n")[2]
    return int(json.loads(last)["_step"]) + 1 if last else 0


def _write(path: Path, rows: Any) -> None:
    output.write(path, "".join(json.dumps(row) + "\n" for row in rows))


def _files(run: Any, folder: Path) -> None:
    taken = 0
    for file in run.files(per_page=FILES):
        wanted = _TEXT.fullmatch(file.name) and file.size <= BYTES and ".." not in file.name.split("/") and not file.name.startswith("/")
        if wanted and file.name not in ("wandb-history.jsonl", "wandb-events.jsonl") and (taken := taken + 1) <= FILES:
            file.download(root=str(folder), replace=True).close()


def _console(run: Any, path: Path) -> None:
    try:
        lines = [line.content.rstrip("\n") for line, _ in zip(run.console_logs(), range(LINES), strict=False)]
    except Exception:  # servers before 0.77 have no such question, packages before 0.30 neither
        return
    if lines:
        output.write(path, "\n".join(lines) + "\n")


def _metadata(run: Any, path: Path) -> None:
    """What W&B knows of the run, beside what the run knew of its machine."""
    try:
        document = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError):
        document = {}
    try:
        artifacts = [a.name for a, _ in zip(run.logged_artifacts(), range(ARTIFACTS), strict=False)]
    except Exception:  # a project without them, or a key that may not see them
        artifacts = []
    known = {
        "state": run.state,
        "heartbeatAt": getattr(run, "heartbeat_at", None),
        "name": run.name,
        "tags": list(run.tags or []),
        "artifacts": artifacts,
    }
    output.write(path, json.dumps((document if isinstance(document, dict) else {}) | known))
