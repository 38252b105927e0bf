"""The runs below one folder, read once and kept while their files stay as they are; nothing outside the folder is read."""

from __future__ import annotations

import os
from collections import OrderedDict
from pathlib import Path
from typing import Any

from forensics import at_path, output, pipeline, remote
from forensics.errors import ForensicsError
from forensics.run import identity
from parsers.tables import Run
from parsers.walk import walk

KEPT = 3  # runs in memory: two that are compared, and the one that was asked about before
Stamp = tuple[tuple[str, int, int], ...]


class KeptRuns:
    """Runs and cases by their path below ``root``, which is the working folder of the process."""

    def __init__(self, root: Path) -> None:
        self.root = root.resolve()
        self._runs: OrderedDict[tuple[str, str | None], tuple[Stamp, Run]] = OrderedDict()
        self._cases: dict[tuple[str, str | None], dict[str, Any]] = {}

    def inside(self, path: str) -> str:
        """The path relative to the root. Raises ForensicsError where it leads out of it, or nothing is there."""
        hint = "Give a path below the folder that the server was started with; list_runs shows what lies there."
        if remote.is_url(path):
            raise ForensicsError(f"{path} is a URL: this server reads files below its root only", hint)
        try:
            real = Path(os.path.realpath(self.root / path))
            relative = real.relative_to(self.root)
        except ValueError as e:  # also a name with a NUL
            raise ForensicsError(f"{path} is not below the root of this server", hint) from e
        if not real.exists():
            raise ForensicsError(f"there is no {path} below the root of this server", hint)
        return str(relative)

    def run(self, path: str, name: str | None = None) -> Run:
        """The run that `forensics analyze PATH --run NAME` is about."""
        key = (self.inside(path), name)
        stamp = _stamp(Path(key[0]))
        if key not in self._runs or self._runs[key][0] != stamp:
            self._cases.pop(key, None)
            self._runs[key] = (stamp, at_path.read(key[0], run=name))
        self._runs.move_to_end(key)
        while len(self._runs) > KEPT:
            gone, _ = self._runs.popitem(last=False)
            self._cases.pop(gone, None)
        return self._runs[key][1]

    def case(self, path: str, name: str | None = None) -> dict[str, Any]:
        """The document of case.json of that run; of a saved case its own."""
        inside = self.inside(path)
        if identity.of_report(Path(inside)) is not None:
            return output.saved_case(Path(inside))
        run = self.run(path, name)
        key = (inside, name)
        if key not in self._cases:
            asked = ["--run", name] if name else []
            self._cases[key] = pipeline.analyze_run(run, command=["forensics", "analyze", inside, *asked]).to_json()
        return self._cases[key]

    def alone(self, path: str) -> Run:
        """The only run at a path. Raises ForensicsError where there are several."""
        return at_path.only(at_path.read_runs(self.inside(path)), path)


def _stamp(path: Path) -> Stamp:
    """Changes when a file of the run does."""
    found = []
    for file in walk(path):
        if isinstance(file, Path):
            try:
                info = file.stat()
            except OSError:  # gone since it was listed
                continue
            found.append((str(file), info.st_size, info.st_mtime_ns))
    return tuple(found)
