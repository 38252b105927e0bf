"""What a run folder logged, file by file, as rows that can be written again."""

from __future__ import annotations

import math
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import parsers
from forensics import at_path
from parsers import clocks
from parsers.records.vocabulary import EPOCH_STEPS
from parsers.runs.assemble import FileRead
from parsers.tables import DATED, Run, run_of

ONE_VALUE_A_RECORD = ("tensorboard", "mlflow_sqlite", "mlflow_files")
TRACKERS = ("tensorboard", "trainer_state", "wandb_offline", "wandb_folder", "mlflow_sqlite", "mlflow_files")
NOT_OF_THE_RUN = ("expect.toml", "README.md")  # of a sample: they tell what is expected


class NotSound(Exception):
    """This transformation would say something else of this run than its log did; the text says why."""


@dataclass(frozen=True)
class Row:
    """What was logged at once. ``at`` is the line (byte, entry) that it stood at."""

    step: int | None
    time: float | None
    rank: int | None
    values: dict[str, float]
    at: int | None = None


@dataclass(frozen=True)
class Stream:
    """A metric file: its rows in order, and the canonical name of each of its tags.

    ``epochs``: its rows have epochs and no steps. ``lines``: all lines of a console log, of which the rows stood at ``own``.
    ``settings``: what it says beside the rows. ``suffix`` goes to the name of the file that is written. ``shuffled``: keys of
    its rows come in any order. ``stays``: the file is copied as it is.
    """

    path: str
    format: str
    rows: list[Row]
    names: dict[str, str]
    epochs: bool = False
    lines: list[str] | None = None
    own: frozenset[int] = frozenset()
    settings: dict[str, Any] = field(default_factory=dict)
    suffix: str = ""
    shuffled: bool = False
    stays: bool = False

    def tags(self) -> list[str]:
        """In the order in which they were first logged."""
        return list(dict.fromkeys(tag for row in self.rows for tag in row.values))


@dataclass(frozen=True)
class Original:
    """A run folder: its metric files, and all others, which are copied. ``batches``: rows of manifests that metric files held."""

    root: Path
    runs: list[Run]
    streams: list[Stream]
    files: dict[str, FileRead]
    batches: dict[str, list[dict[str, Any]]]
    left_out: frozenset[str]

    def others(self) -> list[str]:
        """The files that are no metric files, relative to the run."""
        hidden = _hidden(self.root)
        found = (p.relative_to(self.root).as_posix() for p in sorted(self.root.rglob("*")) if p.is_file())
        return [p for p in found if p not in self.left_out and p not in hidden]


def plain_copy(path: Path, out: Path) -> Path:
    """The folder as it is, without the files of a sample that tell what is expected."""
    return Path(shutil.copytree(path, out, ignore=shutil.ignore_patterns(*_hidden(path))))


def _hidden(root: Path) -> tuple[str, ...]:
    return NOT_OF_THE_RUN if (root / "expect.toml").exists() else ()


def read(path: str | Path) -> Original:
    """Raises NotSound where the run is no folder, or one of its files holds several runs."""
    root = Path(path)
    if not root.is_dir():
        raise NotSound("the run is a file, not a folder")
    runs = at_path.read_runs(str(root))
    names = {key: meaning.name for r in runs for key, meaning in r.meanings.items()}
    sources = {s.path: r.file(s.path) for r in runs for s in r.sources if s.claimed}
    files = [parsers.read_file(p, root) for p in sources.values() if p.name not in NOT_OF_THE_RUN]
    if any(run_of(b) for f in files for bs in f.batches.values() for b in bs):
        raise NotSound("one file holds several runs")
    clocks.settle(files)
    streams, left_out, batches = [], set(), {}
    for f in files:
        rows = list(_rows(f))
        if not _is_log(f, rows):
            continue
        path_ = f.source.path
        left_out.add(path_)
        tags = {t for row in rows for t in row.values}
        called = {t: names.get((path_, t)) or next((n for (_, tag), n in names.items() if tag == t), f"other/{t}") for t in tags}
        epochs = EPOCH_STEPS in f.source.note
        settings = {r["key"]: r["value"] for r in table(f, "config")}
        lines, own = None, frozenset[int]()
        if f.source.format == "console":
            lines = f.path.read_bytes().decode("utf-8", "surrogateescape").split("\n")
            kept = {r["at"] for t in f.batches if t != "metrics" for r in table(f, t) if r.get("kind") != "last_line"}
            rows = [row for row in rows if row.at is not None and row.at not in kept]
            own, settings = frozenset(row.at for row in rows if row.at is not None), {}
        elif "batches" in f.batches:
            batches[path_] = table(f, "batches")
        streams.append(Stream(path_, f.source.format, rows, called, epochs, lines, own, settings))
    return Original(root, runs, _without_copies(streams), {f.source.path: f for f in files}, batches, frozenset(left_out))


def table(f: FileRead, name: str) -> list[dict[str, Any]]:
    """The rows of one table of a file, as dictionaries."""
    return [row for b in f.batches.get(name, []) for row in b.to_pylist()]


def _rows(f: FileRead) -> Iterator[Row]:
    values = [r for r in table(f, "metrics") if not (f.source.format == "trainer_state" and r["at"] is None)]
    if f.source.format.startswith("mlflow"):
        values.sort(key=lambda r: (r["step"] is not None, r["step"] or 0))
    else:
        values.sort(key=lambda r: -1 if r["at"] is None else r["at"])
    by_step = f.source.format in ONE_VALUE_A_RECORD
    row, here = None, None
    for r in values:
        place = (r["step"], r["rank"], None if by_step else r["at"])
        if row is None or place != here or r["tag"] in row.values:
            if row is not None:
                yield row
            row, here = Row(r["step"], r["time"], r["rank"], {}, r["at"]), place
        row.values[r["tag"]] = r["value"]
    if row is not None:
        yield row


def _is_log(f: FileRead, rows: list[Row]) -> bool:
    """Whether it is a curve. Results and states of checkpoints, a number each, are copied as they are."""
    return bool(rows) and (f.source.format in TRACKERS or len({row.step for row in rows} - {None}) > 1)


def _without_copies(streams: list[Stream]) -> list[Stream]:
    """Each checkpoint of a Trainer repeats the history: the longest speaks for those that it holds."""
    held = {s.path: {(r.step, t, str(v)) for r in s.rows for t, v in r.values.items()} for s in streams if s.format == "trainer_state"}
    kept: list[Stream] = []
    for s in sorted(streams, key=lambda s: -len(held.get(s.path, ()))):
        if s.path in held and any(k.path in held and held[s.path] <= held[k.path] for k in kept):
            continue
        kept.append(s)
    return [s for s in streams if s in kept]


def dated(time: float | None) -> bool:
    return time is not None and math.isfinite(time) and time >= DATED
