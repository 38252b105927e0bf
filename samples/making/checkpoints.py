"""Checkpoints small enough to be committed: safetensors written by hand, torch's own zip through torch.save."""

from __future__ import annotations

import json
import struct
from pathlib import Path

import torch
from torch import nn

from making.training import Job


def safetensors(path: Path, model: nn.Module) -> None:
    """Length of the header (u64), the header in JSON, the tensors' bytes: the format's whole specification."""
    header: dict[str, object] = {"__metadata__": {"format": "pt"}}
    content = b""
    for name, tensor in model.state_dict().items():
        data = tensor.contiguous().numpy().tobytes()
        header[name] = {"dtype": "F32", "shape": list(tensor.shape), "data_offsets": [len(content), len(content) + len(data)]}
        content += data
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(struct.pack("<Q", len(text)) + text + content)


def full(path: Path, job: Job, step: int) -> None:
    """Model, optimizer and step, as most training scripts save them."""
    path.parent.mkdir(parents=True, exist_ok=True)
    state = {"model": job.model.state_dict(), "optimizer": job.optimizer.state_dict(), "step": step}
    torch.save(state, path)
