"""Three lines in a training script that make its next replay exact: which samples every step had, beside the log."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

NAME = "batches.jsonl"


def rank() -> int | None:
    """The process's number under torchrun and what sets the same variables; None where there is one process."""
    return int(os.environ.get("RANK", "0")) if int(os.environ.get("WORLD_SIZE", "1")) > 1 else None


def of_rank(name: str) -> str:
    """The file of this process: ``batches.jsonl``, under torchrun ``batches_rank3.jsonl``."""
    stem, dot, ending = name.rpartition(".")
    return name if rank() is None else f"{stem}_rank{rank()}{dot}{ending}"


def row(step: int, ids: Any = None, **values: float) -> str:
    """One line: the step, the ids of its samples where they are known, and numbers by name."""
    flat = None if ids is None else ids.reshape(-1).tolist() if hasattr(ids, "reshape") else list(ids)
    told = {} if flat is None else {"sample_ids": flat}
    return json.dumps({"step": int(step), **told, **{k: float(v) for k, v in values.items()}}) + "\n"


def record(step: int, ids: Any, folder: str | os.PathLike[str] = ".", **values: float) -> None:
    """Appends one line to ``batches.jsonl`` in the run folder: the step, as the log counts it, the ids of its samples in their order, and
    any numbers by name (``loss=float(loss)``), to the last bit. Under torchrun every rank writes a file of its own.

    ``ids``: a list of numbers or strings, or a tensor of integers. Raises OSError where the file cannot be written.
    """
    with (Path(folder) / of_rank(NAME)).open("a", encoding="utf-8") as f:
        f.write(row(step, ids, **values))
