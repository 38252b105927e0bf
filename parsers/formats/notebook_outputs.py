"""Reads what the cells of a Jupyter notebook printed (``.ipynb``, nbformat 3 and 4), as a console log; places are the numbers of the cells.

Read are the streams of each cell, the text of its result and its uncaught exception. Only a notebook whose outputs name steps is a run's, or one in which a cell that
trains died; its source, pictures and widgets are left to others. A cell that ran again has the later output alone: what it printed before is lost.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from itertools import chain
from pathlib import Path
from typing import Any

import pyarrow as pa

from parsers.console_format import unwrapped
from parsers.console_format.feed import ANSI, LOOKED_AT, says_steps
from parsers.lazy_regex import lazy_re
from parsers.records import tolerant_json
from parsers.tables import Gap, Note

AT = "cell"
_ERRORS = ("error", "pyerr")
_MOST_BYTES = 64 << 20  # pictures stand in the outputs, too
_TRAINS = lazy_re(r"\.backward\(|\.(?:fit|partial_fit|train_on_batch|training_step)\(|\b(?:trainer|learner)\.(?:train|learn)\(")
_SET_ASIDE = lazy_re(r"['\"](?:\\n|[^\n\\]{0,200}\\n)")  # the value of a cell that is one long string: program text that is not to run
_LEAST = 3  # bound: lines that measure something at a step; fewer are a number that somebody looked at


def claims(path: Path, head: bytes) -> bool:
    if path.suffix.lower() != ".ipynb" or head.lstrip()[:1] != b"{":
        return False
    cells = _cells(path)
    lines = list(chain.from_iterable(text.splitlines() for _, text in _outputs(cells)))
    return any(map(_died, cells)) or any(says_steps(lines[i : i + LOOKED_AT]) >= _LEAST for i in range(0, len(lines), LOOKED_AT))


def parse(path: Path) -> Iterator[pa.RecordBatch | Gap | Note]:
    """Metrics, events and settings that the cells printed, in the order of the notebook. Raises OSError only."""
    if not (cells := _cells(path)):
        yield Gap("cell 1", f"no notebook: the JSON is damaged, cut off, or longer than {_MOST_BYTES >> 20} MiB", None)
    yield Note("what the cells of a notebook printed, in its order, which need not be the order in which they ran")
    yield from unwrapped.read(unwrapped.Record(at, text, None) for at, text in _outputs(cells))


def _cells(path: Path) -> list[Any]:
    told = path.stat()
    return _read(path, told.st_size, told.st_mtime_ns)


@lru_cache(maxsize=1)  # what is claimed is parsed next
def _read(path: Path, size: int, changed: int) -> list[Any]:
    with path.open("rb") as f:
        data = f.read(_MOST_BYTES)
    try:
        told = tolerant_json.loads(tolerant_json.decode(data)[0])
    except (ValueError, RecursionError):
        return []
    if not isinstance(told, dict):
        return []
    sheets = told.get("worksheets")  # nbformat 3
    holders = [told, *(s for s in sheets if isinstance(s, dict))] if isinstance(sheets, list) else [told]
    return [c for h in holders if isinstance(h.get("cells"), list) for c in h["cells"]]


def _outputs(cells: list[Any]) -> Iterator[tuple[int, str]]:
    """Number of the cell, from 1 on, and a text that it printed."""
    for at, cell in enumerate(cells, 1):
        outputs = cell.get("outputs") if isinstance(cell, dict) else None
        for output in outputs if isinstance(outputs, list) else []:
            if isinstance(output, dict) and (text := _text(output)):
                yield at, ANSI.sub("", text)


def _died(cell: object) -> bool:
    """Whether a cell that trains ended with an exception."""
    if not isinstance(cell, dict) or not isinstance(outputs := cell.get("outputs"), list):
        return False
    failed = any(isinstance(o, dict) and o.get("output_type") in _ERRORS for o in outputs)
    return failed and _TRAINS.search(_joined(cell.get("source") or cell.get("input"))) is not None


def _text(output: dict[str, Any]) -> str:
    if output.get("output_type") in _ERRORS:
        return _joined(output.get("traceback"), "\n")
    data = output.get("data")
    text = _joined(output.get("text")) or _joined(data.get("text/plain") if isinstance(data, dict) else None)
    return "" if _SET_ASIDE.match(text) else text


def _joined(value: object, between: str = "") -> str:
    return between.join(str(x) for x in value) if isinstance(value, list) else value if isinstance(value, str) else ""
