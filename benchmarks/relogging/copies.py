"""One relogged copy of a run folder: its metrics in their new form, everything else as it is."""

from __future__ import annotations

import re
import shutil
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import Any

from forensics.run import plan
from relogging import changes, manifests, writers
from relogging.original import TRACKERS, NotSound, Original, Row, Stream, dated, table

SUFFIX = {"csv_log": ".csv", "jsonl": ".jsonl", "console": ".log"}
WRITE = {"csv_log": writers.table, "jsonl": writers.jsonl, "tensorboard": writers.tensorboard, "trainer_state": writers.trainer_state}
NAMES_A_STEP = re.compile(r"\b(?:step|iter(?:ation)?)s?\W{0,3}\d", re.I)


def write(original: Original, out: Path, transformation: str, step: int | None = None) -> list[Stream]:
    """Writes the folder ``out`` and says what is in it; raises NotSound where the transformation is none for this run."""
    if out.exists() and any(out.iterdir()):
        raise FileExistsError(f"{out} is not empty")
    streams = changes.changed(original, transformation, step)
    _refuse(original, transformation)
    listed = manifests.shifted(original) if transformation == "offset" else {}
    if transformation == "no_config":
        streams = [_without_settings(original, s) for s in streams]
    last = changes.last_step(streams) if transformation == "cut_after" else None
    out.mkdir(parents=True, exist_ok=True)
    for name in original.others():
        if (transformation == "no_config" and _is_config(original, name)) or (last is not None and _saved_at(original, name) > last):
            continue
        (out / name).parent.mkdir(parents=True, exist_ok=True)
        if name in listed:
            (out / name).write_text(listed[name])
        else:
            shutil.copy2(original.root / name, out / name)
    for s in streams:
        if s.stays:
            (out / s.path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(original.root / s.path, out / s.path)
    moved = [s for s in streams if not s.stays]
    if len(original.runs) == 1:
        moved = _appended(moved)
    if transformation == "as_trainer_state":
        _as_one_state(original, out, moved)
    else:
        for number, s in enumerate(moved):
            _write_stream(out, s, _format(s, transformation), number, last)
    _write_rest(original, out, transformation)
    return streams


def _refuse(original: Original, transformation: str) -> None:
    """What would contradict lines or files that stay as they are."""
    runs = original.runs
    events = [e for r in runs for e in r.tables["events"].to_pylist()]
    if transformation in changes.AS:
        _refuse_format(original, transformation, events)
    if transformation == "no_config" and not any(r.tables["config"].num_rows for r in runs):
        raise NotSound("no settings were logged")
    if transformation == "renamed" and "forensics.toml" in original.others():
        raise NotSound("forensics.toml names the tags")
    if transformation == "no_clock":
        if not any(dated(r.time) for s in original.streams for r in s.rows):
            raise NotSound("no clock was logged")
        gone = {s.path for s in original.streams if s.lines is None}
        if any(e["time"] is not None and e["source"] not in gone for e in events):
            raise NotSound("lines that stay have clocks")
    if transformation == "offset" and any(NAMES_A_STEP.search(e["text"] or "") for e in events if e["kind"] != "last_line"):
        raise NotSound("lines that stay name steps")


def _refuse_format(original: Original, transformation: str, events: list[dict[str, Any]]) -> None:
    if all(s.lines is not None for s in original.streams):
        _refuse_without_rows(original)
    if transformation == "as_trainer_state":
        if len(original.runs) > 1:
            raise NotSound("there are several runs")
        if any(len(r.attempts) > 1 for r in original.runs):
            raise NotSound("there are several attempts")
    if transformation == "as_tensorboard":
        clocks = [dated(r.time) for s in original.streams for r in s.rows] + [dated(e["time"]) for e in events]
        if any(clocks) and any(not dated(r.time) for s in original.streams if s.lines is None for r in s.rows):
            raise NotSound("an event has a clock, which these rows have not, and other lines do")


def _refuse_without_rows(original: Original) -> None:
    """Lines of a console log that stay in it may have their step from the rows before them, which go elsewhere."""
    for s in original.streams:
        f = original.files[s.path]
        if any(r["at"] not in s.own and r["step"] is not None for r in table(f, "metrics")):
            raise NotSound("lines that stay have their step from the rows")
        stay = [e for e in table(f, "events") if e["kind"] != "last_line" and e["step"] is not None]
        if any(str(e["step"]) not in (e["text"] or "") for e in stay):
            raise NotSound("lines that stay have their step from the rows")


def _format(s: Stream, transformation: str) -> str:
    if transformation in changes.AS:
        return changes.AS[transformation]
    if s.format == "trainer_state" and s.path.endswith(".jsonl"):
        return "jsonl"  # the logs of LLaMA-Factory and ms-swift
    if s.format == "tensorboard" and transformation == "no_clock":
        return "jsonl"  # an event has a clock
    return s.format if s.format in changes.AS.values() else "jsonl"


def _write_stream(out: Path, s: Stream, format: str, number: int, last: int | None) -> None:
    own = PurePosixPath(s.path)
    same = s.format == format
    stem = "metrics" if s.format in TRACKERS else own.stem
    name = own.name if same else stem + SUFFIX.get(format, "")
    folder = out / home(s)
    if format == "tensorboard":
        started = next((r.time for r in s.rows if dated(r.time)), writers.STARTED) or 0
        name = own.name if same else f"events.out.tfevents.{int(started)}.relogged.{number}"
        folder = folder / s.suffix if s.suffix or same else folder / "tb"
    elif format == "trainer_state":
        name = "trainer_state.json"
    elif s.suffix:
        name = f"{PurePosixPath(name).stem}_{s.suffix}{PurePosixPath(name).suffix}"
    folder.mkdir(parents=True, exist_ok=True)
    if format == "console":
        path = _free(folder / name)
        writers.console(path, s, last)
        return
    _log_without_rows(out, s)
    if s.rows:
        WRITE[format](_free(folder / name), s)


def home(s: Stream) -> PurePosixPath:
    """The folder that another logger would write to: not into that of W&B or MLflow."""
    parts = PurePosixPath(s.path).parent.parts
    inside = next((i for i, part in enumerate(parts) if part in ("wandb", "mlruns")), len(parts))
    return PurePosixPath(*parts[:inside])


def _appended(streams: list[Stream]) -> list[Stream]:
    """The launches of one run that W&B or MLflow wrote to a folder each: other loggers go on in the same file."""
    found: dict[Any, Stream] = {}
    for s in streams:
        key = (home(s) if home(s) != PurePosixPath(s.path).parent else s.path, s.suffix)
        before = found.get(key)
        if before is not None:
            s = replace(before, rows=before.rows + s.rows, names=before.names | s.names, settings=before.settings | s.settings)
        found[key] = s
    return list(found.values())


def _free(path: Path) -> Path:
    """The path, or one beside it where something has that name."""
    return next(p for p in (path, *(path.with_name(f"{path.stem}_{n}{path.suffix}") for n in range(1, 99))) if not p.exists())


def _log_without_rows(out: Path, s: Stream) -> None:
    """The lines of a console log that are no rows stay in their file."""
    if s.lines is not None and any(text.strip() for i, text in enumerate(s.lines, 1) if i not in s.own):
        (out / s.path).parent.mkdir(parents=True, exist_ok=True)
        writers.console(out / s.path, replace(s, rows=[]))


def _as_one_state(original: Original, out: Path, streams: list[Stream]) -> None:
    """All files together, each step once: the Trainer drops what a resume does again, and has one history."""
    rows: dict[tuple[int, bool], dict[str, float]] = {}
    said: dict[tuple[int, str], str] = {}  # by which file
    names: dict[str, str] = {}
    for s in sorted(streams, key=lambda s: -len(s.rows)):
        for r in s.rows:
            for tag, value in r.values.items():
                name = s.names[tag]
                if r.step is None or (name in writers.HF and said.setdefault((r.step, name), s.path) != s.path):
                    continue  # another file has said it
                names.setdefault(tag, name)
                rows.setdefault((r.step, changes.is_eval(s, tag)), {}).setdefault(tag, value)
    one = Stream("", "trainer_state", [Row(step, None, None, v) for (step, _), v in sorted(rows.items(), key=lambda x: x[0])], names)
    found = {k: v for s in streams for k, v in s.settings.items()} if all(s.format == "trainer_state" for s in streams) else {}
    for s in streams:
        _log_without_rows(out, s)
    folder = out / home(streams[0])
    folder.mkdir(parents=True, exist_ok=True)
    told = plan.plan(original.runs[0])
    planned = told.value if told is not None and told.unit == "step" else None
    writers.trainer_state(_free(folder / "trainer_state.json"), replace(one, settings=found), planned, rename=True)


def _write_rest(original: Original, out: Path, transformation: str) -> None:
    """Settings and sample ids that metric files held."""
    for s in original.streams:
        if s.settings and transformation != "no_config" and _format(s, transformation) != "trainer_state":
            folder = out / home(s)
            folder.mkdir(parents=True, exist_ok=True)
            writers.settings(_free(folder / "logged_config.json"), {k: v for k, v in s.settings.items() if not k.startswith("wandb.")})
    by = changes.shift(original.streams) if transformation == "offset" else 0
    for path, rows in original.batches.items():
        folder = out / PurePosixPath(path).parent
        folder.mkdir(parents=True, exist_ok=True)
        moved = [r | {"step": None if r["step"] is None else r["step"] + by} for r in rows]
        manifests.write(_free(folder / "batches.jsonl"), moved)


def _is_config(original: Original, name: str) -> bool:
    f = original.files.get(name)
    return f is not None and name != "forensics.toml" and set(f.batches) == {"config"}


def _without_settings(original: Original, s: Stream) -> Stream:
    """Without the lines of a console log that say settings and nothing else."""
    f = original.files[s.path]
    if s.lines is None:
        return replace(s, settings={})
    others = {r["at"] for t in f.batches if t != "config" for r in table(f, t)}
    return replace(s, own=s.own | {r["at"] for r in table(f, "config")} - others)


def _saved_at(original: Original, name: str) -> int:
    """The step of a checkpoint's file; -1 of any other."""
    found = [c for r in original.runs for c in r.tables["checkpoints"].to_pylist() if c["step"] is not None]
    return max((c["step"] for c in found if name == c["path"] or name.startswith(f"{c['path']}/")), default=-1)
