"""What the ranks of a replay answer, as one answer: losses are means over ranks, samples follow each other in the order of the ranks."""

from __future__ import annotations

import socket
import struct
from collections.abc import Sequence
from typing import Any


def environments(processes: int) -> list[dict[str, str]]:
    """For each process what torchrun would set, so that `torch.distributed` finds the others on this machine; nothing for one alone."""
    if processes == 1:
        return [{}]
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = str(s.getsockname()[1])
    shared = {"WORLD_SIZE": str(processes), "LOCAL_WORLD_SIZE": str(processes), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
    return [{**shared, "RANK": str(r), "LOCAL_RANK": str(r), "FORENSICS_RANKS": str(processes)} for r in range(processes)]


def on_card(card: str | None) -> list[dict[str, str]]:
    """For one process that sees one GPU alone, or all of them."""
    return [{} if card is None else {"CUDA_VISIBLE_DEVICES": card}]


def step(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """One training step of all ranks. Data parallel training averages over ranks, whatever rows each has; the losses of single ranks
    are parts, as a log may show rank 0's."""
    if len(rows) == 1:
        return rows[0]
    return {**rows[0], "loss": _mean([r["loss"] for r in rows]), "parts": {f"rank {i}": r["loss"] for i, r in enumerate(rows)}}


def done(op: str, answers: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The answers of all ranks to one command; where they can't differ, or stand for themselves, rank 0's."""
    first = dict(answers[0])
    if len(answers) == 1:
        return first
    if op == "losses":
        by_batch = list(zip(*(a["losses"] for a in answers), strict=True))
        first["losses"] = [_joined(x) if isinstance(x[0], list) else _mean(x) for x in by_batch]
    elif op == "gradients":
        first["norms"] = _joined([a["norms"] for a in answers])
    elif op == "ids":
        ids = zip(*(a["ids"] for a in answers), strict=True)
        first["ids"] = [None if None in x else _joined(x) for x in ids]
        first["rows"] = [sum(x) for x in zip(*(a["rows"] for a in answers), strict=True)]
    elif op == "content":
        first |= {"of": sum(a["of"] for a in answers), **{k: _joined([a[k] for a in answers]) for k in ("ids", "tensors")}}
    elif op == "frames":
        first = next((dict(a) for a in answers if a["first"]), first)  # the rank on which the first non-finite value was made
    elif op == "pure":
        first["differs"] = sorted({b for a in answers for b in a["differs"]})
    return first


def _joined(parts: Sequence[list[Any]]) -> list[Any]:
    return [x for part in parts for x in part]


def _mean(values: Sequence[Any]) -> float:
    """Of numbers that fp32 holds it is one that fp32 holds, as the mean would be that the ranks had made themselves: a log is met to the last digit."""
    losses = [float(v) for v in values]
    found = sum(losses) / len(losses)
    return _single(found) if all(_single(x) == x for x in losses) else found


def _single(x: float) -> float:
    try:
        return float(struct.unpack("f", struct.pack("f", x))[0])
    except OverflowError:
        return x
