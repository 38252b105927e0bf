"""Three lines in a training script that make its next replay exact: which samples every step had, beside the log."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

NAME = "batches.jsonl"


def record(step: int, ids: Any, folder: str | os.PathLike[str] = ".", **values: float) -> None:
    """Appends one line to ``batches.jsonl`` in the run folder: the step, as the log counts it, the ids of its samples in their order, and
    any numbers by name (``loss=float(loss)``), to the last bit. Under torchrun every rank writes a file of its own.

    ``ids``: a list of numbers or strings, or a tensor of integers. Raises OSError where the file cannot be written.
    """
    rank = int(os.environ.get("RANK", "0")) if int(os.environ.get("WORLD_SIZE", "1")) > 1 else None
    flat = ids.reshape(-1).tolist() if hasattr(ids, "reshape") else list(ids)
    row = {"step": int(step), "sample_ids": flat, **{k: float(v) for k, v in values.items()}}
    path = Path(folder) / (NAME if rank is None else f"batches_rank{rank}.jsonl")
    with path.open("a", encoding="utf-8") as f:
        f.write(json.dumps(row) + "\n")
