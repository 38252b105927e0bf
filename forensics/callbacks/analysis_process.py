"""`forensics analyze` in a process of its own: the training's memory, threads and signals are none of its business."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from forensics.safe_path import ENVIRONMENT

HOME = Path(__file__).resolve().parent.parent.parent


class Analysis:
    """It begins at once. In a session of its own, so that it outlives a signal to the training's group."""

    def __init__(self, folder: Path) -> None:
        found_anyway = HOME.name in ("site-packages", "dist-packages")
        paths = [p for p in ("" if found_anyway else str(HOME), os.environ.get("PYTHONPATH", "")) if p]
        environment = os.environ | ENVIRONMENT | ({"PYTHONPATH": os.pathsep.join(paths)} if paths else {})
        self._process = subprocess.Popen(
            [sys.executable, "-m", "forensics", "--quiet", "analyze", str(folder)],
            cwd=folder,  # where its outputs go under their default names, which replace a report of the same run only
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            start_new_session=True,
        )

    def trouble(self, seconds: float, *, stop: bool = True) -> str:
        """Waits; -> what went wrong, or nothing. One that takes longer is stopped, or with ``stop=False`` left to itself."""
        try:
            _, said = self._process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            if stop:
                self.stop()
            return f"the analysis took longer than {seconds:.0f} seconds"
        if self._process.returncode == 0:
            return ""
        first = next(iter(said.splitlines()), "").removeprefix("forensics: ")
        return f"no page was written: {first or f'exit code {self._process.returncode}'}"

    def stop(self) -> None:
        self._process.kill()
        self._process.communicate()
