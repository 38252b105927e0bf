"""Reads the dumps of torch's Flight Recorder (``nccl_trace_rank_0``, pickle or JSON): in which collective each rank is, and which it never reached.

For each process group one event, in the words of torch's own watchdog: the first collective that is not done, with its stack; of a rank that waits in none, the last one that
it did. The pickle is read without running anything (:mod:`parsers.records.flight_dump`). Schema 2.10, by torch's source; no dump of a real NCCL run was at hand.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa

from parsers.checkpoints.unreadable import Unreadable
from parsers.records import flight_dump
from parsers.records.flight_dump import Entry
from parsers.tables import Gap, Note, Rows

AT = "entry"


def claims(path: Path, head: bytes) -> bool:
    return flight_dump.is_dump(head)


def parse(path: Path) -> Iterator[pa.RecordBatch | Gap | Note]:
    try:
        dump = flight_dump.load(path)
    except Unreadable as why:
        yield Gap("byte 0", f"a dump of the Flight Recorder that cannot be read: {why}", None)
        return
    rows, groups = Rows(), dict[tuple[str, str], list[tuple[int, Entry]]]()
    for at, e in enumerate(flight_dump.entries(dump), 1):
        if not e.get("is_p2p"):
            groups.setdefault(flight_dump.group(e), []).append((at, e))
    for (number, name), of in groups.items():
        _event(rows, f"[PG ID {number} {name}]".replace(" ]", "]"), sorted(of, key=lambda x: flight_dump.sequence(x[1])))
    yield Note(f"{len(flight_dump.entries(dump))} collectives of {len(groups)} process groups, schema {str(dump.get('version'))[:20]}")
    yield from rows.flush()


def _event(rows: Rows, group: str, of: list[tuple[int, Entry]]) -> None:
    """What a group does: the words and numbers are those that torch's watchdog logs on a time-out."""
    waiting = [(at, e) for at, e in of if flight_dump.is_pending(e)]
    done = [flight_dump.sequence(e) for _, e in of if not flight_dump.is_pending(e)]
    at, e = waiting[0] if waiting else of[-1]
    sequence, size = flight_dump.sequence(e), flight_dump.numbers_in(e)
    work = f"WorkNCCL(SeqNum={sequence}, OpType={flight_dump.operation(e)}" + (f", NumelIn={size})" if size else ")")
    last = max(done, default=sequence - 1)
    state = f"at work: {sequence}, last enqueued NCCL work: {flight_dump.sequence(of[-1][1])}, last completed NCCL work: {last}"
    begun = e.get("time_created_ns")
    text = (
        f"Flight Recorder {group}: "
        + (f"waits in {work}" if waiting else f"waits in none, the last was {flight_dump.operation(e)}")
        + f"; {state}"
    )
    if stack := flight_dump.stack(e):
        text += f"; called by {stack}"
    time = begun / 1e9 if isinstance(begun, int) else None
    rows.event("nccl", text, level="error" if waiting else "warning", time=time, at=at)
