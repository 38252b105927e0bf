"""Settings in ``training_args.bin``, which transformers' Trainer and what is built on it save beside each checkpoint.

It is a torch file of one object: a dataclass whose class name ends in ``Arguments`` or ``Config`` (TRL's), with its fields as the state. Nothing of it
is constructed (``parsers.checkpoints.pickles``); plain values of public names are settings, of an enumeration its value.
Source: ``Trainer._save`` of transformers, src/transformers/trainer.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from parsers.checkpoints import torch_file
from parsers.checkpoints.pickles import Opaque
from parsers.checkpoints.unreadable import Unreadable

MOST_BYTES = 4 << 20  # bound: a real one has 5 kB; what lies in a larger file are no settings
_OF_A_PLACE = {
    "output_dir",
    "logging_dir",
    "run_name",
    "hub_token",
    "push_to_hub_token",
    "local_rank",
}  # of one launch or process, no setting of the training


def settings(path: Path) -> Iterator[tuple[str, bool | int | float | str]]:
    """(name, value) of each plain field. Raises Unreadable where the file holds no such object, OSError where it cannot be opened."""
    if path.stat().st_size > MOST_BYTES:
        raise Unreadable("too large for settings")
    root = torch_file.load(path)[1]
    if not isinstance(root, Opaque) or not isinstance(root.state, dict) or not root.name.endswith(("Arguments", "Config")):
        raise Unreadable("no arguments of a trainer")
    for name, stored in root.state.items():
        value = _plain(stored)
        if isinstance(name, str) and value is not None and not name.startswith("_") and name not in _OF_A_PLACE:
            yield name, value


def _plain(value: Any) -> bool | int | float | str | None:
    if isinstance(value, Opaque) and len(value.args) == 1:
        value = value.args[0]
    return value if isinstance(value, (bool, int, float, str)) else None
