"""This process among the ranks of a replay: the group, and which rows of a batch are its own. Alone, all are."""

from __future__ import annotations

import os
from typing import Any, Optional

WORLD = int(os.environ.get("FORENSICS_RANKS", "1"))
RANK = int(os.environ.get("RANK", "0")) if WORLD > 1 else 0
_kept: dict[str, Any] = {}


def join(device: str) -> str:
    """Meets the other ranks before the adapter is imported; -> this rank's device. A second group is ours, so that the first is the adapter's."""
    import torch
    import torch.distributed as dist

    if WORLD == 1:
        return device
    if device == "cuda":
        device = f"cuda:{RANK}"
        torch.cuda.set_device(RANK)
    dist.init_process_group("nccl" if device.startswith("cuda") else "gloo", rank=RANK, world_size=WORLD)
    _kept["group"] = dist.new_group(backend="gloo")
    return device


def gathered(value: Any) -> list[Any]:
    """A plain value of each rank, in their order."""
    if WORLD == 1:
        return [value]
    import torch.distributed as dist

    found: list[Any] = [None] * WORLD
    dist.all_gather_object(found, value, group=_kept["group"])
    return found


def own_rows(rows: list[int], count: int) -> Optional[list[int]]:  # noqa: UP045  (Python 3.9)
    """Of the rows of the whole batch, counted over ranks, those of this rank as it counts them; `count`: how many rows it has in all.
    None where none of them is its own."""
    if WORLD == 1:
        return rows
    begin = sum(gathered(count)[:RANK])
    return [r - begin for r in rows if begin <= r < begin + count] or None


def share(ids: list[Any]) -> list[Any]:
    """This rank's part of the samples of a step, which are in the order of the ranks."""
    size, rest = divmod(len(ids), WORLD)
    if rest:
        raise ValueError(f"{len(ids)} samples of a step cannot be shared by {WORLD} ranks")
    return ids[RANK * size : (RANK + 1) * size]
