"""Which files are logs that another program keeps in records of its own: what a container, a cluster, a cloud or the journal wrapped around each line.

A record has the line's text and a clock, and nothing that was measured. Records are known by the keys that their writer always gives (docker's json-file driver,
Cloud Logging, CloudWatch, systemd's journal, fluentd, Loki, Determined), else by what their texts say: those of a training name steps. Helpers, no parser.
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path
from typing import Any

from parsers.console_format.feed import says_steps
from parsers.lazy_regex import lazy_re
from parsers.records import tolerant_json
from parsers.records.cells import as_number, seconds, time_unit, whole
from parsers.records.vocabulary import RANK, TIME, plain

CRI = lazy_re(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)) (?:stdout|stderr) ([FP])(?: (.*))?", re.DOTALL)
_TEXT = ("log", "message", "msg", "textpayload", "line", "@message")
_INNER = ("jsonPayload", "fields", "labels")  # where a text, a rank or a clock may stand one object deep
_CLOCK = (*TIME, "__realtime_timestamp", "timereceived", "receivetimestamp")
_RANK = (*RANK, "rank_id")
_KNOWN = (
    {"log", "stream", "time"},  # docker, json-file driver
    {"log", "kubernetes"},  # fluentd, fluent-bit
    {"insertid", "logname"},  # Cloud Logging
    {"ingestiontime", "message"},  # CloudWatch
    {"__realtime_timestamp", "message"},  # journalctl -o json
    {"labels", "line", "timestamp"},  # logcli -o jsonl
    {"worker", "msg", "task"},  # ClearML
    {"trial_id", "log"}, {"trialid", "message"}, {"task_id", "log"},  # det trial logs --json
)  # fmt: skip
_ADDRESSES = lazy_re(
    r"(?i)(?:^|[_.])(?:id|pid|tid|line|lineno|thread|process|ids?|uid|gid|created|msecs|levelno|relativecreated|version|port|timestamp|time)$"
)
_LOOKED_AT = 50  # records
_MOST = 0.9  # share of the records that must have a text and a clock: a torn one may be among the first
Row = dict[str, Any]


@lru_cache(maxsize=16)
def kind_of(path: Path, head: bytes) -> str:
    """cri, lines (JSON lines), document (JSON with all records), table (CSV); nothing where it is no such log."""
    text = tolerant_json.decode(head)[0].lstrip("\ufeff \r\n\t")
    if CRI.match(text) is not None:
        lines = text.splitlines()[:_LOOKED_AT]
        return "cri" if sum(CRI.match(s) is not None for s in lines) >= _MOST * len(lines) - 1 else ""
    if text[:1] not in ("{", "["):
        return "table" if columns(text.partition("\n")[0]) else ""
    lines = text.splitlines()
    first = lines[: min(_LOOKED_AT, len(lines) - 1 or 1)]
    rows = [r for s in first for r in _objects(s)]
    if len(rows) >= _MOST * len(first):
        return "lines" if _are_records(rows) else ""
    if path.suffix.lower() not in (".json", ".log", ".txt", ""):
        return ""
    found = [v for _, _, v in tolerant_json.objects(text, 1)][:_LOOKED_AT]
    return "document" if found and _are_records(found) else ""


def _objects(text: str) -> list[Row]:
    """The object of a line, or the objects of the list in it (ClearML)."""
    try:
        value = tolerant_json.loads(text)
    except (ValueError, RecursionError):
        return []
    found = value if isinstance(value, list) else [value]
    return found if all(isinstance(x, dict) for x in found) else []


def _are_records(rows: list[Row]) -> bool:
    texts = [t for r in rows if (t := text_of(r)) is not None and time_of(r) is not None]
    if not texts or len(texts) < _MOST * len(rows):
        return False
    if all(any(known <= _names(r) for known in _KNOWN) for r in rows):
        return True
    return not any(_measures(r) for r in rows) and says_steps(texts) > 0


def _names(row: Row) -> set[str]:
    return {plain(k) for k in row}


def _measures(row: Row) -> bool:
    """Has it a number that is no address, no time and no count of the writer's?"""
    used = {plain(n) for n in (*_CLOCK, *_RANK)}
    return any(type(x) in (int, float) and plain(k) not in used and not _ADDRESSES.search(k) for k, x in row.items())


def _values(row: Row, wanted: Iterable[str]) -> Iterable[Any]:
    """The values of a record under the wanted names, the best name first; those of inner objects behind its own."""
    for holder in (row, *(row[k] for k in _INNER if isinstance(row.get(k), dict))):
        named = {plain(k): k for k in holder}
        yield from (holder[named[n]] for n in wanted if n in named)


def text_of(row: Row) -> str | None:
    """The line that a record keeps; of a payload of numbers (Cloud Logging's jsonPayload), its JSON."""
    found = next((x for x in _values(row, _TEXT) if isinstance(x, str)), None)
    payload = row.get("jsonPayload")
    return json.dumps(payload) if found is None and isinstance(payload, dict) else found


def time_of(row: Row) -> float | None:
    """Seconds since 1970 UTC."""
    return next((t for x in _values(row, _CLOCK) if (t := moment(x)) is not None), None)


def moment(value: Any) -> float | None:
    """A clock as such records have it: a date (of nanoseconds, too), or seconds to nanoseconds since 1970."""
    if isinstance(value, str) and re.match(r"\d{4}-\d\d-\d\d[T ]", value):
        return seconds(re.sub(r"(\.\d{6})\d+", r"\1", value.replace(" UTC", "Z")))
    number = as_number(value)
    unit = time_unit(number)
    return None if number is None or unit is None else number * unit


def rank_of(row: Row) -> int | None:
    return next((r for x in _values(row, _RANK) if (r := whole(x)) is not None and 0 <= r < 1 << 31), None)


def columns(header: str) -> tuple[int, int] | None:
    """Where the clock and the text stand in a table of log lines (CloudWatch Logs Insights, a download of Cloud Logging); None: it is none."""
    first = header.splitlines()[:1]
    try:
        cells = next(csv.reader(first), [])
    except csv.Error:
        return None
    names = [plain(c).rpartition("jsonpayload.")[2] for c in cells]
    clock = next((names.index(n) for n in _CLOCK if n in names), None)
    text = next((names.index(n) for n in _TEXT if n in names), None)
    told = {"@message", "@timestamp", "insertid", "logname", "@logstream", "ingestiontime"} & set(names)
    return (clock, text) if told and clock is not None and text is not None else None
