"""Reads W&B's transaction log, the ``.wandb`` file of a run folder: history, system metrics, config, output, exit code.

The file is a 7-byte header (``:W&B``, 0xBEE1, version 0) and a LevelDB log (:mod:`parsers.wandb_format.leveldb_log`) of protobuf
``Record`` messages (``wandb_internal.proto``, wandb 0.31; field numbers have not changed since 0.10). wandb itself is
not needed: its import costs more than reading a run, and from 0.30 on it cannot read its own file.

What is odd about it:

* The SDK drops a row whose step is below the last one; such rows are not in the file (:mod:`parsers.wandb_format.steps`).
* ``_step`` counts ``log`` calls unless the caller gives a step. Where a row also has the framework's own counter
  (``train/global_step`` of Hugging Face, ``trainer/global_step`` of Lightning, or a step metric the run declared with
  ``define_metric``), that is the step; rows without it take the last one seen, as W&B's pages do.
* System metrics carry a time and no step, so their step is null; their tags are W&B's, ``system.gpu.0.temp``.
* A summary belongs to the run, not to a step: only what the history never logged is taken from it, without a step.
* Items with a ``_type`` are media. Histograms become histograms; of others the numbers are kept (``samples.height``).
* A run that was killed has no exit record.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from parsers import protobuf_wire
from parsers.protobuf_wire import BYTES, Ints, Words
from parsers.records import number_texts
from parsers.tables import Gap, Note, Rows
from parsers.wandb_format import item_rows, key_values, leveldb_log, run_records
from parsers.wandb_format.leveldb_log import Window
from parsers.wandb_format.steps import Axes

AT = "byte"

_HEADER = b":W&B\xe1\xbe\x00"
_HISTORY, _SUMMARY, _OUTPUT, _STATS, _METRIC, _OUTPUT_RAW, _EXIT = 2, 3, 4, 7, 12, 13, 18
_NOT_READ = {6: "file upload", 8: "artifact", 25: "used artifact"}
_MANY = {_HISTORY, _SUMMARY, _STATS}
_SINGLE = {_OUTPUT, 5, 10, _METRIC, _OUTPUT_RAW, 17, _EXIT, 21, 23, 26, *_NOT_READ}
_IS_STEP, _IS_TIME, _IS_AXIS, _IN_HISTOGRAM = 1, 2, 3, 4  # what a tag is, where it is no plain metric
_HISTOGRAM_PARTS = {"_type", "values", "bins", "packedBins.min", "packedBins.size", "packedBins.count"}


def claims(path: Path, head: bytes) -> bool:
    if head.startswith(b":W&B"):
        return True
    pointer = head.startswith(b"version https://git-lfs") or b"/annex/objects/" in head[:200]
    return path.suffix == ".wandb" and not pointer


def parse(path: Path) -> Iterator[pa.RecordBatch | Gap | Note]:
    """Yields metrics, histograms, events and config in file order; ``at`` is the byte where the record begins."""
    with path.open("rb") as f:
        head = f.read(len(_HEADER))
    if not head:
        yield Gap("byte 0", "empty file: the run never wrote to it", None)
        return
    if head != _HEADER:
        yield Gap("byte 0", "not the header of a W&B file: damaged, or of another version", None)
    console = not (path.parent / "files" / "output.log").is_file()  # else that file is read
    reader = _Reader(meta=run_records.Meta(console=console))
    for part in leveldb_log.windows(path, first=len(head)):
        if isinstance(part, Gap):
            yield part
        else:
            yield from reader.read(part)
    yield from reader.end()


@dataclass
class _Reader:
    """What is known of a file so far."""

    meta: run_records.Meta
    rows: Rows = field(default_factory=Rows)
    axes: Axes = field(default_factory=Axes)
    tags: key_values.Tags = field(default_factory=key_values.Tags)
    system: key_values.Tags = field(default_factory=lambda: key_values.Tags(prefix="system."))
    roles: NDArray[np.int8] = field(default_factory=lambda: np.zeros(0, np.int8))
    seen: Counter[str] = field(default_factory=Counter)
    history_rows: int = 0

    def read(self, window: Window) -> Iterator[pa.RecordBatch | Gap]:
        data, at = window.data, number_texts.words(window.data)
        start = np.array(window.start, np.int64)
        place = np.array(window.at, np.int64)
        many: dict[int, list[tuple[Ints, Ints, Ints]]] = {}
        single: list[tuple[int, int, int, int]] = []
        stop = start + np.array(window.length, np.int64)
        broken = np.zeros(len(start), np.bool_)
        for records, number, wire, v, length in protobuf_wire.lockstep(at, start, stop, np.arange(len(start)), broken):
            if number in _MANY and wire == BYTES:
                many.setdefault(number, []).append((records, v, v + length))
            elif number in _SINGLE and wire == BYTES:
                single += zip(records.tolist(), [number] * len(records), v.tolist(), (v + length).tolist(), strict=True)
        for i in np.flatnonzero(broken).tolist():
            yield Gap(f"byte {window.at[i]}", "no W&B record, though its checksum is right", 1)
        for i, number, begin, end in sorted(single):
            if number in _NOT_READ:
                self.seen[_NOT_READ[number]] += 1
            elif number == _METRIC:
                self.axes.declare(key_values.message(data[begin:end]))
            elif number not in (_OUTPUT, _OUTPUT_RAW) or self.meta.console:
                self.meta.read(number, key_values.message(data[begin:end]), window.at[i], self.rows)
        for number in sorted(many):
            records, begins, ends = item_rows.in_order(many[number])
            if number == _HISTORY:
                yield from self._history(data, at, place[records], begins, ends)
            elif number == _STATS:
                yield from self._stats(data, at, place[records], begins, ends)
            else:
                self._summary(data, at, place[records], begins, ends)
        yield from self.rows.flush()

    def _history(self, data: bytes, at: Words, place: Ints, start: Ints, stop: Ints) -> Iterator[pa.RecordBatch | Gap]:
        self.history_rows += len(start)
        (row, begin, end), (exact, _), there, broken = item_rows.inside(at, start, stop, items=1)
        step, time = np.where(there, exact, np.nan), np.full(len(start), np.nan)
        yield from item_rows.breaks(broken, place)
        items = key_values.decode(data, at, begin, end, self.tags)
        if items.broken:
            yield Gap(f"byte {place[0]}", f"{items.broken} logged values from here on cannot be read", items.broken)
        self._learn_roles()
        self._find_histograms(items)
        role = self.roles[items.code]
        for what, column in ((_IS_STEP, step), (_IS_TIME, time)):
            here = items.numeric & (role == what)
            column[row[here]] = items.value[here]
        here = items.numeric & (role == _IS_AXIS)
        step = self.axes.steps(step, row[here], items.value[here])
        keep = np.flatnonzero(items.numeric & ((role == 0) | (role == _IS_AXIS)))
        columns = {"step": step, "exact": exact, "time": time, "at": place}
        yield item_rows.metrics(self.tags, items, keep, {name: column[row[keep]] for name, column in columns.items()})
        self.seen["text"] += items.texts

        def where(r: int) -> dict[str, Any]:
            return {"step": _whole(step[r]), "time": _finite(time[r]), "at": int(place[r])}

        self._histograms(items, role, row, where)
        for i, value in items.other:
            if role[i] != _IN_HISTOGRAM:
                name = self.tags.names[items.code[i]]
                if name.endswith("._type"):
                    self.seen[str(value)] += 1
                else:
                    key_values.add(self.rows, name, value, self.seen, **where(row[i]))

    def _learn_roles(self) -> None:
        """Looks at the names that are new since the last time."""
        names = self.tags.names
        fresh = [{"_step": _IS_STEP, "_timestamp": _IS_TIME}.get(name, 0) for name in names[len(self.roles) :]]
        self.roles = np.concatenate([self.roles, np.array(fresh, np.int8)])
        for code, name in enumerate(names):
            if self.roles[code] == 0 and self.axes.is_step(name):
                self.roles[code] = _IS_AXIS

    def _find_histograms(self, items: key_values.Items) -> None:
        """A histogram may come as items of its parts: ``h._type``, ``h.values``, ``h.bins``."""
        found = {items.code[i] for i, value in items.other if value == "histogram"}
        names = {self.tags.names[code].removesuffix("_type") + part for code in found for part in _HISTOGRAM_PARTS}
        for code, name in enumerate(self.tags.names if names else ()):
            if name in names:
                self.roles[code] = _IN_HISTOGRAM

    def _histograms(self, items: key_values.Items, role: NDArray[np.int8], row: Ints,
                    where: Callable[[int], dict[str, Any]]) -> None:  # fmt: skip
        values: dict[int, Any] = dict(items.other)
        found: dict[tuple[int, str], dict[str, Any]] = {}
        for i in np.flatnonzero(role == _IN_HISTOGRAM).tolist():
            name = self.tags.names[items.code[i]]
            part = next(p for p in _HISTOGRAM_PARTS if name.endswith("." + p))
            histogram = found.setdefault((int(row[i]), name.removesuffix("." + part)), {})
            outer, _, inner = part.partition(".")
            value = float(items.value[i]) if items.numeric[i] else values.get(i)
            if inner:
                histogram.setdefault(outer, {})[inner] = value
            else:
                histogram[part] = value
        for (r, name), histogram in found.items():
            key_values.add(self.rows, name, histogram | {"_type": "histogram"}, self.seen, **where(r))

    def _stats(self, data: bytes, at: Words, place: Ints, start: Ints, stop: Ints) -> Iterator[pa.RecordBatch | Gap]:
        (row, begin, end), (seconds, nanoseconds), there, broken = item_rows.inside(at, start, stop, items=3)
        time = np.where(there, seconds + nanoseconds / 1e9, np.nan)
        yield from item_rows.breaks(broken, place)
        items = key_values.decode(data, at, begin, end, self.system)
        keep = np.flatnonzero(items.numeric)
        columns = {"step": np.full(len(time), np.nan), "exact": np.zeros(len(time), np.int64), "time": time, "at": place}
        yield item_rows.metrics(self.system, items, keep, {name: column[row[keep]] for name, column in columns.items()})
        for i, value in items.other:
            key_values.add(self.rows, self.system.names[items.code[i]], value, self.seen,
                            time=_finite(time[row[i]]), at=int(place[row[i]]))  # fmt: skip

    def _summary(self, data: bytes, at: Words, place: Ints, start: Ints, stop: Ints) -> None:
        # wandb >= 0.17 repeats every history row as a summary, with nested keys; what the user set has plain keys
        first = at[start] >> np.where(at[start] & np.uint64(0x8000), np.uint64(24), np.uint64(16))
        for i in np.flatnonzero((first & np.uint64(0xFF)) != 0x12).tolist():
            for update in key_values.message(data[start[i] : stop[i]]).get(1, []):
                if isinstance(update, bytes):
                    self.meta.summary(key_values.message(update), int(place[i]))

    def end(self) -> Iterator[pa.RecordBatch | Gap | Note]:
        yield from self.meta.end(self.rows, set(self.tags.names), self.seen)
        yield from self.rows.flush()
        yield Note(f"{self.history_rows} history rows" if self.history_rows else "no history row: nothing was logged")
        self.seen += Counter()  # without the zeros
        if self.seen:
            counted = ", ".join(f"{n} {what}" for what, n in sorted(self.seen.items()))
            yield Note(f"counted, not opened: {counted}")


def _whole(x: float) -> int | None:
    return int(x) if abs(x) < 2.0**63 else None


def _finite(x: float) -> float | None:
    return float(x) if np.isfinite(x) else None
