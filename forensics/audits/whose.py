"""Whose a run was and where it ran: owner, project, job and hosts, as config or the log say."""

from __future__ import annotations

import json
import re

from forensics.run import endings, fatal_lines, settings
from parsers.lazy_regex import lazy_re
from parsers.tables import Run

LONGEST, MOST_HOSTS = 80, 64
_HOST = lazy_re(r"(?i)(^|[./_-])(host(name)?|node_?(name|list)?|slurmd?_(job_)?node(name|list)|machine)$")
_EVENT_HOST = lazy_re(r"(?s)tfevents\.\d+\.(.+)$")
_KEYS = {
    "owner": lazy_re(r"(?i)(?:^|[./_-])(?:owner|user(?:_?name)?|author|entity)$"),
    "project": lazy_re(r"(?i)(?:^|[./_-])(?:project(?:_?name)?|experiment_?name)$"),
    "job_id": lazy_re(r"(?i)(?:^|[./_-])(?:job_?id|slurm_array_job_id)$"),
}
_FILE = lazy_re(r"(?i)(?:^|/)(?:slurm|job)[-_.](\d{3,})(?:[-_.]\d+)?\.[a-z]+$")  # Slurm's own name of a log is slurm-<job>.out
WHY = {
    "owner": "no setting names an owner, user or entity",
    "project": "no setting names a project or experiment",
    "job_id": "neither config nor the log names the scheduler's job",
}


def of(run: Run) -> tuple[dict[str, str | None], dict[str, str]]:
    """(the columns owner, project and job_id; column -> why it is empty)."""
    found = {what: _setting(run, key) for what, key in _KEYS.items()}
    found["job_id"] = found["job_id"] or _job(run)
    return found, {what: WHY[what] for what, value in found.items() if value is None}


def _setting(run: Run, key: re.Pattern[str]) -> str | None:
    """The value of the last launch that has one."""
    values = [
        s.value for s in settings.every(run) if key.search(s.key) and isinstance(s.value, (str, int)) and not isinstance(s.value, bool)
    ]
    return next((text[:LONGEST] for v in reversed(values) if (text := str(v).strip())), None)


def _job(run: Run) -> str | None:
    """As the scheduler's lines name it, else the scheduler's own name of a log."""
    said = [m[1] for e in endings.events(run, "scheduler") if (m := fatal_lines.JOB.search(str(e["text"])))]
    named = [m[1] for s in run.sources if (m := _FILE.search(s.path))]
    return next(iter([*reversed(said), *named]), None)


def hosts(run: Run) -> list[str]:
    """Where it ran, as config or the names of event files say."""
    found: set[str] = set()
    table = run.tables["config"]
    for key, value in zip(table["key"].to_pylist(), table["value"].to_pylist(), strict=True):
        if value and _HOST.search(key):
            try:
                plain = json.loads(value)
            except ValueError:
                plain = value
            found |= {
                x
                for x in (plain if isinstance(plain, list) else [plain])
                if isinstance(x, str) and x and not x.isdigit() and "://" not in x
            }  # a URL is where a service is
    for s in run.sources:
        match = _EVENT_HOST.search(s.path.rsplit("/", 1)[-1])
        if match:
            found.add(_host(match[1]))
    return sorted(h[:LONGEST] for h in found)[:MOST_HOSTS]


def _host(end: str) -> str:
    """What stands in an event file's name before the numbers of the process and of the file."""
    parts = end.removesuffix(".v2").split(".")
    while len(parts) > 1 and parts[-1].isdigit():
        parts.pop()
    return ".".join(parts)
