"""The formats: a function each, from a stream to one file."""

from __future__ import annotations

import csv
import json
import math
import random
import struct
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from workloads import tfrecord

from relogging.original import Row, Stream, dated

HF = {"loss.train": "loss", "loss.eval": "eval_loss", "acc.eval": "eval_accuracy", "lr": "learning_rate", "grad.norm": "grad_norm"}
STARTED = 1735689600.0  # 2025-01-01: for event files of runs without a clock, since an event has one; a second a row


def _key(stream: Stream, *names: str) -> str:
    """The first of these names that is no tag of the stream."""
    return next(n for n in names if n not in stream.names)


def records(stream: Stream) -> list[dict[str, Any]]:
    """Rows as dictionaries: step, clock, rank, then the values in their order."""
    step, clock, rank = (
        _key(stream, *n) for n in (("step", "global_step", "_step"), ("time", "timestamp", "wall_time"), ("rank", "global_rank", "rank_id"))
    )
    found = []
    for r in stream.rows:
        place: dict[str, Any] = {} if r.step is None or stream.epochs else {step: r.step}
        place |= {clock: round(r.time or 0, 3)} if dated(r.time) else {}
        found.append(place | ({} if r.rank is None else {rank: r.rank}) | {t: _whole(v) for t, v in r.values.items()})
    draw = random.Random(1)
    return [dict(draw.sample(list(r.items()), len(r))) for r in found] if stream.shuffled else found


def _whole(v: float) -> float | int:
    return int(v) if math.isfinite(v) and v == int(v) and abs(v) < 1e15 else v


def jsonl(path: Path, stream: Stream) -> None:
    path.write_text("".join(json.dumps(r) + "\n" for r in records(stream)))


def table(path: Path, stream: Stream) -> None:
    """A CSV; what a row lacks stays empty."""
    rows = records(stream)
    with path.open("w", newline="") as file:
        out = csv.DictWriter(file, list(dict.fromkeys(k for r in rows for k in r)), lineterminator="\n")
        out.writeheader()
        out.writerows(rows)


def line(r: Row, stream: Stream) -> str:
    """`[2026-11-22 20:13:16] [rank0]: step: 10 | loss: 2.3 | lr: 0.001`"""
    stamp = f"[{datetime.fromtimestamp(r.time or 0, UTC):%Y-%m-%d %H:%M:%S}] " if dated(r.time) else ""
    rank = f"[rank{r.rank}]: " if r.rank is not None else ""
    place = [] if r.step is None or stream.epochs else [f"step: {r.step}"]
    return stamp + rank + " | ".join([*place, *(f"{t}: {_whole(v):.9g}" for t, v in r.values.items())])


def console(path: Path, stream: Stream, last: int | None = None) -> None:
    """In a log that was one already, rows stand where their lines stood; it ends with its last row where that is the ``last`` step."""
    if stream.lines is None:
        path.write_text("".join(line(r, stream) + "\n" for r in stream.rows))
        return
    rows: dict[int | None, list[Row]] = {}
    for r in stream.rows:
        rows.setdefault(r.at, []).append(r)
    written, end = [], max((at for at in rows if at is not None), default=0)
    for number, text in enumerate(stream.lines, 1):
        if last is not None and number > end:
            break
        written += [line(r, stream) for r in rows.get(number, [])] if number in stream.own else [text]
    path.write_bytes("\n".join(written).encode("utf-8", "surrogateescape"))


def _varint(number: int) -> bytes:
    number &= (1 << 64) - 1
    out = b""
    while number > 0x7F:
        out += bytes([number & 0x7F | 0x80])
        number >>= 7
    return out + bytes([number])


def _field(number: int, data: bytes) -> bytes:
    return _varint(number << 3 | 2) + _varint(len(data)) + data


def tensorboard(path: Path, stream: Stream) -> None:
    """An Event has wall_time (1), step (2), file_version (3), summary (5: value 1 with tag 1 and simple_value 2)."""
    times = [r.time if dated(r.time) else STARTED + i for i, r in enumerate(stream.rows)]
    data = tfrecord(b"\x09" + struct.pack("<d", times[0] if times else STARTED) + _field(3, b"brain.Event:2"))
    for r, time in zip(stream.rows, times, strict=True):
        if r.step is None:
            continue
        for tag, v in r.values.items():
            small = v if not math.isfinite(v) or abs(v) < 3.4e38 else math.copysign(math.inf, v)
            value = _field(1, tag.encode()) + b"\x15" + struct.pack("<f", small)
            data += tfrecord(b"\x09" + struct.pack("<d", time) + b"\x10" + _varint(r.step) + _field(5, _field(1, value)))
    path.write_bytes(data)


def trainer_state(path: Path, stream: Stream, planned: int | None = None, rename: bool = False) -> None:
    """Hugging Face's state: its tags where ``rename``, without clocks, which it does not have; rows without a step go."""
    alone = {t: n for t, n in stream.names.items() if list(stream.names.values()).count(n) == 1}  # two of one name cannot have one tag
    new = {t: HF[n] for t, n in alone.items() if rename and n in HF and HF[n] not in stream.names}
    rows = [r for r in stream.rows if r.step is not None]
    history = [{new.get(t, t): _whole(v) for t, v in r.values.items()} | {"step": r.step} for r in rows]
    last = max((r.step or 0 for r in rows), default=0)
    state = {"global_step": last, "max_steps": planned or last} | {k: _plain(v) for k, v in stream.settings.items()}
    path.write_text(json.dumps(state | {"log_history": history}, indent=2) + "\n")


def _plain(text: Any) -> Any:
    try:
        return json.loads(str(text))
    except ValueError:
        return text


def settings(path: Path, found: dict[str, Any]) -> None:
    path.write_text(json.dumps({k: _plain(v) for k, v in found.items()}, indent=2) + "\n")
