"""Which files of a run have grown, and whether their new ends ask for a look now.

The live guards (forensics.guards) hear each new value, and a new line that says how a process died counts, too.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from forensics.guards.guard_table import GUARDS
from forensics.guards.live import Guard
from forensics.run import fatal_lines
from parsers import appended
from parsers.runs.assemble import FileRead
from parsers.tables import Run, relative
from parsers.walk import walk

Stamp = tuple[int, int, int]  # bytes, time of the last change, file


@dataclass
class Growth:
    """What is known of the files of a run; ``ours``: real paths of our own outputs, which may lie among them."""

    root: Path
    ours: set[str] = field(default_factory=set)
    stamps: dict[Path, Stamp] = field(default_factory=dict)
    begins: dict[str, int] = field(default_factory=dict)  # source -> byte up to which its values were heard
    formats: dict[str, str] = field(default_factory=dict)
    names: Mapping[tuple[str, str], str] = field(default_factory=dict)  # (source, tag) -> canonical name
    guards: dict[tuple[str, str, str], tuple[Guard, bool]] = field(default_factory=dict)

    def changed(self) -> bool:
        """Has any file changed since this was last asked?"""
        now = {p: s for p in walk(self.root) if isinstance(p, Path) and (s := _stamp(p)) and os.path.realpath(p) not in self.ours}
        changed, self.stamps = now != self.stamps, now
        return changed

    def learn(self, runs: list[Run]) -> None:
        """Takes from whole looks which format each file has, and what its tags mean."""
        self.formats = {s.path: s.format for r in runs for s in r.sources if s.claimed}
        self.names = {key: m.name for r in runs for key, m in r.meanings.items()}

    def alarms(self) -> list[str]:
        """Reads the new ends of the logs; -> what in them asks for a look, in a few words."""
        found: list[str] = []
        for path in self.stamps:
            source = relative(path, self.root)
            how = appended.grows(self.formats.get(source, ""))
            if how:
                with contextlib.suppress(OSError):  # it vanished
                    new, self.begins[source] = appended.read(path, how, self.begins.get(source, 0))
                    found += [*self._heard(source, new)] if new is not None else []
        return found

    def _heard(self, source: str, new: FileRead) -> Iterator[str]:
        for batch in new.batches.get("metrics", ()):
            for tag, step, value in zip(*(batch[c].to_pylist() for c in ("tag", "step", "value")), strict=True):
                yield from (f"{rule} at step {step}" for rule in self._fired(source, tag, value))
        for batch in new.batches.get("events", ()):
            yield from (str(e["text"])[:80] for e in batch.to_pylist() if fatal_lines.kind(e))

    def _fired(self, source: str, tag: str, value: float) -> Iterator[str]:
        """The guards that fire at this value and did not at the one before."""
        name = self.names.get((source, tag))
        for rule in GUARDS if value is not None else ():
            if rule.metric == name:
                key = (rule.name, source, tag)
                guard, before = self.guards.get(key) or (
                    Guard(rule.statistic(rule.window, rule.least), rule.threshold, rule.patience),
                    False,
                )
                fires = guard.update(value)
                self.guards[key] = guard, fires
                if fires and not before:
                    yield rule.name


def _stamp(path: Path) -> Stamp | None:
    try:
        info = path.stat()
    except OSError:
        return None
    return info.st_size, info.st_mtime_ns, info.st_ino
