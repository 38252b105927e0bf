"""Models that several ranks share: DDP's wrapper, and FSDP's weights, of which each rank has a shard (a DTensor)."""

from __future__ import annotations

import contextlib
from typing import Any


def bare(model: Any) -> Any:
    """The model without DDP around it."""
    import torch

    return model.module if isinstance(model, torch.nn.parallel.DistributedDataParallel) else model


def alone(model: Any) -> Any:
    """A context in which backward passes are this rank's own affair."""
    return model.no_sync() if bare(model) is not model else contextlib.nullcontext()


def joined_again(model: Any) -> None:
    """DDP hooks into the gradients of its weights, and loses them where a weight gets another dtype: it is set up again, as after unpickling."""
    if bare(model) is not model:
        model.__setstate__(model.__getstate__())


def sharded(model: Any) -> bool:
    """Whether a rank has only its part of the weights."""
    return any(hasattr(p, "to_local") for p in model.parameters()) or any(
        "FullyShardedDataParallel" in type(m).__name__ for m in model.modules()
    )


def local(t: Any) -> Any:
    """A tensor, or of a sharded one what is here."""
    return t.to_local() if hasattr(t, "to_local") else t


def scalar(t: Any) -> float:
    """A number that may be spread over the ranks, such as the norm of a sharded gradient; all ranks must ask."""
    return float(t.full_tensor() if hasattr(t, "full_tensor") else t)


def like(whole: Any, ours: Any) -> Any:
    """A tensor of a checkpoint as this rank keeps it: its own shard, where `ours` is sharded and the checkpoint's is not."""
    if not hasattr(ours, "to_local") or hasattr(whole, "to_local") or tuple(whole.shape) != tuple(ours.shape):
        return whole
    from torch.distributed.tensor import distribute_tensor

    # src_data_rank=None: every rank has read the same file, nothing has to be sent
    return distribute_tensor(whole.to(ours.to_local().device), ours.device_mesh, ours.placements, src_data_rank=None)
