"""What a person has judged already (`--known`), and what an earlier audit said (`--since`).

A file of known findings has one line each: a run (its id or path; `*` and `?` match anything), then a finding's id, a
detector, a cause or `*`, then why, if you like:

    # runs        what            why
    exp/llm-*     loss_spike-418  shard 31 is broken, reported
    warm-7        throughput
"""

from __future__ import annotations

import fnmatch
import io
import posixpath
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from forensics.audits import storage
from forensics.causes.files import named_cause
from forensics.errors import ForensicsError
from parsers.walk import is_regular

BADNESS = {"healthy": 0, "inconclusive": 1, "unhealthy": 2}


@dataclass(frozen=True)
class Known:
    """A finding that somebody has judged."""

    run: str
    what: str
    why: str = ""


def read_known(path: str) -> list[Known]:
    """Raises ForensicsError for a file that is not there or has a line with one word."""
    try:
        if Path(path).exists() and not is_regular(Path(path)):
            raise OSError("not a regular file: not opened")
        text = Path(path).read_text("utf-8")
    except (OSError, UnicodeDecodeError) as e:
        raise ForensicsError(f"cannot read {path}: {e}", "One line a finding: RUN FINDING WHY.") from e
    found = []
    for number, line in enumerate(text.splitlines(), 1):
        words = line.partition("#")[0].split(None, 2) if line.lstrip().startswith("#") else line.split(None, 2)
        if not words:
            continue
        if len(words) == 1:
            raise ForensicsError(
                f"{path} line {number}: a run and a finding are needed", "For example: exp/llm-* loss_spike-418 judged harmless"
            )
        found.append(Known(words[0], words[1], words[2] if len(words) > 2 else ""))
    return found


def apply(known: Sequence[Known], row: dict[str, Any], grave: Sequence[Sequence[Any]]) -> set[str]:
    """Changes the row: `known` counts the findings that are judged; where none is left, the run counts as healthy. -> the ids of those."""
    mine = [k for k in known if _matches(k.run, row)]
    if not mine or row["verdict"] != "unhealthy":
        return set()
    by_cause = any(k.what in ("*", row["top_cause"]) for k in mine)
    judged = [i for i, kind, *_ in grave if by_cause or any(fnmatch.fnmatchcase(x, k.what) for k in mine for x in (i, kind))]
    row["known"] = len(judged)
    if len(judged) == len(grave):
        row["verdict"] = "healthy"
    return set(judged)


def _matches(pattern: str, row: dict[str, Any]) -> bool:
    names = (row["id"], row["path"], str(row["path"]).rstrip("/").rsplit("/", 1)[-1])
    return any(fnmatch.fnmatchcase(n, pattern) or n.endswith("/" + pattern) for n in names)


def read_previous(path: str) -> dict[str, dict[str, Any]]:
    """The rows of an earlier audit by id: of its folder, its audit.parquet or its audit.json."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    folder = path if not path.endswith((".parquet", ".json", ".html")) else path.rpartition("/")[0] or "."
    name = posixpath.basename(path) if path.endswith(".parquet") else "audit.parquet"
    data = storage.read(folder, name)
    if data is None:
        raise ForensicsError(f"no audit in {path}", "--since takes the folder that `forensics audit --out` wrote.")
    try:
        rows = pq.read_table(io.BytesIO(data)).to_pylist()
        texts = all(isinstance(r[k], (str, type(None))) for r in rows for k in ("id", "path", "verdict", "top_cause"))
        if not texts or any(r["id"] is None for r in rows) or not all(isinstance(r["grave"], (int, type(None))) for r in rows):
            raise ValueError("its columns hold something else")
        return {r["id"]: r for r in rows}
    except (OSError, ValueError, KeyError, TypeError, MemoryError, pa.ArrowException) as e:
        raise ForensicsError(f"{folder}/{name} is no audit of ours: {e}", "Make the earlier audit again.") from e


def changes(before: dict[str, dict[str, Any]], rows: Sequence[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    """What is new, gone, worse, better, or has another cause. A run is known by its id, or else by its path."""
    paths = {r["path"]: r for r in before.values()}
    found: dict[str, list[dict[str, Any]]] = {"new": [], "gone": [], "worse": [], "better": [], "other_cause": []}
    met = set()
    for row in rows:
        old = before.get(row["id"]) or paths.get(row["path"])
        if old is None:
            found["new"].append(_change(row, None, ""))
            continue
        met.add(old["id"])
        worse, better = _worse(old, row), _worse(row, old)
        if worse or better:
            found["worse" if worse else "better"].append(_change(row, old, worse or "less than before"))
        elif row["verdict"] == "unhealthy" and (was := _told(old)) != (now := _told(row)):
            found["other_cause"].append(_change(row, old, f"{was}, then {now}"))
    found["gone"] = [_change(old, old, "") for name, old in sorted(before.items()) if name not in met]
    return found


def _told(row: dict[str, Any]) -> str | None:
    return named_cause(row)


def _worse(old: dict[str, Any], new: dict[str, Any]) -> str:
    """Why the second is worse than the first; empty where it is not."""
    a, b = BADNESS.get(old["verdict"], 1), BADNESS.get(new["verdict"], 1)
    if a != b:
        return f"{old['verdict']}, then {new['verdict']}" if b > a else ""
    if (new["grave"] or 0) > (old["grave"] or 0):
        return f"{old['grave']} findings, then {new['grave']}"
    return ""


def _change(row: dict[str, Any], old: dict[str, Any] | None, why: str) -> dict[str, Any]:
    return {
        "id": row["id"],
        "path": row["path"],
        "verdict": row["verdict"],
        "top_cause": _told(row),
        "was": old["verdict"] if old else None,
        "why": why,
    }
