"""Reads traces of torch.profiler and Kineto (``*.pt.trace.json``, also ``.gz``): how much of each step waits for the loader, for the device, or in communication that nothing hides.

The numbers of its steps count from where the profiler began and are not the run's, so rows have a time and no step. Shares are of the step that ``ProfilerStep#N`` encloses; a
trace without such marks says nothing of steps, and is named only. Of a trace of the host alone, what the device did is left out.
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from parsers.records import profiler_events, tolerant_json, tracker_files
from parsers.records.profiler_events import Step
from parsers.tables import Gap, Note, Rows

AT = "entry"
_MOST_BYTES = 512 << 20  # of JSON; a trace of ten steps of a large model has some 200 MB
_GZIP = b"\x1f\x8b"


def claims(path: Path, head: bytes) -> bool:
    return tracker_files.kind_of(path, head) == "trace" or (head.startswith(_GZIP) and path.name.endswith(".trace.json.gz"))


def parse(path: Path) -> Iterator[pa.RecordBatch | Gap | Note]:
    try:
        data = _bytes(path)
    except (OSError, EOFError, zlib.error) as e:
        yield Gap("byte 0", f"a profiler's trace that cannot be unpacked ({type(e).__name__})", None)
        return
    if len(data) > _MOST_BYTES:
        yield Note(f"a profiler's trace of more than {_MOST_BYTES >> 20} MiB: not read")
        return
    text, gaps = tolerant_json.decode(data)
    yield from gaps
    trace, damage = tolerant_json.whole(text)
    if damage:
        yield Gap(damage, "the trace is cut off here", None)
    events = trace.get("traceEvents") if isinstance(trace, dict) else None
    found = profiler_events.steps(events if isinstance(events, list) else [])
    if not found:
        yield Note("a profiler's trace without marks of steps: named only")
        return
    rows, base = Rows(), trace.get("baseTimeNanoseconds") if isinstance(trace.get("baseTimeNanoseconds"), int) else None
    told = trace.get("distributedInfo")
    rank = told.get("rank") if isinstance(told, dict) and isinstance(told.get("rank"), int) else None
    for at, step in enumerate(found, 1):
        time = None if base is None else base / 1e9 + step.begin / 1e6
        for tag, value in _shares(step).items():
            rows.metric(None, f"profiler/{tag}", value, time=time, at=at, rank=rank)
    rows.event("profile", _sentence(found), time=None if base is None else base / 1e9 + found[0].begin / 1e6, at=1, rank=rank)
    yield from rows.flush()


def _bytes(path: Path) -> bytes:
    """The trace, unpacked; a little more than may be read where it is larger."""
    with path.open("rb") as f:
        if f.read(2) != _GZIP:
            f.seek(0)
            return f.read(_MOST_BYTES + 1)
    with gzip.open(path) as z:
        return z.read(_MOST_BYTES + 1)


def _shares(step: Step) -> dict[str, Any]:
    shares = {"loader wait %": step.loader, "host syncs %": step.sync} | (
        {"exposed communication %": step.exposed, "device idle %": step.idle} if step.kernels else {}
    )
    return {"step ms": step.length / 1e3, "host syncs": step.syncs} | {
        k: 100 * v / step.length if step.length else 0.0 for k, v in shares.items()
    }


def _sentence(found: list[Step]) -> str:
    middle = {k: float(np.median([_shares(s)[k] for s in found])) for k in _shares(found[0])}
    parts = [f"{k.removesuffix(' %')} {v:.0f} %" for k, v in middle.items() if k.endswith("%")]
    return f"torch profiler, median of {len(found)} steps: {middle['step ms']:.3g} ms a step, {middle['host syncs']:.0f} host syncs; {', '.join(parts)}"
