"""A dump of torch's Flight Recorder as plain data, from its pickle or its JSON: helpers of flight_recorder, no parser.

Schema 2.x (torch/csrc/distributed/c10d/FlightRecorder.hpp): ``entries`` (one a collective: ``profiling_name``, ``collective_seq_id``, ``state``, ``frames``, times in
nanoseconds), ``pg_config``, ``pg_status``. The pickle holds dicts, lists, texts and numbers alone: any name in it is refused.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from parsers.checkpoints import opcodes
from parsers.checkpoints.pickles import Machine, Opaque
from parsers.checkpoints.unreadable import Unreadable
from parsers.lazy_regex import lazy_re
from parsers.records import tolerant_json

_MOST_BYTES = 256 << 20  # 2,000 entries, torch's default, have some megabytes
_KEYS = lazy_re(rb"pg_config|collective_seq_id|nccl_comm_state|pg_status")
Entry = dict[str, Any]


def is_dump(head: bytes) -> bool:
    return (head[:1] == b"\x80" or head.lstrip()[:1] == b"{") and _KEYS.search(head) is not None and b"entries" in head


def load(path: Path) -> dict[str, Any]:
    """The dump. Raises Unreadable for what is none."""
    if path.stat().st_size > _MOST_BYTES:
        raise Unreadable(f"more than {_MOST_BYTES >> 20} MiB: too large for a dump")
    data = path.read_bytes()
    if data[:1] != b"\x80":
        text = data.decode("utf-8", "replace")
        try:
            found = tolerant_json.loads(text)
        except (ValueError, RecursionError):
            found, _, _ = tolerant_json.recover(text)
    else:
        machine = Machine(
            data, build=lambda name, args: Opaque(str(name), args), set_state=lambda made, _: made, persistent=lambda _: None, allowed=lambda _: False
        )  # fmt: skip
        try:
            found = opcodes.load(machine)
        except Unreadable:
            found = machine.remains()
    if not isinstance(found, dict) or not isinstance(found.get("entries"), list):
        raise Unreadable("no list of entries in it")
    return found


def entries(dump: dict[str, Any]) -> list[Entry]:
    return [e for e in dump["entries"] if isinstance(e, dict)]


def group(e: Entry) -> tuple[str, str]:
    """Number and description of the process group of an entry."""
    named = e.get("process_group")
    parts = [str(x) for x in named] if isinstance(named, (list, tuple)) else [str(named)] if named else []
    number = e.get("pg_id") if isinstance(e.get("pg_id"), int) else parts[0] if parts else "0"
    return str(number), parts[1] if len(parts) > 1 else ""


def sequence(e: Entry) -> int:
    """The number of a collective among those of its group; -1 where it has none."""
    number = e.get("collective_seq_id", e.get("seq_id"))
    return number if isinstance(number, int) else -1


def is_pending(e: Entry) -> bool:
    return e.get("state") != "completed" and not e.get("retired") and not e.get("time_discovered_completed_ns")


def operation(e: Entry) -> str:
    """``nccl:all_reduce`` as torch's watchdog spells it: ALLREDUCE."""
    name = str(e.get("profiling_name") or "collective").rpartition(":")[2].upper()
    return {"ALL_REDUCE": "ALLREDUCE", "ALL_GATHER": "ALLGATHER", "ALL_TO_ALL": "ALLTOALL"}.get(name, name)


def numbers_in(e: Entry) -> int | None:
    """How many numbers go in."""
    sizes = e.get("input_sizes")
    total = 0
    for shape in sizes if isinstance(sizes, (list, tuple)) else ():
        count = 1
        for n in shape if isinstance(shape, (list, tuple)) else ():
            count *= n if isinstance(n, int) else 0
        total += count
    return total or None


def stack(e: Entry, most: int = 4) -> str:
    """The innermost frames outside of torch: ``step (train.py:57) < main (train.py:90)``."""
    frames = [f for f in e.get("frames") or () if isinstance(f, dict)]
    own = [
        f for f in frames if not re.search(r"[/\\](?:torch|site-packages)[/\\]|^<|\.(?:cpp|h|cc)$", str(f.get("filename", "")))
    ] or frames
    return " < ".join(
        f"{f.get('name')} ({str(f.get('filename')).replace(chr(92), '/').rpartition('/')[2]}:{f.get('line')})" for f in own[:most]
    )
