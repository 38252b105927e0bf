"""What went wrong in the worker, as the parent needs it."""

from __future__ import annotations

import traceback
from typing import Any

from .adapter import Wrong
from .layouts import Unusable
from .protected import Protected


def describe(e: BaseException) -> dict[str, Any]:
    """An exception as the parent needs it: of which kind, one line, the whole traceback."""
    kind = "adapter"
    name = type(e).__name__
    if isinstance(e, MemoryError) or name == "OutOfMemoryError" or "out of memory" in str(e).lower() or "DefaultCPUAllocator" in str(e):
        kind = "memory"
    elif isinstance(e, Protected):
        kind = "protected"
    elif isinstance(e, (FileNotFoundError, Unusable)):
        kind = "files"
    elif isinstance(e, KeyError) and e.__traceback__ is not None and "states.py" in traceback.format_exc():
        kind = "worker"
    lines = [x for x in str(e).strip().splitlines() if x.strip()] or [""]
    what = lines[0] if isinstance(e, (Wrong, Protected, Unusable)) else f"{name}: {lines[0]}"
    return {"kind": kind, "what": what[:300], "traceback": traceback.format_exc()}
