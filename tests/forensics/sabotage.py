"""What goes wrong while a run is read: run in every worker first, by files that lie with the run."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import Any


def begin() -> None:
    """KILL ends the worker, HANG hangs it, BREAK breaks the reader; GATE names a folder, in which the worker notes its process as REACHED, and
    waits for a file OPEN."""
    import parsers

    real = parsers.read_files

    def read(paths: list[Path], *args: Any, **options: Any) -> Any:
        marks = {p.name: p for p in paths[0].parent.iterdir()}
        if "KILL" in marks:
            os.kill(os.getpid(), signal.SIGKILL)
        if "HANG" in marks:
            time.sleep(1000)
        if "BREAK" in marks:
            raise RuntimeError("broken on purpose")
        if "GATE" in marks:
            wait(Path(marks["GATE"].read_text()))
        return real(paths, *args, **options)

    parsers.read_files = read


def wait(gate: Path) -> None:
    part = gate / f"{os.getpid()}.part"
    part.write_text(str(os.getpid()))
    part.replace(gate / "REACHED")
    while not (gate / "OPEN").exists():
        time.sleep(0.05)
