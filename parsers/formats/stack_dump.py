"""Reads stacks that ``py-spy dump`` wrote of a process, as text or JSON (``--json``): where each main thread is.

The innermost frame outside of Python's own waiting, and what called it, are one event; a main thread in a collective speaks of processes that wait for each other. A
dump says nothing of how long: whether the run hangs is for its log to tell. Form: that of py-spy's own documentation; no dump of a real run was at hand.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa

from parsers.lazy_regex import lazy_re
from parsers.records import tolerant_json, tracker_files
from parsers.tables import Gap, Rows

AT = "line"
_PROCESS = lazy_re(r"Process (\d+): ?(.*)")
_THREAD = lazy_re(r'Thread (\S+) \((\w[\w+ ]*)\)(?:: "(.*)")?')
_FRAME = lazy_re(r"\s++([^()]++)\(((?:[A-Za-z]:)?[^():]++):(\d+)\)$")
_WAITS = lazy_re(r"^(?:wait|_wait\w*|select|poll|acquire|sleep|get|recv\w*|_recv\w*|read)$")  # Python's own ways to wait
_COLLECTIVE = lazy_re(r"(?i)(?:all_?reduce|all_?gather|reduce_scatter|broadcast|barrier|all_to_all|_verify_param_shape)")
_MOST_BYTES, _SHOWN = 64 << 20, 4
Frame = tuple[str, str, str]


def claims(path: Path, head: bytes) -> bool:
    text = head[:2000].decode("utf-8", "replace")
    return (_PROCESS.match(text) is not None and re.search(r"(?m)^(?:Python v|Thread )", text) is not None) or tracker_files.kind_of(
        path, head
    ) == "stacks"


def parse(path: Path) -> Iterator[pa.RecordBatch | Gap]:
    with path.open("rb") as f:
        text = f.read(_MOST_BYTES).decode("utf-8", "replace")
    rows, mains = Rows(), 0
    for at, process, name, state, frames in _json(text) if text.lstrip()[:1] == "[" else _text(text):
        if frames and (name in ("MainThread", "") or "main" in name.lower()):
            mains += 1
            _event(rows, at, f"py-spy dump of process {process}, {name or 'thread'} {state}".rstrip(), frames)
    if not mains:
        yield Gap("line 1", "no main thread in this dump", None)
    yield from rows.flush()


def _event(rows: Rows, at: int, who: str, frames: list[Frame]) -> None:
    inner = next((i for i, f in enumerate(frames) if not _WAITS.match(f[0])), 0)
    shown = " < ".join(f"{name} ({file}:{line})" for name, file, line in frames[inner : inner + _SHOWN])
    own = next((f for f in frames[inner + _SHOWN :] if "torch/" not in f[1] and "site-packages" not in f[1]), None)
    shown += f" < ... < {own[0]} ({own[1]}:{own[2]})" if own is not None else ""
    waits = any(_COLLECTIVE.search(name) for name, _, _ in frames[inner : inner + _SHOWN])
    rows.event("hang" if waits else "warning", f"{who}: in {shown}", level="warning", at=at)


def _text(text: str) -> Iterator[tuple[int, str, str, str, list[Frame]]]:
    """(line, process, thread, state, frames from the innermost)"""
    process, thread, frames = "", None, list[Frame]()
    for n, line in enumerate([*text.split("\n"), "Thread 0 (end)"], 1):
        if (m := _FRAME.match(line)) is not None and thread is not None:
            frames.append((m[1].rstrip(), m[2], m[3]))
        elif (m := _THREAD.match(line.strip())) is not None:
            if thread is not None:
                yield (*thread, frames)
            thread, frames = (n, process, m[3] or "", m[2]), []
        elif (m := _PROCESS.match(line)) is not None:
            process = m[1]


def _json(text: str) -> Iterator[tuple[int, str, str, str, list[Frame]]]:
    for _, _, t in tolerant_json.objects(text, text.find("[") + 1):
        frames = [
            (str(f.get("name")), str(f.get("short_filename") or f.get("filename")), str(f.get("line")))
            for f in t.get("frames") or ()
            if isinstance(f, dict)
        ]
        yield 1, str(t.get("pid")), str(t.get("thread_name") or ""), "active" if t.get("active") else "idle", frames
