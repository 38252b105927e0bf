"""What the events of a profiler's trace say of each step: waiting for the loader, for the device, communication that nothing hides. Helpers, no parser.

Names are those of Kineto (libkineto) and torch.profiler: ``ProfilerStep#N``, ``enumerate(DataLoader)#...``, ``cudaStreamSynchronize``, kernels of category ``kernel``, of NCCL
``ncclDevKernel_...`` or ``ncclKernel_...``.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from parsers.lazy_regex import lazy_re

_STEP = lazy_re(r"ProfilerStep\\#(\d+)|ProfilerStep#(\d+)")
_LOADER = lazy_re(r"enumerate\(DataLoader\)#.*__next__|DataLoader.*__next__")
_SYNC = lazy_re(r"(?:cuda|hip)(?:Stream|Device|Event)Synchronize")
_ITEM = ("aten::item", "aten::_local_scalar_dense")
Span = tuple[float, float]


@dataclass(frozen=True)
class Step:
    """Microseconds, but for the number of calls; ``kernels`` False where no device was traced."""

    number: int
    begin: float
    length: float
    loader: float
    sync: float
    syncs: int
    exposed: float
    idle: float
    kernels: bool


def steps(events: Iterable[Any]) -> list[Step]:
    """The steps of a trace, in their order; what lies outside of them is left."""
    borders, loader, sync, items, comm, compute = (
        list[tuple[int, Span]](),
        list[Span](),
        list[Span](),
        list[Span](),
        list[Span](),
        list[Span](),
    )
    for e in events:
        if (
            not isinstance(e, dict)
            or e.get("ph") != "X"
            or not isinstance(e.get("ts"), (int, float))
            or not isinstance(e.get("dur"), (int, float))
        ):
            continue
        name, span = str(e.get("name")), (float(e["ts"]), float(e["ts"]) + float(e["dur"]))
        if (m := _STEP.fullmatch(name)) is not None and e.get("cat") == "user_annotation":
            borders.append((int(m[1] or m[2]), span))
        elif _LOADER.fullmatch(name):
            loader.append(span)
        elif _SYNC.fullmatch(name):
            sync.append(span)
        elif name == _ITEM[1]:
            items.append(span)
        elif e.get("cat") == "kernel":
            (comm if "nccl" in name.lower() or "rccl" in name.lower() else compute).append(span)
    loader, sync, comm, compute = union(loader), union(sync), union(comm), union(compute)
    return [_step(n, s, (loader, sync, comm, compute), items) for n, s in sorted(borders, key=lambda x: x[1])]


def _step(number: int, step: Span, found: tuple[list[Span], list[Span], list[Span], list[Span]], items: list[Span]) -> Step:
    loader, sync, comm, compute = ([s for x in spans if (s := _cut(x, step))] for spans in found)
    busy = _length(union([*comm, *compute]))
    calls = sum(step[0] <= a < step[1] for a, _ in items) or len(sync)
    length = step[1] - step[0]
    return Step(
        number, step[0], length, _length(loader), _length(sync), calls, busy - _length(compute), length - busy, bool(found[2] or found[3])
    )  # fmt: skip


def union(spans: list[Span]) -> list[Span]:
    """Spans that overlap nowhere."""
    found: list[Span] = []
    for a, b in sorted(spans):
        if found and a <= found[-1][1]:
            found[-1] = (found[-1][0], max(found[-1][1], b))
        else:
            found.append((a, b))
    return found


def _cut(span: Span, to: Span) -> Span | None:
    a, b = max(span[0], to[0]), min(span[1], to[1])
    return (a, b) if a < b else None


def _length(spans: list[Span]) -> float:
    return sum(b - a for a, b in spans)
