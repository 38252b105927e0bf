"""Reads what Guild AI notes of a run in ``.guild/attrs``: flags, label, exit status.

One file an attribute, in YAML. ``flags`` are the settings; ``exit_status`` is the program's exit code, ``stopped`` its time in microseconds. The environment (``env``), the
operation and the packages are left. Seen in runs of guildai 0.9.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa

from parsers.records import cells, tracker_files
from parsers.records.json_tables import Leaf
from parsers.tables import Gap, Note, Rows

AT = "line"
_MOST_BYTES = 1 << 20


def claims(path: Path, head: bytes) -> bool:
    return tracker_files.kind_of(path, head) == "guild"


def parse(path: Path) -> Iterator[pa.RecordBatch | Gap | Note]:
    if path.name not in ("flags", "label", "exit_status"):
        yield Note("an attribute of Guild's own, not read")
        return
    with path.open("rb") as f:
        text = f.read(_MOST_BYTES).decode("utf-8", "replace")
    rows = Rows()
    if path.name == "exit_status":
        code = cells.whole(text.strip())
        stopped = path.with_name("stopped")
        ended = cells.whole(stopped.read_text("utf-8", "replace").strip()) if stopped.is_file() else None
        rows.event("exit", f"exit code {code}", level="error" if code else "info", time=None if ended is None else ended / 1e6, at=1)
    for item in _flags(text) if path.name == "flags" else ():
        if isinstance(item, Gap):
            yield item
        else:
            rows.config(item[0].replace("/", "."), item[1], at=item[2])
    if path.name == "label":
        rows.config("guild.label", text.strip(), at=1)
    yield from rows.flush()


def _flags(text: str) -> Iterator[Leaf | Gap]:
    from parsers.records import yaml_nodes

    return yaml_nodes.leaves(text, "flags")
