"""Keeps the run as it is while the adapter runs: writes into its folder fail, and trackers of experiments stay off.

An audit hook sees what Python opens, renames and deletes (PEP 578). What C++ opens it does not see: `torch.save` is looked at by
itself. The parent compares sizes and times of the files before and after, for what neither sees.
"""

from __future__ import annotations

import os
import sys
from typing import Any

TRACKERS = {
    "WANDB_MODE": "disabled",
    "WANDB_DISABLED": "true",
    "COMET_MODE": "disabled",
    "NEPTUNE_MODE": "debug",
    "CLEARML_OFFLINE_MODE": "1",
    "AIM_DISABLED": "1",
}
WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
# event -> which of its arguments are paths that it changes (docs.python.org/3/library/audit_events.html)
CHANGES = {
    "os.remove": (0,), "os.rename": (0, 1), "os.rmdir": (0,), "os.mkdir": (0,), "os.truncate": (0,), "os.link": (1,), "os.symlink": (1,),
    "os.chmod": (0,), "os.chown": (0,), "os.utime": (0,), "shutil.rmtree": (0,), "sqlite3.connect": (0,),
}  # fmt: skip


class Protected(PermissionError):
    """The adapter would have changed the run."""


def protect(folder: str) -> None:
    """From now on nothing in this process can write below `folder`; it can't be undone."""
    import torch

    root = os.path.realpath(folder)

    def within(path: Any) -> bool:
        if not isinstance(path, (str, bytes, os.PathLike)):
            return False
        real = os.path.realpath(os.fsdecode(path))
        return real == root or real.startswith(root + os.sep)

    def refuse(path: Any) -> None:
        if within(path):
            raise Protected(f"it would have written {os.fsdecode(path)}: a replay leaves the run as it is (write elsewhere, or not at all)")

    def hook(event: str, arguments: Any) -> None:
        if event == "open":
            path, mode, flags = arguments
            writes = any(c in mode for c in "wax+") if isinstance(mode, str) else bool((flags or 0) & WRITES)
            if writes:
                refuse(path)
        elif event in CHANGES:
            for i in CHANGES[event]:
                refuse(arguments[i] if i < len(arguments) else None)

    sys.addaudithook(hook)
    save = torch.save

    def save_elsewhere(obj: Any, f: Any, *args: Any, **options: Any) -> Any:
        refuse(f)
        return save(obj, f, *args, **options)

    torch.save = save_elsewhere
