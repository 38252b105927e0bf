"""Reads the files beside a ``.wandb`` log: config, summary, metadata, SDK logs, and the JSON lines of old versions.

A run folder is ``wandb/run-20230714_050600-<id>`` (``offline-run-``, before 0.10 ``dryrun-``) with ``files/`` and
``logs/`` in it; before 0.10 everything lay in the folder itself, with the history in ``wandb-history.jsonl`` and the
system metrics in ``wandb-events.jsonl``. Source: wandb's ``sdk/internal`` of 0.10 to 0.17, ``core/internal`` since.

What is odd about them:

* ``config.yaml`` keeps each setting as ``{desc, value}``, and the SDK's own under ``_wandb``. SwanLab's run folders are called alike, and have ``{desc, sort, value}``.
* ``wandb-summary.json`` has the last value of each metric, wherever it was logged. Where a history lies beside it, its
  values get no step; where it is all that is left, they get the trainer's step in it, else its ``_step``.
* Rows of the JSON lines are kept as they stand, ``_step``, ``_timestamp`` and ``_runtime`` included.
* SDK logs matter for three things: rows that W&B dropped for going back in step (:mod:`parsers.wandb_format.steps`), an init that
  failed, and the exit code.
* ``output.log`` is console output and left to that parser.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Generator, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa

from parsers.lazy_regex import lazy_re
from parsers.records import tolerant_json
from parsers.records.json_values import flat
from parsers.tables import Gap, Note, Rows
from parsers.wandb_format import config_yaml, key_values, side_files
from parsers.wandb_format.steps import Axes

AT = "line"


Parsed = Iterator[pa.RecordBatch | Gap | Note]

_RUN_FOLDER = lazy_re(r"(?:offline-|dry)?run-\d{8}_\d{6}-\w+")
_SDK_LOG = lazy_re(r"debug(?:-internal|-core)?(?:\.user)?\.log")
_WANDB_YAML = lazy_re(rb"(?m)^wandb_version:|^_wandb:|^\S[^\n]*:[ \r]*\n(?: +(?:desc|sort):[^\n]*\n)*+ +value:")


def claims(path: Path, head: bytes) -> bool:
    if head.startswith(b"version https://git-lfs"):
        return False
    reader = _reader(path)
    if reader is _config_yaml:
        return _WANDB_YAML.search(head) is not None
    return reader is not None


def parse(path: Path) -> Parsed:
    """Yields metrics, config and events; ``at`` is the line (in JSON documents 1)."""
    reader = _reader(path)
    if reader is not None:
        yield from reader(path)


def _reader(path: Path) -> Callable[[Path], Parsed] | None:
    """What reads the file, by its name and place."""
    by_name = {"wandb-summary.json": _summary, "wandb-metadata.json": _metadata, "wandb-history.jsonl": _history,
               "wandb-events.jsonl": _events}  # fmt: skip
    if path.name in by_name:
        return by_name[path.name]
    folder = path.parent.parent if path.parent.name in ("files", "logs") else path.parent
    if not _RUN_FOLDER.fullmatch(folder.name):
        return side_files.sdk_log if folder.name == "wandb" and _SDK_LOG.fullmatch(path.name) else None
    in_folder = {"config.yaml": _config_yaml, "requirements.txt": side_files.packages, "conda-environment.yaml": side_files.packages}
    if path.name in in_folder:
        return in_folder[path.name]
    if path.suffix == ".patch":
        return side_files.patch
    return side_files.sdk_log if _SDK_LOG.fullmatch(path.name) else None


def _summary(path: Path) -> Parsed:
    document, gaps = _document(path)
    yield from gaps
    rows, seen = Rows(), Counter[str]()
    axes = Axes()
    own = next((k for k in document if axes.is_step(k) and _whole(key_values.as_number(document[k])) is not None), "_step")
    step, time = (key_values.as_number(document.get(k)) for k in (own, "_timestamp"))
    alone = not _has_history(path)
    where: dict[str, Any] = {"step": _whole(step) if alone else None, "time": time if isinstance(time, float) else None}
    for name, value in document.items():
        if name not in ("_step", "_timestamp", "_wandb"):
            key_values.add(rows, name, value, seen, at=1, **where)
    yield from rows.flush()
    yield Note("final values" + (f" of step {where['step']}" if where["step"] is not None else ", without a step"))
    yield from _counted(seen)


def _has_history(path: Path) -> bool:
    beside = [path.with_name("wandb-history.jsonl"), *path.parent.glob("*.wandb"), *path.parent.parent.glob("*.wandb")]
    return any(p.is_file() and p.stat().st_size > 7 for p in beside)  # 7: the header of a .wandb file


def _metadata(path: Path) -> Parsed:
    document, gaps = _document(path)
    yield from gaps
    rows = Rows()
    if isinstance(args := document.get("args"), list):  # as one text, so that `--token x` is known as a secret
        document["args"] = " ".join(map(str, args))
    for key, value in flat("wandb", document):
        if key not in ("wandb.heartbeatAt", "wandb"):
            rows.config(key, value, at=1)
    if (code := document.get("exitcode")) is not None:
        state = f" ({document['state']})" if isinstance(document.get("state"), str) else ""
        ended = _seconds(document.get("heartbeatAt"))
        rows.event("exit", f"exit code {code}{state}", level="error" if code else "info", time=ended, at=1)
    elif isinstance(word := document.get("state"), str):  # the service's: finished, failed, killed, crashed (no sign of life), running
        level = "error" if word in ("failed", "killed") else "info"
        rows.event("status", f"W&B state {word}", level=level, time=_seconds(document.get("heartbeatAt")), at=1)
    yield from rows.flush()


def _history(path: Path) -> Parsed:
    axes, seen = Axes(), Counter[str]()

    def where(row: dict[str, Any]) -> dict[str, Any]:
        for name, value in row.items():
            if axes.is_step(name) and isinstance(number := key_values.as_number(value), float):
                axes.last = number
        step = axes.last if axes.last == axes.last else key_values.as_number(row.get("_step"))
        return {"step": _whole(step), "time": _time(row)}

    count = yield from _rows_of(path, where, seen)
    yield Note(f"{count} history rows" if count else "no history row: nothing was logged")
    yield from _counted(seen)


def _events(path: Path) -> Parsed:
    yield from _rows_of(path, lambda row: {"time": _time(row)}, Counter())
    yield Note("system metrics: they have a time and no step")


def _rows_of(
    path: Path, where: Callable[[dict[str, Any]], dict[str, Any]], seen: Counter[str]
) -> Generator[pa.RecordBatch | Gap | Note, None, int]:
    """The values of all JSON lines; returns how many lines there were."""
    rows, count = Rows(), 0
    for item in _json_lines(path):
        if isinstance(item, Gap):
            yield item
            continue
        line, row = item
        count += 1
        place = where(row)
        for name, value in row.items():
            if name != "_wandb":
                key_values.add(rows, name, value, seen, at=line, **place)
        if rows.full():
            yield from rows.flush()
    yield from rows.flush()
    return count


def _config_yaml(path: Path) -> Parsed:
    text, gaps = tolerant_json.read(path)
    yield from _by_line(gaps, text)
    rows = Rows()
    for item in config_yaml.items(text):
        if isinstance(item, Gap):
            yield item
            continue
        line, key, entry = item
        value = entry["value"] if isinstance(entry, dict) and "value" in entry else entry
        if key == "_wandb":
            own = value if isinstance(value, dict) else {}
            if isinstance(version := own.get("cli_version"), str):
                yield Note(f"written by wandb {version}")
            for name in ("python_version", "framework", "huggingface_version"):
                if name in own:
                    rows.config(f"wandb.{name}", own[name], at=line)
        elif key != "wandb_version":
            for name, inner in flat(key, value):
                rows.config(name, inner, at=line)
    yield from rows.flush()


def _document(path: Path) -> tuple[dict[str, Any], list[Gap]]:
    """A JSON object, or as much of it as parses."""
    text, found = tolerant_json.read(path)
    gaps = list(_by_line(found, text))
    if not text.strip():
        return {}, [*gaps, Gap("line 1", "empty file", None)]
    try:
        value = tolerant_json.loads(text)
    except (ValueError, RecursionError):
        value, place, _ = tolerant_json.recover(text)
        gaps.append(Gap(f"line {text.count(chr(10), 0, place) + 1}", "damaged JSON: read up to there", None))
    if not isinstance(value, dict):
        return {}, gaps or [Gap("line 1", "no JSON object", None)]
    return value, gaps


def _json_lines(path: Path) -> Iterator[tuple[int, dict[str, Any]] | Gap]:
    for line, raw in side_files.lines(path):
        text = raw.strip(b"\0 \t\r\n")
        if not text:
            if b"\0" in raw:
                yield Gap(f"line {line}", f"{len(raw)} zero bytes", None)
            continue
        try:
            row = tolerant_json.loads(text)
        except (ValueError, RecursionError):
            row = None
        if isinstance(row, dict):
            yield line, row
        else:
            cut = "" if raw.endswith(b"\n") else "the last line is cut off: "
            yield Gap(f"line {line}", f"{cut}no JSON object", 1)


def _by_line(gaps: list[Gap], text: str) -> Iterator[Gap]:
    """Gaps that name a byte, by line instead: the unit of these files."""
    for gap in gaps:
        place = int(gap.at.split()[-1])
        yield Gap(f"line {text.count(chr(10), 0, place) + 1}", gap.what, gap.lost)


def _counted(seen: Counter[str]) -> Iterator[Note]:
    if kinds := [f"{n} {what}" for what, n in sorted(seen.items()) if n]:
        yield Note(f"counted, not opened: {', '.join(kinds)}")


def _whole(x: Any) -> int | None:
    return int(x) if isinstance(x, float) and abs(x) < 2.0**63 else None


def _time(row: dict[str, Any]) -> float | None:
    time = key_values.as_number(row.get("_timestamp"))
    return time if isinstance(time, float) and abs(time) < float("inf") else None


def _seconds(text: Any) -> float | None:
    """W&B's clock times carry no zone and are UTC."""
    try:
        return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()
    except (TypeError, ValueError, OverflowError):
        return None
